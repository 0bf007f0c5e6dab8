"""The page *alerts*: each watched metric with its interval, its baseline, and the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, over_exporters
from streamer.metrics.catalogue import PREFIX
from streamer.settings.model import Settings

_HIDDEN = ("Time", "Value", "__name__", "instance", "job")
_BAND = "Dashed: the ends of the interval."
_TOLERATED = (
    "An alert fires when the whole interval is beyond the tolerated change, not when the value is."
)


class Alerts:
    """Builds the page for the alerts and dimensions of a settings file."""

    def __init__(self, declared: dict[str, Declared], settings: Settings) -> None:
        self._declared = declared
        self._dimensions = settings.dimension_names
        self._alerts = settings.alerts

    def build(self) -> builders.Dashboard:
        """The page."""
        text = "Metrics against their baselines; docs/alerts.md explains the comparison."
        board = panels.page("streamer-alerts", "streamer: alerts", text)
        for variable in self._variables():
            board = board.with_variable(variable)
        rows: dict[str, list[timeseries.Panel | table.Panel]] = {
            "Status of every alert": [
                self._statuses("alert_status", "Status"),
                self._statuses("alert_traffic_status", "Traffic"),
                self._statuses("alert_reference_status", "Against the reference week"),
            ],
            "$alert": [self._values(), self._changes()],
            "Traffic": [self._traffic(), self._traffic_changes()],
            "Past week and reference week": [self._weeks(), self._week_changes()],
            "Support": [self._supports(), self._windows()],
        }
        return panels.with_rows(board, rows)

    def _variables(self) -> list[builders.QueryVariable]:
        support = self._of("alert_support").name
        first = self._alerts[0].name if self._alerts else ""
        of_alert = f'{support}{{{JOB}, alert="$alert"}}'
        return [
            panels.label_variable("alert", f"{support}{{{JOB}}}", first),
            *(panels.values_variable(name, of_alert, "all") for name in self._dimensions),
        ]

    def _of(self, name: str) -> Declared:
        return self._declared[PREFIX + name]

    def _queries(self, legends: dict[str, str]) -> list[Query]:
        """A series a chosen segment of each of these gauges, with what its legend ends in."""
        chosen = ", ".join(
            (JOB, 'alert="$alert"', *(f'{name}=~"${name}"' for name in self._dimensions))
        )
        segment = " · ".join(f"{{{{{name}}}}}" for name in self._dimensions) or "all"
        return [
            Query(
                over_exporters(f"{self._of(name).name}{{{chosen}}}", *self._dimensions),
                f"{segment}{end}",
            )
            for name, end in legends.items()
        ]

    def _text(self, names: Sequence[str], note: str) -> str:
        return "\n\n".join([*(self._of(name).description for name in names), note])

    def _statuses(self, name: str, title: str) -> table.Panel:
        what = self._of(name)
        labels = ("alert", *self._dimensions, "status")
        query = Query(over_exporters(f"{what.name}{{{JOB}}}", *labels))
        return panels.rows_of(title, what.description, query, _HIDDEN).span(24)

    def _values(self) -> timeseries.Panel:
        names = {"alert_value": "", "alert_lower": " low", "alert_upper": " high"}
        others = {"alert_same_time_value": " past days", "alert_before_value": " before"}
        queries = self._queries({**names, "alert_baseline": " baseline", **others})
        text = self._text(["alert_value", "alert_baseline", *others], _BAND)
        title = "$alert and its baseline"
        return panels.dashed_ends(panels.graph(title, text, units.Short, queries, from_zero=False))

    def _changes(self) -> timeseries.Panel:
        tolerated = _tolerated(
            {a.name: a.drop if a.direction == "lower" else -a.drop for a in self._alerts}
        )
        more = [Query(tolerated, "tolerated")] if tolerated else []
        return self._change("", "Change from the baseline", more)

    def _traffic(self) -> timeseries.Panel:
        queries = self._queries({"alert_traffic": "", "alert_traffic_usual": " usual"})
        text = self._text(["alert_traffic", "alert_traffic_usual"], "")
        return panels.graph("Traffic", text, units.Short, queries)

    def _traffic_changes(self) -> timeseries.Panel:
        least = _tolerated({a.name: -a.traffic_drop for a in self._alerts if a.traffic_drop})
        most = _tolerated({a.name: a.traffic_rise for a in self._alerts if a.traffic_rise})
        more = [Query(line, "tolerated") for line in (least, most) if line]
        return self._change("traffic_", "Change of traffic", more)

    def _weeks(self) -> timeseries.Panel:
        queries = self._queries(
            {"alert_past_week_value": "", "alert_reference_value": " reference week"}
        )
        text = self._text(["alert_past_week_value", "alert_reference_value"], "")
        title = "Past week and reference week"
        return panels.graph(title, text, units.Short, queries, from_zero=False)

    def _week_changes(self) -> timeseries.Panel:
        return self._change("reference_", "Change from the reference week", [])

    def _change(self, what: str, title: str, more: Sequence[Query]) -> timeseries.Panel:
        """A change with the ends of its interval."""
        name = f"alert_{what}change"
        ends = {f"{name}_lower_ratio": " low", f"{name}_upper_ratio": " high"}
        queries = [*self._queries({f"{name}_ratio": "", **ends}), *more]
        text = self._text([f"{name}_ratio"], f"{_BAND} {_TOLERATED}")
        return panels.dashed_ends(panels.graph(title, text, units.PercentUnit, queries))

    def _supports(self) -> timeseries.Panel:
        queries = self._queries({"alert_support": "", "alert_expected_support": " usual"})
        text = self._text(["alert_support", "alert_expected_support"], "")
        return panels.graph("Support", text, units.Short, queries)

    def _windows(self) -> timeseries.Panel:
        what = self._of("alert_baseline_windows")
        queries = self._queries({"alert_baseline_windows": ""})
        return panels.graph("Windows in the baseline", what.description, units.Short, queries)


def _tolerated(by_alert: Mapping[str, float]) -> str:
    """The tolerated change of the chosen alert: it is in the settings, not in a series.

    >>> _tolerated({"ctr": -0.1})
    'max(label_replace(vector(-0.1), "alert", "ctr", "", "") and on (alert) \
label_replace(vector(1), "alert", "$alert", "", ""))'
    """
    if not by_alert:
        return ""
    all_of_them = " or ".join(
        f'label_replace(vector({change:g}), "alert", "{name}", "", "")'
        for name, change in by_alert.items()
    )
    several = f"({all_of_them})" if len(by_alert) > 1 else all_of_them
    chosen = 'label_replace(vector(1), "alert", "$alert", "", "")'
    return f"max({several} and on (alert) {chosen})"
