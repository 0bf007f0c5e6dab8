"""Settings of alerts on metrics: how far they may move before an alert fires."""

from __future__ import annotations

import re
from datetime import date
from functools import cached_property

import msgspec

from streamer.settings import limits
from streamer.settings.durations import DAY_MS, duration_ms
from streamer.settings.section import Section

LEVEL = 0.99
"""Probability with which each end of an interval holds. Of 0.95, 0.99 and 0.999 the lowest at which
simulated traffic without a change fired less than once a month, tolerating 5 % and more
(docs/alerts_statistics.md)."""


class Alert(Section, frozen=True):
    """[[alerts]]: an alert when a metric falls (or rises) by more than is tolerated."""

    name: str
    """Its name in rules, pages and labels."""
    metric: str = "ctr_ratio"
    """A metric of experiments (docs/experiments.md) whose denominator is not a number of users."""
    window: str = "1h"
    """Length of the window: 10m to 24h, dividing a day evenly."""
    segments: tuple[str, ...] = ()
    """Dimensions whose values are watched one by one, besides everything together; changes are
    explained by them."""
    crossings: bool = False
    """Whether values of all dimensions, crossed or alone, are looked for in which it moved."""
    drop: float = 0.1
    """Relative change of the metric for the worse that is tolerated."""
    direction: str = "higher"
    """`higher` or `lower`: which is better."""
    baseline: str = "days"
    """Compared with: the same time of day on the past `days` (on the same weekday of past weeks,
    once four are known), or the window `before`."""
    reference: str = "first"
    """A fixed week that the past 7 days are compared with, too, so that slow drift shows: the
    `first` whole one that was counted, the one from a date (`2026-11-02`, UTC), or `none`."""
    traffic_drop: float = 0.5
    """Relative fall of traffic (of the metric's denominator) below the same time on past days that
    is tolerated: 0.5 is half; 0: no alert on it."""
    traffic_rise: float = 1.0
    """The same for a rise: 1.0 is twice as much; 0: no alert on it."""
    level: float = LEVEL
    """Certainty of the end of the interval that has to be beyond the tolerated change."""
    for_: str = msgspec.field(default="10m", name="for")
    """How long it has to last."""

    @cached_property
    def window_ms(self) -> int:
        return duration_ms(self.window, f"alerts.{self.name}.window")

    @cached_property
    def reference_day(self) -> int | None:
        """Days from 1970 to the date of ``reference``; None where it is no date. ValueError for
        anything but `first`, `none` and a date."""
        if self.reference in ("first", "none"):
            return None
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.reference):
            raise ValueError(f"{self.reference!r} is not a date")
        return (date.fromisoformat(self.reference) - date(1970, 1, 1)).days

    @cached_property
    def lasts_ms(self) -> int:
        """How long a lasting change differs from the baseline: then it is the baseline."""
        windows = limits.BEFORE_WINDOWS * self.window_ms
        return windows if self.baseline == "before" else limits.BASELINE_DAYS * DAY_MS

    @cached_property
    def for_ms(self) -> int:
        return duration_ms(self.for_, f"alerts.{self.name}.for")
