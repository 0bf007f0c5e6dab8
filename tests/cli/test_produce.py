"""``streamer produce``: every line in its topic, unchanged, and the same numbers as replay."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
import uuid
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from streamer._core import partition_of
from streamer.cli import main
from streamer.cli.produce import Pace, refuse_old
from streamer.errors import BrokerError
from streamer.ingest.record import record_decoder
from streamer.kafka.admin import TopicDescription
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings, Topics
from streamer.sources.files import FileSource
from streamer.sources.line_batch import NO_TOPIC, Line
from streamer.sources.replay import Replay
from tests.oracle.random_log import random_log
from tests.support.agreement import by_key, read_engines, run_engines
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long

PARTITIONS = 3
TS = 1_700_000_000_000
GOOD = b'{"type":"click","ts":1700000000000,"user_id":"u1","item_id":"i1"}'
IN_SECONDS = GOOD.replace(b"000,", b",")
HEADERS = ("reason", "field", "found", "expected", "topic", "partition", "offset")
NO_TYPE = b'{"ts":1700000000000,"user_id":"u1"}'
READ_SECONDS = 30.0


def settings_file(folder: Path, brokers: str, topics: Topics) -> Path:
    path = folder / "streamer.toml"
    names = "".join(f'{name} = "{topic}"\n' for name, topic in topics.named.items())
    path.write_text(f'[kafka]\nbrokers = "{brokers}"\n[kafka.topics]\n{names}')
    return path


def read(brokers: str, topics: Topics, count: int) -> dict[str, list[Any]]:
    """All records of the five topics by kind, in offset order of each partition."""

    async def poll() -> list[Any]:
        names = list(topics.named.values())
        consumer = AIOKafkaConsumer(*names, bootstrap_servers=brokers, auto_offset_reset="earliest")
        await consumer.start()
        found: list[Any] = []
        deadline = time.monotonic() + READ_SECONDS
        try:
            while len(found) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += records
        finally:
            await consumer.stop()
        return found

    records = asyncio.run(poll())
    assert len(records) == count
    return {
        name: [r for r in records if r.topic == getattr(topics, name)]
        for name in Topics.__struct_fields__
    }


def lines_of(path: Path, settings: Settings) -> list[Line]:
    return [line for lines in FileSource([path], settings) for line in lines]


def test_every_line_arrives_and_counts_as_in_replay(
    kafka: str, topics: MakeTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = topics(PARTITIONS)
    settings = parse({})
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join([*random_log(21, settings, 3000), b"no json"]))
    lines = lines_of(path, settings)
    # Lines of no topic are not counted by a worker: they are dead letters already.
    typed = [line for line in lines if line[0] != NO_TOPIC]
    file = settings_file(tmp_path, kafka, made)
    assert main.main(["produce", str(path), "-c", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{len(lines):,} lines in Kafka" in err
    found = read(kafka, made, len(lines))
    assert len(found["dead_letters"]) == len(lines) - len(typed)
    decoder = record_decoder(settings)
    log: list[LogRecord] = []
    for kind in KINDS:
        sent: dict[int, list[tuple[bytes | None, int, bytes]]] = {}
        for _, record_ms, raw in (line for line in typed if line[0] == kind):
            key = decoder.key(kind, raw, record_ms)
            sent.setdefault(partition_of(key, PARTITIONS), []).append((key, record_ms, raw))
        for partition in range(PARTITIONS):
            here = [r for r in found[kind] if r.partition == partition]
            assert [(r.key, r.timestamp, r.value) for r in here] == sent.get(partition, [])
            log += [LogRecord(kind, partition, r.offset, r.timestamp, r.value) for r in here]
    replay = Replay(settings, PARTITIONS)
    replay.feed(typed)
    replay.finish()
    engines = run_engines(settings, PARTITIONS, log, 500, seed=1)
    assert read_engines(engines) == by_key(replay.readout())


def test_lines_of_no_topic_are_dead_letters(
    kafka: str, topics: MakeTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = topics(PARTITIONS)
    path = tmp_path / "log.ndjson"
    path.write_bytes(GOOD + b"\n" + NO_TYPE + b"\nno json\n")
    command = ["produce", str(path), "-c", str(settings_file(tmp_path, kafka, made))]
    assert main.main(command) == 1
    err = capsys.readouterr().err
    assert f"settings for it: streamer init {path}" in err
    assert "2 of them have no valid `type`" in err
    assert "1 type: found nothing; expected one of impression" in err
    assert "1 json: found 7 bytes that cannot be read" in err
    found = read(kafka, made, 3)
    assert [r.value for r in found["clicks"]] == [GOOD]
    letter, broken = found["dead_letters"]
    assert (letter.value, broken.value) == (NO_TYPE, b"no json")
    assert letter.timestamp == TS
    assert dict(broken.headers)["streamer.reason"] == b"json"
    headers = dict(letter.headers)
    assert headers["streamer.reason"] == headers["streamer.field"] == b"type"
    assert headers["streamer.found"] == b"nothing"
    assert b"impression" in headers["streamer.expected"]
    assert headers["streamer.topic"] == b""
    assert set(headers) == {f"streamer.{x}" for x in HEADERS}


@pytest.mark.parametrize(
    ("line", "plain", "strict"),
    [(GOOD, 0, 0), (IN_SECONDS + b"\n" + GOOD, 0, 1), (IN_SECONDS, 1, 1), (NO_TYPE, 1, 1)],
    ids=["good", "one in seconds", "seconds", "no type"],
)
def test_the_exit_code_says_whether_lines_will_be_refused(
    line: bytes,
    plain: int,
    strict: int,
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = topics(1)
    path = tmp_path / "log.ndjson"
    path.write_bytes(line + b"\n")
    command = ["produce", str(path), "-c", str(settings_file(tmp_path, kafka, made))]
    assert main.main(command) == plain
    assert main.main([*command, "--strict"]) == strict
    err = capsys.readouterr().err
    assert ("1 ts: found 1700000000 (looks like seconds)" in err) == (IN_SECONDS in line)
    count = len(line.splitlines())
    assert (f"none of {count} lines were accepted" in err) == bool(plain)
    assert sum(map(len, read(kafka, made, 2 * count).values())) == 2 * count


def test_missing_topics_are_an_error_or_created(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = uuid.uuid4().hex[:8]
    named = Topics(**{name: f"{name}-{tag}" for name in Topics.__struct_fields__})
    path = tmp_path / "log.ndjson"
    line = b'{"type":"session","ts":1700000000000,"user_id":"u1","session_id":"s","action":"end"}'
    path.write_bytes(line + b"\n")
    command = ["produce", str(path), "-c", str(settings_file(tmp_path, kafka, named))]
    assert main.main(command) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"'sessions-{tag}'" in err
    assert "--create" in err
    assert main.main([*command, "--create", "2"]) == 0
    assert main.main(command) == 0
    found = read(kafka, named, 2)
    assert [r.key for r in found["sessions"]] == [b"u1", b"u1"]


def test_no_kafka_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"")
    assert (
        main.main(
            ["produce", str(path), "-c", str(settings_file(tmp_path, "127.0.0.1:1", Topics()))]
        )
        == 1
    )
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "127.0.0.1:1" in err


# Rules that need no Kafka ------------------------------------------------------------------------

HOUR_MS = 3_600_000


def facts(**settings: str) -> dict[str, TopicDescription]:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return {kind: TopicDescription(kind, 4, named) for kind in (*KINDS, "dead_letters")}


@pytest.mark.parametrize(
    ("settings", "age_ms", "is_refused"),
    [
        ({}, 10_000 * HOUR_MS, False),
        ({"message_timestamp_type": "CreateTime"}, 10_000 * HOUR_MS, False),
        ({"message_timestamp_type": "LogAppendTime"}, HOUR_MS, True),
        ({"message_timestamp_type": "LogAppendTime"}, 60_000, False),
        ({"retention_ms": "604800000"}, 169 * HOUR_MS, True),
        ({"retention_ms": "604800000"}, 167 * HOUR_MS, False),
        ({"retention_ms": "604800000", "cleanup_policy": "compact"}, 169 * HOUR_MS, False),
        ({"retention_ms": "-1"}, 10_000 * HOUR_MS, False),
    ],
)
def test_old_lines_are_refused_where_they_would_not_count(
    settings: dict[str, str], age_ms: int, is_refused: bool
) -> None:
    now_ms = 1_800_000_000_000
    lines: list[Line] = [("impressions", 0, b""), ("clicks", now_ms - age_ms, b"")]
    if is_refused:
        with pytest.raises(BrokerError, match="old"):
            refuse_old(lines, parse({}), facts(**settings), now_ms)
    else:
        assert refuse_old(lines, parse({}), facts(**settings), now_ms)


def test_lines_without_a_time_decide_nothing() -> None:
    lines: list[Line] = [("impressions", 0, b"")]
    assert not refuse_old(lines, parse({}), facts(message_timestamp_type="LogAppendTime"), 10**12)


def test_pace() -> None:
    # clock 100 s: first line (1000.000 s). At speed 2, lines of +4 s and +10 s are due at 102, 105.
    clock = [100.0]
    pace = Pace(2.0, lambda: clock[0])
    assert pace.wait_seconds(0) == 0.0
    assert pace.wait_seconds(1_000_000) == 0.0
    assert pace.wait_seconds(1_004_000) == 2.0
    clock[0] = 106.0
    assert pace.wait_seconds(1_010_000) == -1.0
    assert Pace(None).wait_seconds(1_000_000) == 0.0


async def test_a_live_pipe_is_sent_at_least_once_a_second(
    kafka: str, topics: MakeTopics, tmp_path: Path
) -> None:
    made = topics(PARTITIONS)
    config = settings_file(tmp_path, kafka, made)
    command = [sys.executable, "-m", "streamer", "produce", "-", "-c", str(config)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stderr=PIPE)
    consumer = AIOKafkaConsumer(made.clicks, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        assert process.stdin is not None
        for n in range(3):
            now_ms = time.time_ns() // 1_000_000
            click = {"type": "click", "ts": now_ms, "user_id": f"u{n}", "item_id": "i"}
            process.stdin.write(json.dumps(click).encode() + b"\n")
            await process.stdin.drain()
            seconds = READ_SECONDS if n == 0 else 5  # the first waits for the start, too
            record = await asyncio.wait_for(consumer.getone(), seconds)
            assert json.loads(record.value)["ts"] == record.timestamp == now_ms
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), READ_SECONDS) == 0
    finally:
        await consumer.stop()
        if process.returncode is None:
            process.kill()


@long
async def test_a_silent_pipe_keeps_nobody_from_stopping_it(
    kafka: str, topics: MakeTopics, tmp_path: Path
) -> None:
    config = settings_file(tmp_path, kafka, topics(PARTITIONS))
    command = [sys.executable, "-m", "streamer", "produce", "-", "-c", str(config)]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stderr=PIPE,
        # Shells ignore it for what they run in the background, and so would the process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    await asyncio.sleep(4)
    process.send_signal(signal.SIGINT)
    await asyncio.wait_for(process.wait(), 60)  # of a busy machine
