"""Records that no producer should write: each counted and kept, and nothing else disturbed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiokafka import AIOKafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from streamer.ingest.rejections import Explainer, Refusal
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings, Topics
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST
from tests.oracle.acceptance import accept
from tests.oracle.fuzzed import Fuzzer
from tests.oracle.oracle import Record, records_of_log
from tests.oracle.random_log import random_log
from tests.oracle.reasons import is_right
from tests.oracle.shape import Readings
from tests.support.agreement import differences, to_log
from tests.support.cases import (
    CUT_BYTES,
    LIVE,
    PARTITIONS,
    Case,
    check_shown,
    check_states,
    readings_of,
)
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened, sized
from tests.support.promtool import promtool_finds_nothing
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    read_topic,
)
from tests.system.topics import configure

BAD = sized(1_800, 100_000)
GOOD = sized(800, 20_000)
HEAVY = sized(3, 24)
LIMIT_SECONDS = 240
REJECTED = "streamer_rejected_total"
Letters = dict[tuple[str, int, int], tuple[Refusal, bytes | None, str | None]]


@pytest.fixture(scope="module")
def case() -> Case:
    return fuzzed_case(GOOD, BAD, HEAVY, 14)


def fuzzed_case(good: int, bad: int, heavy: int, seed: int) -> Case:
    """A random log with bad records among its own, and what the oracle makes of it."""
    settings = parse(LIVE)
    records = records_of_log(random_log(seed, settings, good), settings, partitions=PARTITIONS)
    mixed = Fuzzer(seed, settings).mix(records, bad, heavy)
    dead: list[tuple[Record, str]] = []
    accept(mixed, settings, dead)
    return Case(mixed, to_log(mixed), dead)


async def produce(brokers: str, topics: Topics, log: Sequence[LogRecord]) -> None:
    """Every record as it is; a null value needs a key. Large ones are not compressed away."""
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers, max_request_size=4_000_000, linger_ms=5, max_batch_size=200_000
    )
    await producer.start()
    try:
        for start in range(0, len(log), 2000):
            sent = [
                await producer.send(
                    getattr(topics, r.kind),
                    r.value,
                    key=b"key" if r.value is None else None,
                    partition=r.partition,
                    timestamp_ms=r.record_ms,
                )
                for r in log[start : start + 2000]
            ]
            await asyncio.gather(*sent)
    finally:
        await producer.stop()


@asynccontextmanager
async def exporting(made: Bench) -> AsyncIterator[str]:
    """The URL of an exporter over the same state."""
    exporter = Exporter(made.settings, RedisStore(made.settings.redis))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    try:
        yield f"http://{HOST}:{await listen(runner, HOST, 0)}"
    finally:
        await runner.cleanup()


async def get(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_bad_records_among_good_ones(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> None:
    names = topics(partitions=PARTITIONS)
    sources = [str(getattr(names, kind)) for kind in KINDS]
    await configure(kafka, sources, {"max.message.bytes": "4000000", "retention.ms": "-1"})
    document = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    started = time.monotonic()
    async with bench(tmp_path, document) as made, exporting(made) as url:
        worker = made.start_worker()
        for start in range(0, len(case.log), 10_000):
            await produce(kafka, names, case.log[start : start + 10_000])
            parsed(await get(f"{url}/metrics"))
        await made.settle(ends_of(case.log))
        seconds = time.monotonic() - started
        assert await get(f"{url}/readyz") == "ready\n"
        page = await get(f"{url}/metrics?at=stream")
        assert worker.process.poll() is None
        await made.stop_workers()  # which looks for tracebacks
        letters = await read_letters(kafka, names)
        called = check_letters(letters, names, case, made.settings)
        expected = with_reasons(await readings_of(made, case.records), called)
        await check_shown(made, expected)
        check_page(page, expected)
        check_sums(page, case)
        await promtool_finds_nothing(page)
        await check_states(made, case)
        assert sum(m.dead_letters for m in made.reader.manifests.values()) == len(case.dead)
    by_reason = Counter(reason for (_, reason), n in called.items() for _ in range(n))
    print(
        f"{len(case.log)} records in {seconds:.0f} s, {len(letters)} dead letters, "
        f"{sum(cut is not None for _, _, cut in letters.values())} of them cut: {dict(by_reason)}"
    )


async def read_letters(brokers: str, topics: Topics) -> Letters:
    """Dead letters by the address of their record; copies have to be equal."""
    found: Letters = {}
    for letter in await read_topic(brokers, topics.dead_letters, PARTITIONS):
        headers = {name: value.decode() for name, value in letter.headers}
        address = [headers.pop(f"streamer.{x}") for x in ("topic", "partition", "offset")]
        key = (address[0], int(address[1]), int(address[2]))
        assert letter.key == "/".join(address).encode()
        cut = headers.pop("streamer.cut", None)
        said = ("reason", "field", "found", "expected")
        why = Refusal(*(headers.pop(f"streamer.{name}") for name in said))
        content = (why, letter.value, cut)
        assert headers == {}
        assert found.setdefault(key, content) == content, "two letters of one record differ"
    return found


def check_letters(
    letters: Letters, topics: Topics, case: Case, settings: Settings
) -> Counter[tuple[str, str]]:
    """Each refused record is there, unchanged, by a right reason; rejects by topic and reason."""
    expected = {
        (str(getattr(topics, r.topic)), r.partition, r.offset): (r, reason)
        for r, reason in case.dead
    }
    assert letters.keys() == expected.keys()
    explainer = Explainer(settings)
    called: Counter[tuple[str, str]] = Counter()
    for key, (record, reason) in expected.items():
        why, value, cut = letters[key]
        named = why.reason
        assert why == explainer.explain(record.topic, record.raw, named)
        if named != reason:
            assert reason not in ("late", "future")
            assert is_right(named, record.topic, record.raw, settings), (named, reason, record.raw)
        if named != "late":
            called[record.topic, named] += 1
        if cut is None:
            assert value == record.raw
        else:
            assert record.raw is not None
            assert len(record.raw) > 900_000
            assert value == record.raw[:CUT_BYTES]
            assert cut.startswith(f"{len(record.raw)} bytes, crc32 ")
    return called


def with_reasons(readings: Readings, called: Mapping[tuple[str, str], int]) -> Readings:
    """The oracle's readings, rejects by the reasons that were chosen among the right ones."""
    changed = {key: value for key, value in readings.items() if key[0] != REJECTED}
    for (topic, reason), n in called.items():
        changed[REJECTED, frozenset({("topic", topic), ("reason", reason)})] = n
    return changed


def parsed(page: str) -> Readings:
    """The samples of a page of metrics, each once."""
    samples: Readings = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples
            samples[key] = sample.value
    assert samples
    return samples


def check_page(page: str, expected: Readings) -> None:
    """The page shows what the oracle says."""
    samples = parsed(page)
    shown = {key: value for key, value in samples.items() if key in expected}
    assert not differences(shown, expected)[:10]


def check_sums(page: str, case: Case) -> None:
    """Events are accepted, duplicates, late, rejected or ignored; each record is an event."""
    samples = parsed(page)

    def total(name: str, topic: str) -> float:
        return sum(
            value
            for (found, labels), value in samples.items()
            if found == f"streamer_{name}_total" and ("topic", topic) in labels
        )

    records = Counter(r.kind for r in case.log)
    for topic in KINDS:
        outcomes = ("accepted", "duplicates", "late", "rejected", "ignored")
        parts = [total(name, topic) for name in outcomes]
        assert total("events", topic) == sum(parts) == records[topic]
        assert all(part > 0 for part in parts), (topic, parts)


# A dead-letter topic that takes little ------------------------------------------------------------


@long
@pytest.mark.parametrize(
    ("settings", "most"),
    shortened(
        [
            ({"max.message.bytes": "2000"}, 1000),
            ({"max.message.bytes": "50000"}, 10_000),
            ({"max.message.bytes": "400"}, 0),
            ({"cleanup.policy": "compact"}, CUT_BYTES),
        ]
    ),
    ids=["2000 bytes", "50000 bytes", "400 bytes", "compacted"],
)
async def test_a_dead_letter_topic_that_refuses_large_ones(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    settings: dict[str, str],
    most: int,
) -> None:
    """What it refuses is cut, what it takes is whole, and the partition goes on."""
    names = topics(partitions=1)
    await configure(kafka, [names.dead_letters], {**settings, "retention.ms": "-1"})
    await configure(kafka, [names.impressions], {"max.message.bytes": "4000000"})
    sizes = [30, 900, 1500, 3000, 20_000, 60_000, 500_000, 1_100_000]
    values: list[bytes | None] = [b"x" * size for size in sizes for _ in range(5)]
    values += [None, b"", b'{"ts":1700000000000,"user_id":"u","item_id":"i"}']
    log = [LogRecord("impressions", 0, n, 1_700_000_000_000, v) for n, v in enumerate(values)]
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()
        await produce(kafka, names, log)
        await made.settle(ends_of(log))
        more = [LogRecord("impressions", 0, len(log), 1_700_000_000_001, b"{")]
        await produce(kafka, names, more)
        await made.settle(ends_of(log + more))
        assert worker.process.poll() is None
        assert "waits" not in made.said()
        await made.stop_workers()
        manifest = made.reader.manifests[0]
        assert manifest.topics["impressions"].counters["accepted"] == 1
        assert manifest.topics["impressions"].counters["ignored"] == 1, "the one without a value"
        assert manifest.dead_letters == len(log) - 1
    found = await read_topic(kafka, names.dead_letters, 1)
    assert len(found) == len(log) - 1, "each once: nothing had to be tried again"
    bound = int(settings.get("max.message.bytes", 1_000_000))
    for letter in found:
        headers: dict[str, Any] = {name: value.decode() for name, value in letter.headers}
        whole = (log + more)[int(headers["streamer.offset"])].value
        is_bare = "streamer.cut" in headers and not letter.value
        assert ("streamer.found" in headers) == (not is_bare)
        if "streamer.cut" in headers:
            assert whole is not None
            assert len(whole) + 300 > bound
            assert letter.value == whole[: len(letter.value)]
            assert len(letter.value) in (most, 1000, 0)
        else:
            assert letter.value == whole
            assert len(whole or b"") < bound
