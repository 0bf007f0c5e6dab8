"""One partition of a source while it is rekeyed: what was fetched of it, and its transactions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from streamer.ingest.dead_letters import DeadLetter, Parcel
from streamer.ingest.record import rekeyer
from streamer.ingest.rejections import Explainer
from streamer.kafka.chunk import Batches, Chunk
from streamer.kafka.client import client_settings
from streamer.kafka.filled_batches import Row, errors_of, filled_batches, sent
from streamer.kafka.registry import SchemaText
from streamer.settings import limits
from streamer.settings.event_fields import ALL_KINDS
from streamer.settings.model import Settings
from streamer.worker.schemas import Answers, SchemaLookup, make_known

logger = logging.getLogger("streamer")

BATCH_BYTES = 512 * 1024
"""Of a record batch that is written; brokers take 1 MB by default."""
_CLOSE_SECONDS = 10.0
_ASK_SECONDS = 0.05
_Written = tuple[int, int, list[tuple[int, bytes | None, bytes]]]
_Rejected = tuple[str, int, int, str, bytes | None, bytes | None, bytes]


class RekeyedPartition:
    """Rewrites one topic-partition and writes the outcome, with the offset up to which it was read,
    in transactions of a producer that only this partition has.

    ``settings``: with the sources as logs; ``partitions``: of each target; ``letters``: of the
    dead-letter topic.
    """

    def __init__(
        self,
        settings: Settings,
        group: str,
        tp: TopicPartition,
        partitions: int,
        letters: int,
        lookup: SchemaLookup,
    ) -> None:
        self._settings, self._group, self.tp = settings, group, tp
        self._letters = letters
        self._rekeyer = rekeyer(settings, partitions)
        self._explainer = Explainer(settings)
        self._producer = AIOKafkaProducer(
            **client_settings(settings.kafka),
            transactional_id=f"{group}-{tp.topic}-{tp.partition}",
            max_batch_size=BATCH_BYTES,
        )
        self._lookup = lookup
        self._unknown_schemas: Sequence[int] = ()
        self._asking: asyncio.Task[Answers] | None = None
        self._ask_again_s = 0.0
        self.chunk: Chunk | None = None
        """What was fetched and is not yet written whole."""
        self.next_offset = 0
        self.head_ms = 0
        """Timestamp of the next record, or of the newest that was written."""
        self._published_ms: int | None = None
        self.written = self.rejected = self.ignored = 0
        self.skipped: list[tuple[int, int, str]] = []

    async def open(self) -> None:
        """Take the partition over: Kafka ends what a former owner has begun, and refuses whatever
        it still sends."""
        await self._producer.start()

    async def close(self) -> None:
        """Drop the producer; the next ``open`` of any owner ends a transaction that is open."""
        if self._asking is not None:
            self._asking.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._producer.stop(), _CLOSE_SECONDS)

    def take(self, chunk: Chunk) -> None:
        """What was fetched; only where there is nothing left."""
        if chunk.end_offset > self.next_offset:
            self.chunk, self.head_ms = chunk, max(chunk.first_ms, 0)

    async def write(self, until_ms: int) -> None:
        """Write what becomes of the records up to the first that is newer than ``until_ms``; where
        that is the next, only tell the other instances so."""
        chunk = self.chunk
        if chunk is None:
            return
        if self.head_ms > until_ms:
            if self._published_ms != self.head_ms:
                await self._commit(self.next_offset)
            return
        if self._unknown_schemas and not await self._find_schemas(self._unknown_schemas):
            return
        found = await asyncio.to_thread(self._rewritten, chunk, until_ms)
        written, rejected, ignored, rest, self._unknown_schemas, skipped = found
        if rest is None:
            self.chunk, self.head_ms = None, min(until_ms, self._newest(written))
            end = chunk.end_offset
        else:
            end, self.head_ms = rest
        if end > self.next_offset:
            await self._commit(end, written, [self._letter(one) for one in rejected])
        self.next_offset = end
        self.written += sum(len(rows) for *_, rows in written)
        self.rejected += len(rejected)
        self.ignored += ignored
        self.skipped += skipped

    async def _find_schemas(self, ids: Sequence[int]) -> bool:
        """Whether the schema is known that the next record needs, the first. They are asked for now
        and then, beside all else: whoever writes keeps the partition, and the registry is slow."""
        now_s = time.monotonic()
        if self._asking is None:
            if now_s < self._ask_again_s:
                return False
            self._asking = asyncio.create_task(self._lookup.answers(self.tp.topic, ids))
        await asyncio.wait({self._asking}, timeout=_ASK_SECONDS)
        if not self._asking.done():
            return False
        found, self._asking = self._asking.result(), None
        reasons = self._lookup.refused
        await make_known(self._rekeyer.set_schema, self.tp.topic, found.schemas, reasons)
        if ids[0] in found.waits:
            self._ask_again_s = now_s + limits.RETRY_SECONDS_MAX
            logger.warning("%s, partition %d, waits: %s", *self.tp, found.waits[ids[0]])
            return False
        self._unknown_schemas = ()
        return True

    async def set_schema(self, number: int, schema: SchemaText) -> None:
        """Make a schema known that was not there."""
        await make_known(self._rekeyer.set_schema, self.tp.topic, {number: schema}, {})

    async def skip_to(self, offset: int) -> None:
        """There are no records before an offset."""
        if offset > self.next_offset:
            await self._commit(offset)
            self.next_offset = offset

    def _newest(self, written: Iterable[_Written]) -> int:
        return max((ms for *_, rows in written for ms, *_ in rows), default=self.head_ms)

    def _rewritten(self, chunk: Chunk, until_ms: int) -> Any:
        content, place, at = chunk.content, (self.tp.topic, self.tp.partition), self.next_offset
        if isinstance(content, Batches):
            return self._rekeyer.batches(
                content.log, place, content.data, content.aborted, at, until_ms
            )
        return self._rekeyer.records(
            *(content.log, place, content.offset, content.record_ms),
            *(content.values, content.beside, at, until_ms),
        )

    def _letter(self, rejected: _Rejected) -> Parcel:
        topic, offset, record_ms, reason, value, key, headers = rejected
        refusal = self._explainer.explain(topic, value, reason, (key, headers, record_ms))
        return Parcel(DeadLetter(topic, self.tp.partition, offset, refusal, value)).fitting()

    async def _commit(
        self, offset: int, written: Iterable[_Written] = (), letters: Sequence[Parcel] = ()
    ) -> None:
        """One transaction: all of it, and the offset with the time of ``head_ms``, or nothing."""
        topics = self._settings.kafka.topics
        rows: dict[TopicPartition, list[Row]] = {
            TopicPartition(topics.by_kind[ALL_KINDS[kind]], number): [(*row, []) for row in some]
            for kind, number, some in written
        }
        now_ms = time.time_ns() // 1_000_000
        for parcel in letters:
            to = TopicPartition(topics.dead_letters, parcel.letter.place(self._letters))
            rows.setdefault(to, []).append(parcel.row(now_ms))
        producer = self._producer
        await producer.begin_transaction()
        async with asyncio.TaskGroup() as group:
            for to, some in rows.items():
                group.create_task(self._send(to, some))
        ends = {self.tp: OffsetAndMetadata(offset, str(self.head_ms))}
        await producer.send_offsets_to_transaction(ends, self._group)
        await producer.commit_transaction()
        self._published_ms = self.head_ms

    async def _send(self, to: TopicPartition, rows: Sequence[Row]) -> None:
        """Write records in order, and wait until Kafka has them."""
        producer = self._producer
        answers = [
            await sent(producer, batch, to.topic, to.partition)
            for batch, _ in filled_batches(producer, rows)
        ]
        if error := next(filter(None, await errors_of(answers)), None):
            raise error
