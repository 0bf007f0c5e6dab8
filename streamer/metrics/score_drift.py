"""Drift of scores: how far their distribution is from that of the same window a day before.

Population stability index, in classes by tenths of the day before: a bin of scores
(``score_sums.EDGES``) belongs to the tenth that the middle of its scores fell in, bins above all of
them to an eleventh class. With a and b impressions of a class now and then,

    PSI = Σ (p - q) ln(p / q),    p = (a + 1/2) / (Σa + 11/2),    q likewise of b.

The halves keep classes without scores finite. By convention 0.1 is a small shift and 0.2 a large
one; of independent scores that are alike about 10 / Σa + 10 / Σb comes by chance.

Half of the scores of a thousand impressions move from 0.2 to 0.8:

    >>> bins = np.zeros((2, len(EDGES) + 1), np.int64)
    >>> bins[0, 40], bins[1, 40], bins[1, 90] = 1000, 500, 500
    >>> round(float(psi(bins[1:], bins[:1])[0]), 4)  # 1/2 ln 2 and 1/2 ln 1001, nearly
    3.7799

Source: N. Siddiqi, *Credit Risk Scorecards*, 2006; it is the symmetrised Kullback-Leibler
divergence (Jeffreys 1946).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.metrics.day_before import Kept
from streamer.metrics.definition import Brief, Declarations, Series, count
from streamer.metrics.reads import Statistic
from streamer.metrics.score_sums import BINS, EDGES
from streamer.settings.model import Settings

LEAST_SCORES = 1000
"""On either side; below, chance alone comes near a large shift."""
CLASSES = 11

metric = Declarations()


def psi(now: I64, then: I64) -> F64:
    """Of impressions by bin, (segments, bins)."""
    total = np.maximum(then.sum(axis=1, keepdims=True), 1)
    below = np.cumsum(then, axis=1) - then
    of_bin = 10 * (2 * below + then) // (2 * total)
    sides = []
    for bins in (now, then):
        counted = np.zeros((len(bins), CLASSES))
        np.add.at(counted, (np.arange(len(bins))[:, None], of_bin), bins)
        sides.append((counted + 0.5) / (counted.sum(axis=1, keepdims=True) + CLASSES / 2))
    p, q = sides
    found: F64 = ((p - q) * np.log(p / q)).sum(axis=1)
    return found


_BINS = tuple(
    Statistic(BINS, stop=len(EDGES) + 1, is_day_before=is_then) for is_then in (False, True)
)
"""Impressions by bin, now and a day before."""


@metric(
    "score_drift",
    formula="sum over tenths of (share now - share then) * ln(share now / share then)",
    unit="PSI",
    empty=f"absent below {LEAST_SCORES} impressions with a score now or a day before, and where"
    " windows.day_before does not keep that",
    source="C",
    brief=Brief(),
    reads=_BINS,
)
def score_drift(now: I64, then: I64) -> Iterator[Series]:
    """Population stability index of the scores, compared with the same window a day before, in
    classes by tenths of the day before. It has no interval."""
    is_enough = [bins.sum(axis=1) >= LEAST_SCORES for bins in (now, then)]
    yield Series({}, psi(now, then), is_enough[0] & is_enough[1])


def _side(*found: I64, side: int) -> Iterator[Series]:
    yield count(found[side].sum(axis=1))


for _side_number, _name, _when in (
    (0, "window_drift_impressions", "in the window"),
    (1, "window_drift_day_before_impressions", "in the same window a day before"),
):
    metric.count(
        *(_name, "impressions", f"impressions with a score {_when}"),
        f"Support of score_drift {_when}.",
        *(_BINS, partial(_side, side=_side_number)),
        empty="absent where it is 0, and where windows.day_before does not keep the day before",
        brief=Brief(),
    )


def kept(settings: Settings) -> Iterator[Kept]:
    """What it reads of the day before: impressions by bin."""
    if "scores" in settings.metrics.families:
        yield BINS, 0, len(EDGES) + 1
