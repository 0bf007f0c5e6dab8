"""Verdicts on dirty traffic: crawlers in experiments without a difference, and a dead checkout.

Click-through rates of users with twenty impressions on average, of whom some are crawlers that hold
57 % of all impressions and never click, looked at on each of 14 days; and conversions of 2 % of the
users, of which the treatment has none. Sums are made as the core makes them, and compared by
streamer.stats.experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import hold, table
from streamer.settings.experiments import DEFAULT_RATIO_CAP
from streamer.stats.experiments.caps import DENOMINATOR_EDGES, Denominator, largest, weighted
from streamer.stats.experiments.converters import SHARE_OF_ALPHA, converters
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DAYS, HELD, CTR = 14, 0.57, 0.05
RULE = Rule(can_be_negative=False)
EDGES = np.array(DENOMINATOR_EDGES, np.float64)
CLAIMS = (Outcome.BETTER, Outcome.WORSE)


@dataclass(frozen=True)
class World:
    """So many users, of whom a share sees the treatment, and crawlers among them."""

    users: int
    share: float
    crawlers: int

    @property
    def plan(self) -> Plan:
        return Plan("A", {"A": 1 - self.share, "B": self.share})


@dataclass(frozen=True)
class Found:
    """Experiments with a claim at any look, and shares of them: those with an interval on the
    last day, and of those with any interval the ones that always held 0."""

    experiments: int
    claims: int
    shown: float
    covered: float

    @property
    def claimed(self) -> float:
        return self.claims / self.experiments


def arm_of(x: Ints, y: Ints, cap: Denominator, last: int | None) -> ArmSums:
    """The sums of users with any impression, by buckets of denominators, as readers fold them."""
    by_bucket = buckets(x, y)
    bucket = len(DENOMINATOR_EDGES) if last is None else last
    its = weighted(by_bucket, bucket)
    nonzero = int(its.pop("nz"))
    its.pop("ny")
    return ArmSums(n=len(x), **its, nonzero=nonzero, largest=largest(by_bucket))  # type: ignore[arg-type]


def buckets(x: Ints, y: Ints) -> dict[int, dict[str, int]]:
    """Sums by bucket of denominators."""
    at = np.searchsorted(EDGES, y)
    weights = {"x": x, "y": y, "xx": x * x, "xy": x * y, "yy": y * y, "nz": x != 0, "ny": y != 0}
    sums = {name: np.bincount(at, its, len(EDGES) + 1) for name, its in weights.items()}
    held = {0, *np.flatnonzero(sums["ny"]).tolist()}
    return {b: {name: int(its[b]) for name, its in sums.items()} for b in sorted(held)}


def looks(dice: np.random.Generator, world: World, *, is_capped: bool) -> list[Comparison]:
    """One experiment without a difference, on each day."""
    activity = dice.gamma(2.0, 10.0, world.users)
    rate = np.clip(CTR * dice.beta(2, 8, world.users) / 0.2, 0, 1)
    first = dice.integers(0, DAYS, world.users)
    if world.crawlers:
        total = activity.sum() * HELD / (1 - HELD)
        activity[: world.crawlers], rate[: world.crawlers] = total / world.crawlers, 0.0
        first[: world.crawlers] = 0
    is_treated = dice.random(world.users) < world.share
    x, y = np.zeros(world.users, np.int64), np.zeros(world.users, np.int64)
    cap = Denominator(DEFAULT_RATIO_CAP)
    found = []
    for day in range(DAYS):
        shown = dice.poisson(np.where(first <= day, activity / (DAYS - first), 0))
        x, y = x + dice.binomial(shown, rate), y + shown
        there = y > 0
        users = np.bincount(np.searchsorted(EDGES, y[there]))
        last = cap.bucket(dict(enumerate(users.tolist()))) if is_capped else None
        arms = {
            name: arm_of(x[there & which], y[there & which], cap, last)
            for name, which in (("A", ~is_treated), ("B", is_treated))
        }
        found.append(compare(world.plan, RULE, arms).comparisons[0])
    return found


def measured(world: World, experiments: int, *, is_capped: bool = True) -> Found:
    """Many experiments of one kind."""
    dice = np.random.default_rng(7)
    claimed = shown = always = seen = 0
    for _ in range(experiments):
        found = looks(dice, world, is_capped=is_capped)
        intervals = [c.absolute.anytime for c in found]
        claimed += any(c.verdict.outcome in CLAIMS for c in found)
        shown += intervals[-1] is not None
        any_of = [its for its in intervals if its is not None]
        seen += bool(any_of)
        always += bool(any_of) and all(its.low <= 0 <= its.high for its in any_of)
    return Found(experiments, claimed, shown / experiments, always / seen if seen else 1.0)


def crawlers(experiments: int) -> None:
    """False claims and coverage with crawlers, by split."""
    rows = []
    for share, users in ((0.5, 4_000), (0.1, 10_000), (0.01, 40_000)):
        for count in (0, 1, 3, 10):
            world = World(users, share, count)
            every = experiments if users <= 10_000 else experiments // 2
            found, whole = (measured(world, every, is_capped=capped) for capped in (True, False))
            hold(f"{world}", found.claims, every, 0.025)
            rows.append(
                [
                    f"{1 - share:.0%} : {share:.0%}",
                    str(count),
                    *(f"{v:.1%}" for v in (found.claimed, found.covered, found.shown)),
                    *(f"{v:.1%}" for v in (whole.claimed, whole.shown)),
                ]
            )
    names = ["split", "crawlers", "false", "covers", "interval", "uncapped: false", "interval"]
    table("Crawlers with 57 % of the impressions, no difference, 14 looks", names, rows)


def dead_checkout(experiments: int) -> None:
    """When `worse` is said of a treatment in which nobody converts, and how often without one."""
    rows = []
    for share in (0.5, 0.1, 0.01):
        plan, dice = Plan("A", {"A": 1 - share, "B": share}), np.random.default_rng(11)
        expected = share / (1 - share)
        none = next(k for k in range(1, 10**6) if claims(plan, (0, k)))
        ever = 0
        for _ in range(experiments):
            of_b = np.cumsum(dice.random(4000) < share)
            at = np.unique(np.geomspace(1, 4000, 100).astype(int))
            ever += any(claims(plan, (int(of_b[k - 1]), int(k - of_b[k - 1]))) for k in at)
        hold(f"converters, {share}", ever, experiments, SHARE_OF_ALPHA * plan.alpha)
        users = none / 0.02 / (1 - share)
        split, lost = f"{1 - share:.0%} : {share:.0%}", f"{none * expected:.1f}"
        rows.append([split, lost, f"{users:,.0f}", f"{ever / experiments:.1%}"])
    names = ["split", "expected buyers lost", "users (2 % buy)", "false, 100 looks"]
    table("Nobody converts in the treatment: the exact test", names, rows)


def claims(plan: Plan, counts: tuple[int, int]) -> bool:
    """Whether so many converters of treatment and control are a claim."""
    users = 10**7
    arms = [ArmSums(n=users, y=users, yy=users, nonzero=each) for each in counts]
    (found,) = converters(plan, [("B", arms[0], arms[1])])
    return found is not None and found.p_value <= SHARE_OF_ALPHA * plan.alpha
