"""Sessions: how long visits are, and how many go no further than one page.

Source: P the recommender-evaluation primer (session length, bounce rate).

A visit of two pages and ten seconds, and one of a single page:

    >>> from streamer.testing import START_MS, value_of
    >>> def visit(name, *steps):
    ...     for seconds, action in steps:
    ...         at_ms = START_MS + 1000 * seconds
    ...         yield {"type": "session", "session_id": name, "action": action, "ts": at_ms}
    >>> events = [*visit("s", (0, "start"), (0, "view"), (4, "view"), (10, "end"))]
    >>> events += [*visit("t", (20, "start"), (20, "view"), (20, "end"))]
    >>> value_of(events, "bounce_rate_ratio"), value_of(events, "views_per_session")
    (0.5, 1.5)
    >>> value_of(events, "session_length_mean_seconds")
    5.0
"""

from __future__ import annotations

from typing import Any

from streamer.metrics import sketch
from streamer.metrics.definition import Brief, Declarations, histogram
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import declare
from streamer.metrics.reads import Statistic

CLASSES_SECONDS = (10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Upper bounds of the classes of lengths since the start; one more is beyond them all."""


def stats(settings: Any) -> tuple[Stat, ...]:
    """Statistics of ended sessions."""
    return (
        Stat("sessions"),
        Stat("bounces"),
        Stat("views"),
        Stat("session_ms", largest=settings.attribution.session_gap_ms, in_totals=True),
        Stat(
            *("session_bucket", 1, sketch.BUCKETS),
            of=(("sessions", {"time": sketch.UPPER_MS.tolist()}),),
        ),
        Stat(
            *("session_class", 1, len(CLASSES_SECONDS) + 1),
            of=(("sessions", {"time": sketch.upper_ms(CLASSES_SECONDS)}),),
            in_windows=False,
            in_totals=True,
        ),
    )


metric = Declarations()


metric.count(
    *("window_sessions", "sessions", "ended sessions"),
    "Sessions that ended in the window, by an explicit end or the gap. They are the support of the"
    " other metrics of sessions.",
    (Statistic("sessions"),),
    brief=Brief(),
)
metric.count(
    *("window_bounces", "sessions", "ended sessions with exactly one view"),
    "Sessions that ended in the window after one view.",
    (Statistic("bounces"),),
)
declare(metric, "bounce_rate_ratio", "views_per_session")
metric.row(
    *("session_length_seconds", "seconds"),
    "settled sessions of a length up to the bound; their sum and number",
    "Lengths of settled sessions since the state began, as a Prometheus histogram with exact"
    " counts and sum. No event can join these sessions any more, so it never falls.",
    histogram(CLASSES_SECONDS),
    empty="absent without ended sessions",
    source="P",
    labels=("le",),
    scope="total",
    kind="histogram",
    reads=(Statistic("session_class"), Statistic("session_ms")),
)
metric.row(
    *("window_session_length_seconds", "seconds", "value at rank ceil(q n) of last - first event"),
    "Quantiles of the length of the sessions that ended; relative error at most 1 % (bucketed"
    " sketch), and above 31 days counted as 31 days.",
    sketch.quantiles,
    empty="absent without ended sessions",
    source="P",
    labels=("quantile",),
    reads=(Statistic("session_bucket"), Statistic("sessions")),
)
declare(metric, "session_length_mean_seconds")

METRICS = tuple(metric.series)
