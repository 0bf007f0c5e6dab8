"""Newly shown items, and how they are divided into slates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer import limits
from streamer.batch import F64, I64, U64, Bools
from streamer.engine.chains import runs_of


@dataclass(slots=True)
class Shown:
    """Columns of newly shown items, in (offset, index) order; ``slate`` 0: has none.

    ``opened_ms``: arrival of the first row of the slate, which tells slates of one request id
    apart; NEVER where there is no slate. ``before``: how many rows its earlier groups have.
    """

    user: U64
    slate: U64
    item: U64
    event_ms: I64
    arrival_ms: I64
    offset: I64
    index: I64
    position: I64
    segment: I64
    score: F64
    probe: I64
    opened_ms: I64
    before: I64

    def __len__(self) -> int:
        return len(self.item)

    def where(self, mask: Bools | I64) -> Shown:
        return Shown(*(getattr(self, name)[mask] for name in self.__slots__))


def reopened(opened_ms: I64, starts: I64, arrival_ms: I64, reign_ms: int) -> I64:
    """When the slate of each row was opened, given those of the first rows of runs (at ``starts``):
    a row that comes later than the reign opens another one."""
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(arrival_ms))))
    opened = opened_ms[run]
    while True:
        late = np.flatnonzero(arrival_ms - opened > reign_ms)
        if not len(late):
            return opened
        heads = late[runs_of(run[late])]
        again = np.full(len(starts), len(run))
        again[run[heads]] = heads
        after = np.arange(len(run)) >= again[run]
        opened[after] = arrival_ms[again[run[after]]]


def rows_before(before: I64, starts: I64, rows: int) -> I64:
    """How many rows of its slate's earlier groups each row has before it, given those of runs (at
    ``starts``): what comes when a slate is full belongs to a group of its own."""
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows)))
    place = before[run] + np.arange(rows) - starts[run]
    return np.where(
        place >= limits.MAX_ITEMS, np.maximum(before[run], limits.MAX_ITEMS), before[run]
    )
