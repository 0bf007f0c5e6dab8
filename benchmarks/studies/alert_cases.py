"""Alerts by simulation where they were blind or wrong: a relapse, weekends, small segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.studies.alert_segments import episodes, small_segments
from benchmarks.studies.alert_traffic import PANES, Ints, World
from benchmarks.studies.alert_weeks import WINDOW
from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, Status, compare
from streamer.stats.random_groups import GroupSums

WEEKS = 2
"""Weeks before the first look."""
REPEATS = 20
MINUTES = PANES
"""Looks at what has fallen: a day of them."""


def windows_of(clicks: Ints, shown: Ints) -> list[GroupSums]:
    """Windows of an hour; the one at t ends with pane t."""
    parts = []
    for panes in (clicks, shown):
        sums = panes.cumsum(axis=0)
        sums[WINDOW:] -= sums[:-WINDOW].copy()
        parts.append(sums.tolist())
    return [GroupSums(tuple(x), tuple(y)) for x, y in zip(*parts, strict=True)]


def look(windows: Sequence[GroupSums], t: int, rule: ChangeRule, day: int = 0) -> MetricChange:
    """What is said at pane t with seven days known; ``day``: of the first pane, 5 and 6 are a
    weekend."""
    weekend = [(day + (t // PANES) - ago) % 7 >= 5 for ago in range(8)]
    past = [windows[t - ago * PANES] for ago in range(1, 8)]
    return compare(windows[t], past, rule, alike=[each == weekend[0] for each in weekend[1:]])


# A fall that begins at some time ------------------------------------------------------------------


def minutes_until(
    clicks: Ints, shown: Ints, begin: int, fall: float, rule: ChangeRule, dice: np.random.Generator
) -> float:
    """Minutes until a fall from pane ``begin`` on is found; infinite if not within a day."""
    since = begin - 7 * WEEKS * PANES
    day = since // PANES
    since = day * PANES
    its, fallen = slice(since, begin + MINUTES), clicks[since : begin + MINUTES].copy()
    at = begin - since
    fallen[at:] = dice.binomial(fallen[at:], 1 - fall)
    windows = windows_of(fallen, shown[its])
    before = False
    for t in range(at, at + MINUTES):
        is_beyond = look(windows, t, rule, day).status is Status.DROPPED
        if is_beyond and before:
            return 10.0 * (t - at + 1)
        before = is_beyond
    return float("inf")


def shown_minutes(taken: Sequence[float]) -> str:
    """Median, the largest, and the share found."""
    middle, last = np.sort(taken)[[len(taken) // 2, -1]]
    written = (f"{each:.0f}" if np.isfinite(each) else "–" for each in (middle, last))
    return f"{', '.join(written)} ({np.isfinite(taken).mean():.0%})"


def relapse() -> None:
    """The day before lost clicks from three hours earlier to nine hours later."""
    rows = []
    clicks, shown = World(10, days=100, seed=31).traffic
    for earlier in (None, 0.3, 0.7, 0.8, 1.0):
        row: list[list[float]] = [[], []]
        dice = np.random.default_rng(32)
        for begin in dice.integers(20 * PANES, 98 * PANES, REPEATS).tolist():
            hurt = clicks.copy()
            if earlier is not None:
                bad = slice(begin - PANES - 18, begin - PANES + 54)
                hurt[bad] = dice.binomial(hurt[bad], 1 - earlier)
            for i, fall in enumerate((0.5, 1.0)):
                row[i].append(minutes_until(hurt, shown, begin, fall, ChangeRule(0.2), dice))
        if any(np.median(taken) > 120 for taken in row):
            raise AssertionError(f"a relapse after {earlier}: {row}")
        what = "none" if earlier is None else f"{-earlier:.0%}"
        rows.append((what, *map(shown_minutes, row)))
    head = ("incident of the day before", "-50 %", "-100 %")
    title = "A relapse, 20 % tolerated, 10/s: minutes until found: median, longest (share)"
    table(title, head, rows)


def weekends() -> None:
    """Falls on a Wednesday and a Saturday with one week known, and false alarms."""
    rows = []
    for per_second in (10, 100):
        for weekend in (0.0, -0.2, -0.4):
            world = World(per_second, days=100, weekend=weekend, exact=per_second < 100, seed=33)
            clicks, shown = world.traffic
            row = [_on(clicks, shown, weekday, fall) for weekday in (2, 5) for fall in (0.3, 0.5)]
            windows = windows_of(clicks, shown)
            looks = range(7 * WEEKS * PANES, len(windows))
            false = np.array(
                [look(windows, t, ChangeRule()).status is Status.DROPPED for t in looks]
            )
            months = len(looks) / PANES / 30
            if episodes(false) > max(2, months):
                raise AssertionError(f"{world}: {episodes(false)} alarms in {months} months")
            what = f"{per_second}/s" + (f", weekends {weekend:.0%}" if weekend else "")
            rows.append((what, *row, f"{episodes(false) / months:.1f}"))
    head = ("traffic", "Wednesday -30 %", "-50 %", "Saturday -30 %", "-50 %", "false a month")
    title = "Weekends, 10 % tolerated, one week known: minutes until found: median, longest (share)"
    table(title, head, rows)


def _on(clicks: Ints, shown: Ints, weekday: int, fall: float) -> str:
    dice = np.random.default_rng(34)
    days = [day for day in range(20, 98) if day % 7 == weekday]
    begins = [int(day * PANES + dice.integers(0, PANES // 2)) for day in dice.choice(days, REPEATS)]
    found = [minutes_until(clicks, shown, begin, fall, ChangeRule(), dice) for begin in begins]
    return shown_minutes(found)


CASES: tuple[Callable[[], None], ...] = (relapse, weekends, small_segments)
"""Each a few minutes, the last one half an hour."""
