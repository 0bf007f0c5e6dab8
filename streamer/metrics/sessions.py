"""Sessions: how long visits are, and how many go no further than one page.

Source: P the recommender-evaluation primer (session length, bounce rate).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamer import limits
from streamer.engine.cells import Deltas
from streamer.engine.facts import SessionFacts
from streamer.engine.layout import Layout, Stat
from streamer.metrics import sketch
from streamer.metrics.declare import Declarations, Series, Sums, count, ratio


def stats(settings: Any) -> tuple[Stat, ...]:
    """Statistics of ended sessions."""
    return (
        Stat("sessions", "sessions"),
        Stat("bounces", "sessions with one view"),
        Stat("session_views", "views"),
        Stat("session_ms", "milliseconds", largest=settings.attribution.session_gap_ms),
        Stat("session_bucket", "sessions by bucket of length", width=sketch.BUCKETS),
    )


def collect(fact: SessionFacts, layout: Layout, deltas: Deltas) -> None:
    """Count sessions under the time at which they end."""
    at, sign = layout.at, fact.sign
    bucket = sketch.bucket(np.minimum(fact.length_ms, limits.MAX_SESSION_MS))
    for stat, amount in (
        (at["sessions"], sign),
        (at["bounces"], sign * (fact.views == 1)),
        (at["session_views"], sign * fact.views),
        (at["session_ms"], sign * fact.length_ms),
        (at["session_bucket"] + bucket, sign),
    ):
        deltas.add(fact.event_ms, fact.segment, stat, amount)


metric = Declarations()


@metric("window_sessions", formula="ended sessions", unit="sessions", empty="absent")
def window_sessions(w: Sums) -> Iterator[Series]:
    """Sessions that ended in the window, by an explicit end or the gap: the support of the rest."""
    yield count(w("sessions"))


@metric("window_bounces", formula="ended sessions with exactly one view", unit="sessions",
        empty="absent")  # fmt: skip
def window_bounces(w: Sums) -> Iterator[Series]:
    """Sessions that ended in the window after one view."""
    yield count(w("bounces"))


@metric(
    "bounce_rate_ratio",
    formula="ended sessions with exactly one view / ended sessions",
    unit="ratio",
    empty="absent without ended sessions",
    source="P",
)
def bounce_rate(w: Sums) -> Iterator[Series]:
    """Share of the sessions that ended after one view."""
    yield ratio(w("bounces"), w("sessions"))


@metric(
    "views_per_session",
    formula="views / ended sessions",
    unit="views per session",
    empty="absent without ended sessions",
)
def views_per_session(w: Sums) -> Iterator[Series]:
    """Mean number of views of the sessions that ended."""
    yield ratio(w("session_views"), w("sessions"))


@metric(
    "session_length_seconds",
    formula="value at rank ceil(q n) of last - first event",
    unit="seconds",
    empty="absent without ended sessions",
    source="P",
    labels=("quantile",),
)
def session_length(w: Sums) -> Iterator[Series]:
    """Quantiles of the length of the sessions that ended; relative error at most 1 % (bucketed
    sketch), and above 31 days counted as 31 days."""
    yield from sketch.quantiles(w("session_bucket"), w("sessions") != 0)


@metric(
    "session_length_mean_seconds",
    formula="sum of (last - first event) / ended sessions",
    unit="seconds",
    empty="absent without ended sessions",
    source="P",
)
def session_length_mean(w: Sums) -> Iterator[Series]:
    """Mean length of the sessions that ended, exact."""
    yield ratio(w("session_ms"), 1000 * w("sessions"))


METRICS = tuple(metric.metrics)
