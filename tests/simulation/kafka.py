"""A model of Kafka: logs that grow, a group that rebalances, consumers that fetch in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from aiokafka.structs import TopicPartition

from streamer.kafka.chunk import chunk_of
from streamer.kafka.consumers import Progress
from streamer.kafka.fingerprints import Fingerprint, fingerprint_of
from streamer.settings.event_fields import KINDS
from streamer.worker.runner import Runner
from tests.simulation.process import Process
from tests.support.engines import LogRecord


class Record:
    """A record as the engine takes it from a consumer."""

    __slots__ = ("offset", "timestamp", "value")
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    def __init__(self, record: LogRecord) -> None:
        self.offset, self.timestamp, self.value = record.offset, record.record_ms, record.value


class Logs:
    """Every topic-partition; of each so much is visible as was produced."""

    def __init__(self, records: Iterable[LogRecord], partitions: int) -> None:
        self.records: dict[TopicPartition, list[Record]] = {
            TopicPartition(kind, n): [] for kind in KINDS for n in range(partitions)
        }
        self.order: list[TopicPartition] = []
        for record in records:
            tp = TopicPartition(record.kind, record.partition)
            self.records[tp].append(Record(record))
            self.order.append(tp)
        self.ends = dict.fromkeys(self.records, 0)
        self.produced = 0
        self.written: dict[TopicPartition, list[float]] = {tp: [] for tp in self.records}
        """When each of them was."""

    def produce(self, count: int) -> None:
        """Let the next records in."""
        for tp in self.order[self.produced : self.produced + count]:
            self.ends[tp] += 1
            self.written[tp].append(asyncio.get_running_loop().time())
        self.produced += count

    @property
    def is_complete(self) -> bool:
        return self.produced >= len(self.order)


class SimLog(Process):
    """One worker's consumer: the runner's ``ConsumerPort``."""

    def __init__(self, logs: Logs, dice: Random) -> None:
        super().__init__(dice)
        self.logs = logs
        self.assigned: set[TopicPartition] = set()
        self.positions: dict[TopicPartition, int] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()

    # What the runner asks -------------------------------------------------------------------------

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        await self.pause_a_little()
        for tp, offset in offsets.items():
            if tp in self.assigned:
                self.positions[tp], self.epochs[tp] = offset, epoch

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        await self.pause_a_little()
        return {tp: (0, self.logs.ends[tp]) for tp in tps}

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Fingerprint]:
        await self.pause_a_little()
        found = {tp: self.logs.records[tp][offset] for tp, offset in offsets.items()}
        return {tp: fingerprint_of(r.offset, r.timestamp, r.value) for tp, r in found.items()}

    async def progress(self) -> dict[TopicPartition, Progress]:
        await self.gate()
        return {
            tp: Progress(position, self.logs.ends[tp] - position, position)
            for tp, position in self.positions.items()
        }

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Informative only."""

    def away(self) -> frozenset[str]:
        return frozenset()

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """All are read."""

    def problems(self) -> list[str]:
        return []

    def take_doubted(self) -> set[TopicPartition]:
        return set()

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        return set(tps) <= self.assigned

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        self.paused.update(tps)

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        self.paused.difference_update(tps)

    # What the group and the network do ------------------------------------------------------------

    def assign(self, numbers: Iterable[int]) -> None:
        self.assigned = {TopicPartition(kind, n) for kind in KINDS for n in numbers}
        self.positions.clear()
        self.paused.clear()

    async def fetch(self, runner: Runner, most: int) -> None:
        """Hand chunks over, for ever; a chunk is on its way while other things happen."""
        while True:
            await self.pause_a_little()
            ready = [
                tp
                for tp in sorted(self.positions)
                if tp not in self.paused and self.positions[tp] < self.logs.ends[tp]
            ]
            if not ready:
                await asyncio.sleep(0.7)
                continue
            tp = self.dice.choice(ready)
            start = self.positions[tp]
            end = min(self.logs.ends[tp], start + self.dice.randint(1, most))
            self.positions[tp] = end
            records = self.logs.records[tp][start:end]
            chunk = chunk_of(tp.topic, tp.partition, self.epochs[tp], tp.topic, records)
            await self.pause_a_little(self.dice.choice((0.05, 0.05, 2.0)))
            runner.offer(chunk)
