"""The verdicts on segments of an alert at one time: the metric against its baseline, and traffic
against the usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import TypeVar

from streamer.query.alert_panes import RawTotals, Sums, WindowPanes
from streamer.query.segment_index import Segment
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, compare, smallest_change
from streamer.stats.alerting.past import LEAST_ALIKE, Totals, arrivals
from streamer.stats.alerting.traffic import Traffic, TrafficRule, judge_traffic
from streamer.stats.random_groups import GroupSums

_DAYS, _WEEK = limits.BASELINE_DAYS, 7
_WEEKEND = (2, 3)
"""Days from 1970, a Thursday, modulo seven."""
_PAST_DAYS = 7 * limits.BASELINE_WEEKS
_T = TypeVar("_T")


class Verdicts:
    """What is said of a segment at a time, from its windows: the present one, the one before, and
    those of past days."""

    def __init__(
        self,
        alert: Alert,
        panes: WindowPanes,
        unit: float,
        at_ms: int,
        form: str = "number",
        support_unit: int = 1,
    ) -> None:
        """``unit``: what one unit of Σx / Σy is worth; ``form``: how values are written;
        ``support_unit``: how many integers of y are 1."""
        self.alert, self.unit, self._windows = alert, unit, panes
        self.pane_ms, self.mature_ms = panes.series.pane_ms, at_ms - panes.series.lag_ms
        self.newest = self.mature_ms // self.pane_ms
        """The last pane of the present window."""
        is_higher, level = alert.direction == "higher", alert.level
        self.rule = ChangeRule(alert.drop, level, is_higher, form, support_unit)
        tolerated = alert.traffic_drop, alert.traffic_rise
        self._traffic = TrafficRule(*tolerated, level, support_unit)
        self._window_at: dict[int, Sums] = {}
        self._days_of: dict[Segment, list[GroupSums]] = {}

    @cached_property
    def present(self) -> Sums:
        """The window at stream time, or as far behind it as feedback may still change it."""
        return self._windows.window(self.newest)

    @cached_property
    def before(self) -> Sums:
        """The window before; nothing where it is not known."""
        last = self.newest - limits.PANES_OF_ALERTS
        return self._windows.window(last) if self._is_known(last) else {}

    @cached_property
    def days(self) -> list[Sums]:
        """The same time of day on past days, the last one first, as far back as is known."""
        return [self._windows.window(last) for last in self._lasts]

    @cached_property
    def _lasts(self) -> list[int]:
        """The last panes of these windows."""
        lasts = (self._same_time(self.newest, day) for day in range(1, _DAYS + 1))
        return [last for last in lasts if self._is_known(last) and self._is_like(last)]

    @cached_property
    def alike(self) -> list[bool]:
        """Whether each of the past ``days`` is a weekday, or of a weekend (Saturday and Sunday,
        UTC), as the present one."""
        dates = (last * self.pane_ms // DAY_MS for last in (self.newest, *self._lasts))
        present, *past = (day % _WEEK in _WEEKEND for day in dates)
        return [day == present for day in past]

    def _is_holiday(self, last: int) -> bool:
        """Whether a window with this last pane began or ended on one."""
        ends = self._begin_ms(last) // DAY_MS, last * self.pane_ms // DAY_MS
        return not self.alert.holiday_days.isdisjoint(ends)

    def _is_like(self, last: int) -> bool:
        """Whether the present window is compared with that one: on holidays with all."""
        return self._is_holiday(self.newest) or not self._is_holiday(last)

    @cached_property
    def is_new_kind(self) -> bool:
        """Whether fewer than two known days are like the present one: on a holiday, and on the
        first weekend."""
        are_few, known = sum(self.alike) < LEAST_ALIKE, sum(map(len, self.weekdays))
        return self._is_holiday(self.newest) or (are_few and known < _PAST_DAYS)

    @cached_property
    def weekdays(self) -> list[list[Mapping[Segment, RawTotals]]]:
        """Totals of the window in past weeks by weekday, the present one first, as far back as days
        are known; nothing on days that are left out."""
        return _by_weekday([{} if of is None else of for of in self._past(self.newest)])

    @cached_property
    def usual(self) -> list[list[Mapping[Segment, RawTotals]]]:
        """Like ``weekdays``, of the window that ends with the last complete pane, without days that
        are left out; where fewer than three of four weeks are known, past days in one list."""
        windows = self._past(self.newest - 1)
        weekdays = [[of for of in each if of is not None] for each in _by_weekday(windows)]
        if min(map(len, weekdays)) >= limits.BASELINE_WEEKS - 1 and len(windows) == _PAST_DAYS:
            return weekdays
        return [[of for of in windows[:_DAYS] if of is not None]]

    def _past(self, newest: int) -> list[Mapping[Segment, RawTotals] | None]:
        """Totals of the window on past days that are known, the last one first; None for days that
        are left out."""
        lasts = [self._same_time(newest, day) for day in range(1, _PAST_DAYS + 1)]
        known = [last for last in lasts if self._is_of_whole_days(last)]
        return [self._windows.totals(last) if self._is_like(last) else None for last in known]

    def _same_time(self, last: int, day: int) -> int:
        """The last pane of the same window some days ago."""
        return last - day * DAY_MS // self.pane_ms

    def _begin_ms(self, last: int) -> int:
        return (last - limits.PANES_OF_ALERTS + 1) * self.pane_ms

    def _is_known(self, last: int) -> bool:
        """Whether the window with this last pane was counted from its first pane on."""
        return self._begin_ms(last) >= self._windows.since_ms

    def _is_of_whole_days(self, last: int) -> bool:
        """Whether its first pane is of a day that was counted as a whole: what is before the first
        events is no silence."""
        first = self._windows.first_day
        return first is not None and self._begin_ms(last) >= first * DAY_MS

    @property
    def is_known(self) -> bool:
        """Whether the present window was counted from its first pane on."""
        return self._is_known(self.newest)

    def _window(self, last: int) -> Sums:
        if last not in self._window_at:
            self._window_at[last] = self._windows.window(last)
        return self._window_at[last]

    def _is_beyond(self, segment: Segment, last: int, base: int) -> bool:
        """Whether a window is beyond the tolerance against an earlier one."""
        if not self._is_known(base):
            return False
        grouped = self._windows.grouped
        now, then = (grouped(self._window(pane), segment) for pane in (last, base))
        if now.value is None or not then.value:
            return False
        moved = float(now.value / then.value) - 1
        if (-moved if self.rule.higher_is_better else moved) <= self.rule.drop:
            return False  # no interval is beyond where the point is not
        return compare(now, then, self.rule, self.unit).status.is_regression

    def base_of(self, segment: Segment) -> int:
        """The last pane of the window that the present one is compared with by `before`: the window
        before, or, while all looks since then have been beyond the tolerance, the one that the
        first of them was compared with."""
        length = limits.PANES_OF_ALERTS
        base: int | None = None
        for last in range(self.newest - length * limits.BEFORE_WINDOWS, self.newest):
            tried = last - length if base is None else base
            base = tried if self._is_beyond(segment, last, tried) else None
        return self.newest - length if base is None else base

    def base_window(self, segment: Segment) -> Sums:
        """That window; nothing where it is not known."""
        base = self.base_of(segment)
        return self._window(base) if self._is_known(base) else {}

    def before_of(self, segment: Segment) -> GroupSums:
        """One segment in the window before, by group of users."""
        return self._windows.grouped(self.before, segment)

    def days_of(self, segment: Segment) -> list[GroupSums]:
        """One segment at the same time of day on past days, by group of users."""
        if segment not in self._days_of:
            self._days_of[segment] = [self._windows.grouped(day, segment) for day in self.days]
        return self._days_of[segment]

    def change(self, segment: Segment) -> MetricChange:
        """The metric against its baseline."""
        now, then, past, alike = self._compared_by(segment)
        return compare(now, then, self.rule, self.unit, past, alike, self.is_new_kind)

    def smallest_change(self, segment: Segment) -> float | None:
        """The smallest relative change for the worse that would be beyond the tolerance here; None
        where none would."""
        now, then, past, alike = self._compared_by(segment)
        return smallest_change(now, then, self.rule, past, alike, self.is_new_kind)

    def _compared_by(
        self, segment: Segment
    ) -> tuple[GroupSums, Sequence[GroupSums] | GroupSums, list[list[Totals]], list[bool]]:
        """The window, what it is compared with, totals by weekday, and which days are alike."""
        now = self._windows.grouped(self.present, segment)
        if self.alert.baseline == "before":
            return now, self._windows.grouped(self.base_window(segment), segment), [], []
        total_of = self._windows.total_of
        past = [[total_of(window, segment) for window in weeks] for weeks in self.weekdays]
        is_week = self._is_known(self._same_time(self.newest, _DAYS))
        return now, self.days_of(segment), past, self.alike if is_week else []

    def traffic(self, segment: Segment) -> Traffic | None:
        """The last complete panes against the usual; None where the alert has no such rule."""
        if not (self._traffic.drop or self._traffic.rise):
            return None
        total_of = self._windows.total_of
        _, now = total_of(self.last_whole, segment)
        past = [[total_of(window, segment)[1] for window in weeks] for weeks in self.usual]
        days = self.days_of(segment)
        usual = median(map(arrivals, days)) if days else 0.0
        return judge_traffic(now, past, usual, self._traffic, self.is_new_kind)

    @cached_property
    def last_whole(self) -> Mapping[Segment, RawTotals]:
        """The window that ends with the last complete pane."""
        return self._windows.totals(self.newest - 1)


def _by_weekday(windows: Sequence[_T]) -> list[list[_T]]:
    """Past days by weekday, the present one first."""
    return [list(windows[(day - 1) % _WEEK :: _WEEK]) for day in range(_WEEK)]
