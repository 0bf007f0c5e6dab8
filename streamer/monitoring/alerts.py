"""Panels of alerts: what fires, each watched metric with its interval and baseline, its traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.monitoring.page import Variable, choice
from streamer.monitoring.panels import (
    GREEN,
    ORANGE,
    RED,
    SYSTEM,
    Override,
    Panel,
    Query,
    colored,
    dashed,
    graph,
    in_tooltip,
    least_of,
    linked,
    named_numbers,
    over_exporters,
    ranked,
    support,
    table,
)
from streamer.monitoring.series import NUMBER, PERCENT
from streamer.monitoring.windowed import Windowed
from streamer.query.alert_gauges import PREFIX as ALERT_PREFIX
from streamer.query.checks import CHECKS, Gauge
from streamer.server.runbooks import PATH as RUNBOOKS
from streamer.settings.model import Settings
from streamer.stats.alerting.baseline import STATUSES

Fold = Callable[..., str]
"""``over_exporters`` or ``least_of``."""
_KINDS = {
    "bad": ("look now", RED),
    "warn": ("watch", ORANGE),
    "open": ("unknown", "text"),
    "good": ("fine", GREEN),
}
"""Kind of a status, the most severe first → name and colour of its severity."""
_COLORS: Mapping[str, str] = {each: _KINDS[words.kind][1] for each, words in STATUSES.items()}
_SEVERITIES = {"critical": RED, "warning": ORANGE, "info": "text"}
_COLUMNS = {
    ALERT_PREFIX + gauge.name: gauge for check in CHECKS for gauge in check.gauges if gauge.column
}
_OF_METRIC = "as the metric"
"""The unit of gauges that have that of the metric."""
_SEVERITY = "severity"
_MOMENT = "dateTimeFromNow"
_MILLISECONDS = 1000
_RULE = (
    "An alert fires when the whole interval is beyond the tolerated change, not the value alone."
)


def variables(windowed: Windowed) -> list[Variable]:
    """Which alert, and which of its segments; none without alerts."""
    watched = windowed.settings.alerts
    if not watched:
        return []
    return [choice("alert", f"{PREFIX}alert_support{{{SYSTEM}}}", watched[0].name)]


def fired(settings: Settings, page_url: str, *, width: int = 16) -> Panel:
    """Rules of Prometheus that fire now, the most severe first."""
    firing = f'alertstate="firing", alertname=~"Streamer.*", {SYSTEM}'
    dimensions = settings.dimension_names
    labels = ("alertname", "alert", *dimensions, "topic", "partition", "instance")
    severities = [
        over_exporters(f'ALERTS{{{firing}, severity="{name}"}}', *labels) for name in _SEVERITIES
    ]
    began = least_of(f'ALERTS_FOR_STATE{{alertname=~"Streamer.*", {SYSTEM}}}', *labels)
    is_firing = f"on ({', '.join(labels)}) ALERTS{{{firing}}}"
    queries = [
        Query(ranked(severities), _SEVERITY),
        Query(f"({began} and {is_firing}) * {_MILLISECONDS}", "since"),
    ]
    description = (
        "Alerts of Prometheus, if it has the rules that `streamer rules` writes. The name of an"
        " alert leads to its runbook, the name of a watched metric to *why did it move*. Messages"
        " are in Alertmanager."
    )
    return table(
        "Alerts: what is firing?",
        description,
        queries,
        labels=labels,
        first=_SEVERITY,
        width=width,
        height=6,
        overrides=[
            named_numbers(_SEVERITY, _SEVERITIES.items()),
            Override("^since$", {"unit": _MOMENT}),
            linked("alertname", "Runbook", f"{page_url}{RUNBOOKS}#${{__value.text}}"),
            _explained(dimensions, page_url),
        ],
        empty="nothing is firing",
    )


def _explained(dimensions: Sequence[str], page_url: str) -> Override:
    """The name of an alert leads to what the page says of its segment."""
    values = ",".join(f"{name}:${{__data.fields.{name}}}" for name in dimensions)
    segment = f"&segment={values}" if values else ""
    url = f"{page_url}/?alert=${{__data.fields.alert}}{segment}#explain"
    return linked("alert", "Why did it move?", url)


def statuses(windowed: Windowed, page_url: str) -> Panel:
    """A row for each watched segment, the most severe first."""
    labels = ("alert", *windowed.settings.dimension_names)
    kinds = {
        kind: "|".join(status for status, words in STATUSES.items() if words.kind == kind)
        for kind in _KINDS
    }
    ranks = [
        over_exporters(f'{PREFIX}alert_status{{{SYSTEM}, status=~"{names}"}}', *labels, "status")
        for names in kinds.values()
    ]
    began = least_of(
        f'ALERTS_FOR_STATE{{alertname=~"StreamerMetric.*", severity!="info", {SYSTEM}}}', *labels
    )
    columns = _columns(windowed)
    queries = [
        Query(f"bottomk by ({', '.join(labels)}) (1, {ranked(ranks)})", _SEVERITY),
        *(
            Query(over_exporters(f"{PREFIX}{name}{{{SYSTEM}}}", *labels), gauge.column)
            for name, gauge in columns.items()
        ),
        Query(f"{began} * {_MILLISECONDS}", "since"),
    ]
    percents = [gauge.column for name, gauge in columns.items() if name.endswith("_ratio")]
    values = [gauge.column for gauge in columns.values() if gauge.unit == _OF_METRIC]
    description = windowed.texts("alert_status", "alert_change_ratio", "alert_traffic_change_ratio")
    return table(
        "Watched metrics: which one has moved?",
        f"{description}\n\n{_RULE}\n\n*Since*: when the Prometheus rule began to hold.",
        queries,
        labels=(*labels, "status"),
        first=_SEVERITY,
        overrides=[
            named_numbers(_SEVERITY, _KINDS.values()),
            colored("status", _COLORS),
            Override(f"^({'|'.join(percents)})$", {"unit": PERCENT, "decimals": 0}),
            *([Override(f"^({'|'.join(values)})$", {"unit": PERCENT})] if values else []),
            Override("^since$", {"unit": _MOMENT}),
            _explained(windowed.settings.dimension_names, page_url),
        ],
        empty="no alert has a status yet",
    )


def _columns(windowed: Windowed) -> dict[str, Gauge]:
    """Series → gauge of the columns. Values have one only if all watched metrics are shares: a
    column has one unit."""
    measures = Catalogue(windowed.settings).alert_measures
    forms = {measures.ratios[alert.metric].form for alert in windowed.settings.alerts}
    return {
        name: gauge
        for name, gauge in _COLUMNS.items()
        if gauge.unit != _OF_METRIC or forms == {"percent"}
    }


def graphs(windowed: Windowed) -> list[Panel]:
    """The chosen alert over time: its change, and its traffic."""
    return [_change(windowed), _traffic(windowed)]


def _queries(
    windowed: Windowed, names: Mapping[str, str], *more: str, fold: Fold = over_exporters
) -> list[Query]:
    """A series for each segment of the chosen alert, of these gauges with the ends of their
    legends; ``more``: further matchers, ``fold``: which value is taken of several exporters."""
    dimensions = windowed.settings.dimension_names
    segment = " · ".join(f"{{{{{name}}}}}" for name in dimensions) or "all"
    where = ", ".join([SYSTEM, 'alert="$alert"', *more])
    return [
        Query(fold(f"{PREFIX}{name}{{{where}}}", *dimensions), f"{segment}{end}")
        for name, end in names.items()
    ]


def _change(windowed: Windowed) -> Panel:
    """The end of the interval that decides: all of it is beyond when this end is."""
    queries = []
    # As the rules do: all exporters have to say that a change is beyond the tolerance.
    ends = (("higher", "upper", over_exporters), ("lower", "lower", least_of))
    for direction, end, fold in ends:
        names = [alert.name for alert in windowed.settings.alerts if alert.direction == direction]
        if names:
            among = f'alert=~"{"|".join(names)}"'
            queries += _queries(windowed, {f"alert_change_{end}_ratio": ""}, among, fold=fold)
    queries += [
        *_queries(windowed, {"alert_support": ": support"}),
        Query(_tolerated(windowed), "tolerated"),
    ]
    limit = Override("^tolerated$", {"color": {"mode": "fixed", "fixedColor": RED}})
    description = windowed.of("alert_change_ratio").description
    return graph(
        "Change of $alert: how close is it to firing?",
        f"{description}\n\n{_RULE} So a line is the end of the interval that is nearer to good, "
        "for each segment: where it is beyond the red one, the alert fires.",
        PERCENT,
        queries,
        empty="no baseline to compare with yet",
        overrides=[support(": support$"), dashed("^tolerated$"), limit],
    )


def _traffic(windowed: Windowed) -> Panel:
    counts = {"alert_traffic": "", "alert_traffic_usual": " usual"}
    changed = {"alert_traffic_change_ratio": ": change"}
    queries = [*_queries(windowed, counts), *_queries(windowed, changed)]
    overrides = [dashed(" usual$"), in_tooltip(": change$", PERCENT)]
    text = windowed.texts("alert_traffic", "alert_traffic_usual", "alert_traffic_change_ratio")
    title = "Traffic of $alert: is it as usual?"
    empty = "no whole window has been counted yet"
    return graph(title, text, NUMBER, queries, empty=empty, overrides=overrides)


def _tolerated(windowed: Windowed) -> str:
    """The tolerated change of the chosen alert: it is in the settings, not in a series."""
    found = []
    for alert in windowed.settings.alerts:
        change = alert.drop if alert.direction == "lower" else -alert.drop
        found.append(f'label_replace(vector({change:g}), "alert", "{alert.name}", "", "")')
    several = f"({' or '.join(found)})" if len(found) > 1 else found[0]
    return f'max({several} and on (alert) label_replace(vector(1), "alert", "$alert", "", ""))'
