"""Verdicts where a few users have most of a denominator, and where hardly anybody converts."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from streamer.stats.experiments.caps import DENOMINATOR_EDGES, Denominator, Exact, largest, weighted
from streamer.stats.experiments.converters import converters
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.recommendation import (
    Action,
    Decision,
    Judged,
    Recommendation,
    first_decision,
    recommend,
)
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome
from tests.stats.experiments.arms import HALVES, ab, clicks
from tests.support.lanes import long

RATE = Rule(can_be_negative=False)


def per_user(users: int, nonzero: int) -> ArmSums:
    """Users of whom some have 1."""
    return ArmSums(users, nonzero, nonzero, users, users, nonzero, nonzero)


def random_arm(dice: Random, users: int, crawlers: dict[int, int]) -> ArmSums:
    """Some twenty impressions a user, of which 5 % are clicked; ``crawlers``: user → impressions
    without a click."""
    rows = []
    for user in range(users):
        y = crawlers.get(user) or dice.randint(1, 40)
        x = 0 if user in crawlers else sum(dice.random() < 0.05 for _ in range(y))
        rows.append((x, y))
    return ArmSums.of(rows)


@pytest.mark.parametrize("crawlers", [{0: 60_000}, {0: 9_000, 1: 8_000, 2: 7_500}])
def test_crawlers_decide_nothing(crawlers: dict[int, int]) -> None:
    """The denominator of their arm is that of a handful of users."""
    dice = Random(5)
    dirty, clean = random_arm(dice, 1000, crawlers), random_arm(dice, 1000, {})
    for a, b in ((dirty, clean), (clean, dirty)):
        found = ab(a, b, RATE)
        assert found.verdict.outcome is Outcome.TOO_EARLY
        assert found.absolute.fixed is None
        assert found.absolute.anytime is None
        assert "users, and a range needs 100" in found.absolute.reason
    assert ab(clean, random_arm(dice, 1000, {}), RATE).absolute.anytime is not None


def test_the_smaller_arm_may_have_missed_the_crawlers() -> None:
    dice, plan = Random(6), Plan("A", {"A": 9, "B": 1})
    heavy = dict.fromkeys(range(60), 3000)
    larger, smaller = random_arm(dice, 9000, heavy), random_arm(dice, 1000, {})
    found = compare(plan, RATE, {"A": larger, "B": smaller}).comparisons[0]
    assert found.absolute.anytime is None
    assert "the denominator of the smaller arm, at what both arms have" in found.absolute.reason


def test_a_crawler_weighs_as_the_heaviest_of_the_others() -> None:
    """By buckets of denominators beside a slow recomputation from users."""
    dice = Random(7)
    users = [(dice.randint(0, 3), dice.randint(0, 90)) for _ in range(400)] + [(2, 60_000)]
    by_bucket: dict[int, dict[str, Exact]] = {}
    for x, y in users:
        bucket = int(np.searchsorted(DENOMINATOR_EDGES, y))
        its = by_bucket.setdefault(bucket, dict.fromkeys(("x", "y", "xx", "xy", "yy", "ny"), 0))
        for name, value in zip(its, (x, y, x * x, x * y, y * y, y > 0), strict=True):
            its[name] += value
    by_bucket.setdefault(0, dict.fromkeys(("x", "y", "xx", "xy", "yy", "ny"), 0))
    counts = {bucket: int(its["ny"]) for bucket, its in by_bucket.items()}
    last = Denominator(0.99).bucket(counts)
    assert DENOMINATOR_EDGES[last] == 100
    found = weighted(dict(sorted(by_bucket.items())), last)
    edge = next(e for e in DENOMINATOR_EDGES if e >= 60_000)
    scale = 100 / edge
    assert float(found["y"]) == pytest.approx(sum(y for _, y in users[:-1]) + 60_000 * scale)
    assert float(found["xy"]) == pytest.approx(
        sum(x * y for x, y in users[:-1]) + 120_000 * scale**2
    )
    most = largest(by_bucket)
    assert most is not None
    assert (most.users, round(most.share, 3)) == (1, round(60_000 / sum(y for _, y in users), 3))
    assert largest({0: {"y": 264, "ny": 264}}) is None  # nobody stands out
    assert largest({0: {"y": 0, "ny": 0}}) is None


def test_no_relative_interval_of_what_cannot_be_negative_goes_below_all() -> None:
    a = ArmSums.of([(0, 1)] * 169 + [(10, 1)] * 31)
    b = ArmSums.of([(0, 1)] * 169 + [(1, 1)] * 30 + [(200, 1)])
    free, bounded = ab(a, b, Rule()).relative.fixed, ab(a, b, RATE).relative.fixed
    assert free is not None
    assert bounded is not None
    assert free.low < -1
    assert (bounded.low, bounded.high) == (-1.0, free.high)


@pytest.mark.parametrize(
    ("split", "a", "b", "outcome"),
    [
        ((1, 1), (10_000, 199), (10_000, 0), Outcome.WORSE),
        ((1, 1), (5_000, 120), (5_000, 60), Outcome.WORSE),
        ((1, 1), (3_000, 60), (3_000, 120), Outcome.BETTER),
        ((99, 1), (297_000, 5_940), (3_000, 0), Outcome.WORSE),
        ((95, 5), (47_500, 950), (2_500, 0), Outcome.WORSE),
        ((9, 1), (31_500, 630), (3_500, 35), Outcome.WORSE),
        ((1, 1), (60, 40), (60, 2), Outcome.WORSE),  # below the users that an interval needs
        ((1, 1), (5_000, 60), (5_000, 52), Outcome.TOO_EARLY),
        ((99, 1), (99_000, 99), (1_000, 0), Outcome.TOO_EARLY),
    ],
)
def test_rare_outcomes_are_seen(
    split: tuple[int, int], a: tuple[int, int], b: tuple[int, int], outcome: Outcome
) -> None:
    plan = Plan("A", {"A": split[0], "B": split[1]})
    arms = {"A": per_user(*a), "B": per_user(*b)}
    found = compare(plan, RATE, arms).comparisons[0]
    assert found.absolute.anytime is None
    assert found.verdict.outcome is outcome
    if outcome is not Outcome.TOO_EARLY:
        assert "(exact test). " in found.verdict.reason
        assert re.search("no range yet|a range needs", found.verdict.reason)
    guard = Rule(margin=0.2, can_be_negative=False)
    guarded = compare(plan, guard, arms).comparisons[0].verdict.outcome
    harmed = outcome is Outcome.WORSE and b[1] * a[0] < 0.3 * a[1] * b[0]
    if harmed:
        assert guarded is Outcome.HARM
    judged = Judged("share", RATE, compare(plan, RATE, arms))
    advice = recommend(Decision(plan, judged, []))
    assert (advice.action is Action.STOP_HARM) == (outcome is Outcome.WORSE)


def test_an_amount_is_judged_by_its_own_lift_too() -> None:
    """Fewer buyers who are worth more are no loss of value."""
    rule = Rule(can_be_negative=False, is_amount=True)
    many, few = ArmSums(9000, 300, 300, 9000, 9000, 300, 120), per_user(9000, 60)
    richer = ArmSums(9000, 900, 90_000, 9000, 9000, 900, 60)
    assert ab(many, few, rule).verdict.outcome is Outcome.WORSE
    assert ab(many, richer, rule).verdict.outcome is Outcome.TOO_EARLY


@long
def test_the_exact_test_holds_at_every_look() -> None:
    """Its interval excludes no change exactly where its p is at most its level."""
    dice = np.random.default_rng(3)
    for share in (0.5, 0.1):
        plan = Plan("A", {"A": 1 - share, "B": share})
        claims = 0
        for _ in range(150):
            of_b = np.cumsum(dice.random(400) < share)
            ever = False
            for total in (1, 3, 8, 20, 50, 100, 200, 400):
                k = int(of_b[total - 1])
                arms = [per_user(10**6, n) for n in (k, total - k)]
                (found,) = converters(plan, [("B", arms[0], arms[1])])
                assert found is not None
                excludes = found.low > 0 or (found.high is not None and found.high < 0)
                assert excludes == (found.p_value <= 0.01)
                ever |= excludes
            claims += ever
        assert claims <= 6  # 1 % of 150 is 1.5


def test_several_arms_are_corrected() -> None:
    plan = Plan("A", {"A": 1, "B": 1, "C": 1})
    arms = [("B", per_user(5000, 60), per_user(5000, 100)), ("C",) + (per_user(5000, 100),) * 2]
    found = converters(plan, arms)
    assert [its is not None and its.p_adjusted >= its.p_value for its in found] == [True, True]


# The recommendation ----------------------------------------------------------------------------

BETTER = compare(HALVES, Rule(), {"A": clicks(5000, 100), "B": clicks(5000, 140)})


def decision(**more: object) -> Decision:
    judged = Judged("primary", Rule(), BETTER)
    return Decision(HALVES, judged, [], **more)  # type: ignore[arg-type]


def test_ship_waits_for_whole_days() -> None:
    early = recommend(decision(days=4, min_days=7))
    assert (early.action, early.days, early.words) == (Action.WAIT, 3, "wait: 3 more days")
    assert "4 whole days had users, and 7 (min_days) are needed" in early.reason
    assert "B is 40% higher than A" in early.reason
    assert recommend(decision(days=7, min_days=7)).words == "ship B"
    assert recommend(decision(days=4, min_days=7, is_over=True)).words == "ship B"


def test_many_users_in_several_arms_are_not_trusted() -> None:
    found = recommend(decision(several_arms=0.184))
    assert found.words == "do not use: users in several arms"
    assert "18.4% of the users were seen in several arms" in found.reason
    assert recommend(decision(several_arms=0.04)).words == "ship B"


def test_a_gain_on_the_first_day_alone_is_not_shipped() -> None:
    """No later age has an interval yet, and what there is of them is no gain."""
    few = {"A": clicks(90, 12), "B": clicks(90, 10)}
    ages = [
        Judged("first day", Rule(), BETTER),
        Judged("days 2-3", Rule(), compare(HALVES, Rule(), few)),
    ]
    found = recommend(decision(ages=ages))
    assert found.action is Action.KEEP_RUNNING
    assert "(after the first day: −0.00111): the novelty wears off" in found.reason


def test_a_harm_that_later_days_make_up_for_is_no_decision() -> None:
    """Outcomes of B come later than those of A."""
    early = compare(HALVES, Rule(), {"A": clicks(5000, 140), "B": clicks(5000, 100)})
    late = compare(HALVES, Rule(), {"A": clicks(5000, 10), "B": clicks(5000, 40)})
    ages = [Judged("first day", Rule(), early), Judged("days 2-3", Rule(), late)]
    worse = Judged("primary", Rule(), early)
    found = recommend(replace(decision(ages=ages), primary=worse))
    assert found.action is Action.KEEP_RUNNING
    assert "worse primary so far, but after users' first day it is +0.00" in found.reason
    assert recommend(replace(decision(), primary=worse)).action is Action.STOP_HARM


def test_what_wears_off_is_not_shipped() -> None:
    worse = compare(HALVES, Rule(), {"A": clicks(5000, 140), "B": clicks(5000, 100)})
    ages = [Judged("first day", Rule(), BETTER), Judged("later", Rule(), worse)]
    found = recommend(decision(ages=ages))
    assert found.action is Action.KEEP_RUNNING
    assert (
        "(later since their exposure: \u221229% (\u221240% to \u221216%)): the novelty wears off"
        in found.reason
    )
    assert recommend(decision(ages=ages[:1])).words == "ship B"


def test_a_loss_within_the_margin_does_not_stop() -> None:
    guard = Rule(margin=0.2)
    a = clicks(200_000, 100)
    arms = {"A": a, "B": clicks(200_000, 90)}
    near = {"A": clicks(20_000, 100), "B": clicks(20_000, 84)}
    harmed = {"A": a, "B": clicks(200_000, 60)}
    outcomes = {
        name: compare(HALVES, guard, its).comparisons[0].verdict.outcome
        for name, its in (("within", arms), ("perhaps", near), ("beyond", harmed))
    }
    assert outcomes == {
        "within": Outcome.NO_HARM,
        "perhaps": Outcome.WORSE_WITHIN,
        "beyond": Outcome.HARM,
    }
    for its, action in ((near, Action.KEEP_RUNNING), (harmed, Action.STOP_HARM)):
        guardrail = Judged("guard", guard, compare(HALVES, guard, its))
        found = recommend(Decision(HALVES, Judged("primary", Rule(), BETTER), [guardrail]))
        assert found.action is action
        if action is Action.KEEP_RUNNING:
            assert "guard (worse, perhaps tolerated)" in found.reason


def test_the_first_decision_counts() -> None:
    def look(action: Action, arm: str | None = None) -> Recommendation:
        return Recommendation(action, arm, f"Because {action}.")

    def day(number: int) -> datetime.date:
        return datetime.date(2026, 11, number)

    ship, keep, harm = look(Action.SHIP, "B"), look(Action.KEEP_RUNNING), look(Action.STOP_HARM)
    past = [(day(11), keep), (day(12), ship), (day(13), keep)]
    found = first_decision(past, keep)
    assert found.words == "ship B, since 2026-11-12"
    assert "Today's look says: keep running." in found.reason
    assert first_decision(past, ship).since == day(12)
    assert first_decision(past[:1], keep) == keep
    later = first_decision(past, harm)
    assert later.action is Action.STOP_HARM
    assert "The decision on 2026-11-12 was: ship B" in later.reason
    doubt = look(Action.DO_NOT_USE)
    assert first_decision(past, doubt) == doubt
