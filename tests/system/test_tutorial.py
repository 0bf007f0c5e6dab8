"""docs/tutorial.md from its first line to its last: files, commands, and what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from streamer.testing.embedded import HOST, free_port
from tests.support.lanes import long
from tests.support.required import require

pytestmark = long

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
SECONDS = 40.0
"""Longest wait for a command to succeed, on a loaded machine: a reader would run it again."""
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d.e+-]*")
_LASTING = re.compile(r"streamer (run|export) |streamer produce .*--synthetic|prometheus ")


class Block(NamedTuple):
    """Shell commands, what they print (``text``), or a file (``title``)."""

    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def words_of(text: str) -> list[str]:
    """Lines without their numbers."""
    return [_NUMBER.sub("N", line.strip()) for line in text.splitlines()]


class Reader:
    """Someone who follows the page, in an empty folder, with other addresses."""

    def __init__(self, folder: Path, instead: dict[str, str], environment: dict[str, str]) -> None:
        self.folder, self._instead, self._environment = folder, instead, environment
        self._lasting: dict[str, subprocess.Popen[bytes]] = {}

    def follow(self) -> Iterator[Block]:
        found = blocks()
        for block, then in zip(found, [*found[1:], Block("", "", "")], strict=True):
            if block.title:
                with (self.folder / block.title).open("a", encoding="utf-8") as file:
                    file.write("\n" + self._local(block.text))
            elif block.language == "sh":
                expected = then.text if then.language == "text" else ""
                *before, last = block.text.splitlines()
                for line in before:
                    self._run(self._local(line), "")
                self._run(self._local(last), self._local(expected))
            yield block

    def stop(self) -> None:
        """Ctrl-C in every terminal."""
        for command in list(self._lasting):
            self._interrupt(command)

    def abandon(self) -> None:
        for process in self._lasting.values():
            process.kill()
            process.wait()

    def _local(self, text: str) -> str:
        for theirs, ours in self._instead.items():
            text = text.replace(theirs, ours)
        return text

    def _run(self, command: str, expected: str) -> None:
        if _LASTING.match(command):
            self._interrupt(command)
            self._lasting[command] = self._started(command)
            return
        deadline = time.monotonic() + SECONDS
        while True:
            process = self._started(command)
            said = process.communicate(timeout=SECONDS)[0].decode()
            if process.returncode == 0 and set(words_of(expected)) <= set(words_of(said)):
                return
            assert time.monotonic() < deadline, f"{command}\n{said}\n{self._all_said()}"
            time.sleep(0.5)

    def _started(self, command: str) -> subprocess.Popen[bytes]:
        """A lasting one writes to a file."""
        is_lasting = _LASTING.match(command)
        with self._log(command).open("ab") as log:
            return subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", f"exec {command}" if is_lasting else command],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log if is_lasting else subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )

    def _interrupt(self, command: str) -> None:
        process = self._lasting.pop(command, None)
        if process is not None:
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0, f"{command}\n{self._log(command).read_text()}"

    def _log(self, command: str) -> Path:
        name = "-".join(re.findall(r"\w+", command)[:2]) + "-" + str(len(command))
        return self.folder / f"{name}.log"

    def _all_said(self) -> str:
        return "\n".join(path.read_text() for path in self.folder.glob("*.log"))


@pytest.mark.usefixtures("apache_kafka")
def test_every_step_of_the_tutorial(
    kafka: str, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    require("Prometheus")
    exporter, prometheus = free_port(), free_port()
    instead = {
        "localhost:9092": kafka,
        "redis://localhost:6379/0": redis_url,
        "localhost:8000": f"{HOST}:{exporter}",
        "localhost:9090": f"{HOST}:{prometheus}",
        "shop": redis_prefix,
    }
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STREAMER_EXPORTER__PORT": str(exporter),
    }
    reader = Reader(tmp_path, instead, environment)
    try:
        followed = list(reader.follow())
        reader.stop()
    finally:
        reader.abandon()
    assert len(followed) >= 15
    assert (tmp_path / "prometheus" / "wal").is_dir()  # nothing of an earlier run fires
    assert (tmp_path / "grafana" / "dashboards" / "overview.json").exists()


def test_the_page_uses_what_the_test_replaces() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count('title="') == 3
    for name in ("localhost:9092", "redis://localhost:6379/0", "localhost:8000", "localhost:9090"):
        assert name in text
