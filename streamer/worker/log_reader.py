"""The log between two times, read again: by consumers without a group, which commit nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition

from streamer.encoding.schema_ids import id_text
from streamer.errors import BrokerError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.ingest.sampling import connected, position_of
from streamer.kafka.chunk import chunk_of
from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings
from streamer.state.partition import Partition
from streamer.worker.schemas import SchemaLookup, make_known

_AHEAD_MS = 600_000
"""A topic is not read further than this beyond the others: what waits for them takes memory."""
_RECORDS = 50_000
"""Of one fetch."""
_SILENT_SECONDS = 10.0
"""Without any record before the ends, after which reading is given up."""


class _Reader(NamedTuple):
    """A log in one partition: a consumer of it alone, and the offset at which reading ends."""

    consumer: Any
    tp: TopicPartition
    end: int


class LogReader:
    """Reads the topics of the settings, one partition number after the other."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._schemas = SchemaLookup(settings)

    @contextlib.asynccontextmanager
    async def _consumers(self) -> AsyncIterator[dict[str, Any]]:
        """Log → a consumer of its cluster."""
        async with contextlib.AsyncExitStack() as stack:
            found = dict[str, Any]()
            for cluster in self.settings.read_clusters:
                for log in self.settings.logs_in(cluster):
                    found[log.name] = await stack.enter_async_context(connected(cluster))
            yield found

    async def retained_ms(self, partitions: int) -> int:
        """What is older has left a topic of impressions; 0 where nothing has."""
        latest_ms = 0
        async with self._consumers() as consumers:
            for name, consumer in consumers.items():
                log = self.settings.logs[name]
                if "impressions" in log.kinds:
                    tps = [TopicPartition(log.plain, number) for number in range(partitions)]
                    first = await consumer.offsets_for_times(dict.fromkeys(tps, 0))
                    times = [at.timestamp for at in first.values() if at is not None and at.offset]
                    latest_ms = max(latest_ms, *times, 0)
        return latest_ms

    async def read(
        self, catalogue: Catalogue, number: int, begin_ms: int, end_ms: int
    ) -> Partition:
        """A partition that was fed the records of one number that are stamped between two times."""
        partition = Partition(self.settings, catalogue, FIXED_KEY)
        async with self._consumers() as consumers:
            readers = dict[str, _Reader]()
            for name, consumer in consumers.items():
                tp = TopicPartition(self.settings.logs[name].plain, number)
                first, end = await _bounds(consumer, tp, begin_ms, end_ms)
                if first < end:
                    consumer.assign([tp])
                    consumer.seek(tp, first)
                    partition.core.seek(name, first)
                    readers[name] = _Reader(consumer, tp, end)
            await self._read(partition, readers, dict.fromkeys(readers, begin_ms))
        partition.apply((), at_end=list(partition.logs))
        return partition

    async def _read(
        self, partition: Partition, readers: Mapping[str, _Reader], unread: dict[str, int]
    ) -> None:
        """``unread``: log that is not read to its end → the timestamp up to which it is."""
        deadline = time.monotonic() + _SILENT_SECONDS
        while unread:
            if time.monotonic() > deadline:
                names = ", ".join(sorted(readers[name].tp.topic for name in unread))
                raise BrokerError(f"cannot read the topics: {names} sent nothing for some seconds")
            newest_ms = min(unread.values()) + _AHEAD_MS
            for name in [name for name, at_ms in unread.items() if at_ms <= newest_ms]:
                consumer, tp, end = readers[name]
                fetched = await consumer.getmany(tp, timeout_ms=500, max_records=_RECORDS)
                if records := [r for r in fetched.get(tp, ()) if r.offset < end]:
                    unread[name] = max(unread[name], records[-1].timestamp)
                    await self._feed(partition, tp, name, records)
                    deadline = time.monotonic() + _SILENT_SECONDS
                if await position_of(consumer, tp) >= end:
                    del unread[name]

    async def _feed(
        self, partition: Partition, tp: TopicPartition, log: str, records: list[Any]
    ) -> None:
        content = chunk_of(tp.topic, tp.partition, 0, log, records).content
        while True:
            applied = partition.apply([content], wall_ms=time.time_ns() // 1_000_000)
            if applied.unknown_schemas is None:
                return
            _, ids = applied.unknown_schemas
            found = await self._schemas.answers(log, ids)
            if ids[0] in found.waits:
                raise BrokerError(f"schema {id_text(ids[0])} of {log}: {found.waits[ids[0]]}")
            await make_known(partition.set_schema, log, found.schemas, self._schemas.refused)


async def _bounds(consumer: Any, tp: TopicPartition, begin_ms: int, end_ms: int) -> tuple[int, int]:
    """The first offset of records stamped from a time on, and that of the first from another on."""
    last = (await consumer.end_offsets([tp]))[tp]
    found = [await consumer.offsets_for_times({tp: ms}) for ms in (begin_ms, end_ms)]
    first, end = (last if at[tp] is None else at[tp].offset for at in found)
    return first, end
