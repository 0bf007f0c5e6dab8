"""The command line: parsing, one-line errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer import __version__, cli
from streamer.errors import SettingsError, StreamerError

COMMANDS = ("demo", "run", "export", "replay", "produce", "check", "metrics", "inspect")


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamer.cli", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=text)


def raising(error: BaseException) -> Any:
    def main(args: object) -> int:
        raise error

    return lambda name: SimpleNamespace(main=main)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    assert command in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"streamer {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["replay"],
        ["replay", "x", "--prom", "--json"],
        ["replay", "x", "--partitions", "0"],
        ["produce", "x", "--speed", "-1"],
        ["produce", "x", "--speed", "nan"],
        ["run", "--workers", "none"],
        ["export", "--port", "65536"],
        ["demo", "--seconds", "0"],
        ["inspect", "-1"],
        ["metrics", "--js"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("streamer: ")
    assert err.count("\n") == 1


def test_settings_errors_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "streamer.toml"
    settings.write_text("[kafka]\nbrokerz = 1\n")
    events = tmp_path / "events.ndjson"
    events.write_text("")
    assert cli.main(["replay", str(events), "-c", str(settings)]) == 2
    err = capsys.readouterr().err
    assert "brokerz" in err
    assert str(settings) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (StreamerError("lost\nit"), 1, "streamer: lost it\n"),
        (SettingsError("bad"), 2, "streamer: bad\n"),
        (ValueError("oops"), 1, "streamer: unexpected ValueError: oops (--debug shows where)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("importlib.import_module", raising(error))
    assert cli.main(["metrics"]) == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("arguments", [["--debug", "metrics"], ["metrics", "--debug"]])
def test_debug_shows_the_traceback(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.import_module", raising(StreamerError("lost it")))
    assert cli.main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("streamer: lost it\n")


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    script = "import sys; from streamer import cli; sys.exit(cli.main(['metrics', '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert err == b""
    assert process.returncode == cli.EXIT_BROKEN_PIPE


def test_parsing_imports_no_command() -> None:
    script = (
        "import sys; from streamer import cli; cli.parser().parse_args(['replay', '-']);"
        "print([m for m in sys.modules if m.startswith(('numpy', 'streamer.commands', 'faust'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_metrics_lists_the_catalogue() -> None:
    done = run("metrics")
    assert done.returncode == 0
    assert done.stderr == ""
    for name in ("streamer_ctr_ratio", "streamer_rejected_total{topic,reason}"):
        assert name in done.stdout


def test_metrics_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names))
    for entry in entries:
        assert entry["name"].startswith("streamer_")
        assert all(entry[key] for key in ("formula", "unit", "empty", "doc", "kind")), entry
        assert entry["kind"] == ("counter" if entry["name"].endswith("_total") else "gauge")
