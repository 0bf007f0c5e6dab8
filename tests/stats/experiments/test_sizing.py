"""Users that a plan asks for: against statsmodels, and whether they find the lift as often."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower

from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sizing import Goal, Needed, needed
from streamer.stats.experiments.sums import ArmSums
from tests.stats.experiments.arms import clicks
from tests.support.lanes import long, sized


def users(n: int, x: int) -> ArmSums:
    """Of whom ``x`` do it once."""
    return ArmSums(n, x, x, n, n, x, x)


def plan(of: ArmSums, goal: Goal) -> Needed:
    found = needed(of, goal)
    assert isinstance(found, Needed)
    return found


@pytest.mark.parametrize("arms", [2, 4])
@pytest.mark.parametrize("power", [0.6, 0.95])
def test_one_look_is_as_in_statsmodels(power: float, arms: int) -> None:
    found = plan(users(100_000, 20_000), Goal(0.03, power, 0.05, arms))
    effect = 0.03 * 0.2 / sqrt(0.2 * 0.8)
    level = 0.05 / (arms - 1)
    per_arm = NormalIndPower().solve_power(effect, None, level, power)
    assert found.fixed == pytest.approx(2 * per_arm, rel=1e-3)
    assert found.anytime is not None
    assert found.fixed is not None
    assert 1.3 * found.fixed < found.anytime < 3 * found.fixed


@pytest.mark.parametrize("arms", [2, 3])
@long
def test_they_find_the_lift_as_often_as_was_asked(arms: int) -> None:
    """One treatment has the lift, others have none; ten looks at any time."""
    runs, share, goal = sized(250, 1500), 0.2, Goal(0.1, 0.8, 0.05, arms)
    asked = plan(users(50_000, int(50_000 * share)), goal)
    assert asked.fixed is not None
    assert asked.anytime is not None
    dice = np.random.default_rng(arms)
    names = "ABC"[:arms]
    it = Plan("A", dict.fromkeys(names, 1), tuned_users=asked.anytime)
    found = dict.fromkeys(("fixed", "last", "any"), 0)
    shares = [share * (1 + goal.lift * (arm == "B")) for arm in names]
    for _ in range(runs):
        n = asked.fixed // 2
        sums = {a: users(n, int(dice.binomial(n, p))) for a, p in zip(names, shares, strict=True)}
        single = compare(it, Rule(), sums).comparisons[0].absolute.fixed
        found["fixed"] += single is not None and single.low > 0
        looks = np.arange(1, 11) * (asked.anytime // 2) // 10
        x = [dice.binomial(np.diff(looks, prepend=0), p).cumsum() for p in shares]
        seen = []
        for i, n in enumerate(looks.tolist()):
            sums = {a: users(n, int(its[i])) for a, its in zip(names, x, strict=True)}
            always = compare(it, Rule(), sums).comparisons[0].absolute.anytime
            seen.append(always is not None and always.low > 0)
        found["last"] += seen[-1]
        found["any"] += any(seen)
    error = 3 * sqrt(0.8 * 0.2 / runs) + 0.02  # and a little for the treatment's own variance
    assert found["fixed"] / runs == pytest.approx(0.8, abs=error)
    assert found["last"] / runs == pytest.approx(0.8, abs=error)
    assert found["any"] >= found["last"]


def test_few_users_who_count_take_more_of_them() -> None:
    """A doubling of one in a thousand is found soon, but no interval is given before 100 each."""
    found = plan(clicks(100_000, 1), Goal(0.9, 0.5))
    assert found.anytime == 200_000


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (ArmSums(), "there are no users"),
        (clicks(100, 0), "its value is not above 0"),
        (users(100, 100), "all users have the same value"),
        (ArmSums(1, 1, 1, 1, 1, 1, 1), "at least two users"),
    ],
)
def test_what_has_no_plan(of: ArmSums, why: str) -> None:
    found = needed(of, Goal(0.02))
    assert isinstance(found, str)
    assert why in found
