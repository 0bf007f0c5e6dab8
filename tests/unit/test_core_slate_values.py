"""Values of slates in the core are those of the families in Python, to the last unit."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamer.config import Settings, parse
from streamer.engine.facts import RankedFacts
from streamer.metrics import ranking, scoring
from streamer.metrics.slate_metrics import SlateFamily
from streamer.metrics.slates import Lists, core_tables
from streamer.metrics.softplus import softplus

_core: Any = importlib.import_module("streamer._core")
CONVENTIONS = {
    "precision_ratio": ["shown"],
    "map_ratio": ["jurity", "primer"],
    "mar_ratio": ["jurity", "primer"],
    "ndcg_ratio": ["jurity", "exponential"],
    "kendall_tau": ["tau_b"],
}
FAMILIES = {"ranking": ranking.slate_metric, "scoring": scoring.slate_metric}


def settings_of(feedback: dict[str, float], k: list[int], margin: float = 1.0) -> Settings:
    metrics = {"k": k, "margin": margin, "conventions": CONVENTIONS, "feedback": feedback}
    return parse({"metrics": metrics})


def slates(random: np.random.Generator, sizes: list[int], grades: int) -> RankedFacts:
    """Slates of many kinds: without scores, with ties, with lists, all or nothing relevant."""
    n = sum(sizes)
    start = np.cumsum([0, *sizes[:-1]])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    share = random.choice([0.0, 0.05, 0.3, 0.9, 1.0], len(sizes))[owner]
    grade = np.where(random.random(n) < share, random.integers(1, grades + 1, n), 0)
    scale = random.choice([1e-3, 1.0, 30.0, 1e6], len(sizes))[owner]
    score = np.clip(random.normal(size=n) * scale, -1e6, 1e6)
    tied = random.choice([False, True], len(sizes))[owner]
    score = np.where(tied, np.round(score / scale), score)  # some are -0.0
    score[random.random(n) < random.choice([0.0, 0.2, 1.0], len(sizes))[owner]] = np.nan
    listed = random.choice([0, 1], len(sizes))[owner] * random.integers(1, 40, n)
    held = random.choice([0, 1], len(sizes))[owner] * random.choice([1, 1, 1, 2], n)
    slate = np.zeros(len(sizes), np.int64)
    user = np.arange(len(sizes)).astype(np.uint64)
    is_clicked = random.random(n) < share
    sign = np.ones(len(sizes), np.int64)
    return RankedFacts(
        slate, slate, user, start, grade, is_clicked, score, listed * 3 + held, sign
    )  # fmt: skip


def members(fact: RankedFacts) -> list[list[tuple[int, bool, float, int]]]:
    columns = (fact.grade, fact.is_clicked, fact.score, fact.probe)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    ends = [*fact.start.tolist()[1:], len(rows)]
    return [rows[a:b] for a, b in zip(fact.start.tolist(), ends, strict=True)]


class _Deltas:
    """Takes the amounts that a family adds."""

    rows: np.ndarray[Any, Any]

    def add_rows(self, event_ms: Any, segment: Any, stat: int, amounts: Any) -> None:
        self.rows = amounts


def amounts_in_python(settings: Settings, family: SlateFamily, fact: RankedFacts) -> Any:
    deltas, layout = _Deltas(), SimpleNamespace(at={family.name: 0})
    family._collect(settings, fact, layout, deltas)  # type: ignore[arg-type]
    return deltas.rows


def millionths_in_python(settings: Settings, family: SlateFamily, fact: RankedFacts) -> Any:
    lists = Lists(fact, settings.gains, settings.metrics.margin)
    found = []
    for column in family.plan(settings).columns:
        metric = column.metric
        contains = metric.population.contains
        belongs = contains(lists) if contains else np.ones(len(lists), np.bool_)
        units = np.where(belongs, metric.value(lists, column.k, column.convention), 0)
        found.append((units + 500) // 1000)
    return np.array(found).T


def in_core(
    settings: Settings, family: SlateFamily, fact: RankedFacts, incremental: bool = False
) -> tuple[Any, Any]:
    spec = spec_of(settings, family)
    found = _core.slate_amounts(json.dumps(spec), members(fact), incremental)
    return np.array([a for a, _ in found]), np.array([m for _, m in found])


def spec_of(settings: Settings, family: SlateFamily) -> dict[str, Any]:
    tables = core_tables(settings.gains, settings.metrics.margin)
    return {"tables": tables, "family": family.core_spec(settings)}


SETTINGS = [
    settings_of({"click": 1.0}, [1, 3, 10]),
    settings_of({"click": 0.1, "like": 2.7, "share": 30.0}, [1, 2, 5, 20, 1000], 0.3),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["one grade", "three grades"])
@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize("seed", range(3))
def test_amounts_are_those_of_python(settings: Settings, name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    family = FAMILIES[name]
    fact = slates(random, [int(n) for n in random.integers(1, 61, 1500)], len(settings.gains))
    expected = amounts_in_python(settings, family, fact)
    assert (expected[:, len(family.populations) :] != 0).any(axis=0).sum() > 5
    amounts, millionths = in_core(settings, family, fact)
    np.testing.assert_array_equal(amounts, expected)
    np.testing.assert_array_equal(millionths, millionths_in_python(settings, family, fact))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_slates_of_a_thousand(name: str) -> None:
    random = np.random.default_rng(7)
    fact = slates(random, [1000, 1, 999, 1000, 2, 1000, 1000, 1000], 3)
    expected = amounts_in_python(SETTINGS[1], FAMILIES[name], fact)
    np.testing.assert_array_equal(in_core(SETTINGS[1], FAMILIES[name], fact)[0], expected)


def test_losses_that_are_kept_are_those_computed_anew() -> None:
    random = np.random.default_rng(11)
    fact = slates(random, [int(n) for n in random.integers(1, 61, 800)] + [1000] * 4, 3)
    kept, _ = in_core(SETTINGS[1], FAMILIES["scoring"], fact, incremental=True)
    np.testing.assert_array_equal(kept, in_core(SETTINGS[1], FAMILIES["scoring"], fact)[0])


def test_softplus_has_the_same_bits() -> None:
    random = np.random.default_rng(5)
    x = random.normal(size=200_000) * random.choice([1e-9, 1e-3, 1.0, 30.0, 400.0], 200_000)
    x = np.append(x, [0.0, -0.0, 745.0, -745.0, 708.4, -708.4, 2e6, -2e6, 1e-300, 5e-324])
    found = np.array([_core.softplus_for_tests(float(value)) for value in x])
    np.testing.assert_array_equal(found.view(np.int64), softplus(x).view(np.int64))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "no_such", "no value"),
        ("convention", "shown", "no convention"),
        ("population", "nobody", "no population"),
        ("k", 1001, "cut-offs"),
        ("square_limbs", 3, "limbs"),
        ("at", 0, "outside"),
        ("at", 10**6, "outside"),
    ],
)
def test_what_is_unknown_is_an_error_at_start(field: str, value: Any, message: str) -> None:
    spec = spec_of(SETTINGS[0], FAMILIES["scoring"])
    spec["family"]["columns"][0][field] = value
    with pytest.raises(ValueError, match=message):
        _core.slate_amounts(json.dumps(spec), [], False)
