"""Discoveries against a sort and a scan, statsmodels, scipy, and what e-values must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from streamer.stats.experiments.anytime import e_value_above
from streamer.stats.experiments.discoveries import (
    EXACT_WEIGHT,
    Candidate,
    candidate,
    discoveries,
    evidence,
)
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome
from tests.stats.experiments.arms import HALVES, LOWER, MANY, THREE, ab, clicks
from tests.support.lanes import sized

Q = [0.01, 0.05, 0.1, 0.5]
values = st.one_of(
    st.floats(0, 3000), st.sampled_from([0.0, 1.0, 10.0, 20.0, 40.0, 200.0, 1e6, 8e307])
)
many = st.lists(values, min_size=1, max_size=30)


def made(its: Sequence[float], q: float) -> list[bool]:
    return [each.is_made for each in discoveries(named(its), q)]


def named(its: Sequence[float]) -> list[Candidate]:
    return [Candidate(f"e{i}", "B", value) for i, value in enumerate(its)]


def by_scanning(its: Sequence[float], q: float) -> list[bool]:
    """Definition 1 of Wang and Ramdas, letter by letter."""
    most = 0
    for k in range(1, len(its) + 1):
        if sorted(its)[-k] >= len(its) / k / q:
            most = k
    return [most > 0 and value >= len(its) / most / q for value in its]


# The procedure -----------------------------------------------------------------------------------


@given(many, st.sampled_from(Q))
def test_they_are_those_of_a_sort_and_a_scan(its: list[float], q: float) -> None:
    assert made(its, q) == by_scanning(its, q)


@settings(max_examples=sized(20, 200))
@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=30), st.sampled_from(Q))
def test_of_single_looks_they_are_those_of_benjamini_and_hochberg(
    p_values: list[float], q: float
) -> None:
    levels = [q * k / len(p_values) for k in range(1, len(p_values) + 1)]
    assume(not any(math.isclose(p, level, rel_tol=1e-9) for p in p_values for level in levels))
    its = [Candidate(f"e{i}", "B", 1 / p, single_look=True) for i, p in enumerate(p_values)]
    found = [each.is_made for each in discoveries(its, q)]
    assert found == multipletests(p_values, q, method="fdr_bh")[0].tolist()
    assert found == (stats.false_discovery_control(p_values) <= q).tolist()


@given(values, st.sampled_from(Q))
def test_one_alone_needs_1_over_q(value: float, q: float) -> None:
    (found,) = discoveries(named([value]), q)
    assert (found.needs, found.is_made) == (1 / q, value >= 1 / q)


@given(many, st.data(), st.sampled_from(Q))
def test_more_evidence_takes_nothing_away(its: list[float], data: st.DataObject, q: float) -> None:
    place = data.draw(st.integers(0, len(its) - 1))
    more = list(its)
    more[place] += data.draw(st.floats(0, 5000))
    for before, after in zip(discoveries(named(its), q), discoveries(named(more), q), strict=True):
        assert after.needs <= before.needs
        assert after.is_made >= before.is_made


@given(many)
def test_a_larger_rate_takes_nothing_away(its: list[float]) -> None:
    by_rate = [made(its, q) for q in Q]
    for less, more in pairwise(by_rate):
        assert all(b >= a for a, b in zip(less, more, strict=True))


@given(many, st.data(), st.sampled_from(Q))
def test_what_it_needs_is_what_makes_it_a_discovery(
    its: list[float], data: st.DataObject, q: float
) -> None:
    place = data.draw(st.integers(0, len(its) - 1))
    needs = discoveries(named(its), q)[place].needs
    assert 1 / q <= needs <= len(its) / q
    for value, is_enough in ((needs, True), (math.nextafter(needs, 0), False)):
        tried = list(its)
        tried[place] = value
        assert by_scanning(tried, q)[place] == is_enough


@given(many, st.randoms(use_true_random=False), st.sampled_from(Q))
def test_their_order_does_not_matter(its: list[float], random: object, q: float) -> None:
    order = list(range(len(its)))
    random.shuffle(order)  # type: ignore[attr-defined]
    found = made(its, q)
    assert made([its[i] for i in order], q) == [found[i] for i in order]


def test_a_hundred_by_hand() -> None:
    """At 10 % one of a hundred needs 1,000, each of two 500; 499 beside 2,000 is too little."""
    rest = [1.0] * 98
    assert made([1000.0, 499.0, *rest], 0.1)[:2] == [True, False]
    assert made([999.0, 499.0, *rest], 0.1)[:2] == [False, False]
    assert made([500.0, 500.0, *rest], 0.1)[:2] == [True, True]
    found = discoveries(named([2000.0, 120.0, *rest]), 0.1)
    assert found[0].words == "needs an e-value of 1,000, has 2,000"
    assert found[1].words == "needs an e-value of 500, has 120"


def test_many_just_below_lift_each_other() -> None:
    """Each of three needs 10 once two others have it, though none of them is a discovery yet."""
    first, *_, last = discoveries(named([12.0, 12.0, 9.0]), 0.1)
    assert (first.is_made, first.needs) == (False, 30.0)
    assert (last.is_made, last.needs) == (False, 10.0)
    assert made([12.0, 12.0, 10.0], 0.1) == [True] * 3


def test_of_none_there_is_none() -> None:
    assert discoveries([], 0.1) == []


def test_who_is_not_eligible_counts_among_the_candidates_alone() -> None:
    its = [Candidate("a", "B", 1e9, is_eligible=False), Candidate("b", "B", 20.0)]
    barred, other = discoveries(its, 0.05)
    assert (barred.is_made, other.is_made, other.needs) == (False, False, 40.0)
    assert barred.needs == 20.0  # as one of two, if it were
    assert barred.words == "needs an e-value of 20, has 1e+09"
    assert made([20.0], 0.05) == [True]


def test_single_looks_and_e_values_are_one_list() -> None:
    its = [Candidate("a", "B", 30.0), Candidate("b", "B", 1 / 0.04, single_look=True)]
    found = discoveries(its, 0.1)
    assert [each.is_made for each in found] == [True, True]
    assert found[1].words == "needs a p-value of 0.1, has 0.04"
    assert Candidate("c", "B", 0.0, single_look=True).counted == 0.0
    nothing = discoveries([replace(its[1], evidence=0.0)], 0.05)[0]
    assert nothing.words == "needs a p-value of 0.05, has 1"


@pytest.mark.parametrize("joined", [0.0, 0.9, 1.0])
def test_few_are_false_whatever_the_dependence(joined: float) -> None:
    """20 without an effect, whose e-values have much in common, and 5 with one: two in ten false at
    most; taking every one that has 5 makes no fewer of them false."""
    dice, q = np.random.default_rng(3), 0.2
    wrong: list[float] = []
    alone: list[float] = []
    shift = np.where(np.arange(25) < 20, 0.0, 4.0)
    for _ in range(2000):
        own, common = dice.normal(size=25), dice.normal()
        t = math.sqrt(joined) * common + math.sqrt(1 - joined) * own + shift
        its = np.exp(2 * t - 2)  # the likelihood ratio of an effect of 2
        for found, shares in ((np.array(made(its.tolist(), q)), wrong), (its >= 1 / q, alone)):
            shares.append(found[:20].sum() / max(1, found.sum()))
    assert np.mean(wrong) <= 0.8 * q
    assert np.mean(alone) >= np.mean(wrong) > 0


# The evidence ------------------------------------------------------------------------------------

PER_USER = Rule(can_be_negative=False)


def buyers(count: int, users: int = 10_000) -> ArmSums:
    return ArmSums(users, count, count, users, users, count, count)


def t_of(found: Comparison) -> float:
    assert found.absolute.value is not None
    assert found.absolute.stderr is not None
    return found.absolute.value / found.absolute.stderr


def test_of_ratios_it_is_that_of_the_interval() -> None:
    found = ab(clicks(5000, 100), clicks(5000, 130))
    expected = e_value_above(t_of(found), 10_000, HALVES.rho2)
    assert evidence(HALVES, Rule(), found) == pytest.approx(expected, rel=1e-12)
    assert candidate("x", HALVES, Rule(), found, is_eligible=False) == Candidate(
        "x", "B", evidence(HALVES, Rule(), found), is_eligible=False
    )


def test_a_loss_is_next_to_no_evidence_of_a_gain() -> None:
    better, worse = (ab(clicks(5000, 100), clicks(5000, b)) for b in (130, 70))
    assert evidence(HALVES, Rule(), better) > 1000 > 0.1 > evidence(HALVES, Rule(), worse)
    assert evidence(HALVES, LOWER, worse) > 1000 > 0.1 > evidence(HALVES, LOWER, better)


def test_interval_and_exact_test_share_it() -> None:
    """Of metrics per user: weights of 5 : 1, as their alphas are."""
    assert pytest.approx(1 / 6) == EXACT_WEIGHT
    many_buy = ab(buyers(1000), buyers(1200), PER_USER)
    expected = 5 / 6 * e_value_above(t_of(many_buy), 20_000, HALVES.rho2)
    assert evidence(HALVES, PER_USER, many_buy) == pytest.approx(expected, rel=1e-12)
    few_buy = ab(buyers(20), buyers(70), PER_USER)
    assert few_buy.absolute.anytime is None
    assert few_buy.converters is not None
    expected = 1 / few_buy.converters.p_value / 6
    assert evidence(HALVES, PER_USER, few_buy) == pytest.approx(expected, rel=1e-12)
    assert expected > 100
    fewer = ab(buyers(70), buyers(20), PER_USER)
    assert evidence(HALVES, PER_USER, fewer) == 0.0
    lower = replace(PER_USER, higher_is_better=False)
    assert evidence(HALVES, lower, fewer) == pytest.approx(expected, rel=1e-12)


def test_of_amounts_who_has_any_says_nothing_against_the_lift() -> None:
    """More users of B buy, and for less together."""
    amount = replace(PER_USER, is_amount=True)
    rich = ArmSums(10_000, 2000, 400_000, 10_000, 10_000, 2000, 20)
    assert evidence(HALVES, PER_USER, ab(rich, buyers(70), PER_USER)) > 100
    assert evidence(HALVES, amount, ab(rich, buyers(70), amount)) == 0.0


def test_the_split_counts_as_planned() -> None:
    """70 of 90 buyers are no evidence for an arm that has three of four users."""
    plan = Plan("A", {"A": 1, "B": 3})
    sums = {"A": buyers(20), "B": buyers(70, 30_000)}
    (found,) = compare(plan, PER_USER, sums).comparisons
    assert evidence(plan, PER_USER, found) == 0.0


def test_of_a_wrong_split_nothing_is_known() -> None:
    found = ab(clicks(5000, 100), clicks(6000, 130))
    assert found.verdict.outcome is Outcome.BROKEN_SPLIT
    assert evidence(HALVES, Rule(), found) == 0.0


def test_of_one_look_it_is_1_over_p_once_it_is_there() -> None:
    early, final = replace(HALVES, at_end=True), replace(HALVES, at_end=True, is_over=True)
    less, more = clicks(5000, 100), clicks(5000, 120)
    assert evidence(early, Rule(), ab(less, more, plan=early)) == 0.0
    found = ab(less, more, plan=final)
    assert found.absolute.fixed is not None
    one_sided = found.absolute.fixed.p_value / 2
    assert evidence(final, Rule(), found) == pytest.approx(1 / one_sided, rel=1e-12)
    worse = evidence(final, Rule(), ab(more, less, plan=final))
    assert worse == pytest.approx(1 / (1 - one_sided), rel=1e-12)
    assert candidate("x", final, Rule(), found, is_eligible=True).single_look


def test_arms_are_not_corrected_within_their_experiment() -> None:
    """They are candidates each for itself: their p-values are taken as they are."""
    sums = {"A": clicks(5000, 100), "B": clicks(5000, 120), "C": clicks(5000, 120)}
    plan = replace(THREE, split={"A": 1, "B": 1, "C": 1})
    alone = ab(sums["A"], sums["B"])
    for found in compare(plan, Rule(), sums).comparisons:
        expected = evidence(HALVES, Rule(), alone)
        assert evidence(plan, Rule(), found) == pytest.approx(expected, rel=1e-12)


def test_beyond_all_bounds_it_is_a_number() -> None:
    final = replace(HALVES, at_end=True, is_over=True)
    for plan in (HALVES, final):
        found = ab(clicks(MANY, 100), clicks(MANY, 900), plan=plan)
        its = Candidate("x", "B", evidence(plan, Rule(), found), plan.at_end)
        assert 1e300 < its.evidence < math.inf
        assert "has" in discoveries([its], 0.1)[0].words


@pytest.mark.parametrize("planned", [0.5, 0.2, 0.9])
@pytest.mark.parametrize("less", [1.0, 0.9])
def test_the_exact_one_has_expectation_1_at_most_however_one_stops(
    planned: float, less: float
) -> None:
    """The best way to stop, by backward induction over users with a value, who are of the treatment
    with the planned probability, or less often."""
    plan, users, q = Plan("A", {"A": 1 - planned, "B": planned}), 10**6, planned * less
    counts = {"A": round(users * (1 - planned)), "B": round(users * planned)}
    last = 16
    best = [0.0] * (last + 2)
    for n in range(last, -1, -1):
        now = []
        for k in range(n + 1):
            sums = {"A": buyers(n - k, counts["A"]), "B": buyers(k, counts["B"])}
            (found,) = compare(plan, PER_USER, sums).comparisons
            go_on = q * best[k + 1] + (1 - q) * best[k] if n < last else 0.0
            now.append(max(evidence(plan, PER_USER, found) / EXACT_WEIGHT, go_on))
        best = [*now, 0.0]
    assert 0.2 < best[0] <= 1 + 1e-9
