"""Percentiles of what users have: against sorted values, theory, and tests without a difference."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from streamer.stats.experiments.caps import EDGES
from streamer.stats.experiments.percentile import percentile_sums
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sizing import Goal, needed
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome
from tests.oracle import percentiles
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long, shortened

P50, P90, P99 = Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)
Draw = Callable[[np.random.Generator, int], Any]
PLAN = Plan("A", {"A": 1, "B": 1})
RULE = Rule(can_be_negative=False, is_amount=True, is_percentile=True)


def heavy(dice: np.random.Generator, n: int) -> Any:
    """Milliseconds, of which three in ten users have none."""
    return np.rint(dice.lognormal(9, 1.5, n) * (dice.random(n) < 0.7))


def even(dice: np.random.Generator, n: int) -> Any:
    return dice.integers(0, 1_000_000, n)


def few(dice: np.random.Generator, n: int) -> Any:
    return dice.poisson(3, n)


def money(dice: np.random.Generator, n: int) -> Any:
    """Micros, at prices of which most end in 99 cents; a refund is below 0."""
    return (dice.integers(-1, 40, n) * 1_000_000 - 10_000) * (dice.random(n) < 0.8)


def of(values: NDArray[Any], share: Fraction = P90) -> ArmSums:
    users = Counter(bisect_left(EDGES, max(0, v)) for v in values.astype(np.int64).tolist())
    return percentile_sums(len(values), users, share, 1.0)


def sums_are_those_of_sorted_values(draw: Draw, share: Fraction, n: int) -> None:
    values = draw(np.random.default_rng(n), n)
    found, expected = of(values, share), percentiles.read(values.astype(int).tolist(), share, 1.0)
    names = [name for name in ArmSums.__slots__ if name != "obstacle"]
    assert [getattr(found, n) for n in names] == [getattr(expected, n) for n in names]
    assert bool(found.obstacle) == bool(expected.obstacle)
    assert found.is_possible


def test_sums_are_those_of_sorted_values() -> None:
    draws: list[Draw] = [heavy, even, few, money]
    hold_for_all(
        product(draws, [P50, P90, P99, Fraction("0.001")], [1, 7, 100, 5000]),
        lambda case: sums_are_those_of_sorted_values(*case),
        lambda case: f"{case[0].__name__}, {float(case[1])}, {case[2]} users",
        at_least=64,
    )


@pytest.mark.parametrize(("n", "share"), [(50, P99), (9, P90), (500, Fraction("0.999"))])
def test_a_percentile_of_few_users_has_a_value_and_no_interval(n: int, share: Fraction) -> None:
    its = of(np.full(n, 20), share)
    assert 19 < its.x / its.n <= 20
    assert "only 0 users are beyond the percentile" in its.obstacle


def test_a_plan_says_why_a_percentile_can_have_no_interval() -> None:
    torn = of(np.concatenate([np.full(8990, 10), np.full(1010, 9000)]))
    assert "a gap at the percentile" in str(needed(torn, Goal(0.1)))
    assert not isinstance(needed(of(np.arange(1, 501) * 1000, P99), Goal(0.1)), str)


@pytest.mark.parametrize("draw", [heavy, even, few, money])
@pytest.mark.parametrize("share", [P50, P90, P99])
def test_a_percentile_is_at_most_a_bucket_from_the_sorted_value(
    draw: Draw, share: Fraction
) -> None:
    values = np.maximum(0, draw(np.random.default_rng(3), 5000))
    exact = int(np.quantile(values, float(share), method="inverted_cdf"))
    edge = bisect_left(EDGES, exact)
    low = EDGES[max(0, edge - 1)]
    its = of(values, share)
    assert low <= float(its.x / its.n) <= EDGES[edge]
    shown = compare(PLAN, RULE, {"A": its, "B": its}).arms[0].shown
    assert shown is not None
    assert low <= shown <= EDGES[edge]
    assert shown == int(shown)
    if exact < 100:
        assert shown == exact


@pytest.mark.parametrize(("share", "sigma"), [(P50, 1.0), (P90, 1.0), (P90, 2.0), (P99, 1.0)])
def test_the_standard_error_is_that_of_theory(share: Fraction, sigma: float) -> None:
    """√(p (1 - p) / n) / f(q), of a log-normal."""
    n, dice, law = 20_000, np.random.default_rng(1), stats.lognorm(sigma, scale=20_000)
    q = law.ppf(float(share))
    expected = sqrt(share * (1 - share) / n) / law.pdf(q)
    read = [ratio(of(np.rint(law.rvs(n, random_state=dice)), share)) for _ in range(30)]
    stderr = [sqrt(each.variance or 0) for each in read]
    assert np.mean(stderr) == pytest.approx(expected, rel=0.1)
    assert np.mean([float(each.value or 0) for each in read]) == pytest.approx(
        q, abs=4 * expected / sqrt(30)
    )


@pytest.mark.parametrize(
    ("users", "draw"),
    shortened(
        [
            ((2000, 18_000), heavy),
            ((4000, 4000), heavy),
            ((2000, 18_000), few),
            ((4000, 4000), few),
        ]
    ),
)
@long
def test_arms_without_a_difference_are_seldom_called_better(
    users: tuple[int, int], draw: Draw
) -> None:
    """A look after each eighth of the users; an interval on the last one."""
    plan, runs, false = Plan("A", {"A": users[1], "B": users[0]}), 60, 0
    for seed in range(runs):
        dice = np.random.default_rng(seed)
        b, a = (draw(dice, n) for n in users)
        found = [
            compare(
                plan, RULE, {"A": of(a[: len(a) * k // 8]), "B": of(b[: len(b) * k // 8])}
            ).comparisons[0]
            for k in range(1, 9)
        ]
        assert found[-1].relative.anytime is not None
        calls = (Outcome.BETTER, Outcome.WORSE)
        false += any(its.verdict.outcome in calls for its in found)
    assert false <= 0.05 * runs + 3 * sqrt(0.05 * 0.95 * runs)


def test_a_gain_of_the_heaviest_users_is_seen_by_their_percentile_alone() -> None:
    dice = np.random.default_rng(2)
    a, b = heavy(dice, 8000), heavy(dice, 8000)
    b = np.where(b > np.quantile(b, 0.8), 1.5 * b, b)
    for share, outcome in ((P50, Outcome.TOO_EARLY), (P90, Outcome.BETTER)):
        (found,) = compare(PLAN, RULE, {"A": of(a, share), "B": of(b, share)}).comparisons
        assert found.verdict.outcome == outcome
        assert found.converters is None, "who has any says nothing of a percentile"
    assert found.relative.value == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    ("zeros", "others", "share", "message"),
    [
        (9500, 500, P90, "9,500 users have nothing, so that the percentile is 0"),
        (8920, 1080, P90, "too near to the 8,920 users who have nothing"),
        (850, 151, P90, "the percentile is too near to the 850 users who have nothing"),
        (0, 5000, P99, "only 50 users are beyond the percentile, and a range needs 100"),
    ],
)
def test_there_is_no_interval_where_few_users_tell(
    zeros: int, others: int, share: Fraction, message: str
) -> None:
    values = np.concatenate([np.zeros(zeros), np.arange(1, others + 1) * 1000])
    its = of(values, share)
    assert message in its.obstacle
    (found,) = compare(PLAN, RULE, {"A": its, "B": its}).comparisons
    assert (found.relative.anytime, found.absolute.fixed) == (None, None)
    assert message in found.verdict.reason or message in found.relative.reason


def test_there_is_no_interval_over_a_gap() -> None:
    """One in ten users has a thousand times as much as the others."""
    dice = np.random.default_rng(4)
    values = np.where(dice.random(9000) < 0.1, 1000, 1) * dice.lognormal(9, 0.3, 9000)
    assert "the values have a gap at the percentile" in of(np.rint(values), P90).obstacle
    assert not of(np.rint(values), P50).obstacle
    assert not of(np.rint(values), P99 - Fraction(1, 100)).obstacle
