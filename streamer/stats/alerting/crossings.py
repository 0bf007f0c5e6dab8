"""Where a ratio moved: values of up to three dimensions together whose change is unlike that of all
else.

Of a cell, the values of one dimension or of several crossed, the rate x / y would have been

    expected = r0 R1 / R0

now, had it moved as the rest of the traffic did: r0 was its rate then, R0 and R1 are those of the
rest. With E = y1 expected events, the cell that tells most has the largest

    2 (sqrt(x1) - sqrt(E)) / sqrt(1 + E (1/x0 + 1/X0 + 1/X1)),

on the scale on which counts vary alike: a larger cell that has it within lost a smaller share and
has more noise, and a part of it has less of both.

Thousands of cells are looked at, so that the largest is large by chance. Cells are ranked by one
half of the people, and the first is measured by the other: it is found if there, too, it moved the
same way, by Student's t over groups of people. Then its rows are left out, and the search begins
again, until one is not confirmed. People who alone moved the whole, as crawlers do, are left out
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from streamer._core import RATIO_GROUPS, first_cell
from streamer.encoding.arrays import F64, I64
from streamer.stats.random_groups import critical

LEAST = 10.0
"""Events then, or now of a rise, below which a cell is not looked at."""
LEAST_SHARE = 0.1
"""Of the change: a cell that had less than it is no explanation."""
MOST_CELLS = 500
"""Of one dimension or pair: a cell has one in so many events of the numerator at least."""
TRIES = 6
LEVEL = 1 - 0.01 / TRIES
"""Level of one test: what is shown where nothing moved is shown in one search of a hundred."""
HALF = RATIO_GROUPS // 2
CRAWLED = 20
"""Times as much traffic as people have on average is that of a crawler, if it moved the whole."""
ALONE, LEAST_ALONE = 0.05, 0.001
"""Of the change, and of the ratio: what a crawler moves at least."""
_MOST_CODES, _OTHER = 1 << 16, 1

Cell = Sequence[tuple[int, int]]
"""Dimensions, and the code of the value of each."""


@dataclass
class RatioRows:
    """What the numerator x and the denominator y of a ratio got in two periods, a row each.
    ``texts`` and ``codes``: of each dimension; ``person``: hashes, of which so many leading
    ``bits`` are 0."""

    names: Sequence[str]
    texts: list[list[str]]
    codes: list[npt.NDArray[np.uint16]]
    person: npt.NDArray[np.uint32]
    is_now: npt.NDArray[np.bool_]
    x: F64
    y: F64
    bits: int = 0

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Leave all others out; a column at a time, as they are large."""
        for i, codes in enumerate(self.codes):
            self.codes[i] = codes[rows]
        self.person, self.is_now = self.person[rows], self.is_now[rows]
        self.x, self.y = self.x[rows], self.y[rows]

    def has(self, cell: Cell) -> npt.NDArray[np.bool_]:
        """Which rows are of a cell."""
        found = np.ones(len(self.x), np.bool_)
        for dimension, code in cell:
            found &= self.codes[dimension] == code
        return found

    def sums_by(self, key: I64, count: int) -> F64:
        """Σx then and now, Σy then and now, by keys below ``count``: (count, 4)."""
        keys = 2 * key + self.is_now
        x, y = (np.bincount(keys, of, 2 * count).reshape(count, 2) for of in (self.x, self.y))
        return np.hstack([x, y])

    def extend(self, other: RatioRows, most: int) -> None:
        """Take over the rows of another partition; of more than ``most`` a sample of people
        stays. Its texts may come twice, where values are `other` by now."""
        for i, texts in enumerate(other.texts):
            known = {text: code for code, text in enumerate(self.texts[i])}
            for text in texts:
                if len(known) < _MOST_CODES:
                    known.setdefault(text, len(known))
            codes = np.array([known.get(text, _OTHER) for text in texts], np.uint16)
            self.texts[i] = list(known)
            self.codes[i] = np.concatenate([self.codes[i], codes[other.codes[i]]])
        for name in ("person", "is_now", "x", "y"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self._sample(max(self.bits, other.bits))
        while len(self.x) > most:
            self._sample(self.bits + 1)

    def _sample(self, bits: int) -> None:
        if bits > self.bits:
            self.bits = bits
            self.keep(self.person < 1 << (32 - bits))


class PeriodSums(Struct, frozen=True):
    """Some rows in both periods; rates are None without a denominator, and the relative ``change``
    (-0.1: a tenth less) where they are none, or were not above 0."""

    numerator_then: float
    numerator_now: float
    denominator_then: float
    denominator_now: float
    rate_then: float | None
    rate_now: float | None
    change: float | None

    @classmethod
    def of(cls, rows: F64) -> PeriodSums:
        """Σ of rows of what ``sums_by`` gives."""
        x_then, x_now, y_then, y_now = map(float, rows.sum(axis=0))
        then = x_then / y_then if y_then > 0 else None
        now = x_now / y_now if y_now > 0 else None
        change = now / then - 1 if now is not None and then and then > 0 else None
        return cls(x_then, x_now, y_then, y_now, then, now, change)


class Found(Struct, frozen=True):
    """A cell that moved: its ``values`` by dimension. ``by``: the part of the ratio that moved
    more; ``excess``: how much more of the numerator it has, of all people, than if it had moved as
    all else, from ``low`` to ``high`` with a probability of 95 %, by the half of the people who
    confirm it; ``left``: all else without those found before."""

    values: Mapping[str, str]
    by: str
    sums: PeriodSums
    excess: float
    low: float
    high: float
    left: PeriodSums


class Search(Struct, frozen=True):
    """Cells that moved, and how many were looked at. ``whole``: all that was searched;
    ``crawlers``: people who were left out before, and ``crawled``: what they had."""

    people_share: float
    whole: PeriodSums
    crawlers: int
    crawled: PeriodSums
    found: Sequence[Found] = ()
    looked_at: int = 0


def search(rows: RatioRows, is_count: bool = True) -> Search:
    """The cells in which the ratio moved as the whole did, but more: the most telling first. What
    explains it is left out of ``rows``. ``is_count``: whether x counts events."""
    people, place = np.unique(rows.person, return_inverse=True)
    sums = rows.sums_by(place, len(people))
    is_crawler = _crawlers(sums)
    if is_crawler.any():
        rows.keep(~is_crawler[place])
    del people, place
    crawled, sums = sums[is_crawler], sums[~is_crawler]
    whole = PeriodSums.of(sums)
    about = 2.0**-rows.bits, whole, len(crawled), PeriodSums.of(crawled)
    if not whole.change or whole.numerator_now <= 0:
        return Search(*about)
    scale = 1.0 if is_count else float(np.square(sums[:, :2]).sum() / np.abs(sums[:, :2]).sum())
    direction = float(np.sign(whole.change))
    expected = whole.numerator_now / (1 + whole.change)
    lost = abs(whole.numerator_now - expected)
    least = max(LEAST * scale, LEAST_SHARE * lost, expected / MOST_CELLS)
    found, looked_at, missed = list[Found](), 0, 0
    for _ in range(TRIES):
        columns = (rows.codes, rows.person, rows.is_now, (rows.x, rows.y))
        cell, looked_at_now = first_cell(*columns, (direction > 0, least, scale))
        looked_at = max(looked_at, looked_at_now)
        if cell is None:
            break
        inside = rows.has(cell)
        groups = rows.person % RATIO_GROUPS + np.int64(RATIO_GROUPS) * inside
        by_group = rows.sums_by(groups, 2 * RATIO_GROUPS).reshape(2, RATIO_GROUPS, 4)
        if (excess := _measured(by_group[:, HALF:], direction)) is not None:
            found.append(_found(rows, cell, by_group, excess))
        elif missed or found:
            break
        else:
            missed += 1
        rows.keep(~inside)
    return Search(*about, found, looked_at)


def _crawlers(sums: F64) -> npt.NDArray[np.bool_]:
    """Which people have much more traffic than others, and move the whole by themselves."""
    total, traffic = sums.sum(axis=0), sums[:, 2:].sum(axis=1)
    with np.errstate(all="ignore"):
        x_then, x_now, y_then, y_now = (total - sums).T
        without = np.log(x_now / y_now * y_then / x_then)
        moved = np.log(total[1] / total[3] * total[2] / total[0])
        alone = np.abs(moved - without) >= max(ALONE * abs(moved), LEAST_ALONE)
    return np.asarray(alone & (traffic * len(sums) >= CRAWLED * traffic.sum()))


def _found(rows: RatioRows, cell: Cell, by_group: F64, excess: Sequence[float]) -> Found:
    left, sums = map(PeriodSums.of, by_group)
    rest_then, rest_now, *rest = np.maximum(by_group[0].sum(axis=0), 0.5)
    then, now, *others = np.maximum(by_group[1].sum(axis=0), 0.5)
    x = abs(log(now / then * rest_then / rest_now))
    y = abs(log(others[1] / others[0] * rest[0] / rest[1]))
    values = {rows.names[place]: rows.texts[place][code] for place, code in cell}
    by = "denominator" if y > x else "numerator"
    of_all = 2.0 ** (rows.bits + 1)  # half of the people confirm
    amounts = [amount * of_all for amount in excess]
    return Found(values, by, sums, amounts[0], amounts[1], amounts[2], left)


def _measured(by_group: F64, direction: float) -> tuple[float, float, float] | None:
    """How much more of x a cell has by half of the people, and the ends of its interval; None
    unless it moved there, too. ``by_group``: sums of groups outside, then inside.

    Each group of people is compared with what the rest of it did, so that one person's traffic is
    in one group only, and no group may make up half of what moved. Noise is that of the residuals
    of r0 and of the change, by the delta method, and of a large group by the jackknife.
    """
    rest_x0, rest_x1, rest_y0, rest_y1 = by_group[0].T
    x0, x1, y0, y1 = by_group[1].T
    if min(side.sum() for side in (rest_x0, rest_x1, rest_y0, rest_y1, y0, y1)) <= 0:
        return None
    rate = x0.sum() / y0.sum()
    moved = (rest_x1.sum() / rest_y1.sum()) / (rest_x0.sum() / rest_y0.sum())
    with np.errstate(all="ignore"):
        of_group = (rest_x1 / rest_y1) / (rest_x0 / rest_y0)
    of_group = np.where(np.isfinite(of_group), of_group, moved)
    apart = x1 - y1 * rate * of_group - y1.sum() * moved / y0.sum() * (x0 - y0 * rate)
    excess, now = float(apart.sum()), y1.sum()
    if now == y1.max():
        return None
    residuals = (apart - y1 * excess / now) / (1 - y1 / now)
    error = sqrt((HALF - 1) / HALF * np.square(residuals).sum())
    is_of_many = 2 * (direction * apart).max() < direction * excess
    if direction * excess <= critical(LEVEL, HALF - 1) * error or not is_of_many:
        return None
    reach = critical(0.975, HALF - 1) * error
    return excess, excess - reach, excess + reach
