"""Where a metric moved: values of several dimensions together whose change is unlike that of all
else.

Of a cell, the values of one dimension or of several crossed, the rate x / y would have been

    expected = r0 R1 / R0

now, had it moved as the rest of the traffic did: r0 was its rate then, R0 and R1 are those of the
rest. With E = y1 expected clicks (or whatever x counts), the cell that tells most has the largest

    (x1 - E) / sqrt(E + E² (1/x0 + 1/X0 + 1/X1)):

a larger cell that has it within has the same numerator and more noise, and a part of it less.

Thousands of cells are looked at, so that the largest is large by chance. Cells are ranked by one
half of the users, and the first is measured by the other: it is found if there, too, it moved the
same way, by Student's t over groups of users. What one user alone did, as a crawler, is not. In
either case its rows are left out, and the search begins again, for six cells at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from streamer.encoding.arrays import I64
from streamer.stats.random_groups import GROUPS, critical

LEAST = 10.0
"""Expected events, and events then, below which a cell is not looked at."""
MOST_VALUES = 3
TRIES = 6
LEVEL = 1 - 0.01 / TRIES
"""Level of one test: what is shown where nothing moved is shown in one search of a hundred."""
BETTER = 1.0
"""By how much the rank of a cell has to be above that of a larger one that has it within."""
HALF = GROUPS // 2

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Crossed:
    """Sums of a metric in two windows, a row each. ``values``: (rows, dimensions) numbers of
    values; ``is_now``: of which window; ``group``: of users; ``x``, ``y``: numerator and
    denominator."""

    values: I64
    is_now: npt.NDArray[np.bool_]
    group: I64
    x: _Floats
    y: _Floats

    def where(self, rows: npt.NDArray[np.bool_]) -> Crossed:
        """Some of the rows."""
        sums = self.x[rows], self.y[rows]
        return Crossed(self.values[rows], self.is_now[rows], self.group[rows], *sums)

    def has(self, cell: Cell) -> npt.NDArray[np.bool_]:
        """Which rows are of a cell."""
        found = np.ones(len(self.x), np.bool_)
        for dimension, value in cell:
            found &= self.values[:, dimension] == value
        return found

    @cached_property
    def direction(self) -> float:
        """1.0 where the whole rose, -1.0 where it fell, 0.0 where nothing can be said."""
        (x0, x1), (y0, y1) = self.sums()
        return float(np.sign(x1 / y1 - x0 / y0)) if min(y0, y1) > 0 else 0.0

    def sums(self) -> tuple[_Floats, _Floats]:
        """Of x and y: then, now."""
        return _added(self.is_now, self.x, 2), _added(self.is_now, self.y, 2)


Cell = tuple[tuple[int, int], ...]
"""Dimensions, and the number of the value of each."""


@dataclass(frozen=True)
class Found:
    """A cell that moved, as the half of the users who confirm it have it: its shares of Σy, its
    rates then and now, and how much more x it has than if it had moved as the rest: from ``low`` to
    ``high`` with a probability of 95 %."""

    cell: Cell
    share_then: float
    share_now: float
    rate_then: float
    rate_now: float
    excess: float
    low: float
    high: float


@dataclass(frozen=True)
class Search:
    """Cells that moved, and how many were looked at."""

    found: tuple[Found, ...]
    looked_at: int


def search(events: Crossed) -> Search:
    """The cells in which the metric moved as the whole did, but more: the most telling first."""
    direction, found, looked_at = events.direction, list[Found](), 0
    for _ in range(TRIES):
        halves = (events.where(events.group < HALF), events.where(events.group >= HALF))
        ranked = _Ranked(halves[0], direction)
        looked_at = max(looked_at, ranked.looked_at)
        cell = ranked.first()
        if cell is None:
            break
        measured = _measured(halves[1], cell, direction)
        found += [] if measured is None else [measured]
        events = events.where(~events.has(cell))
    return Search(tuple(found), looked_at)


def _added(key: npt.NDArray[Any], part: _Floats, most: int) -> _Floats:
    """Sums by key, of which there are so many at least."""
    return np.bincount(key, part, most).astype(np.float64)


class _Ranked:
    """Cells by what one half of the users says of them."""

    def __init__(self, events: Crossed, direction: float) -> None:
        self._events, self._direction = events, direction
        self._ranks: dict[Cell, float] = {}
        self.looked_at = 0
        if not direction:
            return
        self._frequent = [self._frequent_of(i) for i in range(events.values.shape[1])]
        for size in (1, 2):
            for dimensions in combinations(range(len(self._frequent)), size):
                self._rank(dimensions)

    def _frequent_of(self, dimension: int) -> I64:
        """Values with enough events to be looked at."""
        values = self._events.values[:, dimension]
        count = _added(values, self._events.x * ~self._events.is_now, 1)
        return np.flatnonzero(count >= LEAST)

    def _rank(self, dimensions: Sequence[int], within: Cell = ()) -> None:
        """Rank the cells of some dimensions, within another."""
        rows = self._events.has(within)
        places = np.zeros(len(rows), np.int64)
        sizes = []
        for dimension in dimensions:
            frequent = self._frequent[dimension]
            if not len(frequent):
                return
            place = np.full(1 + self._events.values[:, dimension].max(initial=0), -1)
            place[frequent] = np.arange(len(frequent))
            of_rows = place[self._events.values[:, dimension]]
            rows &= of_rows >= 0
            places = places * len(frequent) + of_rows
            sizes.append(len(frequent))
        held, places = np.unique(places[rows], return_inverse=True)
        cells = len(held)
        keys = places + cells * self._events.is_now[rows]
        x, y = (
            _added(keys, part[rows], 2 * cells).reshape(2, cells)
            for part in (self._events.x, self._events.y)
        )
        rank, is_looked_at = self._ranks_of(x, y)
        self.looked_at += int(is_looked_at.sum())
        for at in np.flatnonzero(rank > 0).tolist():
            numbers = np.unravel_index(held[at], sizes)
            own = zip(dimensions, numbers, strict=True)
            cell = [*within, *((d, int(self._frequent[d][i])) for d, i in own)]
            self._ranks[tuple(sorted(cell))] = float(rank[at])

    def _ranks_of(self, x: _Floats, y: _Floats) -> tuple[_Floats, npt.NDArray[np.bool_]]:
        """(then and now, cells) → the rank of each, and whether it is looked at."""
        all_x, all_y = self._events.sums()
        rest_x, rest_y = all_x[:, None] - x, all_y[:, None] - y
        with np.errstate(all="ignore"):
            moved = (rest_x[1] / rest_y[1]) / (rest_x[0] / rest_y[0])
            expected = y[1] * x[0] / y[0] * moved
            noise = expected + expected**2 * (1 / x[0] + 1 / rest_x[0] + 1 / rest_x[1])
            rank = self._direction * (x[1] - expected) / np.sqrt(noise)
        is_looked_at = (expected >= LEAST) & (x[0] >= LEAST) & (rest_x.min(axis=0) >= LEAST)
        return np.where(is_looked_at & np.isfinite(rank), rank, 0.0), is_looked_at

    def first(self) -> Cell | None:
        """The cell to be measured; None where nothing moved."""
        best = max(self._ranks, key=self._ranks.__getitem__, default=None)
        return None if best is None else self._widened(self._narrowed(best))

    def _narrowed(self, cell: Cell) -> Cell:
        """A cell with more values, where it tells more."""
        while 1 < len(cell) < MOST_VALUES:
            taken = [dimension for dimension, _ in cell]
            for dimension in set(range(len(self._frequent))).difference(taken):
                self._rank([dimension], cell)
            larger = [other for other in self._ranks if set(cell) < set(other)]
            best = max(larger, key=self._ranks.__getitem__, default=cell)
            if self._ranks[best] < self._ranks[cell] + BETTER:
                break
            cell = best
        return cell

    def _widened(self, cell: Cell) -> Cell:
        """A cell without those values without which it tells as much."""
        while len(cell) > 1:
            wider = [tuple(part for part in cell if part != gone) for gone in cell]
            best = max(wider, key=lambda other: self._ranks.get(other, 0.0))
            if self._ranks.get(best, 0.0) + BETTER < self._ranks[cell]:
                break
            cell = best
        return cell


def _measured(events: Crossed, cell: Cell, direction: float) -> Found | None:
    """What the other half of the users says of a cell; None unless it moved there, too.

    Each group of users is compared with what the rest of it did, so that one user's traffic is in
    one group only, and no group may make up half of what moved. Noise is that of the residuals of
    r0 and of the change, by the delta method, and of a large group by the jackknife.
    """
    keys = (events.group - HALF) + HALF * (events.is_now + 2 * events.has(cell))
    (rest_x0, rest_x1, x0, x1), (rest_y0, rest_y1, y0, y1) = (
        _added(keys, part, 4 * HALF).reshape(4, HALF) for part in (events.x, events.y)
    )
    if not min(side.sum() for side in (rest_x0, rest_x1, rest_y0, rest_y1, y0, y1)):
        return None
    rate = x0.sum() / y0.sum()
    moved = (rest_x1.sum() / rest_y1.sum()) / (rest_x0.sum() / rest_y0.sum())
    with np.errstate(all="ignore"):
        of_group = (rest_x1 / rest_y1) / (rest_x0 / rest_y0)
    of_group = np.where(np.isfinite(of_group), of_group, moved)
    apart = x1 - y1 * rate * of_group - y1.sum() * moved / y0.sum() * (x0 - y0 * rate)
    excess, now = apart.sum(), y1.sum()
    if now == y1.max():
        return None
    residuals = (apart - y1 * excess / now) / (1 - y1 / now)
    error = sqrt((HALF - 1) / HALF * np.square(residuals).sum())
    is_of_many = 2 * (direction * apart).max() < direction * excess
    if direction * excess <= critical(LEVEL, HALF - 1) * error or not is_of_many:
        return None
    reach = critical(0.975, HALF - 1) * error
    return Found(
        cell=cell,
        share_then=y0.sum() / (y0.sum() + rest_y0.sum()),
        share_now=now / (now + rest_y1.sum()),
        rate_then=rate,
        rate_now=x1.sum() / now,
        excess=excess,
        low=excess - reach,
        high=excess + reach,
    )
