"""The page *alerts*: each watched metric with its interval, its baseline, and the change."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, over_exporters
from streamer.alert_settings import Alert
from streamer.config import Settings
from streamer.metrics.catalogue import PREFIX

_HIDDEN = ("Time", "Value", "__name__", "instance", "job")
_BAND = "Dashed: the ends of the interval."
_TOLERATED = (
    "An alert fires when the whole interval is beyond what is tolerated, not when the change is."
)


class Alerts:
    """Builds the page for the alerts and dimensions of a settings file."""

    def __init__(self, declared: dict[str, Declared], settings: Settings) -> None:
        self._declared = declared
        self._dimensions = settings.dimension_names
        self._alerts = settings.alerts

    def build(self) -> builders.Dashboard:
        """The page."""
        text = "Metrics against what is usual; docs/alerts.md says what is compared."
        board = panels.page("streamer-alerts", "streamer: alerts", text)
        for variable in self._variables():
            board = board.with_variable(variable)
        rows: dict[str, list[timeseries.Panel | table.Panel]] = {
            "What is said of every alert": [self._statuses()],
            "$alert": [self._values(), self._changes()],
            "What it rests on": [self._supports(), self._windows()],
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

    def _statuses(self) -> table.Panel:
        what = self._of("alert_status")
        labels = ("alert", *self._dimensions, "status")
        query = Query(over_exporters(f"{what.name}{{{JOB}}}", *labels))
        return panels.rows_of("Status", what.description, query, _HIDDEN).span(24)

    def _values(self) -> timeseries.Panel:
        names = {"alert_value": "", "alert_lower": " low", "alert_upper": " high"}
        others = {"alert_same_time_value": " past days", "alert_before_value": " before"}
        queries = self._queries({**names, "alert_baseline": " baseline", **others})
        text = self._text(["alert_value", "alert_baseline", *others], _BAND)
        title = "$alert and its baseline"
        return panels.dashed_ends(panels.graph(title, text, units.Short, queries, from_zero=False))

    def _changes(self) -> timeseries.Panel:
        ends = {"alert_change_lower_ratio": " low", "alert_change_upper_ratio": " high"}
        queries = self._queries({"alert_change_ratio": "", **ends})
        if self._alerts:
            queries.append(Query(_tolerated(self._alerts), "tolerated"))
        text = self._text(["alert_change_ratio"], f"{_BAND} {_TOLERATED}")
        title = "Change from the baseline"
        return panels.dashed_ends(panels.graph(title, text, units.PercentUnit, queries))

    def _supports(self) -> timeseries.Panel:
        queries = self._queries({"alert_support": "", "alert_expected_support": " usual"})
        text = self._text(["alert_support", "alert_expected_support"], "")
        return panels.graph("Support", text, units.Short, queries)

    def _windows(self) -> timeseries.Panel:
        what = self._of("alert_baseline_windows")
        queries = self._queries({"alert_baseline_windows": ""})
        return panels.graph("Windows in the baseline", what.description, units.Short, queries)


def _tolerated(alerts: Sequence[Alert]) -> str:
    """The tolerated change of the chosen alert: it is in the settings, not in a series.

    >>> _tolerated([Alert("ctr")])
    'max(label_replace(vector(-0.1), "alert", "ctr", "", "") and on (alert) \
label_replace(vector(1), "alert", "$alert", "", ""))'
    """
    all_of_them = " or ".join(
        f"label_replace(vector({a.drop if a.direction == 'lower' else -a.drop:g}), "
        f'"alert", "{a.name}", "", "")'
        for a in alerts
    )
    several = f"({all_of_them})" if len(alerts) > 1 else all_of_them
    chosen = 'label_replace(vector(1), "alert", "$alert", "", "")'
    return f"max({several} and on (alert) {chosen})"
