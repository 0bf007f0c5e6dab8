"""Rings: a ring holds the panes of one window length; one more holds the totals."""

from __future__ import annotations

from dataclasses import dataclass

from streamer._core import TOTAL_RING
from streamer.settings import limits
from streamer.settings.model import Settings

assert TOTAL_RING == limits.MAX_WINDOWS + 1


@dataclass(frozen=True)
class Ring:
    """One window length: ``panes`` panes of ``pane_ms`` milliseconds."""

    label: str
    pane_ms: int
    panes: int

    @property
    def span_ms(self) -> int:
        """Length of the window, in milliseconds."""
        return self.pane_ms * self.panes

    @property
    def coarse(self) -> Ring:
        """The same window in panes as long as five of its own, where these are sixty.

        >>> Ring("1h", 60_000, 60).coarse
        Ring(label='1h', pane_ms=300000, panes=12)
        """
        if self.panes != limits.PANES_PER_WINDOW:
            return self
        longer = limits.PANES_PER_WINDOW // limits.ITEM_PANES_PER_WINDOW
        return Ring(self.label, self.pane_ms * longer, limits.ITEM_PANES_PER_WINDOW)

    def oldest(self, stream_ms: int) -> int:
        """Index of the oldest pane that the window at ``stream_ms`` still covers.

        >>> [Ring("1m", 1000, 60).oldest(stream_ms) for stream_ms in (59_999, 60_000)]
        [0, 1]
        """
        return max(0, stream_ms // self.pane_ms - self.panes + 1)


def rings_of(settings: Settings) -> tuple[Ring, ...]:
    """One ring for each window length."""
    return tuple(
        Ring(label, *settings.windows.panes_of(label)) for label in settings.windows.lengths_ms
    )
