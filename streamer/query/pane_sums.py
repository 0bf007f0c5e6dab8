"""Sums of panes, kept from readout to readout: only panes that changed are added or taken out.

All sums are integers, so what is taken out leaves exactly what would be there without it. A pane is
known by the arrays that it came in: a reader keeps those of a pane that was not written again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from streamer.encoding.arrays import I64
from streamer.encoding.packed import segment_and_stat
from streamer.query.segment_index import are_continued

Pane = tuple[I64, I64]
"""Codes (``segment_and_stat``) and values."""
_Range = tuple[int, int]
"""The first and the last pane (``pane_number``) of a sum."""
_NOTHING: _Range = (1 << 62, 0)


class _Rows:
    """Rows of some panes of one partition: where they are added, and what."""

    def __init__(self, panes: Mapping[int, Pane], starts: I64, sign: int) -> None:
        """``starts``: the place of each of the partition's segments."""
        self._panes = sorted(panes)
        if not panes:
            return
        chosen = [panes[pane] for pane in self._panes]
        codes = np.concatenate([codes for codes, _ in chosen])
        segment, stat = segment_and_stat(codes)
        self._place = starts[segment] + stat
        self._value = sign * np.concatenate([values for _, values in chosen])
        self._ends = np.cumsum([0, *(len(codes) for codes, _ in chosen)]).tolist()

    def add_to(self, flat: I64, panes: _Range) -> None:
        """Add those of a range of panes."""
        first, stop = bisect_left(self._panes, panes[0]), bisect_right(self._panes, panes[1])
        if first < stop:
            rows = slice(self._ends[first], self._ends[stop])
            np.add.at(flat, self._place[rows], self._value[rows])


@dataclass
class _Kept:
    """One sum, and the range of panes that is in it."""

    flat: I64
    panes: _Range = _NOTHING
    used: bool = True


class HasPanes(Protocol):
    """What panes are of: a commit of a partition, or a part of it."""

    @property
    def panes(self) -> Mapping[int, Pane]:
        """By ``pane_number``."""
        ...


@dataclass
class PaneSumCache:
    """Sums of ranges of panes over all partitions, by what asked for them."""

    _kept: dict[tuple[int, str], _Kept] = field(default_factory=dict)
    _maps: list[I64] = field(default_factory=list)
    _shape: tuple[int, int] = (0, 0)
    _views: Sequence[HasPanes] = ()

    def begin(
        self, views: Sequence[HasPanes], maps: Sequence[I64], segments: int, size: int
    ) -> None:
        """Another readout: sums are brought up to date, those that the last one did not ask for are
        dropped. Where partitions' segments have other numbers than before, all is added up again.
        """
        if (
            not are_continued(self._maps, maps)
            or self._shape[1] != size
            or segments < self._shape[0]
        ):
            self._kept = {}
        self._kept = {key: kept for key, kept in self._kept.items() if kept.used}
        for kept in self._kept.values():
            if segments > self._shape[0]:
                more = np.zeros(segments * size - len(kept.flat), np.int64)
                kept.flat = np.concatenate([kept.flat, more])
            kept.used = False
        before, self._views = self._views, list(views)
        self._maps, self._shape = list(maps), (segments, size)
        if self._kept:
            for number, (old, new) in enumerate(zip(before, views, strict=True)):
                if old is not new:
                    self._replace(number, old.panes, new.panes)

    def _replace(self, number: int, old: Mapping[int, Pane], new: Mapping[int, Pane]) -> None:
        """Put the panes of a partition's new commit in place of those of the old one."""
        come = {p: x for p, x in new.items() if p not in old or old[p][0] is not x[0]}
        gone = {p: old[p] for p in (old.keys() - new.keys()) | (old.keys() & come.keys())}
        for rows in (self._rows(number, come, 1), self._rows(number, gone, -1)):
            for kept in self._kept.values():
                rows.add_to(kept.flat, kept.panes)

    def _rows(self, number: int, panes: Mapping[int, Pane], sign: int) -> _Rows:
        return _Rows(panes, self._maps[number] * self._shape[1], sign)

    def sum(self, key: tuple[int, str], first: int, last: int) -> I64:
        """Sums of the panes from ``first`` to ``last``: (segments, statistics), not to be written
        to. ``key``: the ring, and for what of it."""
        kept = self._kept.get(key)
        if kept is None:
            flat = np.zeros(self._shape[0] * self._shape[1], np.int64)
            kept = self._kept[key] = _Kept(flat)
        self._add_outside(kept.flat, kept.panes, (first, last), -1)
        self._add_outside(kept.flat, (first, last), kept.panes, 1)
        kept.panes, kept.used = (first, last), True
        return kept.flat.reshape(self._shape)

    def _add_outside(self, flat: I64, panes: _Range, other: _Range, sign: int) -> None:
        """Add those panes of a range that are not in the other one."""
        (first, last), (low, high) = panes, other
        numbers = [*range(first, min(last + 1, low)), *range(max(first, low, high + 1), last + 1)]
        if numbers:
            for number, view in enumerate(self._views):
                found = {p: view.panes[p] for p in numbers if p in view.panes}
                self._rows(number, found, sign).add_to(flat, panes)
