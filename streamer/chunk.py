"""A chunk: what one fetch gave of one topic-partition, as the Kafka client made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from streamer.arrays import I64


@dataclass(slots=True)
class Chunk:
    """Records of one topic-partition, in offset order (objects with offset, timestamp, value).

    ``epoch`` counts the seeks of the partition: a chunk fetched before the last one is stale.
    """

    topic: str
    partition: int
    epoch: int
    records: Sequence[Any]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def end_offset(self) -> int:
        return int(self.records[-1].offset) + 1

    def offsets(self) -> I64:
        first, n = self.records[0].offset, len(self.records)
        if self.end_offset - first == n:
            return np.arange(first, first + n)
        return np.fromiter(map(attrgetter("offset"), self.records), np.int64, n)

    def record_ms(self) -> I64:
        """Record timestamps, epoch milliseconds."""
        stamps = map(attrgetter("timestamp"), self.records)
        return np.fromiter(stamps, np.int64, len(self.records))

    def values(self) -> list[bytes | None]:
        return list(map(attrgetter("value"), self.records))

    def without_before(self, offset: int) -> Chunk | None:
        """The records from ``offset`` on."""
        if self.records[0].offset >= offset:
            return self
        kept = [r for r in self.records if r.offset >= offset]
        return Chunk(self.topic, self.partition, self.epoch, kept) if kept else None
