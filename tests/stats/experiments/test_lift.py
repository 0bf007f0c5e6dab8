"""Lifts and their standard errors against SciPy, statsmodels and brute force over users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from streamer.stats.distributions import t_quantile, t_two_sided
from streamer.stats.experiments.lift import Lift, Pair, contrast
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.relative import NOT_ABOVE_0, Relative, relative
from streamer.stats.experiments.sums import ArmSums

Ints = NDArray[np.int64]
Users = list[tuple[int, int]]


def sums(x: Ints, y: Ints | None = None) -> ArmSums:
    y = np.ones_like(x) if y is None else y
    return ArmSums.of(zip(x.tolist(), y.tolist(), strict=True))


def pair_of(treatment: ArmSums, control: ArmSums) -> Pair:
    return Pair(ratio(treatment), ratio(control), treatment.x_scale)


def lift_of(treatment: ArmSums, control: ArmSums) -> Lift:
    return contrast(pair_of(treatment, control))


def relative_of(treatment: ArmSums, control: ArmSums) -> Relative:
    pair = pair_of(treatment, control)
    found = relative(pair, contrast(pair))
    assert isinstance(found, Relative)
    return found


@pytest.mark.parametrize(("n", "m"), [(3, 4), (2, 40), (50, 400), (3000, 1000)])
def test_means_are_compared_as_by_welch(n: int, m: int) -> None:
    dice = np.random.default_rng(n)
    t, c = dice.poisson(7, n) * dice.integers(1, 9, n), dice.poisson(5, m)
    found = lift_of(sums(t), sums(c))
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
    both = [sums(x, y) for x, y in arms]
    plain, quotient = lift_of(*both), relative_of(*both)
    found = (plain.value, plain.stderr), (quotient.value, quotient.stderr)

    def lifts(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        t, c = totals[0] / totals[1], totals[2] / totals[3]
        return np.array([t - c, t / c - 1])

    at = np.array([arms[0][0].mean(), arms[0][1].mean(), arms[1][0].mean(), arms[1][1].mean()])
    gradient = np.empty((2, 4))
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-5 * at[i]
        gradient[:, i] = (lifts(at + step) - lifts(at - step)) / (2 * step[i])
    for (shown, stderr), value, slope in zip(found, lifts(at), gradient, strict=True):
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
    both = [sums(x, y) for x, y in arms]
    found = lift_of(*both).stderr, relative_of(*both).stderr
    assert found == pytest.approx(np.std(again, axis=0).tolist(), rel=0.07)


some_users = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=2, max_size=20)


@given(some_users, some_users)
def test_swapped_arms_have_the_opposite_lift(t: Users, c: Users) -> None:
    there, back = lift_of(ArmSums.of(t), ArmSums.of(c)), lift_of(ArmSums.of(c), ArmSums.of(t))
    if there.value is not None and there.stderr is not None:
        assert there.value == pytest.approx(-(back.value or 0.0), rel=1e-12, abs=1e-15)
        assert there.stderr == pytest.approx(back.stderr, rel=1e-12)


@given(some_users, some_users, st.integers(1, 10**9), st.sampled_from([1.0, 1e-6, 100.0]))
def test_units_change_the_absolute_lift_only(t: Users, c: Users, by: int, scale: float) -> None:
    plain = [ArmSums.of(users) for users in (t, c)]
    larger = [ArmSums.of([(by * x, y) for x, y in users], scale) for users in (t, c)]
    before, after = lift_of(*plain), lift_of(*larger)
    assert (before.value is None, before.stderr is None) == (
        after.value is None,
        after.stderr is None,
    )
    if before.value is not None and before.stderr is not None:
        factor = by * scale
        assert after.value == pytest.approx(before.value * factor, rel=1e-12, abs=1e-300)
        assert after.stderr == pytest.approx(before.stderr * factor, rel=1e-12)
        assert after.df == pytest.approx(before.df, rel=1e-12)
        if plain[1].x:
            one, other = relative_of(*plain), relative_of(*larger)
            assert other.value == pytest.approx(one.value, rel=1e-12, abs=1e-15)
            assert other.interval(1.5) == (
                one.interval(1.5) and pytest.approx(one.interval(1.5), rel=1e-6, abs=1e-9)
            )


@given(some_users, some_users, st.integers(1, 20))
def test_users_who_saw_nothing_change_no_lift(t: Users, c: Users, idle: int) -> None:
    plain = lift_of(ArmSums.of(t), ArmSums.of(c))
    more = lift_of(*(ArmSums.of([*users, *[(0, 0)] * idle]) for users in (t, c)))
    assert plain.value == more.value


@pytest.mark.parametrize("shift", [0, 2**80])
def test_a_lift_of_large_numbers_is_exact(shift: int) -> None:
    t, c = ([(shift + x, 1) for x in xs] for xs in ([1, 5, 9], [1, 2, 3]))
    found = lift_of(ArmSums.of(t), ArmSums.of(c))
    assert found.value == 3.0
    assert found.stderr == pytest.approx((16 / 3 + 1 / 3) ** 0.5, rel=1e-15)


CRITICAL = [0.5, 1.96, 3.04, 6.0]


@pytest.mark.parametrize("critical", CRITICAL)
@pytest.mark.parametrize("seed", range(4))
def test_the_relative_interval_is_every_lift_that_the_test_allows(
    seed: int, critical: float
) -> None:
    """Its ends, by a root finder, are where R_t - (1 + r) R_c is so many errors from 0."""
    both = [sums(*of_users(seed + more, 500, 0.1)) for more in (0, 100)]
    ends = relative_of(*both).interval(critical)
    assert ends is not None

    def beyond(r: float) -> float:
        found = contrast(pair_of(*both), 1 + r)
        assert found.t is not None
        return abs(found.t) - critical

    middle = relative_of(*both).value
    expected = [optimize.brentq(beyond, middle, middle + far) for far in (-2.0, 5.0)]
    assert ends == pytest.approx(expected, rel=1e-9)


@given(some_users, some_users, st.sampled_from(CRITICAL))
def test_both_scales_exclude_0_together(t: Users, c: Users, critical: float) -> None:
    both = ArmSums.of(t), ArmSums.of(c)
    found = lift_of(*both).interval(critical)
    if found is None or not both[1].x or (ends := relative_of(*both).interval(critical)) is None:
        return
    low, high = ends
    assert low <= high
    assert (low > 0, high < 0) == (found[0] > 0, found[1] < 0)


def test_it_is_not_bounded_where_the_control_may_be_0() -> None:
    """0 is 1.22 standard errors from the control's value."""
    few = ArmSums.of([(1, 1), (0, 1), (0, 1), (2, 1)])
    control = ratio(few)
    t = float(control.value or 0) / (control.variance or 1) ** 0.5
    found = relative_of(few, few)
    assert found.interval(t * 1.001) is None
    low, high = found.interval(t * 0.999) or (0, 0)
    assert low < 0 < high


NOBODY, ONE = ArmSums(), ArmSums.of([(1, 2)])
SOME, NOTHING = ArmSums.of([(1, 2), (0, 3), (2, 2)]), ArmSums.of([(0, 2), (0, 1)])


@pytest.mark.parametrize(
    ("treatment", "control", "value", "reason", "relative_reason"),
    [
        (SOME, NOBODY, None, "control: there are no users", "control: there are no users"),
        (NOBODY, SOME, None, "treatment: there are no users", "treatment: there are no users"),
        (ONE, SOME, 0.5 - 3 / 7, "treatment: a variance needs", ""),
        (NOTHING, NOTHING, 0.0, "the standard error is 0", NOT_ABOVE_0),
        (SOME, NOTHING, 3 / 7, "", NOT_ABOVE_0),
        (NOTHING, SOME, -3 / 7, "", ""),
        (SOME, ArmSums.of([(-1, 2), (0, 2)]), 3 / 7 + 0.25, "", NOT_ABOVE_0),
    ],
)
def test_what_is_not_defined_has_a_reason(
    treatment: ArmSums, control: ArmSums, value: float | None, reason: str, relative_reason: str
) -> None:
    pair = pair_of(treatment, control)
    found = contrast(pair)
    assert found.value == (value if value is None else pytest.approx(value))
    assert (found.stderr is None) == bool(reason)
    assert reason in found.reason
    made = relative(pair, found)
    assert isinstance(made, str) == bool(relative_reason)
    if isinstance(made, str):
        assert relative_reason in made
