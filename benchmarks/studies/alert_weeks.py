"""Weekdays and slow drift by simulation: what past days, past weeks and a reference week say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from benchmarks.studies.alert_traffic import PANES, World
from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, Status, compare
from streamer.stats.alerting.reference import against_reference
from streamer.stats.random_groups import GroupSums

WINDOW, WARM_DAYS = 6, 36
DROPS = (0.05, 0.1, 0.2)
DRIFT_DAYS, REPEATS = 84, 20
"""Days of a world that drifts, and how many of each kind."""

CASES = (
    (10, 0.0, 0.02, 0.0), (10, -0.2, 0.02, 0.0), (100, -0.2, 0.02, 0.0), (1, 0.0, 0.02, 0.0),
    (10, 0.0, 0.1, 0.0), (100, -0.4, 0.1, 0.0),
    (10, 0.0, 0.02, -0.02), (10, -0.2, 0.02, -0.02), (10, -0.2, 0.02, -0.01),
    (10, -0.2, 0.02, -0.005), (1, 0.0, 0.02, -0.02), (100, -0.2, 0.02, -0.01),
)  # fmt: skip
"""Events a second, change on weekends, what the rate wanders by within days, and its trend."""


def sums_of(world: World) -> tuple[list[GroupSums], list[tuple[int, int]]]:
    """Windows of an hour by groups, and their totals; the one at t ends with pane t."""
    parts = []
    for panes in world.traffic:
        sums = panes.cumsum(axis=0)
        sums[WINDOW:] -= sums[:-WINDOW].copy()
        parts.append(sums)
    rows = [part.tolist() for part in parts]
    by_group = [GroupSums(tuple(x), tuple(y)) for x, y in zip(*rows, strict=True)]
    x, y = (part.sum(axis=1).tolist() for part in parts)
    return by_group, list(zip(x, y, strict=True))


def at_looks(
    world: World, weeks: bool, rule: ChangeRule, fall: float = 0.0, step: int = 1
) -> list[MetricChange]:
    """What is said at each look; with ``fall`` every window alone is thinned out by so much."""
    windows, totals = sums_of(world)
    dice, found = np.random.default_rng(3), []
    for t in range(WARM_DAYS * PANES, len(windows), step):
        now = windows[t]
        if fall:
            fewer = dice.binomial(now.x, 1 - fall).tolist()
            now = GroupSums(tuple(fewer), now.y)
        days = [windows[t - d * PANES] for d in range(1, 8)]
        weekdays = [
            [totals[t - (d + 7 * week) * PANES] for week in range(4)] for d in (7, 1, 2, 3, 4, 5, 6)
        ]
        found.append(compare(now, days, rule, weekdays=weekdays if weeks else ()))
    return found


def alarms(found: list[MetricChange], rule: ChangeRule) -> int:
    """Falls and rises said at two looks in a row; an alarm ends with an hour of silence."""
    total = 0
    for side in (
        [c.change_high is not None and c.change_high < -rule.drop for c in found],
        [c.change_low is not None and c.change_low > rule.drop for c in found],
    ):
        true = np.array(side)
        when = np.flatnonzero(true & np.concatenate(([False], true[:-1])))
        total += 0 if len(when) == 0 else 1 + int((np.diff(when) > WINDOW).sum())
    return total


def weekdays(days: int) -> None:
    """False alarms, what is said, and windows whose fall is found, by seven days and four weeks."""
    calm = World(100, days=WARM_DAYS + days, exact=False, seed=5)
    cases = {
        "100/s": calm,
        "100/s, weekends are 20 % lower": replace(calm, weekend=-0.2),
        "100/s, weekends are 40 % lower": replace(calm, weekend=-0.4),
        "100/s, the rate drifts by 10 %": replace(calm, drift=0.1),
        "10/s, weekends are 20 % lower": replace(calm, per_second=10, weekend=-0.2),
    }
    rows = []
    for case, world in cases.items():
        for weeks in (False, True):
            row = []
            for drop in DROPS:
                rule = ChangeRule(drop)
                found = at_looks(world, weeks, rule)
                count = alarms(found, rule) * 30 / days
                said = Counter(change.status for change in found)
                shares = (
                    f"{said[status] / len(found):.0%}"
                    for status in (Status.WITHIN, Status.TOO_LITTLE, Status.DAYS_DIFFER)
                )
                fallen = at_looks(world, weeks, rule, fall=2 * drop, step=13)
                hit = np.mean([change.status is Status.DROPPED for change in fallen])
                row.append(f"{count:.1f} ({' / '.join(shares)}), {hit:.0%}")
                if count > 1.0 and world.drift <= 0.02:
                    raise AssertionError(f"{case}, {drop:.0%}: {count} alarms a month")
            rows.append((case, "4 weeks" if weeks else "7 days", *row))
    head = ("case", "baseline", *(f"tolerates {drop:.0%}" for drop in DROPS))
    title = (
        "False alarms in 30 days (within / too little data / days differ), and windows that are "
        "called where the rate has fallen by twice the tolerated"
    )
    table(title, head, rows)


def drift() -> None:
    """Days until a slow drift is said, which begins after the reference week; alarms without."""
    rows = []
    for per_second, weekend, wander, trend in CASES:
        taken: dict[str, list[float]] = {f"{drop:.0%}": [] for drop in DROPS}
        of_days = 0
        for seed in range(REPEATS):
            world = World(
                per_second, days=DRIFT_DAYS, weekend=weekend, drift=wander, trend=trend,
                trend_from=8, exact=False, seed=100 + seed,
            )  # fmt: skip
            x, y = (part.reshape(DRIFT_DAYS, PANES, -1).sum(axis=1) for part in world.traffic)
            days = [
                GroupSums(tuple(a), tuple(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)
            ]
            for drop in DROPS:
                taken[f"{drop:.0%}"].append(_days_until(days, ChangeRule(drop)))
            if seed < 3:
                rule = ChangeRule(0.1)
                of_days += alarms(at_looks(world, False, rule), rule)
        row = []
        for found in taken.values():
            known = np.isfinite(found)
            middle = f"{np.median(found):.0f}" if known.mean() > 0.5 else "–"
            row.append(f"{middle} ({known.mean():.0%})")
            if not trend and known.sum() > 1:
                raise AssertionError(f"{known.sum()} of {REPEATS} worlds without drift: {found}")
        what = f"{per_second:g}/s" + (f", weekends {weekend:.0%}" if weekend else "")
        what += f", wanders by {wander:.0%}" if wander > 0.02 else ""
        rows.append((what, f"{trend:.1%}", *row, f"{of_days / 3:.1f}"))
    head = ("case", "a day", *(f"tolerates {drop:.0%}" for drop in DROPS), "past days, 10%")
    title = (
        "Days of drift until the reference week's verdict is a fall: median (share within 76 "
        "days); and alarms of past days alone in 48 days"
    )
    table(title, head, rows)


def _days_until(days: list[GroupSums], rule: ChangeRule) -> float:
    """Days from the end of the reference week (days 1 to 7) to the first verdict of a change."""
    for today in range(15, len(days) + 1):
        order = [next(d for d in range(today - 7, today) if (d - 1) % 7 == i) for i in range(7)]
        found = against_reference([days[d] for d in order], days[1:8], rule)
        if found.status in (Status.DROPPED, Status.RISEN):
            return today - 8
    return float("inf")
