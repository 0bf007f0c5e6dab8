"""Topics that run hours apart, and topics without a record."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamer.settings.durations import DAY_MS, HOUR_MS
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Topics
from tests.oracle.oracle import Record
from tests.support.agreement import DOCUMENTS
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    Case,
    case_of,
    check_dead_letters,
    check_readings,
    check_states,
    random_records,
)
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)

LINES = 4_000
LIMIT_SECONDS = 120
SHORT = DOCUMENTS["no dimensions, short times"]
APART = {
    **SHORT,
    "time": {**SHORT["time"], "max_skew": "10d"},
    "limits": {"flush_ms": 50, "gather_rows": 200},
}
"""Short horizons; clocks may differ by days, so that a topic may be written hours after another."""
JOINED = ("impressions", "clicks", "conversions")
ORDERS = [
    ("clicks", "impressions", "conversions", "sessions"),
    ("conversions", "clicks", "impressions", "sessions"),
    ("sessions", "conversions", "impressions", "clicks"),
    ("impressions", "sessions", "conversions", "clicks"),
    ("clicks", "conversions", "sessions", "impressions"),
    ("impressions", "clicks", "conversions", "sessions"),
]
"""Each order of the three topics that are joined."""
PADDING_BYTES = 40_000_000


def part_of(document: Mapping[str, Any], kinds: Iterable[str], partitions: int, seed: int) -> Case:
    """A random log of some topics only, over so many partitions."""
    return case_of(document, records_of_part(document, kinds, partitions, seed))


def records_of_part(
    document: Mapping[str, Any], kinds: Iterable[str], partitions: int, seed: int
) -> list[Record]:
    counts: dict[tuple[str, int], int] = defaultdict(int)
    records = []
    for record in random_records(document, LINES, seed):
        if record.topic in kinds:
            key = (record.topic, record.partition % partitions)
            records.append(Record(*key, counts[key], record.record_ms, record.raw))
            counts[key] += 1
    return records


@lru_cache
def short_seeds(count: int) -> list[int]:
    """Seeds of random logs that are hours long: longer than the allowed lateness, and short beside
    ``APART``'s skew."""

    def is_short(seed: int) -> bool:
        times = [record.record_ms for record in random_records(APART, LINES, seed)]
        return HOUR_MS < max(times) - min(times) < DAY_MS

    return list(itertools.islice(filter(is_short, itertools.count(43)), count))


def of_kind(log: Sequence[LogRecord], kind: str) -> list[LogRecord]:
    return [record for record in log if record.kind == kind]


@asynccontextmanager
async def stage(
    brokers: str, names: Topics, url: str, prefix: str, directory: Path, document: Mapping[str, Any]
) -> AsyncIterator[Bench]:
    async with bench(directory, document_of(brokers, names, url, prefix, document)) as made:
        yield made


async def check_all(made: Bench, case: Case, brokers: str, names: Topics) -> None:
    """Stop the workers, and compare everything with the oracle."""
    await made.settle(ends_of(case.log))
    await check_readings(made, case.records)
    await made.stop_workers()
    counted = sum(m.dead_letters for m in made.reader.manifests.values())
    assert counted == len(case.dead)
    if len(made.reader.manifests) == PARTITIONS:
        await check_dead_letters(brokers, names, case)
        await check_states(made, case)


# Topics hours apart -------------------------------------------------------------------------------


def test_the_orders_are_all_there_are() -> None:
    found = {tuple(kind for kind in order if kind in JOINED) for order in ORDERS}
    assert found == set(itertools.permutations(JOINED))


@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize(("number", "order"), shortened(list(enumerate(ORDERS))), ids=str)
@long
async def test_a_worker_reads_whole_topics_one_after_the_other(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    number: int,
    order: Sequence[str],
) -> None:
    """The next topic is written when the one before was read to its end."""
    partitions = 1 if number % 2 else 4
    case = part_of(APART, KINDS, partitions, seed=short_seeds(2)[number % 2])
    names = topics(partitions=partitions)
    async with stage(kafka, names, redis_url, redis_prefix, tmp_path, APART) as made:
        made.start_worker()
        written: list[LogRecord] = []
        for kind in order:
            await produce(kafka, names, of_kind(case.log, kind))
            written += of_kind(case.log, kind)
            await has_applied(made, written)
        await check_all(made, case, kafka, names)


async def has_applied(made: Bench, log: Sequence[LogRecord]) -> None:
    """Wait until all of it is in the committed state."""

    async def applied() -> bool:
        await made.reader.refresh()
        states = made.reader.manifests.values()
        return sum(t.next_offset for m in states for t in m.topics.values()) == len(log)

    await until(applied, f"{len(log)} records are applied", made.said)


@long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize("last", shortened(list(JOINED)))
async def test_one_topic_trickles_in_while_the_others_are_complete(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, last: str
) -> None:
    case = part_of(LIVE, KINDS, 4, seed=43)
    names = topics(partitions=4)
    async with stage(kafka, names, redis_url, redis_prefix, tmp_path, LIVE) as made:
        made.start_worker()
        written = [record for record in case.log if record.kind != last]
        await produce(kafka, names, written)
        await has_applied(made, written)
        rest = of_kind(case.log, last)
        for start in range(0, len(rest), 200):
            await produce(kafka, names, rest[start : start + 200])
            written += rest[start : start + 200]
            await has_applied(made, written)
        await check_all(made, case, kafka, names)


@long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize(
    ("slow", "partitions", "name"),
    [
        ("impressions", 1, "no dimensions, short times"),
        ("clicks", 1, "no dimensions, short times"),
        ("conversions", 4, "no dimensions, short times"),
        ("impressions", 4, "defaults"),
    ],
)
async def test_one_topic_is_read_slower_in_catch_up(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    slow: str,
    partitions: int,
    name: str,
) -> None:
    """With an ordinary skew: the others are hours ahead, for nothing holds them."""
    document = {
        **DOCUMENTS[name],
        "limits": {"hold_back_ms": 10**9, "flush_ms": 20, "gather_rows": 1},
    }
    records = records_of_part(document, KINDS, partitions, seed=43)
    padded = case_of(document, with_padding(records, slow))
    names = topics(partitions=partitions)
    async with stage(kafka, names, redis_url, redis_prefix, tmp_path, document) as made:
        for kind in (*[k for k in KINDS if k != slow], slow):
            await produce(kafka, names, of_kind(padded.log, kind))
        made.start_worker()
        spread_ms = 0
        reading = asyncio.create_task(made.settle(ends_of(padded.log)))
        while not reading.done():
            spread_ms = max(spread_ms, behind_ms(made, slow))
            await asyncio.sleep(0.01)
        await reading
        await check_all(made, padded, kafka, names)
        assert sum(m.counters["join_gap"] for m in made.reader.manifests.values()) == 0
    assert spread_ms > 3_600_000
    print(f"{slow} were up to {spread_ms / 3_600_000:.1f} h behind")


def with_padding(records: Sequence[Record], kind: str) -> list[Record]:
    """One topic's events made long by a field that nobody reads: a fetch holds few of them."""
    dice, size = Random(1), PADDING_BYTES // sum(r.topic == kind for r in records)
    return [
        replace(r, raw=r.raw[:-1] + b',"note":"%s"}' % dice.randbytes(size // 2).hex().encode())
        if r.topic == kind and r.raw is not None and r.raw.startswith(b'{"') and len(r.raw) < 9000
        else r
        for r in records
    ]


def behind_ms(made: Bench, slow: str) -> int:
    """How far the clock of one topic is behind the furthest, of those that have begun."""
    found = 0
    for manifest in made.reader.manifests.values():
        clocks = {kind: t.arrival_ms for kind, t in manifest.topics.items() if t.next_offset}
        if slow in clocks:
            found = max(found, max(clocks.values()) - clocks[slow])
    return found


# Topics without a record --------------------------------------------------------------------------


@long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        (("impressions", "clicks"), "defaults"),
        (("impressions", "clicks"), "no dimensions, short times"),
        (("impressions",), "defaults"),
        (("clicks",), "no dimensions, short times"),
        (("conversions", "sessions"), "defaults"),
    ],
    ids=str,
)
async def test_the_other_topics_never_have_a_record(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    kinds: Sequence[str],
    name: str,
) -> None:
    case = part_of(DOCUMENTS[name], kinds, 4, seed=51)
    names = topics(partitions=4)
    async with stage(kafka, names, redis_url, redis_prefix, tmp_path, DOCUMENTS[name]) as made:
        await produce(kafka, names, case.log)
        made.start_worker()
        await check_all(made, case, kafka, names)
