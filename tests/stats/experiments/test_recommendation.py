"""What an experiment is advised to do: each rule, its words, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from math import sqrt

import numpy as np
import pytest

from streamer.stats.experiments.forecast import Forecast, Growth, Precision
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import MetricComparisons, compare
from streamer.stats.experiments.recommendation import (
    Action,
    Decision,
    Judged,
    Recommendation,
    first_decision,
    recommend,
)
from streamer.stats.experiments.sums import ArmSums
from tests.stats.experiments.arms import GUARD, HALVES, MANY, clicks
from tests.support.lanes import long, sized

ABC = Plan("A", {"A": 1, "B": 1, "C": 1})
SIX_DAYS = Growth(3, 15_000, 6, 30_000)
"""Everybody is new."""


def forecasts(found: MetricComparisons, growth: Growth) -> dict[str, Forecast]:
    """As if nobody came twice: what a user tells is always the same."""
    made, more = {}, sqrt(growth.users / growth.earlier_users)
    for comparison in found.comparisons:
        stderr = comparison.absolute.stderr
        if stderr is not None:
            made[comparison.arm] = Forecast(growth, Precision(stderr * more), Precision(stderr))
    return made


def advice(
    *shares: Sequence[int],
    users: int = MANY,
    rule: Rule | None = None,
    min_lift: float | None = None,
    growth: Growth | None = SIX_DAYS,
    is_over: bool = False,
) -> Recommendation:
    """Of the users in a thousand who do it, by arm: by the primary metric, and each guardrail."""
    plan = HALVES if len(shares[0]) == 2 else ABC
    judged = [
        Judged(name, its, found, {} if growth is None else forecasts(found, growth))
        for name, its, arms in zip(
            ("primary", "first", "second"),
            (rule or Rule(), GUARD, GUARD),
            [[clicks(users, each) for each in its] for its in shares],
            strict=False,
        )
        for found in [compare(plan, its, dict(zip(plan.split, arms, strict=True)))]
    ]
    primary, *guardrails = judged
    return recommend(Decision(plan, primary, guardrails, min_lift, is_over))


@pytest.mark.parametrize(
    ("found", "words", "said"),
    [
        (advice((100, 110)), "ship B", "primary: B is 10% higher than A (range: "),
        (advice((100, 110), (100, 100)), "ship B", "worse than tolerated (first)."),
        (advice((100, 110), (100, 98), (100, 103)), "ship B", "tolerated (first, second)."),
        (advice((100, 110), (100, 90)), "stop: harm", "B harms first. first: B is 10% lower"),
        (advice((100, 90)), "stop: harm", "B harms primary. primary: B is"),
        (advice((100, 90), (100, 90)), "stop: harm", "B harms primary and first. "),
        (advice((110, 100), rule=Rule(higher_is_better=False)), "ship B", "; lower is better)"),
        (
            advice((100, 140), (100, 101), users=5000),
            "keep running, about 153 days more at today's traffic",
            "B has a better primary, but these guardrails may still be worse than tolerated: first."
            " The test reaches a decision in about 153 days with a probability of 80% if first does"
            " not change.",
        ),
        (
            advice((100, 104), users=5000, min_lift=0.05),
            "keep running, about 160 days more at today's traffic",
            "The test reaches a decision in about 160 days with a probability of 80% if primary"
            " truly changes by 5%.",
        ),
        (
            advice((100, 110), users=5000),
            "keep running, about 31 days more at today's traffic",
            "if the change of primary stays as it is.",
        ),
        (advice((100, 100)), "keep running", "the test will not reach a decision if the change"),
        (advice((100, 104), users=5000, growth=None), "keep running", "could be anything from"),
        (advice((100, 104), users=5000, is_over=True), "ended without a decision", "day is over."),
        (
            advice((100, 100), min_lift=0.02),
            "stop: no effect worth shipping",
            "so a gain of 2% (min_lift) is ruled out.",
        ),
        (
            advice((100, 102), min_lift=0.05),
            "stop: no effect worth shipping",
            "B differs from A by",
        ),
        (
            advice((100, 100), rule=Rule(higher_is_better=False), min_lift=0.02),
            "stop: no effect worth shipping",
            "is ruled out",
        ),
        (advice((100, 102), min_lift=0.01), "ship B", ""),
        (
            advice((10, 10), users=99, min_lift=0.02),
            "keep running",
            "a range needs 100",
        ),
        (advice((100, 105, 110)), "ship C", "C is 10% higher than A"),
        (advice((100, 110, 105), (100, 90, 100)), "ship C", ""),
        (advice((100, 110, 100)), "ship B", "Still open: C."),
        (advice((100, 90, 100)), "keep running", "B harms primary."),
        (advice((100, 90, 80)), "stop: harm", "C harms primary."),
        (advice((100, 90, 100), min_lift=0.02), "stop: no effect worth shipping", "B harms"),
    ],
)
def test_rules_and_words(found: Recommendation, words: str, said: str) -> None:
    assert found.words == words
    assert said in found.reason
    assert (found.arm is not None) == (
        found.action is Action.SHIP
        or (found.action is Action.STOP_HARM and "C harms" not in found.reason)
    )


def test_a_wrong_split_comes_first() -> None:
    sums = {"A": clicks(5200, 100), "B": clicks(4600, 200)}
    primary = Judged("primary", Rule(), compare(HALVES, Rule(), sums))
    found = recommend(Decision(HALVES, primary, []))
    assert (found.words, found.arm) == ("do not use: broken split", None)
    assert found.reason.startswith("Users are not split as planned (A 53.1%, planned 50.0%")


def test_what_was_not_found_in_time_takes_longer() -> None:
    """The lift would have been found by now with a probability of 80 %, and was not."""
    (now, closer) = (advice((100, lift), users=25_000, min_lift=0.13) for lift in (106, 107))
    assert now.words == "keep running, about 4 days more at today's traffic"
    assert closer.days is not None
    assert 1 <= closer.days < 4


def test_forecasts_go_by_the_good_side() -> None:
    """As far from the lift that is hoped for, where lower is better and where higher is."""
    higher = advice((100, 104), users=5000, min_lift=0.06)
    lower = advice((100, 96), users=5000, min_lift=0.06, rule=Rule(higher_is_better=False))
    wrong = advice((100, 104), users=5000, min_lift=0.06, rule=Rule(higher_is_better=False))
    assert higher.days is not None
    assert lower.days == pytest.approx(higher.days, rel=0.1)
    assert wrong.days is not None
    assert wrong.days > 1.1 * higher.days


# By simulation -----------------------------------------------------------------------------------


def ever(seed: int, by: dict[str, tuple[float, float]], runs: int, a_day: int) -> dict[Action, int]:
    """In how many experiments something is advised at any of 28 daily looks: arm → by what its
    primary metric and its guardrail are multiplied."""
    dice = np.random.default_rng(seed)
    plan = Plan("A", dict.fromkeys(("A", *by), 1))
    seen = dict.fromkeys(Action, 0)
    effects = {"A": (1.0, 1.0), **by}
    for _ in range(runs):
        x = {
            arm: [dice.binomial(a_day, p * e, 28).cumsum() for p, e in zip((0.3, 0.2), its)]  # noqa: B905
            for arm, its in effects.items()
        }
        actions = set()
        for day in range(28):
            judged = [
                Judged(name, rule, compare(plan, rule, _sums(x, which, day, a_day)))
                for which, (name, rule) in enumerate((("p", Rule()), ("g", GUARD)))
            ]
            actions.add(recommend(Decision(plan, judged[0], judged[1:], 0.1)).action)
        for action in actions:
            seen[action] += 1
    return seen


def _sums(x: dict[str, list[np.ndarray]], which: int, day: int, a_day: int) -> dict[str, ArmSums]:
    n = a_day * (day + 1)
    return {arm: ArmSums(n, k := int(its[which][day]), k, n, n, k, k) for arm, its in x.items()}


def at_most(promised: float, runs: int) -> float:
    """What so many runs may show by chance."""
    return runs * promised + 3 * sqrt(runs * promised * (1 - promised))


CASES = [
    ({"B": (1.0, 1.0)}, 300),
    ({"B": (1.0, 1.0), "C": (1.0, 1.0), "D": (1.0, 1.0)}, 300),
    ({"B": (1.5, 0.95)}, 300),
    ({"B": (1.5, 0.95)}, 4000),
    ({"B": (1.5, 0.95), "C": (1.5, 0.95)}, 2000),
]


@pytest.mark.parametrize(("by", "a_day"), CASES)
@long
def test_what_must_not_be_shipped_rarely_ever_is(
    by: dict[str, tuple[float, float]], a_day: int
) -> None:
    """Neither without a difference, nor where the guardrail loses the whole margin."""
    runs = sized(20, 600)
    assert ever(1, by, runs, a_day)[Action.SHIP] <= at_most(0.05, runs)


@long
def test_a_lift_worth_shipping_is_rarely_called_none() -> None:
    found = ever(2, {"B": (1.1, 1.0)}, 300, 2000)
    assert found[Action.STOP_NO_EFFECT] <= at_most(0.05, 300)
    assert found[Action.SHIP] > 200


def kept(*looks: Recommendation) -> Recommendation:
    """What counts of looks on consecutive days."""
    *earlier, today = looks
    days = (date(2026, 1, 1) + timedelta(days=n) for n in range(len(earlier)))
    return first_decision(zip(days, earlier, strict=True), today)


def look(action: Action, low: float, high: float, arm: str | None = "B") -> Recommendation:
    return Recommendation(action, arm, "Why.", ranges={"B": (low, high)})


def test_a_disjoint_range_withdraws_a_decision_and_harm_is_still_said() -> None:
    ship, open_ = look(Action.SHIP, 1, 2), look(Action.KEEP_RUNNING, -1, 0.5, None)
    assert kept(ship, open_).action is Action.CHANGED
    assert kept(ship, open_).reason.startswith("By now the effect has changed")
    assert kept(ship, open_, ship).reason.startswith("By the end of 2026-01-02 ")
    assert kept(ship, look(Action.KEEP_RUNNING, 0.5, 1.5, None)).action is Action.SHIP
    harm = look(Action.STOP_HARM, -4, -3)
    assert kept(ship, harm).action is Action.STOP_HARM
    assert "The decision on 2026-01-01 was: ship B." in kept(ship, harm).reason
    assert kept(harm, look(Action.STOP_HARM, -9, -8)).action is Action.STOP_HARM
    broken = look(Action.DO_NOT_USE, -4, -3, None)
    assert kept(ship, broken, ship).action is Action.SHIP
    assert kept(ship, open_, broken).action is Action.DO_NOT_USE
