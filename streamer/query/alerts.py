"""What alerts compare: a window of a metric and its baseline, its traffic and the usual, and the
past week and the reference week, for every segment that is watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import add
from statistics import median

from streamer.metrics.per_user import AlertMeasures
from streamer.query.alert_panes import Panes, RawTotals, Sums
from streamer.query.composite_panes import panes_of, totals_of
from streamer.query.numbering import ALL, Segment
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.experiments import DAY_MS
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.alerting.baseline import LEAST_DAYS, Change, Rule, compare
from streamer.stats.alerting.explain import Explanation
from streamer.stats.alerting.past import arrivals, pooled
from streamer.stats.alerting.reference import against_reference
from streamer.stats.alerting.traffic import Traffic, TrafficRule, judge_traffic
from streamer.stats.random_groups import GroupSums

_DAYS, _WEEK = limits.BASELINE_DAYS, 7
_PAST_DAYS = 7 * limits.BASELINE_WEEKS


@dataclass(frozen=True)
class Watched:
    """One segment of an alert (``all`` outside of what it is watched by); what is said of it, and
    the metric on past days and in the window before, whichever of them it is compared with; what is
    said of its traffic, and of the past week beside the reference week, which begins on
    ``reference_from`` (None where an alert has no such thing)."""

    alert: Alert
    segment: Segment
    change: Change
    same_time: float | None
    before: float | None
    traffic: Traffic | None
    reference: Change | None
    reference_from: str | None


class Windows:
    """Sums of one alert's metric by segment: now, in the window before, and on past days."""

    def __init__(
        self,
        settings: Settings,
        alert: Alert,
        measures: AlertMeasures,
        views: Sequence[View],
        at_ms: int,
    ) -> None:
        self.alert = alert
        self.unit = 1 / measures.ratios[alert.metric].unit
        self.panes: Panes = panes_of(settings, alert, measures, views)
        series = self.panes.series
        self._pane_ms, self._mature_ms = series.pane_ms, at_ms - series.lag_ms
        self._newest = self._mature_ms // series.pane_ms
        self._rule = Rule(alert.drop, alert.level, alert.direction == "higher")
        self._traffic = TrafficRule(alert.traffic_drop, alert.traffic_rise, alert.level)

    @cached_property
    def present(self) -> Sums:
        """The window at stream time, or as far behind it as feedback may still change it."""
        return self.panes.window(self._newest)

    @cached_property
    def before(self) -> Sums:
        """The window before; nothing where it is not known."""
        last = self._newest - limits.PANES_OF_ALERTS
        return self.panes.window(last) if self._is_known(last) else {}

    @cached_property
    def days(self) -> list[Sums]:
        """The same time of day on past days, the last one first, as far back as is known."""
        lasts = [self._same_time(self._newest, day) for day in range(1, _DAYS + 1)]
        return [self.panes.window(last) for last in lasts if self._is_known(last)]

    @cached_property
    def weekdays(self) -> list[list[Mapping[Segment, RawTotals]]]:
        """Totals of the window in past weeks by weekday, the present one first; empty before four
        weeks are known."""
        return self._by_weekday(self._newest)

    @cached_property
    def usual(self) -> list[list[Mapping[Segment, RawTotals]]]:
        """The same of the last whole panes: where four weeks are not known, past days as one."""
        if weekdays := self._by_weekday(self._newest - 1):
            return weekdays
        lasts = [self._same_time(self._newest - 1, day) for day in range(1, _DAYS + 1)]
        return [[self.panes.totals(last) for last in lasts if self._is_of_whole_days(last)]]

    def _by_weekday(self, newest: int) -> list[list[Mapping[Segment, RawTotals]]]:
        lasts = [self._same_time(newest, day) for day in range(1, _PAST_DAYS + 1)]
        if not self._is_of_whole_days(lasts[-1]):
            return []
        windows = [self.panes.totals(last) for last in lasts]
        return [windows[(day - 1) % _WEEK :: _WEEK] for day in range(_WEEK)]

    def _same_time(self, last: int, day: int) -> int:
        """The last pane of the same window some days ago."""
        return last - day * DAY_MS // self._pane_ms

    def _begin_ms(self, last: int) -> int:
        return (last - limits.PANES_OF_ALERTS + 1) * self._pane_ms

    def _is_known(self, last: int) -> bool:
        """Whether the window with this last pane was counted from its first pane on."""
        return self._begin_ms(last) >= self.panes.since_ms

    def _is_of_whole_days(self, last: int) -> bool:
        """Whether its first pane is of a day that was counted as a whole: what is before the first
        events is no silence."""
        first = self.panes.first_day
        return first is not None and self._begin_ms(last) >= first * DAY_MS

    def watched(self) -> Iterator[Watched]:
        """The verdicts on everything together and on each segment; none where the window began
        before the metric was counted."""
        if not self._is_known(self._newest):
            return
        finest = {s: None for w in (self.present, self.before, *self.days) for s in w}
        grouped, total_of = self.panes.grouped, self.panes.total_of
        everything = (ALL,) * len(self.panes.shown)
        for segment in dict.fromkeys((everything, *finest)):
            now = grouped(self.present, segment)
            before = grouped(self.before, segment)
            days = [grouped(day, segment) for day in self.days]
            if self.alert.baseline == "before":
                change = compare(now, before, self._rule, self.unit)
            else:
                past = [[total_of(w, segment) for w in weeks] for weeks in self.weekdays]
                change = compare(now, days, self._rule, self.unit, past)
            same_time, of_before = self._pooled(days), self._pooled([before])
            traffic = self._judge_traffic(segment, days)
            reference, begin = self._against_reference(segment)
            yield Watched(
                self.alert, segment, change, same_time, of_before, traffic, reference, begin
            )

    def _judge_traffic(self, segment: Segment, days: Sequence[GroupSums]) -> Traffic | None:
        """The verdict on traffic in the last complete panes; None where the alert has none."""
        if not (self._traffic.drop or self._traffic.rise):
            return None
        total_of = self.panes.total_of
        _, now = total_of(self._last_whole, segment)
        past = [[total_of(window, segment)[1] for window in weeks] for weeks in self.usual]
        usual = median(map(arrivals, days)) if days else 0.0
        return judge_traffic(now, past, usual, self._traffic)

    @cached_property
    def _last_whole(self) -> Mapping[Segment, RawTotals]:
        return self.panes.totals(self._newest - 1)

    @cached_property
    def _reference_day(self) -> tuple[int | None, str]:
        """The first day of the reference week, or why there is none."""
        day, first = self.alert.reference_day, self.panes.first_day
        if day is None:
            if self.panes.has_lost_days:
                kept = f"the {limits.REFERENCE_DAYS} days that are kept"
                return None, f"the first week has left, or is about to leave, {kept}: set a date"
            return first, "" if first is not None else "nothing was counted yet"
        if first is None or day < first:
            return None, f"{self.alert.reference} is before the first whole day that is known"
        return day, ""

    @cached_property
    def _weeks(self) -> tuple[list[Sums], list[Sums], str]:
        """The days of the past week and of the reference week, or why they are not known."""
        begin, problem = self._reference_day
        if begin is None:
            return [], [], problem
        end = self._mature_ms // DAY_MS
        if end - _WEEK < begin + _WEEK:
            return [], [], f"the week from {_date(begin)} and 7 later days are not over yet"
        past = [self.panes.day(begin + i) for i in range(_WEEK)]
        shift = (end - begin) // _WEEK * _WEEK
        lasts = [
            begin + shift + i - (_WEEK if begin + shift + i >= end else 0) for i in range(_WEEK)
        ]
        return [self.panes.day(day) for day in lasts], past, ""

    def _against_reference(self, segment: Segment) -> tuple[Change | None, str | None]:
        """The past 7 whole days against the reference week, and where that begins."""
        if self.alert.reference == "none":
            return None, None
        begin, _ = self._reference_day
        now, then, problem = self._weeks
        named = None if begin is None else _date(begin)
        if problem:
            unknown = Change(None, None, None, None, 0, 0.0, 0)
            return replace(unknown, reason=problem, compared="reference"), named
        grouped = self.panes.grouped
        past_week, reference = ([grouped(day, segment) for day in week] for week in (now, then))
        return against_reference(past_week, reference, self._rule, self.unit), named

    def _pooled(self, windows: Sequence[GroupSums]) -> float | None:
        value = pooled(windows)
        return None if value is None else float(value) * self.unit

    def explained(self) -> Explanation:
        """The change from the baseline of everything together, split by segment."""
        now, then = _by_name(totals_of(self.present)), _by_name(_added(self._compared))
        return self.panes.explained(now, then)

    @property
    def compared(self) -> str:
        """What everything together is compared with: `before`, `days` or `weeks`."""
        if self.alert.baseline == "before":
            return "before"
        own = self.weekdays[0] if self.weekdays else []
        everything = (ALL,) * len(self.panes.shown)
        known = sum(self.panes.total_of(window, everything)[1] > 0 for window in own)
        is_enough = known >= LEAST_DAYS
        return "weeks" if is_enough else "days"

    @property
    def _compared(self) -> list[Mapping[Segment, RawTotals]]:
        """Totals of the windows that the present one is compared with."""
        if self.compared == "weeks":
            return self.weekdays[0]
        return [totals_of(w) for w in ([self.before] if self.compared == "before" else self.days)]

    def explained_traffic(self) -> list[tuple[str, int, float]]:
        """Segments, their events in the last whole panes, and the mean of them at the same time on
        past days, where any are known; those that moved the whole most first."""
        past = self.usual[0]
        if not past:
            return []
        now, then = _by_name(self._last_whole), _by_name(_added(past))
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


def _date(day: int) -> str:
    """The date of a day from 1970."""
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat()


def watched(
    settings: Settings, measures: AlertMeasures, views: Sequence[View], at_ms: int
) -> list[Watched]:
    """The verdicts on every alert's segments."""
    return [
        found
        for alert in settings.alerts
        for found in Windows(settings, alert, measures, views, at_ms).watched()
    ]
