"""The promise: whatever workers, batches, interleavings and restarts, the same numbers.

Real worker processes read a log with every complication from Kafka; what they store in Redis is
compared with the oracle, and with the engine fed in this process.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamer.settings.model import Topics
from streamer.testing.embedded import create_topics, delete_topics
from tests.support.agreement import DOCUMENTS
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    Case,
    check_dead_letters,
    check_readings,
    check_shown,
    check_states,
    random_case,
    readings_of,
)
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.lanes import long, sized
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    halves,
    produce,
    until,
)

LINES, SEED = sized(4_000, 20_000), 1


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(DOCUMENTS["few values"], LINES, SEED)


@pytest.fixture(scope="module")
def produced(kafka: str, case: Case) -> Iterator[Topics]:
    """Topics that hold the whole log before any worker starts."""
    tag = uuid.uuid4().hex[:8]
    topics = Topics(**{name: f"{name}-{tag}" for name in Topics.__struct_fields__})

    async def make() -> None:
        await create_topics(kafka, list(topics.named.values()), 4)
        await produce(kafka, topics, case.log)

    asyncio.run(make())
    yield topics
    names = list(topics.named.values())
    asyncio.run(delete_topics(kafka, names))


@long
async def test_one_worker(
    kafka: str, produced: Topics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    document = document_of(kafka, produced, redis_url, redis_prefix, DOCUMENTS["few values"])
    async with bench(tmp_path, document) as made:
        made.start_worker()
        await made.settle(ends_of(case.log))
        expected = await readings_of(made, case.records)
        await check_shown(made, expected)
        await made.stop_workers()
        await check_shown(made, expected)
        await check_states(made, case)
        await check_dead_letters(kafka, produced, case)
        counted = sum(m.dead_letters for m in made.reader.manifests.values())
        assert counted == len(case.dead)


@long
async def test_three_workers_and_other_batch_sizes(
    kafka: str, produced: Topics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    more = {**DOCUMENTS["few values"], "limits": {"gather_rows": 100, "flush_ms": 30}}
    document = document_of(kafka, produced, redis_url, redis_prefix, more)
    async with bench(tmp_path, document) as made:
        for _ in range(3):
            made.start_worker()
        await made.settle(ends_of(case.log))
        await check_readings(made, case.records)
        await made.stop_workers()
        await check_states(made, case)
        assert [await made.store.owner(n) for n in range(PARTITIONS)] == [None] * PARTITIONS


@long
async def test_whole_topics_one_after_the_other_and_a_restart(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    more = {**DOCUMENTS["few values"], "limits": {"gather_rows": 1, "flush_ms": 1000}}
    document = document_of(kafka, made_topics, redis_url, redis_prefix, more)
    async with bench(tmp_path, document) as made:
        read: list[LogRecord] = []
        for half in halves(case.log):
            await produce(kafka, made_topics, sorted(half, key=lambda r: r.kind, reverse=True))
            read += half
            made.start_worker()
            await made.settle(ends_of(read))
            await made.stop_workers()
        await check_readings(made, case.records)
        await check_states(made, case)
        letters = await check_dead_letters(kafka, made_topics, case)
        assert letters == len(case.dead)  # nothing failed: each exactly once


@pytest.fixture(scope="module")
def live() -> Case:
    """Clocks may differ by days: so no topic overtakes another while they are being written."""
    return random_case(LIVE, sized(1_200, 8_000), 2)


@long
async def test_a_second_worker_joins_and_the_first_leaves_while_events_come(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, live: Case
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, LIVE)
    third = len(live.log) // 3
    parts = [live.log[:third], live.log[third : 2 * third], live.log[2 * third :]]
    async with bench(tmp_path, document) as made:
        first = made.start_worker()
        await trickle(kafka, made_topics, parts[0], made, owners=1)
        second = made.start_worker()
        await trickle(kafka, made_topics, parts[1], made, owners=2)
        stopping = asyncio.create_task(first.stop())
        await trickle(kafka, made_topics, parts[2], made, owners=1)
        await stopping
        await made.settle(ends_of(live.log))
        assert second.process.poll() is None
        await check_readings(made, live.records)
        await made.stop_workers()
        await check_states(made, live)
        await check_dead_letters(kafka, made_topics, live)


async def trickle(
    brokers: str, topics: Topics, log: Sequence[LogRecord], made: Bench, owners: int
) -> None:
    """Produce block by block, until the partitions are owned by so many workers."""
    for start in range(0, len(log), 200):
        await produce(brokers, topics, log[start : start + 200])

    async def spread() -> bool:
        owned = [
            (number, report.worker)
            for report in await made.store.reports()
            for number, phase in report.owned.items()
            if phase == "owned" and await made.store.owner(number)
        ]
        return len({n for n, _ in owned}) == PARTITIONS and len({w for _, w in owned}) >= owners

    await until(spread, f"{owners} workers own all partitions", made.said)


@long
async def test_redis_goes_away_and_comes_back(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path, live: Case
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    server = make_redis(appendonly=True, options={"appendfsync": "always"})
    document = document_of(kafka, made_topics, server.url, f"away-{uuid.uuid4().hex[:8]}", LIVE)
    first, second = halves(live.log)
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()
        await produce(kafka, made_topics, first)
        await made.settle(ends_of(first))
        server.kill()
        await produce(kafka, made_topics, second)

        async def waits() -> bool:
            return "cannot commit yet, trying again" in worker.said()

        await until(waits, "the worker says that it waits", worker.said)
        assert worker.process.poll() is None
        server.start()
        await made.settle(ends_of(live.log))
        await check_readings(made, live.records)
        await made.stop_workers()
        await check_states(made, live)
        await check_dead_letters(kafka, made_topics, live)


async def test_every_compression_is_read(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    made_topics = topics(partitions=1)
    case = random_case(DOCUMENTS["defaults"], 500, 9)
    log = [LogRecord(r.kind, 0, 0, r.record_ms, r.value) for r in case.log]
    compressions = [None, "gzip", "snappy", "lz4", "zstd"]
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    small = [r for r in log if len(r.value or b"") < 1_000_000]
    async with bench(tmp_path, document) as made:
        for i, compression in enumerate(compressions):
            await produce(kafka, made_topics, small[i * 60 : (i + 1) * 60], compression)
        made.start_worker()

        async def counted() -> bool:
            await made.reader.refresh()
            topics_of = [t for m in made.reader.manifests.values() for t in m.topics.values()]
            return sum(int(t.next_offset) for t in topics_of) == 300

        await until(counted, "300 records are counted", made.said)
