"""Settings of alerts on metrics: how far they may move before an alert fires."""

from __future__ import annotations

import re
from datetime import date
from functools import cached_property

import msgspec

from streamer.settings import limits
from streamer.settings.durations import DAY_MS, day_of, duration_ms
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
    """Dimensions whose values are watched: of one dimension each value, of several each combination
    of their values; and everything together. To watch two dimensions each for itself, write two
    alerts. They explain changes."""
    drop: float = 0.1
    """Tolerated relative change of the metric for the worse."""
    critical: float = 0.9
    """Relative change for the worse that is proved when somebody is to be called: nearly all is
    gone; 0: nobody is."""
    severity: str = "warning"
    """Of a change beyond `drop`: `warning`, or `critical`."""
    direction: str = "higher"
    """`higher` or `lower`: which is better."""
    baseline: str = "days"
    """`days` compares with the same time of day on past days (on the same weekday of past weeks,
    once four are known), `before` with the window before."""
    reference: str = "first"
    """A fixed week that the past 7 days are also compared with, which shows slow drift: the `first`
    whole week, the week from a date (`2026-11-02`, UTC), or `none`."""
    holidays: tuple[str, ...] = ()
    """Dates (UTC) that are like no other day: `["2026-12-25"]`. They are in no baseline of other
    days, and fire only by what is 30 % beyond all known days and the tolerance."""
    traffic_drop: float = 0.5
    """Tolerated relative fall of traffic (the metric's denominator) below the same time on past
    days: 0.5 is half; 0: no alert on falls."""
    traffic_rise: float = 1.0
    """Tolerated relative rise of traffic: 1.0 is twice as much; 0: no alert on rises."""
    level: float = LEVEL
    """Certainty of the interval's end that must be beyond the tolerated change."""
    for_: str = msgspec.field(default="10m", name="for")
    """How long the change must last."""

    @cached_property
    def window_ms(self) -> int:
        return duration_ms(self.window, f"alerts.{self.name}.window")

    @cached_property
    def reference_day(self) -> int | None:
        """Days from 1970 to the date of ``reference``; None where it is no date. ValueError for
        anything but `first`, `none` and a date."""
        return None if self.reference in ("first", "none") else _day_of(self.reference)

    @cached_property
    def holiday_days(self) -> frozenset[int]:
        """Days from 1970 to each of the ``holidays``. ValueError where one is no date."""
        return frozenset(map(_day_of, self.holidays))

    @cached_property
    def lasts_ms(self) -> int:
        """How long a lasting change differs from the baseline: then it is the baseline."""
        windows = limits.BEFORE_WINDOWS * self.window_ms
        return windows if self.baseline == "before" else limits.BASELINE_DAYS * DAY_MS

    @cached_property
    def for_ms(self) -> int:
        return duration_ms(self.for_, f"alerts.{self.name}.for")


def _day_of(text: str) -> int:
    """Days from 1970 to a date."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError(f"{text!r} is not a date")
    return day_of(date.fromisoformat(text))
