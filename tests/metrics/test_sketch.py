"""Quantiles from fixed buckets: within 1 % of the exact ones."""

from __future__ import annotations

import numpy as np
import pytest
from ddsketch import DDSketch
from hypothesis import given
from hypothesis import strategies as st

from streamer.metrics import sketch
from streamer.settings import limits

QUANTILES = [(1, 2), (9, 10), (99, 100), (1, 100), (1, 1)]
SLACK = 1 + 1e-12


def bucket(value_ms: np.ndarray) -> np.ndarray:
    return np.searchsorted(sketch.UPPER_MS, value_ms)


def counts_of(values: np.ndarray) -> np.ndarray:
    return np.bincount(bucket(values), minlength=sketch.BUCKETS)[None, :]


def check(values: np.ndarray) -> None:
    counts = counts_of(values)
    for numerator, denominator in QUANTILES:
        exact = np.quantile(values, numerator / denominator, method="inverted_cdf")
        found = sketch.quantile(counts, numerator, denominator)[0]
        assert abs(found - exact) <= 0.01 * exact * SLACK


@given(st.lists(st.integers(0, limits.MAX_DWELL_MS), min_size=1, max_size=60))
def test_within_1_percent_of_numpy(values: list[int]) -> None:
    check(np.array(values))


@pytest.mark.parametrize("seed", range(5))
def test_within_1_percent_on_long_tails(seed: int) -> None:
    random = np.random.default_rng(seed)
    check(np.minimum(random.lognormal(9, 2, 20_000), limits.MAX_DWELL_MS).astype(np.int64))


def test_no_value_is_further_than_1_percent_from_its_bucket() -> None:
    middles, lower, upper = sketch.MIDDLE_MS, sketch.LOWER_MS, sketch.UPPER_MS
    for bound in (lower, upper):
        assert (abs(middles - bound) <= 0.01 * bound * SLACK).all()
    assert (lower[1:] == upper[:-1] + 1).all()
    assert (lower[0], upper[0]) == (0, 0)
    assert upper[-1] >= limits.MAX_DWELL_MS


def test_every_bound_is_in_its_bucket() -> None:
    numbers = np.arange(sketch.BUCKETS)
    assert (bucket(sketch.UPPER_MS) == numbers).all()
    assert (bucket(sketch.LOWER_MS) == numbers).all()


def test_short_times_are_exact() -> None:
    values = np.arange(50)
    assert sketch.quantile(np.eye(sketch.BUCKETS, dtype=np.int64)[:50], 1, 2).tolist() == list(
        values
    )


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_ddsketch(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.minimum(random.lognormal(10, 1.5, 5001), limits.MAX_DWELL_MS).astype(np.int64) + 1
    theirs = DDSketch(0.01)
    for value in values.tolist():
        theirs.add(value)
    for numerator, denominator in QUANTILES[:3]:
        ours = sketch.quantile(counts_of(values), numerator, denominator)[0]
        other = theirs.get_quantile_value(numerator / denominator)
        assert other is not None
        assert abs(ours - other) <= 0.0202 * other  # each within 1 % of values one rank apart


def test_merging_is_adding() -> None:
    random = np.random.default_rng(1)
    parts = [random.integers(0, 100_000, 1000) for _ in range(4)]
    merged = np.sum([counts_of(part) for part in parts], axis=0)
    assert (merged == counts_of(np.concatenate(parts))).all()


def test_a_row_without_values_is_0() -> None:
    assert sketch.quantile(np.zeros((2, sketch.BUCKETS), np.int64), 1, 2).tolist() == [0, 0]
