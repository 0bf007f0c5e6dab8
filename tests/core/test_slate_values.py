"""Values of slates in the core are those of the oracle, to the last unit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from streamer._core import slate_amounts
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.moments import columns_of
from tests.support.slate_values import (
    FAMILIES,
    Slate,
    in_core,
    oracle_values,
    random_slate,
    spec_of,
)

CONVENTIONS = {
    "precision_ratio": ["shown"],
    "map_ratio": ["jurity", "primer"],
    "mar_ratio": ["jurity", "primer"],
    "ndcg_ratio": ["jurity", "exponential"],
    "kendall_tau": ["tau_b"],
}


def settings_of(feedback: dict[str, float], k: list[int], margin: float = 1.0) -> Settings:
    metrics = {"k": k, "margin": margin, "conventions": CONVENTIONS, "feedback": feedback}
    return parse({"metrics": metrics})


SETTINGS = [
    settings_of({"click": 1.0}, [1, 3, 10]),
    settings_of({"click": 0.1, "like": 2.7, "share": 30.0}, [1, 2, 5, 20, 1000], 0.3),
]


def compare(settings: Settings, name: str, slates: Sequence[Slate]) -> set[str]:
    """Assert that core and oracle say the same; which values were not always 0."""
    family, seen = FAMILIES[name], set()
    plan = family.plan(settings)
    for slate, (amounts, millionths) in zip(slates, in_core(settings, family, slates), strict=True):
        inside, values = oracle_values(settings, slate)
        for population, place in plan.populations.items():
            assert amounts[place] == (population in inside), population
        for column, found in zip(plan.columns, millionths, strict=True):
            metric = column.metric.name
            value = values.get((metric, column.k, column.convention), 0)
            its = amounts[column.at : column.at + column.moments.width]
            # Logarithms of C libraries differ in their last bits, and so may the rounded value.
            near = (value, value - 1, value + 1) if metric == "bpr_loss" else (value,)
            exact = next((v for v in near if columns_of(column.moments, [v]) == its), None)
            assert exact is not None, (metric, column.labels, value, its)
            assert found == (exact + 500) // 1000
            if value:
                seen.add(metric)
    return seen


@pytest.mark.parametrize("settings", SETTINGS, ids=["one grade", "three grades"])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_oracle(settings: Settings, name: str, seed: int) -> None:
    dice = Random(seed)
    slates = [random_slate(dice, dice.randint(1, 60), len(settings.gains)) for _ in range(150)]
    assert compare(settings, name, slates) == {m.name for m in FAMILIES[name].values}


@pytest.mark.parametrize("name", FAMILIES)
def test_slates_of_a_thousand(name: str) -> None:
    dice = Random(7)
    compare(SETTINGS[1], name, [random_slate(dice, n, 3) for n in (1000, 1, 999, 1000, 2)])


def test_cached_losses_are_those_computed_again() -> None:
    dice = Random(11)
    sizes = [*(dice.randint(1, 60) for _ in range(800)), *[1000] * 4]
    slates = [random_slate(dice, size, 3) for size in sizes]
    kept = in_core(SETTINGS[1], FAMILIES["scoring"], slates, incremental=True)
    assert kept == in_core(SETTINGS[1], FAMILIES["scoring"], slates)


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
        slate_amounts(json.dumps(spec), [], False)
