"""Lifts of few buyers and of uneven arms at 100 looks: what is said, and how often it is wrong.

All looks of many experiments are computed at once, by formulas written out here; some of them are
held against what streamer.stats.experiments makes of the same sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import hold, table
from streamer.stats.experiments import support
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome, Scale

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LOOKS, BATCH = 100, 50
"""Looks at each experiment, and experiments that are computed at once."""
MARGIN, BUYERS = 0.05, 0.1
RULE = Rule(margin=MARGIN)


@dataclass(frozen=True)
class Values:
    """What a buyer is worth, and the share of the users who buy."""

    name: str
    draw: Callable[[np.random.Generator, int], Floats]
    mean: float
    buyers: float = BUYERS

    @property
    def is_binary(self) -> bool:
        return self.mean == 1


@dataclass(frozen=True)
class Effect:
    """By what the treatment multiplies the share of buyers, and what each of them is worth."""

    buyers: float = 1.0
    worth: float = 1.0

    @property
    def lift(self) -> float:
        """The true relative lift of the value per user."""
        return self.buyers * self.worth - 1


def lognormal(sigma: float) -> Values:
    """Values e**(8 + σ N(0, 1))."""
    return Values(
        f"log-normal, σ = {sigma:g}",
        lambda dice, count: dice.lognormal(8, sigma, count),
        exp(8 + sigma**2 / 2),
    )


CONVERTS = Values("1 of 100 converts", lambda _, count: np.ones(count), 1.0, 0.01)
VALUES = [
    *(lognormal(sigma) for sigma in (1, 1.5, 2)),
    Values("Pareto, 1.5", lambda dice, count: 1000 * (1 + dice.pareto(1.5, count)), 3000.0),
    CONVERTS,
]
SIZES = [(1000, 1000), (10_000, 10_000), (6000, 14_000), (10_000, 90_000), (90_000, 10_000)]
"""Users of the treatment and of the control at the last look."""
FACTORS = (1.0, 0.95, 0.8, 0.5, 2.0)
NOTHING, HALF_LOST = Effect(), Effect(buyers=0.5)
MOST_LOST, ALL_LOST = Effect(buyers=0.1), Effect(buyers=0.0)
LARGE = 0.5
"""A true lift from which on, either way, no promise is made for the absolute interval."""


def effects(values: Values) -> list[Effect]:
    """Of all true lifts, by how many buy, and by what buyers are worth unless all are worth 1."""
    by_buyers = [Effect(buyers=factor) for factor in FACTORS]
    by_worth = [Effect(worth=factor) for factor in FACTORS if factor != 1]
    return by_buyers if values.is_binary else by_buyers + by_worth


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


def arm(dice: np.random.Generator, values: Values, users: int, effect: Effect = NOTHING) -> Arm:
    """One arm of BATCH experiments; only the buyers between two looks are drawn."""
    n = np.arange(LOOKS + 1) * users // LOOKS
    buyers = dice.binomial(np.diff(n), values.buyers * effect.buyers, (BATCH, LOOKS))
    x = values.draw(dice, int(buyers.sum())) * effect.worth
    where = np.repeat(np.arange(BATCH * LOOKS), buyers.ravel())
    sums = (
        np.bincount(where, weights, BATCH * LOOKS).reshape(BATCH, LOOKS).cumsum(axis=1)
        for weights in (x, x * x, np.ones_like(x))
    )
    return Arm(n[1:].astype(float), *sums)


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

    @property
    def shown(self) -> tuple[Floats, Floats]:
        """The relative interval where there is one, otherwise the absolute one."""
        low, high = (
            np.where(self.has_relative, relative, absolute)
            for relative, absolute in zip(self.relative, self.absolute, strict=True)
        )
        return low, high


def said(plan: Plan, t: Arm, c: Arm) -> Said:
    """The formulas of streamer.stats.experiments, over arrays."""
    users = t.n + c.n
    z = users * plan.rho2
    reach = np.sqrt((1 + 1 / z) * (np.log1p(z) - 2 * log(plan.alpha)))
    lift, stderr = t.mean - c.mean, np.sqrt(t.variance + c.variance)
    low, high = lift - reach * stderr, lift + reach * stderr
    gamma2 = users * (t.xx + c.xx) / (t.x + c.x) ** 2
    skewness = np.sqrt(gamma2 * (t.n - c.n) ** 2 / (t.n * c.n * users))
    is_even = (t.n == c.n) | (skewness <= support.MAX_SKEWNESS)
    smaller = np.minimum(t.n, c.n)
    are_enough = (t.nonzero + c.nonzero) / users * smaller >= support.ANYTIME_NONZERO
    has_interval = (stderr > 0) & is_even & are_enough & (smaller >= RULE.min_users)
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
        if theirs.verdict.outcome is Outcome.BROKEN_SPLIT:
            continue
        claims = (
            ((Outcome.BETTER,), found.is_better),
            ((Outcome.HARM, Outcome.WORSE_WITHIN), found.is_worse),
            ((Outcome.NO_HARM,), found.is_harmless),
        )
        for outcomes, where in claims:
            assert (theirs.verdict.outcome in outcomes) == where[at], (theirs, at)
        is_relative = theirs.verdict.scale is Scale.RELATIVE
        assert is_relative == found.has_relative[at] or not found.has_interval[at], (theirs, at)
        for estimate, has, ends in (
            (theirs.absolute, found.has_interval, found.absolute),
            (theirs.relative, found.has_relative, found.relative),
        ):
            assert (estimate.anytime is not None) == has[at], (estimate, at)
            if estimate.anytime is not None:
                low_high = estimate.anytime.low, estimate.anytime.high
                expected = [end[at] for end in ends]
                assert np.allclose(low_high, expected, rtol=1e-3, atol=1e-4), (low_high, expected)


KINDS = (
    *("absolute", "relative", "logarithms", "shown", "wrong", "harmless", "worse"),
    *("found", "given", "relative given"),
)


def count(
    plan: Plan, values: Values, users: tuple[int, int], effect: Effect, runs: int
) -> dict[str, int]:
    """Experiments in which an interval ever misses (absolute, relative, relative by logarithms, and
    the one that is shown), that are ever wrongly called better or worse, ever wrongly of no harm,
    ever called worse, rightly called worse or of no harm, and that have an interval and a relative
    one at the last look."""
    dice = np.random.default_rng(5)
    total = np.zeros(len(KINDS), np.int64)
    lift = effect.lift
    truth = lift * values.buyers * values.mean
    for batch in range(runs // BATCH):
        t, c = arm(dice, values, users[0], effect), arm(dice, values, users[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = said(plan, t, c)
        if batch == 0:
            agrees(plan, t, c, found)
        misses = [
            has & ~((low <= at) & (at <= high))
            for has, (low, high), at in (
                (found.has_interval, found.absolute, truth),
                (found.has_relative, found.relative, lift),
                ((t.x > 0) & (c.x > 0) & (t.n >= 2), found.by_logarithms, lift),
                (found.has_interval, found.shown, np.where(found.has_relative, lift, truth)),
            )
        ]
        is_harm = lift <= -MARGIN + 1e-9
        wrong = (found.is_better & (lift <= 0)) | (found.is_worse & (lift >= 0))
        harmless = found.is_harmless & is_harm
        right = found.is_worse if is_harm else found.is_harmless
        ever = [each.any(axis=1) for each in (*misses, wrong, harmless, found.is_worse, right)]
        last = [each[:, -1] for each in (found.has_interval, found.has_relative)]
        total += [int(each.sum()) for each in (*ever, *last)]
    return dict(zip(KINDS, total.tolist(), strict=True))


@dataclass(frozen=True)
class Measured:
    """The counts of all effects on the same values and users."""

    runs: int
    counts: dict[Effect, dict[str, int]]

    def worst(self, kind: str, *, least: float = 0.0, below: float = 9.0) -> int:
        """Of true lifts at least ``least`` and less than ``below`` to either side."""
        return max(
            found[kind]
            for effect, found in self.counts.items()
            if least <= abs(effect.lift) + 1e-9 < below
        )

    def share(self, kind: str, effect: Effect, digits: int = 0) -> str:
        """Share of the runs of one kind, as a percentage."""
        return f"{self.counts[effect][kind] / self.runs:.{digits}%}"

    def covered(self, misses: int) -> str:
        """Share of the runs without a miss, as a percentage."""
        return f"{1 - misses / self.runs:.1%}"


def measured(users: tuple[int, int], values: Values, runs: int) -> Measured:
    """All true lifts, after what is promised was held."""
    plan = Plan("A", {"A": users[1], "B": users[0]})
    its = Measured(
        runs, {effect: count(plan, values, users, effect, runs) for effect in effects(values)}
    )
    name = f"{values.name}, {values.buyers:.1%} buyers, {users}"
    for kind in ("relative", "shown", "wrong", "harmless"):
        hold(f"{kind}, {name}", its.worst(kind), runs, plan.alpha)
    hold(f"absolute, {name}", its.worst("absolute", below=LARGE), runs, plan.alpha)
    return its


def few_buyers(runs: int) -> None:
    """Whether what is said holds at all of 100 looks, for values of long tails; of each column the
    worst over the true lifts."""
    runs -= runs % BATCH
    rows = []
    for users in SIZES:
        for values in VALUES:
            its = measured(users, values, runs)
            small = (its.worst(kind, below=LARGE) for kind in ("absolute", "logarithms"))
            wrongs = (f"{its.worst(kind) / runs:.1%}" for kind in ("wrong", "harmless"))
            fall = Effect(buyers=0.8) if values.is_binary else Effect(worth=0.8)
            rows.append(
                (
                    *(f"{users[0]:,} and {users[1]:,}", values.name),
                    *map(its.covered, (its.worst("shown"), its.worst("relative"), *small)),
                    *(*wrongs, its.share("found", fall), its.share("relative given", NOTHING)),
                    its.covered(its.worst("absolute", least=LARGE)),
                )
            )
    table(
        f"{runs} experiments each, {LOOKS} looks; the worst of true lifts of 0, -5, -20, -50 and "
        "+100 %, of the absolute interval and the one by logarithms of 0, -5 and -20 %",
        (
            *("users of B and A", "value of a buyer", "shown covers", "relative covers"),
            *("absolute covers", "by logarithms", "wrongly better or worse", "wrongly no harm"),
            *("-20 % found", "relative given at the end", "absolute covers -50 and +100 %"),
        ),
        rows,
    )


RARE = {0.1: (3000, 30_000), 0.02: (15_000, 150_000), 0.005: (60_000, 600_000)}
"""Users of each arm by the share of buyers: 300 and 3,000 buyers."""


def rare_buyers(runs: int) -> None:
    """The same of equal arms, by the share of buyers; and a treatment that loses them."""
    runs -= runs % BATCH
    plan = Plan("A", {"A": 1, "B": 1})
    rows = []
    for share, sizes in RARE.items():
        for users in sizes:
            for kind in (replace(CONVERTS, name="all 1"), *VALUES[:3]):
                values = replace(kind, buyers=share)
                both = users, users
                its = measured(both, values, runs)
                most, lost = (
                    count(plan, values, both, effect, runs) for effect in (MOST_LOST, ALL_LOST)
                )
                if values.is_binary:
                    hold(f"all of {share:.1%} lost", runs - lost["worse"], runs, plan.alpha)
                misses = (its.worst("shown"), its.worst("absolute", below=LARGE))
                large = its.worst("absolute", least=LARGE)
                rows.append(
                    (
                        *(f"{share:.1%}", f"{users:,}", values.name),
                        *map(its.covered, (*misses, large)),
                        *(f"{its.worst('wrong') / runs:.1%}", its.share("worse", HALF_LOST)),
                        f"{lost['worse'] / runs:.0%}",
                        *map(its.covered, (most["shown"], lost["shown"])),
                    )
                )
    table(
        f"{runs} experiments each, {LOOKS} looks, equal arms; the worst of the same true lifts",
        (
            *("buyers", "users in each arm", "value of a buyer", "shown covers"),
            *("absolute covers", "absolute covers -50 and +100 %", "wrongly better or worse"),
            *("half of the buyers lost: found", "all lost: found"),
            *("nine of ten lost: shown covers", "all lost: shown covers"),
        ),
        rows,
    )
