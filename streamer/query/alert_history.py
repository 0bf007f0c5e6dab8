"""An alert over time, computed again from what is stored: when its metric and its traffic were
beyond what is tolerated in the past day, and when something could be said of a segment of which
nothing can be said now.

A look is made at the end of panes. It finds what the alert said right after, but for events that
came later: they count here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from streamer.metrics.compared_metrics import AlertMeasures
from streamer.query.alert_panes import RawTotals, Sums, WindowPanes
from streamer.query.alert_strip import Strip, strip
from streamer.query.alerts import AlertEvaluation
from streamer.query.checks import CHECKS
from streamer.query.segment_index import Segment
from streamer.query.verdicts import Verdicts
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.alerting.baseline import Status
from streamer.stats.alerting.past import Totals
from streamer.stats.random_groups import GroupSums

_LOOK_MS = 600_000
"""Looks at the past day are at least so far apart."""
_MOST_SEGMENTS = 10
"""The largest segments of an alert that are judged for all of a log."""
_LOOK_AHEAD_MS = 3_600_000
"""Looks at coming days are at least so far apart."""


@dataclass(frozen=True, slots=True)
class Span:
    """A ``check`` had the ``status`` at every look from ``from_ms`` until before ``until_ms``;
    None: still at the last look. At the first look of all it may have begun earlier.
    ``fires_ms``: when it had lasted as long as the alert waits (``for``); None where it had not.
    Rules fire ``for`` longer than ``until_ms``."""

    check: str
    status: str
    from_ms: int
    until_ms: int | None
    fires_ms: int | None


@dataclass(frozen=True, slots=True)
class SegmentHistory:
    """Spans of one segment, the oldest first. ``expected_ms``: when something could be said of its
    metric if coming days were like the last one; None where it can be said now, or not within
    ``limits.EXPECTED_DAYS``, and where the baseline is the window before. ``strip``: its past
    week; None where the metric is no ratio of two sums."""

    segment: Segment
    spans: list[Span]
    expected_ms: int | None
    strip: Strip | None = None


class AlertHistory:
    """The segments of one alert up to a time, the largest of the past day first."""

    def __init__(self, windows: AlertEvaluation, at_ms: int, least_step_ms: int = _LOOK_MS) -> None:
        """``at_ms``: up to when; looks are ``least_step_ms`` apart at least."""
        self._windows, self._alert, self._at_ms = windows, windows.alert, at_ms
        series = windows.panes.series
        self._pane_ms, self._lag_ms = series.pane_ms, series.lag_ms
        self.step_ms = step_ms(self._pane_ms, least_step_ms)

    @cached_property
    def _end_ms(self) -> int:
        """When the last look was, without the lag."""
        return (self._at_ms - self._lag_ms) // self.step_ms * self.step_ms

    @cached_property
    def looks_ms(self) -> list[int]:
        """When looks are made: in the past days of which verdicts can be computed again."""
        past = range(0, limits.VERDICT_DAYS * DAY_MS, self.step_ms)
        return [self._end_ms - ago + self._lag_ms for ago in reversed(past)]

    @cached_property
    def _ranked(self) -> list[Segment]:
        """Everything together, and what had support in the past day, or is watched now because it
        had some before."""
        panes, sizes = self._windows.panes, dict.fromkeys(self._windows.segments(), 0)
        newest = (self._at_ms - self._lag_ms) // self._pane_ms
        for ago in range(0, limits.VERDICT_DAYS * DAY_MS // self._pane_ms, limits.PANES_OF_ALERTS):
            totals = panes.totals(newest - ago)
            for segment in totals:
                sizes[segment] = sizes.get(segment, 0) + panes.total_of(totals, segment)[1]
        everything, *others = sizes
        return [everything, *sorted(others, key=lambda segment: (-sizes[segment], segment))]

    @property
    def omitted(self) -> int:
        """Segments beyond the bound."""
        return max(0, len(self._ranked) - limits.ALERT_HISTORY_SEGMENTS)

    def segments(self) -> list[SegmentHistory]:
        """The history of the largest segments."""
        chosen = self._ranked[: limits.ALERT_HISTORY_SEGMENTS]
        panes = self._windows.panes.of_segments(chosen)
        return [
            SegmentHistory(
                segment,
                self._spans(segment, of),
                self._expected_ms(segment, of),
                self._strip(segment, of),
            )
            for segment, of in panes.items()
        ]

    def spans(self, most: int) -> Iterator[tuple[Segment, Span]]:
        """The spans of so many segments alone, the largest ones."""
        for segment, panes in self._windows.panes.of_segments(self._ranked[:most]).items():
            yield from ((segment, span) for span in self._spans(segment, panes))

    def _strip(self, segment: Segment, panes: WindowPanes) -> Strip | None:
        if not self._windows.is_ratio:
            return None
        return strip(panes, segment, self._alert, self._windows.unit, self._end_ms)

    def smallest_changes(self) -> list[float | None]:
        """The smallest change of everything together that would have been beyond the tolerance at
        each look of the past day, an hour apart at least; None where none would. Without looks at
        which there is no baseline, or nothing but 0."""
        everything = self._ranked[0]
        panes = self._windows.panes.of_segments([everything])[everything]
        step, found = step_ms(self._pane_ms, _LOOK_AHEAD_MS) // self.step_ms, list[float | None]()
        for look_ms in self.looks_ms[::-step]:
            look = self._at(panes, look_ms - 1)
            said = look.change(everything) if look.is_known else None
            if said is not None and said.status != Status.NO_BASELINE and said.value:
                found.append(look.smallest_change(everything))
        return found

    def _at(self, panes: WindowPanes, at_ms: int) -> Verdicts:
        return Verdicts(self._alert, panes, self._windows.unit, at_ms)

    def _spans(self, segment: Segment, panes: WindowPanes) -> list[Span]:
        statuses: dict[str, list[Status | None]] = {check.name: [] for check in CHECKS}
        for look_ms in self.looks_ms:
            # A window that ends with the look. Some checks leave the present pane out: asked a
            # moment later, theirs is the same window.
            ended, later = self._at(panes, look_ms - 1), self._at(panes, look_ms)
            for check in CHECKS:
                windows = ended if check.is_of_present_pane else later
                status = check.status_at(windows, segment) if ended.is_known else None
                statuses[check.name].append(status)
        found = (span for name, each in statuses.items() for span in self._runs(name, each))
        return sorted(found, key=lambda span: (span.from_ms, span.check))

    def _runs(self, check: str, statuses: Sequence[Status | None]) -> Iterator[Span]:
        """Neighbouring looks of one status."""
        looks_ms = self.looks_ms
        for status, run in groupby(range(len(statuses)), key=lambda look: statuses[look]):
            if status is None or not status.is_bad:
                continue
            first, *others = run
            last = others[-1] if others else first
            fires_ms = looks_ms[first] + self._alert.for_ms
            until_ms = looks_ms[last + 1] if last + 1 < len(looks_ms) else None
            has_fired = fires_ms <= (self._at_ms if until_ms is None else until_ms - 1)
            yield Span(check, status, looks_ms[first], until_ms, fires_ms if has_fired else None)

    def _expected_ms(self, segment: Segment, panes: WindowPanes) -> int | None:
        if self._alert.baseline == "before":
            return None
        is_known = self._windows.is_known
        if not is_known or not self._windows.change(segment).status.is_open:
            return None
        step = step_ms(self._pane_ms, _LOOK_AHEAD_MS)
        coming = _Repeated(panes, self._end_ms // self._pane_ms - 1)
        for ahead_ms in range(step, limits.EXPECTED_DAYS * DAY_MS + 1, step):
            look_ms = self._end_ms + ahead_ms + self._lag_ms
            if not self._at(coming, look_ms - 1).change(segment).status.is_open:
                return look_ms
        return None


class PastFiring(NamedTuple):
    """A span of an alert in a segment that lasted as long as the alert waits."""

    alert: Alert
    segment: Segment
    span: Span
    until_ms: int


class PastAlerts:
    """When alerts would have fired while a log was written, of which each day is looked at once it
    has been read."""

    def __init__(self, settings: Settings, measures: AlertMeasures) -> None:
        self._settings, self._measures = settings, measures
        self._found: dict[tuple[str, Segment, str, str], list[PastFiring]] = {}
        self._last_ms = 0

    def look(self, views: Sequence[View]) -> None:
        """Judge the last day, at times of which windows overlap by half."""
        self._last_ms = at_ms = max(view.header.stream_ms for view in views)
        for alert in self._settings.alerts if at_ms else ():
            evaluation = AlertEvaluation(self._settings, alert, self._measures, views, at_ms)
            history = AlertHistory(evaluation, at_ms, max(_LOOK_MS, alert.window_ms // 2))
            for segment, span in history.spans(_MOST_SEGMENTS):
                of = self._found.setdefault((alert.name, segment, span.check, span.status), [])
                until_ms = at_ms if span.until_ms is None else span.until_ms
                if of and span.from_ms <= of[-1].until_ms + alert.window_ms:
                    of[-1] = of[-1]._replace(until_ms=max(of[-1].until_ms, until_ms))
                else:
                    of.append(PastFiring(alert, segment, span, until_ms))

    def ended(self) -> list[PastFiring]:
        """Those that fired and do not any more, the longest first."""
        every = [x for firings in self._found.values() for x in firings]
        fired = [x for x in every if x.span.from_ms + x.alert.for_ms < x.until_ms < self._last_ms]
        return sorted(fired, key=lambda x: x.span.from_ms - x.until_ms)


class _Repeated:
    """Windows as if each coming day were like the one before. ``newest``: the last known pane."""

    def __init__(self, panes: WindowPanes, newest: int) -> None:
        self.series, self.since_ms, self.first_day = panes.series, panes.since_ms, panes.first_day
        self._panes, self._newest = panes, newest

    def _known(self, last: int) -> int:
        a_day = DAY_MS // self.series.pane_ms
        return last - max(0, -(-(last - self._newest) // a_day)) * a_day

    def window(self, last: int) -> Sums:
        return self._panes.window(self._known(last))

    def totals(self, last: int) -> Mapping[Segment, RawTotals]:
        return self._panes.totals(self._known(last))

    def grouped(self, window: Sums, segment: Segment) -> GroupSums:
        return self._panes.grouped(window, segment)

    def total_of(self, window: Mapping[Segment, RawTotals], segment: Segment) -> Totals:
        return self._panes.total_of(window, segment)


def step_ms(pane_ms: int, least_ms: int) -> int:
    """Time between looks: whole panes, and at least so long.

    >>> step_ms(100_000, 600_000), step_ms(14_400_000, 600_000)
    (600000, 14400000)
    """
    return -(-least_ms // pane_ms) * pane_ms
