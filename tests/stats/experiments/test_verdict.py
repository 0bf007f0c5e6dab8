"""Verdict, interval and sentence are of one test, and wait for users who count."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome, Scale
from tests.stats.experiments.arms import GUARD, HALVES, LOWER, LOWER_GUARD, THREE, ab, clicks
from tests.support.lanes import long

_END = r"(\d+(?:\.\d+)?(?:e[-+]\d+)?)(%?) (lower|higher)"
ENDS = re.compile(f"from {_END} to {_END} than")


def spenders(seed: int, users: int, buyers: float, more: float, has_before: bool) -> ArmSums:
    """Few users with values of a long tail, whose past resembles their present."""
    dice = np.random.default_rng(seed)
    likes = dice.lognormal(0, 1, users)
    x, u = (
        np.rint((dice.random(users) < buyers) * dice.lognormal(4, 1.5, users) * likes * by)
        for by in (more, 1.0)
    )
    rows = zip(x.astype(int).tolist(), u.astype(int).tolist(), strict=True)
    return ArmSums.of([(a, 1, b, 1) if has_before else (a, 1) for a, b in rows])


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.02, 0.1, 0.5, 1.0]),
    st.sampled_from([0.1, 0.6, 1.0, 1.5, 4.0]),
    st.sampled_from([150, 400, 1500]),
    st.booleans(),
    st.sampled_from([Rule(), LOWER, GUARD, LOWER_GUARD]),
    st.sampled_from([HALVES, THREE]),
)
def test_verdict_interval_and_sentence_agree(
    seed: int, buyers: float, more: float, users: int, has_before: bool, rule: Rule, plan: Plan
) -> None:
    made = {
        arm: spenders(seed + i, int(users * share), buyers, 1.0 if arm == "A" else more, has_before)
        for i, (arm, share) in enumerate(plan.split.items())
    }
    for found in compare(plan, rule, made).comparisons:
        shown = found.relative if found.verdict.scale is Scale.RELATIVE else found.absolute
        outcome, reason = found.verdict.outcome, found.verdict.reason
        if shown.anytime is None:
            assert outcome is Outcome.TOO_EARLY
            continue
        assert shown.value is not None
        assert shown.anytime.low <= shown.value <= shown.anytime.high
        low, high = shown.anytime.low, shown.anytime.high
        gain, loss = (low > 0, high < 0) if rule.higher_is_better else (high < 0, low > 0)
        assert (outcome is Outcome.BETTER) == gain
        if outcome is Outcome.WORSE:
            assert loss
        if outcome is Outcome.TOO_EARLY:
            assert not gain
            assert not loss
            said = ENDS.search(reason.replace("\u2212", "-").replace(",", ""))
            assert said is not None, reason
            unit = 0.01 if said[2] else 1.0
            sizes = float(said[1]) * unit, float(said[4]) * unit
            printed = tuple(
                -size if side == "lower" else size
                for size, side in zip(sizes, (said[3], said[6]), strict=True)
            )
            assert printed == pytest.approx((low, high), rel=5e-2, abs=1e-4)
            assert bool(said[2]) == (found.verdict.scale is Scale.RELATIVE)
        if outcome is Outcome.NO_HARM and found.verdict.scale is Scale.RELATIVE:
            assert rule.margin is not None
            assert (low > -rule.margin) if rule.higher_is_better else (high < rule.margin)
        assert found.absolute.anytime is not None
        ends = found.absolute.anytime.low, found.absolute.anytime.high
        assert (ends[0] > 0, ends[1] < 0) == (low > 0, high < 0)


def test_one_user_of_many_values_is_no_proof_of_no_harm() -> None:
    """A: everybody about 10; B: 499 users about 8, and one of 200,000."""
    dice = np.random.default_rng(1)
    a = dice.normal(1000, 50, 500).round().astype(int).tolist()
    b = [*dice.normal(800, 50, 499).round().astype(int).tolist(), 20_000_000]
    sums = [ArmSums.of([(x, 1) for x in arm]) for arm in (a, b)]
    found = ab(sums[0], sums[1], GUARD)
    assert found.verdict.outcome is Outcome.TOO_EARLY
    assert found.relative.anytime is not None
    assert found.relative.anytime.low < -1 < 100 < found.relative.anytime.high


def test_relative_intervals_need_users_who_count() -> None:
    few = ab(clicks(1000, 29), clicks(1000, 400)).relative
    assert (few.fixed, few.anytime) == (None, None)
    assert few.reason.startswith("only 29 users of the control have a value other than 0")
    enough = ab(clicks(1000, 30), clicks(1000, 400)).relative
    assert enough.anytime is not None
    assert enough.reason == ""


def test_below_100_users_no_interval_holds_at_every_look() -> None:
    found = ab(clicks(99, 400), clicks(120, 500))
    for lift in (found.absolute, found.relative):
        assert lift.fixed is not None
        assert lift.anytime is None
        assert lift.reason == "there are fewer than 100 users in an arm"
    assert found.verdict.scale is Scale.RELATIVE


def test_uneven_arms_need_more_users_who_count() -> None:
    """At 10 : 90 the lift of rare clicks is skewed, whatever the users of the smaller arm did."""
    tenth = Plan("A", {"A": 9, "B": 1})
    for users, why in (
        (1000, "the skewness of the lift is at least 0.13"),
        (
            2000,
            "900 users have a value other than 0, which is about 90 in the smaller arm",
        ),
        (3000, ""),
    ):
        found = ab(clicks(9 * users, 50), clicks(users, 0), GUARD, tenth)
        assert (found.absolute.anytime is None) == bool(why)
        assert found.verdict.outcome is (Outcome.TOO_EARLY if why else Outcome.HARM)
        assert why in found.absolute.reason
        assert (found.absolute.fixed is not None) == (users > 1000)


def test_few_users_who_count_have_no_interval_at_any_time() -> None:
    """Neither absolute nor relative nor of the guardrail; that of one look stays."""
    found = ab(clicks(5000, 18), clicks(5000, 20), GUARD)
    assert found.absolute.fixed is not None
    assert found.relative.fixed is not None
    assert found.absolute.anytime is found.relative.anytime is found.guardrail is None
    why = "190 users have a value other than 0, which is about 95 per arm; 100 are needed"
    assert found.absolute.reason == why
    assert found.relative.reason == why
    enough = ab(clicks(5000, 20), clicks(5000, 20), GUARD)
    assert enough.absolute.reason == enough.relative.reason == ""
    assert enough.guardrail is not None


@long
def test_what_is_shown_covers_where_few_buy() -> None:
    """2 % buy, for amounts of a long tail, and the treatment takes a fifth of them: looks at 100
    to 10,000 users in each arm. Without a least number of buyers 13 of these 150 runs miss
    the truth."""
    truth = 0.02 * 1000 * np.exp(2) * np.array([1, 0.8])
    dice, runs, missed, given = np.random.default_rng(5), 150, 0, 0
    for _ in range(runs):
        buys = dice.random((2, 10_000)) < 0.02
        worth = 1000 * dice.lognormal(0, 2, buys.shape) * [[1], [0.8]]
        x = np.where(buys, worth, 0).astype(np.int64)
        sums = [np.cumsum(each, axis=1) for each in (x, x.astype(float) ** 2, buys)]
        is_missed = False
        for n in (*range(100, 3000, 100), 5000, 7500, 10_000):
            a, b = (
                ArmSums(n, int(sx), int(sxx), n, n, int(sx), int(nonzero))
                for sx, sxx, nonzero in zip(*(each[:, n - 1] for each in sums), strict=True)
            )
            found = ab(a, b)
            is_relative = found.verdict.scale is Scale.RELATIVE
            shown = (found.relative if is_relative else found.absolute).anytime
            at = -0.2 if is_relative else truth[1] - truth[0]
            is_missed |= shown is not None and not shown.low <= at <= shown.high
            given += n == 10_000 and shown is not None
        missed += is_missed
    assert missed / runs <= 0.05
    assert given / runs > 0.9
