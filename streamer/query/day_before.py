"""The same window a day before, as far as it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.encoding.arrays import I64
from streamer.encoding.packed import pane_number
from streamer.metrics.day_before import DayBefore, shift_of
from streamer.metrics.rings import Ring
from streamer.query.pane_sums import PaneSums
from streamer.state.snapshot import View


class PastWindow:
    """Sums of the window ``number`` a day before, of all segments as the numbering has them."""

    def __init__(
        self,
        kept: PaneSums,
        views: Sequence[View],
        rings: DayBefore,
        number: int,
        window: Ring,
    ) -> None:
        self._kept, self._number, self._window = kept, number, window
        shape = rings.shapes[number]
        since_ms = [view.header.day_before_since_ms.get(shape) for view in views]
        known = [since for since in since_ms if since is not None]
        oldest_ms = [view.header.oldest_ms for view in views if view.header.oldest_ms is not None]
        self._since_ms = None
        if oldest_ms and len(known) == len(since_ms):
            self._since_ms = max(min(oldest_ms), *known)
        self.spans = rings.spans
        """Codes of what is kept."""

    def sums(self, oldest: int, newest: int) -> I64 | None:
        """Those of the panes a day before these, (segments, statistics), not to be written to; None
        where the log, or what is counted of it, began later than the first of these panes."""
        shift = shift_of(self._window)
        first, last = max(oldest - shift, 0), newest - shift
        if self._since_ms is None or first * self._window.pane_ms < self._since_ms:
            return None
        panes = pane_number(self._number, first), pane_number(self._number, last)
        return self._kept.sum((self._number, f"{newest - oldest} panes"), *panes)
