"""The columnar Faust transport: one Faust message is a whole fetched chunk of a partition.

It subclasses Faust's aiokafka driver at five points (each held by a test):

- ``Transport.Consumer`` → ``Consumer._new_consumer_thread``: our consumer and its thread;
- ``_create_worker_consumer``: read_committed, partitions of one number to the same worker, static
  membership, every security setting, no reset of offsets behind our back;
- ``_fetch_records``: ``{tp: [records]}`` becomes ``{tp: [one chunk]}``;
- ``watch_fetches``: a failed fetch may mean that a topic was recreated;
- ``seek_to_committed``: where to go on is not Kafka's to say. The app hears that partitions were
  assigned; it claims each in the store, loads it, and seeks to the offsets stored there.

Only this module and ``raw_batches`` touch Faust's and aiokafka's internals.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import aiokafka
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.serializers.schemas import Schema
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from streamer.errors import BrokerError
from streamer.kafka.assignor import StickyNumbers
from streamer.kafka.chunk import Chunk, chunk_of
from streamer.kafka.client import client_settings
from streamer.kafka.log import Progress
from streamer.kafka.raw_batches import keep_batches_raw, raw_records
from streamer.settings.model import Settings

logger = logging.getLogger("streamer")
_T = TypeVar("_T")
FETCH_MAX_WAIT_MS = 200
METADATA_MAX_AGE_MS = 10_000
"""How soon it is seen that a topic which was missing is there again."""
FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition in one fetch: about 20,000 events of 200 bytes."""
_JOIN_AGAIN_SECONDS = 0.5
_FETCH = 1
"""The fetch request's number in Kafka's protocol."""
_MOVED = frozenset({3, 6, 74, 75, 100, 103})
"""Its error codes: topic or partition unknown, another leader or its epoch, another topic id."""
_DOUBTED = -1
"""The epoch of what is fetched from a log that may have changed."""


def watch_fetches(client: Any, doubt: Callable[[list[TopicPartition]], None]) -> None:
    """Report partitions whose fetch failed in a way that a recreated topic would explain.

    A consumer knows a topic by its name: once a new one of that name has grown past our position,
    fetches go on as if nothing had happened. Before that one has failed, unless the new topic grew
    so far between two fetches: that is noticed only when the partition is claimed again.
    """
    send = client.send

    async def watched(node_id: Any, request: Any, **kwargs: Any) -> Any:
        if getattr(request, "API_KEY", None) != _FETCH:
            return await send(node_id, request, **kwargs)
        try:
            response = await send(node_id, request, **kwargs)
        except KafkaError:
            doubt([TopicPartition(t, p) for t, asked in request.topics for p, *_ in asked])
            raise
        doubtful = [
            TopicPartition(topic, partition)
            for topic, partitions in response.topics
            for partition, code, *_ in partitions
            if code in _MOVED
        ]
        if doubtful:
            doubt(doubtful)
        return response

    client.send = watched


class ChunkSchema(Schema):  # type: ignore[type-arg]
    """A topic's values are chunks: nothing is left to decode."""

    def loads_key(self, app: Any, message: Any, **kwargs: Any) -> None:
        return None

    def loads_value(self, app: Any, message: Any, **kwargs: Any) -> Chunk:
        """The chunk itself."""
        return cast(Chunk, message.value)


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Fetches in a thread of its own, so that heartbeats go out whatever the engine computes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.epochs: dict[TopicPartition, int] = {}
        self.handed_out: dict[TopicPartition, int] = {}
        self.doubted: deque[TopicPartition] = deque()
        self._logs = {log.topic: log.name for log in self._settings.logs.values()}

    @property
    def _settings(self) -> Settings:
        return cast(Settings, cast(Any, self.app).settings)

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        kafka = self._settings.kafka
        conf = self.app.conf
        self._assignor = StickyNumbers()
        options: dict[str, Any] = {}
        if keep_batches_raw():
            options["key_deserializer"] = raw_records
        consumer = aiokafka.AIOKafkaConsumer(
            **client_settings(kafka),
            **options,
            client_id=conf.broker_client_id,
            group_id=kafka.group,
            group_instance_id=cast(Any, self.app).slot.instance_id,
            partition_assignment_strategy=[self._assignor],
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_poll_records=None,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            check_crcs=kafka.check_crcs,
            session_timeout_ms=int(conf.broker_session_timeout * 1000),
            heartbeat_interval_ms=int(conf.broker_heartbeat_interval * 1000),
            rebalance_timeout_ms=int(conf.broker_rebalance_timeout * 1000),
            request_timeout_ms=int(conf.broker_request_timeout * 1000),
        )
        watch_fetches(consumer._client, self.doubt)
        return consumer

    async def on_start(self) -> None:
        """Start the thread, and join the group again after errors."""
        await super().on_start()
        self.add_future(self._join_again())

    async def _join_again(self) -> None:
        """Take errors of joining that aiokafka keeps for the next fetch: before the first
        assignment there is none, and it would wait for ever."""
        consumer = self._ensure_consumer()
        coordinator = consumer._coordinator
        while not self.should_stop:
            await asyncio.sleep(_JOIN_AGAIN_SECONDS)
            if coordinator._pending_exception and not consumer.assignment():
                try:
                    coordinator.check_errors()
                except KafkaError as error:
                    if type(error) is not KafkaError:  # one that trying again does not cure
                        raise
                    coordinator.reset_generation()  # what Kafka does not know as it was
                    logger.warning(
                        "the worker could not join the consumer group, trying again: %s", error
                    )

    async def on_thread_stop(self) -> None:
        """Leave the group: a static member that ends on purpose is not waited for.

        aiokafka leaves for dynamic members only; a request by member id serves both.
        """
        if self._consumer is not None and self._consumer._coordinator is not None:
            self._consumer._coordinator._group_instance_id = None
        await super().on_thread_stop()

    def doubt(self, tps: Iterable[TopicPartition]) -> None:
        """The log may not be the one that was read: what is fetched from now on counts only after
        the partition has been recovered again. Runs in the consumer's thread."""
        for tp in tps:
            if self.epochs.get(tp, _DOUBTED) != _DOUBTED:
                self.epochs[tp] = _DOUBTED
                self.doubted.append(tp)

    async def getmany(
        self,
        active_partitions: set[TP] | None,
        timeout: float,  # noqa: ASYNC109 — Faust's signature
    ) -> Any:
        """Chunks by topic-partition, for Faust."""
        consumer = self._ensure_consumer()
        return await self.call_thread(
            self._fetch_records, consumer, active_partitions, timeout=timeout
        )

    async def _fetch_records(
        self,
        consumer: aiokafka.AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 — Faust's signature
        max_records: int | None = None,
    ) -> Any:
        try:
            records = await super()._fetch_records(
                consumer, active_partitions, timeout=timeout, max_records=None
            )
        except NoOffsetForPartitionError:
            return {}  # not sought yet: the partition is still being recovered
        except OffsetOutOfRangeError as error:
            self.doubt(error.args[0] if error.args else ())
            return {}
        chunks = {}
        for tp, batch in records.items():
            if batch:
                log, epoch = self._logs[tp.topic], self.epochs.get(tp, 0)
                chunk = chunk_of(tp.topic, tp.partition, epoch, log, batch)
                self.handed_out[tp] = chunk.end_offset
                chunks[tp] = [chunk]
        return chunks

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Recover the assigned partitions instead: offsets are stored with the state."""
        await cast(Any, self.app).on_assignment({TopicPartition(*tp) for tp in self.assignment()})
        return {}

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's livelock detector counts offsets that it committed; ours are in the store."""

    # Called by the app, in its own loop -----------------------------------------------------------

    async def _in_thread(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run in the consumer's loop. Not through Faust's method queue: a fetch may sit there."""
        if self.thread_loop.is_closed():
            work.close()
            raise BrokerError("the consumer has stopped")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.thread_loop))

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        """Seek. Runs in the consumer's thread: what is fetched from then on carries the epoch."""
        await self._in_thread(self._start_at(dict(offsets), epoch))

    async def _start_at(self, offsets: dict[TopicPartition, int], epoch: int) -> None:
        consumer = self._ensure_consumer()
        for tp, offset in offsets.items():
            consumer.seek(tp, offset)
            self.handed_out[tp] = offset
            self.epochs[tp] = epoch

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Start and end of logs, asked from the broker."""
        consumer = self._ensure_consumer()

        async def ask() -> dict[TopicPartition, tuple[int, int]]:
            starts = await consumer.beginning_offsets(tps)
            ends = await consumer.end_offsets(tps)
            return {tp: (starts[tp], ends[tp]) for tp in tps}

        return await self._in_thread(ask())

    async def progress(self) -> dict[TopicPartition, Progress]:
        """Of each partition, as of the last fetch."""
        return await self._in_thread(self._progress())

    async def _progress(self) -> dict[TopicPartition, Progress]:
        consumer = self._ensure_consumer()
        result: dict[TopicPartition, Progress] = {}
        subscription = consumer._subscription.subscription
        assignment = subscription.assignment if subscription else None
        if assignment is None:
            return result
        for tp in assignment.tps:
            state = assignment.state_value(tp)
            end = state.lso if state.lso is not None and state.lso >= 0 else state.highwater
            known = end is not None and state.has_valid_position and tp in self.handed_out
            behind = max(0, end - state.position) if known else None
            position = state.position if known else 0
            result[tp] = Progress(self.handed_out.get(tp, 0), behind, position)
        return result

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets to Kafka: informative, for lag tools; failures do not matter."""
        consumer = self._ensure_consumer()

        async def commit() -> None:
            assigned = consumer.assignment()
            ours = {tp: OffsetAndMetadata(o, "") for tp, o in offsets.items() if tp in assigned}
            try:
                if ours:
                    await consumer.commit(ours)
            except KafkaError:
                return

        await self._in_thread(commit())


class Consumer(driver.Consumer):
    """Hands chunks to the agents. Message numbers are ours: they only have to grow."""

    _numbers = 0

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def thread(self) -> ConsumerThread:
        """The thread that fetches, with its real type."""
        return cast(ConsumerThread, self._thread)

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        self._numbers += 1
        return ConsumerMessage(
            record.topic,
            record.partition,
            self._numbers,
            record.first_ms / 1000,
            0,
            [],
            None,
            record,
            None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )


class Producer(driver.Producer):
    """Faust's producer with our security settings."""

    def _settings_auth(self) -> Mapping[str, Any]:
        settings = client_settings(self.app.settings.kafka)  # type: ignore[attr-defined]
        settings.pop("bootstrap_servers", None)
        return settings


class Transport(driver.Transport):
    """``broker="streamer://host:port"``."""

    Consumer: ClassVar[Any] = Consumer
    Producer: ClassVar[Any] = Producer
    driver_version = f"streamer on aiokafka={aiokafka.__version__}"
