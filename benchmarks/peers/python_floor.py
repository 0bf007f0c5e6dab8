"""The floor in Python: aiokafka fetches, msgspec decodes into typed structs, and that is all."""

from __future__ import annotations

import asyncio
import gc

import msgspec
import redis
from aiokafka import AIOKafkaConsumer

from benchmarks.peers import job


class Event(msgspec.Struct, gc=False):
    """All fields of the log."""

    type: str
    ts: int
    event_id: str
    user_id: str
    variant: str
    surface: str
    request_id: str | None = None
    item_id: str | None = None
    position: int | None = None
    score: float | None = None
    propensity: float | None = None
    dwell_ms: int | None = None
    value: float | None = None
    session_id: str | None = None
    action: str | None = None


async def main() -> None:
    """Read until all events were decoded."""
    arguments = job.parser().parse_args()
    consumer = AIOKafkaConsumer(
        *(topic + arguments.suffix for topic in job.TOPICS),
        bootstrap_servers=arguments.brokers,
        group_id=arguments.prefix,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4 << 20,
    )
    decode = msgspec.json.Decoder(Event).decode
    await consumer.start()
    gc.freeze()
    gc.disable()  # structs without cycles
    left = arguments.events
    while left:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
            for record in records:
                decode(record.value)
            left -= len(records)
    redis.Redis.from_url(arguments.redis).set(f"{arguments.prefix}:done", arguments.events)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
