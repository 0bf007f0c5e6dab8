"""How often the search among crossings finds what broke, how long it takes, and what it finds where
nothing broke, by simulation.

    python -m benchmarks.studies.alert_crossings --runs 40 --events 10000000

Impressions of two periods with twenty dimensions of 2 to 100 values by Zipf's law, half of them of
people, whose rates differ by a gamma distribution, and a crawler that never clicks. One to three
crossings of one to three values broke (or rose), each with 1,000 clicks before at least, and each
at least a fifth of the change. Fails where the aims are missed, or where more than two of a hundred
searches find something where nothing broke.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.rates import table
from streamer.stats.alerting.crossings import Cell, RatioRows, search

VALUES = (2, 3, 4, 5, 8, 12, 20, 30, 50, 100) * 2
RATE, LEAST_CLICKS, LEAST_SHARE = 0.08, 1_000, 0.2
FIRST, AMONG, SECONDS, MEGABYTES = 0.90, 0.97, 90, 2_000


@dataclass(frozen=True)
class Cause:
    """A crossing, and what is left of its rate."""

    cell: Cell
    left: float


class World:
    """Impressions, and clicks that are drawn anew for each search."""

    def __init__(self, events: int, seed: int) -> None:
        dice = self.dice = np.random.default_rng(seed)
        n = self.impressions = round(events / (1 + RATE))
        people = max(50, events // 30)
        self.person = dice.integers(0, people, n, dtype=np.uint32)
        self.rates = (RATE * dice.gamma(2, 0.5, people)).clip(0, 1)
        self.hashes = dice.permutation(people).astype(np.uint64) * 2_654_435_761 % 2**32
        self.codes = []
        for i, values in enumerate(VALUES):
            weights = 1 / np.arange(1, values + 1)
            chances = np.cumsum(weights / weights.sum())[:-1]
            drawn = np.searchsorted(chances, dice.random(people if i % 2 else n))
            codes = drawn.astype(np.uint16)
            self.codes.append(codes[self.person] if i % 2 else codes)

    def has(self, cell: Cell) -> np.ndarray:
        """Which impressions are of a cell."""
        found: np.ndarray = np.all([self.codes[d] == value for d, value in cell], axis=0)
        return found

    def causes(self, count: int, is_rise: bool) -> list[Cause]:
        """Some that are large enough, and explain enough each."""
        dice, n = self.dice, self.impressions
        while True:
            found, losses = list[Cause](), list[float]()
            while len(found) < count:
                dimensions = sorted(dice.choice(len(VALUES), dice.integers(1, 4), replace=False))
                row = dice.integers(n)
                cell = tuple((int(d), int(self.codes[d][row])) for d in dimensions)
                clicks = self.has(cell).sum() / 2 * RATE
                if LEAST_CLICKS <= clicks <= 0.3 * n / 2 * RATE:
                    left = dice.uniform(1.5, 3) if is_rise else dice.uniform(0, 0.6)
                    found.append(Cause(cell, left))
                    losses.append(clicks * abs(1 - left))
            if min(losses) >= LEAST_SHARE * sum(losses):
                return found

    def rows(self, causes: Sequence[Cause], crawled: float, everything: float = 1.0) -> RatioRows:
        """With clicks as new rows. ``crawled``: impressions of a crawler now, as a share of all;
        ``everything``: what is left of all rates."""
        dice, n = self.dice, self.impressions
        is_now = dice.random(n) < 0.5
        rate = self.rates[self.person] * np.where(is_now, everything, 1.0)
        for cause in causes:
            rate[self.has(cause.cell) & is_now] *= cause.left
        clicked = np.flatnonzero(dice.random(n) < rate)
        del rate
        robots = round(crawled * n)
        robot = [np.full(robots, of[dice.integers(n)]) for of in self.codes]
        columns = zip(self.codes, robot, strict=True)
        hashes = self.hashes[self.person].astype(np.uint32)
        kinds = [n, len(clicked), robots]
        return RatioRows(
            [str(i) for i in range(len(VALUES))],
            [[str(i) for i in range(values)] for values in VALUES],
            [np.concatenate([of, of[clicked], more]) for of, more in columns],
            np.concatenate([hashes, hashes[clicked], np.full(robots, 77, np.uint32)]),
            np.concatenate([is_now, is_now[clicked], np.ones(robots, np.bool_)]),
            np.repeat([0.0, 1.0, 0.0], kinds),
            np.repeat([1.0, 0.0, 1.0], kinds),
        )


@dataclass
class Tally:
    """Searches, those whose first cell is a cause, causes, those among the first three, cells that
    are none, and seconds of the longest search."""

    searches: int = 0
    first: int = 0
    causes: int = 0
    among: int = 0
    others: int = 0
    seconds: float = 0.0

    def add(self, causes: Sequence[Cause], rows: RatioRows) -> None:
        """What one search finds."""
        begun = time.perf_counter()
        cells = [
            tuple((int(d), int(v)) for d, v in found.values.items()) for found in search(rows).found
        ]
        self.seconds = max(self.seconds, time.perf_counter() - begun)
        wanted = {cause.cell for cause in causes}
        self.searches += 1
        self.first += bool(cells) and cells[0] in wanted
        self.causes += len(causes)
        self.among += len(wanted.intersection(cells[:3]))
        self.others += len(set(cells) - wanted)
        if wanted != set(cells):
            print(causes, cells, file=sys.stderr)


def shares(tally: Tally) -> tuple[str, ...]:
    """A row of the table."""
    first, among = tally.first / tally.searches, tally.among / max(1, tally.causes)
    return f"{100 * first:.0f} %", f"{100 * among:.0f} %", str(tally.others)


def main(runs: int, events: int) -> int:
    """Print both tables."""
    world, rows = World(events, 1), list[tuple[str, ...]]()
    tallies = {count: Tally() for count in (1, 2, 3)}
    for run in range(runs):
        causes = world.causes(1 + run % 3, is_rise=run % 4 == 3)
        tallies[len(causes)].add(causes, world.rows(causes, world.dice.uniform(0, 0.05)))
    for count, tally in tallies.items():
        rows.append((f"{count}, {tally.searches} searches", *shares(tally)))
    heads = ("causes", "first is a cause", "causes among the first three", "other cells")
    table("What broke, and how often it is found", heads, rows)
    nothing, rows = Tally(), []
    for everything in (1.0, 0.8):
        for crawled in (0.0, 0.05):
            for _ in range(runs // 4):
                nothing.add([], world.rows([], crawled, everything))
    rows.append((str(nothing.searches), str(nothing.others)))
    table("Nothing broke: searches, and cells that are found", ("searches", "cells"), rows)
    every = tallies.values()
    seconds = max(tally.seconds for tally in (*every, nothing))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{events:,} events: {seconds:.1f} s at most; {megabytes:,.0f} MB with the simulation")
    first = sum(tally.first for tally in every) / runs
    among = sum(tally.among for tally in every) / sum(tally.causes for tally in every)
    is_right = first >= FIRST and among >= AMONG and seconds <= SECONDS
    return 0 if is_right and nothing.others <= max(1, 0.02 * nothing.searches) else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--events", type=int, default=10_000_000)
    given = options.parse_args()
    sys.exit(main(given.runs, given.events))
