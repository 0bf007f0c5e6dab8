"""The columnar Faust transport: one Faust message is a whole fetched chunk of a partition.

It subclasses Faust's aiokafka driver at five points (each held by a test):

- ``Transport.Consumer`` → ``Consumer._new_consumer_thread``: our consumer and its thread;
- ``_create_worker_consumer``: read_committed, partitions of one number to the same worker, static
  membership, every security setting, no reset of offsets behind our back;
- ``_fetch_records``: ``{tp: [records]}`` becomes ``{tp: [one chunk]}``;
- ``Fetches.watch``: a failed fetch may mean that a topic was recreated, damaged batches are fetched
  again, and connections that hang are replaced;
- ``seek_to_committed``: where to go on is not Kafka's to say. The app hears that partitions were
  assigned; it claims each in the store, loads it, and seeks to the offsets stored there.

Only this module, ``fetching``, ``connections``, ``damaged_batches`` and ``raw_batches`` touch
Faust's and aiokafka's internals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import aiokafka
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.serializers.schemas import Schema
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from streamer.errors import BrokerError
from streamer.kafka.assignor import StickyNumbers
from streamer.kafka.chunk import Chunk
from streamer.kafka.client import client_settings
from streamer.kafka.consumers import Progress
from streamer.kafka.fetching import (
    Fetches,
    bounds_of,
    consumer_options,
    ignore,
    require_fetching,
)
from streamer.settings.model import Settings

logger = logging.getLogger("streamer")
_T = TypeVar("_T")
_JOIN_AGAIN_SECONDS = 0.5
_STOP_SECONDS = 5.0
"""So long a client may take to leave its group and to close: the brokers may be away."""


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
        main = self._settings.read_clusters[0]
        self.fetches = Fetches({log.plain: log for log in self._settings.logs_in(main)})

    @property
    def _settings(self) -> Settings:
        return cast(Settings, cast(Any, self.app).settings)

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        kafka = self._settings.kafka
        conf = self.app.conf
        self._assignor = StickyNumbers()
        consumer = aiokafka.AIOKafkaConsumer(
            **client_settings(kafka),
            **consumer_options(),
            client_id=conf.broker_client_id,
            group_id=kafka.group,
            group_instance_id=cast(Any, self.app).slot.instance_id,
            partition_assignment_strategy=[self._assignor],
            session_timeout_ms=int(conf.broker_session_timeout * 1000),
            heartbeat_interval_ms=int(conf.broker_heartbeat_interval * 1000),
            rebalance_timeout_ms=int(conf.broker_rebalance_timeout * 1000),
            request_timeout_ms=int(conf.broker_request_timeout * 1000),
        )
        self.fetches.watch(consumer._client)
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
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await super().on_thread_stop()
        except (Exception, asyncio.CancelledError) as error:  # its own tasks may be cancelled
            logger.info("Kafka's client was dropped, as it did not close: %r", error)

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
        require_fetching(consumer)  # the worker ends, and is started again
        try:
            records = await super()._fetch_records(
                consumer, active_partitions, timeout=timeout, max_records=None
            )
        except NoOffsetForPartitionError:
            return {}  # not sought yet: the partition is still being recovered
        except OffsetOutOfRangeError as error:
            self.fetches.doubt(error.args[0] if error.args else ())
            return {}
        return {tp: [chunk] for tp, chunk in self.fetches.chunks(records).items()}

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
        self.fetches.start_at(self._ensure_consumer(), offsets, epoch)

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch nothing of these, though they are assigned."""
        if not self.thread_loop.is_closed():
            consumer = self._ensure_consumer()
            self.thread_loop.call_soon_threadsafe(ignore, consumer, list(tps))

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Start and end of logs, asked from the broker."""
        return await self._in_thread(bounds_of(self._ensure_consumer(), tps))

    async def progress(self) -> dict[TopicPartition, Progress]:
        """Of each partition, as of the last fetch."""
        return await self._in_thread(self._progress())

    async def _progress(self) -> dict[TopicPartition, Progress]:
        return self.fetches.progress(self._ensure_consumer())

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
