"""What the core adds up for the metrics of ``[[custom]]``: sums, and sketches of their values.

A value is a whole number of 1e-6, rounded once (ties to even); sums have two limbs, as those of
money have. A sketch counts values in buckets by magnitude: from 0.001 to 1e9 its bounds grow by
101/99, so that the harmonic middle of a bucket is within 1 % of all its members (as in
``metrics.sketch``), likewise below 0. Smaller magnitudes count as 0, larger ones as 1e9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics.layout import Stat
from streamer.metrics.named_sums import NamedSums
from streamer.metrics.ratios import MICROS, Quantity
from streamer.metrics.sketch import at_rank
from streamer.settings.model import Settings
from streamer.settings.own_metrics import Custom

PREFIX = "custom."
"""How the names of these sums begin."""
_EVENTS, _SUM, _HIGH = "events", "sum", "sum_high"
_OF_USERS, _OF_USERS_HIGH = "sum_of_users", "sum_of_users_high"
_UP_TO_0, _LAST = 999, 10**15
"""Largest magnitudes that count as 0, and that have a bucket; in 1e-6."""


def _upper_bounds() -> I64:
    bounds = [_UP_TO_0]
    while bounds[-1] < _LAST:
        low = bounds[-1] + 1
        bounds.append(min(low * 101 // 99, _LAST))
    return np.array(bounds, np.int64)


UPPER = _upper_bounds()
"""Largest magnitude of each bucket, in 1e-6; up to the first a value counts as 0."""
_MIDDLE = 2.0 * (UPPER[:-1] + 1) * UPPER[1:] / (UPPER[:-1] + 1 + UPPER[1:]) / MICROS
MIDDLE = np.concatenate((-_MIDDLE[::-1], [0.0], _MIDDLE))
"""What values of each bucket are shown as: those below 0 come first."""
BUCKETS = len(MIDDLE)


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


# Sums --------------------------------------------------------------------------------------------


def name_of(quantity: str, custom: str) -> str:
    """The name of a sum: as a statistic, and as a component of experiments and alerts.

    >>> name_of("sum", "latency")
    'custom.latency.sum'
    """
    return f"{PREFIX}{custom}.{quantity}"


def events_of(custom: str) -> Quantity:
    """The events with a value."""
    name = name_of(_EVENTS, custom)
    return Quantity(name, "events with a value", (name,))


def sum_of(custom: str) -> Quantity:
    """The sum of the values."""
    low, high = (name_of(each, custom) for each in (_SUM, _HIGH))
    return Quantity(low, "sum of values", (high, low), MICROS, is_signed=True)


def sum_of_users(custom: str) -> Quantity:
    """The sum of the values of events that have a user."""
    low, high = (name_of(each, custom) for each in (_OF_USERS, _OF_USERS_HIGH))
    return Quantity(low, "sum of values of users", (high, low), MICROS, is_signed=True)


def sketch_of(custom: str) -> str:
    """The statistic of the sketch."""
    return name_of("sketch", custom)


def core_name(name: str, settings: Settings) -> dict[str, Any]:
    """What the core calls the sum of this name."""
    custom, _, quantity = name.removeprefix(PREFIX).partition(".")
    return {"metric": [each.name for each in settings.custom].index(custom), "quantity": quantity}


def _sums(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Low and high limbs; without the family `engagement` users are not counted."""
    of_users = ((_OF_USERS, _OF_USERS_HIGH),) if "engagement" in settings.families else ()
    return ((_SUM, _HIGH), *of_users)


def names(settings: Settings) -> tuple[str, ...]:
    """The sums of all custom metrics, in the order that they have by group of users."""
    of_each = (_EVENTS, *(name for limbs in _sums(settings) for name in limbs))
    return tuple(name_of(each, custom.name) for custom in settings.custom for each in of_each)


SUMS = NamedSums(PREFIX, "custom", "custom_by_user_group", names, core_name)


def stats(settings: Settings) -> tuple[Stat, ...]:
    """The statistics of the family."""
    found = []
    for custom in settings.custom:
        found.append(Stat(name_of(_EVENTS, custom.name), "events"))
        for low, high in _sums(settings):
            found.append(Stat(name_of(low, custom.name), "1e-6", largest=1 << VALUE_BITS))
            unit = f"2**{VALUE_BITS} of 1e-6"
            found.append(Stat(name_of(high, custom.name), unit, largest=1 << 28))
        if custom.quantiles:
            found.append(Stat(sketch_of(custom.name), "events by bucket", width=BUCKETS))
    return (*found, *SUMS.group_stats(settings, 1 << VALUE_BITS))


def core_spec(settings: Settings) -> dict[str, Any]:
    """The core's spec of filters, sums and sketches."""
    names = settings.dimension_names

    def metric(custom: Custom) -> dict[str, Any]:
        only = [(names.index(dimension), values) for dimension, values in custom.where.items()]
        return {"only": only, "sketch": sketch_of(custom.name) if custom.quantiles else None}

    return {
        "metrics": [metric(custom) for custom in settings.custom],
        "sums": SUMS.core_spec(settings),
        "upper": UPPER.tolist() if any(custom.quantiles for custom in settings.custom) else [],
    }
