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

from streamer.encoding.arrays import I64
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics import by_position
from streamer.metrics.by_position import POSITIONS, by_position_of
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Family,
    Series,
    Sums,
    count,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import NAMED, declare
from streamer.metrics.sums import CLICKS, IMPRESSIONS, VALUE, named


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


def _anything(w: Sums) -> Any:
    with w.apart():  # a kind that is new was counted as another one
        feedback = w("feedback").sum(axis=1)
    return (IMPRESSIONS.total(w) != 0) | (feedback != 0) | (w("conversion_lines") != 0)


def _of_kind(w: Sums, place: int) -> I64:
    feedback = w.part("feedback", slice(place, place + 1), None)
    assert feedback is not None
    return feedback[:, 0]


def _kinds(w: Sums) -> list[tuple[int, str]]:
    return list(enumerate((*w.settings.feedback_kinds, "other")))


@metric(
    "impressions_total",
    brief=Brief(),
    formula="impressions",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    scope="total",
)
def impressions_total(w: Sums) -> Iterator[Series]:
    """Impressions since the state began."""
    yield count(IMPRESSIONS.total(w), _anything(w))


@metric(
    "clicks_total",
    brief=Brief(),
    formula="settled clicks",
    unit="events",
    empty="absent without impressions, feedback and conversions",
    scope="total",
)
def clicks_total(w: Sums) -> Iterator[Series]:
    """Settled clicks since the state began. Settled clicks keep their dimensions, so the total
    never falls."""
    yield count(CLICKS.total(w), _anything(w))


@metric(
    "conversions_total",
    brief=Brief(),
    formula="settled conversions",
    unit="events",
    empty="absent where it is 0",
    scope="total",
)
def conversions_total(w: Sums) -> Iterator[Series]:
    """Conversions since the state began whose dimensions are settled; an order is one."""
    yield count(w("conversions"))


@metric(
    "conversion_value_total",
    brief=Brief(),
    formula="sum of value of settled conversions",
    unit="currency",
    empty="absent without lines of conversions",
    scope="total",
)
def conversion_value_total(w: Sums) -> Iterator[Series]:
    """Value of settled conversions since the state began; summed in whole micros."""
    yield Series({}, VALUE.total(w), w("conversion_lines") != 0)


@metric(
    "feedback_total",
    brief=Brief(),
    formula="settled feedback of a kind",
    unit="events",
    empty="absent where it is 0",
    labels=("feedback",),
    scope="total",
)
def feedback_total(w: Sums) -> Iterator[Series]:
    """Events of the clicks topic by kind since the state began; kinds not configured: other."""
    for i, kind in _kinds(w):
        with w.apart():
            yield count(_of_kind(w, i), feedback=kind)


@metric(
    "window_impressions",
    brief=Brief(),
    formula="impressions",
    unit="events",
    empty="absent without impressions, feedback and conversions",
)
def window_impressions(w: Sums) -> Iterator[Series]:
    """Impressions in the window: the support of ctr_ratio and conversion_value_per_impression."""
    yield count(IMPRESSIONS.total(w), _anything(w))


@metric(
    "window_clicks",
    brief=Brief(),
    formula="clicks",
    unit="events",
    empty="absent without impressions, feedback and conversions",
)
def window_clicks(w: Sums) -> Iterator[Series]:
    """Clicks in the window: the support of cvr_ratio and conversion_value_per_click."""
    yield count(CLICKS.total(w), _anything(w))


@metric(
    "window_conversions",
    brief=Brief(),
    formula="conversions",
    unit="events",
    empty="absent where it is 0",
)
def window_conversions(w: Sums) -> Iterator[Series]:
    """Conversions in the window: an order is one, in the segment of its first line."""
    yield count(w("conversions"))


@metric(
    "window_conversion_lines",
    brief=Brief(),
    formula="lines of conversions",
    unit="events",
    empty="absent where it is 0",
)
def window_conversion_lines(w: Sums) -> Iterator[Series]:
    """Lines of the conversions in the window, each in its own segment; an order without lines is
    one."""
    yield count(w("conversion_lines"))


@metric(
    "window_conversion_value",
    brief=Brief(),
    formula="sum of value",
    unit="currency",
    empty="absent without lines of conversions",
)
def window_conversion_value(w: Sums) -> Iterator[Series]:
    """Value of the conversions in the window, by line; summed in whole micros."""
    yield Series({}, VALUE.total(w), w("conversion_lines") != 0)


@metric(
    "window_feedback",
    formula="feedback of a kind",
    unit="events",
    empty="absent where it is 0",
    labels=("feedback",),
)
def window_feedback(w: Sums) -> Iterator[Series]:
    """Events of the clicks topic in the window, by kind."""
    for i, kind in _kinds(w):
        with w.apart():
            yield count(_of_kind(w, i), feedback=kind)


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
)
def ctr_attributed_impressions(w: Sums) -> Iterator[Series]:
    """Support of ctr_attributed_ratio: its denominator."""
    for labels, _, below in NAMED["ctr_attributed_ratio"].parts(w):
        yield Series(labels, below, below != 0)


@metric(
    "window_ctr_attributed_clicked",
    formula="impressions with an attributed click",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
)
def ctr_attributed_clicked(w: Sums) -> Iterator[Series]:
    """Numerator of ctr_attributed_ratio."""
    for labels, above, _ in NAMED["ctr_attributed_ratio"].parts(w):
        yield Series(labels, above, above != 0)


declare(metric, "cvr_attributed_ratio")


@metric(
    "window_cvr_attributed_clicked",
    formula="clicked impressions",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
)
def cvr_attributed_clicked(w: Sums) -> Iterator[Series]:
    """Support of cvr_attributed_ratio: its denominator."""
    for labels, _, below in NAMED["cvr_attributed_ratio"].parts(w):
        yield Series(labels, below, below != 0)


@metric(
    "window_cvr_attributed_converted",
    formula="clicked impressions with an attributed conversion",
    unit="impressions",
    empty="absent where it is 0",
    labels=("maturity",),
)
def cvr_attributed_converted(w: Sums) -> Iterator[Series]:
    """Numerator of cvr_attributed_ratio."""
    for labels, above, _ in NAMED["cvr_attributed_ratio"].parts(w):
        yield Series(labels, above, above != 0)


FAMILY = Family("traffic", (*metric.series, *by_position.METRICS), _stats)
