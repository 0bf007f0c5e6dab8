"""The command line: parsing, one-line errors, exit codes."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from streamer import __version__
from streamer.cli import arguments, main
from streamer.errors import SettingsError, StreamerError
from streamer.server.listener import listen
from streamer.state.manifest import VERSION
from tests.docs import reference

COMMANDS = tuple(reference.subcommands())


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamer", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=text)


def raising(error: BaseException) -> Any:
    def main(args: object) -> int:
        raise error

    return lambda name: SimpleNamespace(main=main)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main.main([command, "--help"])
    assert stop.value.code == 0
    assert command in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"streamer {__version__}, stored state {VERSION}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["completion", "tcsh"],
        ["metrics", "nothing-like-it"],
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
    assert main.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("streamer: ")
    assert err.count("\n") == 1


def test_alone_it_prints_its_help_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert all(name in err for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replya", "x"], "no command 'replya': did you mean 'replay'?"),
        (["--debug", "metric"], "did you mean 'metrics'?"),
        (["zzz"], "commands are init, demo, run"),
        (["metrics", "ctrr"], "did you mean 'ctr'?"),
        (["metrics", "streamer_ndgc_ratio"], "did you mean 'ndcg_ratio'?"),
    ],
)
def test_what_is_unknown_suggests_what_is_known(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_metrics_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["metrics", "ctr", "--json"]) == 0
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)]
    assert "streamer_ctr_ratio" in names
    assert all("ctr" in name for name in names)
    assert main.main(["metrics", "CTR"]) == 0
    out = capsys.readouterr().out
    assert "streamer_ctr_ratio" in out
    assert "streamer_cvr_ratio" not in out


def complete(script: str, *words: str) -> set[str]:
    """What bash offers for the last of some words, after ``streamer``."""
    line = " ".join(f"'{word}'" for word in ("streamer", *words))
    ask = f"""{script}
        COMP_WORDS=({line}); COMP_CWORD={len(words)}
        declare -f -F compopt > /dev/null || compopt() {{ :; }}
        "$(complete -p streamer | sed 's/.*-F \\([^ ]*\\).*/\\1/')" streamer
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", ask], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_options_choices_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("completion", "bash")
    assert done.returncode == 0
    assert complete(done.stdout, "re") == {"replay", "readout", "rekey", "report", "restore"}
    assert complete(done.stdout, "replay", "--dead") == {"--dead-letters"}
    assert complete(done.stdout, "completion", "") >= set(arguments.SHELLS)
    (tmp_path / "events.ndjson").write_text("")
    monkeypatch.chdir(tmp_path)
    assert "events.ndjson" in complete(done.stdout, "replay", "eve")


@pytest.mark.parametrize("shell", arguments.SHELLS)
def test_scripts_name_every_command_and_are_sound(shell: str, tmp_path: Path) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert done.stderr == ""
    assert all(name in done.stdout for name in COMMANDS)
    path = tmp_path / "script"
    path.write_text(done.stdout)
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(path)], check=True)


def test_a_port_in_use_says_what_to_do() -> None:
    async def listen_twice() -> None:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        try:
            port = await listen(runner, "127.0.0.1", 0)
            with pytest.raises(StreamerError, match=r"choose another port with --port"):
                await listen(runner, "127.0.0.1", port)
            with pytest.raises(StreamerError, match=r"192\.0\.2\.1:0: .*exporter\.host"):
                await listen(runner, "192.0.2.1", 0)
        finally:
            await runner.cleanup()

    asyncio.run(listen_twice())


def test_settings_errors_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "streamer.toml"
    settings.write_text("[kafka]\nbrokerz = 1\n")
    events = tmp_path / "events.ndjson"
    events.write_text("")
    assert main.main(["replay", str(events), "-c", str(settings)]) == 2
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
    assert main.main(["metrics"]) == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("arguments", [["--debug", "metrics"], ["metrics", "--debug"]])
def test_debug_shows_the_traceback(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.import_module", raising(StreamerError("lost it")))
    assert main.main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("streamer: lost it\n")


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    script = "import sys; from streamer.cli import main; sys.exit(main.main(['metrics', '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert err == b""
    assert process.returncode == main.EXIT_BROKEN_PIPE


def test_parsing_imports_no_command() -> None:
    script = (
        "import sys; from streamer.cli import arguments;"
        "arguments.parser().parse_args(['replay', '-']);"
        "print([m for m in sys.modules if m.startswith(('numpy', 'streamer.state', 'faust'))])"
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
    assert main.main(["metrics", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names))
    for entry in entries:
        assert entry["name"].startswith("streamer_")
        assert all(entry[key] for key in ("formula", "unit", "empty", "doc", "kind")), entry
        since_start = "histogram" if entry["scope"] == "total" and "le" in entry["labels"] else ""
        kind = "counter" if entry["name"].endswith("_total") else since_start or "gauge"
        assert entry["kind"] == kind
