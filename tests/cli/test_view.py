"""``streamer view``: the page over a file shows what ``streamer replay`` prints."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.cli.main import main
from tests.support.lanes import long
from tests.support.visitors import visits

FIRST_MS = 1_700_000_000_000
STREAMER = [sys.executable, "-m", "streamer"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "visits.ndjson"
    events = visits(1, 60, FIRST_MS, 2, 0.3)
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + "no event\n")
    return path


@contextlib.contextmanager
def viewed(*arguments: str) -> Iterator[str]:
    """The address that the command prints; it is stopped at the end, as by Ctrl-C."""
    command = [*STREAMER, "view", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert line.startswith("streamer: http://127.0.0.1:"), line
            yield line.split()[1].rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


def text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@long
def test_what_is_shown_is_what_replay_prints(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(log), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    with viewed(str(log)) as url:
        shown = json.loads(text_of(f"{url}/api/readings"))
        health = json.loads(text_of(f"{url}/api/health"))
        assert text_of(f"{url}/readyz") == "ready\n"
        assert "<title>streamer</title>" in text_of(f"{url}/")
    assert shown == printed
    assert health["files"] == ["visits.ndjson"]
    assert health["problems"] == []
    assert health["windows"][-1] == "file"
    first_ms, last_ms = health["window_spans"]["file"]
    assert FIRST_MS <= first_ms < last_ms == shown["stream_time_ms"]


def test_a_file_without_events_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no event\nno event, either\n")
    assert main(["view", str(path), "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert f"none of 2 lines is an event that counts: there is nothing to show; at {path}" in said


def test_names_of_others_are_guessed(tmp_path: Path) -> None:
    """What ``streamer init`` would propose is shown at once."""
    path, kinds = tmp_path / "shop.ndjson", {"impression": "shown", "click": "clicked"}
    names = {"user_id": "cookie", "item_id": "hotel", "request_id": "page", "ts": "at"}
    events = [event for event in visits(1, 60, FIRST_MS, 2, 0.3) if event["type"] in kinds]
    rows = [
        {"what": kinds[event["type"]]} | {names[k]: v for k, v in row.items() if k in names}
        for event in events
        for row in [event | item for item in event.get("items", [{}])]
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with viewed(str(path)) as url:
        readings = json.loads(text_of(f"{url}/api/readings"))["readings"]
    shown = sum(row["what"] == "shown" for row in rows)
    assert max(r["value"] for r in readings if r["name"] == "streamer_impressions_total") == shown
    assert any(r["name"] == "streamer_ctr_ratio" for r in readings)
