"""The logs of several clusters as one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.structs import TopicPartition

from streamer.kafka.fingerprints import Fingerprint
from streamer.kafka.log import Log, Progress

Offsets = Mapping[TopicPartition, int]


class JoinedLog:
    """A ``Log`` that asks each cluster for its own topics. ``places``: full name of a topic → the
    ``Log`` of its cluster."""

    def __init__(self, places: Mapping[str, Log]) -> None:
        self._places = places
        self._logs = list(dict.fromkeys(places.values()))

    def _shares(self, tps: Iterable[TopicPartition]) -> list[tuple[Log, list[TopicPartition]]]:
        shares: dict[Log, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            shares[self._places[tp.topic]].append(tp)
        return list(shares.items())

    async def start_at(self, offsets: Offsets, epoch: int) -> None:
        """Seek in all clusters."""
        for log, tps in self._shares(offsets):
            await log.start_at({tp: offsets[tp] for tp in tps}, epoch)

    async def bounds(
        self, tps: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Start and end of each log."""
        return await _joined([log.bounds(some) for log, some in self._shares(tps)])

    async def records_at(self, offsets: Offsets) -> Mapping[TopicPartition, Fingerprint]:
        """The first record of each log at or after an offset."""
        shares = self._shares(offsets)
        return await _joined([log.records_at({tp: offsets[tp] for tp in s}) for log, s in shares])

    async def progress(self) -> dict[TopicPartition, Progress]:
        """How far all were fetched."""
        return await _joined([log.progress() for log in self._logs])

    async def tell_kafka(self, offsets: Offsets) -> None:
        """Each cluster gets its own."""
        for log, tps in self._shares(offsets):
            await log.tell_kafka({tp: offsets[tp] for tp in tps})

    def take_doubted(self) -> set[TopicPartition]:
        """Those of all clusters."""
        return {tp for log in self._logs for tp in log.take_doubted()}

    def away(self) -> frozenset[str]:
        """Those of all clusters."""
        return frozenset(topic for log in self._logs for topic in log.away())

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for log, some in self._shares(tps):
            log.ignore(some)

    def problems(self) -> list[str]:
        """Those of all clusters."""
        return [text for log in self._logs for text in log.problems()]

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        """Whether each cluster's are assigned."""
        return all(log.is_assigned(some) for log, some in self._shares(tps))

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for log, some in self._shares(tps):
            log.pause(some)

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """Each cluster's own."""
        for log, some in self._shares(tps):
            log.resume(some)


async def _joined(questions: Iterable[Any]) -> dict[TopicPartition, Any]:
    """All answers as one; the first error where there is one, once all are done."""
    answers = await asyncio.gather(*questions, return_exceptions=True)
    joined: dict[TopicPartition, Any] = {}
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        joined.update(answer)
    return joined
