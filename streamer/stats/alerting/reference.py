"""A week against a fixed one: the slow drift that every baseline of recent days follows.

Both weeks have each weekday once, so what sets weekdays apart is in neither. With B_0 and B_1, the
metric of the reference week and of the present one, pooled over their days, three things make
B_1 / B_0 differ from what has become of the metric:

- who happened to be there in each of the two weeks: random groups (groups.py) of the whole week,
  for people come back on its days;
- the days: with R_0w and R_1w on weekday w, δ_w = R_1w / B_1 - R_0w / B_0, of n weekdays

    τ² = max(0, Σ δ_w² / (n - 1) - mean of (v_0 / y_0w / B_0² + v_1 / y_1w / B_1²)),

  v being what one unit of support varies by among a day's users; it counts τ² / n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import inf
from operator import add

from streamer.stats.alerting.baseline import LEAST_DAYS, ChangeRule, MetricChange, Status, judged
from streamer.stats.alerting.bounds import Noise, student_t
from streamer.stats.alerting.past import Past, are_unlike
from streamer.stats.random_groups import GroupSums


def against_reference(
    now: Sequence[GroupSums], then: Sequence[GroupSums], rule: ChangeRule, unit: float = 1.0
) -> MetricChange:
    """The days ``now`` against those of the reference week, each beside the same weekday.

    >>> day = GroupSums(x=tuple(range(40, 56)), y=(1000,) * 16)
    >>> less = GroupSums(x=tuple(range(30, 46)), y=(1000,) * 16)
    >>> against_reference([less] * 7, [day] * 7, ChangeRule(drop=0.1)).status.value
    'dropped'
    >>> against_reference([day] * 7, [day] * 7, ChangeRule(drop=0.1)).status.value
    'within the tolerance'
    """
    present, past = (reduce(add, week, GroupSums()) for week in (now, then))
    pairs = [(a, b) for a, b in zip(now, then, strict=True) if a.support and b.support]
    floor = 0.0 if min(min(window.x) for window in (*now, *then)) >= 0 else -inf
    found = MetricChange(
        value=None if present.value is None else float(present.value) * unit,
        low=None,
        high=None,
        baseline=None if past.value is None else float(past.value) * unit,
        support=round(present.support / rule.support_unit),
        expected_support=past.support / rule.support_unit,
        days=len(pairs),
        compared="reference",
    )
    if past.value is None:
        return replace(found, reason="nothing was counted in the reference week")
    if past.value <= 0:
        return replace(found, reason="nothing above 0 in the reference week to compare with")
    if len(pairs) < LEAST_DAYS:
        why = (
            f"{len(pairs)} weekdays had traffic in both weeks, and at least {LEAST_DAYS} are needed"
        )
        return replace(found, status=Status.TOO_LITTLE, reason=why)
    if past.variance is None or present.variance is None:
        why = "too few users: all are in one random group"
        return replace(found, status=Status.TOO_LITTLE, reason=why)
    noise = _noise(present, past, pairs, rule.level)
    return judged(found, float(past.value), noise, rule, (floor, unit))


def _noise(
    present: GroupSums,
    past: GroupSums,
    pairs: Sequence[tuple[GroupSums, GroupSums]],
    level: float,
) -> Noise:
    assert past.value is not None
    assert past.variance is not None
    base = float(past.value)
    unit = past.variance * past.support
    people = unit / present.support + past.variance
    between, unlike = _between_days(present, past, pairs)
    day = base * base * between / len(pairs)
    t = student_t(level, (people, past.occupied - 1), (day, len(pairs) - 1))
    own = present.variance or 0.0
    return Noise(unit / present.support, own, past.variance + day, t, day, unlike)


def _between_days(
    present: GroupSums, past: GroupSums, pairs: Sequence[tuple[GroupSums, GroupSums]]
) -> tuple[float, bool]:
    """τ², relative, and whether it is more than chance; 0 where the present value is not above
    0."""
    assert past.value is not None
    assert present.value is not None
    if present.value <= 0:
        return 0.0, False
    means = float(present.value), float(past.value)
    units = [Past.of([pair[i] for pair in pairs]).unit_variance or 0.0 for i in (0, 1)]
    squares, chance = 0.0, 0.0
    for pair in pairs:
        values = [float(day.value or 0) / mean for day, mean in zip(pair, means, strict=True)]
        squares += (values[0] - values[1]) ** 2
        chance += sum(
            unit / day.support / mean**2 for day, unit, mean in zip(pair, units, means, strict=True)
        )
    chance, df = chance / len(pairs), len(pairs) - 1
    return max(0.0, squares / df - chance), are_unlike(squares, chance, df)
