"""Weekdays of past weeks, and the reference week: every status, and against recomputation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamer.stats.alerting.baseline import ChangeRule, Status, compare
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


@pytest.mark.parametrize(("level", "status"), [(0.7, Status.WITHIN), (0.5, Status.DROPPED)])
def test_a_weekend_is_compared_with_weekends(level: float, status: Status) -> None:
    dice = np.random.default_rng(1)
    days, weekdays = four_weeks(dice, weekend=0.7)
    now = window(dice, 0.05 * level, 20_000)
    assert compare(now, days, RULE).status != Status.WITHIN
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
    middle = sorted(weekdays[0], key=lambda xy: xy[0] / xy[1])[1:-1]
    assert past.value == Fraction(*map(sum, zip(*middle, strict=True)))
    unit, residuals, weight = of_days.unit_variance or 0.0, list[float](), 0.0
    for weekday in weekdays:
        x, y = np.array(weekday, float).T
        inner = np.argsort(x / y)[1:-1]
        residuals += (np.sqrt(y) * (x / y - x[inner].sum() / y[inner].sum())).tolist()
        weight += y.sum() - (y**2).sum() / y.sum()
    assert past.between == pytest.approx((_winsorized(residuals, 2) - 21 * unit) / weight)
    assert past.between_df == 17


def _winsorized(residuals: list[float], k: int) -> float:
    """The sum of squares where k at each end count as the next ones, of trimmed tails."""
    ranked = np.sort(residuals)
    ranked[:k], ranked[-k:] = ranked[k], ranked[-k - 1]
    return float(((ranked - ranked.mean()) ** 2).sum() / (1 - 2 * k / len(ranked)) ** 2)


WORKING = [False, False, True, True, True, True, True]
"""On a Monday: the past seven days are Sunday, Saturday, Friday, …"""


def one_week(dice: np.random.Generator, weekend: float, users: int = 20_000) -> list[GroupSums]:
    return [window(dice, 0.05 * (1 if own else weekend), users) for own in WORKING]


@pytest.mark.parametrize("weekend", [0.6, 0.8, 1.3])
def test_after_one_week_weekends_are_a_kind_of_their_own(weekend: float) -> None:
    dice = np.random.default_rng(8)
    days = one_week(dice, weekend)
    low = window(dice, 0.035, 20_000)
    found = compare(low, days, RULE, alike=WORKING)
    assert found.status == Status.DROPPED, found
    assert (found.compared, found.days, len(found.kept)) == ("weekdays", 5, 3)
    assert "(5 weekdays)" in found.reason
    assert found.expected_support == sum(day.support for day in days[2:]) / 5
    if weekend == 0.6:  # nothing is known of weekends
        assert (compare(low, days, RULE).change_high or 0) > (found.change_high or 0)
    resting = [not own for own in WORKING]
    saturday = compare(window(dice, 0.05 * weekend, 20_000), days, RULE, alike=resting)
    assert (saturday.compared, saturday.days, saturday.kept) == ("weekends", 2, (0, 1))
    assert "(2 days of the weekend)" in saturday.reason
    assert saturday.baseline == pytest.approx(0.05 * weekend, rel=0.1)
    assert saturday.status in (Status.WITHIN, Status.TOO_LITTLE)
    fallen = compare(window(dice, 0.05 * weekend * 0.6, 20_000), days, RULE, alike=resting)
    assert fallen.status == Status.DROPPED, fallen


@pytest.mark.parametrize("seed", range(5))
def test_what_days_differ_by_is_within_kinds(seed: int) -> None:
    dice = np.random.default_rng(seed)
    days = [
        window(dice, 0.05 * (1 if own else 0.7) * np.exp(0.1 * dice.standard_normal()), 3000)
        for own in WORKING
    ]
    past, residuals, weight = Past.of(days, WORKING), list[float](), 0.0
    for kind, k in (([0, 1], 0), ([2, 3, 4, 5, 6], 1)):
        x, y = np.array([totals(days[i]) for i in kind], float).T
        inner = np.argsort(x / y)[k : len(kind) - k]
        residuals += (np.sqrt(y) * (x / y - x[inner].sum() / y[inner].sum())).tolist()
        weight += y.sum() - (y**2).sum() / y.sum()
    expected = (_winsorized(residuals, 1) - 5 * (past.unit_variance or 0)) / weight
    assert past.between == pytest.approx(max(0.0, expected), abs=1e-12)
    assert past.between_df == 3


def test_a_weekend_day_alone_is_compared_with_all_days() -> None:
    dice = np.random.default_rng(9)
    days = [GroupSums(), *one_week(dice, 0.8)[1:]]
    found = compare(days[1], days, RULE, alike=[not own for own in WORKING])
    assert (found.compared, found.days) == ("days", 6)


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
        (1.0, 20_000, 0.0, Status.WITHIN),
        (0.7, 20_000, 0.0, Status.DROPPED),
        (1.4, 20_000, 0.0, Status.WITHIN),
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
    rule = ChangeRule(drop=0.1, higher_is_better=False)
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
    assert gone.reason == "2 weekdays had traffic in both weeks, and at least 3 are needed"
    one = [GroupSums.of([(3, 1, 9)])] * 7
    assert against_reference(one, full, RULE).status == Status.TOO_LITTLE


def test_without_drift_intervals_contain_none() -> None:
    """Each end misses in at most 1 - level of all weeks, and chance; weekends are in both."""
    dice, runs, rule = np.random.default_rng(7), 250, ChangeRule(level=0.95)
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
