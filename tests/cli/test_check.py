"""``streamer check``: each thing that is wrong is found, in one line with its fix."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from streamer._core import partition_of
from streamer.cli import main
from streamer.cli.check_store import redis_findings
from streamer.cli.check_topics import topic_findings
from streamer.cli.finding import ERROR, OK, WARN, Finding
from streamer.kafka.admin import TopicDescription
from streamer.settings.event_fields import KINDS, TYPE_OF_KIND
from streamer.settings.load import parse
from streamer.settings.model import Topics
from streamer.testing.embedded import create_topics
from tests.support.fixtures import MakeRedis, MakeTopics

PARTITIONS = 4


def check(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    kafka: str,
    redis: str,
    topics: Topics | None = None,
) -> tuple[int, list[str]]:
    """Exit code and findings."""
    names = (topics or Topics()).named
    path = folder / "streamer.toml"
    path.write_text(
        f'[kafka]\nbrokers = "{kafka}"\n[kafka.topics]\n'
        + "".join(f'{key} = "{name}"\n' for key, name in names.items())
        + f'[redis]\nurl = "{redis}"\n'
    )
    code = main.main(["check", "-c", str(path)])
    out, err = capsys.readouterr()
    assert err == ""
    *lines, last = out.splitlines()
    assert all(line.split()[0] in (OK, WARN, ERROR) for line in lines)
    assert re.fullmatch(r"(no|\d+) errors?, (no|\d+) warnings?", last)
    assert last.startswith("no errors") == (not any(line.startswith(ERROR) for line in lines))
    assert code == int(any(line.startswith(ERROR) for line in lines))
    return code, lines


def found(lines: Iterable[str], level: str, *words: str) -> bool:
    return any(x.startswith(level) and all(word in x for word in words) for x in lines)


def send(brokers: str, records: list[tuple[str, int, bytes, bytes]]) -> None:
    """Write (topic, partition, key, value)."""

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=brokers)
        await producer.start()
        try:
            for topic, partition, key, value in records:
                await producer.send(topic, value, key=key, partition=partition)
        finally:
            await producer.stop()

    asyncio.run(write())


def event(kind: str, user: str) -> bytes:
    fields = {"user_id": user, "ts": 1_700_000_000_000, "item_id": "i"}
    extra = {"session_id": "s", "action": "view"} if kind == "sessions" else {}
    return json.dumps({"type": TYPE_OF_KIND[kind], **fields, **extra}).encode()


def events(topics: Topics, partitioner: dict[str, str]) -> list[tuple[str, int, bytes, bytes]]:
    records = []
    for kind in KINDS:
        for i in range(40):
            key = f"u{i}".encode()
            crc = zlib.crc32(key) % PARTITIONS
            at = crc if partitioner.get(kind) == "crc32" else partition_of(key, PARTITIONS)
            records.append((getattr(topics, kind), at, key, event(kind, f"u{i}")))
    return records


def test_all_is_well(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = topics(PARTITIONS)
    send(kafka, events(made, {}))
    redis = make_redis(appendonly=True)
    code, lines = check(tmp_path, capsys, kafka, redis.url, made)
    assert code == 0
    assert not found(lines, WARN, "Redis")
    assert found(lines, OK, "4 partitions each")
    assert found(lines, OK, made.clicks, "the last 40 records decode")
    assert found(lines, OK, "40 sampled users", "murmur2")


def test_a_mapping_that_joins_nothing_is_named(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made, records = topics(PARTITIONS), []
    for i in range(100):
        key, ts = f"u{i % 9}".encode(), 1_700_000_000_000 + 1000 * i
        for topic, name in ((made.impressions, f"i{i}"), (made.clicks, f"title {i}")):
            value = {"user_id": key.decode(), "ts": ts, "item_id": f"i{i}", "named": name}
            at = partition_of(key, PARTITIONS)
            records.append((topic, at, key, json.dumps(value).encode()))
    send(kafka, records)
    fields = 'ts = "ts", user_id = "user_id"'
    for item, is_wrong in (("item_id", False), ("named", True)):
        path = tmp_path / f"{item}.toml"
        path.write_text(
            f'[kafka]\nbrokers = "{kafka}"\n[redis]\nurl = "{redis_url}"\n[[sources]]\n'
            f'topics = ["{made.impressions}"]\nkind.fixed = "impression"\n'
            f'fields = {{ {fields}, item_id = "item_id" }}\n[[sources]]\n'
            f'topics = ["{made.clicks}"]\nkind.fixed = "click"\n'
            f'fields = {{ {fields}, item_id = "{item}" }}\n'
        )
        code = main.main(["check", "--strict", "-c", str(path)])
        lines = capsys.readouterr().out.splitlines()
        assert found(lines, OK, "clicks: 100 in the last records", "of 100 joined an impression")
        wrong = ("0 of 100 clicks joined", "correct item_id in [sources.fields]")
        assert found(lines, WARN, *wrong) == is_wrong
        assert code == int(any(line.startswith((WARN, ERROR)) for line in lines))


def test_conversions_whose_impressions_were_read_long_ago_are_no_finding(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made, records = topics(1), []

    def add(topic: str, minute: float, n: int) -> None:
        """An event of the n-th person about the n-th item."""
        own = {"user_id": f"u{n}", "item_id": f"i{n}", "value": 1}
        ts = 1_700_000_000_000 + int(60_000 * minute)
        records.append((topic, 0, b"u", json.dumps({**own, "ts": ts}).encode()))

    for n in range(600):
        add(made.impressions, n / 6, n)
        add(made.clicks, n / 6 + 0.1, n)
    for n in range(40):  # all join, after an hour
        add(made.conversions, n + 60, 6 * n)
    send(kafka, records)
    _, lines = check(tmp_path, capsys, kafka, redis_url, made)
    said = (
        "too short to tell how many joined an impression (impressions of 33m, conversions of 39m)"
    )
    assert found(lines, OK, "conversions: 40 in the last records", said)
    assert found(lines, OK, "clicks: 200 in the last records", "200 of 200 joined an impression")
    assert not found(lines, WARN, "joined")


def test_what_is_wrong_with_topics_and_records(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = topics(PARTITIONS)
    records = events(made, {"clicks": "crc32"})
    records += [(made.sessions, 0, b"k", b"no json")] * 10
    own = {"timestamp": 1_700_000_000_000, "uid": "u1", "item_id": "i1"}
    records += [(made.conversions, 0, b"k", json.dumps(own).encode())] * 3
    send(kafka, records)
    code, lines = check(tmp_path, capsys, kafka, redis_url, made)
    assert code == 1
    assert found(lines, WARN, made.sessions, "10 of the last 50 records (20%)", "json 10")
    assert found(lines, WARN, made.sessions, "10 json: found 7 bytes", "expected one JSON object")
    seen = (
        "found nothing",
        "fields seen: timestamp, uid, item_id",
        "sample: {timestamp: integer of 13 digits",
    )
    assert found(lines, WARN, made.conversions, *seen, 'ts = "timestamp", user_id = "uid"')
    assert found(lines, ERROR, "sampled users are on several partition numbers", "partitioner")


def test_unequal_and_missing_topics(
    kafka: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = uuid.uuid4().hex[:8]
    named = Topics(**{name: f"{name}-{tag}" for name in Topics.__struct_fields__})
    asyncio.run(create_topics(kafka, [named.impressions, named.conversions], 2))
    asyncio.run(create_topics(kafka, [named.clicks], 3))
    for _ in range(50):  # a broker tells of a new topic after a moment
        code, lines = check(tmp_path, capsys, kafka, redis_url, named)
        if found(lines, ERROR, "partition counts differ"):
            break
    assert code == 1
    assert found(lines, ERROR, f"'sessions-{tag}'", "does not exist", "kafka.topics.sessions")
    assert found(lines, ERROR, "partition counts differ", f"clicks-{tag} 3")
    assert found(lines, OK, "no records yet")


def test_a_redis_that_evicts(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    redis = make_redis(options={"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"})
    code, lines = check(tmp_path, capsys, kafka, redis.url, topics(1))
    assert code == 1
    assert found(lines, ERROR, "maxmemory-policy is allkeys-lru", "noeviction")
    assert found(lines, WARN, "appendonly is off")


def test_nothing_reachable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(tmp_path, capsys, "127.0.0.1:1", "redis://:secret@127.0.0.1:1/0")
    assert code == 1
    assert found(lines, ERROR, "Kafka", "127.0.0.1:1")
    assert found(lines, ERROR, "Redis", "127.0.0.1:1")
    assert not any("secret" in line for line in lines)


# Rules that need no server -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"message.timestamp.type": "LogAppendTime"}, OK),
        ({"message.timestamp.after.max.ms": "3600000"}, OK),
        ({"message.timestamp.difference.max.ms": "60000"}, OK),
        ({"message.timestamp.after.max.ms": str(2**63 - 1)}, WARN),
        ({}, WARN),
    ],
)
def test_who_stamps_the_records(settings: dict[str, str], level: str) -> None:
    facts = {kind: TopicDescription(kind, 4, settings) for kind in (*KINDS, "dead_letters")}
    lines = [str(f) for f in topic_findings(parse({}), facts, {None: 1})]
    assert all(found(lines, level, f"'{kind}'", "timestamps") for kind in KINDS)


def levels(**info: object) -> list[str]:
    good = {"redis_version": "7.4.1", "role": "master", "aof_enabled": 1}
    return [f.level for f in redis_findings("here", {**good, **info})]


def test_redis_rules() -> None:
    assert levels() == [OK]
    assert levels(redis_version="6.2.0") == [ERROR]
    assert levels(maxmemory_policy="volatile-ttl") == [OK, ERROR]
    assert levels(role="slave") == [OK, ERROR]
    assert levels(aof_enabled=0) == [OK, WARN]


def test_a_finding_is_one_line_with_its_fix() -> None:
    assert str(Finding(OK, "it works")) == "ok     it works"
    assert str(Finding(ERROR, "it broke", "fix it")) == "error  it broke  — fix it"
