"""An open-addressing table of 64-bit keys in numpy: key → row, a whole batch at a time.

Linear probing at a load of at most a half. Key 0 means "none" and is never stored. Rows are those
of whoever owns the index; a key whose row is gone stays until the next rebuild.
"""

from __future__ import annotations

import numpy as np

from streamer.batch import I32, I64, U64, Bools

_MIN_CAPACITY = 1 << 12
_LOAD = 0.5
_GROWTH, _MANY = 4, 1 << 20
"""Capacity grows by this factor up to so many keys, then by two: most of the time of an insertion
is spent in growing."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_THIRTY_TWO = np.uint64(32)


def mix(a: U64, b: U64) -> U64:
    """One 64-bit key of two, never 0; (a, b) and (b, a) differ."""
    h = (a ^ (b * _MIX)) * _MIX
    h ^= h >> _THIRTY_TWO
    h = h * _MIX
    h[h == 0] = 1
    return h


def in_sample(key: U64, bits: int) -> Bools:
    """Which keys begin with so many zeros: one in 2**bits.

    >>> in_sample(np.array([1, 1 << 63], np.uint64), 1).tolist()
    [True, False]
    """
    mask = ~np.uint64(0) << np.uint64(64 - bits) if bits else np.uint64(0)
    kept: Bools = key & mask == 0
    return kept


class KeyIndex:
    """Maps keys to int32 rows; -1 where a key is not there."""

    def __init__(self, expected: int = 0) -> None:
        self._allocate(expected)

    def _allocate(self, expected: int) -> None:
        capacity = _MIN_CAPACITY
        while capacity * _LOAD < expected:
            capacity *= 2
        self._mask = np.int64(capacity - 1)
        self._keys = np.zeros(capacity, np.uint64)
        self._rows = np.full(capacity, -1, np.int32)
        self._used = 0

    @property
    def used(self) -> int:
        """Keys in the table, those of rows that are gone included."""
        return self._used

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._rows.nbytes

    def find(self, keys: U64) -> I32:
        """Rows of the keys."""
        at = keys.view(np.int64) & self._mask
        stored, rows = self._keys.take(at), self._rows.take(at)
        todo = np.flatnonzero(stored != keys)
        rows[todo] = -1
        todo = todo[stored[todo] != 0]
        at = at[todo]
        while len(todo):
            at = (at + 1) & self._mask
            stored, wanted = self._keys.take(at), keys[todo]
            hit = stored == wanted
            rows[todo[hit]] = self._rows[at[hit]]
            on = ~hit & (stored != 0)
            todo, at = todo[on], at[on]
        return rows

    def slots(self, keys: U64) -> tuple[I64, Bools]:
        """Slots of the keys, added where missing, and which were missing. Keys may repeat."""
        self._reserve(len(keys))
        slots = keys.view(np.int64) & self._mask
        new = np.zeros(len(keys), np.bool_)
        stored = self._keys.take(slots)
        todo = np.flatnonzero(stored != keys)
        stored = stored[todo]
        while len(todo):
            where, wanted = slots[todo], keys[todo]
            empty = np.flatnonzero(stored == 0)
            if len(empty):
                place, fresh = where[empty], wanted[empty]
                self._keys[place] = fresh  # the last of equal slots wins
                written = self._keys.take(place)
                stored[empty] = written
                new[todo[empty[written == fresh]]] = True
            on = np.flatnonzero(stored != wanted)
            todo, where = todo[on], (where[on] + 1) & self._mask
            slots[todo] = where
            stored = self._keys.take(where)
            on = np.flatnonzero(stored != wanted[on])
            todo, stored = todo[on], stored[on]
        self._used += int(np.count_nonzero(new))  # counts repeats too; see _reserve
        return slots, new

    def rows_at(self, slots: I64) -> I32:
        return self._rows[slots]

    def set_rows(self, slots: I64, rows: I32 | I64) -> None:
        """Rows of slots; of equal slots the last one counts."""
        self._rows[slots] = rows

    def _reserve(self, extra: int) -> None:
        room = len(self._keys) * _LOAD - extra
        if self._used > room:
            self._used = int(np.count_nonzero(self._keys))
        if self._used > room:
            held = np.flatnonzero(self._keys)
            keys, rows = self._keys[held], self._rows[held]
            grown = _GROWTH * len(self._keys) if len(held) < _MANY else 2 * len(self._keys)
            self._allocate(max(len(keys) + extra, int(grown * _LOAD)))
            self.set_rows(self.slots(keys)[0], rows)

    def rebuild(self, keys: U64, rows: I32 | I64) -> None:
        """Forget everything and hold these; of equal keys the last one counts."""
        self._allocate(2 * len(keys))
        self.set_rows(self.slots(keys)[0], rows)
