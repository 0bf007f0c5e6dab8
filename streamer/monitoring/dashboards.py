"""The files of Grafana for a settings file: dashboards, and what provisions them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.monitoring import yaml_text
from streamer.monitoring.experiments import Experiments
from streamer.monitoring.overview import overview
from streamer.monitoring.page import as_json
from streamer.monitoring.processor import Processor
from streamer.monitoring.ranking import ranking
from streamer.monitoring.series import declared
from streamer.monitoring.windowed import Windowed
from streamer.settings.model import Settings

FOLDER = "dashboards"


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


def files(settings: Settings, *, page: str, prometheus: str, path: str) -> dict[str, str]:
    """Path below the folder of the user → text. ``prometheus``: its URL as Grafana reaches it;
    ``path``: the folder in which Grafana finds the dashboards."""
    found = {
        f"{FOLDER}/{name}.json": as_json(board) for name, board in boards(settings, page).items()
    }
    found["provisioning/datasources/prometheus.yml"] = yaml_text.document(_source(prometheus))
    found["provisioning/dashboards/streamer.yml"] = yaml_text.document(_provider(path))
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
