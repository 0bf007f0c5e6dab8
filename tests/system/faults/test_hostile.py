"""Producers that mean harm: batches that inflate, and records whose letters would multiply them.

A worker stays as small as it was, counts what it leaves out, and goes on with what follows.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import Bench, bench, document_of, until
from tests.system.faults.test_memory import memory_bytes
from tests.system.topics import configure

START_MS = 1_700_000_000_000
FLOOD = 400_000
STOP_SECONDS = 5.0
GOOD = b'{"ts": %d, "user_id": "u", "item_id": "i"}' % START_MS
BOMB_BYTES = 150_000_000
TINY = 1_000_000
GROWTH_BYTES = 250_000_000
"""Longest a worker may grow: what a batch may inflate to, and the letters that it holds."""


async def produce_batch(
    brokers: str, topic: str, values: list[bytes], compression: str, at_ms: int = START_MS
) -> int:
    """All values in one batch of a time; returns how many bytes it has on the way."""
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers,
        compression_type=None if compression == "none" else compression,
        max_batch_size=2 * BOMB_BYTES,
        max_request_size=2 * BOMB_BYTES,
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for value in values:
            assert batch.append(key=None, value=value, timestamp=at_ms) is not None
        batch.close()
        await (await producer.send_batch(batch, topic, partition=0))
        return int(batch.size())
    finally:
        await producer.stop()


async def until_counted(made: Bench, next_offset: int) -> None:
    async def counted() -> bool:
        await made.reader.refresh()
        manifest = made.reader.manifests.get(0)
        return manifest is not None and manifest.topics["impressions"].next_offset == next_offset

    await until(counted, f"all offsets up to {next_offset} are counted", made.said)


@long
async def test_a_batch_that_inflates_without_end_is_skipped(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=1)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()
        await produce_batch(kafka, names.impressions, [GOOD], "zstd")
        await until_counted(made, 1)
        before = memory_bytes(worker)
        sent = await produce_batch(kafka, names.impressions, [b"\0" * BOMB_BYTES], "zstd")
        await produce_batch(kafka, names.impressions, [GOOD], "zstd")
        await until_counted(made, 3)
        assert memory_bytes(worker) - before < GROWTH_BYTES
        topic = made.reader.manifests[0].topics["impressions"]
        assert (topic.counters["accepted"], topic.lost, topic.gaps) == (2, 1, [(1, 1)])
        assert "offsets 1 to 1 cannot be read (too_large): they are lost" in made.said()
        await made.stop_workers()
    print(f"a batch of {sent} bytes for {BOMB_BYTES}")


@long
async def test_letters_do_not_multiply_what_was_fetched(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=1)
    await configure(kafka, [names.impressions], {"max.message.bytes": "20000000"})
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()
        await produce_batch(kafka, names.impressions, [GOOD], "none")
        await until_counted(made, 1)
        before = memory_bytes(worker)
        sent = await produce_batch(kafka, names.impressions, [b"x"] * TINY, "gzip")
        await produce_batch(kafka, names.impressions, [GOOD], "gzip")
        await until_counted(made, TINY + 2)
        assert memory_bytes(worker) - before < GROWTH_BYTES
        manifest = made.reader.manifests[0]
        topic = manifest.topics["impressions"]
        assert (topic.counters["accepted"], topic.lost) == (2, 0)
        assert sum(topic.rejected.values()) == TINY
        assert manifest.dead_letters + manifest.dead_letters_omitted == TINY
        assert 1000 <= manifest.dead_letters <= 1000 + (sent + len(GOOD) + 1000) // 8
        await made.stop_workers()
    print(f"{TINY} records in {sent} bytes: {manifest.dead_letters} letters")


@long
async def test_a_worker_ends_within_seconds_while_one_pair_floods_it(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    """Clicks of one person on one item, then impressions, each of which all pending ones fit."""
    names = topics(partitions=1)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    event = b'{"ts": %d, "user_id": "robot", "item_id": "i"}'
    clicks = [event % (START_MS + 50_000 + n) for n in range(FLOOD // 100)]
    shown = [event % (START_MS + n // 10) for n in range(FLOOD)]
    async with bench(tmp_path, document) as made:
        await produce_batch(kafka, names.clicks, clicks, "zstd")
        for first in range(0, FLOOD, 20_000):
            some = shown[first : first + 20_000]
            await produce_batch(kafka, names.impressions, some, "zstd", START_MS + 120_000)
        worker = made.start_worker()

        async def is_busy() -> bool:
            await made.reader.refresh()
            manifest = made.reader.manifests.get(0)
            return manifest is not None and manifest.topics["impressions"].next_offset > 0

        await until(is_busy, "some impressions are counted", made.said)
        stopped = time.monotonic()
        await worker.stop()
        took = time.monotonic() - stopped
        await made.reader.refresh()
        read = made.reader.manifests[0].topics["impressions"].next_offset
        assert took < STOP_SECONDS
        assert 0 < read < FLOOD, "it had read all before it was stopped"
    print(f"{read} of {FLOOD} read; it ended after {took:.1f} s")


@pytest.mark.parametrize("compression", shortened(["zstd", "gzip", "lz4", "snappy"]))
async def test_a_mapping_that_is_wrong_loses_no_letter(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    compression: str,
) -> None:
    """Ordinary events that all are refused, as after a mistake in the settings, compressed."""
    names = topics(partitions=1)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    events = [
        b'{"when": %d, "user_id": "u%d", "item_id": "i%d", "surface": "home", "variant": "A"}'
        % (START_MS + 17 * n, 7919 * n % 100_003, 104_729 * n % 9973)
        for n in range(20_000)
    ]
    async with bench(tmp_path, document) as made:
        made.start_worker()
        await produce_batch(kafka, names.impressions, events, compression)
        await until_counted(made, len(events))
        manifest = made.reader.manifests[0]
        assert (manifest.dead_letters, manifest.dead_letters_omitted) == (len(events), 0)
        await made.stop_workers()
