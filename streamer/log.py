"""What a worker asks of its consumer. The Faust transport is one (``app.ConsumerLog``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from aiokafka.structs import TopicPartition

from streamer.witnesses import Records


class Log(Records, Protocol):
    """The logs of all four topics, as far as they are assigned to this worker."""

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None: ...

    async def progress(self) -> dict[TopicPartition, tuple[int, int | None]]: ...

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    def take_doubted(self) -> set[TopicPartition]: ...

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool: ...

    def pause(self, tps: Iterable[TopicPartition]) -> None: ...

    def resume(self, tps: Iterable[TopicPartition]) -> None: ...
