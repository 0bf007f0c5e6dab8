"""Laws of every metric that is listed, and that they catch a formula which is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from streamer.batch import I64
from streamer.engine.cells import Deltas
from streamer.engine.facts import RankedFacts
from streamer.metrics import by_position, engagement, ranking, scoring, sessions, traffic, users
from streamer.metrics import intervals as intervals_module
from streamer.metrics.catalogue import FAMILIES, Catalogue
from streamer.metrics.declare import Metric, Series, Sums
from streamer.metrics.slate_metrics import SlateMetric
from streamer.metrics.slates import UNIT, Lists
from tests.laws.facts import SETTINGS, SIZE, FactSums, slates, sums
from tests.laws.laws import LAWS, ends_hold_the_value, read, sample_error

CATALOGUE = Catalogue(SETTINGS)
KNOWN = {metric.name: metric for family in FAMILIES for metric in family.metrics}
PAIRS = {
    scope: (sums(CATALOGUE, 1, scope), sums(CATALOGUE, 2, scope)) for scope in ("window", "total")
}
SLATES = [*ranking.slate_metric.values, *scoring.slate_metric.values]
PARTS: dict[str, tuple[Metric, ...]] = {
    "traffic": tuple(m for m in traffic.FAMILY.metrics if m not in by_position.METRICS),
    "by_position": by_position.METRICS,
    "engagement": tuple(engagement.metric.metrics),
    "users": users.METRICS,
    "sessions": sessions.METRICS,
    "ranking": ranking.FAMILY.metrics,
    "scoring": scoring.FAMILY.metrics,
    "intervals": intervals_module.FAMILY.metrics,
}


def obey(metric: Metric) -> None:
    """All laws of one metric, in their order."""
    for law in LAWS:
        law(metric, *PAIRS[metric.scope])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", KNOWN)
def test_laws(name: str, law: object) -> None:
    assert callable(law)
    law(KNOWN[name], *PAIRS[KNOWN[name].scope])


def test_every_metric_is_in_a_part() -> None:
    assert sorted(m.name for part in PARTS.values() for m in part) == sorted(KNOWN)


def test_ends_of_intervals_hold_their_values() -> None:
    ends_hold_the_value(intervals_module.FAMILY, KNOWN, PAIRS["window"][0])


# Slates -------------------------------------------------------------------------------------------


def lists_of(fact: RankedFacts) -> Lists:
    return Lists(fact, SETTINGS.gains, SETTINGS.metrics.margin)


def cuts(metric: SlateMetric) -> Iterator[tuple[int, str]]:
    """Every cut-off and convention."""
    for k in SETTINGS.metrics.k if metric.by_k else (0,):
        for convention in ("", *metric.conventions):
            yield k, convention


def means_are_those_of_the_slates(metric: SlateMetric) -> None:
    """A reading is the mean of the values of its slates, computed one by one; so is its error."""
    _, fact = slates(np.random.default_rng(3), 60)
    fact = replace(fact, segment=fact.segment * 0)
    lists = lists_of(fact)
    inside = metric.population.contains(lists) if metric.population.contains else None
    assert inside is not None
    sums_of = PAIRS["window"][0].nothing
    matrix = sums_of.matrix.copy()
    deltas = Deltas(1)
    CATALOGUE.collect(fact, deltas)
    for _, of, first, amounts in deltas.rows:
        for i, row in enumerate(of.tolist()):
            matrix[row, first : first + amounts.shape[1]] += amounts[i]
    found = FactSums(CATALOGUE, matrix, 0 * matrix, sums_of.people)
    for k, convention in cuts(metric):
        values = (metric.value(lists, k, convention)[inside] / UNIT).tolist()
        want = {"convention": convention} if convention else {}
        want |= {"k": str(k)} if k else {}
        want |= {"over": metric.over[-1]} if metric.over else {}
        want |= {"maturity": "provisional"} if metric.population.has_maturity else {}
        key = ("", tuple(sorted(want.items())))
        mean = read(KNOWN[metric.name], found)[key][0][0]
        assert mean == pytest.approx(sum(values) / len(values), rel=1e-12)
        error = read(KNOWN[f"{metric.name}_stderr"], found)[key][0][0]
        assert error == pytest.approx(sample_error(values), rel=1e-6)


def a_slate_is_worth_the_same_alone(metric: SlateMetric) -> None:
    _, fact = slates(np.random.default_rng(4), 40)
    together = lists_of(fact)
    for k, convention in cuts(metric):
        values = metric.value(together, k, convention)
        for i in range(0, 40, 7):
            members = slice(SIZE * i, SIZE * i + SIZE)
            alone = RankedFacts(
                *(fact.event_ms[i : i + 1], fact.segment[i : i + 1], fact.user[i : i + 1]),
                *(np.zeros(1, np.int64), fact.grade[members], fact.is_clicked[members]),
                *(fact.score[members], fact.probe[members], fact.sign[i : i + 1]),
            )
            assert metric.value(lists_of(alone), k, convention)[0] == values[i]


def the_best_order_is_better_than_the_worst(metric: SlateMetric) -> None:
    """Items that users respond to first, scored highest, held out first; and the other way round:
    losses fall, all else rises."""
    grade = np.array([2, 1] + [0] * (SIZE - 2))
    held = np.array([2] + [1] * (SIZE - 1))
    reference = 2 + np.arange(SIZE)

    def value(order: I64, k: int, convention: str) -> int:
        one = np.zeros(1, np.int64)
        score = np.linspace(3, -3, SIZE)
        fact = RankedFacts(
            *(one, one, one.astype(np.uint64), one, grade[order], grade[order] > 0),
            *(score, (3 * reference + held)[order], one + 1),
        )
        return int(metric.value(lists_of(fact), k, convention)[0])

    best, worst = np.arange(SIZE), np.arange(SIZE)[::-1].copy()
    for k, convention in cuts(metric):
        first, last = value(best, k, convention), value(worst, k, convention)
        if metric.name.endswith("_loss"):
            assert 0 <= first < last
        else:
            assert first > last


SLATE_LAWS = (
    means_are_those_of_the_slates,
    a_slate_is_worth_the_same_alone,
    the_best_order_is_better_than_the_worst,
)


@pytest.mark.parametrize("law", SLATE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("metric", SLATES, ids=lambda m: m.name)
def test_laws_of_slates(metric: SlateMetric, law: object) -> None:
    assert callable(law)
    law(metric)


# Planted bugs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize("part", PARTS)
def test_a_formula_that_is_always_the_same_breaks_a_law(part: str, constant: int) -> None:
    for metric in PARTS[part]:
        obey(metric)

        def planted(w: Sums, metric: Metric = metric) -> Iterator[Series]:
            for series in metric.series(w):
                yield replace(series, values=np.zeros(len(series.values)) + constant)

        with pytest.raises(AssertionError):
            obey(replace(metric, series=planted))


@pytest.mark.parametrize("constant", [0, UNIT])
@pytest.mark.parametrize("metric", SLATES, ids=lambda m: m.name)
def test_a_value_of_slates_that_is_always_the_same_breaks_a_law(
    metric: SlateMetric, constant: int
) -> None:
    def planted(lists: Lists, k: int, convention: str) -> I64:
        return np.full(len(lists), constant)

    with pytest.raises(AssertionError):
        the_best_order_is_better_than_the_worst(replace(metric, value=planted))
