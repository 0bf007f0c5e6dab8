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

from collections.abc import Iterator

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.metrics.composite_parts import Read, WeightedPart
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Family,
    Series,
    Sums,
    remembered,
)
from streamer.metrics.intervals import LEAST_GROUPS, student_t
from streamer.metrics.sums import read
from streamer.stats.random_groups import GROUPS

MATURITIES = ("provisional", "mature")
_LABELS = ("composite", "maturity")
_EMPTY = "absent where a part is, or its day before is 0 or not kept"

metric = Declarations()


def _readers(w: Sums, part: WeightedPart, maturity: str) -> tuple[Read, Read]:
    """What reads the statistics of a part, now and a day before."""
    horizon_ms = part.metric.horizon_ms(w.settings) if maturity == "mature" else None
    return (lambda name: read(w, name, horizon_ms)), (lambda name: w.day_before(name, horizon_ms))


def _term(w: Sums, part: WeightedPart, maturity: str) -> tuple[F64, Bools] | None:
    """What a part adds, and where it has a value."""
    of_now, of_past = _readers(w, part, maturity)
    now = part.metric.value(of_now)
    if now is None:
        return None
    values, present = now
    if part.is_against_day_before:
        past = part.metric.value(of_past)
        if past is None:
            return None
        present = present & past[1] & (past[0] != 0)
        values = np.divide(values, past[0], out=np.zeros(len(values)), where=present)
    return part.factor * values, present


@metric(
    "composite",
    formula="sum of weight * part / sum of |weight|",
    unit="weighted mean of its parts",
    empty=_EMPTY,
    labels=_LABELS,
    brief=Brief(),
)
def composite(w: Sums) -> Iterator[Series]:
    """Weighted mean of other metrics, each as it is, divided by a target, or by the same window a
    day before. Parts that need no feedback are the same in both maturities."""
    for name, parts in w.composites.items():
        with w.apart():
            for maturity in MATURITIES:
                terms = [_term(w, part, maturity) for part in parts]
                found = [term for term in terms if term is not None]
                if len(found) == len(terms):
                    values = np.sum([value for value, _ in found], axis=0)
                    present: Bools = np.all([there for _, there in found], axis=0)
                    labels = {"composite": name, "maturity": maturity}
                    yield Series(labels, np.where(present, values, 0.0), present)


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


Spread = tuple[F64, F64, Bools, I64]
"""Of a part: what it adds, by how much each group moves that, where it is known, and in how many
groups somebody is."""


def _spread(w: Sums, part: WeightedPart, maturity: str) -> Spread | None:
    """None where groups are not counted."""
    of_now, of_past = _readers(w, part, maturity)
    now = part.metric.by_group(of_now, w.layout)
    if now is None:
        return None
    value, moved, present = _moved(*now)
    occupied = _occupied(*now)
    if part.is_against_day_before:
        past = part.metric.by_group(of_past, w.layout)
        if past is None:
            return None
        base, base_moved, is_known = _moved(*past)
        present = present & is_known & (base != 0)
        base = np.where(present, base, 1.0)
        moved = (moved - (value / base)[:, None] * base_moved) / base[:, None]
        value, occupied = value / base, np.minimum(occupied, _occupied(*past))
    return part.factor * value, part.factor * moved, present, occupied


def _ends(w: Sums) -> Iterator[tuple[dict[str, str], F64, F64, Bools]]:
    """Labels, and both ends of each interval."""
    if "intervals" not in w.settings.metrics.families:
        return
    for name, parts in w.composites.items():
        with w.apart():
            for maturity in MATURITIES:
                spreads = [_spread(w, part, maturity) for part in parts]
                found = [spread for spread in spreads if spread is not None]
                if len(found) == len(spreads):
                    is_signed = any(part.factor < 0 or part.metric.is_signed for part in parts)
                    labels = {"composite": name, "maturity": maturity}
                    yield labels, *_ends_of(found, is_signed)


def _ends_of(spreads: list[Spread], is_signed: bool) -> tuple[F64, F64, Bools]:
    """Of the parts of a composite, and where they are known."""
    value, moved = (np.sum([spread[i] for spread in spreads], axis=0) for i in (0, 1))
    present: Bools = np.all([spread[2] for spread in spreads], axis=0)
    k = np.clip(np.min([spread[3] for spread in spreads], axis=0), 2, GROUPS)
    variance = k / (k - 1) * (moved**2).sum(axis=1)
    reach = student_t(k) * np.sqrt(variance)
    lower = value - reach
    return lower if is_signed else np.maximum(lower, 0.0), value + reach, present


def _declare_end(name: str, place: int) -> None:
    def series(w: Sums) -> Iterator[Series]:
        for found in remembered(w, "composite", _ends):
            labels, end, present = found[0], (found[1], found[2])[place], found[3]
            yield Series(labels, np.where(present, end, 0.0), present)

    metric(
        f"composite_{name}",
        formula=f"{name} end of the 95 % interval",
        unit="weighted mean of its parts",
        empty=f"{_EMPTY}; with data in fewer than {LEAST_GROUPS} of the 16 user groups, with parts"
        " over slates, and where the family intervals is off",
        labels=_LABELS,
        brief=Brief(),
        doc=f"{name.title()} end of the 95 % interval of composite, clustered by user.",
    )(series)


_declare_end("lower", 0)
_declare_end("upper", 1)


FAMILY = Family("composites", tuple(metric.series))
