"""Gradual changes: what is said of them, against regressions of statsmodels, and what is none."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import statsmodels.api as sm

from streamer.stats.alerting.baseline import ChangeRule, Status, compare
from streamer.stats.alerting.past import Totals
from streamer.stats.alerting.trend import LEAST_DAYS, Day, Trend, trend
from streamer.stats.random_groups import GROUPS, GroupSums
from tests.stats.alerting.test_baseline import RULE, times, window


def course(dice: np.random.Generator, falls: int, kinds: int, days: int = 29) -> list[Day]:
    """Days of some kinds, of which so many fall by 4 %."""
    levels = 0.05 * np.exp(0.3 * dice.standard_normal(kinds))
    return [
        Day(ago, ago % kinds, levels[ago % kinds] * 0.96 ** max(0, falls - ago) * exp(noise))
        for ago, noise in enumerate(0.02 * dice.standard_normal(days))
    ]


def fitted(days: list[Day], level: float) -> Trend:
    """The regression with the smallest sum of squares, on a constant of each kind."""
    z = np.log([day.value for day in days])
    kinds = sorted({day.kind for day in days})
    constants = np.array([[day.kind == kind for kind in kinds] for day in days], float)
    found = {}
    for length in range(LEAST_DAYS, max(day.ago for day in days) + 1):
        x = np.array([max(0.0, length - day.ago) for day in days])
        found[length] = sm.OLS(z, np.column_stack([x, constants])).fit()
    length = min(found, key=lambda each: float(found[each].ssr))
    best = found[length]
    best.df_resid -= 1  # for the day
    slope = float(best.params[0])
    error = float(np.sqrt(best.ssr / best.df_resid * best.normalized_cov_params[0, 0]))
    t = float(sm.stats.stattools.stats.t.ppf(level, best.df_resid))
    ends = (exp(length * (slope + side * t * error)) - 1 for side in (-1, 1))
    return Trend(length, exp(slope) - 1, exp(length * slope) - 1, *ends)


@pytest.mark.parametrize("kinds", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_regression_that_leaves_least(kinds: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    for falls in (0, 4, 9, 28):
        days = course(dice, falls, kinds)
        some = [day for day in days if day.ago not in (3, 8)]
        for each in (days, some):
            found = trend(each, 0.99, 0.0)
            assert found is not None
            assert found == pytest.approx(fitted(each, 0.99), rel=1e-6)


def test_what_users_differ_by_bounds_it() -> None:
    days = course(np.random.default_rng(1), 6, 1, 8)
    calm, noisy = trend(days, 0.99, 0.0), trend(days, 0.99, 0.01)
    assert calm is not None
    assert noisy is not None
    assert noisy[:3] == calm[:3]
    assert noisy.low < calm.low
    assert noisy.high > calm.high


def test_of_few_days_nothing_is_said() -> None:
    days = course(np.random.default_rng(1), 4, 1)
    assert trend(days[:5], 0.99, 0.0) is None
    assert trend(days[:6], 0.99, 0.0) is not None
    assert trend([day._replace(kind=day.ago) for day in days], 0.99, 0.0) is None


def declining(a_day: float, days: int = 8, each: int = 20_000) -> list[GroupSums]:
    """The window and past days of as many users, the last one first."""
    dice = np.random.default_rng(3)
    even = window(dice, 0.05, each)
    levels = (round(1000 * (1 - a_day) ** -ago) for ago in range(days))
    return [times(even, x=level, y=1000) for level in levels]


def test_a_decline_fires_and_is_called_one() -> None:
    now, *past = declining(0.05)
    found = compare(now, past, RULE)
    assert (found.status, found.gradual_days) == (Status.DROPPED, 7)
    assert found.reason == (
        "0.0508 has fallen by 5.0% a day for 7 days, from 0.0727: by at least 24% in all, "
        "beyond 10%"
    )
    assert found.value is not None
    assert found.change is not None
    assert found.change == pytest.approx(0.95**7 - 1, abs=1e-3)
    assert found.baseline == pytest.approx(found.value / (1 + found.change))
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.change_low <= found.change <= found.change_high < -RULE.drop


def test_a_rise_fires_where_lower_is_better() -> None:
    now, *past = declining(-0.05)
    rises = replace(RULE, higher_is_better=False)
    found = compare(now, past, rises)
    assert (found.status, found.gradual_days) == (Status.RISEN, 7)
    assert "has risen by 5.0% a day for 7 days" in found.reason
    assert compare(now, past, RULE).status not in (Status.DROPPED, Status.RISEN)


def test_within_the_tolerance_a_decline_fires_nothing() -> None:
    now, *past = declining(0.01)
    assert compare(now, past, RULE).status != Status.DROPPED
    now, *past = declining(0.02)
    assert compare(now, past, ChangeRule(0.03)).gradual_days == 7
    assert compare(now, past, ChangeRule(0.13)).gradual_days is None


def test_neither_a_step_nor_a_recovery_is_a_decline() -> None:
    dice = np.random.default_rng(5)
    for days in range(1, 7):
        low, high = ([window(dice, ctr, 20_000) for _ in range(8)] for ctr in (0.04, 0.05))
        found = compare(low[0], [*low[1:days], *high[days:]], RULE)
        assert found.gradual_days is None, (days, found)
    now, *past = declining(0.05)
    assert compare(past[-1], past, RULE).gradual_days is None
    assert compare(times(now, x=0), past, RULE).gradual_days is None


def test_weekends_are_no_decline() -> None:
    """On a Sunday after a Saturday, with weekends that are a fifth lower."""
    dice, alike = np.random.default_rng(6), [True, *[False] * 5, True]
    past = [window(dice, 0.04 if own else 0.05, 20_000) for own in alike]
    assert compare(window(dice, 0.04, 20_000), past, RULE, alike=alike).status != Status.DROPPED


def four_weeks(a_day: float) -> tuple[GroupSums, list[GroupSums], list[list[Totals]]]:
    windows = declining(a_day, 29)
    totals = [(sum(one.x), one.support) for one in windows]
    return windows[0], windows[1:8], [totals[day::7][:4] for day in (7, 1, 2, 3, 4, 5, 6)]


def test_all_days_that_are_known_are_looked_at() -> None:
    now, past, weekdays = four_weeks(0.02)
    assert compare(now, past, ChangeRule(0.2)).status != Status.DROPPED
    found = compare(now, past, ChangeRule(0.2), weekdays=weekdays)
    assert (found.status, found.gradual_days) == (Status.DROPPED, 28)
    fewer = [weekday[:2] for weekday in weekdays]
    found = compare(now, past, ChangeRule(0.2), weekdays=fewer, alike=[True] * 7)
    assert (found.compared, found.gradual_days) == ("weekdays", 14)
    assert found.change == pytest.approx(0.98**14 - 1, abs=1e-3)


def test_empty_days_are_left_out() -> None:
    now, *past = declining(0.05)
    past[2] = GroupSums((0,) * GROUPS, past[2].y)
    assert compare(now, past, RULE).gradual_days == 7
