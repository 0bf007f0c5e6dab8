"""Panes against a dict of sums."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer import limits
from streamer.engine.cells import TOTAL_RING, Cells, Deltas, Ring
from streamer.errors import SumOverflowError

RINGS = (Ring("1m", 1000, 60), Ring("5m", 5000, 60), Ring("7s", 1000, 7))
START_MS = 1_700_000_000_000

Model = Counter[tuple[int, int, int, int]]
ADD = st.tuples(st.integers(0, 400_000), st.integers(0, 5), st.integers(0, 200), st.integers(-3, 9))
BATCHES = st.lists(st.tuples(st.lists(ADD, max_size=15), st.integers(0, 40_000)), max_size=8)


def contents(cells: Cells) -> dict[tuple[int, int, int, int], int]:
    """(ring, pane, segment, statistic) → sum, without zeros."""
    found = {}
    for pane, (codes, values) in cells.dump(cells.live_panes()).items():
        assert (np.diff(codes) > 0).all()
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            assert value != 0
            found[pane >> 32, pane & 0xFFFFFFFF, code >> 14, code & 0x3FFF] = value
    return found


def fed(batches: list[tuple[list[tuple[int, int, int, int]], int]]) -> tuple[Cells, Model, int]:
    cells, model, stream_ms = Cells(RINGS), Model(), START_MS
    for adds, step_ms in batches:
        stream_ms += step_ms
        deltas, totals = Deltas(cells.unit_ms), Deltas(1)
        for at_ms, segment, stat, amount in adds:
            at, seg = np.array([START_MS + at_ms]), np.array([segment])
            if amount == 1:
                deltas.count(at, seg, stat)
            else:
                deltas.add(at, seg, stat, amount)
            totals.add(np.zeros(1, np.int64), seg, stat, amount)
            for number, ring in enumerate(RINGS, 1):
                model[number, (START_MS + at_ms) // ring.pane_ms, segment, stat] += amount
            model[TOTAL_RING, 0, segment, stat] += amount
        cells.apply(deltas, totals, stream_ms)
        for key in list(model):  # what was expired, or came too late for its ring
            if key[0] <= len(RINGS) and key[1] < RINGS[key[0] - 1].oldest(stream_ms):
                del model[key]
    return cells, model, stream_ms


def nonzero(model: Model) -> dict[tuple[int, int, int, int], int]:
    return {key: value for key, value in model.items() if value}


@given(BATCHES)
@settings(max_examples=120, deadline=None)
def test_cells_are_a_dict_of_sums(
    batches: list[tuple[list[tuple[int, int, int, int]], int]],
) -> None:
    cells, model, _ = fed(batches)
    assert contents(cells) == nonzero(model)


@given(BATCHES, st.permutations(range(6)))
@settings(max_examples=60, deadline=None)
def test_remap_moves_segments(
    batches: list[tuple[list[tuple[int, int, int, int]], int]], moves: list[int]
) -> None:
    cells, model, _ = fed(batches)
    folded = np.array([m // 2 for m in moves])
    live = cells.live_panes()
    cells.take_touched()
    cells.remap(folded)
    moved: Model = Counter()
    for (ring, pane, segment, stat), value in model.items():
        moved[ring, pane, int(folded[segment]), stat] += value
    assert contents(cells) == nonzero(moved)
    assert cells.take_touched() >= live  # all of them have to be written again


@given(BATCHES)
@settings(max_examples=60, deadline=None)
def test_load_puts_back_what_dump_gave(
    batches: list[tuple[list[tuple[int, int, int, int]], int]],
) -> None:
    cells, model, stream_ms = fed(batches)
    fresh = Cells(RINGS)
    for pane, (codes, values) in cells.dump(cells.live_panes()).items():
        fresh.load(pane, codes, values)
    assert contents(fresh) == nonzero(model)
    for either in (cells, fresh):  # and both go on alike
        deltas = Deltas(either.unit_ms)
        deltas.count(np.array([stream_ms]), np.array([2]), 3)
        either.apply(deltas, Deltas(1), stream_ms + 3000)
    assert contents(fresh) == contents(cells)


def test_touched_panes_are_told_once() -> None:
    cells, _, _ = fed([([(0, 1, 2, 1)], 0)])
    touched = cells.take_touched()
    assert {pane >> 32 for pane in touched} == {1, 2, 3, TOTAL_RING}
    assert cells.take_touched() == set()
    cells.touch(touched)
    assert cells.take_touched() == touched


def test_the_oldest_pane_of_a_window_of_60() -> None:
    ring = RINGS[0]
    assert ring.oldest(59_999) == 0
    assert ring.oldest(60_000) == 1


def test_memory_is_used_again_as_time_goes_by() -> None:
    cells = Cells((Ring("1m", 1000, 60),))
    for second in range(3000):
        at = np.full(5, START_MS + 1000 * second)
        deltas = Deltas(cells.unit_ms)
        deltas.count(at, np.arange(5), 0)
        cells.apply(deltas, Deltas(1), int(at[0]))
    assert len(cells) == 300
    assert cells.nbytes < 2_000_000


def test_a_sum_that_would_wrap_is_an_error() -> None:
    cells = Cells(RINGS)
    for _ in range(2):
        deltas = Deltas(cells.unit_ms)
        deltas.add(np.array([START_MS]), np.array([0]), 0, limits.MAX_SUM // 2 + 1)
        if len(cells):
            with pytest.raises(SumOverflowError):
                cells.apply(deltas, Deltas(1), START_MS)
        else:
            cells.apply(deltas, Deltas(1), START_MS)
