"""Weekdays, weekends, whole weeks, and odd days. Days are those since 1970-01-01, a Thursday."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import sqrt

from streamer.settings.durations import DAY_MS
from streamer.stats.distributions import normal_two_sided
from streamer.stats.experiments.estimate import Estimate
from streamer.stats.experiments.trials import DayWeights

WEEK = 7
_WEEKEND = (2, 3)
"""Days modulo seven: Saturday and Sunday, UTC."""


def is_weekend(day: int) -> bool:
    """Whether a day is a Saturday or Sunday."""
    return day % WEEK in _WEEKEND


def unseen(days: Iterable[int]) -> str:
    """Of which days there is none, in words; empty where there are both.

    >>> unseen([0, 1]), unseen([1, 2])
    ('weekend days', '')
    """
    kinds = {is_weekend(day) for day in days}
    return "" if len(kinds) == 2 else "weekdays" if True in kinds else "weekend days"


def five_to_two(days: Sequence[int]) -> DayWeights:
    """Weights with which weekdays and weekends count as 5 : 2, of mean 1; nothing where they do
    without, or there is but one kind.

    >>> five_to_two([0, 1, 2])[2] / five_to_two([0, 1, 2])[0], five_to_two(range(14))
    (Fraction(4, 5), {})
    """
    free = sum(map(is_weekend, days))
    work = len(days) - free
    if not free or not work or 2 * work == 5 * free:
        return {}
    weights = Fraction(5 * len(days), WEEK * work), Fraction(2 * len(days), WEEK * free)
    return {day: weights[is_weekend(day)] for day in days}


def week_left(first: int, last: int, stream_ms: int) -> int:
    """Days until whole weeks since the first day are over, as of the end of a day, or of now.

    >>> week_left(3, 9, 12 * DAY_MS), week_left(3, 9, 9 * DAY_MS + 1), week_left(3, 3, 4 * DAY_MS)
    (0, 1, 6)
    """
    ended = min(last + 1, stream_ms // DAY_MS) - first
    is_whole = last < stream_ms // DAY_MS and ended % WEEK == 0
    return 0 if is_whole else WEEK - ended % WEEK


ODD = 0.01
"""Share of experiments without an odd day in which one is called so, at one look."""
_LEAST = 0.01
"""Part of the variance of a lift that a day is taken to have at least."""


def oddness(whole: Estimate, without: Estimate) -> float:
    """How many standard errors a lift without a day is from that of all days: with var(L₋ - L) =
    var(L₋) - var(L), as L is the better estimate of the same (Hausman 1978, "Specification tests in
    econometrics", Econometrica 46); 0 where one of them is not known.

    >>> lift, other = (Estimate(x, s, None, None) for x, s in ((4, 3), (0, 5)))
    >>> oddness(lift, other)
    1.0
    """
    if None in (whole.value, whole.stderr, without.value, without.stderr):
        return 0.0
    assert whole.value is not None
    assert whole.stderr is not None
    assert without.value is not None
    assert without.stderr is not None
    variance = max(without.stderr**2 - whole.stderr**2, _LEAST * whole.stderr**2)
    return abs(without.value - whole.value) / sqrt(variance) if variance > 0 else 0.0


def is_odd(whole: Estimate, without: Estimate, days: int) -> bool:
    """Whether one of so many days moves the lift by more than chance (Bonferroni)."""
    return normal_two_sided(oddness(whole, without)) * days <= ODD
