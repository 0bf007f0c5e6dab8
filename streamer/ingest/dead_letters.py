"""Dead letters: refused records, unchanged, acknowledged by Kafka before the commit counts them."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from streamer._core import partition_of
from streamer.errors import BrokerError
from streamer.ingest.rejections import Refusal
from streamer.kafka.client import client_settings
from streamer.kafka.filled_batches import Answer, Row, errors_of, filled_batches, sent
from streamer.settings.model import Settings

logger = logging.getLogger("streamer")
CUT_BYTES = 100_000
"""What is kept of a letter that Kafka refuses for its size."""
_LARGEST_BYTES = 1_000_000
_KEPT_BYTES = (CUT_BYTES, 10_000, 1000, 0)
"""And what is kept of it if that is refused as well; 0: some headers only."""
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_BATCH_BYTES = 64 * 1024
"""Where Kafka refuses one, for the topic takes less, each letter has a batch of its own."""
_TIMEOUT_MS = 5000
"""A commit waits for Kafka's answer; on a connection that hangs there is none."""
_FIRST_BACK_MS, _LAST_BACK_MS = 3_600_000, 2**45


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A late or rejected record; ``topic`` is the Kafka topic it came from, "" if none."""

    topic: str
    partition: int
    offset: int
    refusal: Refusal
    value: bytes | None

    def headers(self) -> list[tuple[str, bytes]]:
        """Headers with the reason, and where the record came from."""
        why = self.refusal
        return [
            *self.least_headers(),
            ("streamer.field", why.field.encode()),
            ("streamer.found", why.found.encode()),
            ("streamer.expected", why.expected.encode()),
        ]

    def least_headers(self) -> list[tuple[str, bytes]]:
        """The required headers only, for a topic that accepts nothing longer."""
        return [
            ("streamer.reason", self.refusal.reason.encode()),
            ("streamer.topic", self.topic.encode()),
            ("streamer.partition", str(self.partition).encode()),
            ("streamer.offset", str(self.offset).encode()),
        ]

    def key(self) -> bytes:
        """Where the record came from; compacted topics, and null values, need a key."""
        return f"{self.topic}/{self.partition}/{self.offset}".encode()

    def place(self, partitions: int) -> int:
        """Its partition in the dead-letter topic: one for all letters of a partition that is read,
        so that they fill whole batches, in order."""
        return partition_of(f"{self.topic}/{self.partition}".encode(), partitions)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A letter as it is sent: whole, or the first bytes of it."""

    letter: DeadLetter
    kept_bytes: int | None = None

    def value(self) -> bytes | None:
        """The record, or its first ``kept_bytes``; None for a record without a value."""
        whole = self.letter.value
        return whole if self.kept_bytes is None else (whole or b"")[: self.kept_bytes]

    def headers(self) -> list[tuple[str, bytes]]:
        """Headers of the letter; ``streamer.cut`` holds the full length and CRC-32 of a cut
        record."""
        headers = self.letter.headers() if self.kept_bytes != 0 else self.letter.least_headers()
        if self.kept_bytes is not None:
            whole = self.letter.value or b""
            cut = f"{len(whole)} bytes, crc32 {zlib.crc32(whole):08x}"
            headers.append(("streamer.cut", cut.encode()))
        return headers

    def row(self, ms: int) -> Row:
        """The record that is written, with a timestamp."""
        return ms, self.letter.key(), self.value(), self.headers()

    def fitting(self) -> Parcel:
        """The letter, cut where it would be too large for a topic as Kafka creates it."""
        is_large = len(self.letter.value or b"") > _LARGEST_BYTES
        return Parcel(self.letter, CUT_BYTES) if is_large else self

    def smaller(self) -> Parcel | None:
        """The same letter with less of it; None where only headers are left."""
        size = len(self.value() or b"")
        kept = next((n for n in _KEPT_BYTES if n < size), None)
        return None if kept is None else Parcel(self.letter, kept)


class DeadLetters:
    """Sends to the dead-letter topic; at least once, identified by the headers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()
        self._is_single = False
        self._back_ms = 0

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send and wait until Kafka has them; BrokerError where it has not."""
        waiting = [Parcel(letter).fitting() for letter in letters]
        try:
            async with self._lock:
                while waiting:
                    waiting = await self._after(await self._try(waiting))
        except (KafkaError, OSError) as error:
            topic = self.settings.kafka.topics.dead_letters
            raise BrokerError(f"cannot write dead letters to {topic!r}: {error!r}") from error

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **client_settings(self.settings.kafka),
                acks="all",
                request_timeout_ms=_TIMEOUT_MS,
                max_batch_size=1 if self._is_single else _BATCH_BYTES,
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def _try(self, parcels: Iterable[Parcel]) -> list[tuple[Parcel, KafkaError]]:
        """In whole batches, then wait for all answers; returns what is to be sent again, and
        Kafka's error: for its size or for its time."""
        producer, topic = await self._started(), self.settings.kafka.topics.dead_letters
        partitions = len(await producer.partitions_for(topic))
        ms = time.time_ns() // 1_000_000 - self._back_ms
        places: dict[int, list[Parcel]] = {}
        for parcel in parcels:
            places.setdefault(parcel.letter.place(partitions), []).append(parcel)
        parts: list[Iterable[Parcel]] = []
        answers: list[Answer] = []
        for place, some in places.items():
            left = iter(some)
            for batch, held in filled_batches(producer, [parcel.row(ms) for parcel in some]):
                answers.append(await sent(producer, batch, topic, place))
                parts.append(list(islice(left, held)))
        refused: list[tuple[Parcel, KafkaError]] = []
        for held_there, answer in zip(parts, await errors_of(answers), strict=True):
            if isinstance(answer, _TOO_LARGE) and self._is_single:
                refused += [(_smaller(parcel, answer), answer) for parcel in held_there]
            elif isinstance(answer, (InvalidTimestampError, *_TOO_LARGE)):
                refused += [(parcel, answer) for parcel in held_there]
            elif isinstance(answer, BaseException):
                raise answer
        return refused

    async def _after(self, refused: list[tuple[Parcel, KafkaError]]) -> list[Parcel]:
        """What to send now. Kafka refuses whole batches, for one letter in them or for all of
        them: so from then on each letter has its own."""
        errors = [error for _, error in refused]
        late = next((e for e in errors if isinstance(e, InvalidTimestampError)), None)
        if late is not None:
            self._back_ms = max(_FIRST_BACK_MS, 2 * self._back_ms)
            if self._back_ms > _LAST_BACK_MS:
                self._back_ms = 0
                raise late
            logger.warning(
                "Kafka refuses dead letters because of their time: check the clock of this "
                "machine; until then they are dated back by %d h",
                self._back_ms // _FIRST_BACK_MS,
            )
        if not self._is_single and any(isinstance(e, _TOO_LARGE) for e in errors):
            self._is_single = True
            await self.close()
        return [parcel for parcel, _ in refused]

    async def close(self) -> None:
        """Close the producer; the next ``send`` opens another one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()


def _smaller(parcel: Parcel, error: KafkaError) -> Parcel:
    """The letter cut further; raises ``error`` where only headers are left."""
    smaller = parcel.smaller()
    if smaller is None:
        raise error
    return smaller
