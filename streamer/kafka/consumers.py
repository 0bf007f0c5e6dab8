"""What a worker asks of its consumer, and the consumers of several clusters as one. The Faust
transport is one (``app.ConsumerLog``)."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aiokafka.structs import TopicPartition

from streamer.kafka.fingerprints import Fingerprint, RecordLookup

Offsets = Mapping[TopicPartition, int]


class Progress(NamedTuple):
    """How far one topic-partition was fetched: where what was handed out ends, how many offsets
    follow up to the last stable one (None: not known yet), and where the next fetch begins, which
    is later where offsets hold no records. ``asked_at``: when Kafka was asked for that, by the
    monotonic clock."""

    handed_out: int
    behind: int | None
    position: int
    asked_at: float = math.inf


class ConsumerPort(RecordLookup, Protocol):
    """The logs of all topics, as far as they are assigned to this worker."""

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        """Seek to these offsets; chunks fetched from then on carry ``epoch``."""

    async def progress(self) -> dict[TopicPartition, Progress]:
        """How far each assigned topic-partition was fetched; empty while the consumer stops."""

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets to Kafka for lag tools only; failures are ignored."""

    def take_doubted(self) -> set[TopicPartition]:
        """Topic-partitions whose log may have changed since the last call: truncated or
        recreated."""

    def away(self) -> Collection[str]:
        """Topics that cannot be read now, because their cluster cannot be reached."""

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch nothing of these, though they are assigned."""

    def problems(self) -> list[str]:
        """What keeps records from being fetched, in words."""

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        """Whether Kafka has assigned all of these to this worker."""

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Stop fetching these until ``resume``."""

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch these again; those no longer assigned are ignored."""


class JoinedConsumers:
    """The consumers of several clusters as one, which asks each for its own topics. ``by_topic``:
    full name of a topic → the consumer of its cluster."""

    def __init__(self, by_topic: Mapping[str, ConsumerPort]) -> None:
        self._by_topic = by_topic
        self._consumers = list(dict.fromkeys(by_topic.values()))

    def _shares(
        self, tps: Iterable[TopicPartition]
    ) -> list[tuple[ConsumerPort, list[TopicPartition]]]:
        shares: dict[ConsumerPort, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            shares[self._by_topic[tp.topic]].append(tp)
        return list(shares.items())

    async def start_at(self, offsets: Offsets, epoch: int) -> None:
        """Seek in all clusters."""
        for consumer, tps in self._shares(offsets):
            await consumer.start_at({tp: offsets[tp] for tp in tps}, epoch)

    async def bounds(
        self, tps: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Start and end of each log."""
        return await _joined([consumer.bounds(own) for consumer, own in self._shares(tps)])

    async def records_at(self, offsets: Offsets) -> Mapping[TopicPartition, Fingerprint]:
        """The first record of each log at or after an offset."""
        shares = self._shares(offsets)
        return await _joined(
            [consumer.records_at({tp: offsets[tp] for tp in s}) for consumer, s in shares]
        )

    async def progress(self) -> dict[TopicPartition, Progress]:
        """How far all were fetched."""
        return await _joined([consumer.progress() for consumer in self._consumers])

    async def tell_kafka(self, offsets: Offsets) -> None:
        """Each cluster gets its own."""
        for consumer, tps in self._shares(offsets):
            await consumer.tell_kafka({tp: offsets[tp] for tp in tps})

    def take_doubted(self) -> set[TopicPartition]:
        """Those of all clusters."""
        return {tp for consumer in self._consumers for tp in consumer.take_doubted()}

    def away(self) -> frozenset[str]:
        """Those of all clusters."""
        return frozenset(topic for consumer in self._consumers for topic in consumer.away())

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for consumer, own in self._shares(tps):
            consumer.ignore(own)

    def problems(self) -> list[str]:
        """Those of all clusters."""
        return [text for consumer in self._consumers for text in consumer.problems()]

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        """Whether each cluster's are assigned."""
        return all(consumer.is_assigned(own) for consumer, own in self._shares(tps))

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for consumer, own in self._shares(tps):
            consumer.pause(own)

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for consumer, own in self._shares(tps):
            consumer.resume(own)


async def _joined(questions: Iterable[Any]) -> dict[TopicPartition, Any]:
    """All answers as one; the first error where there is one, once all are done."""
    answers = await asyncio.gather(*questions, return_exceptions=True)
    joined: dict[TopicPartition, Any] = {}
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        joined.update(answer)
    return joined
