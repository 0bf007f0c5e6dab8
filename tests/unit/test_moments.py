"""What sums over slates are made of: tables, rounding, sums of squares, and softplus."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer import limits
from streamer.engine.facts import RankedFacts
from streamer.metrics.moments import Moments
from streamer.metrics.slates import (
    DISCOUNT,
    RECIPROCAL,
    TABLE_BITS,
    UNIT,
    Lists,
    from_table,
    quotient,
    rounded,
)
from streamer.metrics.softplus import softplus

LARGEST = [UNIT, 3 * UNIT, 1 << 33, 10**14, int((2 * limits.MAX_SCORE + 2) * UNIT)]


def test_tables_are_right_to_their_last_bit() -> None:
    getcontext().prec = 60
    top = Decimal(UNIT << TABLE_BITS)
    for i in (1, 2, 3, 7, 10, 100, 999, 1000):
        discount = top * Decimal(2).ln() / Decimal(i + 1).ln()
        assert abs(int(DISCOUNT[i]) - discount) <= Decimal("0.5")
        assert abs(int(RECIPROCAL[i]) - top / i) <= Decimal("0.5")
    assert DISCOUNT[0] == RECIPROCAL[0] == 0
    assert int(DISCOUNT.sum()) < 2**62


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_quotients_are_rounded_half_up(above: int, below: int) -> None:
    found = int(quotient(np.array([above]), np.array([below]))[0])
    assert found == math.floor(Fraction(above, below) * UNIT + Fraction(1, 2))


def test_rounding_of_doubles_and_tables() -> None:
    assert rounded(np.array([0.0, 1.0, -1.0, 0.25])).tolist() == [0, UNIT, -UNIT, UNIT // 4]
    assert from_table(np.array([1 << 19, (1 << 19) - 1, 3 << 20])).tolist() == [1, 0, 3]
    assert quotient(np.array([5]), np.array([0])).tolist() == [0]


@pytest.mark.parametrize("largest", LARGEST)
@given(st.data())
def test_mean_and_error_are_those_of_the_values(largest: int, data: st.DataObject) -> None:
    value = data.draw(st.lists(st.integers(0, largest), min_size=1, max_size=30))
    moments = Moments(largest)
    columns = moments.columns(np.array(value, np.int64))
    assert len(columns) == moments.width
    sums = np.stack(columns).sum(axis=1)[None, :]
    count = np.array([len(value)])
    mean, present = moments.mean(sums, count)
    assert present[0]
    assert mean[0] == pytest.approx(sum(value) / UNIT / len(value), rel=1e-15)
    error, present = moments.stderr(sums, count)
    assert present[0] == (len(value) > 1)
    if len(value) > 1:
        exact = Fraction(statistics.variance(map(Fraction, value))) / len(value)
        assert error[0] == pytest.approx(math.sqrt(exact) / UNIT, rel=1e-12)


@pytest.mark.parametrize("largest", LARGEST)
def test_equal_values_have_no_error_and_nothing_has_neither(largest: int) -> None:
    moments = Moments(largest)
    one = np.stack(moments.columns(np.array([largest // 3])))
    sums = np.stack([7 * one[:, 0], 0 * one[:, 0]])
    count = np.array([7, 0])
    assert moments.stderr(sums, count)[0][0] == 0.0
    for read in (moments.mean, moments.stderr):
        assert read(sums, count)[1].tolist() == [True, False]
        assert np.isfinite(read(sums, count)[0]).all()


def test_small_errors_of_values_that_may_be_large_are_not_lost() -> None:
    moments = Moments(LARGEST[-1])
    value = np.array([600_000, 700_000])  # losses of 0.0006 and 0.0007
    sums = np.stack(moments.columns(value)).sum(axis=1)[None, :]
    error, present = moments.stderr(sums, np.array([2]))
    assert present[0]
    assert error[0] == pytest.approx(5.0e-5, rel=1e-12)


def test_values_beyond_what_squares_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="sums of squares hold"):
        Moments((1 << 53) + 1)


@given(st.lists(st.floats(-2e6, 2e6), min_size=1, max_size=20))
def test_softplus_is_that_of_the_c_library(x: list[float]) -> None:
    found = softplus(np.array(x))
    for value, y in zip(x, found.tolist(), strict=True):
        exact = max(value, 0.0) + math.log1p(math.exp(-abs(value)))
        assert y == pytest.approx(exact, rel=1e-14, abs=1e-300)


@given(st.lists(st.floats(-800, 800), min_size=3, max_size=40), st.integers(0, 2))
def test_softplus_of_a_value_does_not_depend_on_its_place(x: list[float], drop: int) -> None:
    whole = softplus(np.array(x))
    assert softplus(np.array(x[drop:])).tolist() == whole[drop:].tolist()


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=6))
def test_lists_count_within_their_slates(grades: list[list[int]]) -> None:
    sizes = [len(g) for g in grades]
    flat = np.array([x for g in grades for x in g])
    none = np.zeros(len(sizes), np.int64)
    fact = RankedFacts(
        event_ms=none,
        segment=none,
        user=none.astype(np.uint64),
        start=np.cumsum([0, *sizes[:-1]]),
        grade=flat,
        is_clicked=flat > 0,
        score=np.full(len(flat), np.nan),
        probe=flat * 0,
        sign=none + 1,
    )
    lists = Lists(fact, (0.5, 1.0, 4.0), 0.1)
    gains = (0.0, 0.5, 1.0, 4.0)
    ideal = lists.ideally_discounted(3, lists.gains)
    for i, of in enumerate(grades):
        assert lists.relevant_count[i] == sum(x > 0 for x in of)
        assert lists.hits_within(2)[i] == sum(x > 0 for x in of[:2])
        assert lists.gained(np.ones_like(lists.rank), 2, lists.gains)[i] == sum(
            gains[x] for x in of[:2]
        )
        best = sum(
            gains[x] * int(DISCOUNT[j]) for j, x in enumerate(sorted(of, reverse=True)[:3], 1)
        )
        assert ideal[i] == pytest.approx(best, rel=1e-15)
        pairs = [(a, b) for j, a in enumerate(of) for b in of[j + 1 :]]
        concordant, discordant = lists.ordered_pairs
        assert concordant[i] == sum(a > b for a, b in pairs)
        assert discordant[i] == sum(a < b for a, b in pairs)
