"""Engagement: time spent on items; users and sessions have modules of their own.

Source: P the recommender-evaluation primer (dwell time: end minus start).

Ten seconds on one item, thirty on another:

    >>> from streamer.testing import value_of
    >>> events = [{"type": "impression", "item_id": item} for item in "ab"]
    >>> events += [{"type": "click", "item_id": "a", "dwell_ms": 10_000}]
    >>> events += [{"type": "click", "item_id": "b", "dwell_ms": 30_000}]
    >>> value_of(events, "dwell_mean_seconds"), value_of(events, "window_dwells")
    (20.0, 2.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer.encoding.arrays import I64
from streamer.metrics import sessions, sketch, users
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Family,
    Series,
    count,
    histogram,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import declare
from streamer.metrics.reads import Statistic
from streamer.settings import limits

CLASSES_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
"""Upper bounds of the classes of dwell times; one more is beyond them all."""
_CLASS_LABELS = (*map(str, CLASSES_SECONDS), "inf")


def _stats(settings: Any) -> tuple[Stat, ...]:
    return (
        Stat("viewings"),
        Stat("dwell_ms", largest=limits.MAX_DWELL_MS, in_totals=True),
        Stat(
            *("dwell_class", 1, len(_CLASS_LABELS)),
            of=(("viewings", {"time": sketch.upper_ms(CLASSES_SECONDS)}),),
            in_totals=True,
        ),
        Stat(
            *("dwell_bucket", 1, sketch.BUCKETS),
            of=(("viewings", {"time": sketch.UPPER_MS.tolist()}),),
        ),
        *users.stats(settings),
        *sessions.stats(settings),
    )


metric = Declarations()


metric.row(
    *("dwell_seconds", "seconds"),
    "settled viewings with a dwell up to the bound; their sum and number",
    "Times spent on items since the state began, of viewings that no report can join any more, so"
    " that it never falls: a Prometheus histogram, its counts and its sum exact.",
    histogram(CLASSES_SECONDS),
    empty="absent without dwell times",
    source="P",
    labels=("le",),
    scope="total",
    kind="histogram",
    reads=(Statistic("dwell_class"), Statistic("dwell_ms")),
)
metric.row(
    *("window_dwell_seconds", "seconds", "value at rank ceil(q n)"),
    "Quantiles of the time spent on an item, reported by clicks or sessions, the longest time once"
    " for an item of a request; relative error at most 1 % (bucketed sketch).",
    sketch.quantiles,
    empty="absent without dwell times",
    source="P",
    labels=("quantile",),
    reads=(Statistic("dwell_bucket"), Statistic("viewings")),
)
declare(metric, "dwell_mean_seconds")
metric.count(
    *("window_dwells", "viewings", "viewings with a dwell"),
    "Support of the dwell metrics.",
    (Statistic("viewings"),),
    brief=Brief(),
)


@metric(
    "window_dwell_distribution",
    formula="viewings with a dwell above the class before and up to this one's bound",
    unit="viewings",
    labels=("upto_seconds",),
    reads=(Statistic("dwell_class"),),
)
def dwell_distribution(classes: I64) -> Iterator[Series]:
    """Times spent on items by class, for heat maps: exact counts, not cumulative."""
    for i, label in enumerate(_CLASS_LABELS):
        yield count(classes[:, i], upto_seconds=label)


FAMILY = Family("engagement", (*metric.series, *users.METRICS, *sessions.METRICS), _stats)
