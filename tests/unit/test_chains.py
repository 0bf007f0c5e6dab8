"""Rows that share a key, newest first."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.engine.chains import Chains, runs_of, spread

BATCHES = st.lists(st.lists(st.integers(1, 12), max_size=20), max_size=8)


def u64(keys: list[int]) -> np.ndarray:
    return np.array(keys, np.uint64)


def walked(chains: Chains, keys: list[int], next_row: np.ndarray) -> list[list[int]]:
    """Rows of each key, in the order of the chain."""
    result: list[list[int]] = [[] for _ in keys]
    for query, row in zip(*chains.walk(u64(keys), next_row), strict=True):
        result[int(query)].append(int(row))
    return result


@given(BATCHES)
@settings(max_examples=150, deadline=None)
def test_chains_are_lists_by_key(batches: list[list[int]]) -> None:
    chains, next_row = Chains(), np.full(400, -1, np.int32)
    keys: list[int] = []
    for batch in batches:
        rows = np.arange(len(keys), len(keys) + len(batch))
        chains.link(u64(batch), rows, next_row)
        keys += batch
        expected = [[i for i in reversed(range(len(keys))) if keys[i] == k] for k in range(1, 14)]
        assert walked(chains, list(range(1, 14)), next_row) == expected
    fresh = np.full(400, 7, np.int32)
    chains.rebuild(u64(keys), fresh)
    assert walked(chains, list(range(1, 14)), fresh) == [
        [i for i in reversed(range(len(keys))) if keys[i] == k] for k in range(1, 14)
    ]


def test_a_key_that_is_asked_twice_is_answered_twice() -> None:
    chains, next_row = Chains(), np.full(4, -1, np.int32)
    chains.link(u64([5, 6, 5]), np.arange(3), next_row)
    assert walked(chains, [5, 9, 5], next_row) == [[2, 0], [], [2, 0]]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_runs(keys: list[int]) -> None:
    starts = [i for i, k in enumerate(keys) if i == 0 or keys[i - 1] != k]
    assert runs_of(u64(keys)).tolist() == starts


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=10))
def test_spread(ranges: list[tuple[int, int]]) -> None:
    expected = [(i, start + j) for i, (start, n) in enumerate(ranges) for j in range(n)]
    starts = np.array([s for s, _ in ranges], np.int64)
    counts = np.array([n for _, n in ranges], np.int64)
    which, numbers = spread(starts, counts)
    assert list(zip(which.tolist(), numbers.tolist(), strict=True)) == expected
