"""Engagement: time spent on items; what users do and how sessions go stands next door.

Source: P the recommender-evaluation primer (dwell time: end minus start).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamer import limits
from streamer.engine.cells import Deltas
from streamer.engine.facts import DwellFacts, Fact, FeedbackFacts, SessionFacts
from streamer.engine.layout import Layout, Stat
from streamer.metrics import sessions, sketch, users
from streamer.metrics.declare import (
    Brief,
    Declarations,
    Family,
    Series,
    Sums,
    count,
    histogram,
    ratio,
)

CLASSES_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
"""Upper bounds of the classes of dwell times; one more is beyond them all."""
_CLASS_LABELS = (*map(str, CLASSES_SECONDS), "inf")
_CLASS_BOUNDS_MS = 1000 * np.array(CLASSES_SECONDS, np.int64)


def _stats(settings: Any) -> tuple[Stat, ...]:
    return (
        Stat("dwells", "viewings with a dwell time"),
        Stat("dwell_ms", "milliseconds", largest=limits.MAX_DWELL_MS),
        *(Stat(f"dwell_class_{i}", "viewings") for i in range(len(_CLASS_LABELS))),
        Stat("dwell_bucket", "viewings by bucket of dwell time", width=sketch.BUCKETS),
        *users.stats(settings),
        *sessions.stats(settings),
    )


def _collect(settings: Any, fact: Fact, layout: Layout, deltas: Deltas) -> None:
    if isinstance(fact, DwellFacts):
        _collect_dwell(fact, layout, deltas)
    elif isinstance(fact, FeedbackFacts):
        users.collect(fact, layout, deltas)
    elif isinstance(fact, SessionFacts):
        sessions.collect(fact, layout, deltas)


def _collect_dwell(fact: DwellFacts, layout: Layout, deltas: Deltas) -> None:
    at = layout.at
    place = np.searchsorted(_CLASS_BOUNDS_MS, fact.dwell_ms, "left")
    for stat, amount in (
        (at["dwells"], fact.sign),
        (at["dwell_ms"], fact.sign * fact.dwell_ms),
        (at["dwell_class_0"] + place, fact.sign),
        (at["dwell_bucket"] + sketch.bucket(fact.dwell_ms), fact.sign),
    ):
        deltas.add(fact.event_ms, fact.segment, stat, amount)


def _settle(settings: Any, fact: Fact, layout: Layout, totals: Deltas) -> None:
    """Only what histograms show: totals have every segment that ever was."""
    at = layout.at
    if isinstance(fact, DwellFacts):
        place = np.searchsorted(_CLASS_BOUNDS_MS, fact.dwell_ms, "left")
        totals.add(fact.event_ms, fact.segment, at["dwell_class_0"] + place, fact.sign)
        totals.add(fact.event_ms, fact.segment, at["dwell_ms"], fact.sign * fact.dwell_ms)
    elif isinstance(fact, SessionFacts):
        sessions.settle(fact, layout, totals)


metric = Declarations()


@metric(
    "dwell_seconds",
    formula="settled viewings with a dwell up to the bound; their sum and number",
    unit="seconds",
    empty="absent without dwell times",
    source="P",
    labels=("le",),
    scope="total",
    kind="histogram",
)
def dwell_histogram(w: Sums) -> Iterator[Series]:
    """Times spent on items since the state began, of viewings that no report can join any more, so
    that it never falls: a Prometheus histogram, its counts and its sum exact."""
    classes = [w(f"dwell_class_{i}") for i in range(len(_CLASS_LABELS))]
    yield from histogram(classes, CLASSES_SECONDS, w("dwell_ms"))


@metric(
    "window_dwell_seconds",
    formula="value at rank ceil(q n)",
    unit="seconds",
    empty="absent without dwell times",
    source="P",
    labels=("quantile",),
)
def dwell(w: Sums) -> Iterator[Series]:
    """Quantiles of the time spent on an item, told by clicks or sessions, the longest time once
    for an item of a request; relative error at most 1 % (bucketed sketch)."""
    yield from sketch.quantiles(w("dwell_bucket"), w("dwells") != 0)


@metric(
    "dwell_mean_seconds",
    brief=Brief(),
    formula="sum of dwell / viewings with a dwell",
    unit="seconds",
    empty="absent without dwell times",
    source="P",
)
def dwell_mean(w: Sums) -> Iterator[Series]:
    """Mean time spent on an item, exact."""
    yield ratio(w("dwell_ms"), 1000 * w("dwells"))


@metric(
    "window_dwells",
    brief=Brief(),
    formula="viewings with a dwell",
    unit="viewings",
    empty="absent where it is 0",
)
def window_dwells(w: Sums) -> Iterator[Series]:
    """Support of the dwell metrics."""
    yield count(w("dwells"))


@metric(
    "window_dwell_distribution",
    formula="viewings with a dwell above the class before and up to this one's bound",
    unit="viewings",
    empty="absent where it is 0",
    labels=("upto_seconds",),
)
def dwell_distribution(w: Sums) -> Iterator[Series]:
    """Times spent on items by class, for heat maps: exact counts, not cumulative."""
    for i, label in enumerate(_CLASS_LABELS):
        yield count(w(f"dwell_class_{i}"), upto_seconds=label)


FAMILY = Family(
    "engagement", _stats, _collect, (*metric.metrics, *users.METRICS, *sessions.METRICS), _settle
)
