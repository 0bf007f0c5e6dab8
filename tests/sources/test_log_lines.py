"""Lines of logs: an object behind a text, pairs of keys and values, requests of web servers."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
import zstandard

from streamer.cli.main import main
from streamer.settings.model import Settings
from streamer.sources.csv_rows import CsvFile
from streamer.sources.files import FileSource, opened
from streamer.sources.line_batch import NO_TOPIC
from tests.support.lanes import sized

JOURNAL = "2024-07-01 05:08:{:02},312 INFO  [exec-{}] c.k.reco.Journal - {}"
TRACE = [
    "java.net.SocketTimeoutException: Read timed out",
    "\tat java.base/sun.nio.ch.NioSocketImpl.timedRead(NioSocketImpl.java:288)",
]
ACCESS = '192.0.2.{} - - [04/Mar/2024:01:26:23 +0100] "GET /t.gif?{} HTTP/1.1" 200 43'
AGENT = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_3_1) AppleWebKit/605.1.15 (KHTML, like Gecko)"
TEXTS = ("a b", 'say "hi"', "ü=ß&+%", "\\", "1,5", "17", "{", "x;y|z", "line\nbreak", "007")
ENDS = ("", " ", " empty=", ' none=""')


def raws_of(path: Path, lines: list[str]) -> list[bytes]:
    path.write_bytes("\n".join(lines).encode())
    return [raw for batch in FileSource([path], Settings()) for raw in batch.raws]


def objects_of(path: Path, lines: list[str]) -> list[Any]:
    return [json.loads(raw) for raw in raws_of(path, lines)]


def quoted(value: str) -> str:
    is_plain = value and not set(value) & set(' "=\\\n')
    return value if is_plain else json.dumps(value, ensure_ascii=False)


# An object behind a text --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(sized(1, 40)))
def test_an_object_is_the_same_whatever_stands_around_it(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    wanted, lines = [], []
    for _ in range(60):
        own = {dice.choice("abcdef"): dice.choice([*TEXTS, 1, None, [{"x": 1}], {"y": {"z": 2}}])}
        before = dice.choice(["INFO {} user={} -", "<14>host app[7]:", "[main] Journal:", "(a, b)"])
        after = dice.choice(["", " took 3 ms", " }", "]"])
        lines.append(f"{before} {json.dumps(own, ensure_ascii=dice.random() < 0.5)}{after}")
        wanted.append(own)
    assert objects_of(tmp_path / "a.log", lines) == wanted


@pytest.mark.parametrize(
    ("before", "time"),
    [
        ("2024-07-01 05:08:22,312 INFO ", "2024-07-01T05:08:22.312"),
        ("2024-07-01 05:08:22 - ", "2024-07-01T05:08:22"),
        ("[2024-07-01T05:08:22.312456Z] ", "2024-07-01T05:08:22.312456Z"),
        ("[2024-07-01 05:08:22 +0200] ", "2024-07-01T05:08:22+0200"),
        ("2024-07-01T05:08:22+02:00\tINFO\tserved\t", "2024-07-01T05:08:22+02:00"),
        ("2024-07-01T05:08:22Z\t", "2024-07-01T05:08:22Z"),
        ("2009/11/10 23:00:00 ", "2009-11-10T23:00:00"),
        ("Jul  1 05:08:22 host app: ", None),
        ("INFO 2024-07-01 05:08:22 ", None),
    ],
)
def test_the_time_at_the_beginning_of_a_line_is_a_field(
    tmp_path: Path, before: str, time: str | None
) -> None:
    own = {"k": "served", "ids": ["a"]}
    (line,) = objects_of(tmp_path / "a.log", [f"{before}{json.dumps(own)}"])
    assert line == (own if time is None else own | {"line_time": time})
    named = own | {"line_time": "mine"}
    assert objects_of(tmp_path / "a.log", [f"{before}{json.dumps(named)}"]) == [named]


def test_lines_without_exactly_one_object_stay_as_they_are(tmp_path: Path) -> None:
    good = [JOURNAL.format(i, i, '{"k":1}') for i in range(20)]
    odd = [
        *TRACE,
        JOURNAL.format(1, 2, "hit ratio 0.78, size=5180"),
        JOURNAL.format(1, 2, '{"k":"paid","basket":[{"x":"a","n":1},{"x"'),
        JOURNAL.format(1, 2, '{"mdc":1} {"k":2}'),
        JOURNAL.format(1, 2, '{"deep":' + "[" * 100_000),
        JOURNAL.format(1, 2, '{"long":' + "1" * 5_000 + "}"),
        "",
    ]
    raws = raws_of(tmp_path / "a.log", [*good, *odd])
    assert raws[len(good) :] == [line.encode() for line in odd[:-1]]
    path = tmp_path / "b.log"
    path.write_bytes("\n".join(good).encode() + b'\nINFO {"k":"\xff"}')
    raws = [raw for batch in FileSource([path], Settings()) for raw in batch.raws]
    assert raws[-1] == b'INFO {"k":"\xff"}'


def test_the_first_lines_say_what_a_file_is_whatever_its_name(tmp_path: Path) -> None:
    lines = [*TRACE, *(JOURNAL.format(i % 60, i, f'{{"k":{i}}}') for i in range(900))]
    data = "\n".join(lines).encode()
    names = {"a.log": data, "a.ndjson": data, "a": data, "a.txt.gz": gzip.compress(data)}
    names["a.log.zst"] = zstandard.compress(data)
    for name, written in names.items():
        (tmp_path / name).write_bytes(written)
        source = FileSource([tmp_path / name], Settings())
        raws = [raw for batch in source for raw in batch.raws]
        assert [json.loads(raw)["k"] for raw in raws[2:]] == [*range(900)], name
        assert source.read_bytes == source.total_bytes == len(written)


def test_a_pipe_may_give_one_line_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return super().readline()

    lines = [*TRACE, *(JOURNAL.format(1, 1, f'{{"k":{i}}}') for i in range(9))]
    piped = SimpleNamespace(buffer=Slow("\n".join(lines).encode()))
    monkeypatch.setattr(sys, "stdin", piped)
    raws = [raw for batch in FileSource(["-"], Settings()) for raw in batch.raws]
    assert raws[:2] == [line.encode() for line in TRACE]
    assert [json.loads(raw)["k"] for raw in raws[2:]] == [*range(9)]


@pytest.mark.parametrize(
    "line",
    [
        *('{"a":1}', '{"a":"x {\\"b\\":1}"}', '{"a":1} {"b":2}', '["a", {"b":1}]', '[{"a":1}]'),
        *('{"a": "x=1 y=2"}', "hello, world", "", '"x"', '{"a":1'),
    ],
)
def test_lines_of_json_files_stay_as_they_are(tmp_path: Path, line: str) -> None:
    lines = ['{"k":1}', line, '{"k":2}', 'INFO {"k":3}']
    assert raws_of(tmp_path / "a.ndjson", lines) == [x.encode() for x in lines]


def test_tables_whose_cells_look_so_are_tables(tmp_path: Path) -> None:
    rows = ["user\tat\tdata", *(f'u{i}\t2024-07-01 05:08:22\t{{"a":{i}}}' for i in range(9))]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(rows))
    assert isinstance(opened(path, Settings()), CsvFile)
    assert objects_of(path, rows)[0] == {
        "user": "u0",
        "at": "2024-07-01 05:08:22",
        "data": '{"a":0}',
    }


# Pairs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(sized(1, 40)))
def test_pairs_are_an_object_of_texts(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    wanted, lines = [], []
    for _ in range(60):
        own = {name: dice.choice(TEXTS) for name in dice.sample("abcdefgh", 4)}
        before = dice.choice(["", "2024-07-01T05:08:22Z level info "])
        pairs = dice.choice([" ", "  ", "\t"]).join(f"{k}={quoted(v)}" for k, v in own.items())
        lines.append(f"{before}{pairs}{dice.choice(ENDS)}")
        wanted.append(own | ({"line_time": "2024-07-01T05:08:22Z"} if before else {}))
    assert objects_of(tmp_path / "a.log", lines) == wanted


def test_lines_with_other_words_behind_pairs_stay_as_they_are(tmp_path: Path) -> None:
    good = ["ts=1713140249.667 type=imp uid=007 at.x=1 q='a'"] * 9
    odd = [
        *TRACE,
        "ts=1713201811.785 ho",
        "ts=171318740",
        'a=1 b="open',
        'ts=1 msg=no "quotes" b=1',
    ]
    raws = raws_of(tmp_path / "a.log", [*good, *odd])
    wanted = {"ts": "1713140249.667", "type": "imp", "uid": "007", "at.x": "1", "q": "'a'"}
    assert json.loads(raws[0]) == wanted
    assert raws[len(good) :] == [line.encode() for line in odd]
    (line,) = objects_of(tmp_path / "a.log", [r'a="c:\dir" b="\x41"'])
    assert line == {"a": r"c:\dir", "b": r"\x41"}


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(sized(1, 40)))
def test_the_parameters_of_requests_are_decoded(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    wanted, lines = [], []
    for i in range(60):
        own = {name: dice.choice(TEXTS) for name in dice.sample(["e", "ü", "path", "n", "q 1"], 3)}
        tail = dice.choice(["", f' "-" "{AGENT}"', f' "https://x.example/?a=1" "{AGENT}"'])
        host = dice.choice(["", "www.x.example:443 "])
        lines.append(f"{host}{ACCESS.format(i, urlencode(own))}{tail}")
        others = {"path": "/t.gif", "ip": f"192.0.2.{i}", "status": "200"}
        others["time"] = "2024-03-04T01:26:23+01:00"
        others |= {"user_agent": AGENT} if AGENT in tail else {}
        others |= {"referrer": "https://x.example/?a=1"} if "?" in tail else {}
        wanted.append(others | own)
    assert objects_of(tmp_path / "access.log", lines) == wanted


def test_requests_of_any_kind_are_read_where_most_have_parameters(tmp_path: Path) -> None:
    asked = [ACCESS.format(7, "e=v&b=1&b=2&none=")] * 3
    plain = '66.249.66.28 - bob [04/Mar/2024:02:39:48 +0100] "GET /robots.txt HTTP/1.1" 404 0'
    odd = ['1.2.3.4 - - [04/Mar/2024:02:39:48 +0100] "-" 400 0', plain.replace("04/Mar", "99/Mar")]
    raws = raws_of(tmp_path / "a.log", [*asked, plain, *odd])
    assert json.loads(raws[0])["b"] == ["1", "2"]
    assert "none" not in json.loads(raws[0])
    assert json.loads(raws[3])["path"] == "/robots.txt"
    assert raws[4:] == [line.encode() for line in odd]
    assert raws_of(tmp_path / "b.log", [plain] * 5) == [plain.encode()] * 5


# All of it ----------------------------------------------------------------------------------------


def test_a_log_is_counted_sorted_and_its_other_lines_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clicks stand before all impressions: what would be late is sorted by the times of lines."""
    shown = [{"k": "served", "who": f"u{i}", "ids": ["a", "b"]} for i in range(20)]
    picked = [{"k": "picked", "who": f"u{i}", "ids": ["b"]} for i in range(10)]
    lines = [f"2024-07-01 07:08:22 INFO {json.dumps(one)}" for one in picked]
    lines += [f"2024-07-01 05:08:22 INFO {json.dumps(one)}" for one in shown]
    path, settings = tmp_path / "journal.log", tmp_path / "x.toml"
    path.write_text("\n".join([*lines, *TRACE]))
    settings.write_text(
        '[[sources]]\ntopics = ["journal"]\nkind.field = "k"\nkind.impression = ["served"]\n'
        'kind.click = ["picked"]\n[sources.fields]\nts = "line_time"\nuser_id = "who"\n'
        'item_id = "ids[]"\n'
    )
    dead = tmp_path / "dead.ndjson"
    assert (
        main(["replay", str(path), "-c", str(settings), "--json", "--dead-letters", str(dead)]) == 0
    )
    out = capsys.readouterr()
    values = {
        one["name"]: one["value"]
        for one in json.loads(out.out)["readings"]
        if not one["labels"].keys() - {"topic"}
    }
    assert values["streamer_accepted_total"] == 30
    assert values["streamer_late_total"] == 0
    assert [json.loads(x)["value"] for x in dead.read_text().splitlines()] == TRACE
    assert "journal: 2 json" in out.err


def test_settings_are_proposed_for_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f"ts=17131402{i:02}.667 host=nb-07 type={'click' if i % 5 == 4 else 'impression'} "
        f"user_id=u{i // 5 % 7} item_id=cr{i // 5} "
        for i in range(100)
    ]
    path, settings = tmp_path / "notices.log", tmp_path / "x.toml"
    path.write_text("\n".join(lines))
    assert main(["init", str(path), "-o", str(settings)]) == 0
    assert 'ts = { path = "ts", unit = "s" }' in settings.read_text()
    assert main(["replay", str(path), "-c", str(settings)]) == 0
    assert "20 of 20" in capsys.readouterr().out


def test_lines_of_no_shape_belong_to_no_topic(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\n".join([*TRACE, *TRACE]))
    logs = {log for batch in FileSource([path], Settings()) for log, _, _ in batch}
    assert logs == {NO_TOPIC}
