"""The consumer of a cluster that is not the one of ``[kafka]``.

It belongs to no group: a worker reads of it the partition numbers that the group of ``[kafka]`` has
given it. A claim in the store fences whoever has lost a number and does not know it yet, and where
to go on is stored with the state, so nothing is kept in this cluster. While it cannot be reached
the logs of other clusters are counted; its own are recovered once it is back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.kafka.chunk import Chunk
from streamer.kafka.client import Refusals, client_settings
from streamer.kafka.consumers import Progress
from streamer.kafka.fetching import (
    FETCH_MAX_WAIT_MS,
    Fetches,
    bounds_of,
    consumer_options,
    require_fetching,
)
from streamer.kafka.fingerprints import Fingerprint
from streamer.kafka.record_lookup import records_at
from streamer.settings import limits
from streamer.settings.clusters import Cluster
from streamer.settings.model import Settings

_PAUSE_SECONDS = 0.1
"""After a fetch that gave an error."""


class OtherCluster:
    """A ``ConsumerPort`` of the topics of one cluster, which hands its chunks to ``offer``. Topics
    have their full names here; only aiokafka gets the plain ones."""

    def __init__(
        self, settings: Settings, cluster: Cluster, offer: Callable[[Chunk], None]
    ) -> None:
        self._cluster, self._offer = cluster, offer
        logs = settings.logs_in(cluster)
        self._plain = {log.topic: log.plain for log in logs}
        self._full = {log.plain: log.topic for log in logs}
        self._fetches = Fetches({log.plain: log for log in logs})
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._active: set[TopicPartition] = set()
        self._consumer: Any = None
        self._problem = "not asked yet"
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._tried = asyncio.Event()
        self._active_at = 0.0
        self._lost: str | None = None

    # Names ---------------------------------------------------------------------------------------

    def _ours(self, tp: TopicPartition) -> TopicPartition:
        """As the cluster knows it."""
        return TopicPartition(self._plain[tp.topic], tp.partition)

    def _named(self, found: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        """An answer of the cluster, by full names."""
        return {
            TopicPartition(self._full[t], number): value for (t, number), value in found.items()
        }

    # Life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect and fetch, in a task, until ``stop``."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the task, and the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._consumer is not None:
            await self._disconnect()

    async def _run(self) -> None:
        delay_seconds = 0.1
        while True:
            try:
                if self._consumer is None:
                    self._consumer = await self._connected()
                    self._active_at = time.monotonic()
                    self._take_up()
                    if self._tried.is_set():
                        self._fetches.lose(self._assigned)
                    self._tried.set()
                await self._fetch()
                delay_seconds = 0.1
            except Exception as error:  # whatever it is: other clusters are read meanwhile
                reason = str(error) or type(error).__name__
                reason = f"{self._cluster.called}: {reason}; at {self._cluster.place}"
                self._problem = self._lost or reason
                self._tried.set()
                await self._disconnect()
                await asyncio.sleep(delay_seconds)
                delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)

    async def _disconnect(self) -> None:
        """Begin with a new consumer; partitions that were read are recovered first."""
        consumer, self._consumer, self._lost = self._consumer, None, None
        if consumer is not None:
            await _stop(consumer)

    async def _connected(self) -> Any:
        section = self._cluster.section
        consumer = aiokafka.AIOKafkaConsumer(
            **client_settings(self._cluster.connection, section),
            **consumer_options(),
        )
        self._fetches.watch(consumer._client)
        refusals = Refusals(section)
        try:
            with refusals:
                await consumer.start()
        except BaseException as error:
            await consumer.stop()
            if isinstance(error, (KafkaError, OSError)):
                raise BrokerError(f"cannot be reached: {refusals.reason(error)}") from None
            raise
        return consumer

    async def _fetch(self) -> None:
        """One fetch of what is asked for."""
        require_fetching(self._consumer)
        if self._lost is not None:
            raise BrokerError(self._lost)
        if not self._active:
            self._wake.clear()
            await self._wake.wait()
            self._active_at = time.monotonic()
            return
        if self._fetches.silent_seconds(self._active_at) > limits.CLUSTER_SECONDS:
            raise BrokerError(f"no answer for {limits.CLUSTER_SECONDS:.0f} s")
        try:
            answer = await self._consumer.getmany(*self._active, timeout_ms=FETCH_MAX_WAIT_MS)
        except NoOffsetForPartitionError:  # not sought yet: it is still being recovered
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        except OffsetOutOfRangeError as error:
            self._fetches.doubt(error.args[0] if error.args else ())
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        for chunk in self._fetches.chunks(answer).values():
            self._offer(chunk)

    # What a worker asks --------------------------------------------------------------------------

    def assign(self, numbers: Iterable[int]) -> None:
        """Read these partition numbers of all topics, each once it has been sought."""
        some = list(numbers)
        self._assigned = frozenset(TopicPartition(t, n) for t in self._full for n in some)
        self._active.clear()
        self._take_up()

    def _take_up(self) -> None:
        if self._consumer is None:
            return  # once it is connected
        if self._assigned:
            self._consumer.assign(list(self._assigned))
        else:
            self._consumer.unsubscribe()

    def _require(self) -> Any:
        if self._consumer is None:
            raise BrokerError(self._problem)
        return self._consumer

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        """Seek to these offsets; chunks fetched from then on carry ``epoch``."""
        sought = {self._ours(tp): offset for tp, offset in offsets.items()}
        self._fetches.start_at(self._require(), sought, epoch)

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Start and end of each log; BrokerError where the cluster does not answer in time."""
        consumer, asked = self._require(), list(map(self._ours, tps))
        try:
            async with asyncio.timeout(limits.CLUSTER_SECONDS):
                return self._named(await bounds_of(consumer, asked))
        except (KafkaError, OSError, TimeoutError) as error:
            reason = str(error) or f"no answer within {limits.CLUSTER_SECONDS:.0f} s"
            raise BrokerError(
                f"{self._cluster.called}: {reason}; at {self._cluster.place}"
            ) from error

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Fingerprint]:
        """The first record of each log at or after an offset; none where it ends before."""
        asked = {self._ours(tp): offset for tp, offset in offsets.items()}
        cluster = self._cluster
        return self._named(await records_at(cluster.connection, asked, cluster.section))

    async def progress(self) -> dict[TopicPartition, Progress]:
        """How far each was fetched; empty while there is no connection."""
        return {} if self._consumer is None else self._named(self._fetches.progress(self._consumer))

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Nothing: there is no group whose offsets could be told."""

    def take_doubted(self) -> set[TopicPartition]:
        """Those whose log may have changed since the last call."""
        return set(self._named(dict.fromkeys(self._fetches.take_doubted())))

    def away(self) -> list[str]:
        """All topics of this cluster, while there is no connection."""
        return [] if self._is_there else list(self._plain)

    @property
    def _is_there(self) -> bool:
        return self._consumer is not None and self._lost is None

    def give_up(self, why: str) -> None:
        """Connect again: a question to the cluster has failed, and this is the problem."""
        self._lost = why
        self._wake.set()

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch nothing of these; they are not ours to read until the next ``assign``."""
        given_up = self._assigned.intersection(map(self._ours, tps))
        if given_up:
            self._assigned -= given_up
            self._take_up()
            self._fetches.lose(self._assigned)  # which have no position now

    @property
    def why_away(self) -> str | None:
        """Why there is no connection; None where there is one."""
        return None if self._is_there else self._lost or self._problem

    async def has_tried(self) -> None:
        """Wait until it has connected, or has failed to."""
        await self._tried.wait()

    def problems(self) -> list[str]:
        """Why nothing of this cluster is fetched, or not all."""
        if self.why_away is not None:
            return [self.why_away]
        return [f"{self._cluster.called}: {text}" for text in self._fetches.problems()]

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        """Whether all of these are assigned."""
        return self._assigned.issuperset(map(self._ours, tps))

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Stop fetching these until ``resume``."""
        self._active.difference_update(map(self._ours, tps))

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch these again; those no longer assigned are ignored."""
        self._active |= self._assigned.intersection(map(self._ours, tps))
        self._wake.set()


async def _stop(consumer: Any) -> None:
    """Stop a consumer of a cluster that may be away. aiokafka then may raise the cancellation of
    its own tasks, or wait for ever, and leaves its connections open."""
    for closing in (consumer.stop, consumer._client.close):
        task = asyncio.ensure_future(closing())
        await asyncio.wait({task}, timeout=limits.CLUSTER_SECONDS)
        if task.done() and not task.cancelled() and task.exception() is None:
            return
        task.cancel()
