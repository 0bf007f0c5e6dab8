"""Values of slates that the engine stores are those of the oracle, to the last unit."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.lanes import long, shortened
from tests.support.moments import columns_of
from tests.support.slate_values import FAMILIES, Slate, amounts, oracle_values, random_slate

CONVENTIONS = {
    "precision_ratio": ["shown"],
    "map_ratio": ["jurity", "primer"],
    "mar_ratio": ["jurity", "primer"],
    "ndcg_ratio": ["jurity", "exponential"],
    "kendall_tau": ["tau_b"],
}


def settings_of(feedback: dict[str, float], k: list[int], margin: float = 1.0) -> Settings:
    metrics = {"k": k, "margin": margin, "conventions": CONVENTIONS, "feedback": feedback}
    metrics["detailed"] = [["slate"]]
    return parse({"dimensions": [{"name": "slate", "max_values": 200}], "metrics": metrics})


SETTINGS = [
    settings_of({"click": 1.0}, [1, 3, 10]),
    settings_of({"click": 0.0, "nod": 0.1, "like": 2.7, "share": 30.0}, [1, 2, 5, 20, 1000], 0.3),
]


def compare(settings: Settings, slates: Sequence[Slate]) -> set[str]:
    """Assert that engine and oracle say the same; which values were not always 0."""
    layout, seen = Catalogue(settings).layout, set()
    for slate, stored in zip(slates, amounts(settings, slates), strict=True):
        inside, values = oracle_values(settings, slate)
        for name, family in FAMILIES.items():
            plan, of_family = family.plan(settings), stored[layout.span(name)].tolist()
            for population, place in plan.populations.items():
                is_in = population == "all" or population in inside
                assert of_family[place] == is_in, population
            for column in plan.columns:
                metric = column.metric.name
                value = values.get((metric, column.k, column.convention), 0)
                its = of_family[column.at : column.at + column.moments.width]
                # Logarithms of C libraries differ in their last bits, and so may the rounded value.
                near = (value, value - 1, value + 1) if metric == "bpr_loss" else (value,)
                exact = [v for v in near if columns_of(column.moments, [v]) == its]
                assert exact, (metric, column.labels, value, its)
                if value:
                    seen.add(metric)
    return seen


@pytest.mark.parametrize("settings", SETTINGS, ids=["one grade", "three grades"])
@pytest.mark.parametrize("seed", shortened(list(range(3))))
def test_values_are_those_of_the_oracle(settings: Settings, seed: int) -> None:
    dice, kinds = Random(seed), list(settings.metrics.feedback)
    slates = [random_slate(dice, dice.randint(1, 60), kinds) for _ in range(150)]
    every = {m.name for family in FAMILIES.values() for m in family.values}
    assert compare(settings, slates) == every


@long
def test_slates_of_a_thousand() -> None:
    dice, kinds = Random(7), list(SETTINGS[1].metrics.feedback)
    slates = [random_slate(dice, n, kinds) for n in (1000, 1, 999, 1000, 2)]
    assert compare(SETTINGS[1], slates)
