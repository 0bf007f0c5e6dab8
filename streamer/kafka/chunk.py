"""A chunk: what one fetch gave of one topic-partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from streamer._core import Core
from streamer.encoding.arrays import I64
from streamer.kafka.raw_batches import RawBatches

Fed = tuple[int, tuple[int, int, int] | None, Sequence[tuple[int, int, str]], Sequence[int], bool]
"""What the core says it was fed: how many records, the last of them, skipped ranges, the ids of the
schemas without which the next record, and others after it, cannot be read, and whether the time was
up before the end."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one log, in offset order. ``beside``: their keys and headers (as Kafka sends
    them), where they are looked at."""

    log: str
    offset: I64
    record_ms: I64
    values: Sequence[bytes | None]
    beside: Sequence[tuple[bytes | None, bytes]] = ()

    def __len__(self) -> int:
        return len(self.offset)

    def feed(self, core: Core, most_ms: int | None = None) -> Fed:
        """Into the core, from the log's next offset on."""
        return core.feed_records(self.log, self.offset, self.record_ms, self.values, self.beside)


@dataclass(frozen=True, slots=True)
class Batches:
    """Record batches of one log as Kafka sent them, with the aborted transactions that go with
    them (producer id, first offset), and how many records they hold at most."""

    log: str
    data: bytes
    aborted: Sequence[tuple[int, int]]
    rows: int

    def __len__(self) -> int:
        return self.rows

    def feed(self, core: Core, most_ms: int | None = None) -> Fed:
        """Into the core, from the log's next offset on; after so long the rest is left."""
        return core.feed_batches(self.log, self.data, self.aborted, most_ms)


@dataclass(slots=True)
class Chunk:
    """Records of one topic-partition, in offset order.

    ``epoch`` counts the seeks of the partition: a chunk fetched before the last one is stale.
    """

    topic: str
    partition: int
    epoch: int
    content: Records | Batches
    first_ms: int
    """Timestamp of the first record."""
    end_offset: int
    """Where the next fetch begins."""
    received_at: float = 0.0
    """When it was there, by the monotonic clock."""

    def __len__(self) -> int:
        return len(self.content)

    @property
    def log(self) -> str:
        """Name of the log it is of."""
        return self.content.log


def encoded_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Headers as Kafka sends them, without their number: lengths are zigzag varints.

    >>> encoded_headers([("type", b"click"), ("x", None)])
    b'\\x08type\\nclick\\x02x\\x01'
    """
    parts = []
    for name, value in headers:
        for piece in (name.encode(), value):
            length = 1 if piece is None else 2 * len(piece)
            while length > 127:
                parts.append(bytes([length & 127 | 128]))
                length >>= 7
            parts.append(bytes([length]) + (piece or b""))
    return b"".join(parts)


def chunk_of(topic: str, partition: int, epoch: int, log: str, fetched: Sequence[Any]) -> Chunk:
    """A chunk of what a consumer gave: ``RawBatches``, or records (objects with offset, timestamp
    and value)."""
    first = fetched[0]
    if type(first) is RawBatches:
        content = Batches(log, first.data, first.aborted, first.records)
        return Chunk(topic, partition, epoch, content, first.first_ms, first.next_offset)
    n = len(fetched)
    records = Records(
        log,
        np.fromiter(map(attrgetter("offset"), fetched), np.int64, n),
        np.fromiter(map(attrgetter("timestamp"), fetched), np.int64, n),
        list(map(attrgetter("value"), fetched)),
        [(record.key, encoded_headers(record.headers)) for record in fetched],
    )
    return Chunk(topic, partition, epoch, records, first.timestamp, fetched[-1].offset + 1)
