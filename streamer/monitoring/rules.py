"""The files of Prometheus and Alertmanager for a settings file: rules, and an example of routes."""

from __future__ import annotations

from importlib import resources

from streamer.monitoring import metric_rules, yaml_text
from streamer.settings.model import Settings

_ROOM = "streamer.monitoring"
_RUNBOOKS, _DIMENSIONS = "RUNBOOKS", ", DIMENSIONS]"
"""What the packaged files have in place of the page of runbooks and the names of dimensions."""


def files(settings: Settings, *, page: str, runbooks: str) -> dict[str, str]:
    """Path below the folder of the user → text. ``page``: URL of an exporter; ``runbooks``: URL of
    the page with a section for each alert."""
    metrics = metric_rules.document(settings, page, runbooks)
    return {
        "rules/streamer.yml": yaml_text.NOTE
        + _packaged("operational_rules.yml").replace(_RUNBOOKS, runbooks),
        "rules/metrics.yml": yaml_text.document(metrics),
        "alertmanager.example.yml": _packaged("alertmanager.yml").replace(
            _DIMENSIONS, "".join(f", {name}" for name in settings.dimension_names) + "]"
        ),
    }


def _packaged(name: str) -> str:
    return resources.files(_ROOM).joinpath(name).read_text(encoding="utf-8")
