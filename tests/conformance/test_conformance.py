"""The bounds behind ``docs/conformance.md``, and whether that page is current."""

from __future__ import annotations

import pytest

from streamer.metrics import calibration
from streamer.metrics import scores as score_metrics
from tests.conformance import diversity, lists, off_policy, own_ratios, scores
from tests.conformance.__main__ import PAGE, main
from tests.conformance.cases import five_users
from tests.conformance.comparisons import (
    COMPARISONS,
    Comparison,
    members,
    of_random_slates,
    random_cases,
)
from tests.conformance.examples import examples
from tests.conformance.ours import METRICS, populations
from tests.conformance.page import as_they_are, five_users_means
from tests.support.all_cases import hold_for_all

UNIT = 1e-9
COARSE = ("bpr_loss", "hinge_loss", "margin_loss")
"""Of these, values may be large: squares are kept in units of 2**20 * 1e-9."""


def test_every_metric_and_convention_is_compared() -> None:
    compared = {(c.metric, c.convention) for c in COMPARISONS}
    wanted = {(m.name, c) for m in METRICS.values() for c in ("", *m.conventions)}
    assert compared == wanted


def has_the_same_values(comparison: Comparison) -> None:
    apart = of_random_slates(comparison)
    assert apart.compared >= 100
    assert apart.units <= 1
    assert apart.unequal <= apart.compared // 1000
    assert apart.slate < UNIT
    assert apart.mean is None or apart.mean < UNIT
    assert apart.error is None or apart.error < (1e-5 if comparison.metric in COARSE else UNIT)


def test_libraries_have_the_same_values() -> None:
    hold_for_all(
        COMPARISONS, has_the_same_values, lambda c: f"{c.metric} {c.function}", at_least=40
    )


def test_all_means_are_compared_with_some_library() -> None:
    covered = [c for c in COMPARISONS if of_random_slates(c).mean is not None]
    compared = {(c.metric, c.convention) for c in COMPARISONS}
    assert {(c.metric, c.convention) for c in covered} == compared


def test_populations_are_those_of_the_slates() -> None:
    for case, got in random_cases():
        assert len({len(units) for units in got.units.values()}) >= 4
        for value, units in got.units.items():
            first, *_ = populations(value.metric)
            assert units.keys() == members(case, value.metric)[first]


def test_conventions_differ_on_these_slates() -> None:
    # Else their comparisons would say nothing.
    case, got = random_cases()[1]
    assert case.kind == "graded"
    for value, units in got.units.items():
        others = [u for v, u in got.units.items() if (v.metric, v.k) == (value.metric, value.k)]
        assert sum(units == other for other in others) == 1 or (value.k in (1, 20)), value


def test_five_users() -> None:
    means = five_users_means()
    assert sum(len(found) for found in means.values()) > 70
    for found in means.values():
        assert found == pytest.approx(dict.fromkeys(found, found["streamer"]), abs=UNIT)


@pytest.mark.parametrize("comparison", scores.COMPARISONS, ids=lambda c: f"{c.metric} {c.function}")
def test_libraries_have_the_same_values_of_scores(comparison: scores.Comparison) -> None:
    for each in scores.found(comparison):
        size = max(1.0, abs(each.theirs))
        assert each.apart <= each.bound + (UNIT + 1e-12) * size, each
        assert each.bound < 0.05


def test_every_metric_of_scores_is_compared() -> None:
    # Of the others there is no such function: ratios of sums, and a sum over bins or values.
    own = {"auc_error_ratio", "calibration_ratio", "expected_calibration_error", "fairness_loss"}
    known = {m.name for f in (calibration.FAMILY, score_metrics.FAMILY) for m in f.metrics}
    known = {name for name in known if not name.startswith("window_")}
    assert {c.metric for c in scores.COMPARISONS} == known - own


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("metric", off_policy.COMPARISONS)
def test_jurity_has_the_same_off_policy_estimates(metric: str, number: int) -> None:
    expected = off_policy.theirs(number, metric)
    assert 0 < expected < 1
    assert off_policy.readings(number)[metric] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("case", lists.cases())
@pytest.mark.parametrize("of", diversity.COMPARISONS, ids=lambda of: of.metric)
def test_libraries_have_the_same_diversity(of: diversity.Comparison, case: str) -> None:
    ours = diversity.readings(case)[of.metric] * of.unit
    assert ours == pytest.approx(of.theirs(case), rel=1e-6)


@pytest.mark.parametrize("of", own_ratios.cases(), ids=lambda of: of.name)
@pytest.mark.parametrize("metric", own_ratios.FUNCTIONS)
def test_numpy_has_the_same_values_of_ratios(metric: str, of: own_ratios.Values) -> None:
    assert own_ratios.apart(metric, of) <= (0.01 if "quantile" in metric else 1e-6)


def test_libraries_left_to_themselves_disagree() -> None:
    found = as_they_are(five_users())
    ndcg = {name: sum(v["NDCG"].values()) / len(v["NDCG"]) for name, v in found.items()}
    assert {name: round(x, 6) for name, x in ndcg.items()} == {
        "trec_eval": 0.795618,
        "ranx": 0.596713,
        "Jurity": 0.574020,
    }


def test_examples_of_the_sources() -> None:
    found = examples()
    assert [round(e.streamer, 4) for e in found] == [6.1511, 0.6869, 0.4167, 0.3333, 0.6667]
    for example in found:
        assert example.theirs
        expected = dict.fromkeys(example.theirs, example.streamer)
        assert example.theirs == pytest.approx(expected, abs=UNIT)


def test_the_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.exists()
    assert main(["--check"]) == 0, capsys.readouterr().err
