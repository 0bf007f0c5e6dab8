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
SYSTEM = 'system="$system"'
TARGETS = f'job="streamer", {SYSTEM}'
"""Of Prometheus' own series, which other jobs have, too."""
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


def least_of(expr: str, *labels: str) -> str:
    """The same, of exporters that differ the lowest value: one that says no is heard.

    >>> least_of("streamer_ready"), least_of("x", "topic")
    ('min(streamer_ready)', 'min by (topic) (x)')
    """
    return f"min by ({', '.join(labels)}) ({expr})" if labels else f"min({expr})"


def the_first(expr: str, labels: Sequence[str], *varying: str) -> str:
    """One series for each set of ``labels``, with the labels ``varying`` of one of them: exporters
    that have read different commits may differ in these."""
    return f"topk by ({', '.join(labels)}) (1, {over_exporters(expr, *labels, *varying)})"


def rate(name: str, matchers: str = SYSTEM) -> str:
    """Growth per second of a counter."""
    return f"rate({name}{{{matchers}}}[$__rate_interval])"


def on_the_right(pattern: str, unit: str, label: str) -> Override:
    """Lines of another unit: dotted, on an axis of its own from 0."""
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


def in_tooltip(pattern: str, unit: str) -> Override:
    """Numbers that only the tooltip shows, such as the support of a line."""
    return Override(
        pattern,
        {
            "custom.axisPlacement": "hidden",
            "custom.hideFrom": {"legend": True, "tooltip": False, "viz": False},
            "custom.lineWidth": 0,
            "custom.showPoints": "never",
            "custom.fillOpacity": 0,
            "custom.thresholdsStyle": {"mode": "off"},
            "unit": unit,
        },
    )


def ends_in_tooltip() -> Override:
    """Ends of intervals as numbers of the tooltip, on the axis of their line."""
    hidden = {"legend": True, "tooltip": False, "viz": False}
    return Override(
        " (high|low)$",
        {
            "custom.hideFrom": hidden,
            "custom.lineWidth": 0,
            "custom.showPoints": "never",
            "custom.fillOpacity": 0,
        },
    )


def support(pattern: str) -> Override:
    """The support of each line, a number of the tooltip."""
    return in_tooltip(pattern, "short")


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
    empty: str,
    width: int = 12,
    steps: Sequence[Step] = (),
    overrides: Sequence[Override] = (),
    from_zero: bool = True,
) -> Panel:
    """Lines over time, with their last values in the legend; a gap where there is no number.

    ``unit``: Grafana's name. ``empty``: the text of a panel without data. ``steps`` are drawn as
    lines. ``from_zero``: the left axis shows 0. Colours go by name, so that a line keeps its own.
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
                "color": {"mode": "palette-classic-by-name"},
                "noValue": empty,
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
    empty: str,
    width: int = 12,
    height: int = 5,
    steps: Sequence[Step] = (),
    overrides: Sequence[Override] = (),
) -> Panel:
    """Present values as numbers beside each other, each with its name; ``empty``: the text of one
    that is absent."""
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
    defaults = {"unit": unit, "noValue": empty, **_thresholds(steps or [Step(None, "text")])}
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
    empty: str,
    first: str = "",
    sort: str = "",
    is_descending: bool = False,
    width: int = 24,
    height: int = 8,
    unit: str = "short",
    overrides: Sequence[Override] = (),
) -> Panel:
    """Present values: a row for each set of ``labels``, a column for each of these and each query.

    A query without a legend has no column: its labels say it. ``empty``: the text of an empty
    table. ``first``: the column that comes before all others, by which rows are sorted; or else
    ``sort``: the column by which they are.
    """
    only = len(queries) == 1
    refs = {"Value" if only else f"Value #{chr(ord('A') + i)}": q for i, q in enumerate(queries)}
    organize = {
        "excludeByName": {"Time": True} | {ref: True for ref, q in refs.items() if not q.legend},
        "renameByName": {ref: q.legend for ref, q in refs.items() if q.legend},
        "indexByName": {name: i for i, name in enumerate(_ordered(labels, refs, first))},
    }
    by = [{"field": first or sort, "desc": is_descending}]
    sorting = [{"id": "sortBy", "options": {"fields": {}, "sort": by}}] if first or sort else []
    merged = [] if only else [{"id": "merge", "options": {}}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
    defaults = {"unit": unit, "noValue": empty, "custom": custom}
    return _panel("table", title, description, width, height) | {
        "fieldConfig": {"defaults": defaults, "overrides": _overrides(overrides)},
        "options": {"cellHeight": "sm", "frameIndex": 0, "showHeader": True},
        "targets": _targets(queries, instant=True, range=False, format="table"),
        "transformations": [*merged, {"id": "organize", "options": organize}, *sorting],
    }


def _ordered(labels: Sequence[str], refs: Mapping[str, Query], first: str) -> list[str]:
    """Labels and queries in the order of their columns."""
    before = [ref for ref, query in refs.items() if first and query.legend == first]
    return [*before, *labels, *(ref for ref in refs if ref not in before)]


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


def named_numbers(column: str, names: Iterable[tuple[str, str]]) -> Override:
    """Names and colours of the numbers in a column, which count from 1."""
    options = {
        str(number): {"text": text, "color": color, "index": number}
        for number, (text, color) in enumerate(names, 1)
    }
    return Override(
        f"^{column}$",
        {
            "mappings": [{"type": "value", "options": options}],
            "custom.cellOptions": {"type": "color-text"},
            "unit": "none",
        },
    )


def in_words(pattern: str, bad: str, bound: float, good: str) -> Override:
    """A number as a word: ``bad`` and red below ``bound``, else ``good`` and green."""
    results = {"text": bad, "color": RED, "index": 0}, {"text": good, "color": GREEN, "index": 1}
    ranges = ({"from": None, "to": bound}, {"from": bound, "to": None})
    mappings = [
        {"type": "range", "options": {**each, "result": result}}
        for each, result in zip(ranges, results, strict=True)
    ]
    return Override(f"^{pattern}$", {"mappings": mappings})


def ranked(exprs: Sequence[str]) -> str:
    """The number of the first of these expressions that a set of labels has, from 1.

    >>> ranked(["a", "b"])
    '((a) * 0 + 1) or ((b) * 0 + 2)'
    """
    return " or ".join(f"(({expr}) * 0 + {number})" for number, expr in enumerate(exprs, 1))


def linked(column: str, title: str, url: str) -> Override:
    """Cells of a column that lead somewhere; ``url`` names fields as Grafana does."""
    return Override(f"^{column}$", {"links": [{"title": title, "url": url, "targetBlank": True}]})


def no_line(pattern: str) -> Override:
    """Ends of bands, which are no lines of their own."""
    hidden = {"legend": True, "tooltip": True, "viz": False}
    return Override(pattern, {"custom.lineWidth": 0, "custom.hideFrom": hidden})


def band(pattern: str, name: str) -> Override:
    """What is filled below ``NAME high``; ``pattern``: the name as a regular expression."""
    fill = {"custom.fillBelowTo": f"{name} low", "custom.fillOpacity": 15}
    return Override(f"^{pattern} high$", fill)


def bands_of(names: Iterable[str], colors: Sequence[str] = LINE_COLORS) -> list[Override]:
    """Bands between ``NAME high`` and ``NAME low``, for lines whose names are known beforehand: the
    ends are no lines of their own, and have the colour of their line."""
    found = []
    for name, color in zip(names, itertools.cycle(colors), strict=False):
        literal = re.escape(name)
        fixed = {"color": {"mode": "fixed", "fixedColor": color}}
        found.append(Override(f"^{literal}( high| low|:|$)", fixed))
        found.append(no_line(f"^{literal} (high|low)$"))
        found.append(band(literal, name))
    return found
