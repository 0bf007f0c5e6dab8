"""What the scores of one slate's items are worth: integers in units of 1e-9, rounded once.

Only items that have a score are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .ranking import quotient, rounded
from .slates import Slate


@dataclass(frozen=True)
class Scored:
    """Items of a slate that have a score."""

    score: float
    clicked: bool
    relevant: bool


def scored(slate: Slate) -> list[Scored]:
    return [
        Scored(m.row.shown.score, m.row.clicked, m.is_relevant)
        for m in slate.members
        if m.row.shown.score is not None
    ]


def clicked_pairs(items: list[Scored]) -> list[tuple[float, float]]:
    """Scores of each clicked item, and of each that was not."""
    return [(a.score, b.score) for a in items if a.clicked for b in items if not b.clicked]


def differences(items: list[Scored]) -> list[float]:
    """By how much each relevant item's score is above that of each other one."""
    return [a.score - b.score for a in items if a.relevant for b in items if not b.relevant]


def gauc(pairs: list[tuple[float, float]]) -> int:
    """The share of pairs in which the clicked item has the higher score; equal ones are half so."""
    halves = sum(2 * (a > b) + (a == b) for a, b in pairs)
    return quotient(halves, 2 * len(pairs))


def mean_loss(differences: list[float], loss: Callable[[float], float]) -> int:
    """Whole parts and fractions of the losses are added apart: exact in any order."""
    losses = [loss(difference) for difference in differences]
    whole = sum(math.floor(x) for x in losses)
    parts = sum(math.floor((x - math.floor(x)) * 2.0**40 + 0.5) for x in losses)
    return rounded((float(whole) + float(parts) / 2.0**40) / float(len(losses)) * 1e9)


def bpr(difference: float) -> float:
    """-ln(sigmoid(difference)), as it does not overflow."""
    return max(-difference, 0.0) + math.log1p(math.exp(-abs(difference)))


def hinge(difference: float, margin: float = 1.0) -> float:
    return max(0.0, margin - difference)
