"""Values of single slates: by the core, and by the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from streamer._core import slate_amounts
from streamer.metrics import ranking, scoring
from streamer.metrics.slate_metrics import SlateFamily
from streamer.metrics.slates import core_tables
from streamer.settings.model import Settings
from tests.oracle import ranking as by_rank
from tests.oracle import scoring as by_score
from tests.oracle.slate_readings import graded_measures, probed_measures, scored_measures

FAMILIES: Mapping[str, SlateFamily] = {
    "ranking": ranking.slate_metric,
    "scoring": scoring.slate_metric,
}


LISTED = 39


@dataclass(frozen=True)
class Item:
    """A shown item. ``grade``: place of its gain from 1, 0 for none; ``listed``: its rank in the
    brute-force list, 0: it is not in it, None: there is no list; ``is_held_out`` None: no item
    was held out. A list has ``LISTED`` items."""

    grade: int = 0
    is_clicked: bool = False
    score: float | None = None
    listed: int | None = None
    is_held_out: bool | None = None

    def for_core(self) -> tuple[int, bool, float, int, bool]:
        score = float("nan") if self.score is None else self.score
        return self.grade, self.is_clicked, score, self.listed or 0, bool(self.is_held_out)


Slate = Sequence[Item]
Values = dict[tuple[str, int, str], int]
"""Value by name, k and convention."""


def random_slate(dice: Random, size: int, grades: int) -> list[Item]:
    """Slates of many kinds: without scores, with ties, with lists, all or nothing relevant."""
    share, scale = dice.choice((0.0, 0.05, 0.3, 0.9, 1.0)), dice.choice((1e-3, 1.0, 30.0, 1e6))
    unscored, is_tied = dice.choice((0.0, 0.2, 1.0)), dice.random() < 0.5
    has_list, is_sampled = dice.random() < 0.5, dice.random() < 0.5
    ranks = [*range(1, LISTED + 1), *[0] * size]
    dice.shuffle(ranks)
    items = []
    for i in range(size):
        score: float | None = max(-1e6, min(1e6, dice.gauss(0, 1) * scale))
        if is_tied:
            score = float(round((score or 0.0) / scale))  # some are -0.0
        items.append(
            Item(
                dice.randint(1, grades) if dice.random() < share else 0,
                dice.random() < share,
                None if dice.random() < unscored else score,
                ranks[i] if has_list else None,
                dice.random() < 0.2 if is_sampled else None,
            )
        )
    return items


def spec_of(settings: Settings, family: SlateFamily) -> dict[str, Any]:
    """What the core is told of one family."""
    tables = core_tables(settings.gains, settings.metrics.margin)
    return {"tables": tables, "family": family.core_spec(settings)}


def in_core(
    settings: Settings, family: SlateFamily, slates: Sequence[Slate], incremental: bool = False
) -> list[tuple[list[int], list[int]]]:
    """Of each slate the amounts of the family's statistic, and the millionths of its values."""
    given = [
        (
            [item.for_core() for item in slate],
            LISTED if any(item.listed is not None for item in slate) else 0,
            any(item.is_held_out is not None for item in slate),
        )
        for slate in slates
    ]
    return slate_amounts(json.dumps(spec_of(settings, family)), given, incremental)


def core_values(settings: Settings, family: SlateFamily, slate: Slate) -> Values:
    """The values of a slate, in units, 0 outside of their population."""
    ((amounts, _),) = in_core(settings, family, [slate])
    found = {}
    for column in family.plan(settings).columns:
        high, low = amounts[column.at : column.at + 2]
        units = high if column.moments.is_single else (high << 30) + low
        found[column.metric.name, column.k, column.convention] = units
    return found


def oracle_values(settings: Settings, slate: Slate) -> tuple[set[str], Values]:
    """The populations that a slate belongs to, and its values there."""
    gains = [0.0, *settings.gains]
    grades = tuple(gains[item.grade] for item in slate)
    scored = [
        by_score.Scored(item.score, item.is_clicked, item.grade > 0)
        for item in slate
        if item.score is not None
    ]
    pairs, leads = by_score.clicked_pairs(scored), by_score.differences(scored)
    held = [rank for rank, item in enumerate(slate, 1) if item.is_held_out]
    inside: dict[str, tuple[bool, Callable[[Any], int]]] = {
        "engaged": (by_rank.relevant(grades) > 0, lambda m: m.value(grades)),
        "contrasted": (by_rank.is_contrasted(grades), lambda m: m.value(grades)),
        "gauc": (bool(pairs), lambda m: m.value(pairs)),
        "paired": (bool(leads), lambda m: m.value(leads)),
        "sampled": (
            any(item.is_held_out is not None for item in slate),
            lambda m: m.value(min(held, default=None)),
        ),
        "reference": (
            any(item.listed is not None for item in slate),
            lambda m: _index_recall(slate, int(dict(m.labels)["k"])),
        ),
    }
    measures = graded_measures(settings) | scored_measures(settings) | probed_measures(settings)
    values = {}
    for population, its in measures.items():
        is_in, value = inside[population]
        for measure in its if is_in else ():
            labels = dict(measure.labels)
            key = measure.name, int(labels.get("k", 0)), labels.get("convention", "")
            values[key] = value(measure)
    return {name for name, (is_in, _) in inside.items() if is_in}, values


def _index_recall(slate: Slate, k: int) -> int:
    found = sum(item.listed is not None and 1 <= item.listed <= k for item in slate[:k])
    return by_rank.quotient(found, min(k, LISTED))
