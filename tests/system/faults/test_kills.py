"""Workers that are killed and paused count each event once; a naive worker does not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from redis.asyncio import Redis

from streamer.settings.event_fields import KINDS
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    Case,
    check_dead_letters,
    check_readings,
    check_states,
    random_case,
)
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, sized
from tests.support.workers import Bench, bench, document_of, ends_of, until
from tests.system.faults.load import Load
from tests.system.faults.storm import SESSION_SECONDS, Storm

KILLS, PAUSES, LINES = sized((1, 1, 600), (20, 3, 30_000))
NAIVE_KILLS = 16
LIMIT_SECONDS = 300


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(LIVE, LINES, 3)


@pytest.mark.timeout(LIMIT_SECONDS)
async def test_kills_and_pauses_change_no_number(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    document["kafka"]["session_timeout"] = f"{SESSION_SECONDS:g}s"
    async with bench(tmp_path, document) as made:
        storm = Storm(made, KILLS, PAUSES)
        async with Load(kafka, names, case.log, storm.seconds) as load:
            await storm.rage()
            during = await counted(made)
            await load.finish()
        await made.settle(ends_of(case.log))
        await check_readings(made, case.records)
        await made.stop_workers()
        await check_states(made, case)
        letters = await check_dead_letters(kafka, names, case)
        assert sum(m.dead_letters for m in made.reader.manifests.values()) == len(case.dead)
        commits = sum(m.commit for m in made.reader.manifests.values())
    print(
        f"{KILLS} kills, {PAUSES} pauses: {len(case.log)} events, {during} of them counted "
        f"meanwhile, {commits} commits, "
        f"{letters - len(case.dead)} dead letters sent twice"
    )
    assert during > len(case.log) / 4


async def counted(made: Bench) -> int:
    """Events in the committed state."""
    await made.reader.refresh()
    states = made.reader.manifests.values()
    return sum(t.next_offset for m in states for t in m.topics.values())


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_a_naive_worker_counts_twice_under_the_same_kills(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    """Else the harness would prove nothing."""
    names = topics(partitions=PARTITIONS)
    used = [str(getattr(names, kind)) for kind in KINDS]
    key = f"{redis_prefix}:naive"
    module = "tests.system.faults.naive_worker"
    command = [sys.executable, "-m", module, kafka, redis_prefix, redis_url, key, *used]
    log = case.log[: len(case.log) // 2]
    expected = Counter(getattr(names, record.kind) for record in log)
    document = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    redis = Redis.from_url(redis_url, decode_responses=True)
    async with bench(tmp_path, document) as made:
        storm = Storm(made, NAIVE_KILLS, 0, command=command)
        async with Load(kafka, names, log, storm.seconds) as load:
            await storm.rage()
            await load.finish()
        found = await all_counted(redis, key, log)
    await redis.aclose()
    more = {topic: found[topic] - expected[topic] for topic in expected}
    print(f"{NAIVE_KILLS} kills of a naive worker: counted twice {more} of {dict(expected)}")
    assert sum(more.values()) > 0


async def all_counted(redis: Redis, key: str, log: Sequence[LogRecord]) -> Counter[str]:
    """Counts of all topics, once together they are no fewer than the log's records."""

    async def counts() -> Counter[str]:
        found = await redis.hgetall(key)
        counter = Counter({str(topic): int(n) for topic, n in found.items()})
        return counter if counter.total() >= len(log) else Counter()

    result: Counter[str] = await until(counts, "the naive workers have counted all")
    return result
