"""Traffic alerts by simulation: false alarms where days differ, and how soon changes are found.

Counts of 10-minute panes: sessions of ten events in the mean (geometric), whose expected number
goes from 0.3 to 1.7 of its mean over the day, is another on every day (log-normal), wanders
within hours (log-normal, an Ornstein-Uhlenbeck process that forgets in three hours), and is lower
on two days of seven. Windows of an hour are looked at every ten minutes; a rule fires when it was
true at two looks in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import Status
from streamer.stats.alerting.traffic import Traffic, TrafficRule, judge_traffic

Counts = NDArray[np.int64]
PANES, WINDOW, SESSION = 144, 6, 10.0
WARM_DAYS = 36
"""Days before the first look; of which the rule knows seven, or four weeks."""
RULES = {
    "half or twice": TrafficRule(),
    "30 % less or 43 % more": TrafficRule(0.3, 1 / 0.7 - 1),
}


@dataclass(frozen=True)
class Volume:
    """``per_second`` events; ``days_sd`` and ``hours_sd`` are standard deviations of logarithms,
    ``weekend`` the change on two days of seven, ``trend`` that of a day."""

    per_second: float
    days_sd: float = 0.1
    hours_sd: float = 0.05
    weekend: float = 0.0
    trend: float = 0.0
    outages: int = 0
    days: int = 100
    seed: int = 1

    def counts(self) -> Counts:
        """Events of each pane."""
        dice = np.random.default_rng(self.seed)
        panes = (WARM_DAYS + self.days) * PANES
        hour = np.arange(panes) / 6
        day = np.arange(panes) // PANES
        level = 1 - 0.7 * np.cos(2 * np.pi * (hour - 4) / 24)
        level *= np.exp(self.days_sd * dice.standard_normal(day[-1] + 1))[day]
        keep, wander = np.exp(-1 / 18), np.empty(panes)
        wander[0], steps = dice.standard_normal(), dice.standard_normal(panes)
        for i in range(1, panes):
            wander[i] = keep * wander[i - 1] + np.sqrt(1 - keep**2) * steps[i]
        level *= np.exp(self.hours_sd * wander)
        level *= np.where(day % 7 >= 5, 1 + self.weekend, 1.0) * (1 + self.trend) ** day
        for start in np.linspace(3, WARM_DAYS + self.days - 3, self.outages).tolist():
            level[int(start * PANES) : int(start * PANES) + 12] = 0  # two hours
        sessions = dice.poisson(self.per_second * 600 / SESSION * level)
        extra = dice.negative_binomial(np.maximum(1, sessions), 1 / SESSION)
        return (sessions + np.where(sessions > 0, extra, 0)).astype(np.int64)


def windows(panes: Counts) -> Counts:
    """Sums of the panes t - 5 to t."""
    sums = panes.cumsum()
    sums[WINDOW:] -= sums[:-WINDOW].copy()
    return sums


def weekdays_at(sums: Counts, t: int, weeks: int) -> list[list[int]]:
    """The same time on past days: by weekday over ``weeks``, or of 7 days as one."""
    if not weeks:
        return [sums[t - 7 * PANES : t : PANES].tolist()]
    past = sums[t - 7 * weeks * PANES : t : PANES][::-1].tolist()
    return [past[(day - 1) % 7 :: 7] for day in range(7)]


def looks(
    sums: Counts, now: Counts, at: Sequence[int], weeks: int, rule: TrafficRule
) -> list[Traffic]:
    """What is said at each look; ``now``: the windows looked at, ``sums`` the past ones. Sessions
    vary, so that events are as good as one independent arrival by 19 (E n² / E n)."""
    found = []
    for t in at:
        arrivals = float(np.median(sums[t - 7 * PANES : t : PANES])) / (2 * SESSION - 1)
        found.append(judge_traffic(int(now[t]), weekdays_at(sums, t, weeks), arrivals, rule))
    return found


def episodes(found: Sequence[Traffic], status: Status) -> int:
    """Alarms: two looks in a row, ended by an hour of silence."""
    true = np.array([traffic.status is status for traffic in found])
    when = np.flatnonzero(true & np.concatenate(([False], true[:-1])))
    return 0 if len(when) == 0 else 1 + int((np.diff(when) > WINDOW).sum())


CASES = {
    "10/s": Volume(10),
    "1/s": Volume(1),
    "0.1/s": Volume(0.1),
    "0.03/s": Volume(0.03),
    "10/s, days differ by 30 %": Volume(10, days_sd=0.3),
    "10/s, days by 30 %, hours by 30 %": Volume(10, days_sd=0.3, hours_sd=0.3),
    "10/s, days differ by 60 %": Volume(10, days_sd=0.6),
    "10/s, weekends are 50 % lower": Volume(10, weekend=-0.5),
    "10/s, weekends are 80 % lower": Volume(10, weekend=-0.8),
    "10/s, 2 % more every day": Volume(10, trend=0.02),
    "10/s, 20 outages of two hours": Volume(10, outages=20),
}


def false_alarms(days: int) -> None:
    """Alarms in 30 days without a change."""
    rows = []
    for case, volume in CASES.items():
        sums = windows(replace(volume, days=days).counts())
        at = range(WARM_DAYS * PANES, len(sums))
        row = []
        for weeks in (0, 4):
            for rule in RULES.values():
                found = looks(sums, sums, at, weeks, rule)
                said = [episodes(found, s) * 30 / days for s in (Status.DROPPED, Status.RISEN)]
                if rule == TrafficRule() and not volume.outages and max(said) > 1:
                    raise AssertionError(f"{case}, {weeks} weeks: {said} alarms a month")
                known = np.mean([t.status is Status.WITHIN for t in found])
                row.append(f"{said[0]:.1f} / {said[1]:.1f} ({known:.0%})")
        rows.append((case, *row))
    head = [f"{what}, {name}" for what in ("7 days", "4 weeks") for name in RULES]
    table("Traffic: falls / rises said in 30 days (share within)", ("case", *head), rows)


def found_changes(days: int, repeats: int = 60) -> None:
    """Share of sudden changes found within three hours, and the median of minutes."""
    rows = []
    for case in ("10/s", "0.1/s", "10/s, days differ by 30 %", "10/s, weekends are 80 % lower"):
        panes = replace(CASES[case], days=days).counts()
        sums, dice = windows(panes), np.random.default_rng(2)
        begins = dice.integers(WARM_DAYS * PANES, len(panes) - 18, repeats).tolist()
        for factor in (0.0, 0.1, 0.3, 3.0, 20.0):
            row = []
            for weeks in (0, 4):
                taken = []
                for begin in begins:
                    changed = panes[: begin + 18].copy()
                    changed[begin:] = np.rint(changed[begin:] * factor)
                    at = range(begin, begin + 18)
                    found = looks(sums, windows(changed), at, weeks, RULES["half or twice"])
                    status = Status.DROPPED if factor < 1 else Status.RISEN
                    true = np.array([t.status is status for t in found])
                    when = np.flatnonzero(true[1:] & true[:-1])
                    taken.append(10.0 * (when[0] + 2) if len(when) else np.inf)
                row.append(f"{np.median(taken):.0f} ({np.isfinite(taken).mean():.0%})")
            rows.append((case, f"x {factor:g}", *row))
    head = ("case", "traffic", "7 days", "4 weeks")
    table("Traffic: minutes until a change is said (found within 3 hours)", head, rows)
