"""Slates with known feedback, and the event log of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from streamer.sources.line_batch import Line

GAINS = {"click": 1, "like": 2, "save": 4, "buy": 5}
"""Kind of feedback → gain; whole numbers, since trec_eval takes no others."""
START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Item:
    """A shown item, the kinds of feedback that it got, and its score if it has one."""

    name: str
    kinds: tuple[str, ...] = ()
    score: float | None = None

    @property
    def grade(self) -> int:
        return max((GAINS[kind] for kind in self.kinds), default=0)

    @property
    def is_clicked(self) -> bool:
        return "click" in self.kinds


@dataclass(frozen=True)
class Slate:
    """What a request showed, in its order. ``wanted``: clicked, though not shown here."""

    name: str
    items: tuple[Item, ...]
    wanted: tuple[str, ...] = ()
    held_out: str | None = None
    reference: tuple[str, ...] = ()

    @cached_property
    def grades(self) -> list[int]:
        return [item.grade for item in self.items]

    @cached_property
    def scored(self) -> list[Item]:
        return [item for item in self.items if item.score is not None]


@dataclass(frozen=True)
class Case:
    """Slates and the cut-offs to compare them at. ``kind``: binary, graded or probed."""

    kind: str
    slates: tuple[Slate, ...]
    cutoffs: tuple[int, ...]


def five_users() -> Case:
    """Five users of whom libraries disagree: one with nothing relevant, one with nothing shown."""
    return Case(
        "binary",
        (
            Slate("u1", _items("A", "B+", "C+"), wanted=("Z",)),
            Slate("u2", _items("A", "B", "C")),
            Slate("u3", _items("A+")),
            Slate("u4", (), wanted=("X",)),
            Slate("u5", _items("A+", "B", "C")),
        ),
        (2,),
    )


def _items(*names: str) -> tuple[Item, ...]:
    return tuple(Item(x.rstrip("+"), ("click",) if x.endswith("+") else ()) for x in names)


def graded(name: str, *grades: int) -> Slate:
    """A slate with these grades."""
    kinds: dict[int, tuple[str, ...]] = {gain: (kind,) for kind, gain in GAINS.items()}
    return Slate(name, tuple(Item(f"i{i}", kinds.get(g, ())) for i, g in enumerate(grades)))


def random_case(kind: str, count: int = 300, seed: int = 20) -> Case:
    """Slates of 1 to 20 items; 20 as a cut-off is the whole slate."""
    dice = Random(f"{kind} {seed}")
    slates = (_random_slate(dice, f"s{i:03}", kind) for i in range(count))
    return Case(kind, tuple(slates), (1, 5, 10, 20))


def _random_slate(dice: Random, name: str, kind: str) -> Slate:
    names = [f"i{i:02}" for i in range(dice.randint(1, 20))]
    share = dice.choice((0.0, 0.1, 0.2, 0.4, 0.7, 1.0))
    has_scores = dice.choice((0.0, 0.8, 1.0, 1.0))
    kinds = ("click",) if kind == "binary" else tuple(GAINS)
    items = []
    for item in names:
        has_score, decimals = dice.random() < has_scores, dice.choice((0, 17))
        score = round(dice.gauss(0, 3), decimals) if has_score else None
        given = dice.sample(kinds, dice.randint(1, len(kinds))) if dice.random() < share else []
        items.append(Item(item, tuple(given), score))
    held_out: str | None = None
    reference: tuple[str, ...] = ()
    if kind == "probed":
        known = [*names, *(f"x{i}" for i in range(10))]
        held_out = dice.choice((None, dice.choice(names), "never shown"))
        reference = tuple(dice.sample(known, dice.randint(1, len(known)))) * dice.randint(0, 1)
    wanted = ("Z",) if dice.random() < 0.2 else ()
    return Slate(name, tuple(items), wanted, held_out, reference)


# As a log -------------------------------------------------------------------------------------


def log_of(slates: tuple[Slate, ...], seed: int = 1) -> list[Line]:
    """Lines in the order of their times: slates by one event or by many, shuffled, and feedback."""
    dice = Random(seed)
    events = []
    for number, slate in enumerate(slates):
        shown_ms = START_MS + 1000 * number
        events += [(shown_ms, event) for event in _impressions(dice, slate)]
        for item, kind in _feedback(slate):
            event = {"type": "click", "item_id": item, "feedback": kind}
            events.append((shown_ms + dice.randint(1, 60_000), event | _request(slate)))
    dice.shuffle(events)
    return [_line(ms, event) for ms, event in sorted(events, key=lambda pair: pair[0])]


def _request(slate: Slate) -> dict[str, Any]:
    return {"user_id": slate.name, "request_id": "r"}


def _feedback(slate: Slate) -> Iterator[tuple[str, str]]:
    yield from ((item.name, kind) for item in slate.items for kind in item.kinds)
    yield from ((item, "click") for item in slate.wanted)


def _impressions(dice: Random, slate: Slate) -> list[dict[str, Any]]:
    shown = [
        {"item_id": item.name, "position": rank}
        | ({"score": item.score} if item.score is not None else {})
        for rank, item in enumerate(slate.items, 1)
    ]
    dice.shuffle(shown)
    probes = ({"held_out": slate.held_out} if slate.held_out else {}) | (
        {"reference": slate.reference} if slate.reference else {}
    )
    event = {"type": "impression", "slate": slate.name} | _request(slate)
    if dice.random() < 0.5:
        with_probes = dice.randrange(len(shown))
        return [event | item | (probes if i == with_probes else {}) for i, item in enumerate(shown)]
    return [event | probes | {"items": shown}]


def _line(ms: int, event: dict[str, Any]) -> Line:
    kind = "impressions" if event["type"] == "impression" else "clicks"
    return kind, ms, json.dumps(event | {"ts": ms}).encode()
