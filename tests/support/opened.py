"""A dashboard as Grafana opens it: what its variables are, and its queries with them filled in."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Values = Callable[[str, str], list[str]]
"""(label, selector of series) → the values there are."""
_LABEL_VALUES = re.compile(r"label_values\((.+), ([$\w]+)\)")


class Target(NamedTuple):
    """A query of a panel."""

    panel: Any
    ref: str
    expr: str
    legend: str


def panels_of(page: Any) -> list[Any]:
    """Without the titles of rows, with the panels of folded ones."""
    return [panel for panel in unfolded(page) if panel["type"] != "row"]


def unfolded(page: Any) -> list[Any]:
    """Rows and panels in their places once every row has been opened."""
    found: list[Any] = []
    shift = 0
    for panel in page["panels"]:
        inner = panel["panels"] if panel["type"] == "row" else []
        found += [
            {**each, "gridPos": {**each["gridPos"], "y": each["gridPos"]["y"] + shift}}
            for each in (panel, *inner)
        ]
        if inner:
            bottom = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in inner)
            shift += bottom - panel["gridPos"]["y"] - panel["gridPos"]["h"]
    return found


def targets(page: Any) -> Iterator[Target]:
    """Every query of every panel."""
    for panel in panels_of(page):
        for target in panel["targets"]:
            yield Target(panel, target["refId"], target["expr"], target["legendFormat"])


def series_and_label(query: str) -> tuple[str, str]:
    """What a query variable asks for."""
    found = _LABEL_VALUES.fullmatch(query)
    assert found, query
    return found[1], found[2]


def filled_in(text: str, chosen: Mapping[str, str]) -> str:
    """The text with the values of variables."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)


def opened(page: Any, values: Values, **chosen: str) -> dict[str, str]:
    """Variable → value when the page is opened; where it begins with none, the first there is.
    ``chosen``: values that somebody chose."""
    found = {"__rate_interval": "1m", "__interval": "1m", **chosen}
    for variable in page["templating"]["list"]:
        value = variable["current"]["value"]
        if value == "" and variable["name"] not in chosen:
            series, label = (filled_in(text, found) for text in series_and_label(variable["query"]))
            value = next(iter(values(label, series)), "")
        found.setdefault(variable["name"], value)
    return found


def asked(prometheus: str, path: str, **parameters: str) -> Any:
    """What the API of a Prometheus answers; ``prometheus``: its URL."""
    url = f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{parameters}: {error.read().decode()}") from error
