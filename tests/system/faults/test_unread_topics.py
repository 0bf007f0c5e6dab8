"""Topics that cannot be read as the state needs them: what can be read goes on being counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from streamer.server.exporter import Exporter
from streamer.settings.model import Topics
from streamer.state.log_identity import resolve
from streamer.testing.embedded import create_topics, delete_topics
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.own_names import own_names
from tests.support.workers import Bench, bench, document_of, produce, until
from tests.system.faults.test_kafka import impressions

PARTITIONS = 2
LIMIT_SECONDS = 200


def spread(first: int, end: int) -> list[LogRecord]:
    """Impressions on both partitions, each with its own."""
    return [replace(r, partition=n) for n in range(PARTITIONS) for r in impressions(first, end)]


async def has_counted(made: Bench, count: int, topic: str = "impressions") -> bool:
    await made.reader.refresh()
    found = [m.topics[topic].counters["accepted"] for m in made.reader.manifests.values()]
    return sum(found) == count


async def exact(exporter: Exporter) -> float:
    readings = (await exporter.read()).readings
    return next(r.value for r in readings if r.name == "streamer_identity_exact")


async def add_partitions(brokers: str, topic: str, count: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        await admin.create_partitions({topic: NewPartitions(count)})
    finally:
        await admin.close()


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_added_partitions_are_named_and_the_others_go_on(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        exporter = Exporter(made.settings, made.store)
        made.start_worker()
        await produce(kafka, names, spread(0, 100))
        await until(lambda: has_counted(made, 200), "the first are counted", made.said)
        assert await exact(exporter) == 1
        await add_partitions(kafka, names.impressions, PARTITIONS + 1)

        async def is_named() -> bool:
            await exporter.refresh()
            text = f"partition 2 of topic {names.impressions} is not read: the state has 2"
            return exporter.health.is_ready and text in str(exporter.health.warnings)

        await until(is_named, "it is named, and all others are ready", made.said)
        await produce(kafka, names, spread(100, 200))
        await until(lambda: has_counted(made, 400), "they go on", made.said)
        assert await exact(exporter) == 0
        await made.stop_workers()
        made.start_worker()  # as after a crash
        await produce(kafka, names, [*spread(200, 300), *_on(2, impressions(0, 10))])
        await until(lambda: has_counted(made, 600), "after a restart, too", made.said)
        await until(is_named, "and it is named again", made.said)
        await made.stop_workers()


def _on(partition: int, records: list[LogRecord]) -> list[LogRecord]:
    return [replace(record, partition=partition) for record in records]


@pytest.mark.timeout(LIMIT_SECONDS)
@long
async def test_a_topic_that_is_gone_is_named_and_counted_once_it_is_back(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        exporter = Exporter(made.settings, made.store)
        made.start_worker()
        await produce(kafka, names, spread(0, 100))
        await until(lambda: has_counted(made, 200), "the first are counted", made.said)
        await delete_topics(kafka, [names.sessions])

        async def is_named() -> bool:
            await exporter.refresh()
            text = f"topic {names.sessions} is not read: it does not exist"
            return exporter.health.is_ready and text in str(exporter.health.warnings)

        await until(is_named, "it is named, and all others are ready", made.said)
        await produce(kafka, names, spread(100, 200))
        await until(lambda: has_counted(made, 400), "they go on", made.said)
        assert await exact(exporter) == 0
        await create_topics(kafka, [names.sessions], PARTITIONS)

        async def is_over() -> bool:
            await exporter.refresh()
            return exporter.health.is_ready and not exporter.health.warnings

        await until(is_over, "it is read again", made.said)
        visit = b'{"ts": 1700000100000, "user_id": "u1", "session_id": "s", "action": "end"}'
        record = LogRecord("sessions", 0, 0, 1_700_000_100_000, visit)
        await produce(kafka, names, [record])
        await until(lambda: has_counted(made, 1, "sessions"), "and counted", made.said)
        await made.stop_workers()


SOURCE: dict[str, Any] = {"kind": {"fixed": "impression"}, "fields": own_names()}


@pytest.mark.parametrize("is_running", [False, pytest.param(True, marks=long)])
@pytest.mark.timeout(LIMIT_SECONDS)
@long
async def test_a_topic_of_a_pattern_with_other_partitions_is_left_out(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    is_running: bool,
) -> None:
    base = topics(partitions=PARTITIONS).impressions
    first, other = f"{base}-web-a", f"{base}-web-b"
    await create_topics(kafka, [first], PARTITIONS)
    more = {"sources": [SOURCE | {"topics": [f"^{base}-web-"]}]}
    document = document_of(kafka, Topics(), redis_url, redis_prefix, more)
    as_kinds = Topics(impressions=first)
    async with bench(tmp_path, document) as made:
        made.start_worker()
        await produce(kafka, as_kinds, spread(0, 100))
        await until(lambda: has_counted(made, 200, first), "the first are counted", made.said)
        if not is_running:
            await made.stop_workers()
        await create_topics(kafka, [other], PARTITIONS + 1)
        if not is_running:
            made.start_worker()

        exporter = Exporter((await resolve(made.settings))[0], made.store)

        async def is_named() -> bool:
            await exporter.refresh()
            text = f"topic {other} of a pattern is not read: it has 3 partitions, the others have 2"
            return exporter.health.is_ready and text in str(exporter.health.warnings)

        await until(is_named, "it is named", made.said, 60)
        await produce(kafka, as_kinds, spread(100, 200))
        await until(lambda: has_counted(made, 400, first), "the first one goes on", made.said)
        await made.stop_workers()
    await delete_topics(kafka, [first, other])
