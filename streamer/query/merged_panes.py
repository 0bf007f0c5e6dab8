"""Panes of all partitions merged, for a few statistics: kept from commit to commit.

What a partition has of a pane is known by the array that it came in, which a reader keeps until it
is written again. Where that happened, for the most part by compaction, a digest tells whether it
changed: after a commit only panes that did are merged anew. Arrays are referred to weakly, so that
nothing is kept of what a reader has dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from weakref import ref

import numpy as np

from streamer._core import STAT_BITS
from streamer.encoding.arrays import I64
from streamer.encoding.packed import segment_and_stat, segment_code
from streamer.query.segment_index import SegmentIndex, are_continued
from streamer.settings import limits
from streamer.state.snapshot import View

Cells = tuple[I64, I64, I64]
"""Segment of the numbering, statistic and sum over all partitions."""


@dataclass(frozen=True)
class _Part:
    """What one partition has of a pane: the array that it came in, and a digest of the sums that
    are asked for."""

    array: ref[I64]
    digest: bytes


@dataclass(frozen=True)
class _Pane:
    """``parts``: number of a view → what the cells have of it."""

    parts: Mapping[int, _Part]
    cells: Cells


@dataclass
class MergedPanes:
    """By ring and statistics that are asked for together, and by pane: those asked for last, at
    most ``limits.MERGED_STATISTICS``."""

    _kept: dict[tuple[int, frozenset[int]], dict[int, _Pane]] = field(default_factory=dict)
    _maps: list[I64] = field(default_factory=list)

    def begin(self, numbering: SegmentIndex) -> None:
        """Another commit: where segments have other numbers than before, nothing is kept."""
        if not are_continued(self._maps, numbering.maps):
            self._kept = {}
        self._maps = numbering.maps

    def read(
        self, views: Sequence[View], ring: int, stats: frozenset[int], panes: range
    ) -> dict[int, Cells]:
        """The cells of some statistics in panes (``pane_number``) of a ring."""
        key, merged = (ring, stats), dict[int, _Pane]()
        before = self._kept.pop(key, {})
        is_wanted = np.zeros(1 << STAT_BITS, bool)
        is_wanted[list(stats)] = True
        for pane in panes:
            within = [i for i, view in enumerate(views) if pane in view.panes]
            if within:
                merged[pane] = self._merged(views, within, pane, is_wanted, before.get(pane))
        self._kept[key] = merged
        while len(self._kept) > limits.MERGED_STATISTICS:
            self._kept.pop(next(iter(self._kept)))
        return {pane: each.cells for pane, each in merged.items()}

    def _merged(
        self,
        views: Sequence[View],
        within: Sequence[int],
        pane: int,
        is_wanted: np.ndarray,
        kept: _Pane | None,
    ) -> _Pane:
        """A pane, with the cells that are kept of it where they are the same."""
        read: dict[int, tuple[I64, I64]] = {}
        parts = {}
        for i in within:
            array, part = views[i].panes[pane][0], kept.parts.get(i) if kept else None
            if part is None or part.array() is not array:
                read[i] = self._read(views[i], i, pane, is_wanted)
                part = _Part(ref(array), _digest(*read[i]))
            parts[i] = part
        if kept is not None and _are_same(kept.parts, parts):
            return _Pane(parts, kept.cells)
        for i in within:
            if i not in read:
                read[i] = self._read(views[i], i, pane, is_wanted)
        places, sums = zip(*read.values(), strict=True)
        place, at = np.unique(np.concatenate(places), return_inverse=True)
        total = np.zeros(len(place), np.int64)
        np.add.at(total, at, np.concatenate(sums))
        return _Pane(parts, (*segment_and_stat(place), total))

    def _read(self, view: View, i: int, pane: int, is_wanted: np.ndarray) -> tuple[I64, I64]:
        """What a partition has of the statistics: their places over all partitions, and sums."""
        codes, values = view.panes[pane]
        segment, stat = segment_and_stat(codes)
        here = np.flatnonzero(is_wanted[stat])
        return segment_code(self._maps[i][segment[here]], stat[here]), values[here]


def _digest(place: I64, value: I64) -> bytes:
    return blake2b(place.tobytes() + value.tobytes(), digest_size=16).digest()


def _are_same(old: Mapping[int, _Part], new: Mapping[int, _Part]) -> bool:
    return old.keys() == new.keys() and all(
        old[i] is part or old[i].digest == part.digest for i, part in new.items()
    )
