"""A mergeable sketch of durations: counts in fixed integer buckets.

Bucket bounds grow by 101/99, so the harmonic middle of a bucket is within 1 % of all its members
(the guarantee of DDSketch, Masson, Rim and Lee 2019, on integer bounds: no logarithm, so every
machine files a value alike). Milliseconds below 50 have buckets of their own and are exact.
Memory: one integer a bucket, only for blocks of 64 buckets that hold something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from streamer.encoding.arrays import I64
from streamer.metrics.definition import Series
from streamer.settings import limits

Values = npt.NDArray[np.float64]

QUANTILES = {"0.5": (1, 2), "0.9": (9, 10), "0.99": (99, 100)}
"""Shown quantiles, as text and as a fraction."""


def _upper_bounds() -> I64:
    bounds = [0]
    while bounds[-1] < limits.MAX_SESSION_MS:
        low = bounds[-1] + 1
        bounds.append(max(low, low * 101 // 99))
    return np.array(bounds, np.int64)


UPPER_MS = _upper_bounds()
"""Largest value of each bucket, in milliseconds."""
LOWER_MS = np.concatenate(([0], UPPER_MS[:-1] + 1))
MIDDLE_MS = np.where(
    UPPER_MS > 0, 2.0 * LOWER_MS * UPPER_MS / np.maximum(LOWER_MS + UPPER_MS, 1), 0.0
)
BUCKETS = len(UPPER_MS)


def upper_ms(bounds_seconds: Sequence[int]) -> list[int]:
    """Upper bounds of classes of times, in milliseconds; one more class is beyond them all.

    >>> upper_ms((1, 60))
    [1000, 60000, 9223372036854775807]
    """
    return [*(1000 * seconds for seconds in bounds_seconds), (1 << 63) - 1]


def at_rank(counts: I64, middles: Values, numerator: int, denominator: int) -> Values:
    """The middle of the bucket that holds rank ceil(q·n), q = numerator/denominator, of each row of
    bucket counts; 0 for a row without values. ``middles``: of the buckets, in the order of counts.
    """
    cumulative = counts.cumsum(axis=1)
    rank = -(-cumulative[:, -1] * numerator // denominator)
    at = (cumulative < rank[:, None]).sum(axis=1)
    return np.where(rank > 0, middles[np.minimum(at, len(middles) - 1)], 0.0)


def quantile(counts: I64, numerator: int, denominator: int) -> Values:
    """The value at rank ceil(q·n), q = numerator/denominator, of each row of bucket counts, in
    milliseconds; 0 for a row without values. Relative error at most 1 %.

    >>> counts = np.zeros((1, BUCKETS), np.int64)
    >>> counts[0, [10, 20, 30]] = 1
    >>> quantile(counts, 1, 2).tolist()
    [20.0]
    """
    return at_rank(counts, MIDDLE_MS, numerator, denominator)


def quantiles(counts: I64, counted: I64) -> Iterator[Series]:
    """A series of each shown quantile, in seconds; absent where nothing is ``counted``."""
    for label, (numerator, denominator) in QUANTILES.items():
        values = quantile(counts, numerator, denominator) / 1000
        yield Series({"quantile": label}, values, counted != 0)
