"""Drive the engine from a list of records, in any chunks and interleaving."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings
from streamer.state.partition import Partition


@dataclass(frozen=True)
class LogRecord:
    """One record of a log, as Kafka would give it."""

    kind: str
    partition: int
    offset: int
    record_ms: int
    value: bytes | None


@dataclass(frozen=True)
class LogChunk:
    """Records of one topic-partition, in offset order."""

    kind: str
    partition: int
    records: Sequence[LogRecord]


def chunks_of(
    records: Iterable[LogRecord], size: int, seed: int | None = None
) -> Iterator[LogChunk]:
    """Cut logs into chunks of at most ``size``; with a seed, of random sizes and interleaved at
    random between topics and partitions. Each topic-partition stays in offset order."""
    logs: dict[tuple[str, int], list[LogRecord]] = {}
    for record in records:
        logs.setdefault((record.kind, record.partition), []).append(record)
    dice = random.Random(seed)
    while logs:
        key = dice.choice(sorted(logs)) if seed is not None else next(iter(logs))
        n = dice.randint(1, size) if seed is not None else size
        log = logs[key]
        yield LogChunk(*key, log[:n])
        logs[key] = log[n:]
        if not logs[key]:
            del logs[key]


def records_of(chunk: LogChunk) -> Records:
    """What a partition is fed."""
    offset = np.array([r.offset for r in chunk.records], np.int64)
    record_ms = np.array([r.record_ms for r in chunk.records], np.int64)
    return Records(chunk.kind, offset, record_ms, [r.value for r in chunk.records])


class Engines:
    """The partitions of one run, fed chunk by chunk."""

    def __init__(self, settings: Settings, partitions: int, key: HashKey = FIXED_KEY) -> None:
        self.settings, self.key = settings, key
        self.catalogue = Catalogue(settings)
        self.partitions = [Partition(settings, self.catalogue, key) for _ in range(partitions)]
        self.dead: list[tuple[str, int, int, str]] = []

    def feed(self, chunk: LogChunk) -> None:
        """Apply a chunk in its partition, and collect what is rejected."""
        applied = self.partitions[chunk.partition].apply([records_of(chunk)])
        self.dead += [(x.log, chunk.partition, x.offset, x.reason) for x in applied.rejected]

    def finish(self) -> None:
        """Every topic was read to its end."""
        for partition in self.partitions:
            partition.apply((), at_end=list(partition.logs))
