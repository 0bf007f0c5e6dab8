"""Dashboards as pictures, for there is no Grafana here: panels in their places, drawn by what their
JSON says of lines, axes, bands, units, thresholds and columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.dates as dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tests.support.opened import unfolded

_WIDE, _UNIT = 22.0, 0.36
"""Inches: of the page, and of a unit of height."""
_COLORS = {
    "text": "#333333", "blue": "#3274d9", "orange": "#ff780a", "green": "#37872d",
    "purple": "#a352cc", "red": "#e02f44",
}  # fmt: skip
_PALETTE = ("#37872d", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8", "#00838f", "#795548")
_MANY = 12
"""Rows of a legend or a table that are drawn."""


class Line(NamedTuple):
    """A series over time; NaN where it has no value."""

    name: str
    times: list[float]
    values: list[float]


class Row(NamedTuple):
    """A present value of a query."""

    ref: str
    name: str
    labels: Mapping[str, str]
    value: float


class Data(NamedTuple):
    """What a panel's queries gave."""

    lines: Sequence[Line]
    rows: Sequence[Row]
    refs: Mapping[str, str]
    """Query → the name of its column."""


def shown(value: float, unit: str) -> str:
    """A number as Grafana writes it, about."""
    if value != value:
        return "NaN"
    if unit == "bool_yes_no":
        return "Yes" if value else "No"
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "dateTimeFromNow":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%d %b %H:%M")
    if unit == "s":
        for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
        return f"{value:.3g} s" if abs(value) >= 1 or not value else f"{1000 * value:.3g} ms"
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value / 1000:.3g} K"
    text = f"{value / 1e6:.3g} M" if abs(value) >= 1e6 else text
    return f"{text} /s" if unit == "cps" else text


def properties(panel: Any, name: str) -> dict[str, Any]:
    """Defaults of a panel, and what its overrides say of a series, by dotted names."""
    defaults = panel["fieldConfig"]["defaults"]
    found = {k: v for k, v in defaults.items() if k != "custom"}
    found |= {f"custom.{key}": value for key, value in defaults.get("custom", {}).items()}
    for override in panel["fieldConfig"]["overrides"]:
        if re.search(override["matcher"]["options"].strip("/"), name):
            found |= {each["id"]: each["value"] for each in override["properties"]}
    return found


def organized(panel: Any) -> dict[str, Any]:
    """What a table says of its columns: their names, their order, and which are left out."""
    named = {each["id"]: each["options"] for each in panel.get("transformations", ())}
    return dict(named.get("organize", {}))


def draw(page: Any, data: Mapping[int, Data], path: Path, span: tuple[float, float]) -> None:
    """Write the picture of a page. ``data``: by the number of the panel; ``span``: epoch seconds
    from and to."""
    mpl.use("Agg")
    panels = unfolded(page)
    high = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) + 1
    figure = Figure(figsize=(_WIDE, high * _UNIT), dpi=90)
    figure.text(0.01, 1 - 0.6 / high, page["title"], fontsize=16, weight="bold", va="center")
    for panel in panels:
        at = panel["gridPos"]
        left, bottom = at["x"] / 24, 1 - (at["y"] + at["h"] + 1) / high
        width, height = at["w"] / 24, at["h"] / high
        if panel["type"] == "row":
            y = bottom + height / 2
            figure.text(0.01, y, panel["title"], fontsize=12, color="#555555", va="center")
            continue
        figure.text(
            left + 0.008, bottom + height - 0.5 / high, panel["title"],
            fontsize=11, weight="bold", va="center",
        )  # fmt: skip
        aside = 0.13 if panel["type"] == "timeseries" else 0.01
        axes = figure.add_axes(
            (left + 0.035, bottom + 1.3 / high, width - 0.06 - aside, height - 2.4 / high)
        )
        _KINDS[panel["type"]](axes, panel, data[panel["id"]], span)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _graph(axes: Axes, panel: Any, data: Data, span: tuple[float, float]) -> None:
    """Lines, bands, thresholds, two axes and a legend with last values."""
    right = axes.twinx()
    units: dict[Axes, str] = {}
    soft: set[Axes] = set()
    by_name = {line.name: line for line in data.lines}
    legend: list[tuple[str, str]] = []
    shades = iter(_PALETTE * 20)
    for line in data.lines:
        its = properties(panel, line.name)
        if its.get("custom.axisPlacement") == "hidden":  # a number of the tooltip
            continue
        on = right if its.get("custom.axisPlacement") == "right" else axes
        units[on] = its.get("unit", "short")
        fixed = its.get("color", {}).get("fixedColor")
        color = _COLORS[fixed] if fixed else next(shades)
        when = [t / 86400 for t in line.times]
        low = by_name.get(its.get("custom.fillBelowTo", ""))
        if low is not None and low.times == line.times:
            on.fill_between(when, low.values, line.values, color=color, alpha=0.15, linewidth=0)
        style = its.get("custom.lineStyle", {}).get("fill", "solid")
        wide = its.get("custom.lineWidth", 1)
        if wide:
            on.plot(
                when, line.values, color=color, lw=wide * 0.8,
                ls={"dash": "--", "dot": ":"}.get(style, "-"),
                marker="." if len(when) < 4 else None,
            )  # fmt: skip
            on.set_ylabel(its.get("custom.axisLabel", ""), fontsize=8)
        if "custom.axisSoftMin" in its:
            soft.add(on)
        if not its.get("custom.hideFrom", {}).get("legend"):
            last = next((v for v in reversed(line.values) if v == v), float("nan"))
            legend.append((f"{line.name}  {shown(last, units[on])}", color))
    _limits(axes, panel)
    for on in soft:
        least, most = on.get_ylim()
        on.set_ylim(least if on.dataLim.y0 < 0 else 0.0, most)
    for on in (axes, right):
        unit = units.get(on, panel["fieldConfig"]["defaults"].get("unit", "short"))
        on.yaxis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: shown(value, unit)))
        on.tick_params(labelsize=7)
    right.set_visible(right in units)
    axes.set_xlim(span[0] / 86400, span[1] / 86400)
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]
    axes.grid(alpha=0.3)
    if not data.lines:
        text = panel["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color="#888888")
    _legend(axes, legend[:_MANY])


def _legend(axes: Axes, lines: Sequence[tuple[str, str]]) -> None:
    """Names and colours of lines, beside the graph."""
    for number, (text, color) in enumerate(lines):
        axes.text(
            1.13, 1 - number * 0.085, textwrap.shorten(text, 44, placeholder="…"),
            transform=axes.transAxes, fontsize=7.5, color=color, va="top",
        )  # fmt: skip


def _limits(axes: Axes, panel: Any) -> None:
    """Thresholds that are drawn as lines, where they are in sight."""
    defaults = panel["fieldConfig"]["defaults"]
    if defaults.get("custom", {}).get("thresholdsStyle"):
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None:
                axes.axhline(step["value"], color=_COLORS[step["color"]], ls="--", lw=0.9)


def _tiles(axes: Axes, panel: Any, data: Data, span: tuple[float, float]) -> None:
    axes.axis("off")
    for number, row in enumerate(data.rows):
        its = properties(panel, row.name)
        color = "text"
        for step in its.get("thresholds", {}).get("steps", ()):
            if step["value"] is None or row.value >= step["value"]:
                color = step["color"]
        x = (number + 0.5) / len(data.rows)
        text, named = _mapped(its, row.value)
        color = named or color
        axes.text(x, 0.6, text, ha="center", fontsize=15, color=_COLORS[color])
        axes.text(x, 0.25, textwrap.fill(row.name, 16), ha="center", va="center", fontsize=8)
    if not data.rows:
        text = panel["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, text, ha="center", color="#888888")


def _table(axes: Axes, panel: Any, data: Data, span: tuple[float, float]) -> None:
    """Rows by labels, as Grafana's *merge* makes them; a column for each label and query."""
    axes.axis("off")
    order = organized(panel)["indexByName"]
    names = sorted({key for row in data.rows for key in row.labels}, key=lambda n: order.get(n, 99))
    columns = [name for name in data.refs.values() if name]
    shared = set.intersection(*(set(row.labels) for row in data.rows)) if data.rows else set()
    merged: dict[tuple[str, ...], dict[str, str]] = {}
    for row in data.rows:
        key = tuple(row.labels[name] for name in names if name in shared)
        column = data.refs[row.ref]
        cells = merged.setdefault(key, {})
        cells |= row.labels
        cells[column] = _mapped(properties(panel, column), row.value)[0]
    if not merged:
        text = panel["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, text, ha="center", color="#888888")
        return
    table = [[found.get(c, "") for c in [*names, *columns]] for found in merged.values()]
    drawn = axes.table(
        table[:_MANY], colLabels=[*names, *columns], loc="upper left", cellLoc="left",
        edges="horizontal",
    )  # fmt: skip
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7.5)
    drawn.auto_set_column_width(list(range(len(names) + len(columns))))
    for (number, place), cell in drawn.get_celld().items():
        name = [*names, *columns][place]
        for mapping in properties(panel, name).get("mappings", ()) if number else ():
            colors = {
                text: option["color"]
                for key, option in mapping["options"].items()
                for text in (key, option.get("text", key))
            }
            cell.get_text().set_color(_COLORS[colors.get(cell.get_text().get_text(), "text")])


def _mapped(its: Mapping[str, Any], value: float) -> tuple[str, str]:
    """A number, or the word that stands for it, and that word's colour."""
    for mapping in its.get("mappings", ()):
        options = mapping["options"]
        if mapping["type"] == "value" and (found := options.get(f"{value:g}")):
            return found["text"], found["color"]
        if mapping["type"] == "range":
            low, high = options["from"], options["to"]
            if (low is None or value >= low) and (high is None or value < high):
                return options["result"]["text"], options["result"]["color"]
    return shown(value, its.get("unit", "short")), ""


_KINDS: Mapping[str, Callable[[Axes, Any, Data, tuple[float, float]], None]] = {
    "timeseries": _graph,
    "stat": _tiles,
    "table": _table,
}
