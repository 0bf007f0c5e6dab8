"""Composites: several metrics as one number, the weighted mean of what stands for each.

With the weights w and n the value of a part, or the value over a target, or over that of the same
window a day before,

    composite = Σ w n / Σ |w|.

Two thirds of a click-through rate of 1/2 against its target of 1/4, less one third of the same
rate as it is:

    >>> from streamer.testing import value_of
    >>> part = {"metric": "ctr_ratio", "weight": 2, "against": "target", "target": 0.25}
    >>> parts = [part, {"metric": "ctr_ratio", "weight": -1}]
    >>> shown = [{"item_id": item} for item in "ab"]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": "a"}]
    >>> settings = {"composites": [{"name": "health", "parts": parts}]}
    >>> round(value_of(events, "composite", settings, maturity="mature"), 6)  # (2·2 - 1/2) / 3
    1.166667

Its interval is that of random groups (``metrics.intervals``), linearised: group g of users moves a
part R = x / y by (x_g - R y_g) / y, the composite by

    d_g = Σ c (x_g - R y_g) / y,    var = k / (k - 1) · Σ d_g²,

where c is what a part's value is multiplied by. A part against the day before, c R / R', also has
-c R / R'² (x'_g - R' y'_g) / y' in d_g: users keep their group, so that what they did on both days
is in one term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.metrics.composite_parts import OfPart, WeightedPart
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Family,
    Series,
    Variant,
)
from streamer.metrics.intervals import LEAST_GROUPS, student_t
from streamer.metrics.layout import Layout
from streamer.metrics.reads import Given, Statistic, Sums
from streamer.stats.random_groups import GROUPS

MATURITIES = ("provisional", "mature")
_LABELS = ("composite", "maturity")
_EMPTY = "absent where a part is, or its day before is 0 or not kept"

metric = Declarations()


@dataclass(frozen=True)
class _OfPart:
    """What is read of a part now, and a day before where the part is against that."""

    part: WeightedPart
    horizon_ms: int | None

    def _reads(self, is_day_before: bool) -> tuple[OfPart, ...]:
        raise NotImplementedError

    def _times(self) -> list[tuple[OfPart, ...]]:
        times = (False, True) if self.part.is_against_day_before else (False,)
        return [self._reads(is_day_before) for is_day_before in times]

    def parts(self, layout: Layout) -> Iterator[Statistic]:
        return (p for reads in self._times() for read in reads for p in read.parts(layout))

    def _sums(self, sums: Sums) -> list[list[Any]] | None:
        """What each time's reads give; None where nothing is read, or something is not there."""
        values = [[read.of(sums) for read in reads] for reads in self._times()]
        is_there = all(reads and all(x is not None for x in reads) for reads in values)
        return values if is_there else None


class Term(_OfPart):
    """What a part adds, and where it has a value."""

    def _reads(self, is_day_before: bool) -> tuple[OfPart, ...]:
        return self.part.metric.reads(self.horizon_ms, is_day_before)

    def of(self, sums: Sums) -> tuple[F64, Bools] | None:
        times = self._sums(sums)
        if times is None:
            return None
        (values, present), *past = (self.part.metric.value(*reads) for reads in times)
        for base, is_known in past:
            present = present & is_known & (base != 0)
            values = np.divide(values, base, out=np.zeros(len(values)), where=present)
        return self.part.factor * values, present


def _by_composite(
    of: Declared, read: type[Term] | type[Spread]
) -> Iterator[tuple[Sequence[WeightedPart], Variant]]:
    for name, parts in of.composites.items():
        for maturity in MATURITIES:
            is_mature = maturity == "mature"
            reads = (
                read(part, part.metric.horizon_ms(of.settings) if is_mature else None)
                for part in parts
            )
            yield parts, Variant({"composite": name, "maturity": maturity}, tuple(reads))


def _terms(of: Declared) -> Iterator[Variant]:
    return (variant for _, variant in _by_composite(of, Term))


@metric(
    "composite",
    formula="sum of weight * part / sum of |weight|",
    unit="weighted mean of its parts",
    empty=_EMPTY,
    labels=_LABELS,
    brief=Brief(),
    reads=_terms,
)
def composite(*terms: tuple[F64, Bools]) -> Iterator[Series]:
    """Weighted mean of other metrics, each as it is, divided by a target, or by the same window a
    day before. Parts that need no feedback are the same in both maturities."""
    values = np.sum([value for value, _ in terms], axis=0)
    present: Bools = np.all([there for _, there in terms], axis=0)
    yield Series({}, np.where(present, values, 0.0), present)


# Intervals ---------------------------------------------------------------------------------------


def _moved(x: F64, y: F64) -> tuple[F64, F64, Bools]:
    """R = Σx / Σy, by how much each group moves it, and where enough groups have any."""
    total = y.sum(axis=1)
    n = np.where(total > 0, total, 1.0)
    value = x.sum(axis=1) / n
    moved = (x - value[:, None] * y) / n[:, None]
    present = (np.count_nonzero(y > 0, axis=1) >= LEAST_GROUPS) & (total > 0)
    return value, moved, present


def _occupied(x: F64, y: F64) -> I64:
    found: I64 = np.count_nonzero((x != 0) | (y != 0), axis=1)
    return found


Moved = tuple[F64, F64, Bools, I64]
"""Of a part: what it adds, by how much each group moves that, where it is known, and in how many
groups somebody is."""


class Spread(_OfPart):
    """How groups of users move a part; not there where groups are not counted."""

    def _reads(self, is_day_before: bool) -> tuple[OfPart, ...]:
        return self.part.metric.by_group(self.horizon_ms, is_day_before)

    def of(self, sums: Sums) -> Moved | None:
        times = self._sums(sums)
        if times is None:
            return None
        units = self.part.metric.units
        sides: list[tuple[F64, F64]] = [(x / units, y.astype(np.float64)) for x, y in times]
        now, then = sides[0], sides[1:]
        value, moved, present = _moved(*now)
        occupied = _occupied(*now)
        for past in then:
            base, base_moved, is_known = _moved(*past)
            present = present & is_known & (base != 0)
            base = np.where(present, base, 1.0)
            moved = (moved - (value / base)[:, None] * base_moved) / base[:, None]
            value, occupied = value / base, np.minimum(occupied, _occupied(*past))
        return self.part.factor * value, self.part.factor * moved, present, occupied


def _spreads(of: Declared) -> Iterator[Variant]:
    for parts, (labels, reads) in _by_composite(of, Spread):
        if "intervals" in of.settings.metrics.families:
            is_signed = any(part.factor < 0 or part.metric.is_signed for part in parts)
            yield Variant(labels, (Given(is_signed), *reads))


def _ends_of(spreads: Sequence[Moved], is_signed: bool) -> tuple[F64, F64, Bools]:
    """Of the parts of a composite, and where they are known."""
    value, moved = (np.sum([spread[i] for spread in spreads], axis=0) for i in (0, 1))
    present: Bools = np.all([spread[2] for spread in spreads], axis=0)
    k = np.clip(np.min([spread[3] for spread in spreads], axis=0), 2, GROUPS)
    variance = k / (k - 1) * (moved**2).sum(axis=1)
    reach = student_t(k) * np.sqrt(variance)
    lower = value - reach
    return lower if is_signed else np.maximum(lower, 0.0), value + reach, present


def _declare_end(name: str, place: int) -> None:
    def series(is_signed: bool, *spreads: Moved) -> Iterator[Series]:
        *ends, present = _ends_of(spreads, is_signed)
        yield Series({}, np.where(present, ends[place], 0.0), present)

    metric(
        f"composite_{name}",
        formula=f"{name} end of the 95 % interval",
        unit="weighted mean of its parts",
        empty=f"{_EMPTY}; with data in fewer than {LEAST_GROUPS} of the 16 user groups, with parts"
        " over slates, and where the family intervals is off",
        labels=_LABELS,
        brief=Brief(),
        doc=f"{name.title()} end of the 95 % interval of composite, clustered by user.",
        reads=_spreads,
    )(series)


_declare_end("lower", 0)
_declare_end("upper", 1)


FAMILY = Family("composites", tuple(metric.series))
