"""Rows of a table that share a key: newest first, linked through a column of the table."""

from __future__ import annotations

import numpy as np

from streamer.batch import I32, I64, U64
from streamer.engine.index import KeyIndex


def runs_of(keys: U64 | I64) -> I64:
    """Starts of the runs of equal neighbours."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))


def first_least(values: I64, starts: I64) -> I64:
    """Of each run, which begin at ``starts``, the first place with its least value."""
    least = np.minimum.reduceat(values, starts)
    places = np.flatnonzero(values == np.repeat(least, np.diff(np.append(starts, len(values)))))
    return places[np.searchsorted(places, starts)]


def spread(starts: I64, counts: I64) -> tuple[I64, I64]:
    """For ranges [start, start + count): which range, and each number in it."""
    which = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    return which, np.arange(len(which)) - np.repeat(ends - counts, counts) + starts[which]


class Chains:
    """Key → the newest row; ``next_row`` (the owner's column) → the one before, or -1."""

    def __init__(self) -> None:
        self.index = KeyIndex()

    def link(self, keys: U64, rows: I64, next_row: I32) -> None:
        """Put rows (ascending) at the heads of their keys' chains."""
        if not len(keys):
            return
        slots, _ = self.index.slots(keys)
        order = np.argsort(slots, kind="stable")
        ranked = slots[order]
        again = np.concatenate(([False], ranked[1:] == ranked[:-1]))
        before = np.where(again, np.roll(rows[order], 1), self.index.rows_at(ranked))
        next_row[rows[order]] = before
        self.index.set_rows(slots, rows)

    def walk(self, keys: U64, next_row: I32) -> tuple[I64, I64]:
        """All (query, row) pairs of the keys' chains."""
        rows = self.index.find(keys).astype(np.int64)
        queries = np.arange(len(keys))
        found_queries, found_rows = [], []
        while True:
            live = rows >= 0
            if not live.all():
                queries, rows = queries[live], rows[live]
            if not len(rows):
                break
            found_queries.append(queries)
            found_rows.append(rows)
            rows = next_row[rows].astype(np.int64)
        if not found_rows:
            none = np.zeros(0, np.int64)
            return none, none
        return np.concatenate(found_queries), np.concatenate(found_rows)

    def rebuild(self, keys: U64, next_row: I32) -> None:
        """Chain the rows 0, 1, … of the given keys afresh."""
        self.index.rebuild(keys[:0], np.zeros(0, np.int64))
        self.link(keys, np.arange(len(keys)), next_row)
