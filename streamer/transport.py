"""The columnar Faust transport: one Faust message is a whole fetched chunk of a partition.

It subclasses Faust's aiokafka driver at five points (each held by a test):

- ``Transport.Consumer`` → ``Consumer._new_consumer_thread``: our consumer and its thread;
- ``_create_worker_consumer``: read_committed, partitions of one number to the same worker, every
  security setting, no reset of offsets behind our back;
- ``_fetch_records``: ``{tp: [records]}`` becomes ``{tp: [one chunk]}``;
- ``watch_fetches``: a failed fetch may mean that a topic was made anew;
- ``seek_to_committed``: where to go on is not Kafka's to say. The app is told that partitions were
  assigned; it claims each in the store, loads it, and seeks to the offsets stored there.

Only this module touches Faust's and aiokafka's internals. Where aiokafka's hooks are missing,
records come as its public ``ConsumerRecord``: slower, the same otherwise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, TypeVar, cast

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.serializers.schemas import Schema
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from streamer.chunk import Chunk
from streamer.config import Settings
from streamer.errors import BrokerError
from streamer.kafka import client_settings

_T = TypeVar("_T")
FETCH_MAX_WAIT_MS = 200
METADATA_MAX_AGE_MS = 10_000
"""How soon it is seen that a topic which was missing is there again."""
FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition in one fetch: about 20,000 events of 200 bytes."""
_FETCH = 1
"""The fetch request's number in Kafka's protocol."""
_MOVED = frozenset({3, 6, 74, 75, 100, 103})
"""Its error codes: topic or partition unknown, another leader or its epoch, another topic id."""
_DOUBTED = -1
"""The epoch of what is fetched from a log that may have changed."""


def _raw_records(data: Any) -> Any:
    """Marks the consumer whose record batches stay whole."""
    return data


class RecordRun:
    """The records of one batch, as aiokafka's C extension made them; stands for one record."""

    __slots__ = ("offset", "records")

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.offset = records[-1].offset


class _WholeBatch:
    """A record batch that gives one ``RecordRun`` instead of its records one by one."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[RecordRun]:
        records = list(self._batch)
        if records:
            yield RecordRun(records)


class _WholeBatches:
    """The batches of a fetch answer, each whole."""

    __slots__ = ("_records",)

    def __init__(self, records: Any) -> None:
        self._records = records

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> _WholeBatch:
        return _WholeBatch(self._records.next_batch())


def keep_batches_whole() -> bool:
    """Let consumers marked with ``_raw_records`` skip two Python calls and an object a record.

    False where this release of aiokafka lacks the hooks: records then come one by one.
    """
    try:
        from aiokafka.consumer.fetcher import PartitionRecords
    except ImportError:
        return False
    if getattr(PartitionRecords, "keeps_batches_whole", False):
        return True
    names = ("_records", "_unpack_records", "_consumer_record", "_key_deserializer")
    code = PartitionRecords.__init__.__code__.co_names
    if not all(hasattr(PartitionRecords, n) or n in code for n in names):
        return False
    start, record_of = PartitionRecords.__init__, PartitionRecords._consumer_record

    def init(self: Any, tp: Any, records: Any, *args: Any, **kwargs: Any) -> None:
        start(self, tp, records, *args, **kwargs)
        if self._key_deserializer is _raw_records:
            self._records = _WholeBatches(records)

    def _consumer_record(self: Any, tp: Any, record: Any) -> Any:
        return record if type(record) is RecordRun else record_of(self, tp, record)

    PartitionRecords.__init__ = init
    PartitionRecords._consumer_record = _consumer_record
    PartitionRecords.keeps_batches_whole = True
    return True


def watch_fetches(client: Any, doubt: Callable[[list[TopicPartition]], None]) -> None:
    """Tell of partitions whose fetch failed in a way that a topic made anew would explain.

    A consumer knows a topic by its name: once a new one of that name has grown past our position,
    fetches go on as if nothing had happened. Before that, one has failed.
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
        return cast(Chunk, message.value)


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Fetches in a thread of its own, so that heartbeats go out whatever the engine computes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.epochs: dict[TopicPartition, int] = {}
        self.handed_out: dict[TopicPartition, int] = {}
        self.doubted: deque[TopicPartition] = deque()

    @property
    def _settings(self) -> Settings:
        return cast(Settings, cast(Any, self.app).settings)

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        kafka = self._settings.kafka
        conf = self.app.conf
        self._assignor = RangePartitionAssignor
        options: dict[str, Any] = {}
        if keep_batches_whole():
            options["key_deserializer"] = _raw_records
        consumer = aiokafka.AIOKafkaConsumer(
            **client_settings(kafka),
            **options,
            client_id=conf.broker_client_id,
            group_id=kafka.group,
            group_instance_id=conf.consumer_group_instance_id,
            partition_assignment_strategy=[RangePartitionAssignor],
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

    def doubt(self, tps: Iterable[TopicPartition]) -> None:
        """The log may not be the one that was read: what is fetched from now on counts only after
        the partition has been adopted again. Runs in the consumer's thread."""
        for tp in tps:
            if self.epochs.get(tp, _DOUBTED) != _DOUBTED:
                self.epochs[tp] = _DOUBTED
                self.doubted.append(tp)

    async def getmany(
        self,
        active_partitions: set[TP] | None,
        timeout: float,  # noqa: ASYNC109 — Faust's signature
    ) -> Any:
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
            return {}  # not sought yet: the partition is still being adopted
        except OffsetOutOfRangeError as error:
            self.doubt(error.args[0] if error.args else ())
            return {}
        chunks = {}
        for tp, batch in records.items():
            if batch:
                if type(batch[0]) is RecordRun:
                    batch = list(chain.from_iterable(run.records for run in batch))
                chunk = Chunk(tp.topic, tp.partition, self.epochs.get(tp, 0), batch)
                self.handed_out[tp] = chunk.end_offset
                chunks[tp] = [chunk]
        return chunks

    async def seek_to_committed(self) -> Mapping[TP, int]:
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

    async def progress(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """For each partition: where what was handed out ends, and how many records follow up to
        the last stable offset as of the last fetch (None: not known yet)."""
        return await self._in_thread(self._progress())

    async def _progress(self) -> dict[TopicPartition, tuple[int, int | None]]:
        consumer = self._ensure_consumer()
        result: dict[TopicPartition, tuple[int, int | None]] = {}
        subscription = consumer._subscription.subscription
        assignment = subscription.assignment if subscription else None
        if assignment is None:
            return result
        for tp in assignment.tps:
            state = assignment.state_value(tp)
            end = state.lso if state.lso is not None and state.lso >= 0 else state.highwater
            known = end is not None and state.has_valid_position and tp in self.handed_out
            behind = max(0, end - state.position) if known else None
            result[tp] = (self.handed_out.get(tp, 0), behind)
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
        return cast(ConsumerThread, self._thread)

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        self._numbers += 1
        return ConsumerMessage(
            record.topic,
            record.partition,
            self._numbers,
            record.records[-1].timestamp / 1000,
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
