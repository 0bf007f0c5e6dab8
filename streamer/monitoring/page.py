"""A dashboard of Grafana: its panels in rows, its variables, annotations and links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring.panels import JOB, SOURCE, Panel

Variable = dict[str, Any]
TAG = "streamer"
ALL_VALUES = ".+"
_COLUMNS = 24
_HIDDEN = 2


def choice(
    name: str, series: str, default: str, *, of: str = "", label: str = "", hidden: bool = False
) -> Variable:
    """A variable: one value of a label of ``series``. ``of``: the label, where it is not called as
    the variable; ``default``: the value to begin with, "" is the first one."""
    variable: Variable = {
        "type": "query",
        "name": name,
        "label": label or name,
        "datasource": SOURCE,
        "query": f"label_values({series}, {of or name})",
        "refresh": 2,
        "sort": 3,
        "multi": False,
        "includeAll": False,
        "current": _option(default),
    }
    return {**variable, "hide": _HIDDEN} if hidden else variable


def one_of(name: str, label: str, values: Sequence[str]) -> Variable:
    """A variable with these values, of which the first is chosen."""
    options = [_option(value, is_chosen=value == values[0]) for value in values]
    return {
        "type": "custom",
        "name": name,
        "label": label,
        "query": ",".join(values),
        "options": options,
        "multi": False,
        "includeAll": False,
        "current": options[0],
    }


def _option(value: str, *, is_chosen: bool = True) -> dict[str, object]:
    return {"selected": is_chosen, "text": value, "value": value}


def _shared_variables() -> list[Variable]:
    source = {
        "type": "datasource",
        "name": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
        "multi": False,
        "includeAll": False,
        "current": {"selected": True, "text": "Prometheus", "value": "prometheus"},
    }
    return [source, choice("job", f"{PREFIX}ready", "streamer")]


def annotation(name: str, expr: str, color: str, title: str, description: str) -> dict[str, object]:
    """Marks where a query has a value above 0; neighbouring ones are one region."""
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "iconColor": color,
        "expr": expr,
        "step": "60s",
        "titleFormat": title,
        "textFormat": description,
    }


def firing(names: str = "Streamer.*") -> dict[str, object]:
    """Marks of alerts that fire, without those for information."""
    where = f'alertstate="firing", alertname=~"{names}", severity!="info", {JOB}'
    series = f"max by (alertname, severity, alert, topic) (ALERTS{{{where}}})"
    return annotation("Alerts", series, "red", "{{alertname}}", "{{severity}} {{alert}} {{topic}}")


def page(
    name: str,
    description: str,
    rows: Mapping[str, Sequence[Panel]],
    *,
    variables: Sequence[Variable] = (),
    annotations: Sequence[Mapping[str, object]] = (),
    since: str = "now-1h",
    links: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """A dashboard, without its rows that are empty. ``links``: titles and addresses."""
    return {
        "uid": f"streamer-{name}",
        "title": f"streamer: {name}",
        "description": description,
        "tags": [TAG],
        "schemaVersion": 41,
        "timezone": "browser",
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": since, "to": "now"},
        "timepicker": {},
        "annotations": {"list": list(annotations)},
        "templating": {"list": [*_shared_variables(), *variables]},
        "links": [_link(TAG), *(_link(title, url) for title, url in links)],
        "panels": _placed({title: panels for title, panels in rows.items() if panels}),
    }


def _link(title: str, url: str = "") -> dict[str, object]:
    """To an address, or to all dashboards with the tag."""
    return {
        "type": "link" if url else "dashboards",
        "title": title,
        "url": url,
        "tags": [] if url else [TAG],
        "icon": "external link" if url else "",
        "tooltip": "",
        "asDropdown": False,
        "includeVars": not url,
        "keepTime": not url,
        "targetBlank": bool(url),
    }


def _placed(rows: Mapping[str, Sequence[Panel]]) -> list[Panel]:
    """Titled rows and their panels from left to right, with numbers and places."""
    placed: list[Panel] = []
    top = 0
    for title, panels in rows.items():
        position = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        row = {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": position}
        placed.append({**row, "id": len(placed) + 1})
        top += 1
        left = height = 0
        for panel in panels:
            size = panel["gridPos"]
            if left + size["w"] > _COLUMNS:
                left, top, height = 0, top + height, 0
            placed.append({**panel, "id": len(placed) + 1, "gridPos": size | {"x": left, "y": top}})
            left, height = left + size["w"], max(height, size["h"])
        top += height
    return placed


def as_json(board: Mapping[str, Any]) -> str:
    """The text of a dashboard's file."""
    return json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
