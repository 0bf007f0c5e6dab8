"""Replay: the oracle's numbers from files of all sorts, whatever the gathers."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from streamer._core import partition_of
from streamer.cli import main
from streamer.settings import limits
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources import open_bandit
from streamer.sources.files import FileSource
from streamer.sources.replay import Dead, Replay
from tests.oracle import files as oracle_files
from tests.oracle.oracle import records_of_file, run
from tests.oracle.random_log import random_log
from tests.support.agreement import DOCUMENTS, by_key, differences
from tests.support.lanes import long, shortened, sized

NO_TYPE = b'{"ts":1700000000000,"user_id":"u1","item_id":"i1"}'


def replayed(
    path: Path, settings: Settings, partitions: int = 1, dead: list[Dead] | None = None
) -> Replay:
    replay = Replay(settings, partitions, None if dead is None else dead.append)
    for lines in FileSource([path], settings):
        replay.feed(lines)
    replay.finish()
    return replay


def with_gather(name: str, rows: int) -> Settings:
    return parse({**DOCUMENTS[name], "limits": {"gather_rows": rows}})


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("partitions", shortened([3, 1]))
def test_equals_the_oracle(name: str, partitions: int, tmp_path: Path) -> None:
    settings = parse(DOCUMENTS[name])
    names = settings.events.fields
    fields = {"ts": 1_700_000_000_000, "user_id": "u1", "item_id": "i1"}
    untyped = json.dumps({names.get(key, key): value for key, value in fields.items()}).encode()
    lines = [*random_log(11, settings, sized(400, 1500)), untyped, b"", b"[]", b'{"type":"nope"}']
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(lines) + b"\n")
    expected = run(records_of_file(lines, settings, partitions), settings)
    dead: list[Dead] = []
    replay = replayed(path, settings, partitions, dead)
    assert replay.lines == len(lines)
    assert differences(by_key(replay.readout()), expected.readings) == []
    placed = [(d.topic, d.partition, d.offset) for d in dead if d.topic]
    assert len(set(placed)) == len(placed)
    assert set(placed) == {r[:3] for r in expected.rejects} | set(expected.late)
    strays = oracle_files.strays_of_file(lines, settings)
    assert sorted((d.value, d.reason) for d in dead if not d.topic) == sorted(strays)


@pytest.mark.parametrize("rows", [1, 100, 333])
def test_gathers_change_nothing(rows: int, tmp_path: Path) -> None:
    settings = parse({})
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(random_log(12, settings, 3000)))
    whole = replayed(path, settings, 2)
    pieces = Replay(with_gather("defaults", rows), 2)
    for lines in FileSource([path], settings):
        for i in range(0, len(lines), 17):
            pieces.feed(lines[i : i + 17])
    pieces.finish()
    assert by_key(pieces.readout()) == by_key(whole.readout())


def test_dead_letters_are_unchanged(tmp_path: Path) -> None:
    bad = [
        NO_TYPE,
        b"not json",
        b'{"type":"click","ts":1700000000000,"user_id":"u1"}',
        b'{"type":"impression","ts":1700000000000,"user_id":"\xff","item_id":"i1"}',
        b'{"type":"impression","ts":1600000000000,"user_id":"u1","item_id":"i1"}',
        b"x" * (limits.MAX_RECORD_BYTES + 50),
    ]
    good = b'{"type":"impression","ts":1700000000000,"user_id":"u1","item_id":"i1"}'
    path, letters = tmp_path / "log.ndjson", tmp_path / "dead.jsonl"
    path.write_bytes(b"\n".join([good, *bad]))
    command = ["replay", str(path), "--as-is", "--prom", "--dead-letters", str(letters)]
    assert main.main(command) == 1
    found = [json.loads(line) for line in letters.read_bytes().splitlines()]
    assert len(found) == len(bad)
    by_place = {(x["topic"], x["offset"]): x for x in found if x["topic"]}
    strays = {x["reason"]: x for x in found if not x["topic"]}
    assert {(x["partition"], x["offset"]) for x in strays.values()} == {(-1, -1)}
    assert strays["type"]["value"].encode() == NO_TYPE
    assert {x["value"] for x in found if x["reason"] == "json" and "value" in x} == {"not json"}
    (utf,) = (x["value_base64"] for x in found if "value_base64" in x)
    assert base64.b64decode(utf) == bad[3]
    assert by_place["clicks", 0]["value"].encode() == bad[2]
    assert by_place["clicks", 0]["reason"] == by_place["clicks", 0]["field"] == "item_id"
    assert by_place["clicks", 0]["found"] == "nothing"
    assert "512" in by_place["clicks", 0]["expected"]
    assert by_place["impressions", 1]["reason"] == "late"
    assert "time.max_lateness" in by_place["impressions", 1]["expected"]
    cut = strays["too_large"]
    assert cut["cut"] is True
    assert cut["found"] == "more than 1,000,001 bytes"
    assert bad[5].startswith(cut["value"].encode())


def test_dead_letters_of_sources_name_their_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, letters, config = (tmp_path / name for name in ("web.ndjson", "dead", "streamer.toml"))
    config.write_text(
        '[[sources]]\ntopics = ["web"]\n[sources.kind]\nfixed = "click"\n'
        '[sources.fields]\nts = "ts"\nuser_id = "user_id"\nitem_id = "sku"\n'
    )
    good = b'{"ts":1700000000000,"user_id":"u1","sku":"i1"}'
    path.write_bytes(b"\n".join([good, b'{"ts":1700000000000}', b"not json"]))
    assert main.main(["replay", str(path), "-c", str(config), "--dead-letters", str(letters)]) == 1
    assert "not counted, web: 1 item_id" in capsys.readouterr().err
    found = [json.loads(line) for line in letters.read_bytes().splitlines()]
    places = [(x["topic"], x["partition"], x["offset"], x["reason"]) for x in found]
    assert places == [("web", 0, 1, "item_id"), ("web", 0, 2, "json")]


OWN_NAMES = b'{"event":"view","time":"2023-11-14T22:13:20Z","sku":"i1","uid":"u1"}'


def test_a_file_with_names_of_its_own_is_an_error_that_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes((OWN_NAMES + b"\n") * 500)
    assert main.main(["replay", str(path), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["stream_time_ms"] == 0
    assert "none of 500 lines were accepted" in err
    for text in (
        *("no topic: 500 type: found nothing", "impression, click, conversion, session"),
        *("fields seen: event, time, sku, uid", "[events.fields]"),
        "sample: {event: text of 4, time: text of 20, sku: text of 2, uid: text of 2}",
        *('type = "event"', 'ts = "time"', 'item_id = "sku"', 'user_id = "uid"'),
    ):
        assert text in err
    assert main.main(["replay", str(path)]) == 1
    out, _ = capsys.readouterr()
    assert "Nothing was counted." in out
    assert "1970" not in out


@pytest.mark.parametrize(
    ("lines", "plain", "strict"),
    [
        ([b'{"type":"click","ts":1,"user_id":"u","item_id":"i"}'], 0, 0),
        ([b'{"type":"click","ts":1,"user_id":"u","item_id":"i"}', b"{"], 0, 1),
        ([b'{"type":"click","ts":9000000,"user_id":"u","item_id":"i"}',
          b'{"type":"click","ts":1,"user_id":"u","item_id":"i"}'], 0, 1),
        ([b'{"type":"click","ts":1700000000,"user_id":"u","item_id":"i"}'], 1, 1),
        ([b"{"], 1, 1),
        ([], 0, 0),
    ],
    ids=["good", "one is cut", "one is late", "seconds", "cut", "none"],
)  # fmt: skip
def test_the_exit_code_says_whether_lines_were_refused(
    lines: list[bytes], plain: int, strict: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(lines))
    assert main.main(["replay", str(path), "--as-is", "--prom"]) == plain
    assert main.main(["replay", str(path), "--as-is", "--prom", "--strict"]) == strict
    err = capsys.readouterr().err
    assert ("not counted" in err) == bool(plain or strict)
    assert ("looks like seconds" in err) == (b"1700000000," in b"".join(lines))


@pytest.fixture(scope="module")
def real_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "open_bandit.ndjson"
    lines = open_bandit.lines(open_bandit.events())
    path.write_bytes(b"".join(line + b"\n" for _, line in lines))
    return path


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main.main(["replay", "--json", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    document: dict[str, Any] = json.loads(out)
    return document


def readings(document: dict[str, Any]) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    return {(r["name"], frozenset(r["labels"].items()), r["value"]) for r in document["readings"]}


def totals(document: dict[str, Any], name: str) -> dict[str, float]:
    return {
        r["labels"]["variant"]: r["value"]
        for r in document["readings"]
        if r["name"] == f"streamer_{name}_total" and r["labels"].get("surface") == "all"
    }


@long
def test_the_real_ab_test(real_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Known of the data: 130 clicks in 30,000 impressions by `random`, 157 in 30,000 by `bts`.
    document = json_of(capsys, str(real_log))
    assert totals(document, "impressions") == {"random": 30_000, "bts": 30_000, "all": 60_000}
    assert totals(document, "clicks") == {"random": 130, "bts": 157, "all": 287}
    on_four = json_of(capsys, str(real_log), "--partitions", "4")
    assert readings(on_four) == readings(document)
    assert on_four["stream_time_ms"] == document["stream_time_ms"]
    assert document["stream_time_ms"] == max(e["ts"] for e in open_bandit.events())


def test_compressed_split_and_standard_input(
    real_log: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"".join(real_log.read_bytes().splitlines(keepends=True)[:5000])
    plain = tmp_path / "log.ndjson"
    plain.write_bytes(text)
    expected = json_of(capsys, str(plain))
    packed = {"a.ndjson.gz": gzip.compress(text), "b.zst": zstandard.compress(text)}
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data)
        assert json_of(capsys, str(tmp_path / name)) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert json_of(capsys, "-") == expected
    lines = text.splitlines(keepends=True)
    (tmp_path / "0").write_bytes(b"".join(lines[:3000]))
    (tmp_path / "1").write_bytes(b"".join(lines[3000:]))
    assert json_of(capsys, str(tmp_path / "1"), str(tmp_path / "0")) == expected


def test_prom_and_json_show_the_same(real_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json_of(capsys, str(real_log))
    assert main.main(["replay", "--prom", str(real_log)]) == 0
    lines = [x for x in capsys.readouterr().out.splitlines() if not x.startswith("#")]
    shown = [(x.partition("{")[0].partition(" ")[0], float(x.rpartition(" ")[2])) for x in lines]
    assert sorted(shown) == sorted((r["name"], float(r["value"])) for r in document["readings"])


def test_summary(real_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["replay", str(real_log)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for text in ("2019-11-30", "60,000", "All of the file, ", "bts", *KINDS):
        assert text in out


@pytest.mark.parametrize("case", ["missing", "folder", "cut gzip", "cut zstd", "no dead letters"])
def test_files_that_cannot_be_read(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = b'{"type":"impression"}\n' * 10_000
    path = tmp_path / "log"
    options: list[str] = []
    if case == "folder":
        path.mkdir()
    elif case == "cut gzip":
        path = tmp_path / "log.gz"
        path.write_bytes(gzip.compress(text)[:-20])
    elif case == "cut zstd":
        path = tmp_path / "log.zst"
        path.write_bytes(zstandard.compress(text)[:-20])
    elif case == "no dead letters":
        path.write_bytes(text)
        options = ["--dead-letters", str(tmp_path / "no" / "letters")]
    assert main.main(["replay", "--json", str(path), *options]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("streamer: ")
    assert (options[1] if options else str(path)) in err


def test_an_empty_file_reads_as_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.ndjson"
    path.write_bytes(b"")
    document = json_of(capsys, str(path))
    assert document["stream_time_ms"] == 0
    assert all(r["value"] in (0, 1) for r in document["readings"])


def test_partitions_are_those_of_kafka() -> None:
    for i in range(2000):
        key = b"user-" + str(i).encode() * (i % 5)
        assert partition_of(key, 7) == oracle_files.partition_of(key.decode(), 7)
    assert partition_of(None, 7) == 0


def test_an_existing_file_takes_no_dead_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(OWN_NAMES + b"\n")
    assert main.main(["replay", str(path), "--dead-letters", str(path)]) == 2
    assert "is there already: remove it" in capsys.readouterr().err
    assert path.read_bytes() == OWN_NAMES + b"\n"


@pytest.mark.parametrize("is_wrong", [False, True])
def test_fields_that_no_event_has_are_named(
    is_wrong: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, settings = tmp_path / "log.ndjson", tmp_path / "streamer.toml"
    events = [{"ts": 1_700_000_000_000, "who": "u", "item": "i", "test": {"arm": "A"}}] * 3
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    arm, user = ("test.amr", "whom") if is_wrong else ("test.arm", "who")
    settings.write_text(
        '[[sources]]\ntopics = ["log"]\nkind.fixed = "impression"\n'
        f'fields = {{ ts = "ts", item_id = "item", user_id = "{user}", variant = "{arm}" }}\n'
    )
    assert main.main(["replay", str(path), "-c", str(settings)]) == 0
    err = capsys.readouterr().err
    assert ("variant: no event has it" in err) == is_wrong
    assert ("nothing is at test.amr: correct variant in [sources.fields]" in err) == is_wrong
    assert ("user_id: no event has it" in err) == is_wrong
    assert "surface" not in err
    assert main.main(["replay", str(path), "-c", str(settings), "--strict"]) == int(is_wrong)


def test_what_is_older_than_all_windows_is_in_that_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.ndjson"
    day_ms = 86_400_000
    events = [
        {"type": "impression", "ts": 1_700_000_000_000 + n * day_ms, "user_id": "u", "item_id": "i"}
        for n in range(4)
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert main.main(["replay", str(path)]) == 0
    out = capsys.readouterr().out
    assert "All of the file, 2023-11-14 22:13 to 2023-11-17 22:13" in out
    assert ["all", "all", "4", "0"] in [line.split()[:4] for line in out.splitlines()]


def test_a_kind_that_is_not_named_is_said_with_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, settings = tmp_path / "log.ndjson", tmp_path / "streamer.toml"
    path.write_bytes(b'{"ts": 1700000000000, "what": "card_tapped", "item_id": "i"}\n')
    settings.write_text(
        '[[sources]]\ntopics = ["log"]\nkind = { field = "what", click = ["card_taped"] }\n'
        'fields = { ts = "ts", item_id = "item_id" }\n'
    )
    assert main.main(["replay", str(path), "-c", str(settings)]) == 1
    err = capsys.readouterr().err
    assert "found \"card_tapped\"; expected a value that [sources.kind] names: 'card_taped'" in err
