"""Traffic: counts, click and conversion rates, and value; ``by_position`` has those by position.

Sources: P the recommender-evaluation primer, J Jurity's metric page (matching CTR).

Four impressions, one click, and a purchase for 12:

    >>> from streamer.testing import value_of
    >>> events = [{"type": "impression", "item_id": item} for item in "abcd"]
    >>> events += [{"type": "click", "item_id": "a"}]
    >>> events += [{"type": "conversion", "item_id": "a", "value": 12}]
    >>> value_of(events, "ctr_ratio"), value_of(events, "cvr_ratio")
    (0.25, 1.0)
    >>> value_of(events, "conversion_value_per_impression")
    3.0
    >>> value_of(events[4:], "ctr_ratio") is None  # no impressions: no rate, rather than 0
    True
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64, Bools
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics import by_position
from streamer.metrics.by_position import POSITIONS, by_position_of
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Family,
    Series,
    Values,
    Variant,
    count,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import NAMED, declare
from streamer.metrics.reads import Statistic
from streamer.metrics.sums import (
    CLICKS,
    CONVERSION_LINES,
    CONVERSIONS,
    IMPRESSIONS,
    VALUE,
    Summed,
    named,
)


def _stats(settings: Any) -> tuple[Stat, ...]:
    kinds = [named("feedback", kind) for kind in (*settings.feedback_kinds, "other")]
    by_position = {"position": POSITIONS}
    return (
        Stat("impressions", in_totals=True),
        Stat("clicks", in_totals=True),
        Stat("conversions", in_totals=True),
        Stat("conversion_lines", in_totals=True),
        Stat("value_high", largest=1 << 28, in_totals=True),
        Stat("value", largest=1 << VALUE_BITS, in_totals=True),
        Stat("clicked"),
        Stat("converted"),
        Stat(
            *("feedback", 1, len(kinds), tuple(kinds)),
            of=tuple((kind, None) for kind in kinds),
            in_totals=True,
        ),
        *(
            Stat(by_position_of(name), width=POSITIONS, of=((name, by_position),))
            for name in ("impressions", "clicks")
        ),
    )


metric = Declarations()


_OF_ANY = (
    Summed(IMPRESSIONS),
    Statistic("feedback", is_always=True),  # a kind that is new was counted as another one
    Statistic(CONVERSION_LINES.name, is_always=True),
)
"""What is there where anything is; feedback in whichever segment."""


def _is_any(shown: I64, feedback: I64, lines: I64) -> Bools:
    found: Bools = np.any([shown != 0, feedback.any(axis=1), lines != 0], axis=0)
    return found


def _by_kind(of: Declared) -> Iterator[Variant]:
    """What reads the feedback of each kind."""
    for i, kind in enumerate((*of.settings.feedback_kinds, "other")):
        name = named("feedback", kind)
        read = Statistic("feedback", first=i, stop=i + 1, sum_name=name)
        yield Variant({"feedback": kind}, (read,))


@metric(
    "impressions_total",
    brief=Brief(),
    formula="impressions",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    scope="total",
    reads=_OF_ANY,
)
def impressions_total(shown: I64, *others: I64) -> Iterator[Series]:
    """Impressions since the state began."""
    yield count(shown, _is_any(shown, *others))


@metric(
    "clicks_total",
    brief=Brief(),
    formula="settled clicks",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    scope="total",
    reads=(Summed(CLICKS), *_OF_ANY),
)
def clicks_total(clicks: I64, *others: I64) -> Iterator[Series]:
    """Settled clicks since the state began. Settled clicks keep their dimensions, so the total
    never falls."""
    yield count(clicks, _is_any(*others))


@metric(
    "conversions_total",
    brief=Brief(),
    formula="settled conversions",
    unit="events",
    empty="absent where it is 0",
    scope="total",
    reads=(Summed(CONVERSIONS),),
)
def conversions_total(conversions: I64) -> Iterator[Series]:
    """Conversions since the state began whose dimensions are settled; an order is one."""
    yield count(conversions)


@metric(
    "conversion_value_total",
    brief=Brief(),
    formula="sum of value of settled conversions",
    unit="currency",
    empty="absent without lines of conversions",
    scope="total",
    reads=(Summed(VALUE), Summed(CONVERSION_LINES)),
)
def conversion_value_total(value: Values, lines: I64) -> Iterator[Series]:
    """Value of settled conversions since the state began; summed in whole micros."""
    yield Series({}, value, lines != 0)


@metric(
    "feedback_total",
    brief=Brief(),
    formula="settled feedback of a kind",
    unit="events",
    empty="absent where it is 0",
    labels=("feedback",),
    scope="total",
    reads=_by_kind,
)
def feedback_total(feedback: I64) -> Iterator[Series]:
    """Events of the clicks topic by kind since the state began; kinds not configured: other."""
    yield count(feedback[:, 0])


@metric(
    "window_impressions",
    brief=Brief(),
    formula="impressions",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    reads=_OF_ANY,
)
def window_impressions(shown: I64, *others: I64) -> Iterator[Series]:
    """Impressions in the window: the support of ctr_ratio and conversion_value_per_impression."""
    yield count(shown, _is_any(shown, *others))


@metric(
    "window_clicks",
    brief=Brief(),
    formula="clicks",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    reads=(Summed(CLICKS), *_OF_ANY),
)
def window_clicks(clicks: I64, *others: I64) -> Iterator[Series]:
    """Clicks in the window: the support of cvr_ratio and conversion_value_per_click."""
    yield count(clicks, _is_any(*others))


@metric(
    "window_conversions",
    brief=Brief(),
    formula="conversions",
    unit="events",
    empty="absent where it is 0",
    reads=(Summed(CONVERSIONS),),
)
def window_conversions(conversions: I64) -> Iterator[Series]:
    """Conversions in the window: an order is one, in the segment of its first line."""
    yield count(conversions)


@metric(
    "window_conversion_lines",
    brief=Brief(),
    formula="lines of conversions",
    unit="events",
    empty="absent where it is 0",
    reads=(Summed(CONVERSION_LINES),),
)
def window_conversion_lines(lines: I64) -> Iterator[Series]:
    """Lines of the conversions in the window, each in its own segment; an order without lines is
    one."""
    yield count(lines)


@metric(
    "window_conversion_value",
    brief=Brief(),
    formula="sum of value",
    unit="currency",
    empty="absent without lines of conversions",
    reads=(Summed(VALUE), Summed(CONVERSION_LINES)),
)
def window_conversion_value(value: Values, lines: I64) -> Iterator[Series]:
    """Value of the conversions in the window, by line; summed in whole micros."""
    yield Series({}, value, lines != 0)


@metric(
    "window_feedback",
    formula="feedback of a kind",
    unit="events",
    empty="absent where it is 0",
    labels=("feedback",),
    reads=_by_kind,
)
def window_feedback(feedback: I64) -> Iterator[Series]:
    """Events of the clicks topic in the window, by kind."""
    yield count(feedback[:, 0])


for name in (
    *("ctr_ratio", "cvr_ratio"),
    *("conversion_value_per_click", "conversion_value_per_impression", "order_value_mean"),
):
    declare(metric, name)


declare(metric, "ctr_attributed_ratio")


@metric(
    "window_ctr_attributed_impressions",
    formula="impressions",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
    reads=NAMED["ctr_attributed_ratio"].reads,
)
def ctr_attributed_impressions(above: I64, below: I64) -> Iterator[Series]:
    """Support of ctr_attributed_ratio: its denominator."""
    yield count(below)


@metric(
    "window_ctr_attributed_clicked",
    formula="impressions with an attributed click",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
    reads=NAMED["ctr_attributed_ratio"].reads,
)
def ctr_attributed_clicked(above: I64, below: I64) -> Iterator[Series]:
    """Numerator of ctr_attributed_ratio."""
    yield count(above)


declare(metric, "cvr_attributed_ratio")


@metric(
    "window_cvr_attributed_clicked",
    formula="clicked impressions",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
    reads=NAMED["cvr_attributed_ratio"].reads,
)
def cvr_attributed_clicked(above: I64, below: I64) -> Iterator[Series]:
    """Support of cvr_attributed_ratio: its denominator."""
    yield count(below)


@metric(
    "window_cvr_attributed_converted",
    formula="clicked impressions with an attributed conversion",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
    reads=NAMED["cvr_attributed_ratio"].reads,
)
def cvr_attributed_converted(above: I64, below: I64) -> Iterator[Series]:
    """Numerator of cvr_attributed_ratio."""
    yield count(above)


FAMILY = Family("traffic", (*metric.series, *by_position.METRICS), _stats)
