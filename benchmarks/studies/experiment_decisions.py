"""When the same experiments are decided by different methods, and how often wrongly.

Every user comes on one day, as many on each, and sees about twenty impressions with a propensity of
their own to click; there is a look at the end of each day. The number of users that one look needs
to find a lift of 5 % with a probability of 80 % is there on day 14, the fixed horizon, and three
times as many on the last day. All methods see the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import inf, log, sqrt

import numpy as np

from benchmarks.studies.rates import hold, rate, table
from streamer.stats.distributions import t_two_sided
from streamer.stats.experiments import recommendation
from streamer.stats.experiments.lift import Pair, contrast
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.recommendation import (
    DECISIONS,
    Action,
    Decision,
    Judged,
    recommend,
)
from streamer.stats.experiments.sizing import Goal, Needed, needed
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome

LIKES, SHOWN = (0.5, 9.5), 20
PLAN, GOAL = Plan("A", {"A": 1, "B": 1}), Goal(0.05)
HORIZON, DAYS = 14, 42
LIFTS = (0.0, 0.05, 0.1)
TUNING = 5000.0
"""GrowthBook's default."""


def drawn(dice: np.random.Generator, users: int, more: float) -> np.ndarray[tuple[int, int]]:
    """Of each user 1, x, x², y, y² and xy; and whether x is not 0."""
    likes = np.minimum(1.0, dice.beta(*LIKES, users) * more)
    y = dice.poisson(SHOWN - 1, users) + 1
    x = dice.binomial(y, likes)
    return np.stack([np.ones_like(x), x, x * x, y, y * y, x * y, x > 0])


def arm(dice: np.random.Generator, a_day: int, more: float) -> list[ArmSums]:
    """The sums of an arm at the end of each day."""
    users = drawn(dice, a_day * DAYS, more).reshape(7, DAYS, a_day)
    return [ArmSums(*row) for row in users.sum(axis=2).cumsum(axis=1).T.tolist()]


def sequential(a: ArmSums, b: ArmSums, tuning: float) -> tuple[float, float]:
    """GrowthBook's interval of the relative lift at any look, in the delta method: formula 9 of
    Waudby-Smith et al. (arXiv 2103.06476v7) with ρ by formula 161, as SequentialTwoSidedTTest of
    gbstats 0.8.0 (frequentist/tests.py) has them; ``tuning`` is its sequential_tuning_parameter."""
    its, control = ratio(b), ratio(a)
    assert its.value is not None
    assert its.variance is not None
    assert control.value
    assert control.variance is not None
    value, base, users = float(its.value), float(control.value), a.n + b.n
    variance = its.variance / base**2 + control.variance * value**2 / base**4
    need = -2 * log(PLAN.alpha)
    z = users * (need + log(need + 1)) / tuning
    width = sqrt(variance * 2 * (z + 1) / z * log(sqrt(z + 1) / PLAN.alpha))
    return value / base - 1 - width, value / base - 1 + width


@dataclass(frozen=True)
class Look:
    """One look at both arms, on a day."""

    day: int
    a: ArmSums
    b: ArmSums


Method = Callable[[Look], int]
"""1: better, -1: worse, 0: nothing is decided."""


def ours(plan: Plan) -> Method:
    """The verdict; with ``at_end`` only harm is said before the horizon, and nothing after it."""

    def decides(look: Look) -> int:
        if plan.at_end and look.day > HORIZON:
            return 0
        now = replace(plan, is_over=look.day == HORIZON) if plan.at_end else plan
        found = compare(now, Rule(), {"A": look.a, "B": look.b}).comparisons[0].verdict.outcome
        return (found is Outcome.BETTER) - (found is Outcome.WORSE)

    return decides


def welch(first: int) -> Method:
    """Student's t-test over users, at every look from a day to the horizon."""

    def decides(look: Look) -> int:
        if not first <= look.day <= HORIZON:
            return 0
        found = contrast(Pair(ratio(look.b), ratio(look.a)))
        assert found.t is not None
        is_found = t_two_sided(found.t, found.df or 1.0) <= PLAN.alpha
        return int(np.sign(found.t)) if is_found else 0

    return decides


def growthbook(tuning: float) -> Method:
    """Whether 0 is outside of its interval."""

    def decides(look: Look) -> int:
        low, high = sequential(look.a, look.b, tuning)
        return (low > 0) - (high < 0)

    return decides


def first_decision(method: Method, looks: Sequence[Look]) -> tuple[float, int]:
    """The day of it, infinite if there is none, and what it says."""
    for look in looks:
        if said := method(look):
            return look.day, said
    return inf, 0


def decisions(runs: int) -> None:
    """False decisions without a lift, and how soon a lift is found."""
    asked = needed(
        ArmSums(*drawn(np.random.default_rng(13), 10**6, 1.0).sum(axis=1).tolist()), GOAL
    )
    assert isinstance(asked, Needed)
    assert asked.fixed is not None
    assert asked.anytime is not None
    a_day = -(-asked.fixed // (2 * HORIZON))
    tuned = asked.anytime
    methods = {
        "anytime-valid, as it is": ours(PLAN),
        f"anytime-valid, expected_users = {tuned:,}": ours(replace(PLAN, tuned_users=tuned)),
        "at_end": ours(replace(PLAN, at_end=True)),
        "Welch, at the fixed horizon": welch(HORIZON),
        "Welch, at every look up to it": welch(1),
        f"GrowthBook's sequential, tuned to {TUNING:,.0f}": growthbook(TUNING),
        f"GrowthBook's sequential, tuned to {tuned:,}": growthbook(tuned),
    }
    made: dict[str, list[str]] = {name: [] for name in methods}
    for lift in LIFTS:
        dice = np.random.default_rng(14)
        first: dict[str, list[tuple[float, int]]] = {name: [] for name in methods}
        for _ in range(runs):
            arms = (arm(dice, a_day, more) for more in (1.0, 1 + lift))
            looks = [Look(day, *both) for day, both in enumerate(zip(*arms, strict=True), 1)]
            for name, method in methods.items():
                first[name].append(first_decision(method, looks))
        for name, found in first.items():
            if not lift:
                false = sum(said != 0 for _, said in found)
                if "every look up" not in name:
                    hold(f"decisions, {name}", false, runs, PLAN.alpha)
                made[name].append(rate(false, runs))
                continue
            days = np.array([day if said > 0 else inf for day, said in found])
            middle = float(np.median(days))
            when = f"after day {DAYS}"
            if middle < inf:
                when = f"{middle * 2 * a_day / asked.fixed:.2f} n, day {middle:.0f}"
            made[name] += [rate(int((days < inf).sum()), runs), when]
    table(
        f"{runs} experiments of each lift: n = {asked.fixed:,} users on day {HORIZON} find +5 % at "
        f"one look with 80 %; up to day {DAYS}, with looks daily",
        (
            *("method", "false decisions without a lift", "+5 % found", "median users and day"),
            *("+10 % found", "median users and day"),
        ),
        [(name, *cells) for name, cells in made.items()],
    )


TURNS: dict[str, tuple[float, float]] = {
    "no lift": (1.0, 1.0),
    "+10 % throughout": (1.1, 1.1),
    "+20 %, and of newcomers from day 8 on -20 %": (1.2, 0.8),
}
"""Clicks of B before day 8, and of those who come later."""


def withdrawals(runs: int) -> None:
    """How often a decision is withdrawn, where the effect is the same on all days and where not."""
    a_day, half, days = 300, 7, 21
    start, rows = date(2026, 1, 1), []
    for name, (early, late) in TURNS.items():
        dice = np.random.default_rng(17)
        decided = withdrawn = 0
        for _ in range(runs):
            a = drawn(dice, a_day * days, 1.0)
            b = np.concatenate(
                [
                    drawn(dice, a_day * half, early),
                    drawn(dice, a_day * (days - half), late),
                ],
                axis=1,
            )
            looks = []
            for day in range(1, days + 1):
                sums = (ArmSums(*each[:, : a_day * day].sum(axis=1).tolist()) for each in (a, b))
                found = compare(PLAN, Rule(), dict(zip("AB", sums, strict=True)))
                judged = Judged("clicks", Rule(), found)
                looks.append((start + timedelta(days=day), recommend(Decision(PLAN, judged, []))))
            *earlier, (_, today) = looks
            advice = recommendation.first_decision(earlier, today)
            withdrawn += advice.action is Action.CHANGED
            decided += any(its.action in DECISIONS for _, its in looks)
        if early == late:
            hold(f"decisions withdrawn, {name}", withdrawn, runs, PLAN.alpha)
        rows.append((name, rate(decided, runs), rate(withdrawn, runs)))
    table(
        f"Decisions of {runs:,} experiments over {days} days, {a_day} users an arm and day",
        ("effect", "decided", "withdrawn later"),
        rows,
    )
