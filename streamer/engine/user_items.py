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
from streamer.engine.index import mix
from streamer.engine.noted import NotedRows

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


class UserItems(NotedRows):
    """The rows of one partition. ``columns``: 1 + the kinds of feedback."""

    def __init__(self, columns: int) -> None:
        times = [time_name(i) for i in range(columns)]
        super().__init__(
            times,
            user=np.uint64,
            pair=np.uint64,
            segment=np.int32,
            **dict.fromkeys(times, np.int32),
        )
        self.base, self.is_based = -1, False

    def keys(self) -> U64:
        return _key(self.rows["pair"], self.rows["segment"])

    def touch(self, user: U64, pair: U64, segment: I64, column: I64, unit: I64) -> None:
        """Raise the times of rows, which are made where they are missing."""
        if not len(user):
            return
        columns = {"user": user, "pair": pair, "segment": segment}
        row = self.change(_key(pair, segment), columns)
        time = (unit - self.base).astype(np.int32)
        for i, name in enumerate(self.values):
            mine = column == i
            if mine.any():
                np.maximum.at(self.rows[name], row[mine], time[mine])

    def touched(self, row: I64 | slice) -> Touched:
        """Rows, times from the base; those of a slice until the table changes."""
        rows = self.rows
        times: list[Times] = [rows[name][row] for name in self.values]
        segment = rows["segment"][row].astype(np.int64)
        return Touched(rows["user"][row], rows["pair"][row], segment, times)

    def latest_unit(self) -> I64:
        """The last time of each row, in units since the epoch."""
        latest = np.maximum.reduce([self.rows[name] for name in self.values])
        units: I64 = latest.astype(np.int64) + self.base
        return units

    def rebase(self, oldest_unit: int) -> int:
        """Count times from shortly before ``oldest_unit`` where they would become too large.
        Returns by how much all times are smaller now (0: mostly); older ones are never."""
        if self.is_based and oldest_unit - self.base < _REBASE:
            return 0
        shift, self.base, self.is_based = oldest_unit - 1 - self.base, oldest_unit - 1, True
        columns = [self.rows[name] for name in self.values]
        columns += [column for _, times in self._noted for column in times]
        for column in columns:
            column[:] = np.maximum(column.astype(np.int64) - shift, 0)
        return shift

    def versions(self, first: int, end: int) -> dict[str, np.ndarray[Any, Any]]:
        """Rows that last changed in the epochs [first, end); times count from 1, the first unit
        since the epoch, and 0 is never."""
        row, rows = self.changed(first, end), self.rows
        columns = {name: rows[name][row] for name in ("user", "pair", "segment")}
        for name in self.values:
            time = rows[name][row].astype(np.int64)
            columns[name] = np.where(time > 0, time + self.base + 1, 0)
        return columns

    def renew_pairs(self, pair: U64, segment: I64) -> None:
        """Count rows as changed now."""
        self.renew(_key(pair, segment))
