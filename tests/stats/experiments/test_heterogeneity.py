"""Whether lifts differ between values, against statsmodels, weighted regression and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests

from streamer.stats.experiments.estimate import Estimate, Inference, Lifts
from streamer.stats.experiments.heterogeneity import TOO_FEW, Heterogeneity, heterogeneity
from streamer.stats.experiments.verdict import Scale

ONE_LOOK = Inference(-1.0, 1.0, 0.5, 0.5, 0.05)
NONE = Estimate(None, None, None, None, "too few users")


def estimate(value: float, stderr: float, fixed: Inference | None = ONE_LOOK) -> Estimate:
    return Estimate(value, stderr, fixed, None)


def both(value: float, stderr: float) -> Lifts:
    """The absolute lift is a tenth of the relative one."""
    return Lifts(estimate(value / 10, stderr / 10), estimate(value, stderr))


def of(*lifts: tuple[float, float]) -> dict[str, Lifts]:
    return {f"v{i}": both(*each) for i, each in enumerate(lifts)}


def judged(lifts: dict[str, Lifts]) -> Heterogeneity:
    return heterogeneity(lifts, 0.05)


def words(lifts: dict[str, Lifts]) -> str:
    return judged(lifts).describe("ctr_ratio", "device")


@pytest.mark.parametrize("k", [2, 3, 7, 40])
def test_q_is_that_of_statsmodels(k: int) -> None:
    dice = np.random.default_rng(k)
    lift, stderr = dice.normal(0.03, 0.02, k), dice.uniform(0.005, 0.05, k)
    found = judged(of(*zip(lift.tolist(), stderr.tolist(), strict=True)))
    expected = combine_effects(lift, stderr**2).test_homogeneity()
    assert found.q == pytest.approx(expected.statistic, rel=1e-9)
    assert found.df == expected.df == k - 1
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)


def test_a_value_against_the_others_is_a_coefficient_of_a_weighted_regression() -> None:
    dice = np.random.default_rng(1)
    lift, stderr = dice.normal(0.03, 0.03, 5), dice.uniform(0.005, 0.05, 5)
    found = judged(of(*zip(lift.tolist(), stderr.tolist(), strict=True)))
    raw = []
    for i, contrast in enumerate(found.values.values()):
        columns = np.column_stack([np.ones(5), np.arange(5) == i])
        covariance = np.linalg.inv(columns.T @ (columns / stderr[:, None] ** 2))
        mean, difference = covariance @ columns.T @ (lift / stderr**2)
        p_value = 2 * stats.norm.sf(abs(difference) / np.sqrt(covariance[1, 1]))
        assert contrast.elsewhere == pytest.approx(mean, rel=1e-9)
        assert contrast.lift - contrast.elsewhere == pytest.approx(difference, rel=1e-9)
        assert contrast.p_value == pytest.approx(p_value, rel=1e-9)
        raw.append(p_value)
    _, adjusted, *_ = multipletests(raw, 0.05, method="holm")
    assert [c.p_adjusted for c in found.values.values()] == pytest.approx(adjusted, rel=1e-9)


def test_two_values_are_one_test() -> None:
    found = judged(of((0.01, 0.01), (0.05, 0.01)))
    p_values = [p for c in found.values.values() for p in (c.p_value, c.p_adjusted)]
    assert p_values == pytest.approx([found.p_value] * 4, rel=1e-9)


def test_equal_lifts_do_not_differ() -> None:
    found = judged(of(*[(0.03, 0.01)] * 3))
    assert found.q == pytest.approx(0)
    assert found.p_value == pytest.approx(1)
    assert not found.apart


def test_a_value_without_a_relative_interval_is_left_out() -> None:
    lifts = of((0.01, 0.01), (0.02, 0.01))
    few = Lifts(estimate(9.0, 0.01), estimate(9.0, 0.01, None))
    found = judged(lifts | {"few": few})
    assert (found.q, found.scale) == (judged(lifts).q, Scale.RELATIVE)
    assert list(found.values) == ["v0", "v1"]
    assert words(lifts | {"few": few}).endswith("at one look; 2 of 3 values compared).")


def test_absolute_lifts_are_compared_where_less_than_two_relative_ones_have_an_interval() -> None:
    normal = Inference(-0.01, 0.01, 0.5, 0.5, 2 * stats.norm.sf(1))
    lifts = {
        "v0": Lifts(estimate(0.001, 0.01, normal), NONE),
        "v1": Lifts(estimate(0.005, 0.01, normal), estimate(0.05, 0.01)),
        "none": Lifts(NONE, NONE),
    }
    found = judged(lifts)
    assert (found.scale, list(found.values)) == (Scale.ABSOLUTE, ["v0", "v1"])
    assert found.q == pytest.approx(0.004**2 / (2 * 0.01**2))
    assert words(lifts).startswith("The absolute lift of ctr_ratio does not differ by device")


def test_an_absolute_lift_weighs_less_where_its_interval_is_wider_than_the_normal_one() -> None:
    reach = 0.01 * stats.t.isf(0.025, 9)
    few = Inference(-reach, reach, 0.5, 0.5, 0.05)
    found = judged({f"v{i}": Lifts(estimate(i / 100, 0.01, few), NONE) for i in range(2)})
    wider = stats.t.isf(0.025, 9) / stats.norm.isf(0.025)
    assert found.q == pytest.approx(0.01**2 / (2 * (0.01 * wider) ** 2))


def test_a_value_that_stands_apart_does_not_set_others_apart() -> None:
    found = judged(of((0.01, 0.01), (0.11, 0.01), (0.11, 0.01), (0.11, 0.01)))
    assert all(contrast.p_adjusted < 0.05 for contrast in found.values.values())
    assert list(found.apart) == ["v0"]
    assert found.apart["v0"] == found.values["v0"]


def test_the_second_that_stands_apart_is_compared_with_those_that_are_left() -> None:
    found = judged(of((0.01, 0.01), (0.09, 0.01), (0.2, 0.01), (0.01, 0.01), (0.01, 0.01)))
    assert list(found.apart) == ["v2", "v1"]
    assert found.apart["v1"].elsewhere == pytest.approx(0.01)


@pytest.mark.parametrize("count", [0, 1])
def test_less_than_two_values_cannot_be_compared(count: int) -> None:
    lifts = of((0.01, 0.01))
    few = dict(list(lifts.items())[:count]) | {"few": Lifts(NONE, NONE)}
    found = judged(few)
    assert (found.q, found.p_value, found.differs, found.values) == (None, None, False, {})
    assert words(few) == TOO_FEW


@pytest.mark.parametrize(
    ("lifts", "expected"),
    [
        (
            [(0.012, 0.01), (0.02, 0.01), (0.03, 0.01)],
            "does not differ by device more than chance (p = 0.44 at one look).",
        ),
        (
            [(0.012, 0.01), (0.08, 0.02), (0.08, 0.02)],
            "differs by device (p = 0.00045 at one look): v0 stands apart (+1.2% against +8.0% "
            "elsewhere).",
        ),
        (
            [(0.012, 0.01), (-0.08, 0.01)],
            "differs by device (p < 0.0001 at one look): v0 +1.2%, v1 \u22128.0%.",
        ),
        (
            [(0.0, 0.01), (0.0, 0.01), (0.024, 0.01), (0.032, 0.01)],
            "differs by device (p = 0.043 at one look): no value stands apart by itself.",
        ),
    ],
)
def test_what_is_found_is_said(lifts: list[tuple[float, float]], expected: str) -> None:
    assert words(of(*lifts)) == f"The lift of ctr_ratio {expected}"


def test_level_and_power() -> None:
    """Of estimates that are normal: 5 % of equal lifts are called different, and of one that is
    away as many as the noncentral chi-squared distribution has it."""
    dice, runs = np.random.default_rng(2), 2000
    stderr = np.array([0.01, 0.02, 0.03, 0.01])
    for away in (0.0, 0.04):
        lifts = 0.03 + dice.normal(0, stderr, (runs, 4))
        lifts[:, 3] += away
        tests = [judged(of(*zip(each, stderr, strict=True))) for each in lifts.tolist()]
        rate = sum(test.differs for test in tests) / runs
        weight = 1 / stderr**2
        mean = away * weight[3] / weight.sum()
        shift = float(weight @ (np.array([0, 0, 0, away]) - mean) ** 2)
        critical = stats.chi2.isf(0.05, 3)
        expected = stats.ncx2.sf(critical, 3, shift) if away else 0.05
        assert rate == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / runs))
        named = [name for test in tests for name in test.apart]
        assert max(named, key=named.count) == "v3" if away else len(named) <= 0.06 * runs
