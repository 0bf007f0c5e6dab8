"""The panes of all partitions, read from commit to commit: sums of ranges, and single panes.

A pane is unchanged if it was not written again, or with the same sums. After a commit only panes
that changed are added and taken out, or merged anew. All sums are integers, so what is taken out
leaves exactly what would be there without it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamer._core import STAT_BITS
from streamer.encoding.arrays import I64, Bools
from streamer.encoding.packed import segment_and_stat, segment_code
from streamer.query.segment_index import are_continued
from streamer.query.sum_rows import SumRows
from streamer.settings import limits
from streamer.state.panes import Pane

Cells = tuple[I64, I64, I64]
"""Segment, statistic and sum over all partitions."""
_Range = tuple[int, int]
"""The first and the last pane (``pane_number``) of a sum."""
_PANES_AT_ONCE = 8
"""Panes whose rows are added together: of all of a window they would take as much again."""
_NO_ROWS = np.zeros(0, np.int64)
_NOTHING: _Range = (1 << 62, 0)


def are_same(old: Pane, new: Pane) -> bool:
    """Whether a pane is unchanged."""
    return old[0] is new[0] or all(map(np.array_equal, old, new))


class HasPanes(Protocol):
    """What panes are of: a commit of a partition, or a part of it."""

    @property
    def panes(self) -> Mapping[int, Pane]:
        """By ``pane_number``."""
        ...


class _Rows:
    """Rows of some panes of one partition: where they are added, and what."""

    def __init__(self, panes: Mapping[int, Pane], numbers: I64, rows: SumRows, sign: int) -> None:
        """``numbers``: of the partition's segments."""
        self._panes = sorted(panes)
        if not panes:
            return
        chosen = [panes[pane] for pane in self._panes]
        codes = np.concatenate([codes for codes, _ in chosen])
        segment, stat = segment_and_stat(codes)
        self._place = rows.places(numbers[segment], stat)
        self._value = sign * np.concatenate([values for _, values in chosen])
        self._ends = np.cumsum([0, *(len(codes) for codes, _ in chosen)]).tolist()

    def add_to(self, flat: I64, panes: _Range) -> None:
        """Add those of a range of panes."""
        first, stop = bisect_left(self._panes, panes[0]), bisect_right(self._panes, panes[1])
        if first < stop:
            rows = slice(self._ends[first], self._ends[stop])
            np.add.at(flat, self._place[rows], self._value[rows])


@dataclass
class _Sum:
    """One sum that is kept, and the range of panes that is in it."""

    flat: I64
    panes: _Range = _NOTHING
    used: bool = True


class PaneReader:
    """Panes of all partitions under the segments that readers see."""

    def __init__(self) -> None:
        self._parts: Sequence[HasPanes] = ()
        self._maps: list[I64] = []
        self._shape = SumRows.equal(0, 0)
        self._sums: dict[tuple[int, str], _Sum] = {}
        """By what asked for them."""
        self._cells: dict[tuple[int, frozenset[int]], dict[int, Cells]] = {}
        """By ring and statistics that are asked for together, those asked for last, and by pane."""

    def begin(self, parts: Sequence[HasPanes], maps: Sequence[I64], rows: SumRows) -> None:
        """Read another commit. ``maps``: the number of each partition's segments; ``rows``: where
        the sums of these stand.

        Sums that were not asked for since the last one are dropped. Where segments have other
        numbers than before, nothing is kept.
        """
        before, self._parts = self._parts, list(parts)
        if not (are_continued(self._maps, maps) and self._shape.is_continued_by(rows)):
            self._sums, self._cells = {}, {}
        self._sums = {key: kept for key, kept in self._sums.items() if kept.used}
        for kept in self._sums.values():
            if rows.size > len(kept.flat):
                more = np.zeros(rows.size - len(kept.flat), np.int64)
                kept.flat = np.concatenate([kept.flat, more])
            kept.used = False
        self._maps, self._shape = list(maps), rows
        if not (self._sums or self._cells):
            return
        try:
            for number, (old, new) in enumerate(zip(before, parts, strict=True)):
                if old is not new:
                    self._replace(number, old.panes, new.panes)
        except BaseException:  # such as MemoryError: of some partitions the old panes are still in
            self._sums, self._cells = {}, {}
            raise

    def _replace(self, number: int, old: Mapping[int, Pane], new: Mapping[int, Pane]) -> None:
        """Put the panes of a partition's new commit in place of those of the old one."""
        come = {p: x for p, x in new.items() if p not in old or not are_same(old[p], x)}
        gone = {p: old[p] for p in (old.keys() - new.keys()) | (old.keys() & come.keys())}
        if self._sums:
            for rows in (self._rows(number, come, 1), self._rows(number, gone, -1)):
                for kept in self._sums.values():
                    rows.add_to(kept.flat, kept.panes)
        for cells in self._cells.values():
            for pane in come.keys() | gone.keys():
                cells.pop(pane, None)

    def _rows(self, number: int, panes: Mapping[int, Pane], sign: int) -> _Rows:
        return _Rows(panes, self._maps[number], self._shape, sign)

    def sum(self, key: tuple[int, str], first: int, last: int) -> I64:
        """Sums of the panes from ``first`` to ``last``: flat (``SumRows``), not to be written to.
        ``key``: the ring, and for what of it; its sum is kept."""
        kept = self._sums.get(key)
        if kept is None:
            kept = self._sums[key] = _Sum(np.zeros(self._shape.size, np.int64))
        self._add_outside(kept.flat, kept.panes, (first, last), -1)
        self._add_outside(kept.flat, (first, last), kept.panes, 1)
        kept.panes, kept.used = (first, last), True
        return kept.flat

    def sum_once(self, first: int, last: int) -> I64:
        """The same of panes that are hardly asked for again: nothing is kept."""
        flat = np.zeros(self._shape.size, np.int64)
        self._add_outside(flat, (first, last), _NOTHING, 1)
        return flat

    def _add_outside(self, flat: I64, panes: _Range, other: _Range, sign: int) -> None:
        """Add those panes of a range that are not in the other one."""
        (first, last), (low, high) = panes, other
        numbers = [*range(first, min(last + 1, low)), *range(max(first, low, high + 1), last + 1)]
        for start in range(0, len(numbers), _PANES_AT_ONCE):
            some = numbers[start : start + _PANES_AT_ONCE]
            for number, part in enumerate(self._parts):
                found = {p: part.panes[p] for p in some if p in part.panes}
                self._rows(number, found, sign).add_to(flat, panes)

    def cells(self, ring: int, stats: frozenset[int], panes: range) -> dict[int, Cells]:
        """The cells of some statistics in panes (``pane_number``) of a ring, by pane; those of at
        most ``limits.MERGED_STATISTICS`` are kept."""
        before, found = self._cells.pop((ring, stats), {}), dict[int, Cells]()
        is_wanted = np.zeros(1 << STAT_BITS, bool)
        is_wanted[list(stats)] = True
        for pane in panes:
            if pane in before:
                found[pane] = before[pane]
            elif (merged := self._merged(pane, is_wanted)) is not None:
                found[pane] = merged
        self._cells[ring, stats] = found
        while len(self._cells) > limits.MERGED_STATISTICS:
            self._cells.pop(next(iter(self._cells)))
        return found

    def _merged(self, pane: int, is_wanted: Bools) -> Cells | None:
        """The wanted cells of a pane; None where no partition has it."""
        codes, sums = [], []
        for part, numbers in zip(self._parts, self._maps, strict=True):
            own, values = part.panes.get(pane, (_NO_ROWS, _NO_ROWS))
            if len(own):
                segment, stat = segment_and_stat(own)
                here = np.flatnonzero(is_wanted[stat])
                codes.append(segment_code(numbers[segment[here]], stat[here]))
                sums.append(values[here])
        if not codes:
            return None
        code, at = np.unique(np.concatenate(codes), return_inverse=True)
        total = np.zeros(len(code), np.int64)
        np.add.at(total, at, np.concatenate(sums))
        return *segment_and_stat(code), total

    def by_pane(self, panes: Sequence[int]) -> tuple[I64, I64, I64, I64]:
        """All rows of some panes: place of the pane, segment, statistic and value."""
        nothing = np.zeros(0, np.int64)
        found = [(nothing,) * 4]
        for part, numbers in zip(self._parts, self._maps, strict=True):
            held = [(at, *part.panes[pane]) for at, pane in enumerate(panes) if pane in part.panes]
            if held:
                at, codes, values = zip(*held, strict=True)
                segment, stat = segment_and_stat(np.concatenate(codes))
                place = np.repeat(np.array(at), [len(each) for each in codes])
                found.append((place, numbers[segment], stat, np.concatenate(values)))
        place, segment, stat, value = (np.concatenate(each) for each in zip(*found, strict=True))
        return place, segment, stat, value
