"""Fill Kafka with synthetic events, fast: whole batches, partitioned by user.

python -m benchmarks.backlog --brokers localhost:9092 --events 1000000 --partitions 4
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

from benchmarks.measure import parser
from streamer.settings.model import Topics
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.testing.embedded import create_topics

BATCH_BYTES = 256 * 1024
IN_FLIGHT = 64


class Head(msgspec.Struct):
    """What the producer has to know of an event."""

    ts: int
    user_id: str


NO_HEAD = Head(0, "")


class Filler:
    """Appends events to a batch for each (topic, partition) and sends the full ones.

    Record timestamps are those of a replayed file: the largest event time so far. A user has the
    same partition number in every topic.
    """

    def __init__(self, producer: AIOKafkaProducer, partitions: int, suffix: str) -> None:
        self._producer, self._partitions, self._suffix = producer, partitions, suffix
        self._decode = msgspec.json.Decoder(Head).decode
        self._batches: dict[tuple[str, int], Any] = {}
        self._sent: list[asyncio.Future[object]] = []
        self._arrival_ms = 0
        self.counts: dict[str, int] = {}
        self.bytes = 0

    async def add(self, kind: str, value: bytes) -> None:
        """One event."""
        head = self._head(value)
        key = head.user_id.encode()
        place = (kind + self._suffix, zlib.crc32(key) % self._partitions)
        self._arrival_ms = max(self._arrival_ms, head.ts)
        while True:
            batch = self._batches.get(place)
            if batch is None:
                batch = self._batches[place] = self._producer.create_batch()
            if batch.append(key=key, value=value, timestamp=self._arrival_ms):
                break
            await self._send(place)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.bytes += len(value)

    def _head(self, value: bytes) -> Head:
        try:
            return self._decode(value)
        except msgspec.MsgspecError:  # broken on purpose
            return NO_HEAD

    async def _send(self, place: tuple[str, int]) -> None:
        batch = self._batches.pop(place)
        self._sent.append(await self._producer.send_batch(batch, place[0], partition=place[1]))
        if len(self._sent) >= IN_FLIGHT:
            await asyncio.gather(*self._sent)
            self._sent.clear()

    async def flush(self) -> None:
        """Send what is left and wait for all answers."""
        for place in list(self._batches):
            await self._send(place)
        await asyncio.gather(*self._sent)


async def fill(
    brokers: str,
    events: Iterable[tuple[str, bytes]],
    partitions: int,
    suffix: str = "",
    compression: str | None = None,
) -> Filler:
    """Create the five topics (name = kind + suffix) and produce all events into them."""
    names = [name + suffix for name in Topics.__struct_fields__]
    await create_topics(brokers, names, partitions)
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers,
        compression_type=compression,
        max_batch_size=BATCH_BYTES,
    )
    await producer.start()
    try:
        filler = Filler(producer, partitions, suffix)
        for kind, value in events:
            await filler.add(kind, value)
        await filler.flush()
    finally:
        await producer.stop()
    return filler


async def main(arguments: argparse.Namespace) -> None:
    """Fill and print what was produced."""
    traffic = SyntheticTraffic(**json.loads(arguments.traffic))
    start_s = time.perf_counter()
    done = await fill(
        arguments.brokers,
        generate(traffic, arguments.events),
        arguments.partitions,
        arguments.suffix,
        arguments.compression,
    )
    result = {
        "events": sum(done.counts.values()),
        "counts": done.counts,
        "mean_bytes": round(done.bytes / max(1, sum(done.counts.values())), 1),
        "seconds": round(time.perf_counter() - start_s, 3),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    arguments = parser(__doc__)
    arguments.add_argument("--partitions", type=int, default=4)
    arguments.add_argument("--compression", choices=["gzip", "snappy", "lz4", "zstd"])
    arguments.add_argument("--traffic", default="{}", help="fields of SyntheticTraffic, as JSON")
    asyncio.run(main(arguments.parse_args()))
