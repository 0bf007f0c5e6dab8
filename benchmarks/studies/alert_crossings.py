"""How often the search among crossings finds what broke, and what did not, by simulation.

    python -m benchmarks.studies.alert_crossings --runs 200

Two windows of slates of ten with twenty dimensions of a hundred values by Zipf's law, half of them
of users; 5,000 users whose rates differ by a gamma distribution. Fails where more than two of a
hundred searches find something where nothing broke.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field

import numpy as np

from benchmarks.studies.rates import table
from streamer.stats.alerting.crossings import Cell, Crossed, search
from streamer.stats.random_groups import GROUPS

DIMENSIONS, VALUES, USERS, SLATE, RATE = 20, 100, 5_000, 10, 0.08


@dataclass(frozen=True)
class World:
    """What is simulated: slates of a window, the cell that broke and what is left of its rate, by
    what the rate of everything changed, and slates of a crawler that never clicks."""

    name: str
    slates: int = 20_000
    broken: Cell = ()
    left: float = 0.0
    everything: float = 1.0
    crawled: int = 0
    weights: np.ndarray = field(default_factory=lambda: 1 / np.arange(1, VALUES + 1))

    def events(self, seed: int) -> Crossed:
        """Sums of slates, then of those of the crawler."""
        dice = np.random.default_rng(seed)
        n, chances = 2 * self.slates, self.weights / self.weights.sum()
        user = dice.integers(0, USERS, n)
        of_users = dice.choice(VALUES, (USERS, DIMENSIONS), p=chances)[user]
        values = dice.choice(VALUES, (n, DIMENSIONS), p=chances)
        values[:, ::2] = of_users[:, ::2]
        is_now = np.arange(n) >= self.slates
        rate = RATE * dice.gamma(2, 0.5, USERS)[user] * np.where(is_now, self.everything, 1)
        if self.broken:
            is_broken = np.all([values[:, d] == v for d, v in self.broken], axis=0)
            rate = np.where(is_broken & is_now, rate * self.left, rate)
        clicks = dice.binomial(SLATE, np.minimum(rate, 1))
        robot, group = dice.choice(VALUES, DIMENSIONS, p=chances), dice.integers(GROUPS)
        return Crossed(
            np.vstack([values, np.tile(robot, (self.crawled, 1))]),
            np.append(is_now, np.ones(self.crawled, np.bool_)),
            np.append(user * 2_654_435_761 % 2**32 // 2**28, np.full(self.crawled, group)),
            np.append(clicks, np.zeros(self.crawled)).astype(np.float64),
            np.full(n + self.crawled, float(SLATE)),
        )


WHOLE = (
    World("nothing", 8_000),
    World("everything, by a fifth", 8_000, everything=0.8),
    World("a crawler comes", 8_000, crawled=3_000),
    World("everything, and a crawler", 8_000, everything=0.8, crawled=2_000),
)
BROKEN = (
    World("a value of 6 %", broken=((1, 2),)),
    World("a crossing of 4 %", broken=((0, 0), (1, 0))),
    World("a crossing of 4 %, and a crawler", broken=((0, 0), (1, 0)), crawled=3_000),
    World("a crossing of 2 %, by 70 %", broken=((0, 0), (1, 1)), left=0.3),
    World("three values, of 0.7 %", broken=((1, 0), (2, 0), (3, 0))),
)


def main(runs: int) -> int:
    """Print both tables."""
    rows, wrong = list[tuple[str, ...]](), 0
    for world in WHOLE:
        found = sum(bool(search(world.events(seed)).found) for seed in range(runs))
        rows.append((world.name, f"{100 * found / runs:.1f} %"))
        wrong += found
    table("What moved, and how often something is found", ("", "found"), rows)
    rows = []
    for world in BROKEN:
        searches = [search(world.events(seed)).found for seed in range(runs // 4)]
        cells = [[found.cell for found in its] for its in searches]
        right = sum(world.broken in its for its in cells)
        more = sum(any(cell != world.broken for cell in its) for its in cells)
        shares = (f"{100 * part / len(cells):.0f} %" for part in (right, more))
        rows.append((world.name, *shares))
    table("What broke, and how often it is found", ("", "found", "another"), rows)
    return 0 if wrong <= 0.02 * runs * len(WHOLE) else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=200)
    sys.exit(main(options.parse_args().runs))
