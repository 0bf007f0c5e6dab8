"""What is kept of the same window a day before.

Windows that ``windows.day_before`` names have a second ring: panes as long as theirs, for a day and
a window, of those statistics only that something compares. Late events and late feedback reach
them as they reach any pane.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from streamer._core import TOTAL_RING
from streamer.metrics.layout import Layout, runs_of
from streamer.metrics.rings import Ring, rings_of
from streamer.metrics.sums import key_of
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings

Kept = tuple[str, int, int]
"""A statistic, and those of its integers that are kept: [first, stop)."""


@dataclass(frozen=True)
class DayBefore:
    """``rings``: by their number, which is that of the window's ring and ``TOTAL_RING``;
    ``spans``: codes of the statistics that they keep, [first, stop), ascending."""

    rings: Mapping[int, Ring]
    spans: tuple[tuple[int, int], ...]
    kept: tuple[str, ...] = ()
    """What the sums of these codes are of."""

    @staticmethod
    def of(settings: Settings, layout: Layout, kept: Iterable[Kept]) -> DayBefore:
        """Of these settings, where ``kept`` is compared; nothing where that is empty."""
        at, parts = layout.at, {stat.name: stat.parts for stat in layout.stats}
        codes = {
            at[name] + i: key_of(settings, parts[name][i])
            for name, first, stop in kept
            for i in range(first, stop)
        }
        rings = {
            TOTAL_RING + number: Ring(ring.label, ring.pane_ms, shift_of(ring) + ring.panes)
            for number, ring in enumerate(rings_of(settings), 1)
            if ring.label in settings.windows.day_before and codes
        }
        if not rings:
            return DayBefore(rings, ())
        return DayBefore(rings, tuple(runs_of(sorted(codes))), tuple(sorted(codes.values())))

    @cached_property
    def shapes(self) -> dict[int, str]:
        """What the panes of each ring depend on: they are read under the same one only."""
        return {
            number: f"{ring.span_ms} by {ring.pane_ms} of {_digest(self.kept)}"
            for number, ring in self.rings.items()
        }

    def core_spec(self) -> dict[str, object]:
        """The core's spec of the rings, by number of the window."""
        rings = [
            (number - TOTAL_RING, {"pane_ms": ring.pane_ms, "panes": ring.panes})
            for number, ring in self.rings.items()
        ]
        return {"rings": rings, "statistics": self.spans}


def shift_of(ring: Ring) -> int:
    """By how many panes the day before is earlier.

    >>> shift_of(Ring("1h", 60_000, 60))
    1440
    """
    return DAY_MS // ring.pane_ms


def _digest(names: tuple[str, ...]) -> str:
    return hashlib.blake2b(repr(names).encode(), digest_size=8).hexdigest()
