"""Values of single slates: as the engine stores them, and by the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from streamer.encoding.arrays import I64
from streamer.metrics import ranking, scoring
from streamer.metrics.slate_metrics import SlateFamily
from streamer.settings.model import Settings
from tests.oracle import ranking as by_rank
from tests.oracle import scoring as by_score
from tests.oracle.slate_readings import graded_measures, probed_measures, scored_measures
from tests.support.agreement import run_engines
from tests.support.engines import LogRecord
from tests.support.stored_sums import by_segment

FAMILIES: Mapping[str, SlateFamily] = {
    "ranking": ranking.slate_metric,
    "scoring": scoring.slate_metric,
}


LISTED = 39
T0 = 1_700_000_000_000


@dataclass(frozen=True)
class Item:
    """A shown item. ``given``: kinds of feedback; ``listed``: its rank in the brute-force list, 0:
    it is not in it, None: there is no list; ``is_held_out`` None: no item was held out. A list has
    ``LISTED`` items."""

    given: tuple[str, ...] = ()
    score: float | None = None
    listed: int | None = None
    is_held_out: bool | None = None

    def gain(self, settings: Settings) -> float:
        """The largest of its feedback."""
        return max((settings.metrics.feedback[kind] for kind in self.given), default=0.0)


Slate = Sequence[Item]
Values = dict[tuple[str, int, str], int]
"""Value by name, k and convention."""


def random_slate(dice: Random, size: int, kinds: Sequence[str]) -> list[Item]:
    """Slates of many kinds: without scores, with ties, with lists, all or nothing relevant."""
    share, scale = dice.choice((0.0, 0.05, 0.3, 0.9, 1.0)), dice.choice((1e-3, 1.0, 30.0, 1e6))
    unscored, is_tied = dice.choice((0.0, 0.2, 1.0)), dice.random() < 0.5
    has_list, is_sampled = dice.random() < 0.5, dice.random() < 0.5
    ranks = [*range(1, LISTED + 1), *[0] * size]
    dice.shuffle(ranks)
    held_out = dice.randrange(2 * size)
    items = []
    for i in range(size):
        score: float | None = max(-1e6, min(1e6, dice.gauss(0, 1) * scale))
        if is_tied:
            score = float(round((score or 0.0) / scale))  # some are -0.0
        given = [kind for kind in (dice.choice(kinds), "click") if dice.random() < share]
        items.append(
            Item(
                tuple(given),
                None if dice.random() < unscored else score,
                ranks[i] if has_list else None,
                i == held_out if is_sampled else None,
            )
        )
    return items


def records_of(slates: Sequence[Slate], dimension: str) -> list[LogRecord]:
    """A log of slates, each of a user and of a value of the dimension of its own."""
    logs: dict[str, list[bytes]] = {"impressions": [], "clicks": []}
    for number, slate in enumerate(slates):
        base: dict[str, Any] = {"ts": T0, "user_id": f"u{number}", "request_id": "r"}
        base[dimension] = str(number)
        names = [f"i{rank}" for rank in range(len(slate))]
        of_list = {item.listed: name for item, name in zip(slate, names, strict=True)}
        shown: dict[str, Any] = {"items": [], **base}
        if any(item.listed is not None for item in slate):
            every = range(1, LISTED + 1)
            shown["reference"] = [of_list.get(rank, f"other-{rank}") for rank in every]
        if any(item.is_held_out is not None for item in slate):
            held = [n for item, n in zip(slate, names, strict=True) if item.is_held_out]
            shown["held_out"] = held[0] if held else "other"
        for item, name in zip(slate, names, strict=True):
            score = {} if item.score is None else {"score": item.score}
            shown["items"].append({"item_id": name, **score})
            for kind in item.given:
                event = {**base, "item_id": name, "feedback": kind}
                logs["clicks"].append(json.dumps(event).encode())
        logs["impressions"].append(json.dumps(shown).encode())
    return [
        LogRecord(topic, 0, offset, T0, line)
        for topic, lines in logs.items()
        for offset, line in enumerate(lines)
    ]


def amounts(settings: Settings, slates: Sequence[Slate]) -> list[I64]:
    """What the engine stores of each slate, as the layout has it. The settings' only dimension
    keeps a value for each."""
    (dimension,) = settings.dimension_names
    engines = run_engines(settings, 1, records_of(slates, dimension), 10**6)
    found = by_segment(engines, ring=1)
    assert len(found) == len(slates)
    return [found[str(number),] for number in range(len(slates))]


def units(settings: Settings, family: SlateFamily, its: Sequence[int]) -> Values:
    """The values of a slate, in units, 0 outside of their population. ``its``: what is stored of
    the family."""
    found = {}
    for column in family.plan(settings).columns:
        high, low = its[column.at : column.at + 2]
        one = high if column.moments.is_single else (high << 30) + low
        found[column.metric.name, column.k, column.convention] = int(one)
    return found


def oracle_values(settings: Settings, slate: Slate) -> tuple[set[str], Values]:
    """The populations that a slate belongs to, and its values there."""
    grades = tuple(item.gain(settings) for item in slate)
    scored = [
        by_score.Scored(item.score, "click" in item.given, item.gain(settings) > 0)
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
