"""Ratios of one's own: sums of any fields of events over each other, from ``[[ratios]]``.

An event counts at its own time and under its effective segment, where it has the field and meets
what is asked of it and of the impression that it joined. A value is a whole number of 1e-6, rounded
once (ties to even); sums have two limbs, as those of money. A sketch counts values in buckets by
magnitude: from 0.001 to the largest value its bounds grow by 101/99, so that the harmonic middle of
a bucket is within 1 % of all its members (as in ``metrics.sketch``), below 0 likewise. Smaller
magnitudes count as 0.

Four impressions, of which three say how long they took; two are on the surface `home`:

    >>> from streamer.testing import value_of
    >>> took = [{"latency_ms": 80}, {"latency_ms": 120, "surface": "home"}, {"latency_ms": 400}, {}]
    >>> shown = [{"type": "impression", "item_id": "a", **said} for said in took]
    >>> latency = {"kind": "impressions", "field": "latency_ms"}
    >>> said = {"kind": "impressions", "where": {"latency_ms": {">=": 0}}}
    >>> ratios = {"mean": said, "rate": {"kind": "impressions"}, "each": {"kind": "people"}}
    >>> settings = {"ratios": [
    ...     {"name": name, "numerator": latency, "denominator": below, "quantiles": name == "mean"}
    ...     for name, below in ratios.items()
    ... ]}
    >>> def read(name, of, **labels):
    ...     return round(value_of(shown, name, settings, ratio=of, **labels), 1)
    >>> read("window_ratio_numerator", "mean"), read("window_ratio_denominator", "mean")
    (600.0, 3.0)
    >>> [read("ratio", name) for name in ratios]
    [200.0, 150.0, 600.0]
    >>> read("ratio_quantile", "mean", quantile="0.5")
    120.0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics import traffic
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Family,
    Form,
    Series,
    Values,
    Variant,
    count,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import PerUser, Ratio, RatioBy, declare
from streamer.metrics.reads import Given, Statistic, Users
from streamer.metrics.sketch import QUANTILES, at_rank
from streamer.metrics.sums import (
    CLICKS,
    CONVERSION_LINES,
    CONVERSIONS,
    IMPRESSIONS,
    SESSIONS,
    UNITS,
    VALUE,
    Sum,
    Summed,
    named,
)
from streamer.metrics.users import USERS
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.settings.own_metrics import (
    PEOPLE,
    OwnRatio,
    RatioPart,
    in_words,
    own_sum,
    parts_of,
)

NAME, FAMILY_NAME = "ratio", "ratios"
_UNIT = "units of the ratio"
_UP_TO_0, _SMALL, _LAST = 999, 10**15, int(limits.MAX_AMOUNT) * 10**6
"""Largest magnitudes that count as 0, that the first sketch tells apart, and that a value has; in
1e-6."""
_OF_PEOPLE = Sum(PEOPLE, "people with an impression")
_SLATES = Sum(named("slates", "all"), "slates")
_PLAIN = {
    ("impressions", None): IMPRESSIONS,
    ("clicks", None): CLICKS,
    ("conversions", None): CONVERSIONS,
    ("lines", None): CONVERSION_LINES,
    ("conversions", "value"): VALUE,
    ("lines", "value"): VALUE,
}
"""Kind and field → what the family `traffic` adds up, too."""
_COUNTED = {"sessions": SESSIONS, "slates": _SLATES, PEOPLE: _OF_PEOPLE}
"""Likewise what is counted otherwise."""
_OF_EVENTS = {stat.name: stat for stat in traffic.OF_EVENTS}
HIGH_BITS = 28
"""Of a high limb."""
_WITH_TAILS = ("value", "dwell_ms")
"""Fields that are above 0 on the whole."""


def _upper_bounds(first: int, last: int) -> list[int]:
    bounds = [first]
    while bounds[-1] < last:
        low = bounds[-1] + 1
        bounds.append(min(low * 101 // 99, last))
    return bounds


_BOUNDS = _upper_bounds(_UP_TO_0, _SMALL), _upper_bounds(_SMALL, _LAST)
"""Of both sketches: larger magnitudes are in the last bucket, smaller ones in that of 0. A state
may be older than the second."""
_BEYOND = len(_BOUNDS[1]) - 1
UPPER = np.array([*_BOUNDS[0], *_BOUNDS[1][1:]], np.int64)
"""Largest magnitude of each bucket, in 1e-6; up to the first a value counts as 0."""
_MIDDLE = 2.0 * (UPPER[:-1] + 1) * UPPER[1:] / (UPPER[:-1] + 1 + UPPER[1:]) / UNITS["own.sum"]
MIDDLE = np.concatenate((-_MIDDLE[::-1], [0.0], _MIDDLE))
"""What values of each bucket are shown as: those below 0 come first."""
BUCKETS = len(MIDDLE)


def merged(small: I64, large: I64) -> I64:
    """Counts of all buckets, from those of both sketches."""
    below, above = large[:, :_BEYOND], large[:, -_BEYOND:]
    counts = np.concatenate((below, small, above), axis=1)
    counts[:, _BEYOND] -= below.sum(axis=1)
    counts[:, -_BEYOND - 1] -= above.sum(axis=1)
    return counts


def quantile(counts: I64, numerator: int, denominator: int) -> F64:
    """The value at rank ceil(q·n), q = numerator/denominator, of each row of bucket counts; 0 for
    a row without values.

    >>> counts = np.zeros((1, BUCKETS), np.int64)
    >>> of_0 = BUCKETS // 2
    >>> counts[0, [of_0 - 500, of_0, of_0 + 500]] = 1
    >>> [quantile(counts, *share).round(2).tolist() for share in ((1, 3), (1, 2), (1, 1))]
    [[-22.37], [0.0], [22.37]]
    """
    return at_rank(counts, MIDDLE, numerator, denominator)


# Sums ---------------------------------------------------------------------------------------------


def part_sum(
    part: RatioPart, settings: Settings, is_of_users: bool = False, is_amount: bool = False
) -> Sum:
    """What a part of a ratio is. ``is_amount``: in units of values, also where it only counts."""
    text = in_words(part)
    if part.kind in _COUNTED and part.field is None:
        return replace(_COUNTED[part.kind], text=text)
    plain = _PLAIN.get((part.kind, part.field))
    is_whole = not part.where and not is_of_users
    if plain is not None and is_whole and plain.is_large >= is_amount:
        return replace(plain, text=text)
    of = own_sum(part, settings.dimension_names, is_of_users).id
    if part.field is None and not is_amount:
        return Sum(named("own.count", of), text)
    is_signed = part.field is not None and part.field not in _WITH_TAILS
    return Sum(named("own.sum", of), text, is_large=True, is_signed=is_signed)


def sums_of(ratio: OwnRatio, settings: Settings) -> tuple[Sum, Sum | None]:
    """Numerator and denominator."""
    below = ratio.denominator
    if below is None:
        return part_sum(ratio.numerator, settings), None
    is_of_users = below.kind == PEOPLE
    divisor = part_sum(below, settings)
    return part_sum(ratio.numerator, settings, is_of_users, divisor.is_large), divisor


def ratio_of(ratio: OwnRatio, settings: Settings) -> Ratio | None:
    """A ratio as others are; None for a sum."""
    above, below = sums_of(ratio, settings)
    if below is None:
        return None
    is_count = not above.is_large and not below.is_large
    return Ratio(
        *(f"{NAME}@{ratio.name}", ratio.title or ratio.name, above, below, ""),
        {"percent": "ratio"}.get(ratio.unit, ratio.unit or "number"),
        is_weighted=not is_count,
    )


def per_user(ratio: OwnRatio, settings: Settings) -> PerUser:
    """The numerator by user, which experiments compare."""
    above, _ = sums_of(ratio, settings)
    name, title = f"{NAME}@{ratio.name}", ratio.title or ratio.name
    return PerUser(name, title, above, form=form_of(ratio))


def form_of(ratio: OwnRatio) -> Form:
    """How its values are written."""
    forms: dict[str, Form] = {"percent": "percent", "seconds": "seconds"}
    return forms.get(ratio.unit, "number")


def is_per_user(ratio: OwnRatio) -> bool:
    """Whether experiments compare it by user: a sum, or one over people."""
    return ratio.denominator is None or ratio.denominator.kind == PEOPLE


def sketched(ratio: OwnRatio, settings: Settings) -> list[str]:
    """The count of the values of a ratio's numerator, and the statistics of both sketches."""
    (part, is_of_users), *_ = parts_of(ratio)
    of = own_sum(part, settings.dimension_names, is_of_users).id
    return [named(name, of) for name in ("own.count", "own.sketch", "own.sketch_of_large")]


def _stats(settings: Settings) -> tuple[Stat, ...]:
    found = []
    for ratio in settings.ratios:
        for of in filter(None, sums_of(ratio, settings)):
            for name in () if of.name == PEOPLE else of.names:
                limb = VALUE_BITS if name == of.name else HIGH_BITS
                own = Stat(name, largest=1 << limb if of.is_large else 1)
                found.append(_OF_EVENTS.get(name, own))
        if ratio.quantiles:
            events, *sketches = sketched(ratio, settings)
            found.append(Stat(events))
            for name, bounds in zip(sketches, _BOUNDS, strict=True):
                by = ((events, {"magnitude": bounds}),)
                found.append(Stat(name, width=2 * len(bounds) - 1, of=by))
    return tuple(found)


# Metrics ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnRatios(RatioBy):
    """A ratio for each of ``[[ratios]]`` that has a denominator."""

    label: ClassVar[str] = NAME
    setting: ClassVar[str] = FAMILY_NAME
    has_maturity: ClassVar[bool] = False
    brief: Brief | None = field(default=Brief(), kw_only=True)

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for each in settings.ratios:
            if (ratio := ratio_of(each, settings)) is not None:
                yield {self.label: each.name}, ratio

    def reads(self, of: Declared) -> Iterator[Variant]:
        for labels, ratio in self.variants(of.settings):
            yield Variant(labels, (Given(ratio), Summed(ratio.above), denominator_of(ratio)))


def denominator_of(ratio: Ratio) -> Summed | Users:
    """What is read of it."""
    return Users(USERS) if ratio.below.name == PEOPLE else Summed(ratio.below)


OWN_RATIOS = OwnRatios(
    *("ratio", "Ratio"),
    "A ratio of `[[ratios]]`, whose numerator and denominator count each by their own event time.",
    "numerator / denominator",
    "absent without a denominator",
    unit=_UNIT,
    support="window_ratio_denominator",
)
"""They have intervals, and experiments and alerts compare them."""


def _numerators(of: Declared) -> Iterator[Variant]:
    for each in of.settings.ratios:
        yield Variant({NAME: each.name}, (Summed(sums_of(each, of.settings)[0]),))


def _denominators(of: Declared) -> Iterator[Variant]:
    for labels, ratio in OWN_RATIOS.variants(of.settings):
        yield Variant(labels, (denominator_of(ratio),))


def _of_quantiles(of: Declared) -> Iterator[Variant]:
    for each in of.settings.ratios:
        if each.quantiles:
            events, small, large = sketched(each, of.settings)
            sketches = Statistic(small, sum_name=events), Statistic(large, is_always=True)
            yield Variant({NAME: each.name}, (*sketches, Statistic(events)))


metric = Declarations()
declare(metric, OWN_RATIOS)


def _counted(values: Values) -> Iterator[Series]:
    yield count(values)


metric.row(
    *("window_ratio_numerator", f"{_UNIT} in all", "sum of the field, or number of events"),
    "Numerator of a ratio of `[[ratios]]` in the window, in whole millionths; of a sum it is the"
    " metric.",
    _counted,
    labels=(NAME,),
    brief=Brief(),
    reads=_numerators,
)
metric.row(
    *("window_ratio_denominator", f"{_UNIT} in all", "sum of the field, or number of events"),
    "Denominator of a ratio of `[[ratios]]` in the window: the support of `ratio`.",
    _counted,
    labels=(NAME,),
    brief=Brief(),
    reads=_denominators,
)


@metric(
    "ratio_quantile",
    formula="value at rank ceil(q n) of the n values",
    unit="units of the numerator",
    empty="absent without events with a value, and without `quantiles = true`",
    labels=(NAME, "quantile"),
    brief=Brief(),
    reads=_of_quantiles,
)
def ratio_quantile(small: I64, large: I64, events: I64) -> Iterator[Series]:
    """Quantiles of the field of a ratio's numerator from a sketch, with a relative error of at most
    1 % from 0.001 on, likewise below 0. Magnitudes below 0.001 are shown as 0."""
    counts = merged(small, large)
    for label, share in QUANTILES.items():
        yield Series({"quantile": label}, quantile(counts, *share), events != 0)


FAMILY = Family(FAMILY_NAME, tuple(metric.series), _stats)
