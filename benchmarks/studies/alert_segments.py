"""Small segments by simulation: false alarms in hundreds of months, and when a change is found.

Months are made fast by comparing only windows that may fire: those that differ from a baseline, or
from the worst past day, by more standard errors of the window's own noise than
fire with any number of groups (the noise of the baseline only lowers that).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.alert_traffic import PANES, Floats, Ints, World
from benchmarks.studies.alert_weeks import WINDOW
from benchmarks.studies.rates import table
from streamer.stats.alerting.baseline import SURE, ChangeRule, MetricChange, compare
from streamer.stats.distributions import normal_quantile
from streamer.stats.random_groups import GroupSums, estimates

Flags = NDArray[np.bool_]
SIZES = (50, 150, 300, 600, 2000, 6000)
"""Impressions an hour."""
MONTHS = 400
"""Segments of each size, each of its own traffic, looked at for 30 days."""
DROPS = (0.2, 0.5)
CHANGES = (2.0, 3.0, 0.5, 0.0)
"""What the rate becomes, times what it was."""
BEGINS = 60
"""Changes of each kind."""
_DAYS, _WEEKS, _MONTH = 7, 4, 30
_SURE = normal_quantile(1 - SURE)


class Segment:
    """Windows of an hour of one segment; with ``weeks`` four weeks are known, and else one."""

    def __init__(self, clicks: Ints, shown: Ints, weeks: bool = False) -> None:
        self.weeks = weeks
        self.x, self.y = (_windows(part) for part in (clicks, shown))
        self._sums = self.x.sum(axis=1), self.y.sum(axis=1)
        found = estimates(self.x.astype(float), self.y.astype(float))
        self._value = np.where(self._sums[1] > 0, found.value, np.nan)
        is_known = (self._sums[1] > 0) & (found.occupied > 1)
        self._variance = np.where(is_known, found.variance, np.nan)

    def look(self, t: int, rule: ChangeRule) -> MetricChange:
        """What is said at pane t."""
        past = [self._at(t - ago * PANES) for ago in range(1, _DAYS + 1)]
        weekdays = []
        if self.weeks:
            lasts = [t - ago * PANES for ago in range(1, 7 * _WEEKS + 1)]
            x, y = (part[lasts].tolist() for part in self._sums)
            pairs = list(zip(x, y, strict=True))
            weekdays = [pairs[day::7] for day in (6, *range(6))]
        return compare(self._at(t), past, rule, weekdays=weekdays, alike=self._alike(t).tolist())

    def _at(self, t: int) -> GroupSums:
        return GroupSums(tuple(self.x[t].tolist()), tuple(self.y[t].tolist()))

    def _alike(self, t: int) -> Flags:
        """Whether each past day is a weekday, or of a weekend, as the present one."""
        weekend = (t // PANES - np.arange(_DAYS + 1)) % 7 >= 5
        return np.asarray(weekend[1:] == weekend[0])

    def may_fire(self, day: int) -> tuple[Flags, Flags]:
        """Looks of a day at which a fall, and a rise, may fire."""
        t = np.arange(day * PANES, (day + 1) * PANES)
        lasts = t - PANES * np.arange(1, _DAYS + 1)[:, None]
        values, weights = self._value[lasts], self._sums[1][lasts]
        every = _pooled(values, weights, weights > 0)
        units = self._variance[lasts] * weights
        unit = np.nansum(units, axis=0) / np.isfinite(units).sum(axis=0)
        own = (weights > 0) & self._alike(day * PANES)[:, None]
        base = np.where(own.sum(axis=0) < 2, every, _pooled(values, weights, own))
        if self.weeks:
            lasts = t - PANES * np.arange(1, 7 * _WEEKS + 1)[:, None]
            values, weights = self._value[lasts], self._sums[1][lasts]
            mine = weights[6::7] > 0
            known = mine.sum(axis=0) >= 3
            base = np.where(known, _pooled(values[6::7], weights[6::7], mine), base)
        now, noise = self._value[t], (unit / np.maximum(1, self._sums[1][t]), self._variance[t])
        lowest, highest = np.fmin.reduce(values), np.fmax.reduce(values)
        falls = (base, np.minimum(base, every), lowest)
        rises = (base, np.maximum(base, every), highest)
        return (
            np.any([-_score(now, each, *noise) > _SURE for each in falls], axis=0),
            np.any([_score(now, each, *noise) > _SURE for each in rises], axis=0),
        )

    def beyond(self, looks: Sequence[int], rule: ChangeRule, among: Flags) -> Flags:
        """Whether each look fires; only ``among`` some may it."""
        return np.array(
            [
                maybe and self.look(t, rule).status.is_regression
                for t, maybe in zip(looks, among, strict=True)
            ],
            bool,
        )


def _windows(panes: Ints) -> Ints:
    sums = panes.cumsum(axis=0)
    sums[WINDOW:] -= sums[:-WINDOW].copy()
    return sums


def _pooled(values: Floats, weights: Ints, used: Flags) -> Floats:
    """The mean of used values by weight without the lowest and the highest of four or more."""
    order = np.where(used, values, np.inf).argsort(axis=0, kind="stable")
    rank, n = order.argsort(axis=0, kind="stable"), used.sum(axis=0)
    tail = (n >= 4).astype(int)
    kept = np.where(used & (rank >= tail) & (rank < n - tail), weights, 0)
    return np.asarray((np.nan_to_num(values) * kept).sum(axis=0) / np.maximum(1, kept.sum(axis=0)))


def _score(now: Floats, base: Floats, sampling: Floats, own: Floats) -> Floats:
    """That of ``Noise.score`` with a baseline that is exact; NaN where nothing is known."""
    ratio = now / base
    own = np.where(ratio > 0, own / np.where(ratio > 0, ratio, 1), 0)
    return np.asarray(2 * base * (np.sqrt(ratio) - 1) / np.sqrt(np.maximum(sampling, own)))


def episodes(true: Flags) -> int:
    """Alarms: two looks in a row, ended by an hour of silence."""
    when = np.flatnonzero(true & np.concatenate(([False], true[:-1])))
    return 0 if len(when) == 0 else 1 + int((np.diff(when) > WINDOW).sum())


def false_alarms(weeks: bool) -> None:
    """False falls and rises in a month of a hundred segments, and the looks that are judged."""
    rows = []
    for an_hour in SIZES:
        found, judged = np.zeros((len(DROPS), 2), int), 0.0
        for seed in range(MONTHS):
            counts, share = _month(an_hour, seed, weeks)
            found += counts
            judged += share / MONTHS
        hundred = found * 100 / MONTHS
        if hundred.max() > 1:
            raise AssertionError(f"{an_hour} an hour: {hundred} a month and hundred segments")
        pairs = (f"{falls:.2f} / {rises:.2f}" for falls, rises in hundred)
        rows.append((f"{an_hour:,} an hour", *pairs, f"{judged:.0%}"))
    head = ("impressions", *(f"tolerates {drop:.0%}: falls / rises" for drop in DROPS), "judged")
    known = "four weeks" if weeks else "one week"
    title = f"Small segments, CTR 5 %, {known} known: false alarms a month and hundred segments"
    table(f"{title} ({MONTHS} months each)", head, rows)


def _month(an_hour: int, seed: int, weeks: bool) -> tuple[Ints, float]:
    """(tolerated, falls and rises), and the share of looks at which a change is judged."""
    first = 7 * (_WEEKS if weeks else 2)
    segment = Segment(*World(an_hour / 3600, days=first + _MONTH, seed=1000 + seed).traffic, weeks)
    with np.errstate(all="ignore"):
        sides = [segment.may_fire(day) for day in range(first, first + _MONTH)]
    falls, rises = (np.concatenate(side) for side in zip(*sides, strict=True))
    looks = range(first * PANES, (first + _MONTH) * PANES)
    counts = [
        [episodes(segment.beyond(looks, ChangeRule(drop, higher_is_better=up), among))
         for up, among in ((True, falls), (False, rises))]
        for drop in DROPS
    ]  # fmt: skip
    judged = [segment.look(t, ChangeRule()).change is not None for t in looks[::149]]
    return np.array(counts), float(np.mean(judged))


def found_changes() -> None:
    """Minutes until a lasting change of the rate is found, which begins at any time."""
    rows = []
    for an_hour in SIZES:
        taken = [_taken(an_hour, times) for times in CHANGES]
        for i, drop in enumerate(DROPS):
            cells = (_shown([minutes[i] for minutes in each]) for each in taken)
            rows.append((f"{an_hour:,} an hour", f"{drop:.0%}", *cells))
    head = ("impressions", "tolerates", *(f"times {times:g}" for times in CHANGES))
    title = "Small segments: minutes until a change is found: median (share within a day)"
    table(f"{title}, {BEGINS} each", head, rows)


def _taken(an_hour: int, times: float) -> list[list[float]]:
    """Minutes of each change, by what is tolerated; infinite if not within a day."""
    taken = []
    for seed in range(BEGINS):
        dice = np.random.default_rng(seed)
        first = 7 * 2 + int(dice.integers(0, 7))
        world = World(an_hour / 3600, 0.05 * max(1, times), days=first + 2, seed=9000 + seed)
        clicks, shown = world.traffic
        begin = first * PANES + int(dice.integers(0, PANES))
        fewer = slice(None, begin) if times > 1 else slice(begin, None)
        clicks[fewer] = dice.binomial(clicks[fewer], min(times, 1 / times) if times else 0)
        segment = Segment(clicks, shown)
        with np.errstate(all="ignore"):
            among = np.concatenate([segment.may_fire(first + i)[int(times > 1)] for i in (0, 1)])
        among = among[begin - first * PANES :][:PANES]
        taken.append([_first(segment, begin, ChangeRule(d, higher_is_better=times < 1), among)
                      for d in DROPS])  # fmt: skip
    return taken


def _first(segment: Segment, begin: int, rule: ChangeRule, among: Flags) -> float:
    true = segment.beyond(range(begin, begin + PANES), rule, among)
    fires = np.flatnonzero(true & np.concatenate(([False], true[:-1])))
    return 10.0 * float(fires[0] + 1) if len(fires) else float("inf")


def _shown(taken: list[float]) -> str:
    middle = np.sort(taken)[len(taken) // 2]
    shown = f"{middle:.0f}" if np.isfinite(middle) else "–"
    return f"{shown} ({np.isfinite(taken).mean():.0%})"


def small_segments() -> None:
    """When changes are found, and false alarms with one week known and with four."""
    found_changes()
    false_alarms(weeks=False)
    false_alarms(weeks=True)


if __name__ == "__main__":
    small_segments()
