"""Custom metrics: sums, means and quantiles of any numeric field of events, from ``[[custom]]``.

An event counts where it carries the field, at its own time and under its effective segment. A value
is a whole number of 1e-6, rounded once (ties to even); sums have two limbs, as those of money. A
sketch counts values in buckets by magnitude: from 0.001 to the largest value its bounds grow by
101/99, so that the harmonic middle of a bucket is within 1 % of all its members (as in
``metrics.sketch``), below 0 likewise. Smaller magnitudes count as 0.

Four impressions, of which three say how long they took; two are on the surface `home`:

    >>> from streamer.testing import value_of
    >>> took = [{"latency_ms": 80}, {"latency_ms": 120, "surface": "home"}, {"latency_ms": 400}, {}]
    >>> shown = [{"type": "impression", "item_id": "a", **said} for said in took]
    >>> latency = {"kind": "impressions", "field": "latency_ms"}
    >>> home = {"name": "home", **latency, "where": {"surface": ["home"]}}
    >>> settings = {"custom": [{"name": "latency", **latency, "quantiles": True}, home]}
    >>> def read(name, **labels):
    ...     return round(value_of(shown, name, settings, **{"custom": "latency", **labels}), 1)
    >>> read("window_custom_value"), read("custom_mean"), read("window_custom_events")
    (600.0, 200.0, 3.0)
    >>> read("custom_per_impression"), read("custom_per_user")
    (150.0, 600.0)
    >>> read("custom_quantile", quantile="0.5"), read("custom_mean", custom="home")
    (120.0, 120.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Family,
    Series,
    Variant,
    quotient,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import PerUser, Ratio, RatioBy, declare
from streamer.metrics.reads import Read, Statistic, Users
from streamer.metrics.sketch import QUANTILES, at_rank
from streamer.metrics.sums import IMPRESSIONS, UNITS, Sum, Summed, named
from streamer.metrics.users import USERS
from streamer.settings import limits
from streamer.settings.model import Settings

NAME = "custom"
_UNIT = "units of the field"
PER_USER = "custom_per_user"
_UP_TO_0, _SMALL, _LAST = 999, 10**15, int(limits.MAX_CUSTOM_VALUE) * 10**6
"""Largest magnitudes that count as 0, that the first sketch tells apart, and that a value has; in
1e-6."""


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
_MIDDLE = 2.0 * (UPPER[:-1] + 1) * UPPER[1:] / (UPPER[:-1] + 1 + UPPER[1:]) / UNITS["custom.sum"]
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


def events_of(custom: str) -> Sum:
    """The events with a value."""
    return Sum(named("custom.events", custom), "events with a value")


def sum_of(custom: str) -> Sum:
    """The sum of the values."""
    name = named("custom.sum", custom)
    return Sum(name, "sum of values", is_large=True, is_signed=True)


def sum_of_users(custom: str) -> Sum:
    """The sum of the values of events that have a user."""
    name = named("custom.sum_of_users", custom)
    return Sum(name, "sum of values of users", is_large=True, is_signed=True)


def sketches_of(custom: str) -> tuple[str, str]:
    """The statistics of both sketches."""
    return named("custom.sketch", custom), named("custom.sketch_of_large", custom)


def _stats(settings: Settings) -> tuple[Stat, ...]:
    """Without the family `engagement` users are not counted."""
    found = []
    has_users = "engagement" in settings.families
    for custom in settings.custom:
        events = events_of(custom.name).name
        found.append(Stat(events))
        for of in (sum_of(custom.name), *([sum_of_users(custom.name)] if has_users else [])):
            assert of.high is not None
            found.append(Stat(of.name, largest=1 << VALUE_BITS))
            found.append(Stat(of.high, largest=1 << 28))
        if custom.quantiles:
            for name, bounds in zip(sketches_of(custom.name), _BOUNDS, strict=True):
                by = ((events, {"magnitude": bounds}),)
                found.append(Stat(name, width=2 * len(bounds) - 1, of=by))
    return tuple(found)


def core_filters(settings: Settings) -> list[list[tuple[int, tuple[str, ...]]]]:
    """Places of dimensions, and the values under which the events of each custom metric count."""
    names = settings.dimension_names
    return [
        [(names.index(dimension), values) for dimension, values in custom.where.items()]
        for custom in settings.custom
    ]


@dataclass(frozen=True)
class ByCustom(RatioBy):
    """A ratio for each of ``[[custom]]``. ``family``: the one without which windows have nothing
    below."""

    label: ClassVar[str] = NAME
    setting: ClassVar[str] = NAME
    has_maturity: ClassVar[bool] = False
    below: Callable[[str], Sum]
    family: str = NAME
    brief: Brief | None = field(default=Brief(), kw_only=True)

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for custom in settings.custom:
            yield {self.label: custom.name}, self.of(custom.name)

    def of(self, custom: str) -> Ratio:
        """The ratio of one custom metric."""
        name, title = (f"{text}@{custom}" for text in (self.name, self.title))
        return Ratio(name, title, sum_of(custom), self.below(custom), self.doc, self.unit)

    def reads(self, of: Declared) -> Iterator[Variant]:
        """Those of all custom metrics."""
        if self.family in of.settings.families:
            yield from super().reads(of)


BY_CUSTOM = (
    ByCustom(
        *("custom_mean", "Custom mean"),
        "Exact mean of the field over the events that have it.",
        "sum of values / events with a value",
        "absent without events with a value",
        events_of,
        unit=_UNIT,
        support="window_custom_events",
    ),
    ByCustom(
        *("custom_per_impression", "Custom per impression"),
        "Sum of the field divided by all impressions of the segment, each by its own event time.",
        "sum of values / impressions",
        "absent without impressions, and without the family `traffic`",
        lambda custom: IMPRESSIONS,
        "traffic",
        unit=f"{_UNIT} per impression",
        support="window_impressions",
    ),
)
"""Means and rates: they have intervals, and experiments and alerts compare them."""


def per_user(settings: Settings) -> dict[str, PerUser]:
    """Custom metric → its sum by user, which experiments compare."""
    return {
        each.name: PerUser(
            f"{PER_USER}@{each.name}", f"Custom per user@{each.name}", sum_of(each.name)
        )
        for each in settings.custom
    }


def _by_custom(*sums: Callable[[str], Read]) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these of each custom metric."""

    def variants(of: Declared) -> Iterator[Variant]:
        for custom in of.settings.custom:
            yield Variant({NAME: custom.name}, tuple(read(custom.name) for read in sums))

    return variants


def by_user(*sums: Callable[[Sum], Read]) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these of the sum of users' values, and the users, of each custom metric."""

    def variants(of: Declared) -> Iterator[Variant]:
        for custom in of.settings.custom if "engagement" in of.settings.families else ():
            reads = (read(sum_of_users(custom.name)) for read in sums)
            yield Variant({NAME: custom.name}, (*reads, Users(USERS)))

    return variants


def _of_quantiles(of: Declared) -> Iterator[Variant]:
    for custom in of.settings.custom:
        if custom.quantiles:
            small, large = sketches_of(custom.name)
            name = events_of(custom.name).name
            sketches = Statistic(small, sum_name=name), Statistic(large, is_always=True)
            yield Variant({NAME: custom.name}, (*sketches, Statistic(name)))


metric = Declarations()


@metric(
    "window_custom_value",
    formula="sum of values",
    unit=f"{_UNIT} in all",
    empty="absent without events with a value",
    labels=(NAME,),
    brief=Brief(),
    reads=_by_custom(lambda custom: Summed(events_of(custom)), lambda c: Summed(sum_of(c))),
)
def window_custom_value(events: I64, values: F64) -> Iterator[Series]:
    """Sum of the field in the window, in whole millionths."""
    yield Series({}, values, events != 0)


declare(metric, *BY_CUSTOM)
metric.row(
    *(PER_USER, f"{_UNIT} per user", "sum of values of users / users with an impression"),
    "Sum of the field in events with a user, divided by the users with an impression in the"
    " window.",
    quotient,
    empty="absent without users, and without the family `engagement`",
    labels=(NAME,),
    brief=Brief(),
    support="window_users",
    reads=by_user(Summed),
)


@metric(
    "custom_quantile",
    formula="value at rank ceil(q n) of the n values",
    unit=_UNIT,
    empty="absent without events with a value, and without `quantiles = true`",
    labels=(NAME, "quantile"),
    brief=Brief(),
    reads=_of_quantiles,
)
def custom_quantile(small: I64, large: I64, events: I64) -> Iterator[Series]:
    """Quantiles of the field from a sketch, with a relative error of at most 1 % from 0.001 on,
    likewise below 0. Magnitudes below 0.001 are shown as 0."""
    counts = merged(small, large)
    for label, share in QUANTILES.items():
        yield Series({"quantile": label}, quantile(counts, *share), events != 0)


metric.count(
    *("window_custom_events", "events", "events with a value"),
    "Support of window_custom_value, custom_mean and custom_quantile.",
    _by_custom(lambda custom: Summed(events_of(custom))),
    labels=(NAME,),
    brief=Brief(),
)

FAMILY = Family(NAME, tuple(metric.series), _stats)
