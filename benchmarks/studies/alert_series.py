"""Our rules on real hourly series, which are not in the repository.

The folder is that of the Numenta Anomaly Benchmark (https://github.com/numenta/NAB, `data`): costs
of a click and of a thousand impressions in six series of ad exchanges, taxi rides in New York, and
mentions of companies. Nothing but a value an hour is known of the costs: every hour is taken for
one of so much traffic that users make no noise.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import ChangeRule, Status, compare
from streamer.stats.alerting.traffic import TrafficRule, judge_traffic
from streamer.stats.random_groups import GROUPS, GroupSums

Series = dict[int, float]
"""Hour since the first one → value."""
DAY, WEEK = 24, 168
SILENCE_HOURS = 6
"""An alarm ends with so many hours of silence."""
WARM_HOURS = 4 * WEEK
"""Hours that are past before the first look."""
TOLERATED = (0.1, 0.2, 0.3)


def hourly(path: Path, is_count: bool) -> Series:
    """The mean of each hour, or the sum of a count."""
    with path.open(encoding="utf-8") as file:
        rows = [
            (datetime.fromisoformat(r["timestamp"]), float(r["value"]))
            for r in csv.DictReader(file)
        ]
    found: dict[int, list[float]] = {}
    for when, value in rows:
        found.setdefault(int((when - rows[0][0]).total_seconds() // 3600), []).append(value)
    return {hour: sum(v) if is_count else sum(v) / len(v) for hour, v in found.items()}


def alarms(true: Sequence[bool], silence_hours: int = SILENCE_HOURS) -> int:
    """Alarms in hourly verdicts: one ends after ``silence_hours`` without another."""
    when = np.flatnonzero(true)
    return 0 if len(when) == 0 else 1 + int((np.diff(when) > silence_hours).sum())


def of_costs(
    series: Series, drop: float, weeks: bool, warm: int = WARM_HOURS
) -> tuple[list[bool], list[bool], list[Status]]:
    """Falls, rises and what is said at each hour after the first ``warm`` ones."""
    window = {
        hour: GroupSums((round(1e6 * value),) * GROUPS, (10**6,) * GROUPS)
        for hour, value in series.items()
    }
    falls, rises, said = [], [], []
    for hour in range(warm, max(series) + 1):
        if hour not in window:
            continue
        days = [window[h] for h in range(hour - DAY, hour - WEEK - 1, -DAY) if h in window]
        weekdays = [
            [_totals(window.get(hour - day * DAY - week * WEEK)) for week in range(4)]
            for day in (7, 1, 2, 3, 4, 5, 6)
        ]
        found = compare(window[hour], days, ChangeRule(drop), weekdays=weekdays if weeks else ())
        falls.append(found.change_high is not None and found.change_high < -drop)
        rises.append(found.change_low is not None and found.change_low > drop)
        said.append(found.status)
    return falls, rises, said


def _totals(window: GroupSums | None) -> tuple[int, int]:
    return (0, 0) if window is None else (sum(window.x), window.support)


def three_sigma(series: Series, warm: int = WARM_HOURS) -> tuple[list[bool], list[bool]]:
    """Beyond three standard deviations of the week before."""
    falls, rises = [], []
    for hour in range(warm, max(series) + 1):
        if hour in series:
            past = np.array([series[h] for h in range(hour - WEEK, hour) if h in series])
            reach = 3 * past.std()
            falls.append(bool(series[hour] < past.mean() - reach))
            rises.append(bool(series[hour] > past.mean() + reach))
    return falls, rises


def costs(folder: Path) -> None:
    """Alarms in 30 days of the series of ad exchanges, whatever was the matter there."""
    several = [hourly(path, is_count=False) for path in sorted(folder.glob("*.csv"))]

    def a_month(
        rule: Callable[[Series], tuple[list[bool], list[bool]]],
        warm: int = WARM_HOURS,
        silence: int = SILENCE_HOURS,
    ) -> str:
        months = [(max(series) + 1 - warm) / DAY / 30 for series in several]
        sides = np.array([[alarms(side, silence) for side in rule(series)] for series in several])
        falls, rises = (sides / np.array(months)[:, None]).mean(axis=0)
        return f"{falls + rises:.1f} ({falls:.1f} / {rises:.1f})"

    rows = []
    for weeks in (False, True):
        for drop in TOLERATED:
            found = [of_costs(series, drop, weeks) for series in several]
            said = [status for _, _, every in found for status in every]
            shares = (
                np.mean([s is status for s in said])
                for status in (Status.WITHIN, Status.DAYS_DIFFER)
            )
            name = "ours, the same weekday of 4 weeks" if weeks else "ours, 7 days"
            result = iter(found)
            rate = a_month(lambda _, its=result: next(its)[:2])  # type: ignore[misc]
            rows.append((f"{name}, {drop:.0%}", rate, *(f"{share:.0%}" for share in shares)))
    rows.append(("mean ± 3 σ of a week", a_month(three_sigma), "–", "–"))
    head = ("rule", "alarms (falls / rises)", "within", "days differ")
    table(f"{len(several)} series of ad exchanges: alarms in 30 days and series", head, rows)
    early = (
        ("ours, 7 days, 20%", a_month(lambda its: of_costs(its, 0.2, False, WEEK)[:2], WEEK, DAY)),
        ("mean ± 3 σ of a week", a_month(lambda its: three_sigma(its, WEEK), WEEK, DAY)),
    )
    title = "The same from the second week on, an alarm ending with a day of silence"
    table(title, head[:2], early)


def counts(folder: Path, paths: Sequence[str]) -> None:
    """Traffic alerts of real counts."""
    rows = []
    for name in paths:
        series = hourly(folder / name, is_count=True)
        row = []
        for weeks in (False, True):
            said = []
            warm = 4 * WEEK if max(series) > 8 * WEEK else WEEK
            for hour in range(warm, max(series)):
                past = [int(series.get(hour - day * DAY, 0)) for day in range(1, 29)]
                weekdays = [past[(day - 1) % 7 :: 7] for day in range(7)] if weeks else [past[:7]]
                if weeks and warm < 4 * WEEK:
                    break
                arrivals = float(np.median(past[:7])) / 10
                said.append(
                    judge_traffic(
                        int(series.get(hour, 0)), weekdays, arrivals, TrafficRule()
                    ).status
                )
            months = len(said) / DAY / 30
            sides = [
                alarms([s is status for s in said]) for status in (Status.DROPPED, Status.RISEN)
            ]
            fine = np.mean([s is Status.WITHIN for s in said]) if said else 0
            row.append(
                f"{sides[0] / months:.1f} / {sides[1] / months:.1f} ({fine:.0%})" if said else "–"
            )
        rows.append((Path(name).stem, f"{max(series) / DAY:.0f}", *row))
    head = ("series", "days", "7 days", "4 weeks")
    table("Real counts: falls / rises said in 30 days (share within)", head, rows)


def main(folder: Path) -> None:
    costs(folder / "realAdExchange")
    tweets = sorted(path.relative_to(folder).as_posix() for path in folder.glob("realTweets/*.csv"))
    counts(folder, ["realKnownCause/nyc_taxi.csv", *tweets])
