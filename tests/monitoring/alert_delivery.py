"""Exporter → Prometheus → Alertmanager → webhooks, on loopback, with the packaged files.

The exporter is made up; addresses and durations are others than in the files, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from streamer.testing.embedded import HOST, Server
from tests.support.compose import ROOT
from tests.support.http_servers import serving
from tests.support.required import program

FOLDER = ROOT / "grafana" / "prometheus"
FOR_SECONDS, KEEP_SECONDS = 2, 6
WAIT_SECONDS = 30.0
"""Longest wait for something to arrive, on a loaded machine."""
_SHORT = {"for": FOR_SECONDS, "keep_firing_for": KEEP_SECONDS, "scrape_interval": 1,
          "scrape_timeout": 1, "evaluation_interval": 1, "group_wait": 1, "group_interval": 1,
          "repeat_interval": 3600}  # fmt: skip


def hurried(text: str) -> str:
    """Settings with other durations."""
    return re.sub(
        rf"\b({'|'.join(_SHORT)}): \d+(?:ms|s|m|h|d)\b",
        lambda found: f"{found[1]}: {_SHORT[found[1]]}s",
        text,
    )


def until(condition: Callable[[], Any], what: str) -> Any:
    """What the condition gives, once it is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {WAIT_SECONDS:.0f} s: {what}"
        time.sleep(0.1)
    return value


class Outside:
    """An exporter that shows ``series`` (503 where it is None), and the receivers of messages,
    which are kept in ``received`` by path."""

    def __init__(self) -> None:
        self.series: dict[str, float] | None = {}
        self.received: dict[str, list[Any]] = {"/pager": [], "/chat": []}
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self.address = f"{HOST}:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[Outside]:
        with serving(self._server):
            yield self

    def messages(self, path: str, name: str, status: str) -> list[Any]:
        """Those about an alert."""
        return [
            message
            for message in self.received[path]
            if message["groupLabels"]["alertname"] == name and message["status"] == status
        ]


def _handler(outside: Outside) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            series = outside.series
            lines = [f"{name} {value}\n" for name, value in (series or {}).items()]
            self._answer(503 if series is None else 200, "".join(lines).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            outside.received[self.path].append(json.loads(body))
            self._answer(200, b"")

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


class _Program(Server):
    """A program of Prometheus' family, which says at ``/-/ready`` that it is."""

    def __init__(self, directory: Path, component: str, *names: str) -> None:
        self._program, self.name = program(component, *names), names[0]
        super().__init__(directory)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def _words(self) -> list[str]:
        raise NotImplementedError

    def _command(self) -> list[str]:
        return [self._program, f"--web.listen-address={self.address}", *self._words()]

    def _ready(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self.get("/-/ready").strip())
        return False

    def get(self, path: str) -> bytes:
        """What it answers."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
            body: bytes = answer.read()
        return body


class Alertmanager(_Program):
    """The packaged routing, with receivers of ours."""

    def __init__(self, directory: Path, receivers: str) -> None:
        super().__init__(directory, "Alertmanager", "prometheus-alertmanager", "alertmanager")
        text = (FOLDER / "alertmanager.example.yml").read_text(encoding="utf-8")
        text = re.sub(r"http://(\w+)\.example/alerts", rf"http://{receivers}/\1", text)
        (self.directory / "alertmanager.yml").write_text(hurried(text), encoding="utf-8")

    def _words(self) -> list[str]:
        own = f"--config.file={self.directory}/alertmanager.yml"
        return [own, f"--storage.path={self.directory}/data", "--cluster.listen-address="]

    def alerts(self, name: str) -> list[Any]:
        """What it knows of an alert: its receivers, and whether it is suppressed."""
        found = json.loads(self.get("/api/v2/alerts"))
        return [alert for alert in found if alert["labels"]["alertname"] == name]


class Prometheus(_Program):
    """The packaged rules, over an exporter of ours."""

    def __init__(self, directory: Path, exporter: str, alertmanager: str) -> None:
        super().__init__(directory, "Prometheus", "prometheus")
        shutil.copytree(FOLDER, self.directory, dirs_exist_ok=True)
        text = (self.directory / "prometheus.yml").read_text(encoding="utf-8")
        text = text.replace("exporter:8000", exporter).replace("alertmanager:9093", alertmanager)
        own, _, _ = text.partition("  - job_name: prometheus")
        (self.directory / "prometheus.yml").write_text(hurried(own), encoding="utf-8")
        for path in (self.directory / "rules").glob("*.yml"):
            path.write_text(hurried(path.read_text(encoding="utf-8")), encoding="utf-8")

    def _words(self) -> list[str]:
        own = f"--config.file={self.directory}/prometheus.yml"
        storage = [f"path={self.directory}/data", "retention.time=100d"]
        return [
            own,
            *(f"--storage.tsdb.{each}" for each in storage),
            "--rules.alert.resend-delay=1s",
        ]
