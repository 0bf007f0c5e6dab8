"""The search for what moved: the first cell is that of the formula, and what one person did is not
found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import pytest

from benchmarks.studies.alert_crossings import Cause, World
from streamer._core import RATIO_GROUPS, first_cell
from streamer.stats.alerting.crossings import HALF, Cell, RatioRows, search
from tests.support.lanes import long, shortened

LEAST, LEAD, BETTER = 10.0, 1.5, 1.0
BROKEN: Cell = ((4, 0), (7, 1))
FEW = 4


def world(events: int = 60_000, seed: int = 1) -> World:
    return World(events, seed)


def of_few(rows: RatioRows) -> RatioRows:
    """The same with four dimensions, each of at most three values."""
    rows.codes = [np.minimum(codes, 2) for codes in rows.codes[4 : 4 + FEW]]
    rows.texts, rows.names = [["0", "1", "2"]] * FEW, rows.names[:FEW]
    return rows


def rank_of(cell: list[float], whole: list[float], direction: int) -> float | None:
    """By the formula; None where a cell is too small to be looked at."""
    x0, x1, y0, y1 = cell
    rest = [a - b for a, b in zip(whole, cell, strict=True)]
    if min(x0, rest[0], rest[1]) < LEAST or not y0:
        return None
    expected = y1 * x0 / y0 * (rest[1] / rest[3]) / (rest[0] / rest[2])
    if expected < LEAST:
        return None
    noise = sqrt(1 + expected * (1 / x0 + 1 / rest[0] + 1 / rest[1]))
    return direction * 2 * (sqrt(x1) - sqrt(expected)) / noise


class Slow:
    """Every cell of one half of the people, row by row."""

    def __init__(self, rows: RatioRows, direction: int, least: float) -> None:
        self.cells: dict[Cell, list[float]] = {}
        whole = [0.0] * 4
        for i, person in enumerate(rows.person.tolist()):
            if person % RATIO_GROUPS >= HALF:
                continue
            for cell in [(), *self._cells_of([int(codes[i]) for codes in rows.codes])]:
                sums = whole if not cell else self.cells.setdefault(cell, [0.0] * 4)
                sums[int(rows.is_now[i])] += float(rows.x[i])
                sums[2 + int(rows.is_now[i])] += float(rows.y[i])
        support = 1 if direction > 0 else 0
        enough = {c: s for c, s in self.cells.items() if s[support] >= least / 2}
        ranks = {cell: rank_of(sums, whole, direction) for cell, sums in enough.items()}
        self.ranks = {cell: rank for cell, rank in ranks.items() if rank is not None}
        for cell in [cell for cell in self.ranks if len(cell) == 3]:
            pairs = (self.ranks.get(pair, 0.0) for pair in combinations(cell, 2))
            if max(pairs) < LEAD:
                del self.ranks[cell]

    def _cells_of(self, values: list[int]) -> Iterator[Cell]:
        for size in (1, 2, 3):
            for places in combinations(range(len(values)), size):
                yield tuple((place, values[place]) for place in places)

    def first(self) -> list[tuple[int, int]]:
        cell: Cell = max(self.ranks, key=lambda each: self.ranks[each])
        while len(cell) > 1:
            wider: list[Cell] = [tuple(each) for each in combinations(cell, len(cell) - 1)]
            best = max(wider, key=lambda each: self.ranks.get(each, 0.0))
            if self.ranks.get(best, 0.0) + BETTER < self.ranks[cell]:
                break
            cell = best
        return list(cell)


@pytest.mark.parametrize("left", [0.0, 0.3, 2.0])
def test_the_first_cell_is_that_of_the_formula(left: float) -> None:
    rows = of_few(world().rows([Cause(BROKEN, left)], 0.0))
    direction, least = (1 if left > 1 else -1), 40.0
    slow = Slow(rows, direction, least)
    columns = (rows.codes, rows.person, rows.is_now, (rows.x, rows.y))
    cell, looked_at = first_cell(*columns, (direction > 0, least, 1.0))
    assert (cell, looked_at) == (slow.first(), len(slow.ranks))
    assert cell == [(0, 0), (3, 1)]


def test_columns_of_one_length_are_asked_for() -> None:
    rows = of_few(world(2_000).rows([], 0.0))
    columns = (rows.codes, rows.person[1:], rows.is_now, (rows.x, rows.y))
    with pytest.raises(ValueError, match="differ in length"):
        first_cell(*columns, (True, 1.0, 1.0))


@pytest.mark.parametrize("left", shortened([0.2, 2.0]))
def test_what_moved_is_found_with_its_sums(left: float) -> None:
    rows = world(400_000).rows([Cause(BROKEN, left)], 0.0)
    inside = rows.has(BROKEN)
    clicks = [float(rows.x[inside & (rows.is_now == now)].sum()) for now in (False, True)]
    rest = float(rows.x[~inside & rows.is_now].sum())
    (cell,) = search(rows).found
    assert cell.values == {"4": "0", "7": "1"}
    assert [cell.sums.numerator_then, cell.sums.numerator_now] == clicks
    assert cell.left.numerator_now == rest
    assert cell.left.change == pytest.approx(0, abs=0.03)
    lost = clicks[0] * (left - 1)
    assert cell.low < lost < cell.high
    assert np.sign(cell.excess) == np.sign(lost)
    assert cell.by == "numerator"


@long
def test_impressions_that_came_beside_are_a_matter_of_the_denominator() -> None:
    rows = world(400_000).rows([], 0.0)
    more = rows.has(BROKEN) & rows.is_now
    rows.y = np.where(more, 3 * rows.y, rows.y)
    (cell,) = search(rows).found
    assert (cell.values, cell.by) == ({"4": "0", "7": "1"}, "denominator")


@long
def test_a_crawler_is_left_out_and_what_broke_beside_it_is_found() -> None:
    found = search(world(400_000).rows([Cause(BROKEN, 0.2)], 0.05))
    assert [each.values for each in found.found] == [{"4": "0", "7": "1"}]
    assert (found.crawlers, found.crawled.numerator_now) == (1, 0.0)
    assert found.crawled.denominator_now == round(0.05 * world(400_000).impressions)
    assert not search(world(400_000, 2).rows([], 0.05)).found


def test_what_one_person_did_is_not_found() -> None:
    rows = world(100_000).rows([], 0.0)
    mine = rows.person == rows.person[np.flatnonzero(rows.person % RATIO_GROUPS >= HALF)[0]]
    rows.codes[4] = np.where(mine, 7, np.minimum(rows.codes[4], 6)).astype(np.uint16)
    rows.y = np.where(mine & rows.is_now, 40 * rows.y, rows.y)
    assert not search(rows).found


@pytest.mark.parametrize("events", [40, 2_000])
def test_nothing_is_found_in_nothing(events: int) -> None:
    rows = world(events).rows([], 0.0)
    assert not search(rows).found
    rows.keep(np.zeros(len(rows.x), np.bool_))
    assert not search(rows).found


def test_partitions_become_one_and_of_too_many_rows_a_sample_of_people_stays() -> None:
    rows, other = (of_few(world(20_000, seed).rows([], 0.0)) for seed in (1, 2))
    other.texts[0] = ["2", "new", "0"]
    wanted = np.concatenate([rows.codes[0], np.array([2, 3, 0])[other.codes[0]]])
    x = float(rows.x.sum() + other.x.sum())
    both = np.concatenate([rows.person, other.person])
    rows.extend(other, 10**9)
    assert rows.texts[0] == ["0", "1", "2", "new"]
    assert (rows.codes[0] == wanted).all()
    assert (rows.bits, float(rows.x.sum())) == (0, x)
    none: Any = [column[:0] for column in rows.codes]
    of_none = (both[:0], rows.is_now[:0], rows.x[:0], rows.y[:0])
    empty = RatioRows(rows.names, rows.texts, none, *of_none)
    rows.extend(empty, 15_000)
    assert rows.bits == 2
    assert rows.person.tolist() == [each for each in both.tolist() if each < 2**30]
    assert search(rows).people_share == 0.25


@long
def test_causes_are_found_first() -> None:
    its, first = world(1_000_000), 0
    for run in range(12):
        causes = its.causes(1 + run % 3, is_rise=run % 4 == 3)
        cells = [
            tuple((int(d), int(v)) for d, v in each.values.items())
            for each in search(its.rows(causes, 0.03)).found
        ]
        first += set(cells[: len(causes)]) == {cause.cell for cause in causes}
    assert first >= 11
