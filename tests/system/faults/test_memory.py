"""While Redis is away a worker holds a bounded part of what waits, and nothing is lost; beyond its
own memory it goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.errors import StoreError
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.lanes import long
from tests.support.workers import Worker, bench, document_of, produce, until
from tests.system.faults.load import Load

AWAY_SECONDS, EVENTS = 12, 100_000
START_MS = 1_700_000_000_000
NOTE = "x" * 1000
GROWTH_BYTES = 120_000_000
"""Longest a worker may grow: what it may queue, and four fetches of at most 4 MB on their way."""


def log() -> Iterator[LogRecord]:
    """A kilobyte a record."""
    for n in range(EVENTS):
        event = {"ts": START_MS + n, "user_id": f"u{n % 999}", "item_id": "i", "note": f"{n}{NOTE}"}
        yield LogRecord("impressions", 0, n, START_MS + n, json.dumps(event).encode())


def memory_bytes(worker: Worker) -> int:
    """Resident memory."""
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    line = next(x for x in status.splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


@long
@pytest.mark.timeout(120)
async def test_memory_is_bounded_while_redis_is_away(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path
) -> None:
    server = make_redis(appendonly=True)
    limits = {"inbox_records": 20_000, "gather_rows": 1000}
    names = topics(partitions=1)
    document = document_of(kafka, names, server.url, "memory", {"limits": limits})
    records = list(log())
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()

        async def counted() -> int:
            with contextlib.suppress(StoreError):  # a restarted server has closed our connection
                await made.reader.refresh()
            return sum(
                m.topics["impressions"].counters["accepted"] for m in made.reader.manifests.values()
            )

        async with Load(kafka, names, records[:1000], 1.0):
            await until(counted, "the first events are counted", made.said)
        before = memory_bytes(worker)
        server.kill()
        most = 0
        async with Load(kafka, names, records[1000:], AWAY_SECONDS / 2):
            for _ in range(AWAY_SECONDS * 2):
                await asyncio.sleep(0.5)
                most = max(most, memory_bytes(worker))
        assert worker.process.poll() is None
        server.start()

        async def all_counted() -> bool:
            return await counted() == EVENTS

        await until(all_counted, "everything is counted", made.said, 120)
        await made.stop_workers()
    waited = sum(len(r.value or b"") for r in records[1000:])
    print(
        f"{waited / 1e6:.0f} MB waited in Kafka; the worker grew by {(most - before) / 1e6:.0f} MB"
    )
    assert most - before < GROWTH_BYTES


SHOWN, MEGABYTES = 1_000_000, 230


def shown() -> Iterator[LogRecord]:
    """Impressions, each a slate of its own, all within the time in which clicks may join them."""
    for n in range(SHOWN):
        ids = {"user_id": f"u{n}", "item_id": f"i{n % 999}", "request_id": f"r{n}"}
        yield LogRecord(
            "impressions", 0, n, START_MS + n, json.dumps({"ts": START_MS, **ids}).encode()
        )


@long
@pytest.mark.timeout(300)
async def test_a_worker_goes_on_beyond_its_memory(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=1)
    more = {"limits": {"worker_memory_mb": MEGABYTES}, "metrics": {"families": ["traffic"]}}
    document = document_of(kafka, names, redis_url, redis_prefix, more)
    async with bench(tmp_path, document) as made:
        await produce(kafka, names, shown())
        worker, most = made.start_worker(), 0

        async def all_counted() -> bool:
            nonlocal most
            await made.reader.refresh()
            most = max(most, memory_bytes(worker))
            return (
                sum(
                    m.topics["impressions"].counters["accepted"]
                    for m in made.reader.manifests.values()
                )
                == SHOWN
            )

        await until(all_counted, "everything is counted", made.said, 200)
        (manifest,) = made.reader.manifests.values()
        print(f"at most {most >> 20} MB; {manifest.counters}")
        assert manifest.counters["evicted_early.impressions"] > 0
        assert manifest.counters["evicted_early.event_ids"] == 0
        assert most < (MEGABYTES << 20) + GROWTH_BYTES  # what is fetched comes on top
        await made.stop_workers()
