"""How often intervals of random groups hold the true rate: by groups that have users, or by all 16.

    python -m benchmarks.group_coverage

Users see about twenty impressions each and click with a propensity of their own (mean 0.1). Where
few users are there some groups have none. Fails if the intervals in use hold the truth less often
than those that count empty groups, by more than three standard errors of the simulation.
"""

from __future__ import annotations

import sys
from math import sqrt

import numpy as np

from streamer.metrics.intervals import LEAST_GROUPS
from streamer.stats.random_groups import GROUPS, critical, estimates

RATE, ROUNDS = 0.1, 4000
USERS = (10, 15, 20, 30, 50, 100, 400)


def held(users: int, random: np.random.Generator) -> tuple[int, int, int]:
    """Rounds with enough groups, and in how many of them each interval held the rate."""
    rounds = by_occupied = by_all = 0
    for _ in range(ROUNDS):
        seen = random.poisson(random.gamma(1.0, 20.0, users)) + 1
        clicks = random.binomial(seen, random.beta(1, 9, users))
        group = random.integers(0, GROUPS, users)
        x, y = (np.bincount(group, sums, GROUPS)[None].astype(float) for sums in (clicks, seen))
        found = estimates(x, y)
        k = int(found.occupied[0])
        if k < LEAST_GROUPS:
            continue
        rounds += 1
        off, variance = abs(found.value[0] - RATE), found.variance[0]
        by_occupied += off <= critical(0.975, k - 1) * sqrt(variance)
        empty_too = variance * (k - 1) / k * GROUPS / (GROUPS - 1)
        by_all += off <= critical(0.975, GROUPS - 1) * sqrt(empty_too)
    return rounds, by_occupied, by_all


def main() -> int:
    """Print a row for each number of users."""
    random, is_fine = np.random.default_rng(1), True
    print("| users | groups that have users | all 16 |\n| --- | --- | --- |")
    for users in USERS:
        rounds, by_occupied, by_all = held(users, random)
        ours, other = by_occupied / rounds, by_all / rounds
        print(f"| {users} | {ours:.1%} | {other:.1%} |")
        is_fine &= ours >= other - 3 * sqrt(ours * (1 - ours) / rounds)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
