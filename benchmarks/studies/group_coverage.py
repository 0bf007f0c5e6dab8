"""How often intervals of random groups hold the true value, by users and how unlike they are.

    python -m benchmarks.studies.group_coverage

Users see about 13 impressions each (even), or most see few and some see hundreds (skewed). They
click with a propensity of their own, of mean 0.1, stay for a lognormal time, and buy after one
click in seven, for a lognormal value. Each cell is the share of the shown 95 % intervals that hold
the truth, and the share of the simulated windows that have one.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from streamer.metrics.intervals import of_groups, of_rates
from streamer.metrics.users import RATE_UNIT
from streamer.stats.random_groups import GROUPS

ROUNDS, POPULATION = 1500, 2_000_000
CASES = ((10, False), (40, False), (40, True), (300, False), (300, True))
"""Users, and whether they are skewed."""
F64 = npt.NDArray[np.float64]
Parts = dict[str, tuple[F64, F64]]
"""Metric -> numerator and denominator by user."""
SHARE, RATE = "ctr_ratio", "positive_rate_ratio"


def users(n: int, is_skewed: bool, dice: np.random.Generator) -> Parts:
    """What users did."""
    seen = dice.poisson(dice.lognormal(2.5, 1.3 if is_skewed else 0.3, n)) + 1
    clicks = dice.binomial(seen, dice.beta(1, 9, n))
    bought = dice.binomial(clicks, 0.15)

    def of_each(events: npt.NDArray[np.int64]) -> F64:
        values = dice.lognormal(3, 1, int(events.sum()))
        return np.bincount(np.repeat(np.arange(n), events), values, n).astype(np.float64)

    value, dwell = of_each(bought), of_each(clicks)
    one = np.ones(n)
    return {
        SHARE: (clicks.astype(float), seen.astype(float)),
        "conversion_value_per_impression": (value, seen.astype(float)),
        "conversion_value_per_click": (value, clicks.astype(float)),
        "dwell_mean_seconds": (dwell, clicks.astype(float)),
        "clicks_per_user": (clicks.astype(float), one),
        RATE: (clicks / seen, one),
    }


def is_held(name: str, x: F64, y: F64, truth: float, group: npt.NDArray[np.int64]) -> bool | None:
    """Whether the interval holds the truth; None where there is none."""
    if name == RATE:
        units = np.round(x * RATE_UNIT)
        squares = np.round(x**2 * RATE_UNIT)
        columns = (units, squares, y, (x > 0).astype(float))
        rates, of_squares, people, positive = (np.array([int(c.sum())]) for c in columns)
        found = of_rates(rates, of_squares, people, positive, 1.0)
    else:
        above, below = (np.bincount(group, each, GROUPS)[None] for each in (x, y))
        if name == "clicks_per_user":
            above, below = GROUPS * above, np.full((1, GROUPS), float(len(x)))
        found = of_groups(above, below, 1, name == SHARE)
    if not found.present[0]:
        return None
    return bool(found.lower[0] <= truth <= found.upper[0])


def main() -> int:
    """Print a row for each metric; fail below 80 %."""
    dice, cells, worst = np.random.default_rng(1), dict[str, list[str]](), 1.0
    for n, is_skewed in CASES:
        truths = {m: x.sum() / y.sum() for m, (x, y) in users(POPULATION, is_skewed, dice).items()}
        held: dict[str, list[bool]] = {name: [] for name in truths}
        for _ in range(ROUNDS):
            group = dice.integers(0, GROUPS, n)
            for name, (x, y) in users(n, is_skewed, dice).items():
                found = is_held(name, x, y, float(truths[name]), group) if y.sum() else None
                if found is not None:
                    held[name].append(found)
        for name, some in held.items():
            has_any = len(some) > ROUNDS / 100
            share = float(np.mean(some)) if has_any else 1.0
            worst = min(worst, share if name != SHARE else 1.0)
            text = f"{share:.0%} of {len(some) / ROUNDS:.0%}" if has_any else "none"
            cells.setdefault(name, []).append(text)
    heads = [f"{n} {'skewed' if is_skewed else 'even'}" for n, is_skewed in CASES]
    print(f"| | {' | '.join(heads)} |\n|{' --- |' * (1 + len(heads))}")
    for name, row in cells.items():
        print(f"| `{name}` | {' | '.join(row)} |")
    return 0 if worst >= 0.8 else 1


if __name__ == "__main__":
    sys.exit(main())
