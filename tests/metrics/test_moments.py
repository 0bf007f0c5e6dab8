"""What sums over slates are made of: tables, and sums of squares."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.metrics.moments import Moments
from streamer.metrics.slates import DISCOUNT, RECIPROCAL, TABLE_BITS, UNIT
from streamer.settings import limits
from tests.support.moments import columns_of

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


@pytest.mark.parametrize("largest", LARGEST)
@given(st.data())
def test_mean_and_error_are_those_of_the_values(largest: int, data: st.DataObject) -> None:
    value = data.draw(st.lists(st.integers(0, largest), min_size=1, max_size=30))
    moments = Moments(largest)
    sums = np.array([columns_of(moments, value)])
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
    sums = np.array([columns_of(moments, [largest // 3] * 7), columns_of(moments, [])])
    count = np.array([7, 0])
    assert moments.stderr(sums, count)[0][0] == 0.0
    for read in (moments.mean, moments.stderr):
        assert read(sums, count)[1].tolist() == [True, False]
        assert np.isfinite(read(sums, count)[0]).all()


def test_small_errors_of_values_that_may_be_large_are_not_lost() -> None:
    moments = Moments(LARGEST[-1])
    sums = np.array([columns_of(moments, [600_000, 700_000])])  # losses of 0.0006 and 0.0007
    error, present = moments.stderr(sums, np.array([2]))
    assert present[0]
    assert error[0] == pytest.approx(5.0e-5, rel=1e-12)


def test_values_beyond_what_squares_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="sums of squares hold"):
        Moments((1 << 53) + 1)
