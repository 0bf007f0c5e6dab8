"""Sums over users, where what one user did passes 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from streamer.engine.exposures import Exposure
from streamer.engine.integers import columns, split
from streamer.engine.trial_sums import Measure, Sums, Trial, contribute, cumulated
from streamer.engine.user_days import Days

MEASURE = Measure("conversion_value_per_impression", above=1, below=0, high=2)
EXPOSURE = Exposure("variant", ("A", "B"), 100, is_attributed=True)
PLAIN = Trial("x", "variant", ("A", "B"), range(100, 110), range(0), (MEASURE,), EXPOSURE)
ADJUSTED = Trial("x", "variant", ("A", "B"), range(100, 110), range(90, 100), (MEASURE,), EXPOSURE)


def days(rows: Sequence[tuple[int, int, int, int]]) -> Days:
    """Rows of (user, day, impressions, value) of arm A, where one row cannot hold a value as one
    integer: each is of 1,000 conversions."""
    user, day, shown, each = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    high, low = split(each)
    amounts = [shown, 1000 * low, 1000 * high]
    label = part = np.zeros(len(rows), np.int64)
    return Days(user.astype(np.uint64), day, label, part, amounts)


@pytest.mark.parametrize("each", [10**3, 10**13, 2**53 + 1, 10**17])
def test_sums_are_exact_however_much_a_user_buys(each: int) -> None:
    rows = [(1, 95, 2, each), (1, 100, 5, each), (1, 102, 1, each + 7), (2, 101, 1, 3)]
    sums: Sums = {}
    contribute(ADJUSTED, days(rows), np.array([1]), sums)
    (_, found, _) = cumulated(ADJUSTED, [columns(sums)], 109)
    x, y = [1000 * (2 * each + 7), 3000], [6, 1]
    u, v = [1000 * each, 0], [2, 0]
    values = {"x": x, "y": y, "u": u, "v": v}
    for name, column in values.items():
        assert found[f"{MEASURE.name} {name}"] == sum(column)
        for other, its in values.items():
            if f"{MEASURE.name} {name}{other}" in found:
                products = sum(a * b for a, b in zip(column, its, strict=True))
                assert found[f"{MEASURE.name} {name}{other}"] == products, (name, other)
    assert found["users"] == 2


def test_what_is_put_can_be_taken_back() -> None:
    rows = days([(1, 100, 5, 10**17), (1, 102, 1, 10**17 + 7), (2, 101, 1, 3)])
    sums: Sums = {}
    contribute(PLAIN, rows, np.array([1]), sums)
    assert max(sums.values()) > 2**130
    contribute(PLAIN, rows, np.array([1]), sums, sign=-1)
    assert not sums
