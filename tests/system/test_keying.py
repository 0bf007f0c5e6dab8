"""A running system finds topics that are not keyed by user, and does not count users then."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from random import Random

import pytest
from aiokafka import AIOKafkaProducer

from streamer.errors import StreamerError
from streamer.ingest.keying import require_users
from streamer.server.exporter import Exporter
from streamer.settings.model import Topics
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import bench, document_of, until

PARTITIONS = 4


async def produce(brokers: str, topics: Topics, key: str) -> None:
    """Impressions and clicks of 200 users; the impressions keyed by a field of theirs."""
    dice = Random(1)
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    try:
        for number in range(2000):
            event = {
                "ts": int(time.time() * 1000),
                "user_id": f"u{dice.randrange(200)}",
                "item_id": f"i{dice.randrange(50)}",
            }
            kind, by = ("clicks", "user_id") if number % 10 == 0 else ("impressions", key)
            topic = getattr(topics, kind)
            await producer.send(topic, json.dumps(event).encode(), key=str(event[by]).encode())
    finally:
        await producer.stop()


@long
@pytest.mark.parametrize("key", ["item_id", "user_id"])
async def test_users_are_counted_where_topics_are_keyed_by_them(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, key: str
) -> None:
    names = topics(partitions=PARTITIONS)
    await produce(kafka, names, key)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker(
            [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
        )
        exporter = Exporter(made.settings, made.store)

        async def is_known() -> bool:
            result = await exporter.read()
            total = [r.value for r in result.readings if r.name == "streamer_impressions_total"]
            behind = [m.users_behind_ms for m in exporter.reader.manifests.values()]
            return bool(exporter.reader.keyed) and total[:1] == [1800] and not any(behind)

        await until(is_known, "all is counted, and the keys were looked at", made.said)
        readings = {
            (r.name, r.labels.get("topic")): r.value
            for r in (await exporter.read()).readings
            if r.labels.get("variant", "all") == "all"
        }
        is_by_user = key == "user_id"
        assert exporter.reader.keyed == {"impressions": is_by_user, "clicks": True}
        assert readings["streamer_identity_exact", None] == is_by_user
        assert ("streamer_ctr_ratio", None) in readings
        assert (("streamer_window_users", None) in readings) is is_by_user
        if is_by_user:
            require_users(made.settings, exporter.reader.keyed)
        else:
            with pytest.raises(StreamerError, match="not keyed by user"):
                require_users(made.settings, exporter.reader.keyed)
        await worker.stop()
        assert ("metrics of users are off: not keyed by user" in worker.said()) is not is_by_user
