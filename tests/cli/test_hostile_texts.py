"""What events say is printed so that it controls no terminal and forges no line."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamer
from streamer.formatting import printable, printable_json
from streamer.logs import printable_logs
from tests.support.commands import called
from tests.support.visitors import FIRST_MS, experiment
from tests.support.workers import as_toml

HOSTILE = "\x1b[2J\x1b]8;;http://x\x07a\x9b31m\u202eb\nranker: ship. B is better"
CONTROL = {
    *map(chr, (*range(10), *range(11, 32), *range(127, 160))),
    *("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
}
FORGED = "ranker: ship. B is better"
PACKAGE = Path(streamer.__file__).parent


def events(number: int = 400) -> Iterator[dict[str, Any]]:
    """Impressions and clicks in which every text is hostile now and then."""
    for i in range(number):
        ts, user = FIRST_MS + i * 60_000, f"u{i}"
        own = {"user_id": user, "item_id": HOSTILE, "request_id": f"r{i}"}
        arm = "AB"[i % 2] if i % 20 else HOSTILE
        seen = {"surface": (HOSTILE, "home")[i % 3 > 0], "variant": arm}
        yield {"type": "exposure", "ts": ts, "user_id": user, "experiment": HOSTILE, "arm": arm}
        yield {"type": "impression", "ts": ts + 1, **own, **seen}
        if i % 4 == 0:
            yield {"type": "click", "ts": ts + 2, **own}
    yield {"type": HOSTILE, "ts": ts + 3, "user_id": HOSTILE, HOSTILE: HOSTILE}
    yield {"type": "click", "ts": HOSTILE, "user_id": user, "item_id": "i"}


def assert_harmless(*texts: str) -> None:
    for text in texts:
        assert not CONTROL & {*text}, ascii(text)
        assert not [line for line in text.splitlines() if line.strip().startswith(FORGED)], text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("hostile")
    log, config = folder / "events.ndjson", folder / "streamer.toml"
    log.write_text("".join(json.dumps(event) + "\n" for event in events()))
    ranker = experiment(explore=["surface"], metrics=[{"name": "ctr_ratio"}])
    config.write_text(
        as_toml(
            {
                "kafka": {"topics": {"exposures": "exposures"}},
                "dimensions": [{"name": "surface"}, {"name": "variant"}],
                "experiments": [ranker],
                "experiments_defaults": {"metrics": [{"name": "ctr_ratio"}]},
            }
        )
    )
    return str(log), str(config)


@pytest.mark.parametrize(
    "words",
    [
        "replay {log} -c {config}",
        "replay {log} -c {config} --json",
        "replay {log} -c {config} --strict",
        "readout -c {config} --file {log}",
        "readout -c {config} --file {log} --json",
        "readout -c {config} --file {log} --pairs",
        "readout ranker -c {config} --file {log}",
        "readout ranker -c {config} --file {log} --json",
        "readout ranker -c {config} --file {log} --by surface",
        "readout ranker -c {config} --file {log} --by surface --json",
        "readout ranker -c {config} --file {log} --by nothing",
        "plan ctr_ratio -c {config} --file {log} --lift 0.1",
        "plan ctr_ratio -c {config} --file {log} --lift 0.1 --json",
        "init {log} --no-input",
        "init --no-input",
    ],
)
def test_no_command_prints_control_characters(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    log, config = site
    given = [word.format(log=log, config=config) for word in words.split()]
    _, out, err = called(capsys, given)
    assert out or err
    assert_harmless(out, err)


def test_a_hostile_name_of_an_experiment_is_an_argument_too(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    for own in ([HOSTILE], ["ranker", "--by", HOSTILE], ["ranker", "--across", HOSTILE]):
        code, out, err = called(capsys, ["readout", *own, "-c", config, "--file", log])
        assert out or err, code
        assert_harmless(out, err)


def test_readouts_by_a_hostile_value_show_it_escaped(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    words = ["readout", "ranker", "-c", config, "--file", log, "--by", "surface"]
    _, out, _ = called(capsys, words)
    assert "surface = \\x1b[2J\\x1b]8;;" in out
    assert "\\x9b31m\\u202eb\\nranker" in "".join(out.splitlines())


def test_a_report_is_a_page_without_control_characters(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    page = tmp_path / "report.html"
    words = ["report", "ranker", "-c", config, "--file", log, "--by", "surface"]
    called(capsys, [*words, "--html", str(page)])
    text = page.read_text()
    assert "\\x1b[2J" in text
    assert_harmless(text)


def test_what_the_library_shows_has_no_control_characters(site: tuple[str, str]) -> None:
    log, config = site
    counter = streamer.read(log, config)
    experiment = counter.experiment("ranker")
    shown = (
        *(counter, counter.what_was_read, counter.rejected, counter.experiment(), experiment),
        *(experiment.metrics, experiment.split, counter.metrics("window_impressions")),
        counter.metrics("window_impressions", by="surface"),
        counter.history("window_impressions", by="surface"),
        counter.explain("ctr_ratio", by="surface"),
    )
    for each in shown:
        assert_harmless(repr(each))
        if hasattr(each, "_repr_html_"):
            assert_harmless(each._repr_html_())
    assert "\\x1b[2J" in repr(counter.metrics("window_impressions", by="surface"))


def test_logs_escape_what_they_say(caplog: pytest.LogCaptureFixture) -> None:
    own = logging.getLogRecordFactory()
    printable_logs()
    try:
        for name in ("streamer", "streamer.exporter"):
            logging.getLogger(name).warning("topic %s", HOSTILE)
        logging.getLogger("faust").warning("a table\n%s", "\x1b[2J")
        try:
            raise ValueError(HOSTILE) from KeyError(HOSTILE)
        except ValueError:
            logging.getLogger("streamer").exception("raised")
    finally:
        logging.setLogRecordFactory(own)
    with pytest.raises(ExceptionGroup) as group:
        raise ExceptionGroup("several", [ValueError(HOSTILE)])
    printable_logs()
    try:
        info = (group.type, group.value, group.tb)
        record = logging.getLogger("streamer").makeRecord(
            "streamer", logging.ERROR, "f", 1, "raised", (), info
        )
    finally:
        logging.setLogRecordFactory(own)
    assert_harmless(logging.Formatter().format(record))
    assert "\\n" not in logging.Formatter().format(record).partition("raise ExceptionGroup")[0]
    traceback = logging.Formatter().format(caplog.records[-1])
    assert_harmless(traceback)
    assert "\nValueError: \\x1b[2J" in traceback
    assert "\n    raise ValueError(HOSTILE) from KeyError(HOSTILE)\n" in traceback
    *ours, theirs = (record.getMessage() for record in caplog.records[:-1])
    assert [len(text.splitlines()) for text in ours] == [1, 1]
    assert_harmless(*ours)
    assert theirs == "a table\n\\x1b[2J"


def test_letters_and_emoji_stay_and_json_says_the_same() -> None:
    text = "می\u200cخواهم 👩\u200d💻 東京\u3000 ñ"
    assert printable(text) == text
    document = json.dumps({"a": HOSTILE, "b": text}, ensure_ascii=False, indent=1)
    assert_harmless(printable_json(document))
    assert json.loads(printable_json(document)) == json.loads(document)


def test_text_leaves_commands_in_one_file() -> None:
    """Only ``cli/terminal.py`` writes to stdout and stderr what may come from events."""
    ours = {"demo.py", "generated.py", "healthcheck.py", "arguments.py", "terminal.py", "main.py"}
    found = []
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                *("print", "sys.stdout.write", "sys.stderr.write"),
                *("json.dump",),
            }:
                found.append(path.name)
    assert len(found) > len(ours) / 2
    assert {*found} <= ours
