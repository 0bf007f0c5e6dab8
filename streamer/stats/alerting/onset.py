"""When a ratio changed: the pane from which on it was another, by the panes themselves.

Panes have Σx and Σy. For each pane that may be the first after the change, the ratio before and the
one after are fitted by least squares with weights 1 / Σy; the change is where what is left, R, is
smallest. The noise is what is left there, so that it need not be that of counts. With a flat prior,
n panes and σ² = R_min / (n - 2), the first pane is c with a probability that is proportional to
exp(-(R_c - R_min) / 2σ²); the range is the shortest that holds 90 %. Panes without Σy say nothing.
Where days have a pattern, Σy is first made what it would be at a ratio that is the same all day.
Sources: Hinkley (1970), Inference about the change-point; Barnard (1959), Control charts, §5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamer.encoding.arrays import F64

LEAST_PANES = 8
"""Panes with any Σy below which nothing is said, with two at least before the change."""
COVERED = 0.9
_LEAST_DAYS = 3


class Onset(NamedTuple):
    """The first pane of a change, and the range in which it is, both ends included."""

    pane: int
    low: int
    high: int


def onset(x: F64, y: F64, *, is_rise: bool) -> Onset | None:
    """Where a ratio rose, or fell; ``x`` and ``y``: of neighbouring panes up to now. None where
    too few are known, or it did not move that way.

    >>> x, y = np.array([50.0] * 20 + [5.0] * 4), np.full(24, 1000.0)
    >>> onset(x + np.tile([2.0, -2.0], 12), y, is_rise=False)
    Onset(pane=20, low=20, high=20)
    >>> onset(x, y, is_rise=True) is None
    True
    """
    (held,) = np.nonzero(y > 0)
    n = len(held)
    if n < LEAST_PANES:
        return None
    xs, ys = x[held], y[held]
    before_x, before_y = np.cumsum(xs)[1:-1], np.cumsum(ys)[1:-1]
    after_x, after_y = xs.sum() - before_x, ys.sum() - before_y
    moved = after_x / after_y - before_x / before_y
    left = (xs**2 / ys).sum() - before_x**2 / before_y - after_x**2 / after_y
    left = np.where((moved > 0) == is_rise, left, np.inf)
    best = int(np.argmin(left))
    if not np.isfinite(left[best]):
        return None
    noise = max(left[best] / (n - 2), 1e-12)
    weights = np.exp(-np.minimum((left - left[best]) / (2 * noise), 700.0))
    low, high = _shortest(weights / weights.sum(), best)
    return Onset(int(held[best + 2]), int(held[low + 2]), int(held[high + 2]))


def alike_by_time(x: F64, y: F64, a_day: int, smooth: int) -> F64:
    """Σy times the usual ratio at its time of day beside that of all day: that of all days of the
    panes together, over ``smooth`` of them. ``a_day``: panes of a day; below three days: Σy."""
    days = len(x) // a_day
    if days < _LEAST_DAYS:
        return y
    at = np.arange(len(x)) % a_day
    sums = [np.bincount(at, weights=of, minlength=a_day) for of in (x, y)]
    kernel = np.ones(min(smooth, a_day))
    around = [np.convolve(np.concatenate([of] * 3), kernel, "same")[a_day:-a_day] for of in sums]
    whole = x.sum() / max(1.0, y.sum())
    ratio = np.where(around[1] > 0, around[0] / np.maximum(around[1], 1.0), whole)
    return y * np.where(ratio > 0, ratio / whole, 1.0)[at] if whole > 0 else y


def _shortest(probability: F64, best: int) -> tuple[int, int]:
    """The ends of what grows from the best place, to the more probable side, until it is enough."""
    low = high = best
    covered = probability[best]
    while covered < COVERED:
        left = probability[low - 1] if low else -1.0
        right = probability[high + 1] if high + 1 < len(probability) else -1.0
        if max(left, right) < 0:
            break
        if left >= right:
            low, covered = low - 1, covered + left
        else:
            high, covered = high + 1, covered + right
    return low, high
