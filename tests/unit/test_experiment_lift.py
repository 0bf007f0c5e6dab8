"""Lifts and their standard errors against SciPy, statsmodels and brute force over users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from streamer.experiments.distributions import t_quantile, t_two_sided
from streamer.experiments.lift import Lift, absolute, lift, relative
from streamer.experiments.ratio import ratio
from streamer.experiments.sums import ArmSums

Ints = NDArray[np.int64]
Users = list[tuple[int, int]]


def sums(x: Ints, y: Ints | None = None) -> ArmSums:
    y = np.ones_like(x) if y is None else y
    return ArmSums.of(zip(x.tolist(), y.tolist(), strict=True))


def both(treatment: ArmSums, control: ArmSums) -> tuple[Lift, Lift]:
    arms = ratio(treatment), ratio(control)
    return lift(absolute, *arms, treatment.scale), lift(relative, *arms, treatment.scale)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (2, 40), (50, 400), (3000, 1000)])
def test_means_are_compared_as_by_welch(n: int, m: int) -> None:
    dice = np.random.default_rng(n)
    t, c = dice.poisson(7, n) * dice.integers(1, 9, n), dice.poisson(5, m)
    found, _ = both(sums(t), sums(c))
    assert found.value is not None
    assert found.stderr is not None
    assert found.df is not None
    assert found.t is not None
    expected = stats.ttest_ind(t, c, equal_var=False)
    assert found.df == pytest.approx(expected.df, rel=1e-12)
    assert found.t == pytest.approx(expected.statistic, rel=1e-12)
    assert t_two_sided(found.t, found.df) == pytest.approx(expected.pvalue, rel=1e-10)
    compared = CompareMeans(DescrStatsW(t), DescrStatsW(c))
    for alpha in (0.05, 0.001):
        reach = t_quantile(alpha, found.df) * found.stderr
        interval = compared.tconfint_diff(alpha=alpha, usevar="unequal")
        assert (found.value - reach, found.value + reach) == pytest.approx(interval, rel=1e-9)


def of_users(seed: int, users: int, rate: float) -> tuple[Ints, Ints]:
    """Clicks and impressions of users with propensities of their own."""
    dice = np.random.default_rng(seed)
    shown = dice.poisson(20, users) + 1
    return dice.binomial(shown, dice.beta(30 * rate, 30 * (1 - rate), users)), shown


@pytest.mark.parametrize("seed", range(4))
def test_errors_of_ratios_are_those_of_brute_force(seed: int) -> None:
    """Each user's part in the lift, from derivatives that are taken numerically."""
    arms = of_users(seed, 700, 0.1), of_users(seed + 100, 900, 0.08)
    found = both(*(sums(x, y) for x, y in arms))

    def lifts(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        t, c = totals[0] / totals[1], totals[2] / totals[3]
        return np.array([t - c, t / c - 1])

    at = np.array([arms[0][0].mean(), arms[0][1].mean(), arms[1][0].mean(), arms[1][1].mean()])
    gradient = np.empty((2, 4))
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-5 * at[i]
        gradient[:, i] = (lifts(at + step) - lifts(at - step)) / (2 * step[i])
    for its, value, slope in zip(found, lifts(at), gradient, strict=True):
        shown, stderr = its.shown
        variance = 0.0
        for (x, y), (by_x, by_y) in zip(arms, slope.reshape(2, 2), strict=True):
            variance += float((by_x * x + by_y * y).var(ddof=1)) / len(x)
        assert shown == pytest.approx(value, rel=1e-12)
        assert stderr == pytest.approx(variance**0.5, rel=1e-7)


def test_errors_of_ratios_are_those_of_a_bootstrap() -> None:
    arms = of_users(7, 1500, 0.1), of_users(8, 1500, 0.08)
    dice = np.random.default_rng(9)
    again = []
    for _ in range(1000):
        picks = [dice.integers(0, len(x), len(x)) for x, _ in arms]
        t, c = (x[p].sum() / y[p].sum() for (x, y), p in zip(arms, picks, strict=True))
        again.append((t - c, t / c - 1))
    found = both(*(sums(x, y) for x, y in arms))
    for its, expected in zip(found, np.std(again, axis=0), strict=True):
        assert its.shown[1] == pytest.approx(expected, rel=0.07)


some_users = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=2, max_size=20)


@given(some_users, some_users)
def test_swapped_arms_have_the_opposite_lift(t: Users, c: Users) -> None:
    """Relative lifts, too: +25 % one way is -20 % the other, with the same p-value."""
    sums_t, sums_c = ArmSums.of(t), ArmSums.of(c)
    for there, back in zip(both(sums_t, sums_c), both(sums_c, sums_t), strict=True):
        if there.value is not None and there.stderr is not None:
            assert there.value == pytest.approx(-(back.value or 0.0), rel=1e-12, abs=1e-15)
            assert there.stderr == pytest.approx(back.stderr, rel=1e-12)


@given(some_users, some_users, st.integers(1, 10**9), st.sampled_from([1.0, 1e-6, 100.0]))
def test_units_change_the_absolute_lift_only(t: Users, c: Users, by: int, scale: float) -> None:
    plain = both(ArmSums.of(t), ArmSums.of(c))
    larger = both(*(ArmSums.of([(by * x, y) for x, y in users], scale) for users in (t, c)))
    for before, after, factor in zip(plain, larger, (by * scale, 1.0), strict=True):
        assert (before.value is None, before.stderr is None) == (
            after.value is None,
            after.stderr is None,
        )
        if before.value is not None and before.stderr is not None:
            assert after.value == pytest.approx(before.value * factor, rel=1e-12, abs=1e-300)
            assert after.stderr == pytest.approx(before.stderr * factor, rel=1e-12)
            assert after.df == pytest.approx(before.df, rel=1e-12)


@given(some_users, some_users, st.integers(1, 20))
def test_users_who_saw_nothing_change_no_lift(t: Users, c: Users, idle: int) -> None:
    plain = both(ArmSums.of(t), ArmSums.of(c))
    more = both(*(ArmSums.of([*users, *[(0, 0)] * idle]) for users in (t, c)))
    assert [x.value for x in plain] == [x.value for x in more]


@pytest.mark.parametrize("shift", [0, 2**80])
def test_a_lift_of_large_numbers_is_exact(shift: int) -> None:
    t, c = ([(shift + x, 1) for x in xs] for xs in ([1, 5, 9], [1, 2, 3]))
    found, _ = both(ArmSums.of(t), ArmSums.of(c))
    assert found.value == 3.0
    assert found.stderr == pytest.approx((16 / 3 + 1 / 3) ** 0.5, rel=1e-15)


def test_intervals_of_relative_lifts_are_those_of_logarithms() -> None:
    _, found = both(*(sums(*of_users(seed, 500, 0.1)) for seed in (1, 2)))
    shown, stderr = found.shown
    assert shown is not None
    assert stderr is not None
    assert found.t == pytest.approx(np.log1p(shown) * (1 + shown) / stderr)
    interval = found.interval(1.96)
    assert interval is not None
    ends = np.log1p(shown) + np.array([-1.96, 1.96]) * stderr / (1 + shown)
    assert interval == pytest.approx(np.expm1(ends).tolist())


def test_an_interval_without_end_is_a_number() -> None:
    """Gains and losses that almost cancel: nothing is known of the quotient."""
    wild = ArmSums.of([(10**6, 1), (1 - 10**6, 1)] * 2)
    _, found = both(wild, SOME)
    interval = found.interval(3.0)
    assert interval is not None
    assert interval[0] == -1.0
    assert 1e300 < interval[1] < np.inf


NOBODY, ONE = ArmSums(), ArmSums.of([(1, 2)])
SOME, NOTHING = ArmSums.of([(1, 2), (0, 3), (2, 2)]), ArmSums.of([(0, 2), (0, 1)])


@pytest.mark.parametrize(
    ("treatment", "control", "absolute_lift", "relative_lift"),
    [
        (SOME, NOBODY, (None, "control: there are no users"), None),
        (NOBODY, SOME, (None, "treatment: there are no users"), None),
        (ONE, SOME, (0.5 - 3 / 7, "treatment: one user tells nothing"), None),
        (
            NOTHING,
            NOTHING,
            (0.0, "the standard error is 0"),
            (None, "control: the value is not above 0"),
        ),
        (SOME, NOTHING, (3 / 7, ""), (None, "control: the value is not above 0")),
        (NOTHING, SOME, (-3 / 7, ""), (None, "treatment: the value is not above 0")),
        (SOME, ArmSums.of([(-1, 2), (0, 2)]), (3 / 7 + 0.25, ""), (None, "not above 0")),
    ],
)
def test_what_is_not_defined_has_a_reason(
    treatment: ArmSums,
    control: ArmSums,
    absolute_lift: tuple[float | None, str],
    relative_lift: tuple[float | None, str] | None,
) -> None:
    found = both(treatment, control)
    for its, expected in zip(found, (absolute_lift, relative_lift or absolute_lift), strict=True):
        value, reason = expected
        if value is None:
            assert its.value is None
        elif relative_lift is not None:
            assert its.value == pytest.approx(value)
        assert (its.stderr is None) == bool(reason)
        assert reason in its.reason
