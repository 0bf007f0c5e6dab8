"""Alerts by simulation over days: gradual falls, the first weekend of a log, and holidays.

A window is compared with all that is stored of the log at the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.studies.alert_segments import episodes
from benchmarks.studies.alert_traffic import PANES, Ints, World
from benchmarks.studies.alert_weeks import WINDOW
from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, compare
from streamer.stats.random_groups import GroupSums

DAYS, ALL_DAYS = 7, 28
WEEKDAYS = (7, 1, 2, 3, 4, 5, 6)
"""How many days ago each weekday was, the present one first."""
REPEATS = 20
WORLD = World(100, exact=False)
RULE = ChangeRule(0.1)
DECLINES = {-0.05: 4, -0.02: 10}
"""By how much a rate falls a day, and within how many days it has to be said."""


@dataclass(frozen=True)
class Course:
    """Windows of an hour; day 0 is a Monday, and the log begins with day ``first``. ``holidays``:
    days."""

    clicks: Ints
    shown: Ints
    first: int = 0
    holidays: frozenset[int] = frozenset()
    windows: list[GroupSums] = field(init=False)

    def __post_init__(self) -> None:
        sums = []
        for panes in (self.clicks, self.shown):
            added = panes.cumsum(axis=0)
            added[WINDOW:] -= added[:-WINDOW].copy()
            sums.append(added.tolist())
        both = zip(*sums, strict=True)
        object.__setattr__(self, "windows", [GroupSums(tuple(x), tuple(y)) for x, y in both])

    def look(self, t: int, rule: ChangeRule) -> MetricChange:
        """What is said at pane t."""
        today, known = t // PANES, (t - WINDOW) // PANES - self.first
        is_holiday = today in self.holidays
        agos = [a for a in range(1, known + 1) if is_holiday or today - a not in self.holidays]
        week, last = [ago for ago in agos if ago <= DAYS], min(known, ALL_DAYS)
        weekdays = [
            [self._totals(t, ago) if ago in agos else (0, 0) for ago in range(ago, last + 1, DAYS)]
            for ago in WEEKDAYS
        ]
        alike = [((today - ago) % 7 >= 5) == (today % 7 >= 5) for ago in week]
        days = [self.windows[t - ago * PANES] for ago in week]
        return compare(
            self.windows[t],
            days,
            rule,
            weekdays=weekdays,
            alike=alike if known >= DAYS else (),
            is_new_kind=is_holiday or (sum(alike) < 2 and known < ALL_DAYS),
        )

    def _totals(self, t: int, ago: int) -> tuple[int, int]:
        window = self.windows[t - ago * PANES]
        return sum(window.x), window.support

    def looks(self, begin: int, end: int, rule: ChangeRule) -> Iterator[MetricChange]:
        """What is said at the panes from day ``begin`` on until day ``end``."""
        return (self.look(t, rule) for t in range(begin * PANES, end * PANES))


def firing(found: Sequence[MetricChange] | Iterator[MetricChange]) -> float:
    """Days until a regression is said at two looks in a row; infinite where it is not."""
    before = False
    for look, each in enumerate(found):
        if each.status.is_regression and before:
            return (look + 1) / PANES
        before = each.status.is_regression
    return float("inf")


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
    world = replace(WORLD, days=end, trend=a_day, trend_from=known, seed=500 + seed)
    return firing(Course(*world.traffic).looks(known, end, ChangeRule(drop)))


def no_decline() -> None:
    """False falls by what is called gradual, where days differ."""
    rows = []
    for drift in (0.02, 0.05):
        for begin, end in ((8, 28), (30, 90)):
            row, months = [], 3 * (end - begin) / 30
            worlds = [replace(WORLD, days=end, drift=drift, seed=9000 + i) for i in range(3)]
            courses = [Course(*world.traffic) for world in worlds]
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


def steps() -> None:
    """Minutes until a sudden fall is found where 5 % are tolerated, begun at any time of day."""
    rows = []
    for drift in (0.01, 0.02):
        for fall in (0.1, 0.15):
            row = []
            for known in (18, 36):
                taken = np.sort([_minutes(drift, known + 2 * (i % 3), fall, i) for i in range(36)])
                share = float(np.mean(taken <= 120))
                if fall > 0.1 and share < 0.8:
                    raise AssertionError(f"{drift}, {fall}, {known} days: {share}")
                row.append(f"{taken[18]:.0f} ({share:.0%}, {np.isfinite(taken).mean():.0%})")
            rows.append((f"{drift:.0%}", f"{-fall:.0%}", *row))
    head = ("the rate drifts by", "fall", "two weeks known", "five")
    title = "Steps, 100/s, 5 % tolerated: minutes until found (within two hours, within a day)"
    table(title, head, rows)


def _minutes(drift: float, known: int, fall: float, seed: int) -> float:
    clicks, shown = replace(WORLD, days=known + 2, drift=drift, seed=1300 + seed).traffic
    dice, clicks = np.random.default_rng(seed), clicks.copy()
    begin = known * PANES + int(dice.integers(0, PANES))
    clicks[begin:] = dice.binomial(clicks[begin:], 1 - fall)
    course = Course(clicks, shown)
    return 1440 * firing(course.look(t, ChangeRule(0.05)) for t in range(begin, begin + PANES))


def new_kinds() -> None:
    """Falls said on the first weekend after a start on Monday, Tuesday or Wednesday, and on a
    holiday that is a Thursday in the sixth week, all lower by themselves; and half of the clicks
    lost from six o'clock on."""
    rows = []
    for lower in (0.0, -0.1, -0.2):
        row = []
        for is_weekend in (True, False):
            calm, hurt = list[float](), list[float]()
            for seed in range(REPEATS):
                for fall, said in ((0.0, calm), (0.5, hurt)):
                    course, begin, end = _new_kind(is_weekend, lower, fall, seed)
                    looks = [*course.looks(begin, end, RULE)]
                    said.append(firing(looks[36:]) * 1440 if fall else _share(looks))
            if max(calm) > 0 or np.sort(hurt)[REPEATS * 9 // 10] > 70:
                raise AssertionError(f"{lower}, {is_weekend}: {calm}, {hurt}")
            row += [f"{np.mean(calm):.0%}", f"{np.median(hurt):.0f}, {max(hurt):.0f}"]
        rows.append((f"{lower:.0%}", *row))
    some = ("looks that fire", "-50 %: minutes until found, at most")
    head = (
        "lower by itself",
        *(f"{day}: {what}" for day in ("weekend", "holiday") for what in some),
    )
    table("Days of a new kind, 100/s, 10 % tolerated", head, rows)


def _new_kind(is_weekend: bool, lower: float, fall: float, seed: int) -> tuple[Course, int, int]:
    """A course, and the days of it that are of a new kind."""
    begin, end = (5, 7) if is_weekend else (38, 39)
    clicks, shown = replace(WORLD, days=end, seed=700 + seed).traffic
    dice, clicks = np.random.default_rng(seed), clicks.copy()
    clicks[begin * PANES :] = dice.binomial(clicks[begin * PANES :], 1 + lower)
    from_six = slice(begin * PANES + 36, None)
    clicks[from_six] = dice.binomial(clicks[from_six], 1 - fall)
    first, holidays = (seed % 3, ()) if is_weekend else (0, (begin,))
    return Course(clicks, shown, first, frozenset(holidays)), begin, end


def _share(looks: Sequence[MetricChange]) -> float:
    return float(np.mean([each.status.is_regression for each in looks]))


def main() -> None:
    """All tables; ten minutes."""
    declines()
    no_decline()
    steps()
    new_kinds()


if __name__ == "__main__":
    main()
