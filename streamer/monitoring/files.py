"""Files of other programs for the settings: dashboards of Grafana and what provisions them; rules
of Prometheus, and an example of routes for Alertmanager."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from streamer.monitoring import metric_rules
from streamer.monitoring.experiments import Experiments
from streamer.monitoring.overview import overview
from streamer.monitoring.page import as_json
from streamer.monitoring.processor import Processor
from streamer.monitoring.ranking import ranking
from streamer.monitoring.series import declared
from streamer.monitoring.windowed import Windowed
from streamer.settings.model import Settings

FOLDER = "dashboards"
_RUNBOOKS, _DIMENSIONS = "RUNBOOKS", ", DIMENSIONS"
_PAGE = "PAGE_OF_EXPORTER"
"""What the packaged files have in place of the page of runbooks and the names of dimensions."""
_NOTE = "# Written by streamer; do not edit.\n"
_PLAIN = re.compile(r"[A-Za-z_/][\w/.-]*|\d+(?:ms|[smhd])")
"""Words, paths and durations."""
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
"""Texts that YAML 1.1 takes for something else."""


def boards(settings: Settings, page_url: str) -> dict[str, dict[str, Any]]:
    """Name → dashboard, without panels whose metrics the settings switch off; dashboards without
    panels are left out. ``page_url``: of an exporter, for links."""
    series = declared()
    windowed = Windowed(series, settings)
    found = {"overview": overview(windowed, page_url), "ranking": ranking(windowed, page_url)}
    if settings.experiments:
        found["experiments"] = Experiments(series, settings).build(page_url)
    found["processor"] = Processor(series, settings).build(page_url)
    return {name: board for name, board in found.items() if board["panels"]}


def dashboard_files(settings: Settings, *, page: str, prometheus: str, path: str) -> dict[str, str]:
    """Path below the folder of the user → text. ``prometheus``: its URL as Grafana reaches it;
    ``path``: the folder in which Grafana finds the dashboards."""
    found = {
        f"{FOLDER}/{name}.json": as_json(board) for name, board in boards(settings, page).items()
    }
    found["provisioning/datasources/prometheus.yml"] = yaml_document(_source(prometheus))
    found["provisioning/dashboards/streamer.yml"] = yaml_document(_provider(path))
    return found


def _source(url: str) -> Mapping[str, object]:
    source = {
        "name": "Prometheus",
        "uid": "prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "isDefault": True,
        "editable": False,
        # The scrape interval: the shortest $__rate_interval is four times this.
        "jsonData": {"httpMethod": "POST", "timeInterval": "15s"},
    }
    return {"apiVersion": 1, "datasources": [source]}


def _provider(path: str) -> Mapping[str, object]:
    provider = {
        "name": "streamer",
        "folder": "streamer",
        "type": "file",
        "disableDeletion": True,
        "allowUiUpdates": False,
        "options": {"path": path},
    }
    return {"apiVersion": 1, "providers": [provider]}


def rule_files(settings: Settings, *, page: str, runbooks: str) -> dict[str, str]:
    """Path below the folder of the user → text. ``page``: URL of an exporter; ``runbooks``: URL of
    the page with a section for each alert."""
    metrics = metric_rules.document(settings, page, runbooks)
    return {
        "rules/streamer.yml": _NOTE
        + _packaged("operational_rules.yml", settings)
        .replace(_RUNBOOKS, runbooks)
        .replace(_PAGE, page),
        "rules/metrics.yml": yaml_document(metrics),
        "alertmanager.example.yml": _packaged("alertmanager.yml", settings),
    }


def kubernetes_manifests(rules: Mapping[str, str], settings: Settings, *, page: str) -> str:
    """The rules of ``rule_files`` as PrometheusRules, and each dashboard as a ConfigMap: a YAML
    stream."""
    manifests = []
    for path, text in rules.items():
        if path.startswith("rules/"):
            name = path.removeprefix("rules/").removesuffix(".yml").replace("streamer", "processor")
            manifests.append(
                _manifest("monitoring.coreos.com/v1", "PrometheusRule", name, "spec", text)
            )
    for name, board in boards(settings, page).items():
        text = f"{name}.json: |\n{textwrap.indent(as_json(board), '  ')}"
        manifests.append(_manifest("v1", "ConfigMap", f"dashboard-{name}", "data", text))
    return _NOTE + "---\n".join(manifests)


def _manifest(version: str, kind: str, name: str, key: str, text: str) -> str:
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: streamer-{name}}}\n{key}:\n"
    return head + textwrap.indent(text, "  ").rstrip("\n") + "\n"


def _packaged(name: str, settings: Settings) -> str:
    text = resources.files("streamer.monitoring").joinpath(name).read_text(encoding="utf-8")
    return text.replace(_DIMENSIONS, "".join(f", {name}" for name in settings.dimension_names))


def yaml_document(value: Mapping[str, object]) -> str:
    r"""The text of a file.

    >>> print(yaml_document({"a": [{"b": "1", "for": "10m"}, {"c": True, "d": {}}]}), end="")
    # Written by streamer; do not edit.
    a:
      - b: "1"
        for: 10m
      - c: true
        d: {}
    """
    return _NOTE + "".join(f"{line}\n" for line in _lines(value))


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{_scalar(str(key))}:", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for inner in value:
            first, *rest = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, inner: object) -> Iterator[str]:
    if inner and isinstance(inner, Mapping | list | tuple):
        yield key
        yield from (f"  {line}" for line in _lines(inner))
    else:
        yield f"{key} {_scalar(inner)}"


def _scalar(value: object) -> str:
    """One that YAML reads as what it is: JSON, or a text without quotes where that is plain."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)
