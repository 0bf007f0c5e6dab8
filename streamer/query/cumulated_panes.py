"""Panes added up over time: the sums of any window are the difference of two rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamer.encoding.arrays import I64
from streamer.encoding.packed import pane_number, segment_and_stat
from streamer.metrics.alert_series import CHUNK, PANES, STATS
from streamer.query.numbering import ALL, Segment
from streamer.state.snapshot import SeriesView


@dataclass(frozen=True)
class Cumulated:
    """Sums of the panes from ``first`` on up to each: (panes + 1, statistics). They may wrap around
    64 bits; a difference that fits is right."""

    first: int
    sums: I64

    def between(self, first: int, last: int) -> I64:
        """The sums of the panes from ``first`` to ``last``."""
        end = len(self.sums) - 1
        start, stop = (min(max(pane - self.first, 0), end) for pane in (first, last + 1))
        found: I64 = self.sums[stop] - self.sums[start]
        return found

    def by_panes(self) -> Cumulated:
        """Where these are sums of chunks: sums up to each pane of them, (panes + 1, sides)."""
        chunks = np.diff(self.sums, axis=0).reshape(-1, 3, CHUNK)
        return Cumulated(self.first * CHUNK, _added_up(chunks.swapaxes(1, 2).reshape(-1, 3)))


def cumulated(
    views: Sequence[SeriesView],
    named: Sequence[Sequence[Segment]],
    segments: Sequence[Segment],
    panes: range,
) -> list[Cumulated]:
    """Sums of all partitions in some panes of the first ring, for each segment. ``named``: the
    segments of the labels of each partition."""
    sums = np.zeros((len(segments), len(panes), STATS), np.int64)
    for view, its in zip(views, named, strict=True):
        places = ((place, pane_number(PANES, pane)) for place, pane in enumerate(panes))
        held = [(place, *view.panes[pane]) for place, pane in places if pane in view.panes]
        if not held:
            continue
        at, codes, values = zip(*held, strict=True)
        label, stat = segment_and_stat(np.concatenate(codes))
        place = np.repeat(np.array(at), [len(each) for each in codes]) * STATS + stat
        value = np.concatenate(values)
        for number, segment in enumerate(segments):
            is_in = np.array([segment in (of, (ALL,) * len(of)) for of in its], bool)[label]
            np.add.at(sums[number].reshape(-1), place[is_in], value[is_in])
    return [Cumulated(panes.start, _added_up(each)) for each in sums]


def _added_up(sums: I64) -> I64:
    """(panes, statistics) → (panes + 1, statistics): of the panes before each."""
    return np.concatenate([np.zeros((1, sums.shape[1]), np.int64), np.cumsum(sums, axis=0)])
