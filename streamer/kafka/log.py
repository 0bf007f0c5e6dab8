"""What a worker asks of its consumer. The Faust transport is one (``app.ConsumerLog``)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from aiokafka.structs import TopicPartition

from streamer.kafka.fingerprints import Records


class Progress(NamedTuple):
    """How far one topic-partition was fetched: where what was handed out ends, how many offsets
    follow up to the last stable one (None: not known yet), and where the next fetch begins, which
    is later where offsets hold no records. ``asked_at``: when Kafka was asked for that, by the
    monotonic clock."""

    handed_out: int
    behind: int | None
    position: int
    asked_at: float = math.inf


class Log(Records, Protocol):
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
