"""Random facts of all kinds, collected as the engine does: what the laws read metrics from."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from streamer.batch import I64
from streamer.config import Settings, parse
from streamer.engine.cells import Deltas
from streamer.engine.facts import (
    CONVERSION,
    DwellFacts,
    Fact,
    FeedbackFacts,
    OutcomeFacts,
    RankedFacts,
    SessionFacts,
    ShownFacts,
    SlateFacts,
)
from streamer.engine.user_sums import HITS, RATE_UNIT, USERS, positive_users, rate_sum, users_stats
from streamer.metrics.catalogue import Catalogue

SETTINGS: Settings = parse(
    {
        "metrics": {
            "feedback": {"click": 1, "like": 3},
            "k": [2, 5],
            "conventions": {
                "precision_ratio": ["shown"],
                "map_ratio": ["primer", "jurity"],
                "mar_ratio": ["jurity", "primer"],
                "ndcg_ratio": ["exponential", "jurity"],
                "kendall_tau": ["tau_b"],
            },
        }
    }
)
SEGMENTS, EMPTY = 12, 2
"""Segments, of which the last ones have nothing."""
SIZE = 12
"""Members of a slate: more than the ten that tests of retrieval look at."""


class FactSums:
    """Sums of facts, one row a segment. Is the metrics' ``Sums``; it adds, as partitions do."""

    user_sample_ratio = 1.0

    def __init__(self, catalogue: Catalogue, matrix: I64, young: I64, people: I64) -> None:
        self.catalogue, self.settings = catalogue, catalogue.settings
        self.matrix, self.young, self.people = matrix, young, people
        self.memo: dict[str, Any] = {}

    def __add__(self, other: FactSums) -> FactSums:
        matrix, young = self.matrix + other.matrix, self.young + other.young
        return FactSums(self.catalogue, matrix, young, self.people + other.people)

    @cached_property
    def nothing(self) -> FactSums:
        return FactSums(self.catalogue, 0 * self.matrix, 0 * self.young, 0 * self.people)

    def _pick(self, matrix: I64, name: str) -> I64:
        picked = matrix[..., self.catalogue.layout.span(name)]
        return picked[..., 0] if self.catalogue.layout.width[name] == 1 else picked

    def __call__(self, name: str) -> I64:
        return self._pick(self.matrix, name)

    def overall(self, name: str) -> I64:
        return self._pick(self.matrix.sum(axis=0), name)

    def users(self, stat: int) -> I64:
        row: I64 = self.people[stat]
        return row

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        return self._pick(self.matrix - self.young, name)


def sums(catalogue: Catalogue, seed: int, scope: str = "window") -> FactSums:
    """Of random facts; for totals what is settled."""
    dice = np.random.default_rng(seed)
    old, young = _facts(dice), _facts(dice)
    matrices = [_collected(catalogue, facts, scope) for facts in (old, young)]
    return FactSums(catalogue, matrices[0] + matrices[1], matrices[1], _people(dice))


def _collected(catalogue: Catalogue, facts: list[Fact], scope: str) -> I64:
    deltas, matrix = Deltas(1), np.zeros((SEGMENTS, catalogue.layout.size), np.int64)
    for fact in facts:
        (catalogue.collect if scope == "window" else catalogue.settle)(fact, deltas)
    _, segment, stat, amount = deltas.summed()
    np.add.at(matrix, (segment, stat), amount)
    for _, of, first, amounts in deltas.rows:
        for i, row in enumerate(of.tolist()):
            matrix[row, first : first + amounts.shape[1]] += amounts[i]
    return matrix


def _facts(dice: np.random.Generator) -> list[Fact]:
    n = 400
    at, none = np.zeros(n, np.int64), np.zeros(n, np.uint64)

    def drawn(top: int) -> I64:
        return dice.integers(0, top, n)

    def somewhere() -> tuple[I64, I64]:
        return at, drawn(SEGMENTS - EMPTY)

    user = dice.integers(0, 2**63, n).astype(np.uint64)
    kind = dice.choice([0, 0, 1, -1, CONVERSION], n)
    feedback = FeedbackFacts(
        *(*somewhere(), drawn(9), kind, drawn(10**7) * (kind == CONVERSION), user, none, none, at),
        *(drawn(100) - 1, kind == 0, 1),
    )
    clicked = dice.integers(0, 2, n)
    return [
        ShownFacts(*somewhere(), drawn(9), user, none),
        ShownFacts(*somewhere(), drawn(9), user[::-1].copy(), none),
        feedback,
        OutcomeFacts(*somewhere(), user, clicked, clicked * dice.integers(0, 2, n)),
        DwellFacts(*somewhere(), user, drawn(2_000_000), 1),
        SessionFacts(*somewhere(), user, drawn(9_000_000), drawn(4), 1),
        *slates(dice),
    ]


def slates(dice: np.random.Generator, n: int = 120) -> tuple[SlateFacts, RankedFacts]:
    """All slates, and those with feedback or probes; some have no relevant item."""
    at, segment = np.zeros(n, np.int64), dice.integers(0, SEGMENTS - EMPTY, n)
    size = SIZE
    members = n * size
    grade = dice.integers(0, 3, members) * (dice.random(members) < 0.4)
    score = np.where(dice.random(members) < 0.9, dice.normal(0, 2, members), np.nan)
    held = np.tile(np.arange(size) == 1, n).astype(np.int64)
    held = 1 + dice.permuted(held.reshape(n, size), axis=1).reshape(-1)
    probe = (dice.integers(0, size + 2, members)) * 3 + held
    probe = np.where(np.repeat(dice.random(n) < 0.7, size), probe, 0)
    user = np.arange(n).astype(np.uint64)
    ranked = RankedFacts(
        at, segment, user, size * np.arange(n), grade, grade > 0, score, probe, at + 1
    )
    return SlateFacts(at, segment, user, 1), ranked


def _people(dice: np.random.Generator) -> I64:
    """Sums over users that may be: no more clicked than were there."""
    kinds = len(SETTINGS.user_feedback_kinds)
    people = np.zeros((users_stats(kinds), SEGMENTS), np.int64)
    filled = slice(0, SEGMENTS - EMPTY)
    people[USERS, filled] = dice.integers(1, 60, SEGMENTS - EMPTY)
    people[HITS] = (people[USERS] * dice.random(SEGMENTS)).astype(np.int64)
    for kind in range(kinds):
        positive = (people[USERS] * dice.random(SEGMENTS)).astype(np.int64)
        people[positive_users(kind)] = positive
        people[rate_sum(kind)] = (positive * RATE_UNIT * dice.random(SEGMENTS)).astype(np.int64)
    return people
