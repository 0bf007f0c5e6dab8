"""Panels of Grafana as dictionaries, in one style.

Fields are those of Grafana 12 (`@grafana/schema`), by whose types the tests check them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Panel = dict[str, Any]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
JOB = 'job="$job"'
GREEN, ORANGE, RED = "green", "orange", "red"
LINE_COLORS = ("blue", "orange", "green", "purple")


class Query(NamedTuple):
    """PromQL, and the legend of its series or the name of its column."""

    expr: str
    legend: str = ""


class Step(NamedTuple):
    """From this value on a number has this colour; None: from the least."""

    value: float | None
    color: str


class Override(NamedTuple):
    """Properties of the series whose names match ``pattern``, a regular expression."""

    pattern: str
    properties: Mapping[str, object]


def over_exporters(expr: str, *labels: str) -> str:
    """One series for each set of labels: every exporter shows the same.

    >>> over_exporters("streamer_ready"), over_exporters("x", "topic")
    ('max(streamer_ready)', 'max by (topic) (x)')
    """
    return f"max by ({', '.join(labels)}) ({expr})" if labels else f"max({expr})"


def the_first(expr: str, labels: Sequence[str], *varying: str) -> str:
    """One series for each set of ``labels``, with the labels ``varying`` of one of them: exporters
    that have read different commits may differ in these."""
    return f"topk by ({', '.join(labels)}) (1, {over_exporters(expr, *labels, *varying)})"


def rate(name: str, matchers: str = JOB) -> str:
    """Growth per second of a counter."""
    return f"rate({name}{{{matchers}}}[$__rate_interval])"


def on_the_right(pattern: str, unit: str, label: str) -> Override:
    """Support of what is on the left: dotted, on an axis of its own from 0."""
    return Override(
        pattern,
        {
            "custom.axisPlacement": "right",
            "custom.axisLabel": label,
            "custom.axisSoftMin": 0,
            "custom.lineStyle": {"fill": "dot", "dash": [2, 6]},
            "custom.lineWidth": 1,
            "custom.fillOpacity": 0,
            "custom.thresholdsStyle": {"mode": "off"},
            "unit": unit,
        },
    )


def dashed(pattern: str) -> Override:
    """Lines that are ends of intervals or bounds."""
    return Override(
        pattern, {"custom.lineStyle": {"fill": "dash", "dash": [6, 6]}, "custom.fillOpacity": 0}
    )


def _targets(queries: Sequence[Query], **more: object) -> list[dict[str, object]]:
    return [
        {
            "datasource": SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "refId": chr(ord("A") + i),
            **more,
        }
        for i, query in enumerate(queries)
    ]


def _overrides(overrides: Iterable[Override]) -> list[dict[str, object]]:
    return [
        {
            "matcher": {"id": "byRegexp", "options": f"/{each.pattern}/"},
            "properties": [
                {"id": name, "value": each.properties[name]} for name in each.properties
            ],
        }
        for each in overrides
    ]


def _thresholds(steps: Sequence[Step]) -> dict[str, object]:
    if not steps:
        return {}
    found = [{"value": step.value, "color": step.color} for step in steps]
    return {"thresholds": {"mode": "absolute", "steps": found}}


def _panel(kind: str, title: str, text: str, width: int, height: int) -> Panel:
    return {
        "type": kind,
        "title": title,
        "description": text,
        "datasource": SOURCE,
        "gridPos": {"x": 0, "y": 0, "w": width, "h": height},
    }


def graph(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    width: int = 12,
    steps: Sequence[Step] = (),
    overrides: Sequence[Override] = (),
    from_zero: bool = True,
) -> Panel:
    """Lines over time, with their last values in the legend; a gap where there is no number.

    ``unit``: Grafana's name. ``steps`` are drawn as lines. ``from_zero``: the left axis shows 0.
    """
    custom: dict[str, object] = {
        "lineWidth": 2,
        "fillOpacity": 0,
        "showPoints": "auto",
        "pointSize": 4,
        "spanNulls": False,
    }
    if from_zero:
        custom["axisSoftMin"] = 0
    if steps:
        custom["thresholdsStyle"] = {"mode": "dashed"}
    legend = {
        "showLegend": True,
        "displayMode": "table",
        "placement": "right" if width >= 12 else "bottom",
        "calcs": ["lastNotNull"],
    }
    return _panel("timeseries", title, description, width, 9) | {
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "custom": custom,
                "color": {"mode": "palette-classic"},
                **_thresholds(steps),
            },
            "overrides": _overrides(overrides),
        },
        "options": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": _targets(queries, instant=False, range=True),
    }


def tiles(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    width: int = 12,
    height: int = 5,
    steps: Sequence[Step] = (),
    overrides: Sequence[Override] = (),
) -> Panel:
    """Present values as numbers beside each other, each with its name."""
    options = {
        "colorMode": "value" if steps or overrides else "none",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "vertical",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
        "showPercentChange": False,
        "textMode": "value_and_name",
        "wideLayout": False,
    }
    defaults = {"unit": unit, **_thresholds(steps or [Step(None, "text")])}
    return _panel("stat", title, description, width, height) | {
        "fieldConfig": {"defaults": defaults, "overrides": _overrides(overrides)},
        "options": options,
        "targets": _targets(queries, instant=True, range=False),
    }


def bad_from(pattern: str, steps: Sequence[Step], **more: object) -> Override:
    """Thresholds, and further properties, of some of the tiles or columns."""
    return Override(pattern, {**_thresholds(steps), **more})


def table(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    labels: Sequence[str],
    width: int = 24,
    height: int = 8,
    unit: str = "short",
    overrides: Sequence[Override] = (),
    empty: str = "",
) -> Panel:
    """Present values: a row for each set of ``labels``, a column for each of these and each query.

    A query without a legend has no column: its labels say it. ``empty``: what an empty table says.
    """
    only = len(queries) == 1
    refs = {"Value" if only else f"Value #{chr(ord('A') + i)}": q for i, q in enumerate(queries)}
    organize = {
        "excludeByName": {"Time": True} | {ref: True for ref, q in refs.items() if not q.legend},
        "renameByName": {ref: q.legend for ref, q in refs.items() if q.legend},
        "indexByName": {name: i for i, name in enumerate([*labels, *refs])},
    }
    merged = [] if only else [{"id": "merge", "options": {}}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
    defaults: dict[str, object] = {"unit": unit, "custom": custom}
    if empty:
        defaults["noValue"] = empty
    return _panel("table", title, description, width, height) | {
        "fieldConfig": {"defaults": defaults, "overrides": _overrides(overrides)},
        "options": {"cellHeight": "sm", "frameIndex": 0, "showHeader": True},
        "targets": _targets(queries, instant=True, range=False, format="table"),
        "transformations": [*merged, {"id": "organize", "options": organize}],
    }


def colored(column: str, colors: Mapping[str, str]) -> Override:
    """Texts of a column in colours."""
    options = {text: {"color": color, "index": i} for i, (text, color) in enumerate(colors.items())}
    return Override(
        f"^{column}$",
        {
            "mappings": [{"type": "value", "options": options}],
            "custom.cellOptions": {"type": "color-text"},
        },
    )


def no_line(pattern: str) -> Override:
    """Ends of bands, which are no lines of their own."""
    hidden = {"legend": True, "tooltip": True, "viz": False}
    return Override(pattern, {"custom.lineWidth": 0, "custom.hideFrom": hidden})


def band(pattern: str, name: str) -> Override:
    """What is filled below ``NAME high``; ``pattern``: the name as a regular expression."""
    fill = {"custom.fillBelowTo": f"{name} low", "custom.fillOpacity": 15}
    return Override(f"^{pattern} high$", fill)


def bands_of(names: Iterable[str]) -> list[Override]:
    """Bands between ``NAME high`` and ``NAME low``, for lines whose names are known beforehand: the
    ends are no lines of their own, and have the colour of their line."""
    found = [no_line(" (high|low)$")]
    for name, color in zip(names, itertools.cycle(LINE_COLORS), strict=False):
        literal = re.escape(name)
        fixed = {"color": {"mode": "fixed", "fixedColor": color}}
        found.append(Override(f"^{literal}( high| low|:|$)", fixed))
        found.append(band(literal, name))
    return found
