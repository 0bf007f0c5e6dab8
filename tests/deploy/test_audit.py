"""The audit of dependencies: what it says of a finding, of none, and of a service that is away."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from streamer.testing.embedded import HOST, free_port
from tests.deploy import audit
from tests.support.lanes import long


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


ADVISORY = """```toml
[advisory]
id = "RUSTSEC-2024-0001"
package = "{crate}"
date = "2024-01-01"

[versions]
patched = []
```

# Bad

Bad.
"""


@pytest.fixture
def advise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """``advise(crate)``: settings of cargo deny, whose advisories are one, on that crate; "" : none
    can be had."""

    def made(crate: str) -> Path:
        repository, settings = tmp_path / f"of-{crate}", tmp_path / f"deny-{crate}.toml"
        base = audit.DENY.read_text(encoding="utf-8")
        known = f'[advisories]\ndb-path = "{tmp_path}/known-{crate}"'
        settings.write_text(base.replace("[advisories]", known), encoding="utf-8")
        path = repository / "crates" / crate / "RUSTSEC-2024-0001.md"
        path.parent.mkdir(parents=True)
        path.write_text(ADVISORY.format(crate=crate), encoding="utf-8")
        git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "Add it"]):
            subprocess.run([*git, *words], check=True)
        url = repository.as_uri() if crate else (tmp_path / "none").as_uri()
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{url}.insteadOf")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/RustSec/advisory-db")
        return settings

    return made


def run(tmp_path: Path, service: str, deny: Path, pinned: str, *more: str) -> int:
    path = tmp_path / "constraints.txt"
    path.write_text("# Versions.\n" + "".join(f"{line}\n" for line in pinned.split()))
    arguments = ["--osv-url", service, "--pinned", str(path), "--deny", str(deny)]
    return audit.main([*arguments, *more])


CLEAN = "audit: no advisory concerns a crate of the core\n"


@long
def test_a_known_vulnerability_fails(
    service: str,
    advise: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(tmp_path, service, advise("other"), "brittle==1.0 sound==2.0") == 1
    out, err = capsys.readouterr()
    assert err == "audit: brittle 1.0: TEST-2024-1 (fixed in 1.1)\n"
    assert out == "audit: 2 packages, 1 known vulnerabilities (osv)\n" + CLEAN
    assert run(tmp_path, service, advise("snap"), "sound==2.0") == 1
    out, err = capsys.readouterr()
    assert "RUSTSEC-2024-0001" in err
    assert "snap" in err
    assert out == "audit: 1 packages, 0 known vulnerabilities (osv)\n"


@long
def test_nothing_is_known(
    service: str,
    advise: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(tmp_path, service, advise("other"), "brittle==1.1 sound==2.0") == 0
    none = "audit: 2 packages, 0 known vulnerabilities (osv)\n"
    assert capsys.readouterr() == (none + CLEAN, "")


@long
@pytest.mark.parametrize("away", ["packages", "crates"])
def test_where_no_service_answers_it_fails_unless_it_is_told(
    away: str,
    service: str,
    advise: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    deny = advise("other" if away == "packages" else "")
    url = f"http://{HOST}:{free_port()}/" if away == "packages" else service
    for more, status in ((), 1), (("--allow-offline",), 0):
        assert run(tmp_path, url, deny, "sound==2.0", *more) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("audit: ")
        assert line.endswith(": nothing is known")
