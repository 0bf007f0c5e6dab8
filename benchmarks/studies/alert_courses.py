"""Alerts by simulation over days: rates that fall day by day, and none that does.

The log begins on a Monday; a window is compared with all that is stored of it at the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.studies.alert_segments import episodes
from benchmarks.studies.alert_traffic import PANES, World
from benchmarks.studies.alert_weeks import WINDOW, sums_of
from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, compare
from streamer.stats.alerting.past import Totals
from streamer.stats.random_groups import GroupSums

DAYS, WEEKS = 7, 4
WEEKDAYS = (7, 1, 2, 3, 4, 5, 6)
"""How many days ago each weekday was, the present one first."""
REPEATS = 20
WORLD = World(100, exact=False)
DECLINES = {-0.05: 4, -0.02: 10}
"""By how much a rate falls a day, and within how many days it has to be said."""


@dataclass(frozen=True)
class Course:
    """Windows of an hour from the first day on, a Monday."""

    windows: Sequence[GroupSums]
    totals: Sequence[Totals]

    @staticmethod
    def of(world: World) -> Course:
        """All windows of a world."""
        return Course(*sums_of(world))

    def look(self, t: int, rule: ChangeRule) -> MetricChange:
        """What is said at pane t."""
        known = (t - WINDOW) // PANES
        days = [self.windows[t - ago * PANES] for ago in range(1, min(known, DAYS) + 1)]
        last = min(known, DAYS * WEEKS)
        weekdays = [
            [self.totals[t - ago * PANES] for ago in range(first, last + 1, DAYS)]
            for first in WEEKDAYS
        ]
        weekend = [(t // PANES - ago) % 7 >= 5 for ago in range(DAYS + 1)]
        alike = [each == weekend[0] for each in weekend[1:]] if known >= DAYS else []
        return compare(self.windows[t], days, rule, weekdays=weekdays, alike=alike)

    def looks(self, begin: int, end: int, rule: ChangeRule) -> Iterator[MetricChange]:
        """What is said at the panes from day ``begin`` on until day ``end``."""
        return (self.look(t, rule) for t in range(begin * PANES, end * PANES))


def declines() -> None:
    """Days until a gradual fall is found, with one week known at its begin and with four."""
    rows = []
    for known in (8, 30):
        for a_day, within in DECLINES.items():
            row = []
            for drop in (0.05, 0.1):
                taken = [_days_until(known, a_day, drop, seed) for seed in range(REPEATS)]
                middle, late = np.sort(taken)[[REPEATS // 2, REPEATS * 9 // 10]]
                if late > within:
                    raise AssertionError(f"{known} days known, {a_day}, {drop}: {taken}")
                row.append(f"{middle:.1f}, {late:.1f} ({np.isfinite(taken).mean():.0%})")
            rows.append((f"{known} days", f"{a_day:.0%}", *row))
    head = ("known", "a day", "tolerates 5%", "10%")
    title = "A rate that falls day by day, 100/s: days until found: median, 90th percentile (share)"
    table(title, head, rows)


def _days_until(known: int, a_day: float, drop: float, seed: int) -> float:
    end = known + DECLINES[a_day] + 2
    course = Course.of(replace(WORLD, days=end, trend=a_day, trend_from=known, seed=500 + seed))
    before = False
    for look, found in enumerate(course.looks(known, end, ChangeRule(drop))):
        if found.status.is_regression and before:
            return (look + 1) / PANES
        before = found.status.is_regression
    return float("inf")


def no_decline() -> None:
    """False falls by what is called gradual, where days differ."""
    rows = []
    for drift in (0.02, 0.05):
        for begin, end in ((8, 28), (30, 90)):
            row, months = [], 3 * (end - begin) / 30
            worlds = [replace(WORLD, days=end, drift=drift, seed=9000 + i) for i in range(3)]
            courses = [Course.of(world) for world in worlds]
            for drop in (0.05, 0.1):
                found = [[*each.looks(begin, end, ChangeRule(drop))] for each in courses]
                every, gradual = (
                    sum(episodes(np.array([wanted(one) for one in of])) for of in found)
                    for wanted in (_is_bad, _is_gradual)
                )
                if gradual > 1 or (drift < 0.05 and every):
                    raise AssertionError(f"{drift}, {begin}, {drop}: {every}, {gradual}")
                row.append(f"{every / months:.1f} ({gradual / months:.1f})")
            rows.append((f"{drift:.0%}", f"{begin} to {end}", *row))
    head = ("the rate drifts by", "days", "tolerates 5%", "10%")
    table("Without a change, 100/s: false falls in 30 days (gradual ones)", head, rows)


def _is_bad(found: MetricChange) -> bool:
    return found.status.is_regression


def _is_gradual(found: MetricChange) -> bool:
    return found.gradual_days is not None


def main() -> None:
    declines()
    no_decline()


if __name__ == "__main__":
    main()
