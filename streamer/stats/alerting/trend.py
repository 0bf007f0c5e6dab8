"""A gradual change, which moves the baseline of recent days and widens what they differ by.

The logarithms z of the metric follow, for days of one kind, a constant up to some day and a line
from then to now; the day is the one that leaves the smallest sum of squares Q. With x, the days
since then (0 before), and means of each kind subtracted: slope b = Σ x z / Σ x², var(b) = s² / Σ x²
and s² = Q / (n - kinds - 2), at least what users make a value differ by. The change in all is
exp(b · days) - 1. Source: Hinkley 1971, "Inference in two-phase regression".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from streamer.stats.random_groups import critical

LEAST_DAYS = 3
"""Days of a gradual change: fewer may be a step."""
LEAST_FREE = 3
"""Degrees of freedom of s² below which nothing is said."""


class Day(NamedTuple):
    """The metric, above 0, some days ago (0: now) on a day of some kind."""

    ago: int
    kind: int
    value: float


class Trend(NamedTuple):
    """A change that goes on for some ``days``: by ``slope`` a day, in all by ``change`` and between
    ``low`` and ``high``; all relative."""

    days: int
    slope: float
    change: float
    low: float
    high: float


def trend(days: Sequence[Day], level: float, users: float) -> Trend | None:
    """The gradual change up to now; None where too few days are known. ``users``: the relative
    variance of one value by who was there.

    >>> falling = [Day(ago, 0, 0.05 * 0.95 ** max(0, 5 - ago)) for ago in range(8)]
    >>> found = trend(falling, 0.99, 0.0)
    >>> found.days, round(found.slope, 3), round(found.change, 3)
    (5, -0.05, -0.226)
    """
    free = len(days) - len({day.kind for day in days}) - 2
    if free < LEAST_FREE:
        return None
    ago = np.array([day.ago for day in days])
    kinds = np.unique([day.kind for day in days], return_inverse=True)[1]
    belongs = np.equal.outer(np.arange(kinds.max() + 1), kinds)
    share = belongs / belongs.sum(axis=1, keepdims=True)
    z = np.array([log(day.value) for day in days])
    z = z - (share @ z)[kinds]
    lengths = np.arange(LEAST_DAYS, ago.max() + 1)
    x = np.maximum(0, lengths[:, None] - ago)
    x = x - (x @ share.T)[:, kinds]
    squares = (x * x).sum(axis=1)
    lengths, x, squares = (part[squares > 0] for part in (lengths, x, squares))
    slopes = x @ z / squares
    left = np.maximum(0.0, z @ z - slopes**2 * squares)
    best = int(left.argmin())
    length, slope = int(lengths[best]), float(slopes[best])
    error = sqrt(max(float(left[best]) / free, users) / float(squares[best]))
    reach = critical(level, free) * error
    low, high = (exp(min(length * end, 700.0)) - 1 for end in (slope - reach, slope + reach))
    return Trend(length, exp(slope) - 1, exp(length * slope) - 1, low, high)
