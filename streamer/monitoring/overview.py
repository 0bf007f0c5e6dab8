"""The dashboard *overview*: whether what the recommender does is as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.metrics.intervals import name_of
from streamer.monitoring import alerts
from streamer.monitoring.page import firing, page
from streamer.monitoring.panels import (
    GREEN,
    JOB,
    ORANGE,
    RED,
    Override,
    Panel,
    Query,
    Step,
    bad_from,
    bands_of,
    graph,
    on_the_right,
    over_exporters,
    rate,
    table,
    tiles,
)
from streamer.monitoring.series import NUMBER, PERCENT, SECONDS, YES_NO
from streamer.monitoring.windowed import Windowed

TRAFFIC = ("impressions_total", "clicks_total", "conversions_total")
SEGMENTS = {
    "window_impressions": "impressions",
    "ctr_ratio": "CTR",
    "cvr_ratio": "CVR",
    "window_conversion_value": "value",
    "window_users": "users",
    "user_hit_ratio": "users who click",
    "dwell_mean_seconds": "mean dwell",
    "bounce_rate_ratio": "bounce rate",
}
"""Columns of the table of segments."""


def overview(windowed: Windowed, page_url: str) -> dict[str, Any]:
    """The dashboard."""
    watched = windowed.settings.alerts
    rows: Mapping[str, list[Panel]] = {
        "Is anything wrong?": [
            _trust(windowed),
            alerts.fired(),
            *([alerts.statuses(windowed)] if watched else []),
        ],
        "Clicks, conversions and value": [
            *windowed.split("Are clicks falling?", "ctr_ratio", "window_impressions"),
            _traffic(windowed),
            *windowed.split("Do clicks become conversions?", "cvr_ratio", "window_clicks"),
            *windowed.split(
                "What does an impression earn?",
                "conversion_value_per_impression",
                "window_impressions",
            ),
        ],
        "Users": [
            *windowed.split("How many users click?", "user_hit_ratio", "window_users"),
            *windowed.split("How long do people look?", "dwell_mean_seconds", "window_dwells"),
            *windowed.split(
                "How many visits end after one page?", "bounce_rate_ratio", "window_sessions"
            ),
            *_kinds(windowed),
        ],
        "Where?": [*_segments(windowed), *(alerts.graphs(windowed) if watched else [])],
        "Metrics of your own": [*_custom(windowed), *_composites(windowed)],
    }
    return page(
        "overview",
        "Is the recommender doing what it should, and if not, where?",
        rows,
        variables=[*windowed.variables(), *alerts.variables(windowed)],
        annotations=[firing()],
        links=[("The exporter's page", page_url)],
    )


def _trust(windowed: Windowed) -> Panel:
    good, bad = [Step(None, RED), Step(1, GREEN)], [Step(None, GREEN), Step(120, ORANGE)]
    queries = [
        Query(over_exporters(f"{PREFIX}ready{{{JOB}}}"), "counting"),
        Query(over_exporters(f"{PREFIX}identity_exact{{{JOB}}}"), "exact"),
        Query(
            f"time() - {over_exporters(f'{PREFIX}stream_time_seconds{{{JOB}}}')}", "newest event"
        ),
    ]
    overrides = [
        bad_from("counting|exact", good, unit=YES_NO),
        bad_from("newest event", [*bad, Step(600, RED)], unit=SECONDS),
    ]
    description = windowed.texts("ready", "identity_exact", "stream_time_seconds")
    return tiles(
        "Can these numbers be trusted?", description, NUMBER, queries,
        width=8, height=6, overrides=overrides,
    )  # fmt: skip


def _traffic(windowed: Windowed) -> Panel:
    """Growth of the totals; they count what is settled, so clicks come a little later."""
    rolled_up = "".join(f', {name}="all"' for name in windowed.settings.dimension_names)
    queries = [
        Query(over_exporters(rate(f"{PREFIX}{name}", JOB + rolled_up)), name.removesuffix("_total"))
        for name in TRAFFIC
        if windowed.has(name)
    ]
    axis = {"custom.axisPlacement": "right", "custom.axisLabel": "clicks, conversions"}
    right = Override("^(clicks|conversions)$", axis)
    description = windowed.texts(*(name for name in TRAFFIC if windowed.has(name)))
    return graph("Is traffic coming in?", description, "cps", queries, overrides=[right])


def _kinds(windowed: Windowed) -> list[Panel]:
    """Each kind of feedback: of all segments, by kind."""
    name, support = "positive_rate_ratio", "window_users"
    if not windowed.has(name):
        return []
    docs = 'definition="docs"'
    queries = [Query(windowed.total(name, docs, by=["feedback"]), "{{feedback}}")]
    if windowed.has(name_of(name, "lower")):
        queries += [
            Query(
                windowed.total(name_of(name, end), docs, by=["feedback"]),
                f"{{{{feedback}}}} {word}",
            )
            for end, word in (("lower", "low"), ("upper", "high"))
        ]
    queries.append(Query(windowed.total(support), "users"))
    overrides = [
        *bands_of(windowed.settings.user_feedback_kinds),
        on_the_right("^users$", NUMBER, "users"),
    ]
    description = windowed.of(name).description
    return [
        graph(
            "How much of what a user sees gets feedback?",
            description,
            PERCENT,
            queries,
            overrides=overrides,
        )
    ]


def _segments(windowed: Windowed) -> list[Panel]:
    """All rollups that there are, a row each."""
    names = windowed.settings.dimension_names
    columns = {name: column for name, column in SEGMENTS.items() if windowed.has(name)}
    if not names or not columns:
        return []
    queries = [
        Query(over_exporters(windowed.selector(name), *names), column)
        for name, column in columns.items()
    ]
    units = [
        Override(f"^{column}$", {"unit": windowed.of(name).unit})
        for name, column in columns.items()
    ]
    description = "The chosen window: a row for each segment that is shown, `all` is a rollup."
    return [
        table(
            "Which segment is it?", description, queries, labels=names, height=10, overrides=units
        )
    ]


def _custom(windowed: Windowed) -> list[Panel]:
    """Every metric of ``[[custom]]``, of all segments."""
    if not windowed.settings.custom or not windowed.has("custom_mean"):
        return []
    queries = [
        Query(windowed.total("custom_mean", by=["custom"]), "{{custom}}"),
        *(
            Query(windowed.total(f"custom_mean_{end}", by=["custom"]), f"{{{{custom}}}} {word}")
            for end, word in (("lower", "low"), ("upper", "high"))
            if windowed.has(f"custom_mean_{end}")
        ),
        Query(windowed.total("window_custom_events", by=["custom"]), "{{custom}}: events"),
    ]
    names = tuple(custom.name for custom in windowed.settings.custom)
    overrides = [*bands_of(names), on_the_right(": events$", NUMBER, "events")]
    description = windowed.texts("custom_mean", "window_custom_events")
    title = "How do the custom metrics move?"
    return [graph(title, description, NUMBER, queries, overrides=overrides, from_zero=False)]


def _composites(windowed: Windowed) -> list[Panel]:
    """Every metric of ``[[composites]]``, of all segments."""
    if not windowed.settings.composites or not windowed.has("composite"):
        return []
    provisional = 'maturity="provisional"'
    rolled_up = [f'{name}="all"' for name in windowed.settings.dimension_names]
    where = ", ".join([JOB, 'window="$window"', *rolled_up, provisional])
    queries = [
        Query(over_exporters(f"{PREFIX}{name}{{{where}}}", "composite"), f"{{{{composite}}}}{word}")
        for name, word in (
            ("composite", ""),
            ("composite_lower", " low"),
            ("composite_upper", " high"),
        )
    ]
    names = tuple(composite.name for composite in windowed.settings.composites)
    description = windowed.of("composite").description
    overrides = bands_of(names)
    title = "How do the composites move?"
    return [graph(title, description, NUMBER, queries, overrides=overrides, from_zero=False)]
