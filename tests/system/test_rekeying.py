"""``streamer rekey`` on real Kafka: whatever is killed, each event is written once, and users are
counted right where they could not be before."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streamer._core import partition_of
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Settings, Topics
from streamer.state.snapshot import view_of
from streamer.testing.embedded import create_topics, delete_topics
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import Worker, as_toml, until

SOURCE_PARTITIONS, PARTITIONS = 3, 4
USERS = 150
DAY_MS = 86_400_000
KINDS = {"shown": "impressions", "clicked": "clicks"}
Event = dict[str, Any]


@asynccontextmanager
async def source_topic(brokers: str) -> AsyncIterator[str]:
    name = f"web-{uuid.uuid4().hex[:8]}"
    await create_topics(brokers, [name], SOURCE_PARTITIONS)
    yield name
    await delete_topics(brokers, [name])


def document_of(brokers: str, source: str, names: Topics, group: str) -> Event:
    topics = names.named
    kind = {"field": "event", "impression": ["shown"], "click": ["clicked"], "ignored": ["page"]}
    fields = {"user_id": "who.id", "ts": "at", "item_id": "what.sku", "event_id": "who.nothing"}
    return {
        "kafka": {"brokers": brokers, "group": group, "rekeyed": True, "topics": topics},
        "sources": [{"topics": [source], "kind": kind, "fields": fields}],
    }


def events(count: int) -> list[Event]:
    """Nested events, some to be ignored, some broken."""
    dice, now_ms = Random(5), int(time.time() * 1000)
    made = []
    for number in range(count):
        what = dice.choices(["shown", "clicked", "page", "broken"], [80, 15, 3, 2])[0]
        event: Event = {"event": what, "at": now_ms + number, "number": number}
        event["who"] = {"id": f"u{dice.randrange(USERS)}"}
        event["what"] = {"sku": f"i{dice.randrange(40)}"}
        made.append(event)
    return made


async def produce(brokers: str, topic: str, some: Iterable[Event], rate: float | None) -> None:
    """Send events, keyed by item; at so many a second."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=2)
    await producer.start()
    try:
        sent = []
        for number, event in enumerate(some):
            key = event["what"]["sku"].encode()
            value = json.dumps(event).encode()
            sent.append(await producer.send(topic, value, key=key, timestamp_ms=event["at"]))
            if rate is not None and number % 10 == 0:
                await asyncio.sleep(10 / rate)
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def committed(brokers: str, topic: str, partitions: int) -> list[Any]:
    """All committed records of a topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, isolation_level="read_committed")
    await consumer.start()
    try:
        tps = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(tps)
        await consumer.seek_to_beginning(*tps)
        ends, found = await consumer.end_offsets(tps), list[Any]()
        while [tp for tp in tps if await consumer.position(tp) < ends[tp]]:
            for some in (await consumer.getmany(timeout_ms=200)).values():
                found += some
        return found
    finally:
        await consumer.stop()


async def log_of(brokers: str, topic: str, log: str, partitions: int) -> list[LogRecord]:
    records = await committed(brokers, topic, partitions)
    return [LogRecord(log, r.partition, r.offset, r.timestamp, r.value) for r in records]


def users_of(settings: Settings, log: list[LogRecord], partitions: int) -> float:
    """How many users the longest window has."""
    engines = Engines(settings, partitions)
    for chunk in chunks_of(log, 500):
        engines.feed(chunk)
    engines.finish()
    for partition in engines.partitions:
        partition.refresh_user_sums()
    views = [view_of(partition) for partition in engines.partitions]
    found = readout(settings, engines.catalogue, views).readings
    (users,) = [
        r.value
        for r in found
        if r.name == "streamer_window_users"
        and r.labels["window"] == "24h"
        and all(r.labels[name] == "all" for name in settings.dimension_names)
    ]
    return users


async def storm(start: Any, kills: int, seed: int) -> list[Worker]:
    """Two instances, killed so many times at random, each replaced at once."""
    dice = Random(seed)
    running = [start(), start()]
    await asyncio.sleep(3)
    for _ in range(kills):
        await asyncio.sleep(dice.uniform(0.2, 2.5))
        at = dice.randrange(2)
        running[at].kill()
        running[at] = start()
    return running


@pytest.mark.parametrize(("kills", "count"), shortened([(2, 4000), (20, 40_000)]))
@long
async def test_kills_lose_and_double_nothing(
    apache_kafka: str, topics: MakeTopics, tmp_path: Path, kills: int, count: int
) -> None:
    brokers, names = apache_kafka, topics(partitions=PARTITIONS)
    made = events(count)
    async with source_topic(brokers) as source:
        document = document_of(brokers, source, names, f"group-{source}")
        config = tmp_path / "streamer.toml"
        config.write_text(as_toml(document))
        command = [sys.executable, "-m", "streamer", "rekey", "-c", str(config)]
        workers: list[Worker] = []

        def start() -> Worker:
            workers.append(Worker(config, tmp_path / f"{len(workers)}.log", command))
            return workers[-1]

        try:
            await produce(brokers, source, made[: count // 4], None)
            rate = count / (2 * (3 + 1.2 * kills))
            async with asyncio.TaskGroup() as group:
                group.create_task(produce(brokers, source, made[count // 4 :], rate))
                raging = group.create_task(storm(start, kills, seed=count))
            await check_all(brokers, source, names, made, workers)
            for worker in raging.result():
                await worker.stop()
        finally:
            for worker in workers:
                worker.kill()
        await check_all(brokers, source, names, made, workers)
        await check_users(brokers, source, names, document, made)


async def check_all(
    brokers: str, source: str, names: Topics, made: list[Event], workers: list[Worker]
) -> None:
    """Wait until as much is written as there is, and compare it, record by record."""
    sent = {(r.partition, r.offset): r for r in await committed(brokers, source, SOURCE_PARTITIONS)}
    assert len(sent) == len(made)
    expected: dict[str, dict[str, Any]] = {"impressions": {}, "clicks": {}, "dead_letters": {}}
    for (partition, offset), record in sent.items():
        event = json.loads(record.value)
        kind = KINDS.get(event["event"], "dead_letters")
        if event["event"] != "page":
            expected[kind][f"{source}/{partition}/{offset}"] = (record.timestamp, event)

    async def found() -> dict[str, list[Any]] | None:
        some = {k: await committed(brokers, getattr(names, k), PARTITIONS) for k in expected}
        is_all = all(len(some[k]) >= len(expected[k]) for k in expected)
        return some if is_all else None

    def said() -> str:
        return "\n".join(worker.said() for worker in workers)

    written = await until(found, "everything is written", said, seconds=90)
    for record in written["dead_letters"]:
        headers = dict(record.headers)
        assert headers["streamer.reason"] == b"kind"
        assert headers["streamer.topic"] == source.encode()
    ids = [record.key.decode() for record in written["dead_letters"]]
    assert sorted(ids) == sorted(expected["dead_letters"])
    for kind in ("impressions", "clicks"):
        events_of = [(r, json.loads(r.value)) for r in written[kind]]
        assert sorted(e["event_id"] for _, e in events_of) == sorted(expected[kind]), said()
        for record, event in events_of:
            ms, original = expected[kind][event["event_id"]]
            user = original["who"]["id"]
            assert (record.timestamp, record.key) == (ms, user.encode())
            assert record.partition == partition_of(user.encode(), PARTITIONS)
            assert (event["user_id"], event["ts"]) == (user, original["at"])
            assert event["item_id"] == original["what"]["sku"]


async def check_users(
    brokers: str, source: str, names: Topics, document: Event, made: list[Event]
) -> None:
    """Users are counted right from the rekeyed topics, and wrong from the source itself."""
    users = len({e["who"]["id"] for e in made if e["event"] == "shown"})
    settings = parse(document)
    log = await log_of(brokers, names.impressions, "impressions", PARTITIONS)
    log += await log_of(brokers, names.clicks, "clicks", PARTITIONS)
    assert users_of(settings, log, PARTITIONS) == users
    document["kafka"]["rekeyed"] = False
    log = await log_of(brokers, source, source, SOURCE_PARTITIONS)
    assert users_of(parse(document), log, SOURCE_PARTITIONS) > 2 * users


@long
async def test_until_end_writes_what_there_is(
    apache_kafka: str, topics: MakeTopics, tmp_path: Path
) -> None:
    brokers, names, made = apache_kafka, topics(partitions=PARTITIONS), events(500)
    async with source_topic(brokers) as source:
        config = tmp_path / "streamer.toml"
        config.write_text(as_toml(document_of(brokers, source, names, f"group-{source}")))
        command = [sys.executable, "-m", "streamer", "rekey", "-c", str(config), "--until-end"]
        await produce(brokers, source, made, None)
        for _ in range(2):  # the second time there is nothing more
            worker = Worker(config, tmp_path / "rekey.log", command)
            assert await asyncio.to_thread(worker.process.wait, 40) == 0, worker.said()
            await check_all(brokers, source, names, made, [worker])
        assert " 0 events written" in worker.said()


@long
async def test_instances_wait_for_each_other(
    apache_kafka: str, topics: MakeTopics, tmp_path: Path
) -> None:
    """A backlog of days: whatever partition is read first, no event comes late."""
    brokers, names, made = apache_kafka, topics(partitions=PARTITIONS), events(800)
    for event in made:
        event["at"] += event["number"] * 60_000 - 5 * DAY_MS
        if event["number"] > 600:  # a day in which nothing happened
            event["at"] += DAY_MS
    async with source_topic(brokers) as source:
        config = tmp_path / "streamer.toml"
        config.write_text(as_toml(document_of(brokers, source, names, f"group-{source}")))
        command = [sys.executable, "-m", "streamer", "rekey", "-c", str(config)]
        workers = [Worker(config, tmp_path / f"{n}.log", command) for n in range(2)]
        try:
            await asyncio.sleep(5)  # both have joined
            await produce(brokers, source, made, None)
            await check_all(brokers, source, names, made, workers)
            newest, behind_ms = dict[int, int](), 0
            for record in await committed(brokers, names.impressions, PARTITIONS):
                most = newest[record.partition] = max(
                    newest.get(record.partition, 0), record.timestamp
                )
                behind_ms = max(behind_ms, most - record.timestamp)
            assert behind_ms < parse({}).time.max_lateness_ms
            for worker in workers:
                await worker.stop()
                assert " 0 events written" not in worker.said()
        finally:
            for worker in workers:
                worker.kill()
