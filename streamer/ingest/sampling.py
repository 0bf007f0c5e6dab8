"""The last records of each topic, decoded: what ``streamer check`` looks at."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from streamer.errors import BrokerError
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.keying import PARTITIONERS, Keying, keying_of
from streamer.ingest.lookup import Beside
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import IGNORED, record_decoder
from streamer.kafka.admin import TopicDescription
from streamer.kafka.chunk import encoded_headers
from streamer.kafka.client import client_settings
from streamer.kafka.topics import admin_client, partition_count, partitions_of
from streamer.settings import limits
from streamer.settings.clusters import Cluster
from streamer.settings.logs import Log
from streamer.settings.model import Settings

RECORDS = 200
"""Of each partition."""
_NAMED = 20
"""Topics that a message names at most."""
_SECONDS = 10.0
_WAIT_MS = 50
"""Other requests to a broker wait behind a fetch that waits for records."""


@dataclass
class Sample:
    """What was found in the last records of one topic."""

    topic: str
    partitions: int
    records: int = 0
    ignored: int = 0
    refused: list[tuple[bytes | None, str, Beside]] = field(default_factory=list)
    """Records that would be rejected, with the reason."""
    users: set[tuple[bytes, int]] = field(default_factory=set)
    """Users seen, with the partition they were seen on."""
    starts: dict[int, int] = field(default_factory=dict)
    """Partition → its first offset."""
    ends: dict[int, int] = field(default_factory=dict)
    """Partition → the offset after its last record."""
    unread_ms: dict[int, int] = field(default_factory=dict)
    """Partition → timestamp of the first record that no worker has read, where there is one."""

    def partitioner(self) -> str | None:
        """The partitioner that explains where all users are; None where none does."""
        for name, place in PARTITIONERS.items():
            if all(place(user, self.partitions) == at for user, at in self.users):
                return name
        return None


async def sample_topics(
    settings: Settings,
    topics: dict[str, TopicDescription],
    read: Mapping[tuple[str, int], int] | None,
    seen: ReadSample | None = None,
) -> dict[str, Sample]:
    """A sample of each topic, by the name of its log; BrokerError where they cannot be read.

    ``read``: (log, partition) → the next offset of the stored state, where there is one; None:
    nobody asks for what is unread. ``seen``: takes in all records.
    """
    samples = {}
    for cluster in settings.read_clusters:
        logs = [log for log in settings.logs_in(cluster) if log.name in topics]
        if not logs:
            continue
        async with connected(cluster) as consumer:
            for log in logs:
                partitions = topics[log.name].partitions
                sample = await _sample(settings, consumer, log, partitions, seen)
                if read is not None:
                    await _look_at_unread(consumer, sample, log, read)
                samples[log.name] = sample
    return samples


@contextlib.asynccontextmanager
async def connected(cluster: Cluster) -> AsyncIterator[Any]:
    """A connected consumer of no topic; BrokerError where the cluster cannot be read."""
    consumer = AIOKafkaConsumer(
        **client_settings(cluster.connection, cluster.section),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=_WAIT_MS,
    )
    try:
        await consumer.start()
        yield consumer
    except (KafkaError, OSError) as error:
        reason = str(error) or type(error).__name__
        where = "" if cluster.name is None else f"; at {cluster.place}"
        raise BrokerError(f"cannot read the topics: {reason}{where}") from error
    finally:
        await consumer.stop()


async def sample_last(settings: Settings, topics: Sequence[str]) -> list[SampledTopic]:
    """The last records of some topics, without names of all that are neither Kafka's own nor dead
    letters; BrokerError where they cannot be read, or there are none."""
    async with admin_client(settings.kafka) as client:
        existing = {str(name) for name in await client.list_topics()}
        left = {name for name in existing if not name.startswith("_")}
        wanted = list(topics) or sorted(left - {settings.kafka.topics.dead_letters})
        missing = [name for name in wanted if name not in existing]
        if missing or not wanted:
            there = ", ".join(sorted(left)[:_NAMED]) or "none"
            named = ", ".join(map(repr, missing)) or "with records"
            raise BrokerError(
                f"no topic {named} at {settings.kafka.brokers}: there are {there}; name one with "
                "--topic"
            )
        described = await partitions_of(client, wanted)
    if len(wanted) > limits.MAX_SOURCES:
        raise BrokerError(
            f"{len(wanted)} topics at {settings.kafka.brokers}: name at most {limits.MAX_SOURCES} "
            "with --topic"
        )
    async with connected(settings.read_clusters[0]) as consumer:
        samples = []
        for name in wanted:
            places = [TopicPartition(name, p["partition"]) for p in described.get(name, [])]
            each = max(1, min(RECORDS, limits.DISCOVERED_RECORDS // max(1, len(places))))
            records = await _last_records(consumer, places, each)
            samples.append(SampledTopic(name, _found(records, len(wanted))))
        return samples


def _found(records: Sequence[Any], topics: int) -> list[FoundRecord]:
    """The records that have a value, in bounds."""
    kept, held_bytes = [], 0
    for record in records:
        held_bytes += len(record.value or b"")
        if held_bytes > limits.DISCOVERED_BYTES // topics:
            break
        if record.value is not None:
            kept.append(_as_found(record))
    return kept


def _as_found(record: Any) -> FoundRecord:
    headers = {n: value.decode(errors="replace") for n, value in record.headers if value}
    beside = (record.key, headers, encoded_headers(record.headers), record.timestamp)
    return FoundRecord(record.value or b"", *beside, record.partition, record.offset)


async def look_at_keys(settings: Settings) -> dict[str, Keying]:
    """Log → whether its topic is keyed by user, as far as its last records say it; BrokerError
    where they cannot be read."""
    count = await partition_count(settings)
    described = {
        name: TopicDescription(log.topic, count, {}) for name, log in settings.logs.items()
    }
    samples = await sample_topics(settings, described, None)
    places = {name: sample.users for name, sample in samples.items()}
    shown = (name for name, log in settings.logs.items() if "impressions" in log.kinds)
    return keying_of(places, count, next(shown, next(iter(places))))


async def _sample(
    settings: Settings, consumer: Any, log: Log, partitions: int, seen: ReadSample | None
) -> Sample:
    tps = [TopicPartition(log.plain, partition) for partition in range(partitions)]
    sample = Sample(log.topic, partitions)
    decoder = record_decoder(settings)
    for record in await _last_records(consumer, tps):
        sample.records += 1
        found = _as_found(record)
        beside = (record.key, found.encoded_headers, record.timestamp)
        events = decoder.decode_all(log.name, record.value, *beside)
        if seen is not None:
            seen.add(log.name, found, events)
        for event in events:
            if event == IGNORED:
                sample.ignored += 1
            elif isinstance(event, str):
                sample.refused.append((record.value, event, beside))
            elif event["key"]:
                sample.users.add((event["key"].encode(), record.partition))
    return sample


async def _look_at_unread(
    consumer: Any, sample: Sample, log: Log, read: Mapping[tuple[str, int], int]
) -> None:
    """Fill ``starts``, ``ends`` and ``unread_ms``."""
    tps = [TopicPartition(log.plain, partition) for partition in range(sample.partitions)]
    consumer.assign(tps)
    ends = await consumer.end_offsets(tps)
    starts = await consumer.beginning_offsets(tps)
    sample.starts = {tp.partition: start for tp, start in starts.items()}
    sample.ends = {tp.partition: end for tp, end in ends.items()}
    nexts = {p: max(starts[p], read.get((log.name, p.partition), 0)) for p in tps}
    unread = {tp for tp in tps if nexts[tp] < ends[tp]}
    if not unread:
        return
    consumer.assign(list(unread))
    for tp in unread:
        consumer.seek(tp, nexts[tp])
    deadline = time.monotonic() + _SECONDS
    while unread and time.monotonic() < deadline:
        records_of = await consumer.getmany(*unread, timeout_ms=500, max_records=1)
        for tp, records in records_of.items():
            sample.unread_ms[tp.partition] = records[0].timestamp
            unread.discard(tp)


async def _last_records(consumer: Any, tps: list[TopicPartition], most: int = RECORDS) -> list[Any]:
    """At most so many of each partition, by timestamp."""
    consumer.assign(tps)
    ends = await consumer.end_offsets(tps)
    starts = await consumer.beginning_offsets(tps)
    records_of: dict[TopicPartition, list[Any]] = {p: [] for p in tps if ends[p] > starts[p]}
    if not records_of:
        return []
    consumer.assign(list(records_of))
    for tp in records_of:
        consumer.seek(tp, max(starts[tp], ends[tp] - most))
    deadline = time.monotonic() + _SECONDS
    unread = set(records_of)
    while unread and time.monotonic() < deadline:
        for tp, records in (await consumer.getmany(timeout_ms=500)).items():
            records_of[tp] += records
        for tp in list(unread):
            if await position_of(consumer, tp) >= ends[tp]:
                unread.discard(tp)
    last = (record for records in records_of.values() for record in records[-most:])
    return sorted(last, key=lambda record: record.timestamp)


async def position_of(consumer: Any, place: TopicPartition) -> int:
    """Where the next fetch begins."""
    return int(await asyncio.wait_for(consumer.position(place), _SECONDS))
