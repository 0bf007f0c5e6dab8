"""The files beside docker-compose.yml are those that its settings give."""

from __future__ import annotations

from streamer.monitoring.files import dashboard_files, rule_files
from streamer.server.runbooks import PATH
from streamer.settings.load import load
from tests.support.compose import ROOT, services

SHIPPED = ROOT / "grafana"


def test_the_settings_of_the_shipped_files_are_those_of_the_compose_file() -> None:
    given = services()["worker"]["environment"]
    own = {name: str(value) for name, value in given.items()
           if not name.startswith(("STREAMER_KAFKA", "STREAMER_REDIS"))}  # fmt: skip
    assert load(SHIPPED / "streamer.toml", {}) == load(None, own)


def test_the_shipped_files_are_current() -> None:
    settings = load(SHIPPED / "streamer.toml", {})
    page = "http://localhost:8000"
    path, prometheus = "/etc/streamer/dashboards", "http://prometheus:9090"
    runbooks = f"{page}{PATH}"
    expected = {
        SHIPPED / name: text
        for name, text in dashboard_files(
            settings, page=page, prometheus=prometheus, path=path
        ).items()
    } | {
        SHIPPED / "prometheus" / name: text
        for name, text in rule_files(settings, page=page, runbooks=runbooks).items()
    }
    for file, text in expected.items():
        assert file.read_text(encoding="utf-8") == text, f"{file}: see `check` of the Makefile"
    found = {p for p in SHIPPED.rglob("*") if p.is_file()}
    own = {SHIPPED / "streamer.toml", SHIPPED / "prometheus" / "prometheus.yml"}
    assert found == set(expected) | own
