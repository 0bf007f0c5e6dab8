"""Panels of alerts: what fires, each watched metric with its interval and baseline, its traffic."""

from __future__ import annotations

from collections.abc import Mapping

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring.page import Variable, choice
from streamer.monitoring.panels import (
    GREEN,
    JOB,
    ORANGE,
    RED,
    Override,
    Panel,
    Query,
    colored,
    dashed,
    graph,
    on_the_right,
    over_exporters,
    table,
    the_first,
)
from streamer.monitoring.series import NUMBER, PERCENT
from streamer.monitoring.windowed import Windowed
from streamer.query.alert_gauges import PREFIX as ALERT_PREFIX
from streamer.query.checks import CHECKS
from streamer.stats.alerting.baseline import STATUSES

_OF_KINDS = {"good": GREEN, "warn": ORANGE, "bad": RED, "open": "text"}
_COLORS: Mapping[str, str] = {each: _OF_KINDS[words.kind] for each, words in STATUSES.items()}
_COLUMNS = {
    ALERT_PREFIX + gauge.name: gauge.column
    for check in CHECKS
    for gauge in check.gauges
    if gauge.column
}
_RULE = (
    "An alert fires when the whole interval is beyond the tolerated change, not the value alone."
)


def variables(windowed: Windowed) -> list[Variable]:
    """Which alert, and which of its segments; none without alerts."""
    watched = windowed.settings.alerts
    if not watched:
        return []
    return [choice("alert", f"{PREFIX}alert_support{{{JOB}}}", watched[0].name)]


def fired(*, width: int = 16) -> Panel:
    """Rules of Prometheus that fire now."""
    where = f'alertstate="firing", alertname=~"Streamer.*", {JOB}'
    labels = ("alertname", "severity", "alert", "topic", "partition")
    query = Query(over_exporters(f"ALERTS{{{where}}}", *labels))
    description = (
        "Alerts of Prometheus, if it has the rules that `streamer rules` writes. Their messages are"
        " in Alertmanager, with a link to what to do."
    )
    colors = {"critical": RED, "warning": ORANGE, "info": "text"}
    return table(
        "What is firing?",
        description,
        [query],
        labels=labels,
        width=width,
        height=6,
        overrides=[colored("severity", colors)],
        empty="nothing",
    )


def statuses(windowed: Windowed) -> Panel:
    """A row for each watched segment."""
    labels = ("alert", *windowed.settings.dimension_names)
    status = the_first(f"{PREFIX}alert_status{{{JOB}}}", labels, "status")
    queries = [
        Query(
            f"{over_exporters(f'{PREFIX}{name}{{{JOB}}}', *labels)}"
            f" * on ({', '.join(labels)}) group_left (status) {status}",
            column,
        )
        for name, column in _COLUMNS.items()
    ]
    percents = [column for name, column in _COLUMNS.items() if name.endswith("_ratio")]
    overrides = [
        colored("status", _COLORS),
        Override(f"^({'|'.join(percents)})$", {"unit": PERCENT}),
    ]
    description = windowed.texts("alert_status", "alert_change_ratio", "alert_traffic_change_ratio")
    return table(
        "Which watched metric has moved?",
        f"{description}\n\n{_RULE}",
        queries,
        labels=(*labels, "status"),
        overrides=overrides,
        empty="no alert has a status yet",
    )


def graphs(windowed: Windowed) -> list[Panel]:
    """The chosen alert over time: its change, and its traffic."""
    return [_change(windowed), _traffic(windowed)]


def _queries(windowed: Windowed, names: Mapping[str, str], *more: str) -> list[Query]:
    """A series for each segment of the chosen alert, of these gauges with the ends of their
    legends; ``more``: further matchers."""
    dimensions = windowed.settings.dimension_names
    segment = " · ".join(f"{{{{{name}}}}}" for name in dimensions) or "all"
    where = ", ".join([JOB, 'alert="$alert"', *more])
    return [
        Query(
            over_exporters(f"{PREFIX}{name}{{{where}}}", *dimensions),
            f"{segment}{end}",
        )
        for name, end in names.items()
    ]


def _change(windowed: Windowed) -> Panel:
    """The end of the interval that decides: all of it is beyond when this end is."""
    queries = []
    for direction, end in (("higher", "upper"), ("lower", "lower")):
        names = [alert.name for alert in windowed.settings.alerts if alert.direction == direction]
        if names:
            among = f'alert=~"{"|".join(names)}"'
            queries += _queries(windowed, {f"alert_change_{end}_ratio": ""}, among)
    queries += [
        *_queries(windowed, {"alert_support": ": support"}),
        Query(_tolerated(windowed), "tolerated"),
    ]
    limit = Override("^tolerated$", {"color": {"mode": "fixed", "fixedColor": RED}})
    description = windowed.of("alert_change_ratio").description
    return graph(
        "How close is $alert to firing?",
        f"{description}\n\n{_RULE} So a line is the end of the interval that is nearer to good, "
        "for each segment: where it is beyond the red one, the alert fires.",
        PERCENT,
        queries,
        overrides=[on_the_right(": support$", NUMBER, "support"), dashed("^tolerated$"), limit],
    )


def _traffic(windowed: Windowed) -> Panel:
    support = {"alert_traffic": "", "alert_traffic_usual": " usual"}
    changed = {"alert_traffic_change_ratio": ": change"}
    queries = [*_queries(windowed, support), *_queries(windowed, changed)]
    overrides = [dashed(" usual$"), on_the_right(": change$", PERCENT, "change")]
    text = windowed.texts("alert_traffic", "alert_traffic_usual", "alert_traffic_change_ratio")
    return graph("Is the traffic of $alert as usual?", text, NUMBER, queries, overrides=overrides)


def _tolerated(windowed: Windowed) -> str:
    """The tolerated change of the chosen alert: it is in the settings, not in a series."""
    found = []
    for alert in windowed.settings.alerts:
        change = alert.drop if alert.direction == "lower" else -alert.drop
        found.append(f'label_replace(vector({change:g}), "alert", "{alert.name}", "", "")')
    several = f"({' or '.join(found)})" if len(found) > 1 else found[0]
    return f'max({several} and on (alert) label_replace(vector(1), "alert", "$alert", "", ""))'
