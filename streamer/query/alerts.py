"""What alerts compare: a window of a metric and its baseline, its traffic and the usual, and the
past week and the reference week, for every segment that is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import add
from typing import NamedTuple

import numpy as np

from streamer.encoding.segments import ALL
from streamer.metrics.compared_metrics import AlertMeasures
from streamer.query.alert_panes import AlertPanes, Panes, RawTotals, Sums
from streamer.query.composite_panes import panes_of, totals_of
from streamer.query.segment_index import Segment
from streamer.query.verdicts import Verdicts
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.alerting.baseline import MetricChange, Status
from streamer.stats.alerting.explain import Explanation
from streamer.stats.alerting.onset import alike_by_time, onset
from streamer.stats.alerting.past import pooled
from streamer.stats.alerting.reference import against_reference
from streamer.stats.random_groups import GroupSums

_WEEK = 7


class Began(NamedTuple):
    """When a change began, and between which times: the begin of panes. ``nothing``: how much of
    the denominator came since the last of the numerator."""

    since_ms: int
    low_ms: int
    high_ms: int
    nothing: int


class AlertEvaluation(Verdicts):
    """All segments of one alert at one time."""

    def __init__(
        self,
        settings: Settings,
        alert: Alert,
        measures: AlertMeasures,
        views: Sequence[View],
        at_ms: int,
    ) -> None:
        self.panes: Panes = panes_of(settings, alert, measures, views)
        ratio = measures.ratios[alert.metric]
        self.is_ratio = not ratio.parts and ratio.percentile is None
        """Whether the metric is Σx / Σy."""
        units = ratio.form, ratio.below_unit
        super().__init__(alert, self.panes, 1 / ratio.unit, at_ms, *units)

    def segments(self) -> list[Segment]:
        """Everything together, and each segment of the windows that are compared."""
        everything = (ALL,) * len(self.panes.shown)
        windows = (self.present, self.before, *self.days)
        return list(dict.fromkeys((everything, *(s for window in windows for s in window))))

    @cached_property
    def _reference_day(self) -> tuple[int | None, str]:
        """The first day of the reference week, or why there is none."""
        day, first = self.alert.reference_day, self.panes.first_day
        if day is None:
            if self.panes.has_lost_days:
                kept = f"the {limits.REFERENCE_DAYS} days that are kept"
                return None, f"the first week has left, or will soon leave, {kept}: set a date"
            return first, "" if first is not None else "nothing was counted yet"
        if first is None or day < first:
            return None, f"{self.alert.reference} is before the first whole day on record"
        return day, ""

    @cached_property
    def _weeks(self) -> tuple[list[Sums], list[Sums], str]:
        """The days of the past week and of the reference week, or why they are not known."""
        begin, problem = self._reference_day
        if begin is None:
            return [], [], problem
        end = self.mature_ms // DAY_MS
        if end - _WEEK < begin + _WEEK:
            return (
                [],
                [],
                f"the drift check starts on {date_of(begin + 2 * _WEEK)}, after two full weeks",
            )
        past = [self.panes.day(begin + i) for i in range(_WEEK)]
        shift = (end - begin) // _WEEK * _WEEK
        lasts = [
            begin + shift + i - (_WEEK if begin + shift + i >= end else 0) for i in range(_WEEK)
        ]
        return [self.panes.day(day) for day in lasts], past, ""

    def against_reference(self, segment: Segment) -> MetricChange | None:
        """The past 7 whole days against the reference week; None where the alert has none."""
        if self.alert.reference == "none":
            return None
        now, then, problem = self._weeks
        if problem:
            unknown = MetricChange(None, None, None, None, 0, 0.0, 0)
            return replace(unknown, reason=problem, compared="reference")
        grouped = self.panes.grouped
        past_week, reference = ([grouped(day, segment) for day in week] for week in (now, then))
        return against_reference(past_week, reference, self.rule, self.unit)

    def began(self, segment: Segment, change: MetricChange) -> Began | None:
        """When a change began, to the day where it is gradual; else a ratio's, within the past
        week. None where that is not known."""
        status = change.status
        if change.gradual_days is not None:
            since_ms = self.mature_ms - change.gradual_days * DAY_MS
            return Began(since_ms, since_ms - DAY_MS, since_ms + DAY_MS, 0)
        if not self.is_ratio or not isinstance(self.panes, AlertPanes):
            return None
        a_day, counted_from = DAY_MS // self.pane_ms, -(-self.panes.since_ms // self.pane_ms)
        week = range(max(0, counted_from, self.newest + 1 - _WEEK * a_day), self.newest + 1)
        if not week:
            return None
        x, y = self.panes.by_pane(segment, week)
        (counted,), (held,) = np.nonzero(x), np.nonzero(y)
        if status is Status.NO_TRAFFIC:
            silent_ms = week[int(held[-1])] * self.pane_ms + self.pane_ms if len(held) else 0
            return Began(silent_ms, silent_ms, silent_ms, 0) if silent_ms else None
        alike = alike_by_time(x, y, a_day, limits.PANES_OF_ALERTS)
        found = onset(x, alike, is_rise=status is Status.RISEN)
        if found is None:
            return None
        nothing = int(y[counted[-1] + 1 if len(counted) else 0 :].sum())
        at, low, high = (week[pane] * self.pane_ms for pane in found)
        return Began(at, low, high, nothing)

    @property
    def reference_from(self) -> str | None:
        """When the reference week begins, where that is known."""
        begin, _ = self._reference_day
        return None if begin is None else date_of(begin).isoformat()

    def pooled(self, windows: Sequence[GroupSums]) -> float | None:
        """The metric in several windows together."""
        value = pooled(windows)
        return None if value is None else float(value) * self.unit

    def explained(self) -> Explanation:
        """The change from the baseline of everything together, split by segment."""
        now, then = _by_name(totals_of(self.present)), _by_name(_added(self._compared))
        return self.panes.explained(now, then)

    def explained_totals(self) -> tuple[RawTotals, RawTotals]:
        """What everything together adds up to, and the mean of that in the windows of its
        baseline."""
        windows = self._compared
        now, then = (
            tuple(map(sum, zip(*side.values(), strict=True))) or (0, 0)
            for side in (totals_of(self.present), _added(windows))
        )
        return now, tuple(total // max(1, len(windows)) for total in then)

    @cached_property
    def _of_everything(self) -> MetricChange:
        return self.change((ALL,) * len(self.panes.shown))

    @property
    def compared(self) -> str:
        """What everything together is compared with: `before`, `days`, `weekdays`, `weekends` or
        `weeks`."""
        return self._of_everything.compared

    @property
    def _compared(self) -> list[Mapping[Segment, RawTotals]]:
        """Totals of the windows that its baseline is of."""
        if self.compared == "before":
            return [totals_of(self.base_window((ALL,) * len(self.panes.shown)))]
        is_of_weeks = self.compared == "weeks"
        windows = self.weekdays[0] if is_of_weeks else [totals_of(day) for day in self.days]
        return [windows[place] for place in self._of_everything.kept]

    def explained_traffic(self) -> list[tuple[str, int, float]]:
        """Segments, their events in the last whole panes, and the mean of them at the same time on
        past days, where any are known; those that moved the whole most first."""
        past = self.usual[0]
        if not past:
            return []
        now, then = _by_name(self.last_whole), _by_name(_added(past))
        found = [
            (name, now.get(name, (0, 0))[1], then.get(name, (0, 0))[1] / len(past))
            for name in dict.fromkeys((*now, *then))
        ]
        return sorted(found, key=lambda part: (-abs(part[1] - part[2]), part[0]))


def _added(windows: Sequence[Mapping[Segment, RawTotals]]) -> dict[Segment, RawTotals]:
    """Several windows together."""
    found: dict[Segment, RawTotals] = {}
    for window in windows:
        for segment, totals in window.items():
            before = found.get(segment)
            found[segment] = totals if before is None else tuple(map(add, before, totals))
    return found


def _by_name(window: Mapping[Segment, RawTotals]) -> dict[str, RawTotals]:
    """Segments called by their values."""
    return {
        " · ".join(value for value in segment if value != ALL) or ALL: totals
        for segment, totals in window.items()
    }
