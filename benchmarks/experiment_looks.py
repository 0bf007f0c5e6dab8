"""Lifts of few buyers and of uneven arms at 100 looks: what is said, and how often it is wrong.

All looks of many experiments are computed at once, by formulas written out here; some of them are
held against what streamer.experiments makes of the same sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from benchmarks.rates import hold, table
from streamer.experiments import support
from streamer.experiments.plan import Plan, Rule
from streamer.experiments.readout import compare
from streamer.experiments.sums import ArmSums
from streamer.experiments.verdict import Outcome

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LOOKS, BATCH = 100, 25
"""Looks at each experiment, and experiments that are computed at once."""
MARGIN, BUYERS = 0.05, 0.1
RULE = Rule(margin=MARGIN)


@dataclass(frozen=True)
class Values:
    """What one user in ten (or one in a hundred) is worth."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    mean: float
    buyers: float = BUYERS


def lognormal(sigma: float) -> Values:
    return Values(
        f"log-normal, σ = {sigma:g}",
        lambda dice, shape: dice.lognormal(8, sigma, shape),
        exp(8 + sigma**2 / 2),
    )


VALUES = [
    *(lognormal(sigma) for sigma in (1, 1.5, 2)),
    Values("Pareto, 1.5", lambda dice, shape: 1000 * (1 + dice.pareto(1.5, shape)), 3000.0),
    Values("1 of 100 converts", lambda _, shape: np.ones(shape), 1.0, 0.01),
]
SIZES = [(1000, 1000), (10_000, 10_000), (6000, 14_000), (10_000, 90_000), (90_000, 10_000)]
"""Users of the treatment and of the control at the last look."""
LARGE = 0.5
"""A true lift below which no promise is made for the absolute interval of values of long tails."""


@dataclass(frozen=True)
class Arm:
    """Sums over users at every look, by (experiment, look); ``n`` by look."""

    n: Floats
    x: Floats
    xx: Floats
    nonzero: Floats

    @property
    def mean(self) -> Floats:
        return self.x / self.n

    @property
    def variance(self) -> Floats:
        """Of the mean."""
        return (self.xx / self.n - self.mean**2) / (self.n - 1)

    def sums(self, experiment: int, look: int) -> ArmSums:
        """As the engine would have them, in thousandths."""
        n = int(self.n[look])
        x, xx = int(self.x[experiment, look] * 1000), int(self.xx[experiment, look] * 10**6)
        return ArmSums(n, x, xx, n, n, x, int(self.nonzero[experiment, look]), x_scale=1e-3)


def arm(dice: np.random.Generator, values: Values, users: int, more: float) -> Arm:
    """One arm of BATCH experiments; ``more`` multiplies what each buyer is worth, or, where all are
    worth 1, how many there are."""
    shape = BATCH, users
    is_binary = values.mean == 1
    buys = dice.random(shape) < values.buyers * (more if is_binary else 1)
    x = buys * values.draw(dice, shape) * (1 if is_binary else more)
    n = np.arange(1, LOOKS + 1) * users // LOOKS
    moments = (np.cumsum(each, axis=1)[:, n - 1] for each in (x, x * x, x != 0))
    return Arm(n.astype(float), *(each.astype(float) for each in moments))


@dataclass(frozen=True)
class Said:
    """What is said at every look, by (experiment, look)."""

    has_interval: Bools
    absolute: tuple[Floats, Floats]
    has_relative: Bools
    relative: tuple[Floats, Floats]
    by_logarithms: tuple[Floats, Floats]
    is_better: Bools
    is_worse: Bools
    is_harmless: Bools


def said(plan: Plan, t: Arm, c: Arm) -> Said:
    """The formulas of streamer.experiments, over arrays."""
    users = t.n + c.n
    z = users * plan.rho2
    reach = np.sqrt((1 + 1 / z) * (np.log1p(z) - 2 * log(plan.alpha)))
    lift, stderr = t.mean - c.mean, np.sqrt(t.variance + c.variance)
    low, high = lift - reach * stderr, lift + reach * stderr
    gamma2 = users * (t.xx + c.xx) / (t.x + c.x) ** 2
    skewness = np.sqrt(gamma2 * (t.n - c.n) ** 2 / (t.n * c.n * users))
    is_even = (t.n == c.n) | (skewness <= support.MAX_SKEWNESS)
    has_interval = (stderr > 0) & is_even & (np.minimum(t.n, c.n) >= RULE.min_users)
    curvature = c.mean**2 - reach**2 * c.variance
    middle = lift * c.mean + reach**2 * c.variance
    root = np.sqrt(np.maximum(0, middle**2 - curvature * low * high))
    ends = (middle - root) / curvature, (middle + root) / curvature
    counts = np.minimum(t.nonzero, c.nonzero) >= support.MIN_NONZERO
    logs = np.log(t.mean / c.mean)
    spread = reach * np.sqrt(t.variance / t.mean**2 + c.variance / c.mean**2)
    weight = 1 - MARGIN
    guard = t.mean - weight * c.mean - reach * np.sqrt(t.variance + weight**2 * c.variance)
    return Said(
        has_interval,
        (low, high),
        has_interval & counts & (curvature > 0),
        ends,
        (np.expm1(logs - spread), np.expm1(logs + spread)),
        has_interval & (low > 0),
        has_interval & (high < 0) & ~(guard > 0),
        has_interval & (guard > 0) & ~(low > 0),
    )


def agrees(plan: Plan, t: Arm, c: Arm, found: Said) -> None:
    """Fail if the product says something else of the last look, or of one on the way."""
    for experiment, look in ((0, LOOKS - 1), (1, LOOKS // 4), (2, 4)):
        sums = {"A": c.sums(experiment, look), "B": t.sums(experiment, look)}
        (theirs,) = compare(plan, RULE, sums).comparisons
        at = experiment, look
        if theirs.verdict.outcome is Outcome.INVALID:
            continue
        claims = (
            (Outcome.BETTER, found.is_better),
            (Outcome.WORSE, found.is_worse),
            (Outcome.NO_HARM, found.is_harmless),
        )
        for outcome, where in claims:
            assert (theirs.verdict.outcome is outcome) == where[at], (theirs, at)
        for estimate, has, ends in (
            (theirs.absolute, found.has_interval, found.absolute),
            (theirs.relative, found.has_relative, found.relative),
        ):
            assert (estimate.anytime is not None) == has[at], (estimate, at)
            if estimate.anytime is not None:
                low_high = estimate.anytime.low, estimate.anytime.high
                expected = [end[at] for end in ends]
                assert np.allclose(low_high, expected, rtol=1e-3, atol=1e-4), (low_high, expected)


KINDS = ("absolute", "relative", "logarithms", "wrong", "harmless", "found", "shown")


def count(plan: Plan, values: Values, users: tuple[int, int], more: float, runs: int) -> list[int]:
    """Experiments in which an interval ever misses (absolute, relative, relative by logarithms),
    that are ever wrongly called better or worse, ever wrongly of no harm, rightly called worse or
    of no harm at any look, and that have a relative interval at the last look."""
    dice = np.random.default_rng(5)
    total = np.zeros(len(KINDS), np.int64)
    truth = (more - 1) * values.buyers * values.mean
    for batch in range(runs // BATCH):
        t, c = arm(dice, values, users[0], more), arm(dice, values, users[1], 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = said(plan, t, c)
        if batch == 0:
            agrees(plan, t, c, found)
        misses = [
            has & ~((low <= at) & (at <= high))
            for has, (low, high), at in (
                (found.has_interval, found.absolute, truth),
                (found.has_relative, found.relative, more - 1),
                ((t.x > 0) & (c.x > 0) & (t.n >= 2), found.by_logarithms, more - 1),
            )
        ]
        is_harm = more <= 1 - MARGIN
        wrong = found.is_better | (found.is_worse if more == 1 else False)
        harmless = found.is_harmless if is_harm else np.zeros_like(found.is_harmless)
        right = found.is_worse if is_harm else found.is_harmless
        ever = [each.any(axis=1) for each in (*misses, wrong, harmless, right)]
        total += [int(each.sum()) for each in (*ever, found.has_relative[:, -1])]
    return total.tolist()


def few_buyers(runs: int) -> None:
    """Whether what is said holds at all of 100 looks, for values of long tails; of each column the
    worst over true lifts of 0, -5 and -20 %."""
    runs -= runs % BATCH
    rows = [row(users, values, runs) for users in SIZES for values in VALUES]
    table(
        f"{runs} experiments each, {LOOKS} looks; the worst of true lifts of 0, -5 and -20 %",
        (
            *("users of B and A", "value of a buyer", "absolute covers", "relative covers"),
            *("by logarithms", "wrongly better or worse", "wrongly no harm"),
            *("-20 % found", "relative given at the end", "absolute covers -50 %"),
        ),
        rows,
    )


def row(users: tuple[int, int], values: Values, runs: int) -> tuple[str, ...]:
    """One row, after what is promised was held."""
    plan = Plan("A", {"A": users[1], "B": users[0]})
    made = {
        more: dict(zip(KINDS, count(plan, values, users, more, runs), strict=True))
        for more in (1.0, 0.95, 0.8, LARGE)
    }
    promised = [found for more, found in made.items() if more > LARGE]
    worst = {kind: max(found[kind] for found in promised) for kind in KINDS}
    for kind in ("absolute", "relative", "wrong", "harmless"):
        hold(f"{kind}, {values.name}, {users}", worst[kind], runs, plan.alpha)
    hold(f"relative, {values.name}, {users}, large", made[LARGE]["relative"], runs, plan.alpha)
    covers = (f"{1 - worst[kind] / runs:.1%}" for kind in ("absolute", "relative", "logarithms"))
    wrongs = (f"{worst[kind] / runs:.1%}" for kind in ("wrong", "harmless"))
    shares = (f"{n / runs:.0%}" for n in (made[0.8]["found"], made[1.0]["shown"]))
    large = f"{1 - made[LARGE]['absolute'] / runs:.1%}"
    name = f"{users[0]:,} and {users[1]:,}"
    return (name, values.name, *covers, *wrongs, *shares, large)
