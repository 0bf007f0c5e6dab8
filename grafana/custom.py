"""The page *custom*: metrics of ``[[custom]]``, by segment."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders

from grafana import panels
from grafana.panels import JOB
from grafana.windowed import Windowed
from streamer.metrics.catalogue import PREFIX

ROWS: dict[str, tuple[tuple[str, int], ...]] = {
    "Values": (("custom_mean", 9), ("window_custom_value", 8), ("window_custom_events", 7)),
    "Quantiles (where they are on)": (("custom_quantile", 24),),
    "Rates": (("custom_per_impression", 12), ("custom_per_user", 12)),
}
"""Metrics without prefix, and the widths of their panels."""
_NARROWED = {"custom": 'custom=~"$custom"'}


class Custom(Windowed):
    """Builds the page for the dimensions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        board = self._page("streamer-custom", "streamer: custom", "Metrics of `[[custom]]`")
        rows = {
            title: [self._graph(name, width=width, narrowed=_NARROWED) for name, width in of]
            for title, of in ROWS.items()
        }
        return panels.with_rows(board, rows)

    def _variables(self) -> list[builders.QueryVariable]:
        series = f"{PREFIX}window_custom_events{{{JOB}}}"
        return [*super()._variables(), panels.values_variable("custom", series, None)]
