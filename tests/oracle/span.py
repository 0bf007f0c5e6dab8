"""Which times a window covers."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.settings.model import Settings

PANES = 60


@dataclass(frozen=True)
class Span:
    """The panes ``first`` to ``last``, ``pane_ms`` long, of the window ``label`` read at S."""

    label: str
    pane_ms: int
    first: int
    last: int

    def covers(self, event_ms: int) -> bool:
        return self.first <= event_ms // self.pane_ms <= self.last

    def reaches(self, event_ms: int) -> bool:
        """As ``covers``, without an upper edge: what is dated beyond S belongs to it, too."""
        return self.first <= event_ms // self.pane_ms

    def pane_end_ms(self, event_ms: int) -> int:
        """The end, exclusive, of the pane that a time lies in."""
        return (event_ms // self.pane_ms + 1) * self.pane_ms

    def is_mature(self, event_ms: int, wait_ms: int, stream_ms: int) -> bool:
        """The pane that a time lies in ended at least ``wait_ms`` before stream time."""
        return self.pane_end_ms(event_ms) + wait_ms <= stream_ms


def span_of(label: str, stream_ms: int, settings: Settings, longer: int = 1) -> Span:
    """The window at stream time, in panes that are so many times as long."""
    length_ms = settings.windows.lengths_ms[label]
    pane_ms = max(1000, length_ms // PANES) * longer
    last = stream_ms // pane_ms
    return Span(label, pane_ms, last - length_ms // pane_ms + 1, last)


def span_of_items(label: str, stream_ms: int, settings: Settings) -> Span:
    """The window that items are counted one by one in: twelve panes in place of sixty."""
    is_long = settings.windows.lengths_ms[label] >= PANES * 1000
    return span_of(label, stream_ms, settings, 5 if is_long else 1)
