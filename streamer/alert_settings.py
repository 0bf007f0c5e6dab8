"""Settings of alerts on metrics: what may fall by how much before somebody is told."""

from __future__ import annotations

from functools import cached_property

import msgspec

from streamer.alerting.baseline import LEVEL
from streamer.durations import duration_ms
from streamer.section import Section


class Alert(Section, frozen=True):
    """[[alerts]]: tell when a metric falls (or rises) by more than is tolerated."""

    name: str
    """Its name in rules, pages and labels."""
    metric: str = "ctr_ratio"
    """A metric of experiments (docs/experiments.md) whose denominator is no number of users."""
    window: str = "1h"
    """Over which time: 10m to 24h, a whole number of which is a day."""
    segments: tuple[str, ...] = ()
    """Dimensions by whose values it is watched, too, besides everything together; changes are
    explained by them."""
    drop: float = 0.1
    """Relative change for the worse that is tolerated."""
    direction: str = "higher"
    """`higher` or `lower`: which is better."""
    baseline: str = "days"
    """Compared with: the same time of day on the past `days`, or the window `before`."""
    level: float = LEVEL
    """Certainty of the end of the interval that has to be beyond the tolerated change."""
    for_: str = msgspec.field(default="10m", name="for")
    """How long it has to last."""

    @cached_property
    def window_ms(self) -> int:
        return duration_ms(self.window, f"alerts.{self.name}.window")

    @cached_property
    def for_ms(self) -> int:
        return duration_ms(self.for_, f"alerts.{self.name}.for")
