"""Alert series: the sums of one metric over time that alerts compare. Every alert has two of them.

By groups of users: pane by pane for a week, and day by day for 400 days. A group is some bits of
the user's hash, so that all that a user did is in one group in every pane, and sums of groups vary
as users do.

By time: totals without groups for four weeks, which take a sixteenth of the memory. A chunk holds
16 consecutive panes: its statistics are those of a pane with groups, the place of the group being
the pane's number modulo 16.

A series is kept apart from everything else, so that others stay when one comes or goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streamer.metrics.rings import Ring
from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.stats.experiments.trials import Measure
from streamer.stats.random_groups import GROUPS

ABOVE, BELOW, HIGH, BELOW_HIGH = 0, GROUPS, 2 * GROUPS, 3 * GROUPS
"""The first of the statistics by group of users: numerators, denominators, and the high limbs of
those that have one."""
PARTS = 4
STATS = PARTS * GROUPS
"""How many statistics there are."""
CHUNK = GROUPS
"""Panes of a chunk."""
PANES = 1
"""The number of the ring of panes, or chunks: the first one."""


@dataclass(frozen=True)
class AlertSeries:
    """A metric by some dimensions, in panes of a part of its window; ``lag_ms``: how long it
    changes by feedback still to come. ``is_by_time``: totals of four weeks instead of groups."""

    measure: Measure
    window_ms: int
    dimensions: tuple[str, ...]
    lag_ms: int
    is_by_time: bool = False

    @property
    def pane_ms(self) -> int:
        """Length of a pane: the window has ``limits.PANES_OF_ALERTS`` of them."""
        return self.window_ms // limits.PANES_OF_ALERTS

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """By groups: panes for the window now, the one before, and the same on each past day; days.
        By time: chunks for the same on each day of the past weeks. Both reach further back by the
        days of which verdicts are read again."""
        days = 7 * limits.BASELINE_WEEKS if self.is_by_time else limits.BASELINE_DAYS
        span_ms = (days + limits.VERDICT_DAYS) * DAY_MS + self.window_ms + self.lag_ms
        panes, name = span_ms // self.pane_ms + 2, self.measure.name
        if self.is_by_time:
            return (Ring(name, CHUNK * self.pane_ms, panes // CHUNK + 2),)
        return Ring(name, self.pane_ms, panes), Ring(name, DAY_MS, limits.REFERENCE_DAYS)

    @cached_property
    def shape(self) -> str:
        """What its sums depend on; they are stored under it."""
        kind = "weeks by time" if self.is_by_time else "days by group"
        return repr((self.measure.name, self.window_ms, self.dimensions, self.lag_ms, kind))
