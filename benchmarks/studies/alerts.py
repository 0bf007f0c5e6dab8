"""How often alerts are wrong and how soon they are right, by simulation; no servers.

    python -m benchmarks.studies.alerts               everything; small segments take longest
    python -m benchmarks.studies.alerts --days 30     the same, coarser
    python -m benchmarks.studies.alerts --series DATA real series alone, of a folder as NAB's `data`

Click-through rates over windows of an hour, looked at every ten minutes; a rule fires when it was
true at two looks in a row. Traffic is that of benchmarks.studies.alert_traffic, and falls of the
rate thin its clicks out. Prints the tables from which docs/alerts_statistics.md is taken, and fails
where the rules of streamer.stats.alerting do not hold what is said of them there.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies import alert_cases, alert_courses, alert_series, alert_volume, alert_weeks
from benchmarks.studies.alert_coverage import coverage
from benchmarks.studies.alert_traffic import PANE_S, PANES, Floats, Ints, World
from benchmarks.studies.rates import table
from streamer.settings.alerts import LEVEL
from streamer.stats.alerting.baseline import ChangeRule, Status, compare
from streamer.stats.distributions import normal_quantile
from streamer.stats.random_groups import GroupSums

Flags = NDArray[np.bool_]
Then = Callable[[int], Sequence[GroupSums] | GroupSums]
"""What the window at a pane is compared with."""
WINDOW = 6
"""Panes of a window: an hour."""
DAYS = 7
"""Days that a window is compared with."""
WARM = 14 * PANES
"""Panes before the first look: all worlds are looked at over the same days."""
LEVELS = (0.95, LEVEL, 0.999)
DROPS = (0.05, 0.1, 0.2)
FALLS = (0.1, 0.2, 0.5)
REPEATS = 100
RULE = ChangeRule()


class Log:
    """Windows of a simulated log; the window at ``t`` ends with pane t."""

    def __init__(self, clicks: Ints, shown: Ints) -> None:
        self.clicks, self.shown = clicks, shown
        self.windows = [
            GroupSums(tuple(x), tuple(y))
            for x, y in zip(_windows(clicks).tolist(), _windows(shown).tolist(), strict=True)
        ]
        self.x, self.y = (_windows(part).sum(axis=1) for part in (clicks, shown))
        self.value: Floats = self.x / np.maximum(1, self.y)

    def fallen(self, dice: np.random.Generator, begin: int, fall: float) -> Log:
        """Two weeks before pane ``begin``, and the 24 hours from it, in which clicks are fewer."""
        its = slice(begin - WARM, begin + PANES)
        clicks = self.clicks[its].copy()
        clicks[WARM:] = dice.binomial(clicks[WARM:], 1 - fall)
        return Log(clicks, self.shown[its])


def _windows(panes: Ints) -> Ints:
    """Sums of the panes t - 5 to t, by group; of fewer at the beginning."""
    sums = panes.cumsum(axis=0)
    sums[WINDOW:] -= sums[:-WINDOW].copy()
    return sums


def ours(log: Log, rule: ChangeRule = RULE, days: int = DAYS, without: int = 0) -> Floats:
    """Lower and upper end of the change at every look, against the same time of the past days.
    ``without``: the most recent days that are left out."""
    past = [PANES * day for day in range(1 + without, days + 1)]
    return _ends(log, rule, lambda t: [log.windows[t - ago] for ago in past])


def before(log: Log) -> Flags:
    """Whether each window fires against the hour before, where 10 % are tolerated."""
    return _ends(log, RULE, lambda t: log.windows[t - WINDOW])[:, 1] < -RULE.drop


def _ends(log: Log, rule: ChangeRule, then: Then) -> Floats:
    found = []
    for t in range(WARM, len(log.windows)):
        change = compare(log.windows[t], then(t), rule)
        found.append((change.change_low, change.change_high))
    return np.array(found, float)  # None is NaN, beyond nothing


def usual(log: Log, mean: float) -> dict[str, Flags]:
    """The usual rules at every look; ``mean`` is the long-run one."""
    looks = np.arange(WARM, len(log.windows))
    value, x, y = log.value, log.x, log.y
    day = np.lib.stride_tricks.sliding_window_view(value, PANES)[looks - PANES]
    pooled = (x[looks] + x[looks - WINDOW]) / np.maximum(1, y[looks] + y[looks - WINDOW])
    counts = 1 / np.maximum(1, y[looks]) + 1 / np.maximum(1, y[looks - WINDOW])
    stderr = np.sqrt(pooled * (1 - pooled) * counts)
    return {
        "below 90 % of the mean": value[looks] < 0.9 * mean,
        "below 80 % of the mean": value[looks] < 0.8 * mean,
        "mean - 2 σ of a day": value[looks] < day.mean(axis=1) - 2 * day.std(axis=1),
        "z-test, hour before": value[looks] - value[looks - WINDOW]
        < -normal_quantile(1 - LEVEL) * stderr,
    }


def firing(true: Flags) -> Flags:
    """Fires: true at this look and at the one before."""
    return true & np.concatenate(([False], true[:-1]))


def episodes(true: Flags) -> int:
    """Alarms, where one ends with an hour of silence."""
    when = np.flatnonzero(firing(true))
    return 0 if len(when) == 0 else 1 + int((np.diff(when) > WINDOW).sum())


def by_drop(log: Log) -> dict[str, Flags]:
    """Rule → whether each window fires, for every tolerated drop."""
    return {f"ours, {drop:.0%}": ours(log, ChangeRule(drop))[:, 1] < -drop for drop in DROPS}


# 1. Nothing happens -------------------------------------------------------------------------------


def name(world: World) -> str:
    """A world in words, for tables."""
    more = "" if world.exact else ", approximated"
    return f"{world.per_second:g}/s, {world.ctr:.0%}{more}"


def nothing_happens(worlds: Sequence[World]) -> dict[World, Log]:
    """False alarms and coverage where nothing changes."""
    logs, alarms, levels, missed, said = {}, [], [], [], []
    for world in worlds:
        logs[world] = log = Log(*world.traffic)
        months = (world.days * PANES - WARM) / PANES / 30
        by_level = {level: ours(log, ChangeRule(level=level)) for level in LEVELS}
        ends = by_level[LEVEL]
        rules = by_drop(log) | {"ours, 10%, hour before": before(log)}
        rules |= usual(log, float(log.value.mean()))
        alarms.append((name(world), *(f"{episodes(r) / months:.1f}" for r in rules.values())))
        for drop in DROPS:
            sides = episodes(ends[:, 1] < -drop), episodes(ends[:, 0] > drop)
            if max(sides) > max(2, months):
                raise AssertionError(f"{name(world)}, {drop:.0%}: {sides} alarms, {months} months")
        for level, its in by_level.items():
            falls = [episodes(its[:, 1] < -drop) / months for drop in (0, *DROPS)]
            rises = [episodes(its[:, 0] > drop) / months for drop in (0, *DROPS)]
            pairs = zip(falls, rises, strict=True)
            levels.append((name(world), level, *(f"{a:.1f} / {b:.1f}" for a, b in pairs)))
        shares = [(np.mean(e[:, 1] < 0), np.mean(e[:, 0] > 0)) for e in by_level.values()]
        missed.append((name(world), *(f"{a:.2%} / {b:.2%}" for a, b in shares), _half(ends)))
        said.append((name(world), *(_said(log, drop) for drop in DROPS)))
    table(f"False alarms in 30 days, level {LEVEL}", ("traffic, CTR", *rules), alarms)
    some = ("tolerates 0", *(f"{drop:.0%}" for drop in DROPS))
    table("False alarms in 30 days: falls / rises", ("traffic, CTR", "level", *some), levels)
    head = ("traffic, CTR", *(f"level {level}" for level in LEVELS), f"half width at {LEVEL}")
    table("Windows whose upper / lower end misses no change", head, missed)
    head = ("traffic, CTR", *(f"tolerates {drop:.0%}" for drop in DROPS))
    title = "What is said: within / perhaps beyond / too little data / days differ / dropped"
    table(title, head, said)
    return logs


def _half(ends: Floats) -> str:
    return f"{np.nanmedian((ends[:, 1] - ends[:, 0]) / 2):.1%}"


def _said(log: Log, drop: float) -> str:
    """Shares of what is said, of every 13th window."""
    past = [PANES * day for day in range(1, DAYS + 1)]
    looks = range(WARM, len(log.windows), 13)
    found = Counter(
        compare(log.windows[t], [log.windows[t - ago] for ago in past], ChangeRule(drop)).status
        for t in looks
    )
    shown = (
        Status.WITHIN,
        Status.PERHAPS,
        Status.TOO_LITTLE,
        Status.DAYS_DIFFER,
        Status.DROPPED,
    )
    return " / ".join(f"{found[status] / len(looks):.1%}" for status in shown)


def little_traffic(days: int) -> None:
    """False alarms of ours in four more worlds of each kind, where few users decide."""
    rows = []
    for rate, ctr in ((0.3, 0.05), (3.0, 0.01)):
        found: Counter[tuple[float, int]] = Counter()
        months = 0.0
        for seed in range(21, 25):
            world = World(rate, ctr, days, seed=seed)
            ends = ours(Log(*world.traffic))
            months += len(ends) / PANES / 30
            for drop in DROPS:
                found[drop, 0] += episodes(ends[:, 1] < -drop)
                found[drop, 1] += episodes(ends[:, 0] > drop)
        if max(found.values()) > max(2, months):
            raise AssertionError(f"{rate}/s, {ctr}: {found} alarms, {months} months")
        pairs = ([found[drop, side] / months for side in (0, 1)] for drop in DROPS)
        rows.append((name(world), *(f"{falls:.2f} / {rises:.2f}" for falls, rises in pairs)))
    head = ("traffic, CTR", *(f"tolerates {drop:.0%}" for drop in DROPS))
    table("Little traffic, four times each: falls / rises in 30 days", head, rows)


# 2. Hard cases ------------------------------------------------------------------------------------


def hard_cases(days: int) -> None:
    """False alarms where days differ, weekends differ, a robot comes, or hardly anybody does."""
    calm = World(100, days=days, exact=False, seed=5)
    cases = {
        "100/s": calm,
        "100/s, the rate drifts by 5 % instead of 2 %": replace(calm, drift=0.05),
        "100/s, weekends are 10 % lower": replace(calm, weekend=-0.1),
        "100/s, weekends are 20 % lower": replace(calm, weekend=-0.2),
        "10/s": World(10, days=days, seed=5),
        "10/s, and a robot": World(10, days=days, seed=5),
        "0.1/s": World(0.1, days=days, seed=5),
        "0.01/s": World(0.01, days=days, seed=5),
    }
    rows = []
    for case, world in cases.items():
        clicks, shown = world.traffic
        if "robot" in case:
            shown[_robot(len(shown)), 7] += int(world.per_second * PANE_S / 2)
        log = Log(clicks, shown)
        months = (days * PANES - WARM) / PANES / 30
        rules = by_drop(log)
        for rule, true in rules.items():
            if episodes(true) > max(2, months):
                raise AssertionError(f"{case}, {rule}: {episodes(true)} alarms, {months} months")
        rules |= usual(log, float(log.value.mean()))
        rows.append((case, *(f"{episodes(rule) / months:.1f}" for rule in rules.values())))
    table("Hard cases: false alarms in 30 days", ("case", *rules), rows)


def silence(days: int) -> None:
    """What is said of windows in which nothing was counted, and of them all if nothing were."""
    rows = []
    past = [PANES * day for day in range(1, DAYS + 1)]
    for rate in (0.01, 0.1, 1.0, 10.0):
        log = Log(*World(rate, days=days, seed=6).traffic)
        looks = range(WARM, len(log.windows), 13)
        empty = [t for t in range(WARM, len(log.windows)) if not log.windows[t].support]
        outage, calm = (
            [
                compare(GroupSums(), [log.windows[t - ago] for ago in past], ChangeRule()).status
                is Status.NO_TRAFFIC
                for t in its
            ]
            for its in (looks, empty)
        )
        share = len(empty) / (len(log.windows) - WARM)
        if any(calm):
            raise AssertionError(f"{rate}/s: no traffic was said {sum(calm)} times")
        rows.append((f"{rate:g}/s", f"{share:.1%}", sum(calm), f"{np.mean(outage):.1%}"))
    head = ("traffic", "empty windows", "of them called no traffic", "an outage would be called")
    table("No traffic", head, rows)


def _robot(panes: int) -> Ints:
    """Three hours on every fifth day, at another time each; it looks and never clicks."""
    dice, begins = np.random.default_rng(9), np.arange(0, panes - PANES, 5 * PANES)
    begins = begins + dice.integers(0, PANES - 18, len(begins))
    return (begins[:, None] + np.arange(18)).ravel()


# 3. Something happens -----------------------------------------------------------------------------


def something_happens(logs: dict[World, Log]) -> None:
    """Time until a fall of the rate is found, which begins at any time of day."""
    rows = []
    for world, log in logs.items():
        dice = np.random.default_rng(11)
        mean = float(log.value.mean())
        begins = dice.integers(WARM, len(log.windows) - PANES, REPEATS).tolist()
        for fall in FALLS:
            taken: dict[str, list[float]] = {}
            for begin in begins:
                after = log.fallen(dice, begin, fall)
                rules = by_drop(after) | {"ours, 10%, hour before": before(after)}
                for rule, true in (rules | usual(after, mean)).items():
                    taken.setdefault(rule, []).append(_minutes(true))
            rows.append((name(world), f"{-fall:.0%}", *map(_shown, taken.values())))
            for drop, least in ((0.05, 0.1), (0.1, 0.2), (0.2, 0.5)):
                missed = np.isinf(taken[f"ours, {drop:.0%}"]).sum()
                if world.per_second >= 1000 and fall >= max(least, 0.2) and missed > 0.1 * REPEATS:
                    raise AssertionError(f"{name(world)}, {fall}, {drop}: {missed} not found")
    table(
        f"Minutes until a fall is found: median, 90th percentile, and the share found within 24 "
        f"hours ({REPEATS} falls each)",
        ("traffic, CTR", "fall", *taken),
        rows,
    )


def _minutes(true: Flags) -> float:
    """From the fall to the first look at which the rule fires; infinite if it does not."""
    when = np.flatnonzero(firing(true))
    return float((when[0] + 1) * PANE_S / 60) if len(when) else float("inf")


def _shown(taken: list[float]) -> str:
    middle, late = np.sort(taken)[[len(taken) // 2, int(len(taken) * 0.9)]]
    written = (f"{minutes:.0f}" if np.isfinite(minutes) else "–" for minutes in (middle, late))
    return f"{', '.join(written)} ({np.isfinite(taken).mean():.0%})"


# 4. After an incident -----------------------------------------------------------------------------


def after_an_incident(log: Log) -> None:
    """The rate was half as high from 24 to 12 hours ago, and now falls by 20 %."""
    dice = np.random.default_rng(12)
    taken: dict[str, list[float]] = {}
    for begin in dice.integers(WARM, len(log.windows) - PANES, REPEATS).tolist():
        calm = log.fallen(dice, begin, 0.2)
        clicks = calm.clicks.copy()
        yesterday = slice(WARM - PANES, WARM - PANES // 2)
        clicks[yesterday] = dice.binomial(clicks[yesterday], 0.5)
        hurt = Log(clicks, calm.shown)
        cases = {
            "without an incident": ours(calm),
            "7 days, with the incident": ours(hurt),
            "14 days, with the incident": ours(hurt, days=14),
            "7 days, the day of the incident left out": ours(hurt, without=1),
        }
        for case, ends in cases.items():
            taken.setdefault(case, []).append(_minutes(ends[:72, 1] < -0.1))
    rows = [(case, _shown(minutes)) for case, minutes in taken.items()]
    table("A fall of 20 % on the day after an incident (12 hours)", ("baseline", "found"), rows)


@dataclass
class Clock:
    began: float

    def lap(self, what: str) -> None:
        """Print the seconds since the last lap."""
        print(f"\n{what}: {time.perf_counter() - self.began:.0f} s", flush=True)
        self.began = time.perf_counter()


def main(days: int) -> None:
    clock = Clock(time.perf_counter())
    days += WARM // PANES
    exact = [World(rate, days=days) for rate in (10, 100)]
    thousand = World(1000, days=days, exact=False)
    others = [World(1, days=days), World(10, days=days, exact=False)]
    rare = [World(rate, ctr=0.01, days=days) for rate in (10, 100)]
    logs = nothing_happens([*exact, thousand, *others, *rare])
    little_traffic(days)
    clock.lap("nothing happens")
    hard_cases(days)
    silence(days)
    clock.lap("hard cases")
    something_happens({world: logs[world] for world in (*exact, thousand)})
    clock.lap("something happens")
    after_an_incident(logs[exact[1]])
    clock.lap("after an incident")
    for case in alert_cases.CASES:
        case()
    clock.lap("relapse, weekends and small segments")
    alert_courses.main()
    clock.lap("gradual falls, steps and days of a new kind")
    coverage()
    clock.lap("coverage")
    alert_volume.false_alarms(3 * days)
    alert_volume.found_changes(days)
    clock.lap("traffic")
    alert_weeks.weekdays(days)
    alert_weeks.drift()
    clock.lap("weekdays and drift")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--days", type=int, default=100, help="days without a change")
    options.add_argument("--series", type=Path, metavar="DATA", help="a folder of real series")
    arguments = options.parse_args()
    if arguments.series:
        alert_series.main(arguments.series)
    else:
        main(arguments.days)
