"""Random groups against the delta method over users, SciPy, and the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.random_groups import GROUPS, GroupSums, critical

Ints = NDArray[np.int64]
counts = st.integers(0, 2**40)
parts = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(-(2**40), 2**40), counts))
LIKES = (0.5, 9.5)
"""Propensities to click: 5 % in the mean, and very unlike."""


def sums(x: Ints, y: Ints, group: Ints) -> GroupSums:
    return GroupSums.of(zip(group.tolist(), x.tolist(), y.tolist(), strict=True))


def people(dice: np.random.Generator, n: int) -> tuple[Ints, Ints]:
    """Clicks and impressions of n users; a few of them come very often."""
    y = dice.poisson(np.exp(1.0 + dice.standard_normal(n))) + 1
    return dice.binomial(y, dice.beta(*LIKES, n)), y


@given(parts, parts, parts)
def test_sums_are_added(a: list[tuple[int, int, int]], b: list[tuple[int, int, int]],
                        c: list[tuple[int, int, int]]) -> None:  # fmt: skip
    one, two, three = map(GroupSums.of, (a, b, c))
    assert one + two == two + one == GroupSums.of(a + b)
    assert (one + two) + three == one + (two + three)
    assert one + GroupSums() == one


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((0,) * 15, (0,) * 16, "x has 15 groups and y has 16: both must have 16"),
        ((0,) * 16, (-1,) + (0,) * 15, "y has the sum -1: must not be below 0"),
    ],
)
def test_what_is_no_sum_is_refused(x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupSums(x, y)


@given(st.lists(st.tuples(counts, st.integers(1, 2**40)), min_size=2, max_size=GROUPS))
def test_with_a_user_in_each_group_it_is_the_delta_method_over_users(
    users: list[tuple[int, int]],
) -> None:
    found = GroupSums.of((i, x, y) for i, (x, y) in enumerate(users))
    expected = ratio(ArmSums.of(users))
    assert (found.value, found.variance) == (expected.value, expected.variance)


def test_in_the_mean_it_is_the_delta_method_over_users() -> None:
    """800 divisions of the same 2,000 users; the spread is that of chi-squared over 15."""
    dice = np.random.default_rng(1)
    x, y = people(dice, 2000)
    over_users = ratio(ArmSums.of(zip(x.tolist(), y.tolist(), strict=True))).variance or 0.0
    found = np.array(
        [sums(x, y, dice.integers(0, GROUPS, 2000)).variance or 0.0 for _ in range(800)]
    )
    assert found.mean() == pytest.approx(over_users, rel=0.05)
    assert found.var() / found.mean() ** 2 == pytest.approx(2 / (GROUPS - 1), rel=0.25)


def test_impressions_of_one_user_hang_together() -> None:
    """What takes impressions for observations believes to know more than it does."""
    dice = np.random.default_rng(2)
    x, y = people(dice, 20_000)
    group = np.arange(20_000) % GROUPS
    r = x.sum() / y.sum()
    assert (sums(x, y, group).variance or 0.0) > 1.5 * r * (1 - r) / y.sum()


def test_intervals_contain_the_truth() -> None:
    """2,000 windows of 500 users: each end holds with its level, and no better than that."""
    dice, missed = np.random.default_rng(3), np.zeros(2)
    group = np.arange(500) % GROUPS
    for _ in range(2000):
        low, high = sums(*people(dice, 500), group).interval(0.95) or (0.0, 0.0)
        missed += [low > 0.05, high < 0.05]
    assert missed.sum() / 2000 == pytest.approx(0.1, abs=0.02)


def test_the_interval_is_student_s() -> None:
    dice = np.random.default_rng(4)
    x = dice.poisson(50, GROUPS)
    found = GroupSums(tuple(x.tolist()), (1,) * GROUPS).interval(0.975, unit=0.5)
    expected = stats.t.interval(0.95, GROUPS - 1, x.mean(), stats.sem(x))
    assert found == pytest.approx(tuple(end * 0.5 for end in expected), rel=1e-10)


@pytest.mark.parametrize("level", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("df", [1, 6, 15, 200])
def test_critical_values_are_scipy_s(level: float, df: int) -> None:
    assert critical(level, df) == pytest.approx(stats.t.ppf(level, df), rel=1e-9)


def test_groups_without_differences_have_no_interval() -> None:
    assert GroupSums().value is None
    assert GroupSums().variance is None
    one = GroupSums.of([(4, 3, 10)])
    assert (one.value, one.variance, one.interval(0.99)) == (Fraction(3, 10), None, None)
    alike = GroupSums((1,) * GROUPS, (10,) * GROUPS)
    assert (alike.variance, alike.interval(0.99)) == (0.0, None)


def test_large_numbers_lose_nothing() -> None:
    small = GroupSums(tuple(range(GROUPS)), (1,) * GROUPS)
    large = GroupSums(tuple(2**80 + x for x in range(GROUPS)), (1,) * GROUPS)
    assert large.variance == small.variance
