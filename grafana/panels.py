"""Panels and variables in one style, on Grafana's own builder library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Panel = stat.Panel | timeseries.Panel | table.Panel
SOURCE = common_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
JOB = 'job="$job"'
HEIGHT = 8
ALL_VALUES = ".*"
FIRST_TEN = 'position=~"[1-9]|10"'
"""The positions that can be read beside each other."""


class Query(NamedTuple):
    """PromQL and the legend of its series."""

    expr: str
    legend: str = ""


def over_exporters(expr: str, *labels: str) -> str:
    """One series for each set of labels: every exporter shows the same.

    >>> over_exporters("streamer_ready"), over_exporters("x", "topic")
    ('max(streamer_ready)', 'max by (topic) (x)')
    """
    return f"max by ({', '.join(labels)}) ({expr})" if labels else f"max({expr})"


def rate(name: str, matchers: str) -> str:
    """Growth per second of a counter."""
    return f"rate({name}{{{matchers}}}[$__rate_interval])"


def _target(query: Query, number: int) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number))
    return target.datasource(SOURCE).legend_format(query.legend or "__auto")


def graph(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    width: int = 12,
    from_zero: bool = True,
) -> timeseries.Panel:
    """Lines over time; a gap where there is no number. ``from_zero``: the axis shows 0."""
    legend = (
        common.VizLegendOptions()
        .display_mode(common_models.LegendDisplayMode.LIST)
        .placement(common_models.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    tooltip = (
        common.VizTooltipOptions()
        .mode(common_models.TooltipDisplayMode.MULTI)
        .sort(common_models.SortOrder.DESCENDING)
    )
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(width)
        .height(HEIGHT)
        .unit(unit)
        .line_width(1)
        .fill_opacity(8)
        .show_points(common_models.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(legend)
        .tooltip(tooltip)
    )
    if from_zero:
        panel = panel.axis_soft_min(0)
    for number, query in enumerate(queries):
        panel = panel.with_target(_target(query, number).range())
    return panel


def dashed_ends(panel: timeseries.Panel) -> timeseries.Panel:
    """The panel with dashed lines for what is called ``… high`` and ``… low``."""
    dashed = {"fill": "dash", "dash": [6, 6]}
    return panel.override_by_regexp(
        "/ (high|low)$/", [models.DynamicConfigValue("custom.lineStyle", dashed)]
    )


class Step(NamedTuple):
    """From this value on a tile has this colour; None: from the least."""

    value: float | None
    color: str


def tile(
    title: str, description: str, unit: str, query: Query, *, steps: Sequence[Step] = ()
) -> stat.Panel:
    """The present value as a number."""
    reduced = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(4)
        .height(4)
        .unit(unit)
        .reduce_options(reduced)
        .color_mode(
            common_models.BigValueColorMode.VALUE if steps else common_models.BigValueColorMode.NONE
        )
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .with_target(_target(query, 0).instant())
    )
    if steps:
        limits = [models.Threshold(value, color) for value, color in steps]
        config = builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(limits)
        panel = panel.thresholds(config)
    return panel


def heat_map(title: str, description: str, query: Query, *, rows_unit: str) -> heatmap.Panel:
    """Counts by class over time; a class is a series whose legend is its upper bound.

    Grafana sorts series by their legends where all of these are numbers or ``inf``. Format
    ``heatmap`` would take the counts for cumulative ones, and the difference of classes.
    """
    color = (
        heatmap.HeatmapColorOptions()
        .mode(heatmap_models.HeatmapColorMode.SCHEME)
        .scheme("Oranges")
        .fill("dark-orange")
        .scale(heatmap_models.HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .steps(64)
    )
    bound = heatmap.RowsHeatmapOptions().layout(common_models.HeatmapCellLayout.LE)
    target = _target(query, 0).range().format(PromQueryFormat.TIME_SERIES)
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(24)
        .height(HEIGHT)
        .unit(units.Short)
        .calculate(False)
        .rows_frame(bound.value("Count"))
        .y_axis(
            heatmap.YAxisConfig().unit(rows_unit).axis_placement(common_models.AxisPlacement.LEFT)
        )
        .cell_values(heatmap.CellValues().unit(units.Short))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .color(color)
        .show_y_histogram()
        .with_target(target)
    )


def rows_of(title: str, description: str, query: Query, hidden: Sequence[str]) -> table.Panel:
    """The present labels as a table, without those that say nothing."""
    organize = models.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": dict.fromkeys(hidden, True)},
    )
    target = _target(query, 0).instant().format(PromQueryFormat.TABLE)
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(12)
        .height(HEIGHT)
        .show_header(True)
        .with_transformation(organize)
        .with_target(target)
    )


# Variables ---------------------------------------------------------------------------------------


def source_variable() -> builders.DatasourceVariable:
    """Which Prometheus."""
    chosen = models.VariableOption(selected=True, text="Prometheus", value="prometheus")
    return (
        builders.DatasourceVariable("datasource")
        .label("Prometheus")
        .type("prometheus")
        .current(chosen)
    )


def label_variable(
    name: str, series: str, default: str, *, label: str | None = None
) -> builders.QueryVariable:
    """One value of a ``label`` (None: that of the same name); ``default`` where nothing was
    chosen."""
    chosen = models.VariableOption(selected=True, text=default, value=default)
    return (
        builders.QueryVariable(name)
        .label(name)
        .datasource(SOURCE)
        .query(f"label_values({series}, {label or name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NUMERICAL_ASC)
        .current(chosen)
    )


def values_variable(name: str, series: str, default: str | None) -> builders.QueryVariable:
    """Several values of a label, every one where ``default`` is None."""
    variable = label_variable(name, series, default or "all")
    variable = variable.multi(True).include_all(True).all_value(ALL_VALUES)
    if default is None:
        return variable.current(
            models.VariableOption(selected=True, text=["All"], value=["$__all"])
        )
    return variable.current(models.VariableOption(selected=True, text=[default], value=[default]))


def with_rows(board: builders.Dashboard, rows: Mapping[str, Sequence[Panel]]) -> builders.Dashboard:
    """The page with titled rows of panels."""
    for title, found in rows.items():
        board = board.with_row(builders.Row(title))
        for panel in found:
            board = board.with_panel(panel)
    return board


def page(uid: str, title: str, description: str) -> builders.Dashboard:
    """An empty dashboard."""
    return (
        builders.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["streamer"])
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .link(
            builders.DashboardLink("streamer")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["streamer"])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(source_variable())
        .with_variable(label_variable("job", "streamer_ready", "streamer"))
    )
