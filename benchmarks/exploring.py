"""A/A tests told apart by four values of a dimension: how often any of them claims an effect.

    python -m benchmarks.exploring

4,000 users, of whom the values have 50, 25, 15 and 10 %; a look on each of 14 days.
Values share alpha, as ``streamer readout --by`` has it, or each has all of it. With a lift it is
how often any finds it.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.experiments import one_arm
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.verdict import Outcome

USERS, DAYS = 4000, 14
SHARES = (0.5, 0.25, 0.15, 0.1)
CLAIMS = (Outcome.BETTER, Outcome.WORSE)


def is_claimed(seed: int, alpha: float, lift: float) -> bool:
    """Whether any value claims an effect at any look."""
    dice = np.random.default_rng(seed)
    plan = Plan("A", {"A": 0.5, "B": 0.5}, alpha)
    value, arm = dice.choice(len(SHARES), USERS, p=SHARES), dice.integers(2, size=USERS)
    first = dice.integers(DAYS, size=USERS)
    rate = dice.beta(4, 26, USERS) * (1 + lift * arm)
    shown, clicked = np.zeros(USERS, np.int64), np.zeros(USERS, np.int64)
    for day in range(DAYS):
        impressions = 10 * ((first <= day) & (dice.random(USERS) < 0.5))
        shown += impressions
        clicked += dice.binomial(impressions, rate)
        for each in range(len(SHARES)):
            here = (value == each) & (shown > 0)
            arms = {
                name: one_arm(clicked[here & (arm == i)], shown[here & (arm == i)])
                for i, name in enumerate("AB")
            }
            found = compare(plan, Rule(), arms)
            if any(comparison.verdict.outcome in CLAIMS for comparison in found.comparisons):
                return True
    return False


def main(runs: int) -> None:
    """Print the shares."""
    for lift in (0.0, 0.2):
        for name, alpha in (("shared", 0.05 / len(SHARES)), ("of each", 0.05)):
            claimed = sum(is_claimed(seed, alpha, lift) for seed in range(runs)) / runs
            print(f"lift {lift:.0%}, alpha {name}: {claimed:.1%} of {runs:,}", flush=True)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--runs", type=int, default=1000)
    main(flags.parse_args().runs)
