"""A runner of one partition on the store in memory, a scripted log, and how to wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka.errors import KafkaTimeoutError
from aiokafka.structs import TopicPartition

from streamer.ingest.dead_letters import DeadLetter
from streamer.kafka.chunk import chunk_of
from streamer.kafka.consumers import Progress
from streamer.kafka.fingerprints import Fingerprint, fingerprint_of
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.worker.partition_task import PartitionTask
from streamer.worker.runner import Runner

START_MS = 1_700_000_000_000
TPS = [TopicPartition(kind, 0) for kind in KINDS]
DEADLINE_SECONDS = 10.0


class ScriptedLog:
    """A consumer that gives nothing by itself; it notes where it was told to start."""

    def __init__(self) -> None:
        self.handed_out = dict.fromkeys(TPS, 0)
        self.failures = 0
        self.assigned = True
        self.starts: list[dict[TopicPartition, int]] = []
        self.gone: set[TopicPartition] = set()
        self.start_offset = 0
        self.records: dict[tuple[TopicPartition, int], Fingerprint] = {}

    async def start_at(self, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        self.starts.append(dict(offsets))
        if self.failures:
            self.failures -= 1
            raise KafkaTimeoutError("no answer in time")

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        return dict.fromkeys(tps, (self.start_offset, 1000000))

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Fingerprint]:
        return {tp: self.records[tp, n] for tp, n in offsets.items() if (tp, n) in self.records}

    async def progress(self) -> dict[TopicPartition, Progress]:
        return {tp: Progress(n, 0, n) for tp, n in self.handed_out.items()}

    async def tell_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Nobody looks."""

    def away(self) -> frozenset[str]:
        return frozenset()

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        """All are read."""

    def problems(self) -> list[str]:
        return []

    def take_doubted(self) -> set[TopicPartition]:
        gone, self.gone = self.gone, set()
        return gone

    def is_assigned(self, tps: object) -> bool:
        return self.assigned

    def pause(self, tps: object) -> None:
        """Nothing is fetched anyway."""

    def resume(self, tps: object) -> None:
        """Nothing is fetched anyway."""


async def _sent(letters: Sequence[DeadLetter]) -> None:
    """A dead-letter topic that takes everything."""


class Bench:
    """A runner of partition 0 and what feeds it."""

    def __init__(self, store: MemoryStore, flush_ms: int = 20, gather_rows: int = 10) -> None:
        self.settings = parse({"limits": {"flush_ms": flush_ms, "gather_rows": gather_rows}})
        self.store, self.log = store, ScriptedLog()
        self.runner = Runner(self.settings, store, self.log, "worker")
        self.runner.dead_letters.send = _sent  # type: ignore[method-assign]
        self.sent = dict.fromkeys(KINDS, 0)
        self.run: asyncio.Task[None] | None = None

    @property
    def task(self) -> PartitionTask:
        return self.runner.partitions[0]

    def offer(self, kind: str, n: int, at_ms: int, value: bytes | None = None) -> None:
        """Hand over the next records."""
        self.offer_again(kind, self.sent[kind], n, at_ms, value)

    def offer_again(
        self, kind: str, first: int, n: int, at_ms: int, value: bytes | None = None
    ) -> None:
        """Hand over records from an offset on."""
        records = []
        for offset in range(first, first + n):
            event = {"ts": at_ms, "user_id": f"u{offset}", "item_id": "i"}
            raw = json.dumps(event).encode() if value is None else value
            records.append(
                SimpleNamespace(offset=offset, timestamp=at_ms, value=raw, key=None, headers=())
            )
            tp = TopicPartition(kind, 0)
            self.log.records[tp, offset] = fingerprint_of(offset, at_ms, raw)
        self.sent[kind] = first + n
        self.log.handed_out[TopicPartition(kind, 0)] = self.sent[kind]
        self.runner.offer(chunk_of(kind, 0, self.task.epochs.get(kind, 0), kind, records))

    async def stored_events(self) -> int:
        """Impressions that the store holds."""
        _, stored = "", await self.store.read(0)
        partition = Partition(
            self.settings, self.runner.catalogue, decode(stored.manifest).hash_key
        )
        copy = MemoryStore()
        copy.states, copy.held = dict(self.store.states), dict(self.store.held)
        await load_partition(copy, 0, partition, "reader", stored)
        return int(partition.core.state()["logs"]["impressions"]["counters"]["accepted"])


async def until(true: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[Bench]:
    await bench.runner.assign([0])
    bench.run = asyncio.create_task(bench.runner.run())
    try:
        yield bench
    finally:
        await bench.runner.stop()  # while it runs, as the application does
        bench.run.cancel()
