"""Engagement: time spent on items.

Source: P the recommender-evaluation primer (dwell time: end minus start).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer import limits
from streamer.engine.cells import Deltas
from streamer.engine.facts import Fact, FeedbackFacts
from streamer.engine.layout import Layout, Stat
from streamer.metrics import sketch
from streamer.metrics.declare import Declarations, Family, Series, Sums, count, ratio

QUANTILES = {"0.5": (1, 2), "0.9": (9, 10), "0.99": (99, 100)}
"""Shown quantiles, as text and as a fraction."""


def _stats(settings: Any) -> tuple[Stat, ...]:
    return (
        Stat("dwells", "events with a dwell time"),
        Stat("dwell_ms", "milliseconds", largest=limits.MAX_DWELL_MS),
        Stat("dwell_bucket", "events by bucket of dwell time", width=sketch.BUCKETS),
    )


def _collect(settings: Any, fact: Fact, layout: Layout, deltas: Deltas) -> None:
    if not isinstance(fact, FeedbackFacts):
        return
    has_dwell = fact.dwell_ms >= 0
    if not has_dwell.any():
        return
    spent = fact.where(has_dwell)
    at = layout.at
    deltas.add(spent.event_ms, spent.segment, at["dwells"], spent.sign)
    deltas.add(spent.event_ms, spent.segment, at["dwell_ms"], spent.sign * spent.dwell_ms)
    stat = at["dwell_bucket"] + sketch.bucket(spent.dwell_ms)
    deltas.add(spent.event_ms, spent.segment, stat, spent.sign)


metric = Declarations()


@metric(
    "dwell_seconds",
    formula="value at rank ceil(q n)",
    unit="seconds",
    empty="absent without dwell times",
    source="P",
    labels=("quantile",),
)
def dwell(w: Sums) -> Iterator[Series]:
    """Quantiles of the time spent on an item; relative error at most 1 % (bucketed sketch)."""
    buckets, present = w("dwell_bucket"), w("dwells") != 0
    for label, (numerator, denominator) in QUANTILES.items():
        values = sketch.quantile(buckets, numerator, denominator) / 1000
        yield Series({"quantile": label}, values, present)


@metric(
    "dwell_mean_seconds",
    formula="sum of dwell / events with a dwell",
    unit="seconds",
    empty="absent without dwell times",
    source="P",
)
def dwell_mean(w: Sums) -> Iterator[Series]:
    """Mean time spent on an item, exact."""
    yield ratio(w("dwell_ms"), 1000 * w("dwells"))


@metric("window_dwells", formula="events with a dwell", unit="events", empty="absent")
def window_dwells(w: Sums) -> Iterator[Series]:
    """Support of the dwell metrics."""
    yield count(w("dwells"))


FAMILY = Family("engagement", _stats, _collect, tuple(metric.metrics))
