"""Intervals of one key that lie close together are one: the rule of sessions and of viewings.

A row is the union of such intervals, with a summary of what was in them. Because intervals only
grow together, rows do not depend on the order in which their parts came. Rows change, so they are
stored in versions: ``id`` tells which row, ``epoch`` between which commits it last changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.batch import I64, U64
from streamer.engine.acceptance import NEVER
from streamer.engine.chains import Chains, runs_of
from streamer.engine.table import Table

Columns = Mapping[str, np.ndarray[Any, Any]]
_COMPACT_ROWS = 4096


def together(key: U64, low_ms: I64, high_ms: I64, gap_ms: int) -> tuple[I64, I64]:
    """Rows in the order of (key, low), and where in that order each union begins.

    A row begins one unless less than ``gap_ms`` lies between it and what came before of its key.

    >>> key = np.array([1, 1, 1, 2], np.uint64)
    >>> together(key, np.array([0, 90, 50, 60]), np.array([10, 95, 55, 60]), 40)
    (array([0, 2, 1, 3]), array([0, 1, 3]))
    """
    order = np.lexsort((high_ms, low_ms, key))
    key, low_ms, high_ms = key[order], low_ms[order], high_ms[order]
    first = np.concatenate(([True], key[1:] != key[:-1]))
    rank = np.cumsum(first) - 1
    floor = int(high_ms.min())
    shift = rank * (int(high_ms.max()) - floor + 1)  # keeps the running maximum within its key
    reach_ms = np.maximum.accumulate(high_ms - floor + shift) - shift + floor
    begins = first.copy()
    begins[1:] |= low_ms[1:] - reach_ms[:-1] >= gap_ms
    return order, np.flatnonzero(begins)


@dataclass(frozen=True)
class Change:
    """Rows before and after: what was told of the first is taken back, the others are told."""

    before: Columns
    after: Columns


class IntervalTable:
    """Rows by key. Subclasses say which columns a row has, and how those of a union are reduced."""

    def __init__(self, gap_ms: int, reach_ms: int, limit: int, **summary: Any) -> None:
        self.gap_ms, self.reach_ms, self.limit = gap_ms, reach_ms, limit
        self.evidence = ("key", "low_ms", "high_ms", *summary)
        self.rows = Table(
            key=np.uint64,
            low_ms=np.int64,
            high_ms=np.int64,
            **summary,
            id=np.int64,
            epoch=np.int64,
            alive=np.bool_,
            next=np.int32,
        )
        self.chains = Chains()
        self.epoch = 0
        self.evicted_early = 0
        self._is_changed = False
        self._settled_ms = NEVER
        self._next_id = 0
        self._compact_at = min(_COMPACT_ROWS, limit)
        self._loaded: list[dict[str, np.ndarray[Any, Any]]] = []

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.chains.index.nbytes

    def reduce(self, columns: Columns, starts: I64) -> dict[str, Any]:
        """The summary of each union; ``columns`` are those of its parts, from each start on."""
        raise NotImplementedError

    # Merging -------------------------------------------------------------------------------------

    def merge(self, parts: Columns) -> Change:
        """Take in new intervals: a dict of all columns of the evidence."""
        _, old = self.chains.walk(np.unique(parts["key"]), self.rows["next"])
        old = old[self.rows["alive"][old]]
        columns = {n: np.concatenate([self.rows[n][old], parts[n]]) for n in self.evidence}
        row = np.concatenate([old, np.full(len(parts["key"]), -1)])
        order, starts = together(columns["key"], columns["low_ms"], columns["high_ms"], self.gap_ms)
        is_touched = np.minimum.reduceat(row[order], starts) < 0
        union = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
        order = order[is_touched[union]]
        union = union[is_touched[union]]
        starts = runs_of(union)
        columns = {name: column[order] for name, column in columns.items()}
        row = row[order]
        before = {name: column[row >= 0] for name, column in columns.items()}
        after = {
            "key": columns["key"][starts],
            "low_ms": np.minimum.reduceat(columns["low_ms"], starts),
            "high_ms": np.maximum.reduceat(columns["high_ms"], starts),
            **self.reduce(columns, starts),
        }
        self._replace(row, starts, after)
        return Change(before, after)

    def _replace(self, row: I64, starts: I64, after: dict[str, Any]) -> None:
        """Write unions over the first of their old rows, or add rows; the others are no more."""
        rows = self.rows
        known = np.where(row < 0, np.iinfo(np.int64).max, row)
        target = np.minimum.reduceat(known, starts)
        gone = np.setdiff1d(row[row >= 0], target)
        rows["alive"][gone], rows["epoch"][gone] = False, self.epoch
        is_held = target < np.iinfo(np.int64).max
        for name in self.evidence:
            rows[name][target[is_held]] = after[name][is_held]
        rows["epoch"][target[is_held]] = self.epoch
        n = int(np.count_nonzero(~is_held))
        ids = np.arange(self._next_id, self._next_id + n)
        self._next_id += n
        self._add({name: after[name][~is_held] for name in self.evidence}, ids, self.epoch)
        self._is_changed = True

    def _add(self, columns: Columns, ids: I64, epoch: I64 | int) -> None:
        first = self.rows.append(
            {**columns, "id": ids, "epoch": epoch, "alive": True, "next": -1}, len(ids)
        )
        self.chains.link(columns["key"], np.arange(first, first + len(ids)), self.rows["next"])

    def change(self, row: I64, **columns: Any) -> Change:
        """Set columns of rows."""
        before = {name: self.rows[name][row].copy() for name in self.evidence}
        for name, values in columns.items():
            self.rows[name][row] = values
        self.rows["epoch"][row] = self.epoch
        self._is_changed = True
        return Change(before, {name: self.rows[name][row].copy() for name in self.evidence})

    # Leaving -------------------------------------------------------------------------------------

    def settled(self, clock_ms: int) -> Columns:
        """Rows that nothing can join any more, each once: what is said of them stays so."""
        until_ms = self.rows["high_ms"] + self.reach_ms
        row = np.flatnonzero(
            self.rows["alive"] & (until_ms >= self._settled_ms) & (until_ms < clock_ms)
        )
        self._settled_ms = max(self._settled_ms, clock_ms)
        return {name: self.rows[name][row] for name in self.evidence}

    def expire(self, clock_ms: int) -> None:
        """Forget rows that nothing can join any more, now and then; then the oldest beyond the
        bound. What is no more is kept as long, else its stored versions would come back (as those
        of what left beyond the bound may)."""
        if len(self.rows) <= self._compact_at:
            return
        keep = self.rows["high_ms"] + self.reach_ms >= clock_ms
        beyond = int(np.count_nonzero(keep)) - self.limit
        if beyond > 0:
            held = np.flatnonzero(keep)
            keep[held[np.argsort(self.rows["high_ms"][held], kind="stable")[:beyond]]] = False
            self.evicted_early += beyond
        self.rows.keep(keep)
        self.chains.rebuild(self.rows["key"].copy(), self.rows["next"])
        self._compact_at = min(2 * len(self.rows) + _COMPACT_ROWS, self.limit + self.limit // 8)

    # Stored form ---------------------------------------------------------------------------------

    def seal(self) -> None:
        """Changes from now on belong to another epoch."""
        self.epoch += self._is_changed
        self._is_changed = False

    def versions(self, first: int, end: int) -> dict[str, np.ndarray[Any, Any]]:
        """Rows that last changed in the epochs [first, end)."""
        epoch = self.rows["epoch"]
        row = np.flatnonzero((epoch >= first) & (epoch < end))
        return {name: self.rows[name][row] for name in (*self.evidence, "id", "alive")}

    def load(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        """Take stored versions, the oldest blob first; ``settle`` when all are there."""
        epoch = np.full(len(columns["id"]), self.epoch)
        self._loaded.append({**columns, "epoch": epoch})
        self.epoch += 1

    def settle(self, clock_ms: int) -> None:
        """Of the loaded versions the newest of each row counts, if it has not expired. What was
        settled by this time had been counted with what was loaded."""
        self._settled_ms = clock_ms
        if not self._loaded:
            return
        names = self._loaded[0]
        loaded = {name: np.concatenate([part[name] for part in self._loaded]) for name in names}
        self._loaded = []
        self._next_id = int(loaded["id"].max()) + 1
        _, last = np.unique(loaded["id"][::-1], return_index=True)
        newest = np.sort(len(loaded["id"]) - 1 - last)
        newest = newest[loaded["high_ms"][newest] + self.reach_ms >= clock_ms]
        columns = {name: loaded[name][newest] for name in self.evidence}
        self._add(columns, loaded["id"][newest], loaded["epoch"][newest])
        self.rows["alive"][:] = loaded["alive"][newest]
