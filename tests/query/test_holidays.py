"""Which days an alert compares a window with: holidays, weekends, and what is known by then."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamer.query.alert_panes import Sums
from streamer.query.segment_index import Segment
from streamer.query.verdicts import Verdicts
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.stats.alerting.baseline import Status
from streamer.stats.alerting.past import Totals
from streamer.stats.random_groups import GroupSums

PANE_MS = 600_000
FIRST = 20_454
"""2026-01-01, a Thursday."""
HERE = ("all",)


class Days:
    """Windows of an hour that are equal on each day from ``first`` on, with ``lower`` ones."""

    def __init__(self, first: int, lower: Mapping[int, float]) -> None:
        self.series = SimpleNamespace(pane_ms=PANE_MS, lag_ms=0)
        self.since_ms, self.first_day = first * DAY_MS, first
        self._lower = lower

    def _day(self, last: int) -> int:
        return last * PANE_MS // DAY_MS

    def window(self, last: int) -> Sums:
        return {HERE: np.array([self._day(last)])}

    def totals(self, last: int) -> Mapping[Segment, tuple[int, ...]]:
        return {HERE: (self._day(last),)}

    def grouped(self, window: Sums, segment: Segment) -> GroupSums:
        level = self._lower.get(int(window[segment][0]), 1.0)
        x = (round(level * (10_000 + 37 * group)) for group in range(16))
        return GroupSums(tuple(x), (200_000,) * 16)

    def total_of(self, window: Mapping[Segment, tuple[int, ...]], segment: Segment) -> Totals:
        if segment not in window:
            return 0, 0
        one = self.grouped({HERE: np.array(window[segment])}, segment)
        return sum(one.x), one.support


def verdicts(day: int, first: int, holidays: tuple[str, ...] = (), **lower: float) -> Verdicts:
    levels = {FIRST + int(name.removeprefix("day")): level for name, level in lower.items()}
    panes: Any = Days(FIRST + first, levels)
    at_ms = (FIRST + day) * DAY_MS + 12 * 3_600_000
    return Verdicts(Alert(name="ctr", holidays=holidays), panes, 1.0, at_ms)


def days_of(windows: Verdicts) -> list[int]:
    return [int(window[HERE][0]) - FIRST for window in windows.days]


def test_holidays_are_in_no_baseline() -> None:
    windows = verdicts(10, 0, ("2026-01-06",))
    assert days_of(windows) == [9, 8, 7, 6, 4, 3]
    assert windows.alike == [True, *[False] * 4, True]  # the 10th is a Sunday
    assert [len(each) for each in windows.weekdays] == [1, 2, 2, 2, 1, 1, 1]
    assert windows.weekdays[5] == [{}]
    (usual,) = windows.usual
    assert [of[HERE][0] - FIRST for of in usual] == [9, 8, 7, 6, 4, 3]


def test_after_four_weeks_a_weekday_is_compared_without_its_holidays() -> None:
    windows = verdicts(35, 0, ("2026-01-15",))  # three weeks before
    assert [bool(of) for of in windows.weekdays[0]] == [True, True, False, True]
    assert [len(each) for each in windows.usual] == [3, *[4] * 6]
    found = windows.change(HERE)
    assert (found.compared, found.days, found.status) == ("weeks", 3, Status.WITHIN)
    two = verdicts(35, 0, ("2026-01-15", "2026-01-08"))
    assert [len(each) for each in two.usual] == [7]
    assert two.change(HERE).compared == "weekdays"
    assert not two.is_new_kind


@pytest.mark.parametrize("known", [8, 34])
def test_on_a_holiday_only_what_is_beyond_all_days_fires(known: int) -> None:
    holiday = ("2026-02-05",)
    day = 35
    for level, status in ((0.8, Status.NO_BASELINE), (0.5, Status.DROPPED)):
        windows = verdicts(day, day - known, holiday, day35=level)
        assert windows.is_new_kind
        assert windows.change(HERE).status == status
        assert verdicts(day, day - known, day35=level).change(HERE).status == Status.DROPPED
    like = verdicts(day, day - known, ("2026-02-01", *holiday), day35=0.5, day31=0.5)
    assert like.change(HERE).status == Status.NO_BASELINE


def test_a_window_that_begins_on_a_holiday_is_of_it() -> None:
    panes: Any = Days(FIRST, {})
    alert = Alert(name="ctr", holidays=("2026-01-08",))
    at_ms = (FIRST + 8) * DAY_MS + 1_800_000
    assert Verdicts(alert, panes, 1.0, at_ms).is_new_kind
    assert not Verdicts(alert, panes, 1.0, at_ms + 3_600_000).is_new_kind


def test_the_first_weekend_is_of_a_new_kind() -> None:
    """Of a log that begins on Monday, the fifth day."""
    assert [verdicts(day, 4).is_new_kind for day in range(6, 15)] == [
        *[False] * 3,
        *[True, True],
        *[False] * 4,
    ]
    assert verdicts(9, 4, day9=0.8).change(HERE).status == Status.NO_BASELINE
    assert verdicts(9, 4, day9=0.5).change(HERE).status == Status.DROPPED


def test_the_window_before_knows_no_kinds() -> None:
    panes: Any = Days(FIRST, {})
    alert = Alert(name="ctr", baseline="before", holidays=("2026-01-08",))
    at_ms = (FIRST + 7) * DAY_MS + 12 * 3_600_000
    assert Verdicts(alert, panes, 1.0, at_ms).change(HERE).status == Status.WITHIN
