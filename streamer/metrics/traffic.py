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
from functools import partial
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
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
    REFUND_VALUE,
    REFUNDS,
    REQUESTS,
    VALUE,
    Summed,
    named,
)

OF_EVENTS = (
    Stat("impressions", in_totals=True),
    Stat("clicks", in_totals=True),
    Stat("conversions", in_totals=True),
    Stat("conversion_lines", in_totals=True),
    Stat("value_high", largest=1 << 28, in_totals=True),
    Stat("value", largest=1 << VALUE_BITS, in_totals=True),
)
_OF_REFUNDS = (
    Stat("refunds", in_totals=True),
    Stat("refund_value_high", largest=1 << 28, in_totals=True),
    Stat("refund_value", largest=1 << VALUE_BITS, in_totals=True),
)
"""What ratios are made of, too."""


def _stats(settings: Any) -> tuple[Stat, ...]:
    kinds = [named("feedback", kind) for kind in (*settings.feedback_kinds, "other")]
    by_position = {"position": POSITIONS}
    return (
        *OF_EVENTS,
        *_OF_REFUNDS,
        Stat("requests"),
        Stat("empty_slates"),
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


def _where_any(counted: Values, *read: I64) -> Iterator[Series]:
    """A count, present where any of what is read is not 0."""
    found = [each != 0 if each.ndim == 1 else each.any(axis=1) for each in read]
    yield count(counted, np.any(found, axis=0))


def _by_kind(of: Declared) -> Iterator[Variant]:
    """What reads the feedback of each kind."""
    for i, kind in enumerate((*of.settings.feedback_kinds, "other")):
        name = named("feedback", kind)
        read = Statistic("feedback", first=i, stop=i + 1, sum_name=name)
        yield Variant({"feedback": kind}, (read,))


def _column(feedback: I64) -> Iterator[Series]:
    yield count(feedback[:, 0])


_NO_EVENTS = "absent without impressions, feedback and conversions"
_NO_LINES = "absent without lines of conversions and refunds"
_IMPRESSIONS, _CLICKS = ((Summed(of), *_OF_ANY) for of in (IMPRESSIONS, CLICKS))
_VALUE = (Summed(VALUE), Summed(CONVERSION_LINES), Statistic(REFUNDS.name, is_always=True))

metric.count(
    *("impressions_total", "events", "impressions"),
    "Impressions since the state began.",
    *(_IMPRESSIONS, _where_any),
    empty=_NO_EVENTS,
    scope="total",
    brief=Brief(),
)
metric.count(
    *("clicks_total", "events", "settled clicks"),
    "Settled clicks since the state began. Settled clicks keep their dimensions, so the total"
    " never falls.",
    *(_CLICKS, _where_any),
    empty=_NO_EVENTS,
    scope="total",
    brief=Brief(),
)
metric.count(
    *("conversions_total", "events", "settled conversions"),
    "Conversions since the state began whose dimensions are settled; an order is one, also where it"
    " is refunded.",
    (Summed(CONVERSIONS),),
    scope="total",
    brief=Brief(),
)
metric.count(
    *("conversion_value_total", "currency", "sum of value above 0 of settled conversions"),
    "Value of settled conversions since the state began, without refunds; summed in whole micros.",
    *(_VALUE, _where_any),
    empty=_NO_LINES,
    scope="total",
    brief=Brief(),
)
metric.count(
    *("refunds_total", "events", "settled refunds"),
    "Refunds since the state began whose dimensions are settled, of whole orders and of parts.",
    (Summed(REFUNDS),),
    scope="total",
    brief=Brief(),
)
metric.count(
    *("refund_value_total", "currency", "sum of value below 0 of settled conversions"),
    "What settled refunds gave back since the state began, as a positive number.",
    (Summed(REFUND_VALUE),),
    scope="total",
    brief=Brief(),
)
metric.count(
    *("feedback_total", "events", "settled feedback of a kind"),
    "Events of the clicks topic by kind since the state began; kinds not configured: other.",
    *(_by_kind, _column),
    labels=("feedback",),
    scope="total",
    brief=Brief(),
)
metric.count(
    *("window_impressions", "events", "impressions"),
    "Impressions in the window: the support of ctr_ratio and conversion_value_per_impression.",
    *(_IMPRESSIONS, _where_any),
    empty=_NO_EVENTS,
    brief=Brief(),
)
metric.count(
    *("window_clicks", "events", "clicks"),
    "Clicks in the window: the support of cvr_ratio and conversion_value_per_click.",
    *(_CLICKS, _where_any),
    empty=_NO_EVENTS,
    brief=Brief(),
)
metric.count(
    *("window_conversions", "events", "conversions"),
    "Conversions in the window: an order is one, in the segment of its first line; one refunded"
    " is one less.",
    (Summed(CONVERSIONS),),
    brief=Brief(),
)
metric.count(
    *("window_conversion_lines", "events", "lines of conversions"),
    "Lines of the conversions in the window, each in its own segment; an order without lines is"
    " one.",
    (Summed(CONVERSION_LINES),),
    brief=Brief(),
)
metric.count(
    *("window_conversion_value", "currency", "sum of value"),
    "Value of the conversions in the window less its refunds, by line; summed in whole micros.",
    *(_VALUE, _where_any),
    empty=_NO_LINES,
    brief=Brief(),
)
metric.count(
    *("window_refunds", "events", "refunds"),
    "Refunds in the window, of whole orders and of parts.",
    (Summed(REFUNDS),),
    brief=Brief(),
)
metric.count(
    *("window_refund_value", "currency", "sum of value below 0, as a positive number"),
    "What refunds in the window gave back; with window_conversion_value it is the value of sales.",
    (Summed(REFUND_VALUE),),
    brief=Brief(),
)
metric.count(
    *("window_requests", "slates", "requests"),
    "Slates in the window and events with `items = []`: the support of zero_results_ratio.",
    (Summed(REQUESTS),),
    brief=Brief(),
)
metric.count(
    *("window_feedback", "events", "feedback of a kind"),
    "Events of the clicks topic in the window, by kind.",
    *(_by_kind, _column),
    labels=("feedback",),
)


declare(
    *(metric, "ctr_ratio", "zero_results_ratio", "cvr_ratio"),
    *("conversion_value_per_click", "conversion_value_per_impression", "order_value_mean"),
)


def _numerator(above: I64, below: I64) -> Iterator[Series]:
    yield count(above)


def _denominator(above: I64, below: I64) -> Iterator[Series]:
    yield count(below)


_attributed = partial(metric.count, unit="impressions", labels=("maturity",))

declare(metric, "ctr_attributed_ratio")
_attributed(
    "window_ctr_attributed_impressions",
    formula="impressions",
    doc="Support of ctr_attributed_ratio: its denominator.",
    reads=NAMED["ctr_attributed_ratio"].reads,
    series=_denominator,
)
_attributed(
    "window_ctr_attributed_clicked",
    formula="impressions with an attributed click",
    doc="Numerator of ctr_attributed_ratio.",
    reads=NAMED["ctr_attributed_ratio"].reads,
    series=_numerator,
)
declare(metric, "cvr_attributed_ratio")
_attributed(
    "window_cvr_attributed_clicked",
    formula="clicked impressions",
    doc="Support of cvr_attributed_ratio: its denominator.",
    reads=NAMED["cvr_attributed_ratio"].reads,
    series=_denominator,
)
_attributed(
    "window_cvr_attributed_converted",
    formula="clicked impressions with an attributed conversion",
    doc="Numerator of cvr_attributed_ratio.",
    reads=NAMED["cvr_attributed_ratio"].reads,
    series=_numerator,
)


FAMILY = Family("traffic", (*metric.series, *by_position.METRICS), _stats)
