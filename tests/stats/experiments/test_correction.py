"""Holm's correction against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from streamer.stats.experiments.estimate import holm
from streamer.stats.experiments.plan import Rule
from streamer.stats.experiments.readout import MetricComparisons, compare, compare_family
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome
from tests.stats.experiments.arms import GUARD, HALVES, THREE, clicks
from tests.support.lanes import long, sized

probabilities = st.lists(st.one_of(st.floats(0, 1), st.floats(0, 0.1)), min_size=1, max_size=8)


@settings(max_examples=sized(5, 20))  # those of statsmodels take a while
@given(probabilities, st.sampled_from([0.01, 0.05, 0.2]))
def test_adjusted_p_values_are_those_of_statsmodels(p_values: list[float], alpha: float) -> None:
    found = holm(p_values, alpha)
    rejected, expected, *_ = multipletests(p_values, alpha, method="holm")
    assert [c.p_value for c in found] == pytest.approx(expected.tolist(), rel=1e-12)
    for c, p, is_rejected in zip(found, p_values, rejected.tolist(), strict=True):
        if abs(c.p_value - alpha) > 1e-9:
            assert (c.p_value <= alpha) == is_rejected == (p <= c.alpha)
        assert alpha / len(p_values) <= c.alpha <= alpha


def test_one_arm_needs_no_correction() -> None:
    assert [(c.p_value, c.alpha) for c in holm([0.04], 0.05)] == [(0.04, 0.05)]
    assert holm([], 0.05) == []


def test_what_follows_a_step_that_rejects_nothing_is_not_rejected() -> None:
    """0.04 is below 0.05, the level of a last step, but 0.03 was above the first one's 0.025."""
    found = holm([0.04, 0.03], 0.05)
    assert [(c.p_value, c.alpha) for c in found] == [(0.06, 0.025), (0.06, 0.025)]


# Over metrics ------------------------------------------------------------------------------------


def test_metrics_of_a_family_share_alpha_with_all_their_arms() -> None:
    metrics = [
        {"A": clicks(5000, 100), "B": clicks(5000, b), "C": clicks(5000, c)}
        for b, c in ((130, 110), (124, 99), (100, 100))
    ]
    found = compare_family(THREE, [(Rule(), sums) for sums in metrics])
    lifts = [c.absolute.anytime for its in found for c in its.comparisons]
    assert None not in lifts
    given = [lift for lift in lifts if lift is not None]
    expected = holm([lift.p_value for lift in given], THREE.alpha)
    assert [(lift.p_adjusted, lift.alpha) for lift in given] == [
        (e.p_value, e.alpha) for e in expected
    ]
    for its, sums in zip(found, metrics, strict=True):
        alone = compare(THREE, Rule(), sums)
        assert its.arms == alone.arms
        for ours, theirs in zip(its.comparisons, alone.comparisons, strict=True):
            assert ours.absolute.anytime is not None
            assert theirs.absolute.anytime is not None
            assert ours.absolute.anytime.low <= theirs.absolute.anytime.low


def test_margins_are_not_corrected_over_metrics() -> None:
    sums = {"A": clicks(50_000, 100), "B": clicks(50_000, 101)}
    (first, _) = compare_family(HALVES, [(GUARD, sums), (Rule(), sums)])
    assert first.comparisons[0].guardrail == compare(HALVES, GUARD, sums).comparisons[0].guardrail


def test_a_metric_without_days_before_does_not_take_them_from_others() -> None:
    dice = np.random.default_rng(1)
    users = [[(x, 1, x + 1, 1) for x in dice.poisson(3, 500).tolist()] for _ in range(2)]
    with_before = {arm: ArmSums.of(its) for arm, its in zip("AB", users, strict=True)}
    without = {"A": clicks(500, 300), "B": clicks(500, 310)}
    adjusted, plain = compare_family(HALVES, [(Rule(), with_before), (Rule(), without)])
    assert adjusted.comparisons[0].adjustment is not None
    assert plain.comparisons[0].adjustment is None


@long
def test_no_metric_without_a_difference_is_called_at_any_look() -> None:
    """Five metrics, 20 looks: Holm keeps all of them together at 5 %; alone they reach 8 %."""
    runs, looks, a_look = sized(60, 500), 20, 300
    dice = np.random.default_rng(3)
    called = 0
    for _ in range(runs):
        x = dice.binomial(a_look, 0.3, (5, 2, looks)).cumsum(axis=2).tolist()
        called += any(
            any(map(_is_called, compare_family(HALVES, [(Rule(), _at(its, k)) for its in x])))
            for k in range(looks)
        )
    assert called <= runs * 0.05 + 3 * (runs * 0.05 * 0.95) ** 0.5


def _at(x: list[list[int]], look: int) -> dict[str, ArmSums]:
    n = 300 * (look + 1)
    return {
        arm: ArmSums(n, its[look], its[look], n, n, its[look], its[look])
        for arm, its in zip("AB", x, strict=True)
    }


def _is_called(found: MetricComparisons) -> bool:
    outcomes = {c.verdict.outcome for c in found.comparisons}
    return bool(outcomes & {Outcome.BETTER, Outcome.WORSE})
