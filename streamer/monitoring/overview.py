"""The dashboard *overview*: whether what the recommender does is as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring import alerts
from streamer.monitoring.page import firing, page
from streamer.monitoring.panels import (
    GREEN,
    ORANGE,
    RED,
    SYSTEM,
    Override,
    Panel,
    Query,
    Step,
    bad_from,
    bands_of,
    graph,
    least_of,
    over_exporters,
    rate,
    support,
    table,
    tiles,
)
from streamer.monitoring.series import NUMBER, PERCENT, SECONDS, YES_NO
from streamer.monitoring.windowed import Windowed
from streamer.settings.own_metrics import definition

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
            alerts.fired(windowed.settings, page_url),
            *([alerts.statuses(windowed, page_url)] if watched else []),
        ],
        "Clicks, conversions and value": [
            *windowed.split("CTR: are clicks falling?", "ctr_ratio", "window_impressions"),
            _traffic(windowed),
            *windowed.split("CVR: do clicks become conversions?", "cvr_ratio", "window_clicks"),
            *windowed.split(
                "Value per impression: what does an impression earn?",
                "conversion_value_per_impression",
                "window_impressions",
            ),
        ],
        "Users": [
            *windowed.split("Users who click: how many do?", "user_hit_ratio", "window_users"),
            *windowed.split(
                "Mean dwell: how long do people look?", "dwell_mean_seconds", "window_dwells"
            ),
            *windowed.split(
                "Bounce rate: how many visits end after one page?",
                "bounce_rate_ratio",
                "window_sessions",
            ),
            *_kinds(windowed),
        ],
        "Where?": [*_segments(windowed), *(alerts.graphs(windowed) if watched else [])],
        "Metrics of your own": [*_ratios(windowed), *_composites(windowed)],
    }
    return page(
        "overview",
        "Is the recommender doing what it should, and if not, where?",
        rows,
        variables=[*windowed.variables(), *alerts.variables(windowed)],
        annotations=[firing()],
        folded=("Users", "Where?", "Metrics of your own"),
        links=[("The exporter's page", page_url)],
    )


def _trust(windowed: Windowed) -> Panel:
    good, bad = [Step(None, RED), Step(1, GREEN)], [Step(None, GREEN), Step(120, ORANGE)]
    queries = [
        Query(least_of(f"{PREFIX}ready{{{SYSTEM}}}"), "counting"),
        Query(least_of(f"{PREFIX}identity_exact{{{SYSTEM}}}"), "exact"),
        Query(
            f"time() - {over_exporters(f'{PREFIX}stream_time_seconds{{{SYSTEM}}}')}", "newest event"
        ),
    ]
    overrides = [
        bad_from("counting|exact", good, unit=YES_NO),
        bad_from("newest event", [*bad, Step(600, RED)], unit=SECONDS),
    ]
    description = windowed.texts("ready", "identity_exact", "stream_time_seconds")
    return tiles(
        "State of streamer: can these numbers be trusted?", description, NUMBER, queries,
        empty="no exporter", width=8, height=6, overrides=overrides,
    )  # fmt: skip


def _traffic(windowed: Windowed) -> Panel:
    """Growth of the totals; they count what is settled, so clicks come a little later."""
    rolled_up = "".join(f', {name}="all"' for name in windowed.settings.dimension_names)
    queries = [
        Query(
            over_exporters(rate(f"{PREFIX}{name}", SYSTEM + rolled_up)), name.removesuffix("_total")
        )
        for name in TRAFFIC
        if windowed.has(name)
    ]
    axis = {"custom.axisPlacement": "right", "custom.axisLabel": "clicks, conversions"}
    right = Override("^(clicks|conversions)$", axis)
    description = windowed.texts(*(name for name in TRAFFIC if windowed.has(name)))
    return graph(
        "Impressions, clicks and conversions: is traffic coming in?",
        description,
        "cps",
        queries,
        empty="no events",
        overrides=[right],
    )


def _kinds(windowed: Windowed) -> list[Panel]:
    """Each kind of feedback: of all segments, by kind."""
    name = "positive_rate_ratio"
    if not windowed.has(name):
        return []
    queries = [
        *windowed.totals_with_ends(name, "feedback", 'definition="docs"'),
        Query(windowed.total("window_users"), "users"),
    ]
    overrides = [
        *bands_of(windowed.settings.user_feedback_kinds),
        support("^users$"),
    ]
    description = windowed.of(name).description
    return [
        graph(
            "Positive rate by kind: how much of what a user sees gets feedback?",
            description,
            PERCENT,
            queries,
            empty="no users in this window",
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
    title = "All metrics by segment: which one is it?"
    return [
        table(
            title, description, queries, labels=names, empty="no events in this window",
            sort=next(iter(columns.values())), is_descending=True, height=10, overrides=units,
        )
    ]  # fmt: skip


def _ratios(windowed: Windowed) -> list[Panel]:
    """Every metric of ``[[ratios]]``, of all segments; of a sum its numerator."""
    ratios = windowed.settings.ratios
    if not ratios or not windowed.has("ratio"):
        return []
    queries = [
        *windowed.totals_with_ends("ratio", "ratio"),
        Query(windowed.total("window_ratio_denominator", by=["ratio"]), "{{ratio}}: denominator"),
    ]
    if sums := [ratio.name for ratio in ratios if ratio.denominator is None]:
        only = f'ratio=~"{"|".join(sums)}"'
        of_sums = windowed.total("window_ratio_numerator", only, by=["ratio"])
        queries.append(Query(of_sums, "{{ratio}}"))
    overrides = [*bands_of(tuple(ratio.name for ratio in ratios)), support(": denominator$")]
    said = [f"{ratio.name}: {definition(ratio)}." for ratio in ratios]
    description = "\n\n".join((windowed.texts("ratio", "window_ratio_denominator"), *said))
    title = "Ratios: how do they move?"
    return [
        graph(
            title, description, NUMBER, queries,
            empty="no events in this window", overrides=overrides, from_zero=False,
        )
    ]  # fmt: skip


def _composites(windowed: Windowed) -> list[Panel]:
    """Every metric of ``[[composites]]``, of all segments."""
    if not windowed.settings.composites or not windowed.has("composite"):
        return []
    provisional = 'maturity="provisional"'
    rolled_up = [f'{name}="all"' for name in windowed.settings.dimension_names]
    where = ", ".join([SYSTEM, 'window="$window"', *rolled_up, provisional])
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
    title = "Composites: how do they move?"
    return [
        graph(
            title, description, NUMBER, queries,
            empty="no events in this window", overrides=overrides, from_zero=False,
        )
    ]  # fmt: skip
