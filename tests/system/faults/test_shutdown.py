"""A worker that is stopped while neither Kafka nor Redis is there."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from streamer.settings.model import Topics
from streamer.testing.embedded import create_topics
from tests.support.fixtures import MakeRedis
from tests.support.lanes import long
from tests.support.required import require
from tests.support.servers import KafkaServer
from tests.support.workers import bench, document_of, produce, until
from tests.system.faults.test_kafka import impressions

PARTITIONS = 2


@long
@pytest.mark.timeout(150)
async def test_a_worker_stops_soon_without_kafka_and_redis(
    make_redis: MakeRedis, tmp_path: Path
) -> None:
    require("Apache Kafka")
    redis, names = make_redis(), Topics()
    with KafkaServer() as kafka:
        await create_topics(kafka.brokers, list(names.named.values()), PARTITIONS)
        document = document_of(kafka.brokers, names, redis.url, "shutdown", {})
        async with bench(tmp_path, document) as made:
            worker = made.start_worker()
            await produce(kafka.brokers, names, impressions(0, 100))

            async def has_counted() -> bool:
                await made.reader.refresh()
                found = made.reader.manifests.values()
                return sum(m.topics["impressions"].counters["accepted"] for m in found) == 100

            await until(has_counted, "all are counted", made.said)
            await produce(kafka.brokers, names, impressions(100, 200))
            await asyncio.to_thread(kafka.kill)
            redis.kill()
            await asyncio.sleep(3)
            before = len(worker.said())
            began = time.monotonic()
            worker.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(worker.process.wait, 120)
            took = time.monotonic() - began
            worker.was_killed = True
            said = worker.said()[before:]
            assert took < 15, (took, said)
            assert "Traceback" not in worker.said(), worker.said()
            lines = [line for line in said.splitlines() if line.startswith("[20")]
            assert len(lines) <= 1, said
