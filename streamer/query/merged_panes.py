"""Panes of all partitions merged, for a few statistics: kept from commit to commit.

A pane is known by the arrays that it came in: a reader keeps those of a pane that was not written
again, so that after a commit only panes that changed are merged anew. They are referred to weakly,
so that nothing is kept of what a reader has dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import ref

import numpy as np

from streamer._core import STAT_BITS
from streamer.encoding.arrays import I64
from streamer.encoding.packed import segment_and_stat
from streamer.query.numbering import Numbering, are_continued
from streamer.settings import limits
from streamer.state.snapshot import View

Cells = tuple[I64, I64, I64]
"""Segment of the numbering, statistic and sum over all partitions."""


@dataclass(frozen=True)
class _Pane:
    """``arrays``: those that the cells are made of, in the order of partitions."""

    arrays: Sequence[ref[I64]]
    cells: Cells


@dataclass
class MergedPanes:
    """By ring and statistics that are asked for together, and by pane: those asked for last, at
    most ``limits.MERGED_STATISTICS``."""

    _kept: dict[tuple[int, frozenset[int]], dict[int, _Pane]] = field(default_factory=dict)
    _maps: list[I64] = field(default_factory=list)

    def begin(self, numbering: Numbering) -> None:
        """Another commit: where segments have other numbers than before, nothing is kept."""
        if not are_continued(self._maps, numbering.maps):
            self._kept = {}
        self._maps = numbering.maps

    def read(
        self, views: Sequence[View], ring: int, stats: frozenset[int], panes: range
    ) -> dict[int, Cells]:
        """Those of some statistics in panes (``pane_number``) of a ring."""
        key, merged = (ring, stats), dict[int, _Pane]()
        before = self._kept.pop(key, {})
        is_wanted = np.zeros(1 << STAT_BITS, bool)
        is_wanted[list(stats)] = True
        for pane in panes:
            within = [i for i, view in enumerate(views) if pane in view.panes]
            if within:
                arrays = [views[i].panes[pane][0] for i in within]
                kept = before.get(pane)
                if kept is None or not _are_same(kept.arrays, arrays):
                    cells = self._merged(views, within, pane, is_wanted)
                    kept = _Pane([ref(array) for array in arrays], cells)
                merged[pane] = kept
        self._kept[key] = merged
        while len(self._kept) > limits.MERGED_STATISTICS:
            self._kept.pop(next(iter(self._kept)))
        return {pane: each.cells for pane, each in merged.items()}

    def _merged(
        self, views: Sequence[View], within: Sequence[int], pane: int, is_wanted: np.ndarray
    ) -> Cells:
        places, sums = [], []
        for i in within:
            codes, values = views[i].panes[pane]
            segment, stat = segment_and_stat(codes)
            here = np.flatnonzero(is_wanted[stat])
            places.append(self._maps[i][segment[here]] << STAT_BITS | stat[here])
            sums.append(values[here])
        place, at = np.unique(np.concatenate(places), return_inverse=True)
        total = np.zeros(len(place), np.int64)
        np.add.at(total, at, np.concatenate(sums))
        return (*segment_and_stat(place), total)


def _are_same(old: Sequence[ref[I64]], new: Sequence[I64]) -> bool:
    return len(old) == len(new) and all(a() is b for a, b in zip(old, new, strict=True))
