"""Where Kafka's logs begin and end, asked again and again by whoever shows how far workers are."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from streamer.kafka.client import Refusals, client_settings
from streamer.kafka.connections import Connections
from streamer.settings import limits
from streamer.settings.clusters import Cluster
from streamer.settings.model import Settings

_TOPICS_SECONDS = 30.0
"""How often is looked which topics there are: the end of one that is missing is not asked for."""
NOT_ASKED = "the ends of its logs are not known yet"


class Bounds(NamedTuple):
    """Where a log begins, where it ends for those who read what is committed, and where it ends:
    between the last two are the records from the first of an open transaction on."""

    start: int
    stable: int
    end: int


@dataclass
class LogEnds:
    """What is known of the logs. ``bounds``: by (log, partition); ``problem``: why they are not
    known, or None."""

    bounds: Mapping[tuple[str, int], Bounds] = field(default_factory=dict)
    problem: str | None = None

    @property
    def unstable(self) -> Mapping[str, int]:
        """Log → its records that open transactions hold back."""
        found = Counter[str]()
        for (log, _), bounds in self.bounds.items():
            found[log] += max(0, bounds.end - bounds.stable)
        return found

    @contextlib.asynccontextmanager
    async def followed(self, count: Callable[[], int]) -> AsyncIterator[None]:
        """Kept up to date within the block; ``count``: partitions of each topic that are read; 0
        where nothing is stored, so that all are asked for."""
        yield


class KafkaLogEnds(LogEnds):
    """The logs of Kafka: asked every ``limits.ENDS_SECONDS``, each cluster through a connection of
    its own. Those of one that cannot be asked are not known; all others are."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(problem=NOT_ASKED)
        self._ends = [_ClusterEnds(settings, cluster) for cluster in settings.read_clusters]

    @contextlib.asynccontextmanager
    async def followed(self, count: Callable[[], int]) -> AsyncIterator[None]:
        """Ask Kafka in tasks that end with the block."""
        tasks = [asyncio.create_task(ends.follow(count, self._join)) for ends in self._ends]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _join(self) -> None:
        self.bounds = {place: at for ends in self._ends for place, at in ends.bounds.items()}
        problems = [ends.problem for ends in self._ends if ends.problem is not None]
        self.problem = "; ".join(dict.fromkeys(problems)) or None


class _ClusterEnds:
    """The logs of one cluster."""

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._cluster = cluster
        self._logs = {log.plain: log.name for log in settings.logs_in(cluster)}
        self.bounds: dict[tuple[str, int], Bounds] = {}
        self.problem: str | None = NOT_ASKED
        self._expiry: asyncio.TimerHandle | None = None

    async def follow(self, count: Callable[[], int], when_known: Callable[[], None]) -> None:
        """Ask again and again; ``when_known`` is called after each answer, and each failure."""
        while True:
            refusals = Refusals(self._cluster.section)
            try:
                with refusals:
                    async with (
                        _consumer(self._cluster, "read_committed") as consumer,
                        _consumer(self._cluster, "read_uncommitted") as of_all,
                    ):
                        await self._ask_on(consumer, of_all, count, when_known)
            except Exception as error:  # whatever it is: what is not asked again is not known
                is_known = isinstance(error, (KafkaError, OSError, TimeoutError))
                why = refusals.reason(error) if is_known else f"{type(error).__name__}: {error}"
                self._lose(why, when_known)
            await asyncio.sleep(limits.ENDS_SECONDS)

    def _lose(self, why: str, when_known: Callable[[], None]) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self.bounds, self.problem = {}, f"{why}; at {self._cluster.place}"
        when_known()

    def _expire_later(self, when_known: Callable[[], None]) -> None:
        """What is known now is not known any more in ``limits.ENDS_OLD_SECONDS``."""
        if self._expiry is not None:
            self._expiry.cancel()
        why = f"no answer for more than {limits.ENDS_OLD_SECONDS:g} s"
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(limits.ENDS_OLD_SECONDS, self._lose, why, when_known)

    async def _ask_on(
        self, consumer: Any, of_all: Any, count: Callable[[], int], when_known: Callable[[], None]
    ) -> None:
        there, looked_at = dict[str, set[int]](), -math.inf
        while True:
            async with asyncio.timeout(limits.ENDS_TIMEOUT_SECONDS):
                if time.monotonic() - looked_at > _TOPICS_SECONDS:
                    there, looked_at = await _partitions(consumer, self._logs), time.monotonic()
                places = [
                    TopicPartition(t, n)
                    for t, partitions in there.items()
                    for n in partitions
                    if n < count() or not count()
                ]
                ends = await of_all.end_offsets(places) if places else {}
                starts = await consumer.beginning_offsets(places) if places else {}
                stable = await consumer.end_offsets(places) if places else {}
            self.bounds = {
                (self._logs[p.topic], p.partition): Bounds(starts[p], stable[p], ends[p])
                for p in places
            }
            self.problem = None
            self._expire_later(when_known)
            when_known()
            await asyncio.sleep(limits.ENDS_SECONDS)


async def _partitions(consumer: Any, topics: Iterable[str]) -> dict[str, set[int]]:
    """The partitions of those of the topics that there are."""
    cluster = await consumer._client.fetch_all_metadata()
    return {t: cluster.partitions_for_topic(t) or set() for t in topics if t in cluster.topics()}


@contextlib.asynccontextmanager
async def _consumer(cluster: Cluster, isolation_level: str) -> AsyncIterator[Any]:
    options = client_settings(cluster.connection, cluster.section)
    consumer = AIOKafkaConsumer(**options, isolation_level=isolation_level)
    Connections(consumer._client)
    try:
        await consumer.start()
        yield consumer
    finally:
        await consumer.stop()
