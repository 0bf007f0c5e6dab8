"""``streamer init``: five foreign logs, from the file or topic to click rates by variant, which
equal the truth that each log was made from."""

from __future__ import annotations

import asyncio
import io
import json
import tomllib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from aiokafka import AIOKafkaProducer

from streamer.cli.main import main
from streamer.settings.load import load, parse
from tests.cli.test_produce import settings_file
from tests.support import encoded
from tests.support.fixtures import MakeTopics
from tests.support.foreign_logs import FIRST_MS, LOGS, Log, Truth
from tests.support.registries import PlainRegistry, register

EDITS: dict[str, Sequence[tuple[str, str]]] = {
    "segment": (),
    "ga4": (),
    "snowplow": (),
    "nested": [
        ('variant = "env.tests[key=checkout].arm"', 'variant = "env.tests[key=ranker].arm"')
    ],
    "open_bandit": (),
}
"""Log → the lines that a user changes in what is proposed; two at most."""

Counts = dict[tuple[str, str], float]
"""(metric, variant) → its value over 24 hours."""


def proposed(path: Path, *more: str, out: Path | None = None) -> str:
    out = out or path.parent / f"{uuid.uuid4().hex}.toml"
    assert main(["init", *([] if more else [str(path)]), *more, "-o", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def edited(text: str, edits: Sequence[tuple[str, str]]) -> str:
    assert len(edits) <= 2
    for old, new in edits:
        assert text.splitlines().count(old) == 1, old
        text = text.replace(old, new)
    return text


def counts(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> Counts:
    """What `replay` counts under settings, all dimensions but the variant together; guesses that
    are left are right."""
    settings = path.parent / "streamer.toml"
    settings.write_text(text.replace("# ? ", "# "), encoding="utf-8")
    capsys.readouterr()
    assert main(["replay", str(path), "-c", str(settings), "--json", "--strict"]) == 0
    found: Counts = {}
    for reading in json.loads(capsys.readouterr().out)["readings"]:
        labels = reading["labels"]
        variant = labels.pop("variant", None)
        is_total = set(labels.values()) == {"24h", "all"} or labels == {"window": "24h"}
        if variant is not None and is_total:
            found[reading["name"].removeprefix("streamer_"), variant] = reading["value"]
    return found


def compare(found: Counts, truth: Truth) -> None:
    for variant, impressions in truth.impressions.items():
        assert found["window_impressions", variant] == impressions
        assert found["window_clicks", variant] == truth.clicks[variant]
        assert found["ctr_ratio", variant] == truth.ctr[variant]
    assert found.get(("window_conversions", "all"), 0) == truth.conversions
    assert found["window_impressions", "all"] == truth.impressions.total()


def saved(log: Log, folder: Path) -> Path:
    path = folder / log.name
    path.write_bytes(log.data)
    return path


@pytest.mark.parametrize("name", LOGS)
def test_a_file_counts_right_after_two_edits_at_most(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LOGS[name]()
    path = saved(log, tmp_path)
    text = edited(proposed(path), EDITS[name])
    compare(counts(path, text, capsys), log.truth)


def test_the_tutorial_says_how_many_lines_were_edited() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert "four of five real logs need no edit, and one a single line" in " ".join(page.split())
    assert sorted(len(edits) for edits in EDITS.values()) == [0, 0, 0, 0, 1]


def test_parquet_files_are_proposed_and_counted_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LOGS["open_bandit"]()
    table = pyarrow.csv.read_csv(saved(log, tmp_path))
    path = tmp_path / "open-bandit.parquet"
    pyarrow.parquet.write_table(table.rename_columns(["n", *table.column_names[1:]]), path)
    compare(counts(path, proposed(path), capsys), log.truth)


async def _send(brokers: str, topic: str, lines: Sequence[bytes], **more: Any) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    try:
        for i, line in enumerate(lines):
            await producer.send(topic, line, key=str(i).encode(), **more)
        await producer.flush()
    finally:
        await producer.stop()


@pytest.mark.parametrize("name", ["segment", "nested", "open_bandit"])
def test_a_topic_is_proposed_as_its_file_is(
    name: str,
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, topic = LOGS[name](), topics(2).impressions
    lines = log.data.splitlines()
    if name == "open_bandit":
        names, *rows = (line.decode().split(",")[1:] for line in lines)
        read = [str, int, int, int, float, *[str] * 4, *[float] * 5, str]
        lines = [
            json.dumps({n: f(x) for n, f, x in zip(names, read, row, strict=True)}).encode()
            for row in rows
        ]
    asyncio.run(_send(kafka, topic, lines))
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(lines))
    text = proposed(path, "--brokers", kafka, "--topic", topic)
    settings = parse(tomllib.loads(text))
    assert settings.kafka.brokers == kafka
    assert [source.topics for source in settings.sources] == [(topic,)]
    compare(counts(path, edited(text, EDITS[name]), capsys), log.truth)


@pytest.mark.parametrize("data_format", ["avro", "protobuf", "json-schema"])
def test_encoded_topics_are_proposed_by_their_schemas(
    data_format: str,
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, some = topics(2).impressions, encoded.events(60, 1_700_000_000_000)
    path = tmp_path / "plain.ndjson"
    path.write_bytes(b"\n".join(encoded.as_json(event) for event in some))
    with PlainRegistry() as registry:
        schemas = {"avro": json.dumps(encoded.AVRO), "protobuf": encoded.PROTOBUF}
        write = {"avro": encoded.as_avro, "protobuf": encoded.as_protobuf}
        number = 1
        if data_format in schemas:
            kind = data_format.upper()
            number = register(registry.url, "web", schemas[data_format], kind)
        of_format = write.get(data_format, encoded.as_json)
        asyncio.run(_send(kafka, topic, [encoded.wire(number, of_format(e)) for e in some]))
        words = ["init", "--brokers", kafka, "--topic", topic]
        if data_format in schemas:
            assert main(words) == 2
            assert "name the schema registry with --registry" in capsys.readouterr().err
            words += ["--registry", registry.url]
        assert main(words) == 0
        said = capsys.readouterr()
        (source,) = parse(tomllib.loads(said.out)).sources
        assert source.format == data_format
        assert (source.schemas is None) == (data_format == "json-schema")
    assert "60 events of 60 records would be counted" in said.err
    assert main(["init", str(path)]) == 0
    plain = tomllib.loads(capsys.readouterr().out)["sources"][0]
    found = tomllib.loads(said.out)["sources"][0]
    assert found["fields"] == plain["fields"]
    assert found["kind"] == plain["kind"]


def test_security_comes_from_other_settings_and_headers_say_kinds(
    kafka: str, topics: MakeTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = topics(1)
    body = b'{"when":"2026-11-01T10:00:00Z","sku":"a","uid":7}'
    for what in (b"item-shown", b"item-clicked"):
        headers = [("what", what), ("trace", b"x")]
        asyncio.run(_send(kafka, made.clicks, [body] * 3, headers=headers))
    config = settings_file(tmp_path, kafka, made)
    assert main(["init", "-c", str(config), "--topic", made.clicks]) == 0
    out, err = capsys.readouterr()
    (source,) = parse(tomllib.loads(out)).sources
    assert source.kind.header == "what"
    assert (source.kind.impression, source.kind.click) == (("item-shown",), ("item-clicked",))
    assert "6 events of 6 records would be counted (3 impressions, 3 clicks)" in err
    asyncio.run(_send(kafka, made.sessions, [b'{"colour":"red"}'] * 3))
    both = ["--topic", made.sessions, "--topic", made.clicks]
    assert main(["init", "--brokers", kafka, *both]) == 0
    out, err = capsys.readouterr()
    assert [s.topics for s in parse(tomllib.loads(out)).sources] == [(made.clicks,)]
    assert f"not sure: topics: left out {made.sessions}" in err
    assert main(["init", "--brokers", kafka, "--topic", "no-such-topic"]) == 1
    assert "no topic 'no-such-topic'" in capsys.readouterr().err


# What is proposed ---------------------------------------------------------------------------------


def init(path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    path.write_bytes(data)
    code = main(["init", str(path)])
    return (code, *capsys.readouterr())


def ndjson(records: Sequence[Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def test_what_is_not_sure_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LOGS["nested"]()
    code, out, err = init(tmp_path / log.name, log.data, capsys)
    assert code == 0
    doubt = "checkout (old, new) was taken; ranker (deep, base) is env.tests[key=ranker].arm"
    assert f'# ? two experiments: {doubt}\nvariant = "env.tests[key=checkout].arm"\n' in out
    doubts = [line for line in err.splitlines() if "not sure: " in line]
    assert doubts[-1] == f"streamer: not sure: variant: two experiments: {doubt}"
    assert err.count("counted as {") == 5
    assert "would be counted (700 impressions, 298 clicks, 84 conversions), 175 ignored" in err
    assert "positions_from = 0" in out
    assert 'ts = { path = "meta.occurred.at", unit = "s" }' in out
    lines = [{"event": "shown", "ts": FIRST_MS, "sku": f"i{n % 9}"} for n in range(20)]
    _, out, err = init(tmp_path / "log.ndjson", ndjson(lines), capsys)
    assert "# ? user_id: none found: all events would be anonymous (impression)" in out
    assert "not sure: user_id: none found" in err


def test_our_own_events_need_no_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = b'{"type":"%s","ts":1700000000000,"user_id":"u","item_id":"i","variant":"%s"}\n'
    data = b"".join(line % (k, v) for k in (b"impression", b"click") for v in (b"x", b"y") * 5)
    code, out, _ = init(tmp_path / "log.ndjson", data, capsys)
    assert code == 0
    settings = parse(tomllib.loads(out))
    assert not settings.sources
    assert settings.dimension_names == ("variant",)


ARMS = (
    {"experiments": {"checkout": "AB", "ranker": ("old", "new")}},
    {"experiment_group": ("treatment", "control")},
    {"variant": "BA"},
)


@pytest.mark.parametrize("arms", ARMS, ids=lambda arms: next(iter(arms)))
@pytest.mark.parametrize("is_ours", [True, False])
def test_arms_are_proposed_as_experiments_without_what_was_planned(
    arms: dict[str, Any], is_ours: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def arm(of: Any, user: int) -> Any:
        return (
            {k: arm(v, user // 2) for k, v in of.items()} if isinstance(of, dict) else of[user % 2]
        )

    kinds = ("impression", "click") if is_ours else ("view_item_list", "select_item")
    lines = [
        {"type": kinds[n % 3 == 0], "ts": FIRST_MS + 1000 * n, "user_id": f"u{n % 40}",
         "item_id": f"i{n % 9}", **arm(arms, n % 40)}
        for n in range(240)
    ]  # fmt: skip
    code, out, _ = init(tmp_path / "log.ndjson", ndjson(lines), capsys)
    assert code == 0
    assert not parse(tomllib.loads(out)).experiments
    before, _, proposed = out.partition("# To compare arms")
    commented = proposed.splitlines()[1:]
    assert all(line.startswith("# ") for line in commented)
    text = "\n".join(line[2:].replace("YYYY-MM-DD", "2026-11-01") for line in commented)
    experiments = parse(tomllib.loads(f"{before}\n{text}")).experiments
    found = {e.name: (e.dimension or e.arm, e.control, e.split) for e in experiments}
    if "experiments" in arms:
        assert found == {
            "ranker": ("variant", "old", {"new": 1, "old": 1}),
            "checkout": ("experiments.checkout", "A", {"A": 1, "B": 1}),
        }
    else:
        ((where, control, split),) = found.values()
        assert (where, control in ("A", "control")) == ("variant", True)
        assert split == dict.fromkeys(sorted(*arms.values()), 1)


def test_files_of_one_kind_each_are_topics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base: dict[str, Any] = {"at": "2026-11-01T10:00:00Z", "user": "u"}
    shown = [{**base, "recs": [{"id": f"i{n}"}, {"id": "b"}], "arm": "AB"[n % 2]} for n in range(9)]
    clicks = [{**base, "sku": "b"} for _ in range(3)]
    paths = [tmp_path / "shop.shown.ndjson", tmp_path / "shop.clicks.ndjson"]
    for path, events in zip(paths, (shown, clicks), strict=True):
        path.write_bytes(b"\n".join(json.dumps(event).encode() for event in events))
    out = tmp_path / "proposed.toml"
    assert main(["init", *map(str, paths), "-o", str(out)]) == 0
    settings = load(out)
    assert [source.kind.fixed for source in settings.sources] == ["impression", "click"]
    capsys.readouterr()
    assert main(["replay", *map(str, paths), "-c", str(out), "--json", "--strict"]) == 0
    readings = json.loads(capsys.readouterr().out)["readings"]
    values = {(r["name"], *sorted(r["labels"].values())): r["value"] for r in readings}
    assert values["streamer_window_impressions", "24h", "all"] == 18
    assert values["streamer_window_clicks", "24h", "all"] == 3


def test_an_existing_file_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = saved(LOGS["ga4"](), tmp_path), tmp_path / "streamer.toml"
    out.write_text("mine")
    assert main(["init", str(path), "-o", str(out)]) == 2
    assert "streamer.toml is there already" in capsys.readouterr().err
    assert out.read_text() == "mine"


@pytest.mark.parametrize("words", [[], ["x.ndjson", "--brokers", "k:9092"]])
def test_files_or_topics_are_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", *words]) == 2
    assert "name FILEs, or a cluster with --brokers" in capsys.readouterr().err


def test_what_to_do_next_names_files_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'{"event":"page_view","ts":1700000000000,"user_id":"u","session_id":"s"}\n'
    path, out = tmp_path / "log.ndjson", tmp_path / "mine.toml"
    _, _, err = init(path, line * 3, capsys)
    assert "3 events of 3 records would be counted (3 session events)" in err
    replay = f"streamer replay {path} -c"
    assert f"next: save this as streamer.toml, then {replay} streamer.toml\n" in err
    assert main(["init", str(path), "-o", str(out)]) == 0
    assert f"next: {replay} {out}\n" in capsys.readouterr().err
    for more, said in (([], "next: save this as streamer.toml\n"), (["-o", f"{out}2"], "")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line * 3)))
        assert main(["init", "-", *more]) == 0
        err = capsys.readouterr().err
        assert said in err
        assert "replay" not in err


def test_where_nothing_would_count_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = init(tmp_path / "a.ndjson", b'{"colour":"red"}\n' * 9, capsys)
    assert code == 1
    assert "item_id is not read: missing; there are no fields" in out
    assert "impressions need ts and item_id, and no field looks like it; in a\n" in err
    code, out, err = init(tmp_path / "b.ndjson", b"no json\n", capsys)
    assert (code, out) == (2, "")
    assert "no record of b.ndjson is a JSON object" in err


def test_replay_of_what_is_not_mapped_points_to_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(LOGS["nested"](), tmp_path)
    assert main(["replay", str(path)]) == 1
    err = capsys.readouterr().err
    for text in (
        "fields seen: meta, actor, env, payload",
        "the records look like events, whose kind is said by meta.action",
        'ts = { path = "meta.occurred.at", unit = "s" }, user_id = "actor.customer.id"',
        f"settings for it: streamer init {path}",
        "none of 1,257 lines were accepted",
    ):
        assert text in err
    assert "70060" not in err


SHOP = """[[sources]]
topics = ["shop"]
kind = { field = "what", impression = ["shown"], click = ["clicked"] }
fields = { ts = "at", user_id = "who.id", item_id = "recs[].sku" }
click.fields = { item_id = "ITEM" }
"""


def shop(path: Path) -> Path:
    """Lists that were shown to users, who click the first item of each."""
    lines = []
    for n in range(60):
        common = {"at": FIRST_MS + 1000 * n, "who": {"id": f"u{n % 7}"}}
        lines.append({**common, "what": "shown", "recs": [{"sku": f"s{n}"}, {"sku": f"t{n}"}]})
        lines.append({**common, "what": "clicked", "rec": f"s{n}"})
    file = path / "shop.ndjson"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


def test_a_wrong_item_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, settings = shop(tmp_path), tmp_path / "streamer.toml"
    for item, code in (("rec", 0), ("who.id", 1)):
        settings.write_text(SHOP.replace("ITEM", item), encoding="utf-8")
        assert main(["replay", str(file), "-c", str(settings), "--strict"]) == code
        out, err = capsys.readouterr()
        joined = "0 of 60 clicks joined an impression; item_id differs between clicks"
        assert (joined in err) == bool(code)
        assert ("60 of 60" in out) != bool(code)
        assert main(["replay", str(file), "-c", str(settings)]) == 0
        capsys.readouterr()


def test_what_would_be_read_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proposed(shop(tmp_path))
    err = capsys.readouterr().err
    assert "What was read" in err
    assert "60 of 60" in err
    assert "joined an impression;" not in err


def test_calls_of_segment_that_are_no_events_of_ours_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[dict[str, Any]] = []
    for i in range(60):
        who = {"userId": f"u{i}", "timestamp": f"2026-11-01T10:00:{i:02d}.000Z"}
        shown = {"products": [{"product_id": "a"}, {"product_id": "b"}]}
        lines += [{"type": kind, "messageId": f"{kind}{i}", **who} for kind in ("page", "identify")]
        lines.append({"type": "track", "event": "Product List Viewed", "properties": shown, **who})
    path = tmp_path / "calls.ndjson"
    path.write_text("\n".join(map(json.dumps, lines)))
    settings = parse(tomllib.loads(proposed(path)))
    assert settings.sources[0].preset == "segment"
    said = "120 events of 180 records would be counted (60 session events, 60 impressions)"
    assert f"{said}, 60 ignored\n" in capsys.readouterr().err
