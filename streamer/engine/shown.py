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
    apart; NEVER where there is no slate.
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


def cut(starts: I64, before: I64, rows: int, is_slate: Bools) -> tuple[I64, I64]:
    """Groups cut where their slates are full: starts, and how many rows of the slate are before."""
    counts = np.diff(np.append(starts, rows))
    over = is_slate & (before < limits.MAX_ITEMS) & (before + counts > limits.MAX_ITEMS)
    if not over.any():
        return starts, before
    cuts = starts[over] + limits.MAX_ITEMS - before[over]
    starts = np.concatenate([starts, cuts])
    order = np.argsort(starts)
    before = np.concatenate([before, np.full(len(cuts), limits.MAX_ITEMS)])
    return starts[order], before[order]
