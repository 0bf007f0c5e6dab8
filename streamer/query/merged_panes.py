"""Panes of all partitions merged, for a few statistics: kept from commit to commit.

What a partition has of a pane is known by the arrays that it came in: a reader keeps those that
were not written again, so that after a commit only what others had is taken out, and what they have
is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamer._core import STAT_BITS
from streamer.encoding.arrays import I64
from streamer.encoding.packed import segment_and_stat
from streamer.query.numbering import Numbering, are_continued
from streamer.settings import limits
from streamer.state.panes import Pane
from streamer.state.snapshot import View

Cells = tuple[I64, I64, I64]
"""Segment of the numbering, statistic and sum over all partitions."""


@dataclass
class _Pane:
    """Sums over partitions, (segments, wanted statistics); ``parts``: place of a view → what of it
    is in them."""

    sums: I64
    parts: dict[int, Pane]
    cells: Cells | None = None


@dataclass(frozen=True)
class _Wanted:
    """Statistics in ascending order, and statistic → its place among them, -1 for none."""

    stats: I64
    places: I64

    @staticmethod
    def of(stats: Iterable[int]) -> _Wanted:
        ordered = np.array(sorted(stats), np.int64)
        places = np.full(1 << STAT_BITS, -1, np.int64)
        places[ordered] = np.arange(len(ordered))
        return _Wanted(ordered, places)


@dataclass
class MergedPanes:
    """By ring and statistics that are asked for together, and by pane: those asked for last, at
    most ``limits.MERGED_STATISTICS``."""

    _kept: dict[tuple[int, frozenset[int]], dict[int, _Pane]] = field(default_factory=dict)
    _maps: list[I64] = field(default_factory=list)
    _size: int = 0

    def begin(self, numbering: Numbering) -> None:
        """Another commit: where segments have other numbers than before, nothing is kept."""
        if not are_continued(self._maps, numbering.maps):
            self._kept = {}
        self._maps, self._size = numbering.maps, numbering.size

    def read(
        self, views: Sequence[View], ring: int, stats: frozenset[int], panes: range
    ) -> dict[int, Cells]:
        """Those of some statistics in panes (``pane_number``) of a ring."""
        key, merged, found = (ring, stats), dict[int, _Pane](), dict[int, Cells]()
        before, wanted = self._kept.pop(key, {}), _Wanted.of(stats)
        for pane in panes:
            parts = {i: view.panes[pane] for i, view in enumerate(views) if pane in view.panes}
            if parts:
                kept = before.get(pane) or _Pane(np.zeros((0, len(wanted.stats)), np.int64), {})
                self._bring_up_to_date(kept, parts, wanted)
                if kept.cells is None:
                    segment, place = np.nonzero(kept.sums)
                    kept.cells = segment, wanted.stats[place], kept.sums[segment, place]
                merged[pane], found[pane] = kept, kept.cells
        self._kept[key] = merged
        while len(self._kept) > limits.MERGED_STATISTICS:
            self._kept.pop(next(iter(self._kept)))
        return found

    def _bring_up_to_date(self, kept: _Pane, parts: dict[int, Pane], wanted: _Wanted) -> None:
        if len(kept.sums) < self._size:
            more = np.zeros((self._size - len(kept.sums), len(wanted.stats)), np.int64)
            kept.sums = np.concatenate([kept.sums, more])
        for i in kept.parts.keys() | parts.keys():
            old, new = kept.parts.get(i), parts.get(i)
            if old is None or new is None or old[0] is not new[0]:
                self._add(kept.sums, i, old, wanted, -1)
                self._add(kept.sums, i, new, wanted, 1)
                kept.cells = None
        kept.parts = parts

    def _add(self, sums: I64, i: int, part: Pane | None, wanted: _Wanted, sign: int) -> None:
        """Add what a partition has of a pane; several of its segments may be one here."""
        if part is not None:
            segment, stat = segment_and_stat(part[0])
            place = wanted.places[stat]
            here = np.flatnonzero(place >= 0)
            at = self._maps[i][segment[here]] * len(wanted.stats) + place[here]
            np.add.at(sums.reshape(-1), at, sign * part[1][here])
