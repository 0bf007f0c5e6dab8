"""Real worker processes on real Kafka and Redis, and the logs they read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import date
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streamer.cli.run import worker_command, worker_environment
from streamer.errors import StoreError
from streamer.ingest.hash_key import HashKey
from streamer.metrics.catalogue import Catalogue
from streamer.settings.event_fields import KINDS
from streamer.settings.load import load
from streamer.settings.model import Settings, Topics
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.restore import load_partition
from streamer.state.store import Store
from tests.support.canonical import Canonical, canonical
from tests.support.engines import LogRecord

SETTLE_SECONDS = 40.0
"""Longest wait for a worker to read a log to its end, on a loaded machine."""
STOP_SECONDS = 20.0


async def until(
    condition: Callable[[], Awaitable[Any]],
    what: str,
    said: Callable[[], str] = str,
    seconds: float = SETTLE_SECONDS,
) -> Any:
    """The first true value of a condition; after the deadline a failure that says ``what``."""
    deadline = time.monotonic() + seconds
    while True:
        value = await condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}\n{said()}")
        await asyncio.sleep(0.1)


class Worker:
    """One worker process; its output goes to a file."""

    def __init__(self, config: Path, output: Path, command: Sequence[str] | None = None) -> None:
        self.output = output
        self.was_killed = False
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                list(command or worker_command()),
                env=worker_environment(str(config)),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    async def stop(self) -> None:
        """SIGTERM; it has to end by itself, without an error. One that has only just been started
        knows no signals yet."""
        self.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.process.wait, STOP_SECONDS)
        assert code == 0 or (code == -signal.SIGTERM and not self.said()), (code, self.said())
        assert "Traceback" not in self.said(), self.said()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.was_killed = True
            self.process.kill()
            self.process.wait()


class Bench:
    """One state in Redis, read from five topics; starts workers and reads what they store."""

    def __init__(self, directory: Path, document: Mapping[str, Any]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config = directory / "streamer.toml"
        self.config.write_text(as_toml(document))
        self.settings: Settings = load(self.config)
        self.store: Store = RedisStore(self.settings.redis)
        self.reader = Reader(self.store)
        self.workers: list[Worker] = []

    def start_worker(self, command: Sequence[str] | None = None) -> Worker:
        output = self.directory / f"worker-{len(self.workers)}.log"
        worker = Worker(self.config, output, command)
        self.workers.append(worker)
        return worker

    async def stop_workers(self) -> None:
        running = [w for w in self.workers if w.process.poll() is None]
        await asyncio.gather(*[w.stop() for w in running])

    def said(self) -> str:
        return "\n".join(w.said() for w in self.workers)

    async def has_read(self, ends: Mapping[tuple[str, int], int]) -> bool:
        """Whether everything is committed, the watermarks of idle topics stand where they
        end, and metrics of users are of the last commit."""
        try:
            await self.reader.refresh()
        except StoreError:  # a restarted server has closed our connection
            return False
        manifests = self.reader.manifests
        skew_ms = self.settings.time.max_skew_ms
        for number in {number for _, number in ends}:
            if number not in manifests:
                return False
            if manifests[number].users_behind_ms:
                return False
            topics = manifests[number].topics
            newest = max(t.arrival_ms for t in topics.values())
            for kind, topic in topics.items():
                if topic.next_offset != ends.get((kind, number), 0):
                    return False
                if topic.idle_ms != newest - skew_ms:
                    return False
        return True

    async def settle(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Wait until all is read, and all that can be settled is."""

        async def done() -> bool:
            for worker in self.workers:
                assert worker.was_killed or worker.process.poll() in (None, 0), worker.said()
            return await self.has_read(ends)

        try:
            await until(done, "the logs are read to their ends")
        except AssertionError:
            found = {
                n: {k: (t.next_offset, t.idle_ms) for k, t in m.topics.items()}
                for n, m in self.reader.manifests.items()
            }
            raise AssertionError(f"{found} instead of {dict(ends)}\n{self.said()}") from None

    async def hash_key(self) -> HashKey:
        """The key that the first worker has made."""
        key = await self.store.hash_key()
        assert key is not None
        return key

    async def states(self, partitions: int) -> list[Canonical]:
        """The stored partitions, recovered from a copy: nothing in the store changes."""
        copy, key = MemoryStore(), await self.hash_key()
        found = []
        for number in range(partitions):
            stored = await self.store.read(number)
            if stored.manifest:
                names = sorted(decode(stored.manifest).blob_names())
                blobs = await self.store.blobs(number, names)
                copy.states[number] = stored
                copy.held[number] = {n: b for n, b in zip(names, blobs, strict=True) if b}
            partition = Partition(self.settings, Catalogue(self.settings), key)
            claim, _ = await copy.claim(number)
            await load_partition(copy, number, partition, claim, stored)
            found.append(canonical(partition))
        return found


@contextlib.asynccontextmanager
async def bench(directory: Path, document: Mapping[str, Any]) -> AsyncIterator[Bench]:
    """A ``Bench`` whose workers are gone afterwards."""
    made = Bench(directory, document)
    try:
        yield made
    finally:
        for worker in made.workers:
            worker.kill()
        await made.store.close()


def document_of(
    brokers: str, topics: Topics, redis_url: str, prefix: str, more: Mapping[str, Any]
) -> dict[str, Any]:
    """A settings file for these servers; the group is called like the prefix."""
    names = topics.named
    return {
        **more,
        "kafka": {
            "brokers": brokers,
            "group": prefix,
            "topics": names,
            "session_timeout": "10s",
        },
        "redis": {"url": redis_url, "prefix": prefix},
    }


def as_toml(document: Mapping[str, Any]) -> str:
    """TOML of nested dicts and lists, every table inline."""

    def inline(value: Any) -> str:
        if isinstance(value, Mapping):
            pairs = ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items())
            return f"{{ {pairs} }}"
        if isinstance(value, list):
            return f"[{', '.join(map(inline, value))}]"
        return value.isoformat() if isinstance(value, date) else json.dumps(value)

    return "".join(f"{key} = {inline(value)}\n" for key, value in document.items())


async def produce(
    brokers: str, topics: Topics, records: Iterable[LogRecord], compression: str | None = "lz4"
) -> None:
    """Each record to its partition with its timestamp, in the given order."""
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers,
        compression_type=compression,
        max_request_size=4_000_000,
        linger_ms=2,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                getattr(topics, record.kind),
                record.value,
                partition=record.partition,
                timestamp_ms=record.record_ms,
            )
            for record in records
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


def ends_of(records: Iterable[LogRecord]) -> dict[tuple[str, int], int]:
    """Where each log ends, for every topic of every partition that holds anything."""
    ends: dict[tuple[str, int], int] = {}
    for record in records:
        for kind in KINDS:
            ends.setdefault((kind, record.partition), 0)
        ends[record.kind, record.partition] = record.offset + 1
    return ends


async def read_topic(brokers: str, topic: str, partitions: int) -> list[Any]:
    """All records of a topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers)
    await consumer.start()
    try:
        tps = [TopicPartition(topic, n) for n in range(partitions)]
        consumer.assign(tps)
        await consumer.seek_to_beginning(*tps)
        ends = await consumer.end_offsets(tps)
        records: list[Any] = []
        behind = {tp for tp in tps if ends[tp]}
        while behind:
            for some in (await consumer.getmany(*behind, timeout_ms=1000)).values():
                records += some
            behind = {tp for tp in behind if await consumer.position(tp) < ends[tp]}
        return records
    finally:
        await consumer.stop()


def halves(records: Sequence[LogRecord]) -> Iterator[list[LogRecord]]:
    """The log's first and second half, in time."""
    middle = len(records) // 2
    yield list(records[:middle])
    yield list(records[middle:])
