"""Sums over users, and what one arm's ratio and its variance are made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sums import ArmSums, BeforeSums

Users = list[tuple[int, int, int, int]]
numbers = st.integers(-(2**40), 2**40)
users = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=12)


@given(users)
def test_sums_are_those_of_the_values(some: Users) -> None:
    x, y, u, v = (np.array(column, object) for column in zip(*some, strict=True))
    found = ArmSums.of(some)
    assert (found.n, found.x, found.y) == (len(some), x.sum(), y.sum())
    assert (found.xx, found.yy, found.xy) == ((x * x).sum(), (y * y).sum(), (x * y).sum())
    assert found.before == BeforeSums(
        *(int(c.sum()) for c in (u, v, u * u, u * v, v * v, x * u, x * v, y * u, y * v))
    )
    assert found.is_possible


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_is_that_of_the_linearised_users(seed: int) -> None:
    dice = np.random.default_rng(seed)
    y = dice.poisson(20, 500) + 1
    x = dice.binomial(y, dice.beta(2, 30, 500))
    found = ratio(ArmSums.of(zip(x.tolist(), y.tolist(), strict=True)))
    r = x.sum() / y.sum()
    part = (x - r * y) / y.mean()
    assert found.value == Fraction(int(x.sum()), int(y.sum()))
    assert found.variance == pytest.approx(part.var(ddof=1) / 500, rel=1e-12)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=30))
def test_with_a_denominator_of_1_it_is_the_mean(x: list[int]) -> None:
    found = ratio(ArmSums.of([(value, 1) for value in x]))
    assert float(found.value or 0) == pytest.approx(np.mean(x), rel=1e-14, abs=1e-300)
    assert found.variance == pytest.approx(np.var(x, ddof=1) / len(x), rel=1e-9, abs=1e-300)


def test_large_numbers_lose_nothing() -> None:
    small = [3, 5, 10, 2]
    large = [2**80 + x for x in small]
    a, b = (ratio(ArmSums.of([(x, 1) for x in values])) for values in (small, large))
    assert a.variance == b.variance == pytest.approx(np.var(small, ddof=1) / 4, rel=1e-15)
    assert b.value == 2**80 + 5


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        (ArmSums(), "there are no users"),
        (ArmSums.of([(0, 0), (0, 0)]), "the metric's denominator is 0"),
        (ArmSums.of([(1, 1)]), "a variance needs at least two users"),
        (ArmSums(n=3, x=10, xx=5, y=3, yy=3, xy=4), "no users can have these sums"),
        (ArmSums(n=-1), "no users can have these sums"),
    ],
)
def test_what_is_not_defined_has_a_reason(sums: ArmSums, reason: str) -> None:
    found = ratio(sums)
    assert found.variance is None
    assert found.reason == reason
