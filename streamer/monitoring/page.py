"""A dashboard of Grafana: its panels in rows, its variables, annotations and links."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring.panels import SOURCE, SYSTEM, Panel

Variable = dict[str, Any]
TAG = "streamer"
_COLUMNS = 24


def choice(name: str, series: str, default: str) -> Variable:
    """A variable: one value of the label ``name`` of ``series``, by name; ``default``: the value to
    begin with."""
    return {
        "type": "query",
        "name": name,
        "label": name,
        "datasource": SOURCE,
        "query": f"label_values({series}, {name})",
        "refresh": 2,
        "sort": 1,
        "multi": False,
        "includeAll": False,
        "current": _option(default),
    }


def one_of(name: str, label: str, values: Sequence[str], default: str = "") -> Variable:
    """A variable with these values in this order; ``default``: the chosen one, else the first."""
    chosen = default or values[0]
    options = [_option(value, is_chosen=value == chosen) for value in values]
    return {
        "type": "custom",
        "name": name,
        "label": label,
        "query": ",".join(values),
        "options": options,
        "multi": False,
        "includeAll": False,
        "current": _option(chosen),
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
    return [source, choice("system", f"{PREFIX}ready", "streamer")]


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
    where = f'alertstate="firing", alertname=~"{names}", severity!="info", {SYSTEM}'
    series = f"max by (alertname, severity, alert, topic) (ALERTS{{{where}}})"
    return annotation("Alerts", series, "red", "{{alertname}}", "{{severity}} {{alert}} {{topic}}")


def page(
    name: str,
    description: str,
    rows: Mapping[str, Sequence[Panel]],
    *,
    variables: Sequence[Variable] = (),
    annotations: Sequence[Mapping[str, object]] = (),
    folded: Collection[str] = (),
    since: str = "now-24h",
    links: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """A dashboard, without its rows that are empty. ``folded``: rows whose queries are asked once
    somebody opens them. ``links``: titles and addresses."""
    return {
        "uid": f"streamer-{name}",
        "title": f"streamer: {name}",
        "description": description,
        "tags": [TAG],
        "schemaVersion": 41,
        "timezone": "browser",
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": since, "to": "now"},
        "timepicker": {},
        "annotations": {"list": list(annotations)},
        "templating": {"list": [*_shared_variables(), *variables]},
        "links": [_link(TAG), *(_link(title, url) for title, url in links)],
        "panels": _placed({title: panels for title, panels in rows.items() if panels}, folded),
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


def _placed(rows: Mapping[str, Sequence[Panel]], folded: Collection[str]) -> list[Panel]:
    """Titled rows and their panels from left to right, with numbers and places. A folded row holds
    its panels, and takes no room."""
    placed: list[Panel] = []
    number, top = 1, 0
    for title, panels in rows.items():
        is_folded = title in folded
        position = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        inner, bottom = _in_row(panels, number + 1, top + 1)
        row = {"type": "row", "title": title, "id": number, "gridPos": position}
        placed.append({**row, "collapsed": is_folded, "panels": inner if is_folded else []})
        if not is_folded:
            placed += inner
        number += 1 + len(inner)
        top = top + 1 if is_folded else bottom
    return placed


def _in_row(panels: Sequence[Panel], number: int, top: int) -> tuple[list[Panel], int]:
    """Panels from left to right below ``top``, numbered from ``number``; and where they end."""
    placed: list[Panel] = []
    left = height = 0
    for each in panels:
        size = each["gridPos"]
        if left + size["w"] > _COLUMNS:
            left, top, height = 0, top + height, 0
        at = size | {"x": left, "y": top}
        placed.append({**each, "id": number + len(placed), "gridPos": at})
        left, height = left + size["w"], max(height, size["h"])
    return placed, top + height


def as_json(board: Mapping[str, Any]) -> str:
    """The text of a dashboard's file."""
    return json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
