"""The page *overview*: what the recommender does, by window and dimension.

Beside each ratio stands its support: a rate of few is no rate.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.panels import FIRST_TEN, JOB, Query, over_exporters
from grafana.windowed import Windowed
from streamer.metrics.catalogue import PREFIX

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
    "Kinds of feedback": (("window_feedback", "window_clicks"),),
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
_NARROWED = {"maturity": 'maturity="$maturity"', "position": FIRST_TEN}
"""How labels beside the dimensions are narrowed: by a variable, or to what can be read."""


class Overview(Windowed):
    """Builds the page for the dimensions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        board = self._page("streamer-overview", "streamer: overview", "Metrics")
        board = board.with_row(builders.Row("All segments, in the chosen window"))
        for name in TILES:
            board = board.with_panel(self._tile(name, _NARROWED))
        board = board.with_row(builders.Row("Traffic"))
        for panel in self._traffic():
            board = board.with_panel(panel)
        for title, pairs in ROWS.items():
            board = board.with_row(builders.Row(title))
            for name, support in pairs:
                of = f"{self._of(support).title}: support of {self._of(name).title}"
                board = board.with_panel(self._graph(name, width=14, narrowed=_NARROWED))
                board = board.with_panel(
                    self._graph(support, width=10, title=of, narrowed=_NARROWED)
                )
        return board

    def _variables(self) -> list[builders.QueryVariable]:
        attributed = f"{PREFIX}window_ctr_attributed_impressions{{{JOB}}}"
        maturity = panels.label_variable("maturity", attributed, "provisional")
        return [*super()._variables(), maturity]

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
