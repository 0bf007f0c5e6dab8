"""Verdicts where the unit is not the user: stores of very different size, and slots of time.

Experiments without a difference. Stores are all there from the first day on, with impressions whose
number is log-normal; slots of an hour in four regions have more impressions and more clicks by day
than by night, and a click-through rate that wanders from slot to slot. Looked at on each day; claims
are those at any look, and of the narrower interval for a single look those on the last day.

    python -m benchmarks.studies.experiment_units           two minutes of one core
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.experiment_crawlers import CLAIMS, EDGES, arm_of
from benchmarks.studies.rates import hold, table
from streamer.settings.experiments import DEFAULT_RATIO_CAP
from streamer.stats.experiments.caps import Denominator
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, compare

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
PLAN, RULE = Plan("A", {"A": 1, "B": 1}), Rule(can_be_negative=False)
DAYS, REGIONS, HOURS = 28, 4, 24
Dice = np.random.Generator
Schedule = Callable[[Dice], Bools]
"""Which slots of each region are treated: (region, slot)."""


def random_slots(dice: Dice) -> Bools:
    """Each slot for itself."""
    return dice.random((REGIONS, DAYS * HOURS)) < 0.5


def random_pairs(dice: Dice) -> Bools:
    """Of two slots one, drawn for each region."""
    first = dice.random((REGIONS, DAYS * HOURS // 2)) < 0.5
    return np.stack([first, ~first], axis=-1).reshape(REGIONS, -1)


def alternating(_: Dice) -> Bools:
    """A, B, A, B, …: of 24 slots a day each arm always has the same hours."""
    return np.tile(np.arange(DAYS * HOURS) % 2 == 1, (REGIONS, 1))


def halves(_: Dice) -> Bools:
    """Twelve hours of each: one arm has the days, the other one the nights."""
    return np.tile(np.arange(DAYS * HOURS) // 12 % 2 == 1, (REGIONS, 1))


def turned(_: Dice) -> Bools:
    """A, B, …, B, A, …: each day the other way round."""
    at = np.arange(DAYS * HOURS)
    return np.tile((at + at // HOURS) % 2 == 1, (REGIONS, 1))


SCHEDULES: dict[str, Schedule] = {
    "drawn, each slot": random_slots,
    "drawn, one of two": random_pairs,
    "turned each day": turned,
    "A, B, A, B, …": alternating,
    "12 hours each": halves,
}


def slot_traffic(dice: Dice) -> tuple[Ints, Ints]:
    """Clicks and impressions of (region, slot)."""
    slots = np.arange(DAYS * HOURS)
    by_day = np.sin(2 * np.pi * (slots % HOURS - 9) / HOURS)
    size = dice.uniform(20, 200, (REGIONS, 1)) * np.exp(0.8 * by_day)
    noise = np.zeros((REGIONS, DAYS * HOURS))
    steps = dice.normal(0, 0.15, noise.shape)
    for slot in range(1, DAYS * HOURS):
        noise[:, slot] = 0.8 * noise[:, slot - 1] + steps[:, slot]
    rate = np.clip(0.05 * np.exp(0.2 * by_day + noise), 0, 1)
    shown = dice.poisson(size)
    return dice.binomial(shown, rate), shown


def looks_at_slots(dice: Dice, schedule: Schedule) -> Iterator[Comparison]:
    """One switchback, on each day."""
    clicks, shown = slot_traffic(dice)
    treated = schedule(dice)
    for day in range(DAYS):
        so_far = (slice(None), slice((day + 1) * HOURS))
        yield compared(*(its[so_far].ravel() for its in (clicks, shown, treated)))


def looks_at_stores(dice: Dice, stores: int, spread: float) -> Iterator[Comparison]:
    """One experiment of stores, on each day."""
    size = 20 * np.exp(dice.normal(0, spread, stores))
    rate = np.clip(0.05 * np.exp(dice.normal(0, 0.4, stores)), 0, 1)
    treated = dice.random(stores) < 0.5
    clicks, shown = np.zeros(stores, np.int64), np.zeros(stores, np.int64)
    for _ in range(DAYS):
        new = dice.poisson(size)
        clicks, shown = clicks + dice.binomial(new, rate), shown + new
        yield compared(clicks, shown, treated)


def compared(x: Ints, y: Ints, treated: Bools) -> Comparison:
    """Units as readers compare them, ratios capped by default."""
    cap = Denominator(DEFAULT_RATIO_CAP)
    there = y > 0
    last = cap.bucket(dict(enumerate(np.bincount(np.searchsorted(EDGES, y[there])).tolist())))
    arms = {
        name: arm_of(x[there & which], y[there & which], cap, last)
        for name, which in (("A", ~treated), ("B", treated))
    }
    return compare(PLAN, RULE, arms).comparisons[0]


def false_claims(looks: Callable[[Dice], Iterator[Comparison]], runs: int) -> tuple[int, int, int]:
    """Experiments with a claim at any look, with one by the single look on the last day, and with
    an interval then."""
    dice = np.random.default_rng(11)
    ever = last = shown = 0
    for _ in range(runs):
        found = list(looks(dice))
        ever += any(each.verdict.outcome in CLAIMS for each in found)
        fixed = found[-1].absolute.fixed
        last += fixed is not None and not fixed.low <= 0 <= fixed.high
        shown += found[-1].absolute.anytime is not None
    return ever, last, shown


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rows = []
    for name, schedule in SCHEDULES.items():
        ever, last, shown = false_claims(lambda d, s=schedule: looks_at_slots(d, s), runs)  # type: ignore[misc]
        if name.startswith(("drawn", "turned")):
            hold(name, ever, runs, 0.05)
        rows.append([name, *(f"{n / runs:.1%}" for n in (ever, last, shown))])
    names = ["schedule", "at any look", "single look", "interval"]
    table(f"False claims of switchbacks, {REGIONS} regions, hours, {DAYS} days", names, rows)
    rows = []
    for stores in (150, 300, 1000):
        for spread in (0.5, 1.5):
            ever, last, shown = false_claims(
                lambda d, n=stores, s=spread: looks_at_stores(d, n, s),  # type: ignore[misc]
                runs,
            )
            hold(f"{stores} stores, {spread}", ever, runs, 0.05)
            rows.append(
                [str(stores), str(spread), *(f"{n / runs:.1%}" for n in (ever, last, shown))]
            )
    names = ["stores", "log-sd of size", "at any look", "single look", "interval"]
    table(f"False claims of experiments by store, {DAYS} days", names, rows)


if __name__ == "__main__":
    main()
