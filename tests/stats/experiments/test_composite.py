"""Composites of arms: the variance is that of users, and intervals hold what is true."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from streamer.stats.experiments.composite import BEFORE, NOW, UNIT, composite_sums, names_of
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.readout import MetricComparisons, compare
from streamer.stats.experiments.sums import ArmSums
from tests.support.lanes import long, shortened

Users = npt.NDArray[np.int64]
"""(users, values): numerator and denominator of each part, and the same before."""
FACTORS = [Fraction(6, 10), Fraction(3, 1000), Fraction(-1, 4)]
USERS = 800
RUNS = 300
PLAN = Plan("A", {"A": 1, "B": 1})


def sums_of(users: Users, parts: int, factors: list[Fraction], has_before: bool) -> ArmSums:
    """As an experiment has them: sums of values, and of products of two."""
    names = [*names_of(parts, NOW), *(names_of(parts, BEFORE) if has_before else [])]
    moments = {name: int(users[:, i].sum()) for i, name in enumerate(names)}
    products = users.T @ users
    for i, j in combinations_with_replacement(range(len(names)), 2):
        moments[names[i] + names[j]] = int(products[i, j])
    for part in range(parts):
        moments[f"nz{part + 1}"] = int(np.count_nonzero(users[:, 2 * part]))
    return composite_sums(len(users), moments, factors, has_before)


def some_users(
    dice: np.random.Generator, n: int, effect: float = 1.0, days: int = 1, is_like: float = 1.0
) -> Users:
    """Impressions and clicks, dwell by click, and bounces by visit, of users who differ: who clicks
    more also stays longer, and comes more often. ``days`` 2: the same time before, too."""
    taste = dice.beta(2, 6, n)
    busy = dice.lognormal(1.5, 0.8, n)
    columns = []
    for day in range(days):
        factor = effect if day == 0 else 1.0
        shown = 1 + dice.poisson(busy)
        clicks = dice.binomial(shown, np.clip(factor * taste, 0, 1))
        dwell = np.round(clicks * 40 * (1 + 2 * taste) * dice.gamma(4, 0.25, n)).astype(np.int64)
        visits = 1 + dice.poisson(busy / 4)
        bounces = dice.binomial(visits, 1 - taste)
        columns += [clicks, shown, dwell, clicks, bounces, visits]
    return np.array(columns, np.int64).T


def truth(effect: float) -> float:
    """Of a very large arm."""
    users = some_users(np.random.default_rng(7), 3_000_000, effect).sum(axis=0)
    rates = users[::2] / users[1::2]
    return float(sum(float(c) * r for c, r in zip(FACTORS, rates, strict=True)))


def test_a_composite_is_the_mean_of_one_number_of_each_user() -> None:
    users = some_users(np.random.default_rng(1), 300, days=2)
    found = sums_of(users, 3, FACTORS, has_before=True)
    numbers = []
    for first in (0, 6):
        value, moved = 0.0, np.zeros(len(users))
        for part, c in enumerate(map(float, FACTORS)):
            x, y = users[:, first + 2 * part], users[:, first + 2 * part + 1]
            rate = x.sum() / y.sum()
            value += c * rate
            moved += c * (x - rate * y) / y.mean()
        numbers.append(value + moved)
    now, before = numbers
    estimate = ratio(found)
    assert estimate.value is not None
    assert estimate.variance is not None
    assert float(estimate.value) / UNIT == pytest.approx(now.mean(), rel=1e-12)
    assert estimate.variance / UNIT**2 == pytest.approx(now.var(ddof=1) / len(users), rel=1e-9)
    assert found.before is not None
    assert found.before.u / UNIT / len(users) == pytest.approx(before.mean(), rel=1e-12)
    for sums, a, b in ((found.before.uu, before, before), (found.before.xu, now, before)):
        assert sums / UNIT**2 == pytest.approx(float(a @ b), rel=1e-9)
    assert found.nonzero == np.count_nonzero(users[:, :6:2], axis=0).min()


def test_one_part_is_compared_as_the_ratio_alone() -> None:
    dice = np.random.default_rng(2)
    arms = {arm: some_users(dice, 500, effect)[:, :2] for arm, effect in (("A", 1.0), ("B", 1.2))}
    alone = {arm: ArmSums.of([(int(x), int(y)) for x, y in its]) for arm, its in arms.items()}
    mixed = {arm: sums_of(its, 1, [Fraction(1)], False) for arm, its in arms.items()}
    (a,), (b,) = (compare(PLAN, Rule(), sums).comparisons for sums in (alone, mixed))
    for estimate, other in ((a.absolute, b.absolute), (a.relative, b.relative)):
        for one, two in ((estimate.fixed, other.fixed), (estimate.anytime, other.anytime)):
            assert one is not None
            assert two is not None
            assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=1e-9)


def test_without_a_denominator_there_is_no_value() -> None:
    users = some_users(np.random.default_rng(3), 50)
    users[:, 3] = 0
    found = ratio(sums_of(users, 3, FACTORS, has_before=False))
    assert (found.value, found.reason) == (None, "the metric's denominator is 0")
    assert ratio(sums_of(users[:0], 3, FACTORS, False)).reason == "there are no users"


def readouts(effect: float, has_before: bool) -> Iterator[MetricComparisons]:
    dice = np.random.default_rng(int(100 * effect) + has_before)
    days = 2 if has_before else 1
    for _ in range(RUNS):
        arms = {"A": some_users(dice, USERS, 1.0, days), "B": some_users(dice, USERS, effect, days)}
        sums = {arm: sums_of(users, 3, FACTORS, has_before) for arm, users in arms.items()}
        yield compare(PLAN, Rule(), sums)


@pytest.mark.parametrize(
    ("effect", "has_before"), shortened([(1.15, True), (1.15, False), (1.0, True), (1.0, False)])
)
@long
def test_intervals_hold_the_truth_as_often_as_they_say(effect: float, has_before: bool) -> None:
    """Of 300 intervals of 95 %, 272 to 297 with a probability of 99.9 %."""
    a, b = truth(1.0), truth(effect)
    held = {"absolute": 0, "relative": 0, "anytime": 0}
    for found in readouts(effect, has_before):
        (comparison,) = found.comparisons
        lifts: Any = comparison
        cases = {
            "absolute": (lifts.absolute.fixed, b - a),
            "relative": (lifts.relative.fixed, b / a - 1),
            "anytime": (lifts.absolute.anytime, b - a),
        }
        for name, (interval, lift) in cases.items():
            held[name] += interval.low <= lift <= interval.high
    assert 272 <= held["absolute"] <= 297, held
    assert 272 <= held["relative"] <= 297, held
    assert held["anytime"] >= 295, held
