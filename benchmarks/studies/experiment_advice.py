"""What experiments are advised to do, by simulation: a look a day, through the whole readout.

Users come day by day, each with three metrics of one propensity: clicks of impressions (the primary
one), whether a value was spent (the guardrail), and others (the secondary ones).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import hold, rate, table
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import MetricComparisons, compare, compare_family
from streamer.stats.experiments.recommendation import (
    Action,
    Decision,
    Judged,
    Recommendation,
    recommend,
)
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome

Ints = NDArray[np.int64]
MARGIN, MIN_LIFT = 0.05, 0.1
CLICKS, BUYERS = 0.3, 0.2
"""Shares of the users who click, and who buy, in the control."""


@dataclass(frozen=True)
class Truth:
    """An experiment: by what each treatment multiplies clicks and buyers; ``a_day`` users come to
    each arm in a day."""

    name: str
    clicks: tuple[float, ...] = (1.0,)
    buyers: tuple[float, ...] = (1.0,)
    a_day: int = 300
    days: int = 28
    min_lift: float | None = None
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        arms = ["A", *"BCDE"[: len(self.clicks)]]
        object.__setattr__(self, "plan", Plan("A", dict.fromkeys(arms, 1)))


def growing(dice: np.random.Generator, truth: Truth, share: float) -> list[ArmSums]:
    """The sums of a share of users of whom each does it or not, day by day."""
    n = truth.a_day * np.arange(1, truth.days + 1)
    return counted(n, dice.binomial(truth.a_day, share, truth.days).cumsum())


def counted(n: Ints, x: Ints) -> list[ArmSums]:
    """Sums of users of whom ``x`` have the value 1, by day."""
    both = zip(n.tolist(), x.tolist(), strict=True)
    return [ArmSums(n, x, x, n, n, x, x) for n, x in both]


def looks(dice: np.random.Generator, truth: Truth) -> Iterator[Recommendation]:
    """What is advised at the end of each day."""
    plan, rules = truth.plan, (Rule(), Rule(margin=MARGIN))
    effects = ((1.0, *truth.clicks), (1.0, *truth.buyers))
    days = [
        {arm: growing(dice, truth, share * by) for arm, by in zip(plan.split, its, strict=True)}
        for share, its in zip((CLICKS, BUYERS), effects, strict=True)
    ]
    for day in range(truth.days):
        primary, guardrail = (
            Judged(name, rule, compare(plan, rule, {arm: s[day] for arm, s in sums.items()}))
            for name, rule, sums in zip(("clicks", "buyers"), rules, days, strict=True)
        )
        yield recommend(Decision(plan, primary, [guardrail], truth.min_lift))


def first_of(dice: np.random.Generator, truth: Truth) -> tuple[int, Recommendation]:
    """The day, and what is advised, once it is anything but to keep running; or on the last."""
    found = truth.days, Recommendation(Action.KEEP_RUNNING, None, "")
    for day, advice in enumerate(looks(dice, truth), 1):
        if advice.action is not Action.KEEP_RUNNING:
            return day, advice
    return found


def ever(dice: np.random.Generator, truth: Truth) -> set[tuple[Action, str | None]]:
    """All that is advised at any of the looks, with its arm."""
    return {(advice.action, advice.arm) for advice in looks(dice, truth)}


NULLS = (
    Truth("A/A"),
    Truth("A/A, three treatments", (1.0,) * 3, (1.0,) * 3),
    Truth("clicks +50 %, loss = margin", (1.5,), (1 - MARGIN,)),
    Truth("the same, 4,000 users a day and arm", (1.5,), (1 - MARGIN,), a_day=4000),
    Truth("three treatments of +50 %, each loses the margin", (1.5,) * 3, (1 - MARGIN,) * 3, 2000),
)
"""Nothing of these may be shipped."""


def shipped(runs: int) -> None:
    """How often something is ever advised to be shipped that must not be, at any of the looks."""
    rows = []
    for truth in NULLS:
        dice = np.random.default_rng(7)
        seen: Counter[Action] = Counter()
        for _ in range(runs):
            seen.update({action for action, _ in ever(dice, truth)})
        hold(f"shipped, {truth.name}", seen[Action.SHIP], runs, truth.plan.alpha)
        row = (Action.SHIP, Action.STOP_HARM, Action.DO_NOT_USE)
        rows.append((truth.name, *(rate(seen[action], runs) for action in row)))
    table(
        f"Ever advised at 28 daily looks, {runs} experiments each",
        ("truth", "ship", "stop: harm", "do not use: broken split"),
        rows,
    )


EFFECTS = (
    Truth("clicks +10 %", (1.1,), (1.0,), 2000, min_lift=MIN_LIFT),
    Truth("clicks +10 %, the others 0", (1.0, 1.1, 1.0), (1.0,) * 3, 2000),
    Truth("nothing", (1.0,), (1.0,), 2000, min_lift=MIN_LIFT),
    Truth("clicks +10 %, buyers -10 %", (1.1,), (0.9,), 2000, min_lift=MIN_LIFT),
    Truth("clicks -10 %", (0.9,), (1.0,), 2000, min_lift=MIN_LIFT),
)


def advised(runs: int) -> None:
    """What comes first of experiments with an effect, and when."""
    rows = []
    for truth in EFFECTS:
        dice = np.random.default_rng(8)
        seen: Counter[str] = Counter()
        days = []
        for _ in range(runs):
            day, advice = first_of(dice, truth)
            days.append(day)
            is_best = advice.arm in (None, "BCD"[int(np.argmax(truth.clicks))])
            seen[str(advice.action) if is_best else "ship another"] += 1
        if truth.min_lift is not None and max(truth.clicks) - 1 >= truth.min_lift:
            wrong = seen[str(Action.STOP_NO_EFFECT)]
            hold(f"no effect, {truth.name}", wrong, runs, truth.plan.alpha)
        said = "; ".join(f"{what} {count / runs:.1%}" for what, count in seen.most_common())
        rows.append((truth.name, said, f"{np.median(days):.0f}"))
    table(
        f"What is advised first, {runs} experiments of 2,000 users a day and arm",
        ("truth", "advised", "median day"),
        rows,
    )


SECONDARY = 5


def found_wrongly(dice: np.random.Generator, truth: Truth, joined: float) -> tuple[bool, bool]:
    """Whether secondary metrics without a difference are ever called better or worse: with Holm
    over them, and each for itself. A share ``joined`` of what users do is common to all."""
    shape = (len(truth.plan.split), truth.days, truth.a_day)
    common = dice.random(shape)
    sums: list[dict[str, list[ArmSums]]] = []
    n = truth.a_day * np.arange(1, truth.days + 1)
    for _ in range(SECONDARY):
        own = np.where(dice.random(shape) < joined, common, dice.random(shape))
        did = (own < CLICKS).sum(axis=2).cumsum(axis=1)
        sums.append({arm: counted(n, x) for arm, x in zip(truth.plan.split, did, strict=True)})
    corrected = alone = False
    for day in range(truth.days):
        at = [(Rule(), {arm: its[day] for arm, its in each.items()}) for each in sums]
        corrected |= any(map(is_claimed, compare_family(truth.plan, at)))
        alone |= any(is_claimed(compare(truth.plan, *each)) for each in at)
    return corrected, alone


def is_claimed(found: MetricComparisons) -> bool:
    """Whether any arm is called better or worse."""
    claims = (Outcome.BETTER, Outcome.WORSE)
    return any(comparison.verdict.outcome in claims for comparison in found.comparisons)


def families(runs: int) -> None:
    """The share of experiments in which any secondary metric is ever wrongly called."""
    rows = []
    for arms in (1, 3):
        for joined in (0.0, 0.8):
            truth = Truth("", (1.0,) * arms, (1.0,) * arms)
            dice = np.random.default_rng(9)
            pairs = [found_wrongly(dice, truth, joined) for _ in range(runs)]
            corrected, alone = (sum(each) for each in zip(*pairs, strict=True))
            hold(f"{SECONDARY} secondary metrics, {arms} arms", corrected, runs, truth.plan.alpha)
            rows.append((arms, f"{joined:.0%}", rate(corrected, runs), rate(alone, runs)))
    table(
        f"{SECONDARY} secondary metrics without a difference, 28 daily looks, {runs} experiments: "
        "any ever called better or worse",
        ("treatments", "in common", "Holm over metrics", "each for itself"),
        rows,
    )
