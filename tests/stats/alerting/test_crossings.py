"""The search for what moved: its ranks are those of the formula, and what one user did is not
found."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest

from benchmarks.studies.alert_crossings import World
from streamer.stats.alerting.crossings import BETTER, HALF, LEAST, Cell, Crossed, search
from tests.support.lanes import long

BROKEN: Cell = ((0, 0), (1, 0))


def of_few(events: Crossed, dimensions: int) -> Crossed:
    """The same without most dimensions."""
    return replace(events, values=events.values[:, :dimensions])


def rank_of(events: Crossed, cell: Cell, direction: int) -> float | None:
    """By the formula, row by row; None where the cell is too small to be looked at."""
    x, y = {}, {}
    for side, inside in product((False, True), repeat=2):
        rows = [
            i
            for i, values in enumerate(events.values.tolist())
            if bool(events.is_now[i]) is side and all(values[d] == v for d, v in cell) is inside
        ]
        x[side, inside] = sum(float(events.x[i]) for i in rows)
        y[side, inside] = sum(float(events.y[i]) for i in rows)
    then, now = (False, True), (True, True)
    if x[then] < LEAST or min(x[False, False], x[True, False]) < LEAST or not y[now]:
        return None
    rest = x[True, False] / y[True, False] / (x[False, False] / y[False, False])
    expected = y[now] * x[then] / y[then] * rest
    if expected < LEAST:
        return None
    noise = 1 / x[then] + 1 / x[False, False] + 1 / x[True, False]
    return direction * (x[now] - expected) / sqrt(expected + expected**2 * noise)


def test_the_cell_that_tells_most_is_measured_first() -> None:
    few = of_few(World("", 4_000, broken=BROKEN).events(3), 4)
    few = replace(few, values=np.minimum(few.values, 2))
    half = few.where(few.group < HALF)
    cells = [
        tuple(zip(dimensions, values, strict=True))
        for size in (1, 2)
        for dimensions in combinations(range(4), size)
        for values in product(range(3), repeat=size)
    ]
    ranks = {cell: rank for cell in cells if (rank := rank_of(half, cell, -1)) is not None}
    best = max(ranks, key=lambda cell: ranks[cell])
    wider = [ranks.get((part,), 0.0) for part in best]
    assert best == BROKEN
    assert max(wider) + BETTER < ranks[best]
    found = search(few)
    assert found.looked_at == len(ranks)
    assert [each.cell for each in found.found][:1] == [best]


@long
def test_a_rise_is_found_as_a_fall_is() -> None:
    world = World("", broken=((1, 2),), left=1.6)
    (found,) = search(world.events(1)).found
    assert found.cell == ((1, 2),)
    assert 0 < found.low < found.excess < found.high
    assert found.rate_now / found.rate_then == pytest.approx(1.6, rel=0.15)


@long
def test_what_was_lost_is_in_its_interval() -> None:
    world, inside = World("", 10_000, broken=BROKEN), 0
    for seed in range(12):
        found = {each.cell: each for each in search(of_few(world.events(seed), 4)).found}
        whole = of_few(World("", 10_000).events(seed), 4)
        rows = whole.has(BROKEN) & whole.is_now & (whole.group >= HALF)
        lost = -whole.x[rows].sum()  # of the same dice, unbroken
        inside += found[BROKEN].low <= lost <= found[BROKEN].high
    assert inside >= 10


def test_what_one_user_did_is_not_found() -> None:
    events = World("", 4_000).events(2)
    mine = (events.values[:, 1] == 0) & (events.group == HALF)
    x = np.where(mine & events.is_now, 0, events.x)
    y = np.where(mine & events.is_now, 20 * events.y, events.y)
    assert not search(Crossed(events.values, events.is_now, events.group, x, y)).found


@pytest.mark.parametrize("rows", [0, 1])
def test_nothing_is_found_in_nothing(rows: int) -> None:
    events = World("", 10).events(1)
    assert search(events.where(np.arange(len(events.x)) < rows)).found == ()
