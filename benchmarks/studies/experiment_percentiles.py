"""Percentiles of what users have, by simulation: false claims at any look, and coverage.

Users have seconds of dwell (in milliseconds), amounts with a heavy tail, or counts; a look after
every twentieth of them. Sums are made and compared by streamer.stats.experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import hold, rate, table
from streamer.stats.experiments.caps import EDGES
from streamer.stats.experiments.percentile import percentile_sums
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
RULE = Rule(can_be_negative=False, is_amount=True, is_percentile=True)
LOOKS, MORE = 20, 1.2
UP_TO = np.array(EDGES[:1000], np.float64)
CLAIMS = (Outcome.BETTER, Outcome.WORSE)


def dwell(dice: np.random.Generator, n: int) -> Floats:
    """Log-normal with σ = 1.5; three in ten users have none."""
    found: Floats = dice.lognormal(9, 1.5, n) * (dice.random(n) < 0.7)
    return found


def heavy_tail(dice: np.random.Generator, n: int) -> Floats:
    """Pareto, without a variance."""
    found: Floats = 1000 * (dice.pareto(1.2, n) + 1)
    return found


def counts(dice: np.random.Generator, n: int) -> Floats:
    """Few integers."""
    return dice.poisson(3, n).astype(np.float64)


def with_a_gap(dice: np.random.Generator, n: int) -> Floats:
    """One in ten users has 150 times as much as the others, and nobody anything between."""
    found: Floats = dice.lognormal(np.where(dice.random(n) < 0.1, 12, 7), 0.3)
    return found


VALUES: tuple[tuple[str, Draw], ...] = (
    ("dwell, log-normal", dwell),
    ("Pareto, 1.2", heavy_tail),
    ("counts, Poisson of mean 3", counts),
    ("a gap at the 90th percentile", with_a_gap),
)


def arm(values: Floats, share: Fraction) -> ArmSums:
    """The sums of an arm of users with these values."""
    buckets = np.bincount(np.searchsorted(UP_TO, np.rint(values)))
    held = {i: int(buckets[i]) for i in np.flatnonzero(buckets).tolist()}
    return percentile_sums(len(values), held, share, 1.0)


def looked(plan: Plan, share: Fraction, a: Floats, b: Floats) -> list[Comparison]:
    """The comparison after every twentieth of the users."""
    ends = [[len(its) * k // LOOKS for k in range(1, LOOKS + 1)] for its in (a, b)]
    arms = [{"A": arm(a[:i], share), "B": arm(b[:j], share)} for i, j in zip(*ends, strict=True)]
    return [compare(plan, RULE, each).comparisons[0] for each in arms]


def percentiles(runs: int) -> None:
    """False claims without a difference, and coverage and power of a true +20 %."""
    rows: list[tuple[str, ...]] = []
    for name, draw in VALUES:
        for percent, users in ((50, 4000), (90, 10_000), (99, 60_000)):
            for treated in (0.5, 0.1):
                sizes = round(users * (1 - treated) * 2), round(users * treated * 2)
                what = name, f"p{percent}", f"{sizes[0]:,} : {sizes[1]:,}"
                false, given, covered, found = _counted(draw, Fraction(percent, 100), sizes, runs)
                hold(f"percentiles, {', '.join(what)}", false, runs, 0.05)
                coverage = rate(covered, given) if given else "no interval"
                if draw is counts:
                    coverage = ""  # a fifth more is no integer
                shares = rate(false, runs), coverage, rate(found, runs)
                rows.append((*what, *shares))
    head = ("values", "percentile", "users", "false, 20 looks", "one look covers +20 %", "found")
    table(f"Percentiles, {runs} experiments each", head, rows)


def _counted(draw: Draw, share: Fraction, sizes: tuple[int, int], runs: int) -> list[int]:
    """Experiments with a false claim; of a true lift those with an interval at the last look, in
    which it is covered, and which find it."""
    dice = np.random.default_rng(13)
    plan = Plan("A", {"A": sizes[0], "B": sizes[1]})
    false = given = covered = found = 0
    for _ in range(runs):
        same = looked(plan, share, *(draw(dice, n) for n in sizes))
        false += any(each.verdict.outcome in CLAIMS for each in same)
        more = looked(plan, share, draw(dice, sizes[0]), MORE * draw(dice, sizes[1]))
        found += any(each.verdict.outcome is Outcome.BETTER for each in more)
        if (once := more[-1].relative.fixed) is not None:
            given += 1
            covered += once.low <= MORE - 1 <= once.high
    return [false, given, covered, found]
