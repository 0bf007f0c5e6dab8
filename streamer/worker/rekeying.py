"""``streamer rekey``: the events of the sources, in our shape, on four topics keyed by user.

Exactly once, with any number of instances and however they end:

1. Kafka's consumer group divides the partitions of the sources among the instances. This is for
   balance only: nothing relies on a partition having one owner.
2. Each partition of a source has a transactional id of its own. Whoever takes the partition over
   starts a producer with it first. By then Kafka has ended the last transaction of the former
   owner, and refuses whatever that one still sends: its epoch is old.
3. Only then the new owner asks where the group stands, for an offset that no transaction can change
   any more (``kafka/stable_offsets.py``), and begins there.
4. Events, dead letters, and the offset behind them are one transaction. So the offset found in
   step 3 lies behind exactly the records whose outcome readers of committed records see.
5. After an error of any kind nothing is repaired: the instance leaves, and joins again at step 1.

The order of records counts, too: an event that is older than the newest of its topic-partition by
more than ``time.max_lateness`` is late. So all partitions are written side by side, none ahead of
the slowest by more than ``limits.hold_back_ms`` of record time. Instances tell each other how far
they are by the metadata of the offsets: the time of the next record, or of the newest that was
written. What they read there may be old; then the time is too early, which holds back and harms
nothing. The slowest is never held back, and one that is held back says where it stands, so somebody
always goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from streamer.errors import BrokerError, SettingsError, StreamerError
from streamer.kafka.chunk import chunk_of
from streamer.kafka.client import client_settings
from streamer.kafka.fetching import Fetches
from streamer.kafka.raw_batches import keep_batches_raw, raw_records
from streamer.kafka.stable_offsets import stable_offsets
from streamer.kafka.topics import admin_client, partitions_of
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.settings.sources import is_pattern
from streamer.worker.instance_name import Slot
from streamer.worker.rekeyed_partition import RekeyedPartition
from streamer.worker.schemas import SchemaLookup

logger = logging.getLogger("streamer")
_POLL_MS = 200
_FETCH_BYTES = 4 << 20
_RETRY_SECONDS = 1.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS, _HELD_SECONDS = 0.5, 0.03
"""How often an instance looks how far others are, and while it waits for them."""


@dataclass(frozen=True)
class RekeyPlan:
    """What is read, and how many partitions there are to write to."""

    settings: Settings
    """With the sources as logs."""
    group: str
    partitions: int
    letters: int
    """Partitions of the dead-letter topic."""


@dataclass
class Counts:
    """What became of the records that were read."""

    written: int = 0
    rejected: int = 0
    ignored: int = 0

    def __str__(self) -> str:
        return (
            f"{self.written:,} events written, {self.rejected:,} rejected, {self.ignored:,} ignored"
        )


async def plan_of(settings: Settings) -> RekeyPlan:
    """What is to be done; SettingsError or BrokerError where it cannot be."""
    if not settings.kafka.rekeyed:
        raise SettingsError(
            "kafka.rekeyed is not set: set it to true, so that `streamer run` reads what "
            "`streamer rekey` writes"
        )
    kafka = settings.kafka
    as_read = msgspec.structs.replace(settings, kafka=msgspec.structs.replace(kafka, rekeyed=False))
    sources = [log.topic for log in as_read.logs.values()]
    if patterns := [topic for topic in sources if is_pattern(topic)]:
        raise SettingsError(f"`streamer rekey` reads no patterns: name the topics of {patterns[0]}")
    targets = [*kafka.topics.by_kind.values(), kafka.topics.dead_letters]
    async with admin_client(kafka) as client:
        described = await partitions_of(client, [*sources, *targets])
    counts = {name: len(partitions) for name, partitions in described.items()}
    for name in (*sources, *targets):
        if name not in counts:
            raise BrokerError(
                f"no topic {name!r} at {kafka.brokers}: `streamer produce --create PARTITIONS` "
                "creates those of kafka.topics; those of [[sources]] must be there"
            )
    ours = {name: counts[name] for name in targets[:-1]}
    if len(set(ours.values())) != 1:
        raise BrokerError(f"the topics of kafka.topics need equal partition counts, not {ours}")
    return RekeyPlan(as_read, f"{kafka.group}-rekey", counts[targets[0]], counts[targets[-1]])


async def rekey(plan: RekeyPlan, stop: asyncio.Event, *, until_end: bool = False) -> Counts:
    """Rekey until stopped, or up to the ends that the sources have; returns what was written."""
    counts, kafka = Counts(), plan.settings.kafka
    slot = Slot(msgspec.structs.replace(kafka, group=plan.group))
    pause = _RETRY_SECONDS
    while not stop.is_set():
        began = time.monotonic()
        membership = Membership(plan, slot, counts)
        work = asyncio.create_task(membership.run(stop, until_end))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        done, _ = await asyncio.wait({work}, timeout=_STOP_SECONDS)
        if not done:
            work.cancel()
            return counts
        error = work.exception()
        if error is None or isinstance(error, StreamerError):
            work.result()
            return counts
        logger.warning("rekeying is interrupted, and begins again: %r", _first(error))
        if time.monotonic() - began > limits.RETRY_SECONDS_MAX:
            pause = _RETRY_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
        pause = min(2 * pause, limits.RETRY_SECONDS_MAX)
    return counts


def _first(error: BaseException) -> BaseException:
    """The error itself, or the first of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped there
    """One membership in the group, from joining it to the first error or the end."""

    def __init__(self, plan: RekeyPlan, slot: Slot, counts: Counts) -> None:
        self._plan, self._slot, self._counts = plan, slot, counts
        self._logs = {log.topic: log.name for log in plan.settings.logs.values()}
        self._lookup = SchemaLookup(plan.settings)
        logs = {log.topic: log for log in plan.settings.logs.values()}
        self._fetches = Fetches(logs)
        self._open: dict[TopicPartition, RekeyedPartition] = {}
        self._lock = asyncio.Lock()
        """Held while partitions are taken over, written, or given back."""
        self._others_ms: list[int] = []
        """Where partitions of other instances stand that are not at their end."""
        self._look_s = 0.0
        self.has_joined = asyncio.Event()
        """Whether the group has given it partitions, or none."""

    async def run(self, stop: asyncio.Event, until_end: bool) -> None:
        """Rekey until stopped, or until the ends; raises where anything fails."""
        self._consumer = self._new_consumer()
        self._fetches.watch(self._consumer._client)
        try:
            await self._consumer.start()
            self._consumer.subscribe(list(self._logs), listener=self)
            while not stop.is_set():
                async with self._lock:
                    await self._take_over()
                await self._fetch()
                await self._ask_again()
                async with self._lock:
                    await self._look_at_others()
                    await self._write()
                    if until_end and self.has_joined.is_set() and await self._is_at_end():
                        return
        finally:
            async with self._lock:
                await self._give_back(list(self._open))
            if self._consumer._coordinator is not None:  # leave: nobody waits for us
                self._consumer._coordinator._group_instance_id = None
            await self._consumer.stop()

    async def _ask_again(self) -> None:
        """Ask for the schemas that were not there, now and then."""
        if not self._lookup.is_due:
            return
        found = await self._lookup.found_since()
        async with self._lock:
            for (log, number), schema in found.items():
                for tp, partition in self._open.items():
                    if tp.topic == log:
                        await partition.set_schema(number, schema)

    def _new_consumer(self) -> AIOKafkaConsumer:
        kafka, options = self._plan.settings.kafka, dict[str, Any]()
        if keep_batches_raw():
            options["key_deserializer"] = raw_records
        return AIOKafkaConsumer(
            **client_settings(kafka),
            **options,
            group_id=self._plan.group,
            group_instance_id=self._slot.instance_id,
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_partition_fetch_bytes=_FETCH_BYTES,
            fetch_max_wait_ms=_POLL_MS,
            session_timeout_ms=kafka.session_timeout_ms,
            heartbeat_interval_ms=kafka.session_timeout_ms // 5,
        )

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Give partitions back, once what is being written of them is."""
        async with self._lock:
            await self._give_back(list(revoked))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """They are taken over before the next fetch: errors of a listener go unheard."""
        self.has_joined.set()

    async def _take_over(self) -> None:
        """Steps 2 and 3, for partitions that are new."""
        plan, new = self._plan, sorted(self._consumer.assignment() - self._open.keys())
        if not new:
            return
        made = {
            tp: RekeyedPartition(
                plan.settings, plan.group, tp, plan.partitions, plan.letters, self._lookup
            )
            for tp in new
        }
        self._open |= made
        async with asyncio.TaskGroup() as group:
            for partition in made.values():
                group.create_task(partition.open())
        stored = await stable_offsets(self._consumer, plan.group, new)
        starts = await self._consumer.beginning_offsets(new)
        for tp, partition in made.items():
            start = max(starts[tp], stored.get(tp, 0))
            if start > stored.get(tp, start):
                logger.warning(
                    "%s, partition %d: records from offset %d to %d were deleted before they were "
                    "rekeyed: let the topic keep its records longer",
                    *(tp.topic, tp.partition, stored[tp], start - 1),
                )
            partition.next_offset = start
            self._consumer.seek(tp, start)

    async def _give_back(self, tps: Iterable[TopicPartition]) -> None:
        given = [self._open.pop(tp) for tp in tps if tp in self._open]
        await asyncio.gather(*(partition.close() for partition in given))

    async def _fetch(self) -> None:
        """More of those partitions of which nothing is left."""
        hungry = [tp for tp, partition in self._open.items() if partition.chunk is None]
        if not hungry:  # all wait for other instances, or there is nothing
            await asyncio.sleep(_HELD_SECONDS if self._open else _POLL_MS / 1000)
            return
        waits = all(partition.chunk is None for partition in self._open.values())
        fetched = await self._consumer.getmany(*hungry, timeout_ms=_POLL_MS if waits else 10)
        for tp, records in fetched.items():
            if records and tp in self._open:
                self._open[tp].take(
                    chunk_of(tp.topic, tp.partition, 0, self._logs[tp.topic], records)
                )

    async def _write(self) -> None:
        """Step 4, side by side."""
        heads = list(self._others_ms)
        for tp, partition in self._open.items():
            if partition.chunk is not None or not await self._has_read(tp):
                heads.append(partition.head_ms)
            else:
                await partition.skip_to(await self._consumer.position(tp))
        until_ms = min(heads, default=0) + self._plan.settings.limits.hold_back_ms
        async with asyncio.TaskGroup() as group:
            for partition in self._open.values():
                group.create_task(partition.write(until_ms))
        for partition in self._open.values():
            self._count(partition)
            if partition.chunk is not None and self._others_ms:
                self._look_s = min(self._look_s, time.monotonic() + _HELD_SECONDS)

    async def _look_at_others(self) -> None:
        """How far other instances are, now and then. One that has not said it stands at 0."""
        if time.monotonic() < self._look_s:
            return
        self._look_s = time.monotonic() + _LOOK_SECONDS
        consumer, others = self._consumer, list[TopicPartition]()
        for topic in self._logs:
            numbers = consumer.partitions_for_topic(topic) or ()
            others += [tp for n in numbers if (tp := TopicPartition(topic, n)) not in self._open]
        self._others_ms = []
        if others and self._open:
            starts = await consumer.beginning_offsets(others)
            ends = await consumer.end_offsets(others)
            stored = await consumer._coordinator.fetch_committed_offsets(others)
            for tp in others:
                at = stored.get(tp)
                if max(at.offset if at else 0, starts[tp]) < ends[tp]:
                    self._others_ms.append(int(at.metadata or 0) if at else 0)

    def _count(self, partition: RekeyedPartition) -> None:
        self._counts.written += partition.written
        self._counts.rejected += partition.rejected
        self._counts.ignored += partition.ignored
        for first, end, reason in partition.skipped:
            logger.warning(
                "%s, partition %d: offsets from %d to %d cannot be read (%s), and are left out",
                *(*partition.tp, first, end - 1, reason),
            )
        partition.written = partition.rejected = partition.ignored = 0
        partition.skipped = []

    async def _has_read(self, tp: TopicPartition) -> bool:
        """Whether nothing more is known to be in a partition."""
        end = self._consumer.last_stable_offset(tp)
        if end is None or end < 0:
            end = self._consumer.highwater(tp)
        return end is not None and await self._consumer.position(tp) >= end

    async def _is_at_end(self) -> bool:
        if self._consumer.assignment() != self._open.keys():
            return False
        for tp, partition in self._open.items():
            if partition.chunk is not None or not await self._has_read(tp):
                return False
        return True
