"""Values of slates, computed in integers: ragged lists of graded members, and how they are rounded.

A value is an integer of units of 1e-9, rounded half up once; the tables that it is made of have 20
bits more. So a slate gives the same value on every machine and in every batch, and what was put is
taken back exactly.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from streamer import limits
from streamer.batch import F64, I64, Bools
from streamer.engine.facts import RankedFacts

UNIT = 10**9
"""Units of a value that is 1."""
TABLE_BITS = 20


def _reciprocals() -> I64:
    top = UNIT << TABLE_BITS
    return np.array([0] + [(2 * top + i) // (2 * i) for i in range(1, limits.MAX_ITEMS + 1)])


def _discounts() -> I64:
    with decimal.localcontext() as context:
        context.prec = 50
        top = decimal.Decimal(UNIT << TABLE_BITS) * decimal.Decimal(2).ln()
        logs = (decimal.Decimal(i + 1).ln() for i in range(1, limits.MAX_ITEMS + 1))
        return np.array([0] + [int((top / log).to_integral_value()) for log in logs], np.int64)


RECIPROCAL = _reciprocals()
"""1 / i of rank i, in units of a table."""


@lru_cache(maxsize=64)
def exponential(gain: float) -> float:
    """2**gain - 1, rounded once: powers of C libraries differ in their last bits."""
    with decimal.localcontext() as context:
        context.prec = 50
        return float(decimal.Decimal(2) ** decimal.Decimal(gain) - 1)


DISCOUNT = _discounts()
"""1 / log2(i + 1) of rank i, in units of a table."""
_IDEAL = np.cumsum(DISCOUNT)


def core_tables(gains: Sequence[float], margin: float) -> dict[str, Any]:
    """The numbers that the core makes values of, which it does not compute itself."""
    return {
        "gains": list(gains),
        "exponential_gains": [exponential(gain) for gain in gains],
        "margin": margin,
        "reciprocal": RECIPROCAL.tolist(),
        "discount": DISCOUNT.tolist(),
    }


def quotient(above: I64, below: I64) -> I64:
    """above / below in units; 0 where ``below`` is 0."""
    safe = np.maximum(below, 1)
    return np.where(below > 0, (2 * UNIT * above + safe) // (2 * safe), 0)


def rounded(value: F64) -> I64:
    """A double in units."""
    return np.floor(value * 1e9 + 0.5).astype(np.int64)


def from_table(value: I64) -> I64:
    """Units of a table in units."""
    return (value + (1 << (TABLE_BITS - 1))) >> TABLE_BITS


class Lists:
    """Slates with their members, as a fact tells of them.

    ``gains``: of the grades from 1; ``margin``: of the margin loss. Arrays named in the singular
    have an entry a member; ``size``, ``relevant_count`` and what functions return an entry a slate.
    """

    def __init__(self, fact: RankedFacts, gains: Sequence[float], margin: float) -> None:
        self.fact, self.gains, self.margin = fact, gains, margin
        self.start, self.grade, self.score = fact.start, fact.grade, fact.score
        self.size: I64 = np.diff(np.append(fact.start, len(fact.grade)))
        self.owner = np.repeat(np.arange(len(self.start)), self.size)
        self.rank = np.arange(len(self.owner)) - self.start[self.owner] + 1
        self.is_relevant: Bools = self.grade > 0
        self.is_scored: Bools = ~np.isnan(self.score)
        self.memo: dict[str, list[I64]] = {}
        """What several values are made of."""

    def __len__(self) -> int:
        return len(self.start)

    def total(self, value: I64 | Bools) -> I64:
        """Sum over the members of each slate."""
        return np.add.reduceat(value, self.start, dtype=np.int64)

    def running(self, value: Bools) -> I64:
        """How many members from the first one on, up to and with each."""
        count = np.cumsum(value)
        return count - (count[self.start] - value[self.start])[self.owner]

    @cached_property
    def relevant_count(self) -> I64:
        return self.total(self.is_relevant)

    @cached_property
    def hits(self) -> I64:
        """Relevant members from the first one on, up to and with each."""
        return self.running(self.is_relevant)

    @cached_property
    def at_grade(self) -> list[Bools]:
        """Members of each grade, ascending from 1."""
        return [self.grade == grade for grade in range(1, len(self.gains) + 1)]

    def hits_within(self, k: int) -> I64:
        """Relevant members among the first k."""
        return self.total(self.is_relevant & (self.rank <= k))

    def gained(self, weight: I64, k: int, gains: Sequence[float]) -> F64:
        """Sum of gain * weight over the first k members; grades are added in ascending order."""
        within = np.where(self.rank <= k, weight, 0)
        result = np.zeros(len(self))
        for gain, at in zip(gains, self.at_grade, strict=True):
            result += gain * self.total(np.where(at, within, 0)).astype(np.float64)
        return result

    def ideally_discounted(self, k: int, gains: Sequence[float]) -> F64:
        """Sum of gain / log2(i + 1), in units of a table, of the best order of the members."""
        counts = [self.total(at) for at in self.at_grade]
        above = np.zeros(len(self), np.int64)
        sums: list[I64] = []
        for count in reversed(counts):
            first, last = np.minimum(above, k), np.minimum(above + count, k)
            sums.append(_IDEAL[last] - _IDEAL[first])
            above += count
        result = np.zeros(len(self))
        for gain, discounts in zip(gains, reversed(sums), strict=True):
            result += gain * discounts.astype(np.float64)
        return result

    @cached_property
    def ordered_pairs(self) -> tuple[I64, I64]:
        """Pairs of different grade in which the higher grade comes first, and comes last."""
        concordant, discordant = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        for grade, at in enumerate(self.at_grade, 1):
            lower = self.grade < grade
            before = np.where(at, self.running(lower), 0)
            discordant += self.total(before)
            concordant += self.total(lower) * self.total(at) - self.total(before)
        return concordant, discordant

    @property
    def is_contrasted(self) -> Bools:
        """Slates with members of different grade."""
        concordant, discordant = self.ordered_pairs
        return concordant + discordant > 0
