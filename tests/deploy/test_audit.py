"""The audit of dependencies: what it says of a finding, of none, and of a service that is away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from streamer.testing.embedded import HOST, free_port
from tests.deploy import audit


class Service(BaseHTTPRequestHandler):
    """Speaks OSV: knows one vulnerable version."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer: dict[str, object] = {}
        if (asked["package"]["name"], asked["version"]) == ("brittle", "1.0"):
            events = [{"introduced": "0"}, {"fixed": "1.1"}]
            affected = {
                "package": {"name": "brittle", "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": events}],
            }
            answer = {"vulns": [{"id": "TEST-2024-1", "summary": "bad", "affected": [affected]}]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def service() -> Iterator[str]:
    with ThreadingHTTPServer((HOST, 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}/v1/query"
        server.shutdown()
        thread.join()


def run(tmp_path: Path, service: str, *pinned: str) -> int:
    path = tmp_path / "constraints.txt"
    path.write_text("# Versions.\n" + "".join(f"{line}\n" for line in pinned))
    return audit.main(["--osv-url", service, "--pinned", str(path)])


def test_a_known_vulnerability_fails(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, service, "brittle==1.0", "sound==2.0") == 1
    out, err = capsys.readouterr()
    assert err == "audit: brittle 1.0: TEST-2024-1 (fixed in 1.1)\n"
    assert out == "audit: 2 packages, 1 known vulnerabilities (osv)\n"


def test_nothing_is_known(service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, service, "brittle==1.1", "sound==2.0") == 0
    assert capsys.readouterr() == ("audit: 2 packages, 0 known vulnerabilities (osv)\n", "")


def test_no_service_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, f"http://{HOST}:{free_port()}/", "brittle==1.0") == 0
    line = "audit: no vulnerability service answers here: nothing is known\n"
    assert capsys.readouterr() == ("", line)
