"""A real Unleash, the server of feature flags, on a PostgreSQL of its own, on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from streamer.testing.embedded import HOST, free_port
from tests.support.components import SKIPPED

VERSION = "8.2.0"
TOKEN = "*:*.964a287e1b728cb5f4f3e0120df92cb5"
CACHE = Path(__file__).parents[2] / ".cache" / "unleash" / VERSION
WAIT_SECONDS = 90.0


def _postgres() -> Path:
    """Where its programs are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or shutil.which("npm") is None:
        pytest.skip(f"{SKIPPED}PostgreSQL and npm: apt install postgresql npm")
    return found[-1]


def _server() -> Path:
    """The program; installed where it is not there."""
    script = CACHE / "node_modules" / "unleash-server" / "dist" / "server.js"
    if not script.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--no-audit", "--no-fund", f"unleash-server@{VERSION}"]
        subprocess.run([*words, "--prefix", str(CACHE)], check=True, capture_output=True)
    return script


class Unleash:
    """Its API by an administrator's token. A context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.port = directory, free_port()
        self._database = free_port()
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start_database(_postgres(), stack)
            address = f"postgres://unleash@{HOST}:{self._database}/postgres"
            settings = {
                **{"DATABASE_URL": address, "DATABASE_SSL": "false", "CHECK_VERSION": "false"},
                **{"HTTP_HOST": HOST, "HTTP_PORT": str(self.port), "SEND_TELEMETRY": "false"},
                **{"INIT_ADMIN_API_TOKENS": TOKEN, "LOG_LEVEL": "error"},
            }
            log = stack.enter_context((self._directory / "unleash.log").open("wb"))
            process = subprocess.Popen(
                ["node", str(_server())], env=os.environ | settings, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            self._wait()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_database(self, programs: Path, stack: ExitStack) -> None:
        folder = self._directory / "postgres"
        folder.mkdir()
        as_user: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            for path in (folder, *folder.parents):
                path.chmod(path.stat().st_mode | 0o011)
            shutil.chown(folder, "postgres")
            as_user = ["runuser", "-u", "postgres", "--"]
        data = ["-D", str(folder / "data")]
        make = [*as_user, str(programs / "initdb"), *data, "-A", "trust", "-U", "unleash"]
        subprocess.run(make, check=True, capture_output=True)
        control = [*as_user, str(programs / "pg_ctl"), *data, "-w"]
        options = f"-p {self._database} -k {folder} -h {HOST}"
        log = ["-l", str(folder / "log")]
        subprocess.run([*control, "-o", options, *log, "start"], check=True, capture_output=True)
        stop = [*control, "-m", "immediate", "stop"]
        stack.callback(subprocess.run, stop, check=False, capture_output=True)

    def _wait(self) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            try:
                self.ask("GET", "/health")
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
            else:
                return
        pytest.fail((self._directory / "unleash.log").read_text()[-2000:])

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The document that it answers."""
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Authorization": TOKEN, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
        return msgspec.json.decode(text) if text else None
