"""``streamer init`` asks where a terminal can answer: Enter takes the likely answer."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamer.cli import wizard
from streamer.cli.main import main
from streamer.cli.wizard import Wizard, machine_zone
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.lanes import long

ARMS = ("ranker", "layout")
ZONELESS = "ts has no time zone"


def log(path: Path, what: str = "viewed") -> Path:
    """Views, clicks on them, two experiments, and times without an offset."""
    lines: list[dict[str, Any]] = []
    for n in range(60):
        common: dict[str, Any] = {"at": f"2026-11-01 10:00:{n:02d}", "uid": f"u{n % 7}"}
        tests = [{"key": key, "arm": "AB"[(n + i) % 2]} for i, key in enumerate(ARMS)]
        common |= {"sku": f"i{n % 20}", "tests": tests}
        lines += [{**common, "event": what}, {**common, "event": "clicked"}]
    file = path / "events.ndjson"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


Answered = Callable[[str], tuple[Settings, str]]


@pytest.fixture
def answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Answered:
    """Runs `init` with lines that a user types; returns settings and standard error."""

    def run(typed: str) -> tuple[Settings, str]:
        def injected(console: Console) -> Wizard:
            return Wizard(console, io.StringIO(typed))

        monkeypatch.setattr("streamer.cli.init.can_ask", lambda: True)
        monkeypatch.setattr("streamer.cli.init.Wizard", injected)
        assert main(["init", str(log(tmp_path))]) == 0
        out, err = capsys.readouterr()
        return parse(tomllib.loads(out)), err

    return run


def test_enter_takes_the_likely_answer_to_three_questions(answered: Answered) -> None:
    settings, err = answered("\n\n\n")
    (source,) = settings.sources
    assert source.kind.impression == ("viewed",)
    assert source.fields["variant"] == f"tests[key={ARMS[0]}].arm"
    assert source.zone == "UTC"
    asked = ["Is 'viewed' (60 records) an impression?", "arm of the experiment?", "Time zone of"]
    places = [err.index(text) for text in asked]
    assert places == sorted(places)
    for doubt in (ZONELESS, "may be it", "two experiments", "is taken for"):
        assert f"not sure: {doubt}" not in err


def test_answers_count(answered: Answered) -> None:
    settings, err = answered("y\n2\nMars/Phobos\nEurope/Berlin\n")
    (source,) = settings.sources
    assert source.fields["variant"] == f"tests[key={ARMS[1]}].arm"
    assert source.zone == "Europe/Berlin"
    assert "there is no time zone 'Mars/Phobos'" in err
    settings, _ = answered("y\n3\n\n")
    assert "variant" not in settings.sources[0].fields


def test_who_denies_the_only_impressions_gets_none(
    tmp_path: Path, answered: Answered, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, err = answered("n\n\n\n")
    assert settings.sources[0].kind.impression == ()
    assert "viewed" in settings.sources[0].kind.ignored
    assert "not sure: kind: no record looks like an impression" in err


def test_an_end_of_input_takes_the_likely_answers(answered: Answered) -> None:
    assert answered("")[0] == answered("\n\n\n")[0]


def test_without_a_terminal_nothing_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(log(tmp_path))]) == 0
    err = capsys.readouterr().err
    assert "arm of the experiment?" not in err
    assert f"not sure: {ZONELESS}: taken as UTC; set zone\n" in err
    assert "not sure: kind: 'viewed' is taken for an impression" in err


def test_no_input_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.cli.init.can_ask", lambda: True)
    assert main(["init", str(log(tmp_path)), "--no-input"]) == 0
    assert f"not sure: {ZONELESS}" in capsys.readouterr().err


@long
def test_the_kind_of_a_whole_topic_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    row = {"at": 1_793_527_200_000, "uid": "u", "sku": "a"}
    file.write_text("\n".join([json.dumps(row)] * 9), encoding="utf-8")
    toml, said = in_terminal(["init", str(file)], "\r")
    assert "Is each record of rows an impression?" in said
    assert "not sure: kind: nothing says" not in said
    assert tomllib.loads(toml)["sources"][0]["kind"]["fixed"] == "impression"


def in_terminal(words: Sequence[str], typed: str) -> tuple[str, str]:
    """Runs `streamer` before a pseudo-terminal; returns standard output, a file, and the screen."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    call = [
        sys.executable,
        "-c",
        "import sys; from streamer.cli.main import main; sys.exit(main())",
    ]
    shown = bytearray()
    with subprocess.Popen(
        [*call, *words], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE
    ) as process:
        os.close(theirs)

        def watch() -> None:
            try:
                while some := os.read(ours, 4096):
                    shown.extend(some)
            except OSError:  # the other end is closed
                return

        watching = threading.Thread(target=watch)
        watching.start()
        out, _ = process.communicate(timeout=60)
        watching.join(timeout=60)
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    return out.decode(), shown.decode()


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    toml, said = in_terminal(["init", str(log(tmp_path))], "\r2\r\r")
    assert parse(tomllib.loads(toml)).sources[0].fields["variant"] == f"tests[key={ARMS[1]}].arm"
    assert 'zone = "UTC"' in toml
    assert "Which field is the arm of the experiment?" in said
    toml, said = in_terminal(["init", str(log(tmp_path)), "--no-input"], "")
    assert "Which field" not in said
    assert "zone =" not in toml


def test_the_zone_of_the_machine_is_the_second_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, zone in (("Europe/Paris", "Europe/Paris"), (":Asia/Tokyo", "Asia/Tokyo")):
        monkeypatch.setenv("TZ", name)
        assert machine_zone() == zone
    for name in ("UTC", "no/zone"):
        monkeypatch.setenv("TZ", name)
        assert machine_zone() is None
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(wizard, "_LOCALTIME", Path("/usr/share/zoneinfo/Europe/Rome"))
    assert machine_zone() == "Europe/Rome"
