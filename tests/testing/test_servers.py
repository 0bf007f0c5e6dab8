"""The servers that the other integration tests rely on do what they are trusted with."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import redis
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streamer.errors import BrokerError
from streamer.testing import embedded
from streamer.testing.embedded import EmbeddedBroker, EmbeddedRedis, create_topics
from tests.support.fixtures import MakeRedis, MakeTopics

COMPRESSIONS = [None, "gzip", "snappy", "lz4", "zstd"]
EVENT_MS = 1_574_000_000_000
ANSWER_SECONDS = 20


async def send(brokers: str, topic: str, compression: str | None) -> list[int]:
    """Ten records, one batch, into partition 1; their offsets."""
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers, compression_type=compression, linger_ms=50
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic, b"value %d" % i, key=b"key", partition=1, timestamp_ms=EVENT_MS + i
            )
            for i in range(10)
        ]
        return [(await one).offset for one in sent]
    finally:
        await producer.stop()


async def receive(brokers: str, topic: str, count: int) -> tuple[list[Any], int]:
    """The first ``count`` records of partition 1, and its high watermark."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, isolation_level="read_committed")
    await consumer.start()
    try:
        partition = TopicPartition(topic, 1)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        records = [await consumer.getone(partition) for _ in range(count)]
        return records, consumer.highwater(partition)
    finally:
        await consumer.stop()


async def check_round_trip(brokers: str, topic: str, compression: str | None) -> None:
    assert await send(brokers, topic, compression) == list(range(10))
    async with asyncio.timeout(ANSWER_SECONDS):
        records, end = await receive(brokers, topic, 10)
    assert [record.value for record in records] == [b"value %d" % i for i in range(10)]
    assert [record.timestamp for record in records] == [EVENT_MS + i for i in range(10)]
    assert {record.key for record in records} == {b"key"}
    assert end == 10


@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_kafka_gives_back_what_it_was_sent(
    kafka: str, topics: MakeTopics, compression: str | None
) -> None:
    await check_round_trip(kafka, topics(partitions=2).clicks, compression)


async def test_the_embedded_broker_gives_back_what_it_was_sent() -> None:
    with EmbeddedBroker() as broker:
        names = [f"topic-{compression}" for compression in COMPRESSIONS]
        await create_topics(broker.brokers, names, 2)
        await create_topics(broker.brokers, names, 2)  # they exist: left as they are
        for name, compression in zip(names, COMPRESSIONS, strict=True):
            await check_round_trip(broker.brokers, name, compression)


async def test_topics_have_the_wanted_partitions(kafka: str, topics: MakeTopics) -> None:
    made = topics(partitions=3)
    names = list(made.named.values())
    assert len(set(names)) == 6
    consumer = AIOKafkaConsumer(*names, bootstrap_servers=kafka)
    await consumer.start()
    try:
        assert [consumer.partitions_for_topic(name) for name in names] == [{0, 1, 2}] * 6
    finally:
        await consumer.stop()


def test_redis_answers_and_is_new_enough(redis_url: str, redis_prefix: str) -> None:
    with contextlib.closing(redis.from_url(redis_url)) as client:
        client.set(f"{redis_prefix}:{{7}}:key", 1)
        assert client.get(f"{redis_prefix}:{{7}}:key") == b"1"
        assert int(client.info("server")["redis_version"].split(".")[0]) >= 7


def test_an_own_redis_survives_a_crash_with_its_file(make_redis: MakeRedis) -> None:
    server = make_redis(appendonly=True, options={"appendfsync": "always"})
    with contextlib.closing(redis.from_url(server.url)) as client:
        client.set("key", "value")
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    server.kill()
    server.start()
    with contextlib.closing(redis.from_url(server.url)) as client:
        assert client.get("key") == b"value"


def test_an_unknown_broker_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "BROKER_SHA256", frozenset())
    with pytest.raises(BrokerError, match="is not the one that was tried"):
        EmbeddedBroker()


def test_nothing_is_written_to_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with EmbeddedBroker() as broker, EmbeddedRedis():
        asyncio.run(create_topics(broker.brokers, ["topic"], 1))
        directory = broker.directory
    assert not list(tmp_path.iterdir())
    assert not directory.exists()
