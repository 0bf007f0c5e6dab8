"""Laws of every metric that is listed, and that they catch a formula which is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from streamer.encoding.arrays import I64
from streamer.metrics import (
    by_position,
    calibration,
    composites,
    coverage,
    diversity,
    engagement,
    off_policy,
    own_ratios,
    ranking,
    score_drift,
    scores,
    scoring,
    sessions,
    traffic,
    users,
)
from streamer.metrics import intervals as intervals_module
from streamer.metrics.catalogue import FAMILIES, Catalogue
from streamer.metrics.definition import Metric, Series
from streamer.metrics.slate_metrics import SlateMetric
from streamer.metrics.slates import UNIT
from tests.metrics.counted import SETTINGS, SIZE, CountedSums, sums
from tests.metrics.laws import LAWS, ends_hold_the_value, read, sample_error
from tests.support.all_cases import hold_for_all
from tests.support.slate_values import FAMILIES as SLATE_FAMILIES
from tests.support.slate_values import (
    Item,
    Slate,
    Values,
    amounts,
    oracle_values,
    random_slate,
    units,
)

CATALOGUE = Catalogue(SETTINGS)
KNOWN = {metric.name: metric for family in FAMILIES for metric in family.metrics}
SLATES = [*ranking.slate_metric.values, *scoring.slate_metric.values]
FAMILY_OF = {m.name: family for family in SLATE_FAMILIES.values() for m in family.values}
PARTS: dict[str, tuple[Metric, ...]] = {
    "traffic": tuple(m for m in traffic.FAMILY.metrics if m not in by_position.METRICS),
    "by_position": by_position.METRICS,
    "engagement": tuple(engagement.metric.series),
    "users": users.METRICS,
    "sessions": sessions.METRICS,
    "ranking": ranking.FAMILY.metrics,
    "scoring": scoring.FAMILY.metrics,
    "calibration": calibration.FAMILY.metrics,
    "scores": scores.FAMILY.metrics,
    "off_policy": off_policy.FAMILY.metrics,
    "coverage": coverage.FAMILY.metrics,
    "diversity": diversity.FAMILY.metrics,
    "ratios": own_ratios.FAMILY.metrics,
    "intervals": intervals_module.FAMILY.metrics,
    "composites": composites.FAMILY.metrics,
}


@cache
def pair(scope: str) -> tuple[CountedSums, CountedSums]:
    """The sums of two random logs."""
    return sums(CATALOGUE, 1, scope), sums(CATALOGUE, 2, scope)


@pytest.fixture(autouse=True)
def few_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drift is shown of some segments of random logs."""
    monkeypatch.setattr(score_drift, "LEAST_SCORES", 250)


def obey(metric: Metric) -> None:
    """All laws of one metric, in their order."""
    for law in LAWS:
        law(metric, *pair(metric.scope))


def test_laws() -> None:
    hold_for_all(
        product(KNOWN, LAWS),
        lambda case: case[1](KNOWN[case[0]], *pair(KNOWN[case[0]].scope)),
        lambda case: f"{case[0]}, {case[1].__name__}",
        at_least=1000,
    )


def test_every_metric_is_in_a_part() -> None:
    assert sorted(m.name for part in PARTS.values() for m in part) == sorted(KNOWN)


def test_ends_of_intervals_hold_their_values() -> None:
    ends_hold_the_value(intervals_module.FAMILY, KNOWN, pair("window")[0])


# Slates -------------------------------------------------------------------------------------------


@cache
def stored_values(slate: tuple[Item, ...]) -> Values:
    """What the engine stores of a slate."""
    (stored,) = amounts(SETTINGS, [slate])
    found: Values = {}
    for family in SLATE_FAMILIES.values():
        found |= units(SETTINGS, family, stored[CATALOGUE.layout.span(family.name)].tolist())
    return found


@cache
def random_slates() -> tuple[list[list[Item]], I64]:
    """Some of all kinds, and what the engine stores of all together."""
    dice, kinds = Random(3), list(SETTINGS.metrics.feedback)
    slates = [random_slate(dice, SIZE, kinds) for _ in range(80)]
    return slates, np.sum(amounts(SETTINGS, slates), axis=0)


def stored_value(metric: SlateMetric, slate: Slate, k: int, convention: str) -> int:
    """What a slate is worth."""
    return stored_values(tuple(slate))[metric.name, k, convention]


def cuts(metric: SlateMetric) -> Iterator[tuple[int, str]]:
    """Every cut-off and convention."""
    for k in SETTINGS.metrics.k if metric.by_k else (0,):
        for convention in ("", *metric.conventions):
            yield k, convention


def means_are_those_of_the_slates(metric: SlateMetric) -> None:
    """A reading is the mean of the values of its slates, computed one by one; so is its error."""
    slates, stored = random_slates()
    truths = [oracle_values(SETTINGS, slate) for slate in slates]
    truths = [(its, values) for its, values in truths if metric.population.name in its]
    empty = pair("window")[0].nothing
    matrix = empty.matrix.copy()
    span = CATALOGUE.layout.span(FAMILY_OF[metric.name].name)
    matrix[0, span] = stored[span]
    found = CountedSums(CATALOGUE, matrix, 0 * matrix, empty.people)
    for k, convention in cuts(metric):
        values = [values[metric.name, k, convention] / UNIT for _, values in truths]
        want = {"convention": convention} if convention else {}
        want |= {"k": str(k)} if k else {}
        want |= {"over": metric.over[-1]} if metric.over else {}
        want |= {"maturity": "provisional"} if metric.population.has_maturity else {}
        key = ("", tuple(sorted(want.items())))
        mean = read(KNOWN[metric.name], found)[key][0][0]
        assert mean == pytest.approx(sum(values) / len(values), rel=1e-12)
        error = read(KNOWN[f"{metric.name}_stderr"], found)[key][0][0]
        assert error == pytest.approx(sample_error(values), rel=1e-6)


def the_best_order_is_better_than_the_worst(
    metric: SlateMetric, value: Callable[[SlateMetric, Slate, int, str], int] = stored_value
) -> None:
    """Items that users respond to first, scored highest, held out first; and the other way round:
    losses fall, all else rises."""
    given = [("like", "click"), ("click",), *[()] * (SIZE - 2)]
    items = [Item(given[i], None, 1 + i, i == 0) for i in range(SIZE)]

    def scored(order: list[Item]) -> Slate:
        scores = np.linspace(3, -3, SIZE).tolist()
        return [replace(item, score=score) for item, score in zip(order, scores, strict=True)]

    for k, convention in cuts(metric):
        best = value(metric, scored(items), k, convention)
        worst = value(metric, scored(items[::-1]), k, convention)
        if metric.name.endswith("_loss"):
            assert 0 <= best < worst
        else:
            assert best > worst


SLATE_LAWS: tuple[Callable[[SlateMetric], None], ...] = (
    means_are_those_of_the_slates,
    the_best_order_is_better_than_the_worst,
)


def test_laws_of_slates() -> None:
    hold_for_all(
        product(SLATES, SLATE_LAWS),
        lambda case: case[1](case[0]),
        lambda case: f"{case[0].name}, {case[1].__name__}",
        at_least=30,
    )


# Planted bugs -------------------------------------------------------------------------------------


def a_constant_breaks_a_law(metric: Metric, constant: int) -> None:
    def planted(*read: Any) -> Iterator[Series]:
        for series in metric.series(*read):
            yield replace(series, values=np.zeros(len(series.values)) + constant)

    obey(metric)
    with pytest.raises(AssertionError):
        obey(replace(metric, series=planted))


def test_a_formula_that_is_always_the_same_breaks_a_law() -> None:
    hold_for_all(
        product((metric for part in PARTS.values() for metric in part), (0, 1)),
        lambda case: a_constant_breaks_a_law(*case),
        lambda case: f"{case[0].name} as {case[1]}",
        at_least=2 * len(KNOWN),
    )


def a_constant_of_slates_breaks_a_law(metric: SlateMetric, constant: int) -> None:
    with pytest.raises(AssertionError):
        the_best_order_is_better_than_the_worst(metric, lambda *slate: constant)


def test_a_value_of_slates_that_is_always_the_same_breaks_a_law() -> None:
    hold_for_all(
        product(SLATES, (0, UNIT)),
        lambda case: a_constant_of_slates_breaks_a_law(*case),
        lambda case: f"{case[0].name} as {case[1]}",
        at_least=30,
    )
