"""The consumer of another cluster, and questions where it is away."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.kafka.chunk import Chunk
from streamer.kafka.fingerprints import fingerprint_of
from streamer.kafka.other_cluster import OtherCluster
from streamer.kafka.topics import partition_count, partitions_and_ids
from streamer.settings.load import parse
from streamer.settings.model import Settings, Topics
from tests.support.fixtures import MakeTopics
from tests.support.scripted import until

AWAY = "127.0.0.1:1"


def settings_of(names: Topics, main: str, other: str) -> Settings:
    fields = {"ts": "at", "item_id": "item"}
    shown = {"topics": [names.impressions], "kind": {"fixed": "impression"}, "fields": fields}
    clicked = {"topics": [names.clicks], "kind": {"fixed": "click"}, "fields": fields}
    return parse(
        {
            "kafka": {"brokers": main},
            "clusters": {"eu": {"brokers": other}},
            "sources": [shown, clicked | {"cluster": "eu"}],
        }
    )


async def test_it_gives_chunks_by_full_names_and_only_what_is_asked_for(
    kafka: str, topics: MakeTopics
) -> None:
    names = topics(partitions=2)
    settings, offered = settings_of(names, AWAY, kafka), list[Chunk]()
    first, second = (TopicPartition(f"{names.clicks}@eu", number) for number in range(2))
    producer = AIOKafkaProducer(bootstrap_servers=kafka)
    other = OtherCluster(settings, settings.read_clusters[1], offered.append)
    await producer.start()
    other.start()
    try:
        for number in (0, 1, 0):
            await producer.send_and_wait(names.clicks, b"x", partition=number, timestamp_ms=5)
        other.assign([0, 1])
        while True:
            try:
                assert await other.bounds([first, second]) == {first: (0, 2), second: (0, 1)}
                break
            except BrokerError:  # it has not connected yet
                await asyncio.sleep(0.05)
        assert await other.records_at({first: 1}) == {first: fingerprint_of(1, 5, b"x")}
        await other.start_at({first: 1, second: 0}, 7)
        other.resume([first])
        await until(lambda: offered, "fetched")
        (chunk,) = offered
        assert (chunk.topic, chunk.partition, chunk.log) == (*first, f"{names.clicks}@eu")
        assert (chunk.epoch, chunk.end_offset) == (7, 2)
        other.resume([second])
        await until(lambda: len(offered) == 2, "fetched, too")
        other.pause([second])
        began, progress = time.monotonic(), await other.progress()
        while progress[first].asked_at < began or progress[first].behind != 0:
            await asyncio.sleep(0.05)
            progress = await other.progress()
        assert progress[first][:3] == (2, 0, 2)
        other.assign([1])
        assert other.is_assigned([second])
        assert not other.is_assigned([first])
        other.assign([])
        assert await other.progress() == {}
    finally:
        await other.stop()
        await producer.stop()


async def test_partitions_are_counted_where_another_cluster_is_away(
    kafka: str, topics: MakeTopics
) -> None:
    settings, away = settings_of(topics(partitions=2), kafka, AWAY), list[BrokerError]()
    with pytest.raises(BrokerError, match=f"at clusters.eu.brokers {AWAY}"):
        await partition_count(settings)
    assert (await partitions_and_ids(settings, when_away=away.append))[0] == 2
    assert len(away) == 1
    with pytest.raises(BrokerError, match=f"at kafka.brokers {AWAY}"):
        await partitions_and_ids(settings_of(Topics(), AWAY, kafka), when_away=away.append)
