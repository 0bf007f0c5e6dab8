"""Weekdays of past weeks, and the reference week: every status, and against recomputation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamer.stats.alerting.baseline import Rule, Status, compare
from streamer.stats.alerting.past import Past, Totals
from streamer.stats.alerting.reference import against_reference
from streamer.stats.random_groups import GroupSums
from tests.stats.alerting.test_baseline import RULE, window


def totals(one: GroupSums) -> Totals:
    return sum(one.x), one.support


def four_weeks(
    dice: np.random.Generator, weekend: float = 1.0, users: int = 20_000
) -> tuple[list[GroupSums], list[list[Totals]]]:
    """The past seven days (tomorrow's weekday is the first), and totals by weekday, of which the
    first and the last are of a weekend."""
    levels = [weekend, 1.0, 1.0, 1.0, 1.0, 1.0, weekend]
    weekdays = [[window(dice, 0.05 * level, users) for _ in range(4)] for level in levels]
    past_week = [weekday[0] for weekday in (*weekdays[1:], weekdays[0])]
    return past_week, [[totals(one) for one in weekday] for weekday in weekdays]


@pytest.mark.parametrize(("level", "status"), [(0.7, Status.FINE), (0.5, Status.DROPPED)])
def test_a_weekend_is_compared_with_weekends(level: float, status: Status) -> None:
    dice = np.random.default_rng(1)
    days, weekdays = four_weeks(dice, weekend=0.7)
    now = window(dice, 0.05 * level, 20_000)
    assert compare(now, days, RULE).status == Status.DAYS_DIFFER
    found = compare(now, days, RULE, weekdays=weekdays)
    assert found.status == status, found
    assert (found.compared, found.days) == ("weeks", 4)
    assert "(the same weekday, 4 weeks)" in found.reason


def test_a_weekday_without_traffic_falls_back_to_days() -> None:
    days, weekdays = four_weeks(np.random.default_rng(2))
    assert compare(days[0], days, RULE, weekdays=[[(0, 0)] * 4, *weekdays[1:]]).compared == "days"
    two = [*weekdays[0][:2], (0, 0), (0, 0)]
    assert compare(days[0], days, RULE, weekdays=[two, *weekdays[1:]]).compared == "days"
    three = [*weekdays[0][:3], (0, 0)]
    found = compare(days[0], days, RULE, weekdays=[three, *weekdays[1:]])
    assert (found.compared, found.days) == ("weeks", 3)


@pytest.mark.parametrize("seed", range(5))
def test_between_weeks_it_is_the_pooled_moment_estimate(seed: int) -> None:
    dice = np.random.default_rng(seed)
    days, weekdays = four_weeks(dice, weekend=0.6, users=2000)
    weekdays = [[(int(x * dice.uniform(0.5, 1.5)), y) for x, y in its] for its in weekdays]
    of_days = Past.of(days)
    past = of_days.by_weekday(weekdays)
    assert past.value == Fraction(*map(sum, zip(*weekdays[0], strict=True)))
    unit, spread, weight = of_days.unit_variance or 0.0, 0.0, 0.0
    for weekday in weekdays:
        x, y = np.array(weekday, float).T
        spread += (y * (x / y - x.sum() / y.sum()) ** 2).sum()
        weight += y.sum() - (y**2).sum() / y.sum()
    assert past.between == pytest.approx((spread - 21 * unit) / weight)
    assert past.between_df == 21


def week(
    dice: np.random.Generator, level: float, users: int = 3000, spread: float = 0.0
) -> list[GroupSums]:
    """Seven days, of which two have 30 % less."""
    levels = [level * (0.7 if day >= 5 else 1.0) for day in range(7)]
    return [
        window(dice, 0.05 * each * np.exp(spread * dice.standard_normal()), users)
        for each in levels
    ]


@pytest.mark.parametrize(
    ("level", "users", "spread", "status"),
    [
        (1.0, 20_000, 0.0, Status.FINE),
        (0.7, 20_000, 0.0, Status.DROPPED),
        (1.4, 20_000, 0.0, Status.FINE),
        (0.95, 100, 0.0, Status.TOO_LITTLE),
        (1.0, 20_000, 0.4, Status.DAYS_DIFFER),
    ],
)
def test_what_is_said_of_a_drift(level: float, users: int, spread: float, status: Status) -> None:
    dice = np.random.default_rng(4)
    found = against_reference(
        week(dice, level, users, spread), week(dice, 1.0, users, spread), RULE
    )
    assert found.status == status, found
    assert found.compared == "reference"
    assert "(the reference week)" in found.reason
    assert found.change is not None
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.change_low <= found.change <= found.change_high


def test_where_lower_is_better_a_rise_is_the_drift() -> None:
    dice = np.random.default_rng(5)
    rule = Rule(drop=0.1, higher_is_better=False)
    assert against_reference(week(dice, 1.4, 20_000), week(dice, 1.0, 20_000), rule).status == (
        Status.RISEN
    )


def test_a_week_that_cannot_be_compared_says_why() -> None:
    dice = np.random.default_rng(6)
    full, empty = week(dice, 1.0), [GroupSums()] * 7
    assert against_reference(full, empty, RULE).reason == (
        "nothing was counted in the reference week"
    )
    clickless = [GroupSums((0,) * 16, day.y) for day in full]
    assert against_reference(full, clickless, RULE).status == Status.NO_BASELINE
    gone = against_reference([*empty[:5], *full[5:]], full, RULE)
    assert gone.status == Status.TOO_LITTLE
    assert gone.reason == "2 of at least 3 weekdays have traffic in both weeks"
    one = [GroupSums.of([(3, 1, 9)])] * 7
    assert against_reference(one, full, RULE).status == Status.TOO_LITTLE


def test_without_drift_intervals_contain_none() -> None:
    """Each end misses in at most 1 - level of all weeks, and chance; weekends are in both."""
    dice, runs, rule = np.random.default_rng(7), 250, Rule(level=0.95)
    missed = np.zeros(2)
    for _ in range(runs):
        found = against_reference(
            week(dice, 1.0, 400, spread=0.1), week(dice, 1.0, 400, spread=0.1), rule
        )
        assert found.change_low is not None
        assert found.change_high is not None
        missed += [found.change_low > 0, found.change_high < 0]
    assert (missed / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)).all()
    assert missed.sum() > 0
