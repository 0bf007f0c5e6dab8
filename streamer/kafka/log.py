"""What a worker asks of its consumer. The Faust transport is one (``app.ConsumerLog``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from aiokafka.structs import TopicPartition

from streamer.kafka.fingerprints import Records


class Progress(NamedTuple):
    """How far one topic-partition was fetched: where what was handed out ends, how many offsets
    follow up to the last stable one (None: not known yet), and where the next fetch begins, which
    is later where offsets hold no records."""

    handed_out: int
    behind: int | None
    position: int


class Log(Records, Protocol):
    """The logs of all four topics, as far as they are assigned to this worker."""

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None: ...

    async def progress(self) -> dict[TopicPartition, Progress]: ...

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    def take_doubted(self) -> set[TopicPartition]: ...

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool: ...

    def pause(self, tps: Iterable[TopicPartition]) -> None: ...

    def resume(self, tps: Iterable[TopicPartition]) -> None: ...
