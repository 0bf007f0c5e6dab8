"""Holm's correction against statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from streamer.stats.experiments.correction import holm
from tests.support.lanes import sized

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
