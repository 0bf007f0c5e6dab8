"""Rows found by key, that change: what they were is noted until somebody asks, and they are stored
in versions, of which a later one tells more than those before it.

``epoch`` says between which commits a row last changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.index import KeyIndex
from streamer.engine.table import Table

Column = np.ndarray[Any, Any]


class NotedRows:
    """The rows of one partition. ``values``: names of the columns that change, 0 at first;
    ``columns``: dtypes of all. Subclasses say what the key of a row is."""

    def __init__(self, values: Sequence[str], **columns: Any) -> None:
        self.values = tuple(values)
        self.rows = Table(**columns, epoch=np.int32, is_noted=np.bool_)
        self.index = KeyIndex()
        self.epoch = 0
        self._noted: list[tuple[I64, list[Column]]] = []
        self._is_changed = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.index.nbytes

    def keys(self) -> U64:
        """The key of every row."""
        raise NotImplementedError

    # Changing ------------------------------------------------------------------------------------

    def change(self, key: U64, columns: Mapping[str, Column]) -> I64:
        """The rows of these keys, which may repeat: made with these columns where they are
        missing; their values are noted, and they count as changed now."""
        row, distinct = self._rows_of(key, columns)
        self._note(distinct)
        self.rows["epoch"][distinct] = self.epoch
        self._is_changed = True
        return row

    def _rows_of(self, key: U64, columns: Mapping[str, Column]) -> tuple[I64, I64]:
        """The row of each key, and every such row once."""
        slots, _ = self.index.slots(key)
        row = self.index.rows_at(slots).astype(np.int64)
        numbers = np.arange(len(key))
        self.index.set_rows(slots, numbers)
        once = self.index.rows_at(slots) == numbers  # the last one of equal keys
        fresh = np.flatnonzero(once & (row < 0))
        unset = {**dict.fromkeys(self.values, 0), "epoch": 0, "is_noted": False}
        given = {name: column[fresh] for name, column in columns.items()}
        first = self.rows.append({**given, **unset}, len(fresh))
        row[fresh] = np.arange(first, first + len(fresh))
        self.index.set_rows(slots[once], row[once])
        return self.index.rows_at(slots).astype(np.int64), row[once]

    def _note(self, row: I64) -> None:
        """Keep the values of rows that have not changed since the last call of ``take_noted``."""
        is_noted = self.rows["is_noted"]
        row = row[~is_noted[row]]
        is_noted[row] = True
        self._noted.append((row, [self.rows[name][row] for name in self.values]))

    def take_noted(self) -> tuple[I64, list[Column]]:
        """The rows that changed since the last call, with the values that they had then."""
        noted, self._noted = self._noted, []
        if not noted:
            return np.zeros(0, np.int64), [np.zeros(0, np.int64) for _ in self.values]
        row = np.concatenate([r for r, _ in noted])
        self.rows["is_noted"][row] = False
        values = [np.concatenate([v[i] for _, v in noted]) for i in range(len(self.values))]
        return row, values

    @property
    def has_noted(self) -> bool:
        return bool(self._noted)

    def keep(self, mask: Bools) -> None:
        """Forget rows."""
        moved = np.cumsum(mask) - 1
        self._noted = [
            (moved[row[mask[row]]], [value[mask[row]] for value in values])
            for row, values in self._noted
        ]
        self.rows.keep(mask)
        self.index.rebuild(self.keys(), np.arange(len(self.rows)))

    # Stored form ---------------------------------------------------------------------------------

    def seal(self) -> None:
        """Changes from now on belong to another epoch."""
        self.epoch += self._is_changed
        self._is_changed = False

    def changed(self, first: int, end: int) -> I64:
        """Rows that last changed in the epochs [first, end)."""
        epoch = self.rows["epoch"]
        return np.flatnonzero((epoch >= first) & (epoch < end))

    def versions(self, first: int, end: int) -> dict[str, Column]:
        """What is stored of rows that last changed in the epochs [first, end)."""
        row = self.changed(first, end)
        return {n: self.rows[n][row] for n in self.rows.names if n not in ("epoch", "is_noted")}

    def renew(self, key: U64) -> None:
        """Count rows as changed now."""
        row = self.index.find(key).astype(np.int64)
        self.rows["epoch"][row[row >= 0]] = self.epoch
        self._is_changed |= bool((row >= 0).any())

    def live(self, firsts: I64) -> I64:
        """How many rows last changed from each of these epochs (ascending) on, before the next."""
        before = np.append(0, np.cumsum(np.bincount(self.rows["epoch"])))
        return np.diff(np.append(before[np.minimum(firsts, len(before) - 1)], before[-1]))
