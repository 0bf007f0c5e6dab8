"""``streamer check`` finds each misconfiguration that loses or doubles numbers, with its fix."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.cli import main
from streamer.cli.check import exporter_findings
from streamer.cli.check_store import clock_finding, cluster_finding, redis_findings
from streamer.cli.check_topics import topic_findings, unread_findings
from streamer.cli.finding import ERROR, OK, WARN
from streamer.ingest.sampling import Sample
from streamer.kafka.admin import TopicDescription
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import ExporterSettings, Topics
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST, free_port
from tests.cli.test_check import event, found, send
from tests.support.agreement import DOCUMENTS
from tests.support.exporters import fill, settings_of
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.lanes import long
from tests.support.required import require
from tests.support.workers import as_toml, document_of

DAY_MS = 24 * 3600 * 1000


def check(
    folder: Path, capsys: pytest.CaptureFixture[str], document: Mapping[str, Any]
) -> list[str]:
    """The findings that are not ok."""
    path = folder / "streamer.toml"
    path.write_text(as_toml(document))
    code = main.main(["check", "-c", str(path)])
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line for line in out.splitlines()[:-1] if not line.startswith(OK)]
    assert code == int(any(line.startswith(ERROR) for line in lines))
    assert all("  — " in line for line in lines), "each with its fix"
    return lines


def change(brokers: str, topic: str, **settings: str) -> None:
    """Change settings of a topic; underscores stand for dots."""

    async def alter() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
        await admin.start()
        try:
            configs = {name.replace("_", "."): value for name, value in settings.items()}
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
        finally:
            await admin.close()

    asyncio.run(alter())


@pytest.mark.usefixtures("apache_kafka")
def test_topics_that_lose_records(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = topics(2)
    send(kafka, [(made.clicks, 0, b"u", event("clicks", "u"))])
    change(kafka, made.clicks, retention_ms=str(3600_000), segment_ms=str(DAY_MS))
    change(kafka, made.impressions, cleanup_policy="compact")
    change(kafka, made.sessions, **{"unclean_leader_election_enable": "true"})
    change(kafka, made.conversions, retention_ms=str(3600_000))
    change(kafka, made.dead_letters, max_message_bytes="50000")
    document = document_of(kafka, made, make_redis(appendonly=True).url, "faults", {})
    lines = check(tmp_path, capsys, document)
    assert found(lines, WARN, made.clicks, "keeps records for only 1h", "retention.ms")
    assert found(lines, WARN, made.conversions, "keeps records for only 1h")
    assert found(lines, ERROR, made.impressions, "cleanup.policy is compact", "delete")
    assert found(lines, WARN, made.sessions, "stale replica", "unclean.leader.election.enable")
    assert found(lines, WARN, made.dead_letters, "above 50000 bytes are truncated")
    change(kafka, made.dead_letters, max_message_bytes="1500")
    lines = check(tmp_path, capsys, document)
    assert found(lines, ERROR, made.dead_letters, "max.message.bytes is 1500", "set max.message")
    change(kafka, made.dead_letters, max_message_bytes="200000")
    assert found(check(tmp_path, capsys, document), WARN, made.dead_letters, "are truncated")
    change(kafka, made.dead_letters, cleanup_policy="compact", min_insync_replicas="2")
    lines = check(tmp_path, capsys, document)
    assert not found(lines, ERROR, made.dead_letters, "compact")  # each letter has a key of its own
    assert found(lines, ERROR, made.dead_letters, "min.insync.replicas is 2 of 1 replicas")


def test_redis_that_cannot_be_written(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = topics(1)
    master = make_redis(appendonly=True)
    replica = make_redis(appendonly=True, options={"replicaof": f"{HOST} {master.port}"})
    lines = check(tmp_path, capsys, document_of(kafka, made, replica.url, "faults", {}))
    assert found(lines, ERROR, "is a slave", "connect to its master")
    full = make_redis(appendonly=True, options={"maxmemory": "600kb"})
    document = document_of(kafka, made, full.url, "faults", {})
    lines = check(tmp_path, capsys, document)
    assert found(lines, ERROR, "MiB of maxmemory are used", "more memory")
    assert found(lines, ERROR, "cannot write to Redis", "maxmemory", "give Redis more memory")
    assert main.main(["run", "-c", str(tmp_path / "streamer.toml")]) == 1
    said = capsys.readouterr().err
    assert "cannot write to Redis" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("is_cluster", [True, False])
def test_cluster_mode_that_is_not_the_servers(
    is_cluster: bool,
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    require("Redis")
    options = {"cluster-enabled": "yes", "cluster-port": str(free_port())} if is_cluster else {}
    server = make_redis(appendonly=True, options=options)
    document = document_of(kafka, topics(1), server.url, "faults", {})
    document["redis"]["cluster"] = not is_cluster
    wanted = f"set redis.cluster = {str(is_cluster).lower()}"
    assert found(check(tmp_path, capsys, document), ERROR, "Redis", "cluster", wanted)
    assert main.main(["run", "-c", str(tmp_path / "streamer.toml")]) == 1
    said = capsys.readouterr().err
    assert wanted in said
    assert said.count("\n") == 1


@long
def test_state_of_other_settings_and_other_topics(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """State that cannot be continued: `check` says so, and `run` refuses."""
    url = make_redis(appendonly=True).url
    made, three = topics(2), topics(3)

    async def store_something(prefix: str, names: Topics) -> None:
        settings = settings_of(url, prefix, names)
        store = RedisStore(settings.redis)
        await fill(store, settings)
        await store.close()

    asyncio.run(store_something("faults", made))
    asyncio.run(store_something("three", three))
    same = document_of(kafka, made, url, "faults", DOCUMENTS["few values"])
    assert not found(check(tmp_path, capsys, same), ERROR, "state")
    dimensions = [*same["dimensions"], {"name": "country"}]
    added = check(tmp_path, capsys, {**same, "dimensions": dimensions})
    assert found(added, WARN, "dimensions: country is new: counted from the restart on")
    assert not found(added, ERROR, "state")
    fix = "another redis.prefix and another kafka.group"
    words = ("attribution.click: is 5m, was ", "cannot be changed in place", fix)
    other = {**same, "attribution": {"click": "5m"}}
    assert found(check(tmp_path, capsys, other), ERROR, "refused", *words)
    assert main.main(["run", "-c", str(tmp_path / "streamer.toml")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words)
    assert said.count("\n") == 1
    foreign = {**same, "kafka": document_of(kafka, three, url, "faults", {})["kafka"]}
    refused = ("refused: the state is another system's", made.clicks, three.clicks, "--take-over")
    assert found(check(tmp_path, capsys, foreign), ERROR, *refused)
    more = document_of(kafka, three, url, "three", DOCUMENTS["few values"])
    words = ("the state has", "2 partitions, the topics have 3", fix)
    for _ in range(20):  # a broker tells of a new topic after a moment
        lines = check(tmp_path, capsys, more)
        if found(lines, ERROR, *words):
            break
    assert found(lines, ERROR, *words), lines
    assert main.main(["run", "-c", str(tmp_path / "streamer.toml")]) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in words)


# Rules that need no server -------------------------------------------------------------------


def facts(**settings: str) -> dict[str, TopicDescription]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return {kind: TopicDescription(kind, 2, named) for kind in (*KINDS, "dead_letters")}


def test_one_replica_where_there_are_brokers() -> None:
    assert not found(map(str, topic_findings(parse({}), facts(), {None: 1})), WARN, "replica")
    lines = [str(f) for f in topic_findings(parse({}), facts(), {None: 3})]
    assert found(lines, WARN, "'clicks'", "one replica", "add replicas: there are 3 brokers")


def test_a_missing_dead_letter_topic() -> None:
    known = {kind: fact for kind, fact in facts().items() if kind != "dead_letters"}
    lines = [str(f) for f in topic_findings(parse({}), known, {None: 1})]
    name = Topics().dead_letters
    assert found(lines, ERROR, name, "does not exist", "set kafka.topics.dead_letters")


def unread(read: int, start: int, unread_ms: int, **settings: str) -> list[str]:
    sample = Sample("clicks", 1, starts={0: start}, unread_ms={0: unread_ms})
    known = facts(**settings)
    return [
        str(f) for f in unread_findings(known, {"clicks": sample}, {("clicks", 0): read}, DAY_MS)
    ]


def test_records_that_go_before_they_are_read() -> None:
    assert unread(5, 5, DAY_MS) == []
    assert found(unread(5, 8, DAY_MS), ERROR, "3 records of partition 0 were deleted unread")
    assert unread(5, 5, 0) == []
    assert unread(5, 5, 0, retention_ms=str(2 * DAY_MS)) == []
    old = unread(5, 5, 0, retention_ms=str(3600_000))
    assert found(old, ERROR, "unread records are 1d old, retention is 1h", "retention.ms=-1")
    assert unread(5, 5, 0, retention_ms="1000", cleanup_policy="compact") == []


@long
@pytest.mark.usefixtures("apache_kafka")
def test_logs_that_were_cut(
    kafka: str,
    topics: MakeTopics,
    make_redis: MakeRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The state knows offsets that these logs do not have, and lacks records that are gone."""
    made = topics(2)
    settings = settings_of(make_redis(appendonly=True).url, "faults", made)

    async def store_something() -> int:
        store = RedisStore(settings.redis)
        run = await fill(store, settings)
        await store.close()
        return run.engines.partitions[0].logs["clicks"].next_offset

    read = asyncio.run(store_something())
    send(kafka, [(made.clicks, 0, b"u", event("clicks", "u"))] * (read + 9))

    async def cut() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        try:
            place = TopicPartition(made.clicks, 0)
            await admin.delete_records({place: RecordsToDelete(before_offset=read + 7)})
        finally:
            await admin.close()

    asyncio.run(cut())
    url = settings.redis.url
    lines = check(
        tmp_path, capsys, document_of(kafka, made, url, "faults", DOCUMENTS["few values"])
    )
    assert found(lines, ERROR, made.clicks, "7 records of partition 0 were deleted unread")
    assert found(lines, WARN, made.impressions, "partition 0: the log ends before", "recreated")


def test_clocks_that_differ() -> None:
    assert clock_finding(0.3).level == clock_finding(-4.9).level == OK
    assert "7.0 s behind" in str(clock_finding(-7.0))
    assert clock_finding(86_400.0).level == WARN


def test_little_memory_and_a_full_disk() -> None:
    good = {"redis_version": "7.4.1", "role": "master", "aof_enabled": 1}
    for info, level in (
        ({"used_memory": 79, "maxmemory": 100}, OK),
        ({"used_memory": 81, "maxmemory": 100}, WARN),
        ({"used_memory": 100, "maxmemory": 100}, ERROR),
        ({"used_memory": 81, "maxmemory": 0, "total_system_memory": 100}, WARN),
        ({"aof_last_write_status": "err"}, ERROR),
        ({"rdb_last_bgsave_status": "err"}, ERROR),
    ):
        assert [f.level for f in redis_findings("here", {**good, **info})][1:] == [level][
            : level != OK
        ]


def test_cluster_modes() -> None:
    assert cluster_finding(parse({}), "standalone") is None
    assert cluster_finding(parse({}), "") is None
    assert cluster_finding(parse({"redis": {"cluster": True}}), "cluster") is None
    assert "set redis.cluster = true" in str(cluster_finding(parse({}), "cluster"))


@pytest.mark.parametrize(
    ("exporter", "level"),
    [
        (ExporterSettings(), None),
        (ExporterSettings(host="0.0.0.0"), WARN),
        (ExporterSettings(host="::", username="u", password="p"), WARN),
        (ExporterSettings(host="", username="u", password="p", tls_certfile="c"), OK),
    ],
)
def test_an_exporter_that_others_can_reach(exporter: ExporterSettings, level: str | None) -> None:
    assert [f.level for f in exporter_findings(exporter)] == ([] if level is None else [level])
