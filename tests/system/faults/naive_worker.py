"""A worker as one would write it first: increments in Redis, then a commit to Kafka.

``python -m tests.system.faults.naive_worker BROKERS GROUP REDIS_URL KEY TOPIC…``
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError
from redis.asyncio import Redis

_BETWEEN_SECONDS = 0.2
"""What else such a worker does before it commits; many commit every few seconds only."""


async def count(brokers: str, group: str, redis_url: str, key: str, *topics: str) -> None:
    """Count records by topic in the hash ``key``, for ever."""
    consumer = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=brokers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=3000,
        heartbeat_interval_ms=500,
        isolation_level="read_committed",
    )
    redis = Redis.from_url(redis_url)
    await consumer.start()
    while True:
        batches = await consumer.getmany(timeout_ms=200, max_records=200)
        for tp, records in batches.items():
            for _ in records:
                await redis.hincrby(key, tp.topic, 1)
        if batches:
            await asyncio.sleep(_BETWEEN_SECONDS)
            with suppress(CommitFailedError):  # others have the partitions now: they read again
                await consumer.commit()


if __name__ == "__main__":
    asyncio.run(count(*sys.argv[1:]))
