"""The page *overview*: what the recommender does, by window and dimension.

Beside each ratio stands its support: a rate of few is no rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import stat, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, over_exporters
from streamer.metrics.catalogue import PREFIX

DEFAULT_WINDOW = "5m"
ROWS: dict[str, tuple[tuple[str, str], ...]] = {
    "Click-through": (
        ("ctr_ratio", "window_impressions"),
        ("ctr_attributed_ratio", "window_ctr_attributed_impressions"),
        ("coec_ratio", "window_coec_expected_clicks"),
        ("ctr_position_ratio", "window_position_impressions"),
    ),
    "Conversion and value": (
        ("cvr_ratio", "window_clicks"),
        ("cvr_attributed_ratio", "window_cvr_attributed_clicked"),
        ("conversion_value_per_impression", "window_impressions"),
        ("conversion_value_per_click", "window_clicks"),
        ("window_conversion_value", "window_conversions"),
    ),
    "Engagement": (
        ("dwell_seconds", "window_dwells"),
        ("dwell_mean_seconds", "window_dwells"),
        ("window_feedback", "window_clicks"),
    ),
    "Numerators": (
        ("window_ctr_attributed_clicked", "window_ctr_attributed_impressions"),
        ("window_cvr_attributed_converted", "window_cvr_attributed_clicked"),
        ("window_position_clicks", "window_position_impressions"),
    ),
}
"""(metric, its support), names without prefix."""
TILES = (
    *("ctr_ratio", "ctr_attributed_ratio", "cvr_ratio"),
    *("window_conversion_value", "dwell_mean_seconds", "window_impressions"),
)
RATES = ("impressions_total", "clicks_total", "conversions_total", "conversion_value_total")
_CHOSEN = {"maturity": 'maturity="$maturity"', "position": 'position=~"[1-9]|10"'}
"""How labels beside the dimensions are narrowed: by a variable, or to what can be read."""


class Overview:
    """Builds the page for the dimensions of a settings file."""

    def __init__(self, declared: dict[str, Declared], dimensions: Sequence[str]) -> None:
        self._declared, self._dimensions = declared, tuple(dimensions)

    def build(self) -> builders.Dashboard:
        """The page."""
        names = " and ".join(self._dimensions) or "nothing"
        board = panels.page("streamer-overview", "streamer: overview", f"Metrics by {names}.")
        for variable in self._variables():
            board = board.with_variable(variable)
        board = board.with_row(builders.Row("Everything, in the chosen window"))
        for name in TILES:
            board = board.with_panel(self._tile(name))
        board = board.with_row(builders.Row("Traffic"))
        for panel in self._traffic():
            board = board.with_panel(panel)
        for title, pairs in ROWS.items():
            board = board.with_row(builders.Row(title))
            for name, support in pairs:
                board = board.with_panel(self._graph(name, width=14))
                board = board.with_panel(self._graph(support, width=10, of=name))
        return board

    def _variables(self) -> list[builders.QueryVariable]:
        """The first dimension shows each of its values, the others their rollup."""
        series = f"{PREFIX}window_impressions{{{JOB}}}"
        window = panels.label_variable("window", series, DEFAULT_WINDOW)
        attributed = f"{PREFIX}window_ctr_attributed_impressions{{{JOB}}}"
        maturity = panels.label_variable("maturity", attributed, "provisional")
        found = [window]
        for number, name in enumerate(self._dimensions):
            found.append(panels.values_variable(name, series, "all" if number else None))
        return [*found, maturity]

    def _of(self, name: str) -> Declared:
        return self._declared[PREFIX + name]

    def _rolled_up(self) -> str:
        return "".join(f', {name}="all"' for name in self._dimensions)

    def _chosen(self) -> str:
        return "".join(f', {name}=~"${name}"' for name in self._dimensions)

    def _tile(self, name: str) -> stat.Panel:
        what = self._of(name)
        extra = "".join(f", {_CHOSEN[label]}" for label in what.labels)
        expr = f'{what.name}{{{JOB}, window="$window"{self._rolled_up()}{extra}}}'
        return panels.tile(what.title, what.description, what.unit, Query(over_exporters(expr)))

    def _graph(self, name: str, *, width: int, of: str | None = None) -> timeseries.Panel:
        what = self._of(name)
        by_position = "position" in what.labels
        # Fifty positions of every segment are no picture: only the rollup is shown by position.
        where = self._rolled_up() if by_position else self._chosen()
        extra = "".join(f", {_CHOSEN[label]}" for label in what.labels if label in _CHOSEN)
        shown = [label for label in what.labels if label != "maturity"]
        by = shown if by_position else [*self._dimensions, *shown]
        expr = f'{what.name}{{{JOB}, window="$window"{where}{extra}}}'
        legend = " · ".join(f"{{{{{label}}}}}" for label in by)
        title = f"{what.title}: support of {self._of(of).title}" if of else what.title
        queries = [Query(over_exporters(expr, *by), legend or what.title)]
        return panels.graph(title, what.description, what.unit, queries, width=width)

    def _traffic(self) -> list[timeseries.Panel]:
        """Growth of the totals; they count what is settled, so clicks come a little later."""
        found = []
        events = self._of("events_total")
        query = Query(over_exporters(panels.rate(events.name, JOB), "topic"), "{{topic}}")
        title = f"{events.title} per second by topic"
        found.append(panels.graph(title, events.description, events.rate_unit, [query], width=8))
        legend = " · ".join(f"{{{{{name}}}}}" for name in self._dimensions)
        for name in RATES:
            what = self._of(name)
            expr = over_exporters(panels.rate(what.name, JOB + self._chosen()), *self._dimensions)
            title = f"{what.title} per second"
            unit = what.rate_unit if name != "conversion_value_total" else units.Short
            query = Query(expr, legend or what.title)
            found.append(panels.graph(title, what.description, unit, [query], width=8))
        kinds = self._of("feedback_total")
        expr = over_exporters(panels.rate(kinds.name, JOB + self._rolled_up()), "feedback")
        title = f"{kinds.title} per second by kind"
        query = Query(expr, "{{feedback}}")
        found.append(panels.graph(title, kinds.description, kinds.rate_unit, [query], width=8))
        return found
