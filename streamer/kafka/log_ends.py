"""Where Kafka's logs begin and end, asked again and again by whoever shows how far workers are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from streamer.kafka.client import Refusals, client_settings
from streamer.settings import limits
from streamer.settings.model import Kafka, Settings

NOT_ASKED = "the ends of its logs are not known yet"


@dataclass
class LogEnds:
    """What is known of the logs. ``bounds``: (log, partition) → its first offset, and its last
    stable one; ``problem``: why they are not known, or None."""

    bounds: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    problem: str | None = None

    @contextlib.asynccontextmanager
    async def followed(self, count: Callable[[], int]) -> AsyncIterator[None]:
        """Kept up to date within the block; ``count``: partitions of each topic."""
        yield


class KafkaLogEnds(LogEnds):
    """The logs of Kafka: asked every ``limits.ENDS_SECONDS``, through a connection of its own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(problem=NOT_ASKED)
        self.kafka = settings.kafka
        self._logs = {log.topic: log.name for log in settings.logs.values()}

    @contextlib.asynccontextmanager
    async def followed(self, count: Callable[[], int]) -> AsyncIterator[None]:
        """Ask Kafka in a task that ends with the block."""
        task = asyncio.create_task(self._follow(count))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, count: Callable[[], int]) -> None:
        while True:
            refusals = Refusals()
            try:
                with refusals:
                    async with _consumer(self.kafka) as consumer:
                        await self._ask_on(consumer, count)
            except Exception as error:  # whatever it is: what is not asked again is not known
                is_known = isinstance(error, (KafkaError, OSError, TimeoutError))
                why = refusals.reason(error) if is_known else f"{type(error).__name__}: {error}"
                self.bounds, self.problem = {}, f"{why}; at {self.kafka.brokers}"
            await asyncio.sleep(limits.ENDS_SECONDS)

    async def _ask_on(self, consumer: Any, count: Callable[[], int]) -> None:
        while True:
            places = [TopicPartition(t, n) for t in self._logs for n in range(count())]
            async with asyncio.timeout(limits.ENDS_TIMEOUT_SECONDS):
                starts = await consumer.beginning_offsets(places) if places else {}
                ends = await consumer.end_offsets(places) if places else {}
            self.bounds = {(self._logs[p.topic], p.partition): (starts[p], ends[p]) for p in places}
            self.problem = None
            await asyncio.sleep(limits.ENDS_SECONDS)


@contextlib.asynccontextmanager
async def _consumer(kafka: Kafka) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(**client_settings(kafka), isolation_level="read_committed")
    try:
        await consumer.start()
        yield consumer
    finally:
        await consumer.stop()
