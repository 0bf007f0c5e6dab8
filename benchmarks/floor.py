"""The floor: one process that only fetches, decodes and counts, with plain aiokafka and the same
settings of Python's garbage collector as a worker.

python -m benchmarks.floor --brokers localhost:9092 --events 1000000
"""

from __future__ import annotations

import argparse
import asyncio

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.event import Event
from benchmarks.measure import TOPICS, Meter, parser
from streamer.errors import BrokerError
from streamer.worker.interpreter import calm

FETCH_RECORDS = 10_000
IDLE_MS = 10_000
"""A backlog that gives nothing for so long has no more."""


async def count(arguments: argparse.Namespace) -> None:
    """Read the backlog from its start until so many events were decoded."""
    decoder = msgspec.json.Decoder(Event)
    topics = [kind + arguments.suffix for kind in TOPICS]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=arguments.brokers,
        isolation_level="read_committed",
        max_partition_fetch_bytes=4 << 20,
    )
    await consumer.start()
    try:
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in await _partitions(consumer, topic)
        ]
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        meter, events, broken = Meter(), 0, 0
        calm()
        while events < arguments.events:
            fetched = await consumer.getmany(timeout_ms=IDLE_MS, max_records=FETCH_RECORDS)
            if not fetched:
                raise BrokerError(f"only {events} events in the topics, not {arguments.events}")
            meter.start()
            for records in fetched.values():
                for record in records:
                    try:
                        decoder.decode(record.value)
                    except msgspec.MsgspecError:
                        broken += 1
                events += len(records)
        meter.report(events)
    finally:
        await consumer.stop()


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    await consumer._client.force_metadata_update()
    return consumer.partitions_for_topic(topic) or set()


if __name__ == "__main__":
    asyncio.run(count(parser(__doc__).parse_args()))
