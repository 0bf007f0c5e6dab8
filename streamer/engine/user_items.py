"""What users saw and did last: one row for each (user, item, segment).

A row holds the last time of an impression and of each kind of feedback. Times only grow, so rows
do not depend on the order in which events come, and stored versions of a row merge by the largest.
Times are counted in units of the finest pane from a base of this table; 0 is never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamer.batch import I64, U64, Bools
from streamer.engine.index import KeyIndex, mix
from streamer.engine.table import Table

_REBASE = 1 << 30
Times = npt.NDArray[np.int32] | I64


@dataclass(frozen=True)
class Touched:
    """Rows: the times of column 0 are those of impressions, the others of the feedback kinds."""

    user: U64
    pair: U64
    segment: I64
    times: list[Times]

    def __len__(self) -> int:
        return len(self.user)

    def where(self, mask: Bools | I64) -> Touched:
        times = [column[mask] for column in self.times]
        return Touched(self.user[mask], self.pair[mask], self.segment[mask], times)


def joined(parts: list[Touched]) -> Touched:
    """All rows of several sets."""
    return Touched(
        np.concatenate([p.user for p in parts]),
        np.concatenate([p.pair for p in parts]),
        np.concatenate([p.segment for p in parts]),
        [np.concatenate(columns) for columns in zip(*(p.times for p in parts), strict=True)],
    )


def time_name(column: int | str) -> str:
    """The name of a column of times, in the table and as stored (with "": how all begin)."""
    return f"time_{column}"


def _key(pair: U64, segment: npt.NDArray[Any]) -> U64:
    return mix(pair, segment.astype(np.uint64) + np.uint64(1))


class UserItems:
    """The rows of one partition. ``columns``: 1 + the kinds of feedback."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        times: dict[str, Any] = {time_name(i): np.int32 for i in range(columns)}
        self.rows = Table(
            user=np.uint64,
            pair=np.uint64,
            segment=np.int32,
            epoch=np.int32,
            is_noted=np.bool_,
            **times,
        )
        self.index = KeyIndex()
        self.base, self.is_based = -1, False
        self.epoch = 0
        self._noted: list[tuple[I64, list[Times]]] = []
        self._is_changed = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.index.nbytes

    # Merging -------------------------------------------------------------------------------------

    def touch(self, user: U64, pair: U64, segment: I64, column: I64, unit: I64) -> None:
        """Raise the times of rows, which are made where they are missing."""
        if not len(user):
            return
        row, distinct = self._rows_of(user, pair, segment)
        self._note(distinct)
        self.rows["epoch"][distinct] = self.epoch
        self._is_changed = True
        time = (unit - self.base).astype(np.int32)
        for i in range(self.columns):
            mine = column == i
            if mine.any():
                np.maximum.at(self.rows[time_name(i)], row[mine], time[mine])

    def _rows_of(self, user: U64, pair: U64, segment: I64) -> tuple[I64, I64]:
        """The row of each touch, and every such row once."""
        slots, _ = self.index.slots(_key(pair, segment))
        row = self.index.rows_at(slots).astype(np.int64)
        numbers = np.arange(len(user))
        self.index.set_rows(slots, numbers)
        once = self.index.rows_at(slots) == numbers  # the last one of equal touches
        fresh = np.flatnonzero(once & (row < 0))
        never = {time_name(i): 0 for i in range(self.columns)}
        columns = {"user": user[fresh], "pair": pair[fresh], "segment": segment[fresh]}
        first = self.rows.append({**columns, **never, "epoch": 0, "is_noted": False}, len(fresh))
        row[fresh] = np.arange(first, first + len(fresh))
        self.index.set_rows(slots[once], row[once])
        return self.index.rows_at(slots).astype(np.int64), row[once]

    def _note(self, row: I64) -> None:
        """Keep the times of rows that have not changed since the last call of ``take_noted``."""
        is_noted = self.rows["is_noted"]
        row = row[~is_noted[row]]
        is_noted[row] = True
        self._noted.append((row, [self.rows[time_name(i)][row] for i in range(self.columns)]))

    # Reading -------------------------------------------------------------------------------------

    def touched(self, row: I64 | slice) -> Touched:
        """Rows, times from the base; those of a slice until the table changes."""
        rows = self.rows
        times: list[Times] = [rows[time_name(i)][row] for i in range(self.columns)]
        segment = rows["segment"][row].astype(np.int64)
        return Touched(rows["user"][row], rows["pair"][row], segment, times)

    def take_noted(self) -> tuple[I64, list[Times]]:
        """The rows that changed since the last call, with the times that they had then."""
        noted, self._noted = self._noted, []
        if not noted:
            return np.zeros(0, np.int64), [np.zeros(0, np.int64)] * self.columns
        row = np.concatenate([r for r, _ in noted])
        self.rows["is_noted"][row] = False
        times = [np.concatenate([t[i] for _, t in noted]) for i in range(self.columns)]
        return row, times

    @property
    def has_noted(self) -> bool:
        return bool(self._noted)

    # Leaving -------------------------------------------------------------------------------------

    def keep(self, mask: Bools) -> None:
        """Forget rows."""
        moved = np.cumsum(mask) - 1
        self._noted = [
            (moved[row[mask[row]]], [time[mask[row]] for time in times])
            for row, times in self._noted
        ]
        self.rows.keep(mask)
        keys = _key(self.rows["pair"], self.rows["segment"])
        self.index.rebuild(keys, np.arange(len(self.rows)))

    def latest_unit(self) -> I64:
        """The last time of each row, in units since the epoch."""
        latest = np.maximum.reduce([self.rows[time_name(i)] for i in range(self.columns)])
        units: I64 = latest.astype(np.int64) + self.base
        return units

    def rebase(self, oldest_unit: int) -> int:
        """Count times from shortly before ``oldest_unit`` where they would become too large.
        Returns by how much all times are smaller now (0: mostly); older ones are never."""
        if self.is_based and oldest_unit - self.base < _REBASE:
            return 0
        shift, self.base, self.is_based = oldest_unit - 1 - self.base, oldest_unit - 1, True
        columns = [self.rows[time_name(i)] for i in range(self.columns)]
        columns += [column for _, times in self._noted for column in times]
        for column in columns:
            column[:] = np.maximum(column.astype(np.int64) - shift, 0)
        return shift

    # Stored form ---------------------------------------------------------------------------------

    def seal(self) -> None:
        """Changes from now on belong to another epoch."""
        self.epoch += self._is_changed
        self._is_changed = False

    def versions(self, first: int, end: int) -> dict[str, np.ndarray[Any, Any]]:
        """Rows that last changed in the epochs [first, end); times count from 1, the first unit
        since the epoch, and 0 is never."""
        epoch = self.rows["epoch"]
        row = np.flatnonzero((epoch >= first) & (epoch < end))
        rows = self.rows
        columns = {name: rows[name][row] for name in ("user", "pair", "segment")}
        for i in range(self.columns):
            time = rows[time_name(i)][row].astype(np.int64)
            columns[time_name(i)] = np.where(time > 0, time + self.base + 1, 0)
        return columns

    def renew(self, pair: U64, segment: I64) -> None:
        """Count rows as changed now."""
        row = self.index.find(_key(pair, segment)).astype(np.int64)
        self.rows["epoch"][row[row >= 0]] = self.epoch
        self._is_changed |= bool((row >= 0).any())

    def live(self, firsts: I64) -> I64:
        """How many rows last changed from each of these epochs (ascending) on, before the next."""
        before = np.append(0, np.cumsum(np.bincount(self.rows["epoch"])))
        return np.diff(np.append(before[np.minimum(firsts, len(before) - 1)], before[-1]))
