"""Interaction of two experiments against robust regression, Wald's test and simulation."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from streamer.stats.experiments.heterogeneity import TOO_FEW
from streamer.stats.experiments.interaction import Crossing, Interaction, interactions
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Scale
from tests.stats.experiments.arms import HALVES, THREE, clicks
from tests.support.lanes import long

Ints = NDArray[np.int64]
Cells = dict[str, dict[str, ArmSums]]


def sums(x: Ints, y: Ints) -> ArmSums:
    return ArmSums.of(zip(x.tolist(), y.tolist(), strict=True))


def only(cells: Cells, plan: Plan = HALVES, alpha: float = 0.05) -> Interaction:
    ((found,),) = interactions({0: Crossing(plan, cells)}, alpha).values()
    return found


def drawn(seed: int, users: int = 4000, k: int = 2) -> tuple[Ints, Ints, Ints, Ints]:
    """Arm of the first, arm of the second, x and y of each user; both have effects."""
    dice = np.random.default_rng(seed)
    first, second = dice.integers(2, size=users), dice.integers(k, size=users)
    y = dice.poisson(9, users) + 1
    likes = dice.beta(2, 8, users) * (1 + 0.2 * first) * (1 - 0.1 * second)
    return first, second, dice.binomial(y, np.minimum(1, likes)), y


def cells_of(first: Ints, second: Ints, x: Ints, y: Ints) -> Cells:
    return {
        f"s{j}": {
            name: sums(x[which], y[which])
            for i, name in enumerate("AB")
            if (which := (first == i) & (second == j)).any()
        }
        for j in sorted(set(second.tolist()))
    }


def few_relative(cells: Cells) -> Cells:
    """The same, without a relative interval: as if few users had any value."""
    return {j: {i: replace(s, nonzero=0) for i, s in its.items()} for j, its in cells.items()}


# Against references -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_difference_of_absolute_lifts_is_the_interaction_of_a_robust_regression(
    seed: int,
) -> None:
    """Of a mean per user, with the variances of each cell (HC2 is s² / n there)."""
    first, second, x, _ = drawn(seed)
    cells = few_relative(cells_of(first, second, x, np.ones_like(x)))
    test = only(cells).test
    assert test.scale is Scale.ABSOLUTE
    columns = np.column_stack([np.ones(len(x)), first, second, first * second])
    fit = sm.OLS(x, columns).fit(cov_type="HC2")
    lifts = {name: its.lift for name, its in test.values.items()}
    assert lifts["s1"] - lifts["s0"] == pytest.approx(fit.params[3], rel=1e-9)
    # Q has the intervals of Student's t, at the level of 5 %.
    assert test.q == pytest.approx(fit.tvalues[3] ** 2, rel=5e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 4])
def test_q_of_relative_lifts_is_wald_s(seed: int, k: int) -> None:
    """(R_1j / R_0j - 1) by hand, with their variances by the delta method over users."""
    first, second, x, y = drawn(seed, k=k)
    lifts, variances = [], []
    for j in range(k):
        values = []
        for i in range(2):
            u, v = x[(first == i) & (second == j)], y[(first == i) & (second == j)]
            r = u.sum() / v.sum()
            values.append((r, np.var(u - r * v, ddof=1) / len(u) / v.mean() ** 2))
        (control, of_control), (treatment, of_treatment) = values
        lifts.append(treatment / control - 1)
        variances.append((of_treatment + (treatment / control) ** 2 * of_control) / control**2)
    lift, covariance = np.array(lifts), np.diag(variances)
    contrasts = np.hstack([-np.ones((k - 1, 1)), np.eye(k - 1)])
    gaps = contrasts @ lift
    wald = gaps @ np.linalg.solve(contrasts @ covariance @ contrasts.T, gaps)
    found = only(cells_of(first, second, x, y)).test
    assert (found.scale, found.df) == (Scale.RELATIVE, k - 1)
    assert found.q == pytest.approx(wald, rel=1e-9)
    assert found.p_value == pytest.approx(stats.chi2.sf(wald, k - 1), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_either_direction_says_about_the_same(seed: int) -> None:
    first, second, x, y = drawn(seed)
    one, other = (only(cells_of(*both, x, y)) for both in ((first, second), (second, first)))
    assert one.test.q is not None
    assert other.test.q is not None
    assert sqrt(one.test.q) == pytest.approx(sqrt(other.test.q), abs=0.1)


def test_all_treatments_of_all_pairs_share_alpha() -> None:
    dice = np.random.default_rng(7)
    asked = {}
    for pair in range(5):
        rates = dice.integers(90, 130, (2, 3)).tolist()
        cells = {
            str(j): {name: clicks(4000, per) for name, per in zip("ABC", its, strict=True)}
            for j, its in enumerate(rates)
        }
        asked[pair] = Crossing(THREE, cells)
    found = interactions(asked, 0.05)
    every = [its for those in found.values() for its in those]
    assert [its.treatment for its in every] == ["B", "C"] * 5
    p_values = [its.test.p_value for its in every]
    rejected, adjusted, *_ = multipletests(p_values, 0.05, method="holm")
    assert [its.p_adjusted for its in every] == pytest.approx(adjusted.tolist(), rel=1e-9)
    assert [its.differs for its in every] == rejected.tolist()
    assert 0 < sum(rejected) < 10


def test_a_pair_does_not_depend_on_the_other_pairs_but_by_its_level() -> None:
    mine = Crossing(HALVES, cells_of(*drawn(1)))
    others = {i: Crossing(HALVES, cells_of(*drawn(i))) for i in range(2, 6)}
    (alone,), (among,) = interactions({1: mine}, 0.05)[1], interactions({1: mine} | others, 0.05)[1]
    assert (alone.test.q, alone.test.p_value) == (among.test.q, among.test.p_value)
    assert alone.p_adjusted == alone.test.p_value
    assert among.p_adjusted is not None
    assert among.test.p_value is not None
    assert among.p_adjusted >= among.test.p_value
    assert (alone.tests, among.tests) == (1, 5)


# Level and power ----------------------------------------------------------------------------------


@long
def test_level_and_power() -> None:
    """Both experiments have an effect; without an interaction 5 % are called different."""
    runs = 300
    for opposite, low, high in ((0.0, 0.01, 0.09), (0.1, 0.75, 1.0)):
        dice, found = np.random.default_rng(11), 0
        for _ in range(runs):
            first, second = dice.integers(2, size=(2, 4000))
            likes = dice.beta(20, 80, 4000) * (1 + 0.1 * first) * (1 + 0.3 * second)
            likes *= 1 + opposite * first * np.where(second == 1, 1, -1)
            x = dice.binomial(10, np.minimum(1, likes))
            found += only(cells_of(first, second, x, np.full(4000, 10))).differs
        assert low <= found / runs <= high


# By hand, edges -----------------------------------------------------------------------------------


def test_lifts_that_multiply_do_not_interact() -> None:
    cells = {
        "old": {"A": clicks(10_000, 100), "B": clicks(10_000, 110)},
        "new": {"A": clicks(10_000, 200), "B": clicks(10_000, 220)},
    }
    its = only(cells)
    assert its.test.q == pytest.approx(0, abs=1e-20)
    assert not its.differs
    assert its.sentence("ctr_ratio", "ranker") == (
        "The lift of ctr_ratio does not differ by ranker's arm more than chance (p = 1 at one "
        "look)."
    )


def test_several_tests_say_what_they_are_corrected_over() -> None:
    cells = {
        "old": {"A": clicks(10_000, 100), "B": clicks(10_000, 110)},
        "new": {"A": clicks(10_000, 100), "B": clicks(10_000, 80)},
    }
    found = interactions({i: Crossing(HALVES, cells) for i in range(3)}, 0.05)
    (its,) = found[0]
    assert its.differs
    assert its.sentence("ctr_ratio", "ranker") == (
        "The lift of ctr_ratio differs by ranker's arm (p < 0.0001 at one look): old +10%, new "
        "\u221220%. Corrected over 3 tests: p < 0.0001."
    )


def test_of_three_arms_the_one_that_stands_apart_is_named() -> None:
    cells = {
        name: {"A": clicks(20_000, 100), "B": clicks(20_000, per)}
        for name, per in (("old", 110), ("new", 110), ("newest", 60))
    }
    assert list(only(cells).test.apart) == ["newest"]


@pytest.mark.parametrize(("users", "scale"), [(99, None), (100, Scale.ABSOLUTE)])
def test_a_cell_of_few_users_is_not_compared(users: int, scale: Scale | None) -> None:
    few = {arm: clicks(users, 100) for arm in "AB"}
    test = only({"old": few, "new": {"A": clicks(1000, 100), "B": clicks(1000, 120)}}).test
    assert (test.scale if test.q is not None else None) == scale


def test_a_control_that_may_be_0_at_the_level_of_many_tests_is_compared_absolutely() -> None:
    """Alone its relative lift has an interval; among hundreds, none at their level."""
    rare = ArmSums(1000, 400, 30_000, 1000, 1000, 400, 40)
    cells = {name: {"A": rare, "B": rare} for name in ("old", "new")}
    assert only(cells).test.scale is Scale.RELATIVE
    among = interactions({i: Crossing(HALVES, cells) for i in range(200)}, 0.05)
    assert among[0][0].test.scale is Scale.ABSOLUTE


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"old": {"A": clicks(1000, 100), "B": clicks(1000, 110)}},
        {"old": {"A": clicks(1000, 100), "B": clicks(1000, 110)}, "new": {}},
        {"old": {"A": clicks(1000, 100), "B": clicks(1000, 110)}, "new": {"A": clicks(500, 100)}},
        {"old": {"A": ArmSums()}, "new": {"B": ArmSums()}},
    ],
)
def test_fewer_than_two_arms_with_an_interval_cannot_be_compared(cells: Cells) -> None:
    its = only(cells)
    assert (its.test.p_value, its.p_adjusted, its.differs) == (None, None, False)
    assert its.sentence("ctr_ratio", "ranker") == TOO_FEW


def test_a_pair_that_cannot_be_compared_counts_among_those_looked_at() -> None:
    full = Crossing(HALVES, cells_of(*drawn(3)))
    found = interactions({"full": full, "empty": Crossing(HALVES, {})}, 0.05)
    (its,), (empty,) = found["full"], found["empty"]
    assert its.test.p_value is not None
    assert its.p_adjusted == pytest.approx(min(1.0, 2 * its.test.p_value))
    assert empty.p_adjusted is None


def test_an_empty_cell_of_several_leaves_the_others() -> None:
    cells = cells_of(*drawn(2, k=3))
    del cells["s1"]["B"]
    assert list(only(cells).test.values) == ["s0", "s2"]


def test_no_pair_and_no_treatment() -> None:
    assert interactions({}, 0.05) == {}
    alone = Crossing(Plan("A", {"A": 1}), {"old": {"A": clicks(1000, 100)}})
    assert interactions({0: alone}, 0.05) == {0: []}
