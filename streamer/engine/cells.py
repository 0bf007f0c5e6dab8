"""Panes: additive integers per (ring, pane, segment), and since the state began.

A ring holds the panes of one window length. A cell is a row of 64 integers for one (ring, pane,
segment, block); only blocks that something was added to exist. ``Deltas`` gathers what one apply
adds, at the resolution of the greatest common divisor of all pane lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from streamer import limits
from streamer.batch import I64, U64
from streamer.config import Settings
from streamer.durations import pane_length_ms
from streamer.engine.chains import runs_of
from streamer.engine.index import KeyIndex
from streamer.engine.layout import BLOCK_STATS
from streamer.errors import SumOverflowError

TOTAL_RING = limits.MAX_WINDOWS + 1
"""The ring of the totals since the state began; it has the one pane 0. Windows are 1, 2, …"""
_BLOCK_BITS, _SEGMENT_BITS, _PANE_BITS = 8, 15, 32
_PANE_SHIFT = _BLOCK_BITS + _SEGMENT_BITS
_RING_SHIFT = _PANE_SHIFT + _PANE_BITS
_STAT_BITS = _BLOCK_BITS + 6
assert limits.MAX_SEGMENTS < 1 << _SEGMENT_BITS


@dataclass(frozen=True)
class Ring:
    """One window length: ``panes`` panes of ``pane_ms`` milliseconds."""

    label: str
    pane_ms: int
    panes: int

    def oldest(self, stream_ms: int) -> int:
        """Index of the oldest pane that the window at ``stream_ms`` still covers."""
        return stream_ms // self.pane_ms - self.panes + 1


def rings_of(settings: Settings) -> tuple[Ring, ...]:
    """One ring for each window length."""
    return tuple(
        Ring(label, pane_length_ms(ms), ms // pane_length_ms(ms))
        for label, ms in settings.windows.lengths_ms.items()
    )


class Deltas:
    """What is to be added: columns of (unit, segment, statistic, amount)."""

    def __init__(self, unit_ms: int) -> None:
        self.unit_ms = unit_ms
        self._ones: list[I64] = []
        self._codes: list[I64] = []
        self._amounts: list[I64] = []
        self.rows: list[tuple[I64, I64, int, I64]] = []
        """(unit, segment, first statistic, amounts) of what was added in rows."""

    def _code(self, event_ms: I64, segment: I64, stat: I64 | int) -> I64:
        unit = event_ms // self.unit_ms
        return ((unit << _SEGMENT_BITS) | segment) << _STAT_BITS | stat

    def count(self, event_ms: I64, segment: I64, stat: I64 | int) -> None:
        """Add 1 for each row."""
        self._ones.append(self._code(event_ms, segment, stat))

    def add(self, event_ms: I64, segment: I64, stat: I64 | int, amount: I64 | int) -> None:
        """Add ``amount`` for each row."""
        codes = self._code(event_ms, segment, stat)
        self._codes.append(codes)
        self._amounts.append(np.broadcast_to(np.asarray(amount, np.int64), codes.shape))

    def add_rows(self, event_ms: I64, segment: I64, stat: int, amounts: I64) -> None:
        """Add (rows, width) amounts to a wide statistic: far cheaper than value by value."""
        self.rows.append((event_ms // self.unit_ms, segment, stat, amounts))

    def summed(self) -> tuple[I64, I64, I64, I64]:
        """(unit, segment, statistic, amount) without repeats among the counted ones."""
        codes, amounts = list(self._codes), list(self._amounts)
        if self._ones:
            ones = np.sort(np.concatenate(self._ones))
            if len(ones):
                starts = runs_of(ones)
                codes.append(ones[starts])
                amounts.append(np.diff(np.append(starts, len(ones))))
        if not codes:
            none = np.zeros(0, np.int64)
            return none, none, none, none
        code, amount = np.concatenate(codes), np.concatenate(amounts)
        stat = code & ((1 << _STAT_BITS) - 1)
        segment = (code >> _STAT_BITS) & ((1 << _SEGMENT_BITS) - 1)
        return code >> (_STAT_BITS + _SEGMENT_BITS), segment, stat, amount


class Cells:
    """All rings of a partition, and the totals."""

    def __init__(self, rings: tuple[Ring, ...]) -> None:
        self.rings = rings
        self.unit_ms = gcd(*(r.pane_ms for r in rings))
        self._index = KeyIndex()
        self._key = np.zeros(1024, np.int64)
        self._value = np.zeros((1024, BLOCK_STATS), np.int64)
        self._rows = 0
        self._free: list[int] = []
        self._touched: set[int] = set()
        self._oldest = [0] * len(rings)

    @property
    def nbytes(self) -> int:
        return self._key.nbytes + self._value.nbytes + self._index.nbytes

    def __len__(self) -> int:
        return self._rows - len(self._free)

    def apply(self, deltas: Deltas, totals: Deltas, stream_ms: int) -> None:
        """Add to every ring whose panes cover the time, and to the totals; drop old panes."""
        unit, segment, stat, amount = deltas.summed()
        for i, ring in enumerate(self.rings, 1):
            pane = unit * self.unit_ms // ring.pane_ms
            inside = pane >= ring.oldest(stream_ms)
            if inside.all():
                self._add(i, pane, segment, stat, amount)
            elif inside.any():
                self._add(i, pane[inside], segment[inside], stat[inside], amount[inside])
            for unit_of, segment_of, first, amounts in deltas.rows:
                pane = unit_of * self.unit_ms // ring.pane_ms
                inside = pane >= ring.oldest(stream_ms)
                self._add_rows(i, pane[inside], segment_of[inside], first, amounts[inside])
        unit, segment, stat, amount = totals.summed()
        if len(unit):
            self._add(TOTAL_RING, unit, segment, stat, amount)
        self.expire(stream_ms)

    def _add(self, ring: int, pane: I64, segment: I64, stat: I64, amount: I64) -> None:
        if not len(pane):
            return
        block = stat // BLOCK_STATS
        key = (((ring << _PANE_BITS) | pane) << _SEGMENT_BITS | segment) << _BLOCK_BITS | block
        rows = self._rows_of(key)
        place = rows * BLOCK_STATS + stat % BLOCK_STATS
        flat = self._value.reshape(-1)
        np.add.at(flat, place, amount)
        if np.abs(flat[place]).max() > limits.MAX_SUM:
            raise SumOverflowError(f"a sum of ring {ring} would pass 2**62")
        self._touched.update(np.unique(key >> _PANE_SHIFT).tolist())

    def _add_rows(self, ring: int, pane: I64, segment: I64, stat: int, amounts: I64) -> None:
        if not len(pane):
            return
        place = ((ring << _PANE_BITS) | pane) << _SEGMENT_BITS | segment
        order = np.argsort(place, kind="stable")
        place = place[order]
        starts = runs_of(place)
        place, amounts = place[starts], np.add.reduceat(amounts[order], starts)
        is_any = amounts.any(axis=1)
        place, amounts = place[is_any], amounts[is_any]
        for first in range(0, amounts.shape[1], BLOCK_STATS):
            part = amounts[:, first : first + BLOCK_STATS]
            held = np.flatnonzero(part.any(axis=1))
            if not len(held):
                continue
            key = place[held] << _BLOCK_BITS | (stat + first) // BLOCK_STATS
            rows = self._rows_of(key)
            self._value[rows, : part.shape[1]] += part[held]
            if np.abs(self._value[rows]).max() > limits.MAX_SUM:
                raise SumOverflowError(f"a sum of ring {ring} would pass 2**62")
        self._touched.update(np.unique(place >> _SEGMENT_BITS).tolist())

    def _rows_of(self, key: I64) -> I64:
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        starts = np.concatenate(([True], ranked[1:] != ranked[:-1]))
        distinct = ranked[starts]
        slots, _ = self._index.slots(_hashed(distinct))
        rows = self._index.rows_at(slots).astype(np.int64)
        missing = rows < 0
        missing |= self._key[np.where(missing, 0, rows)] != distinct
        if missing.any():
            fresh = self._allocate(int(np.count_nonzero(missing)))
            self._key[fresh] = distinct[missing]
            self._value[fresh] = 0
            rows[missing] = fresh
            self._index.set_rows(slots[missing], fresh)
        result = np.empty(len(key), np.int64)
        result[order] = rows[np.cumsum(starts) - 1]
        return result

    def _allocate(self, n: int) -> I64:
        reused = [self._free.pop() for _ in range(min(n, len(self._free)))]
        fresh = n - len(reused)
        if self._rows + fresh > len(self._key):
            capacity = 2 * (self._rows + fresh)
            self._key = np.concatenate([self._key, np.zeros(capacity - len(self._key), np.int64)])
            grown = np.zeros((capacity, BLOCK_STATS), np.int64)
            grown[: self._rows] = self._value[: self._rows]
            self._value = grown
        rows = np.array([*reused, *range(self._rows, self._rows + fresh)], np.int64)
        self._rows += fresh
        return rows

    def expire(self, stream_ms: int) -> None:
        """Forget the panes that no window at or after ``stream_ms`` covers."""
        oldest = [ring.oldest(stream_ms) for ring in self.rings]
        if oldest == self._oldest:
            return
        self._oldest = oldest
        bound = np.zeros(TOTAL_RING + 1, np.int64)
        bound[1 : len(oldest) + 1] = oldest
        key = self._key[: self._rows]
        pane = (key >> _PANE_SHIFT) & ((1 << _PANE_BITS) - 1)
        gone = np.flatnonzero((key > 0) & (pane < bound[key >> _RING_SHIFT]))
        if len(gone):
            self._key[gone] = -1
            self._free.extend(gone.tolist())
        if self._index.used > 4 * len(self) + 4096:
            live = np.flatnonzero(self._key[: self._rows] > 0)
            self._index.rebuild(_hashed(self._key[live]), live)

    # What the store and the readers see ------------------------------------------------------

    def take_touched(self) -> set[int]:
        """(ring << 32 | pane) of every pane changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def touch(self, panes: set[int]) -> None:
        """Count panes as changed: their commit failed."""
        self._touched |= panes

    def live_panes(self) -> set[int]:
        key = self._key[: self._rows]
        return set(np.unique(key[key > 0] >> _PANE_SHIFT).tolist())

    def dump(self, panes: set[int]) -> dict[int, tuple[I64, I64]]:
        """Of each pane: codes (segment << 14 | statistic) in order, and their non-zero values."""
        key = self._key[: self._rows]
        wanted = np.array(sorted(panes), np.int64)
        rows = np.flatnonzero(np.isin(key >> _PANE_SHIFT, wanted) & (key > 0))
        rows = rows[np.argsort(key[rows])]
        keys = key[rows]
        bounds = np.searchsorted(keys >> _PANE_SHIFT, wanted, "left")
        ends = np.searchsorted(keys >> _PANE_SHIFT, wanted, "right")
        base = (keys & ((1 << _PANE_SHIFT) - 1)) << 6
        result = {}
        for pane, start, stop in zip(wanted.tolist(), bounds.tolist(), ends.tolist(), strict=True):
            values = self._value[rows[start:stop]]
            at, place = np.nonzero(values)
            result[pane] = (base[start:stop][at] + place, values[at, place])
        return result

    def load(self, pane: int, codes: I64, values: I64) -> None:
        """Put back what ``dump`` gave for a pane."""
        stat = codes & ((1 << _STAT_BITS) - 1)
        ring, index = pane >> _PANE_BITS, pane & ((1 << _PANE_BITS) - 1)
        self._add(ring, np.full(len(codes), index, np.int64), codes >> _STAT_BITS, stat, values)

    def remap(self, segment: I64) -> None:
        """Move every cell of segment i to segment[i]: dimension values were folded together."""
        panes = self.dump(self.live_panes())
        fresh = Cells(self.rings)
        for pane, (codes, values) in panes.items():
            moved = segment[codes >> _STAT_BITS] << _STAT_BITS | codes & ((1 << _STAT_BITS) - 1)
            fresh.load(pane, moved, values)
        changed = self._touched | set(panes)
        self.__dict__.update(fresh.__dict__)
        self._touched = changed


def _hashed(key: I64) -> U64:
    h = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))
