"""Windows that ended before, of panes that are still kept.

What is shown of them is what an exporter shows at their end that has all of their events, also the
late ones, so it does not depend on when they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.rings import Ring, rings_of
from streamer.query.panes import PaneReader
from streamer.query.readings import SeriesBlock, shown_under
from streamer.query.segment_index import SegmentIndex
from streamer.query.since import Times
from streamer.query.windows import Window
from streamer.settings.durations import pane_length_ms
from streamer.settings.model import Settings
from streamer.state.snapshot import View, first_event_ms


class PastWindows:
    """The windows of one state. ``catalogue``: what panes hold (``Catalogue.of_panes``)."""

    def __init__(self, settings: Settings, catalogue: Catalogue, views: Sequence[View]) -> None:
        self._settings, self._catalogue = settings, catalogue
        self._views = [replace(view, users={}) for view in views]
        self._numbering = SegmentIndex(settings, catalogue, views)
        self._times = Times(catalogue, views)
        numbered = enumerate(rings_of(settings), 1)
        self._rings = sorted(numbered, key=lambda each: each[1].pane_ms)
        self._panes: dict[str, PaneReader] = {}
        """By window: the sum of each moves on from one end to the next."""
        self.oldest_ms = first_event_ms(views)
        self.stream_ms = max((view.header.stream_ms for view in views), default=0)

    def ends(self, step_ms: int, until_ms: int | None = None) -> range:
        """Multiples of a step at which windows may have ended by a time, else by the latest
        event."""
        longest_ms = max(ring.span_ms for _, ring in self._rings)
        first_ms = max(self.oldest_ms, self.stream_ms - longest_ms) // step_ms * step_ms
        last_ms = self.stream_ms + 1 if until_ms is None else until_ms
        return range(first_ms + step_ms, last_ms + 1 if self.oldest_ms else 0, step_ms)

    def blocks(self, end_ms: int) -> Iterator[SeriesBlock]:
        """The series of all windows at a time that are kept in whole panes."""
        for label, length_ms in self._settings.windows.named_ms.items():
            pane_ms = pane_length_ms(length_ms)
            begin_ms = Ring(label, pane_ms, length_ms // pane_ms).oldest(end_ms - 1) * pane_ms
            found = self._ring(begin_ms, end_ms)
            if found is not None:
                window = self._window(label, *found, range(begin_ms, end_ms))
                for rollup in self._settings.rollups:
                    shown = shown_under(self._settings, window, label, rollup)
                    for metric in self._catalogue.metrics if shown.sums.segments else ():
                        yield from shown.blocks(metric)

    def _ring(self, begin_ms: int, end_ms: int) -> tuple[int, int] | None:
        """Number and pane length of the ring with the longest panes that hold a window."""
        for number, ring in reversed(self._rings):
            kept_ms = ring.oldest(self.stream_ms) * ring.pane_ms
            is_whole = begin_ms % ring.pane_ms == end_ms % ring.pane_ms == 0
            if is_whole and kept_ms <= max(begin_ms, self.oldest_ms):
                return number, ring.pane_ms
        return None

    def _window(self, label: str, number: int, pane_ms: int, times: range) -> Window:
        if label not in self._panes:
            self._panes[label] = PaneReader()
            self._panes[label].begin(self._views, self._numbering.maps, self._numbering.rows)
        return Window(
            *(self._settings, self._catalogue, self._views, self._numbering, number),
            *(Ring(label, pane_ms, len(times) // pane_ms), times.stop - 1, self._panes[label]),
            *(None, self._times.of(number, label)),
        )
