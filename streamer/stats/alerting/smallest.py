"""The smallest change of a metric that would fire, by the noise of stored windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamer.stats.alerting.baseline import Rule, compare
from streamer.stats.alerting.past import Totals
from streamer.stats.random_groups import GroupSums

LARGEST_RISE = 9.0
"""Relative rise beyond which none is looked for: tenfold."""
_FINE = 1_000_000
"""Parts of one unit of Σx: changed sums are integers, too."""
_STEPS = 14
"""Halvings: a total loss is known to a part in 16,000, a tenfold rise to one in 1,800."""


def smallest_change(
    now: GroupSums,
    then: Sequence[GroupSums] | GroupSums,
    rule: Rule,
    weekdays: Sequence[Sequence[Totals]] = (),
    alike: Sequence[bool] = (),
) -> float | None:
    """The smallest relative change for the worse (0.2: a fifth) of a window with the traffic and
    the groups of users of ``now`` that ``compare`` calls a regression, all others given as to that.
    None where not even a total loss or ``LARGEST_RISE`` is one, or there is no baseline, or
    nothing above 0 in the window.

    >>> day = GroupSums(x=tuple(range(40, 56)), y=(1000,) * 16)
    >>> round(smallest_change(day, [day] * 7, Rule(drop=0.1)), 3)
    0.162
    >>> smallest_change(day, [GroupSums()] * 7, Rule()) is None
    True
    """
    fires = _firing(now, then, rule, weekdays, alike)
    largest = 1.0 if rule.higher_is_better else LARGEST_RISE
    if fires is None or not fires(largest):
        return None
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if fires(middle) else (middle, high)
    return high


def _firing(
    now: GroupSums,
    then: Sequence[GroupSums] | GroupSums,
    rule: Rule,
    weekdays: Sequence[Sequence[Totals]],
    alike: Sequence[bool],
) -> Callable[[float], bool] | None:
    """Whether a change from the baseline fires; None where nothing can be changed by a factor."""
    usual = compare(now, then, rule, weekdays=weekdays, alike=alike)
    if not usual.baseline or not usual.value or usual.value < 0:
        return None
    weeks = [[(_FINE * x, y) for x, y in weekday] for weekday in weekdays]
    if isinstance(then, GroupSums):
        fine: Sequence[GroupSums] | GroupSums = _times(then, _FINE)
    else:
        fine = [_times(day, _FINE) for day in then]
    to_baseline = usual.baseline / usual.value

    def fires(change: float) -> bool:
        by = to_baseline * (1 - change if rule.higher_is_better else 1 + change)
        changed = _times(now, by * _FINE)
        return compare(changed, fine, rule, weekdays=weeks, alike=alike).status.is_regression

    return fires


def _times(window: GroupSums, by: float) -> GroupSums:
    return replace(window, x=tuple(round(x * by) for x in window.x))
