"""Dead letters: refused records, unchanged, acknowledged by Kafka before the commit counts them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from streamer.config import Settings
from streamer.errors import BrokerError
from streamer.kafka import client_settings

CUT_BYTES = 100_000
"""What is kept of a letter that Kafka refuses for its size."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that does not count; ``topic`` is the Kafka topic it came from."""

    topic: str
    partition: int
    offset: int
    reason: str
    value: bytes | None

    def headers(self) -> list[tuple[str, bytes]]:
        return [
            ("streamer.reason", self.reason.encode()),
            ("streamer.topic", self.topic.encode()),
            ("streamer.partition", str(self.partition).encode()),
            ("streamer.offset", str(self.offset).encode()),
        ]


class DeadLetters:
    """Sends to the dead-letter topic; at least once, identified by the headers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._producer: AIOKafkaProducer | None = None

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send and wait until Kafka has them; BrokerError where it has not."""
        if not letters:
            return
        try:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **client_settings(self.settings.kafka), acks="all", linger_ms=5
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            await self._send_all(self._producer, letters)
        except (KafkaError, OSError) as error:
            topic = self.settings.kafka.topics.dead_letters
            raise BrokerError(f"cannot write dead letters to {topic!r}: {error!r}") from error

    async def _send_all(self, producer: AIOKafkaProducer, letters: Sequence[DeadLetter]) -> None:
        """One after the other into the producer's batches, then wait for all answers."""
        topic = self.settings.kafka.topics.dead_letters
        sent: list[tuple[DeadLetter, asyncio.Future[object]]] = []
        too_large = []
        for letter in letters:
            try:
                future = await producer.send(topic, letter.value, headers=letter.headers())
                sent.append((letter, future))
            except MessageSizeTooLargeError:
                too_large.append(letter)
        for letter, future in sent:
            try:
                await future
            except MessageSizeTooLargeError:
                too_large.append(letter)
        for letter in too_large:
            value = letter.value or b""
            cut = ("streamer.cut", f"{len(value)} bytes, crc32 {zlib.crc32(value):08x}".encode())
            head = value[:CUT_BYTES]
            await producer.send_and_wait(topic, head, headers=[*letter.headers(), cut])

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()
            self._producer = None
