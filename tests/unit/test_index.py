"""The open-addressing index does what a dict does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.engine.index import KeyIndex, mix

SMALL = st.integers(1, 40)
COLLIDING = st.integers(1, 6).map(lambda k: k << 40 | 5)
"""Keys that all want the same slot: they differ above the mask."""
KEYS = st.one_of(SMALL, COLLIDING, st.integers(1, 2**64 - 1))
BATCHES = st.lists(st.lists(KEYS, max_size=30), max_size=12)


def u64(keys: list[int]) -> np.ndarray:
    return np.array(keys, np.uint64)


@given(BATCHES, st.lists(KEYS, max_size=20))
@settings(max_examples=150, deadline=None)
def test_the_index_is_a_dict(batches: list[list[int]], asked: list[int]) -> None:
    index, model, row = KeyIndex(), dict[int, int](), 0
    for batch in batches:
        slots, new = index.slots(u64(batch))
        assert [key not in model for key in batch if batch.count(key) == 1] == [
            bool(n) for key, n in zip(batch, new, strict=True) if batch.count(key) == 1
        ]
        for key in set(batch):  # equal keys, equal slots; other keys, other slots
            assert len({int(s) for k, s in zip(batch, slots, strict=True) if k == key}) == 1
        assert len(set(slots.tolist())) == len(set(batch))
        known = [model.get(key, -1) for key in batch]
        assert index.rows_at(slots).tolist() == known
        rows = np.arange(row, row + len(batch))
        index.set_rows(slots, rows)
        model.update(zip(batch, rows.tolist(), strict=True))
        row += len(batch)
        wanted = asked + batch
        assert index.find(u64(wanted)).tolist() == [model.get(k, -1) for k in wanted]


@pytest.mark.parametrize("batch", [1, 100, 5000, 60_000])
def test_growth_keeps_every_row(batch: int) -> None:
    index, count = KeyIndex(), 60_000 if batch > 1 else 6000
    keys = mix(np.arange(count, dtype=np.uint64), np.full(count, 7, np.uint64))
    for start in range(0, count, batch):
        some = keys[start : start + batch]
        slots, new = index.slots(some)
        assert new.all()
        index.set_rows(slots, np.arange(start, start + len(some)))
    assert index.find(keys).tolist() == list(range(count))
    assert (index.find(mix(keys, keys)) == -1).all()
    assert index.used == count


def test_repeated_keys_in_one_batch_get_the_last_row() -> None:
    index = KeyIndex()
    slots, new = index.slots(u64([7, 8, 7, 7]))
    assert slots[0] == slots[2] == slots[3]
    index.set_rows(slots, np.array([1, 2, 3, 4]))
    assert index.find(u64([7, 8, 9])).tolist() == [4, 2, -1]
    assert bool(new[1])


def test_many_repeats_do_not_make_it_grow() -> None:
    index = KeyIndex()
    for _ in range(200):
        index.slots(np.full(1000, 5, np.uint64))
    assert index.nbytes < 200_000


def test_keys_on_one_slot_and_around_the_end() -> None:
    index = KeyIndex()
    last = index.nbytes // 12 - 1  # 8 bytes a key, 4 a row
    keys = u64([(i << 32) | last for i in range(1, 300)])
    slots, _ = index.slots(keys)
    assert len(set(slots.tolist())) == 299
    index.set_rows(slots, np.arange(299))
    assert index.find(keys).tolist() == list(range(299))


def test_rebuild_forgets_the_rest() -> None:
    index = KeyIndex()
    index.set_rows(index.slots(u64([1, 2, 3]))[0], np.array([10, 20, 30]))
    index.rebuild(u64([2, 4, 2]), np.array([0, 1, 2]))
    assert index.find(u64([1, 2, 3, 4])).tolist() == [-1, 2, -1, 1]


def test_mix_is_never_0_and_knows_the_order() -> None:
    a = np.arange(0, 2000, dtype=np.uint64)
    one, two = mix(a, a + np.uint64(1)), mix(a + np.uint64(1), a)
    assert (one != 0).all()
    assert not (one == two).any()
    assert mix(np.zeros(1, np.uint64), np.zeros(1, np.uint64)).tolist() == [1]
    assert len(set(one.tolist()) | set(two.tolist())) == 4000
