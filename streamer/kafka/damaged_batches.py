"""Record batches that do not arrive as they were sent: fetched again before they are called lost.

A byte may change on its way although the log is whole, so what is damaged is fetched again, each
time on a new connection and after a longer pause. Only a batch that is damaged each time is handed
on: the core passes it over, and declares it lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from aiokafka.errors import CorruptRecordException, KafkaConnectionError
from aiokafka.structs import TopicPartition

from streamer._core import verify_batches
from streamer.kafka.raw_batches import DamagedBytes
from streamer.settings import limits

_PAUSE_SECONDS = 0.2
"""Where all that could be fetched waits."""
_BROKER_FOUND_IT = CorruptRecordException.errno
_HEADER_BYTES = 12
"""Of the batch behind a damaged one: they say where that one ends."""
_MAX_OFFSET = 2**63 - 1


@dataclass
class _Damage:
    offset: int
    tries: int = 0
    again_at: float = 0.0


class DamagedBatches:
    """The batches of one consumer that arrived damaged. Other threads may call ``problems``."""

    def __init__(self) -> None:
        self._damaged: dict[TopicPartition, _Damage] = {}

    def problems(self) -> dict[TopicPartition, str]:
        """Partitions that wait for such a batch."""
        return {
            tp: f"the record batch at offset {damage.offset} arrived damaged {damage.tries} times; "
            "it is fetched again"
            for tp, damage in self._damaged.copy().items()
        }

    def forget(self, tp: TopicPartition) -> None:
        """Something else is read of the log now."""
        self._damaged.pop(tp, None)

    async def hold_back(self, request: Any) -> Any:
        """Take partitions out of a fetch that are not due yet. Returns an empty answer if all
        are."""
        now = time.monotonic()
        waiting = {tp for tp, damage in self._damaged.items() if damage.again_at > now}
        if not waiting:
            return None
        topics = [
            (topic, [one for one in asked if TopicPartition(topic, one[0]) not in waiting])
            for topic, asked in request.topics
        ]
        request._topics = [(topic, asked) for topic, asked in topics if asked]
        if request.topics:
            return None
        await asyncio.sleep(_PAUSE_SECONDS)
        return SimpleNamespace(API_VERSION=0, topics=[])

    def examine(self, request: Any, response: Any) -> bool:
        """Take what is damaged out of an answer; True if there was any. KafkaConnectionError where
        the answer is none to this request."""
        offsets = {
            TopicPartition(topic, partition): offset
            for topic, asked in request.topics
            for partition, offset, _ in asked
        }
        given = [
            TopicPartition(topic, part[0]) for topic, parts in response.topics for part in parts
        ]
        if not offsets.keys() >= set(given):
            raise KafkaConnectionError("Kafka answered what it was not asked")
        is_damaged = False
        topics = []
        for topic, parts in response.topics:
            kept = [self._examined(TopicPartition(topic, part[0]), offsets, part) for part in parts]
            is_damaged |= any(new is not old for new, old in zip(kept, parts, strict=True))
            topics.append((topic, kept))
        response.topics = topics
        return is_damaged

    def _examined(
        self, tp: TopicPartition, offsets: Mapping[TopicPartition, int], part: Any
    ) -> Any:
        """One partition's part of an answer: the same, or what is whole of it."""
        _, code, end_offset, *_, blob = part
        if code == _BROKER_FOUND_IT:
            self._note(tp, offsets[tp])
            return part
        if code:
            return part
        end_offset = end_offset if end_offset >= 0 else _MAX_OFFSET
        whole = verify_batches(blob, offsets[tp], end_offset)
        if whole is None:
            if blob:
                self.forget(tp)
            return part
        whole_bytes, offset, has_frame = whole
        if self._note(tp, offset) >= limits.DAMAGED_FETCHES and has_frame and not whole_bytes:
            self.forget(tp)
            frame_bytes = _HEADER_BYTES + int.from_bytes(blob[8:12])
            return (*part[:-1], DamagedBytes(blob[: frame_bytes + _HEADER_BYTES]))
        return (*part[:-1], blob[:whole_bytes])

    def _note(self, tp: TopicPartition, offset: int) -> int:
        """How many times it was damaged."""
        damage = self._damaged.get(tp)
        if damage is None or damage.offset != offset:
            damage = self._damaged[tp] = _Damage(offset)
        damage.tries += 1
        pause = min(2.0 ** (damage.tries - 3), limits.RETRY_SECONDS_MAX)
        damage.again_at = time.monotonic() + pause
        return damage.tries
