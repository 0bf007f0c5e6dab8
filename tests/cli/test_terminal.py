"""What is printed on a terminal: nothing cut, names whole, colours that can be left out."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from streamer.cli import arguments
from streamer.cli.examples import EXAMPLES, GROUPS
from streamer.cli.finding import ERROR, OK, WARN, Finding
from streamer.cli.main import main
from streamer.cli.terminal import Grid, TextColumn, name_column, say, text_column
from streamer.errors import UsageError
from tests.docs.reference import subcommands
from tests.support.lanes import long

ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
LONG = "homepage_recommendations_carousel_above_the_fold_personalised_v2_holdout_eu_west_1_and_more"
EXPERIMENT = (
    '[[experiments]]\nname = "ranker"\ndimension = "variant"\ncontrol = "A"\n'
    'split = { A = 1, B = 1 }\nstart = 2025-06-02\nmetrics = [{ name = "ctr_ratio" }]\n'
)


def printed(grid: Grid, width: int) -> list[str]:
    """The lines of a table on a terminal of this width."""
    out = io.StringIO()
    grid.print(Console(file=out, width=width, force_terminal=True, color_system=None))
    return [ESCAPE.sub("", line).rstrip() for line in out.getvalue().splitlines()]


def on_terminal(*words: str, columns: int = 80, **environment: str) -> str:
    """What a command writes to a terminal."""
    outer, inner = pty.openpty()
    ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamer", *words],
        stdin=subprocess.DEVNULL, stdout=inner, stderr=inner,
        env={**variables, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(inner)
    found = b""
    while True:
        try:
            some = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        found += some
    process.wait()
    os.close(outer)
    return found.decode()


# Tables -------------------------------------------------------------------------------------------


def grid(first: str = "home", columns: int = 8) -> Grid:
    made = Grid(
        name_column("surface"), *(TextColumn(f"number {i}") for i in range(columns)), title="T"
    )
    made.add(first, *(f"{1000 * i:,}" for i in range(columns)))
    made.add("other", *("1" for _ in range(columns)))
    return made


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
@pytest.mark.parametrize("first", ["home", LONG])
def test_no_name_and_no_number_is_cut_at_any_width(width: int, first: str) -> None:
    lines = printed(grid(first), width)
    text = "\n".join(lines)
    assert first in text
    assert "…" not in text
    for i in range(8):
        assert f"number {i}" in text
        assert re.search(rf"(?<![\d,]){1000 * i:,}(?![\d,])", text)
    assert all(len(line) <= width or line == first for line in lines)


def test_what_does_not_fit_is_several_tables_with_all_names() -> None:
    lines = printed(grid(), 80)
    assert sum(line.split()[:1] == ["home"] for line in lines) == 2
    assert sum(line == "T" for line in lines) == 1


def test_a_column_without_anything_is_left_out() -> None:
    made = Grid(name_column("topic"), TextColumn("value"), TextColumn("events"))
    made.add("clicks", "", "3")
    (heading,) = [line.split() for line in printed(made, 80) if "topic" in line]
    assert heading == ["topic", "events"]


def test_a_styled_cell_stays_as_wide() -> None:
    made = Grid(name_column("name"), TextColumn("split"))
    made.add("ranker", Text("wrong", "bold red"))
    assert any(line.split() == ["ranker", "wrong"] for line in printed(made, 80))


def test_text_wraps_between_words_and_marks_are_no_markup() -> None:
    made = Grid(name_column("name"), text_column("formula"))
    made.add("[sources]", "clicks / impressions at the position, of all users that there are")
    lines = printed(made, 44)
    assert any(line.split()[:1] == ["[sources]"] for line in lines)
    words = " ".join(" ".join(lines).split())
    assert "clicks / impressions at the position," in words


def test_lines_end_between_words_and_long_ones_stay_whole() -> None:
    out = io.StringIO()
    console = Console(file=out, width=30, force_terminal=True, color_system=None)
    say(console, f"a line with {LONG} inside", indent=2)
    say(console, "and another", indent=2)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == ["  a line with", f"  {LONG}", "  inside", "  and another"]


# Findings -----------------------------------------------------------------------------------------


def test_a_finding_is_one_line_but_on_a_terminal() -> None:
    finding = Finding(WARN, "words " * 20, "do this")
    out = io.StringIO()
    finding.print(Console(file=out, width=40))
    assert out.getvalue() == f"{finding}\n"
    out = io.StringIO()
    finding.print(Console(file=out, width=40, force_terminal=True, color_system="standard"))
    lines = out.getvalue().splitlines()
    assert lines[0] == "\x1b[33mwarn   \x1b[0mwords words words words words"
    assert lines[1] == "       words words words words words"
    assert all(len(ESCAPE.sub("", line)) <= 40 for line in lines)
    assert lines[-1].strip() == "→ do this"


@pytest.mark.parametrize("level", [OK, WARN, ERROR])
def test_levels_keep_their_words_without_colours(level: str) -> None:
    out = io.StringIO()
    Finding(level, "x").print(Console(file=out, width=40, force_terminal=True, no_color=True))
    assert ESCAPE.sub("", out.getvalue()).split() == [level, "x"]


# Commands -----------------------------------------------------------------------------------------


def test_an_error_is_red_where_there_is_a_terminal_and_colours_are_wanted() -> None:
    assert "\x1b[1;31mstreamer:" in on_terminal("nope")
    plain = on_terminal("nope", NO_COLOR="1")
    assert "31m" not in plain
    assert "no command 'nope'" in plain


@long
def test_names_of_metrics_can_be_copied_at_80_columns() -> None:
    shown = ESCAPE.sub("", on_terminal("metrics", "attributed"))
    lines = shown.replace("\r", "").splitlines()
    assert "streamer_ctr_attributed_ratio{maturity}" in [line.strip() for line in lines]
    assert all(len(line) <= 80 for line in lines)


def test_the_page_of_a_metric_breaks_no_name_at_80_columns() -> None:
    lines = ESCAPE.sub("", on_terminal("metrics", "ctr")).replace("\r", "").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("see also   ctr_attributed"))
    names = " ".join(line[11:] for line in lines[at:]).split(", ")
    assert "ctr_attributed_upper_ratio" in names
    assert len(lines[at:]) > 1
    assert all(len(line) <= 80 and line.startswith(" " * 11) for line in lines[at + 1 :])
    assert "unit       ratio" in lines


@long
def test_a_bar_is_there_before_the_first_lines_are_counted(tmp_path: Path) -> None:
    line = '{"type": "impression", "ts": 1700000000000, "user_id": "u", "item_id": "i"}\n'
    path = tmp_path / "events.ndjson"
    path.write_text(line * 20)
    shown = on_terminal("replay", str(path))
    assert shown.index("0 lines") < shown.index("20 lines")


def test_much_traffic_in_other_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = '{{"type": "impression", "ts": 1700000000000, "item_id": "i", "surface": "s{}"}}\n'
    path, settings = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    path.write_text("".join(map(line.format, range(10))))
    said = "60% of the impressions have surface=other: only 4 values of surface are kept."
    for kept, is_said in ((4, True), (10, False)):
        settings.write_text(f'[[dimensions]]\nname = "surface"\nmax_values = {kept}\n')
        assert main(["replay", str(path), "-c", str(settings)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert (said in out) == is_said == ("=other" in out)


def test_help_lists_every_command_once_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    names = [each for group in GROUPS.values() for each in group]
    assert sorted(names) == sorted(subcommands())
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:-1] for line in lines if line[:-1] in GROUPS] == list(GROUPS)
    for each in names:
        assert sum(line.split()[:1] == [each] and line.startswith("  ") for line in lines) == 1


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_are_in_the_help_and_parse(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    for example in EXAMPLES[command]:
        assert f"  {example}\n" in shown
        call = example.rpartition("| ")[2].partition(" > ")[0]
        program, *words = shlex.split(call)
        assert program == "streamer"
        assert arguments.parse(words).command == command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "x", "--parttions", "3"], "no option '--parttions': did you mean '--part"),
        (["--strikt", "replay", "x"], "no option '--strikt': did you mean '--strict'? see `stream"),
        (["metrics", "a", "b"], "'b' is one argument too many; see `streamer metrics --help`"),
        (["replay", "x", "--zzz=1"], "no option '--zzz': see `streamer replay --help`"),
    ],
)
def test_what_is_not_understood_is_said_of_the_command(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        arguments.parse(words)
    assert said in str(error.value)


def test_a_mistyped_experiment_or_metric_is_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "streamer.toml"
    path.write_text(EXPERIMENT)
    assert main(["readout", "rankr", "-c", str(path)]) == 2
    assert "no experiment 'rankr'; did you mean 'ranker'?" in capsys.readouterr().err
    log = tmp_path / "x.ndjson"
    log.write_text("")
    words = ["plan", "ctr_raito", "--lift", "5%", "-c", str(path), "--file", str(log)]
    assert main(words) == 2
    assert "no such metric: did you mean 'ctr_ratio'?" in capsys.readouterr().err


def test_the_advice_is_first_and_stands_out(tmp_path: Path) -> None:
    path, log = tmp_path / "streamer.toml", tmp_path / "events.ndjson"
    path.write_text(EXPERIMENT)
    log.write_text(
        "".join(
            f'{{"type": "impression", "ts": 1748900000000, "user_id": "u{i}", "item_id": "i", '
            f'"variant": "{"AB"[i % 2]}"}}\n'
            for i in range(20)
        )
    )
    shown = on_terminal("readout", "ranker", "-c", str(path), "--file", str(log))
    lines = shown.replace("\r", "").splitlines()
    first = next(line for line in lines if "ranker: " in line)
    assert "ranker: \x1b[1mkeep running\x1b[0m. ctr_ratio: " in first
    assert all(len(ESCAPE.sub("", line)) <= 80 for line in lines[lines.index(first) :])
