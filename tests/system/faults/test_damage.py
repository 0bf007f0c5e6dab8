"""Stored bytes that are damaged or gone: noticed, said, and counted again from Kafka."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from streamer.cli import inspect, run
from streamer.cli.inspect import verify
from streamer.errors import CodecError
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.state.manifest import decode
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.worker_report import WorkerReport
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    Case,
    check_readings,
    check_states,
    random_case,
)
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, sized
from tests.support.workers import (
    SETTLE_SECONDS,
    Bench,
    Worker,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(LIVE, sized(600, 3000), 11)


@pytest.fixture
async def made(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, case: Case
) -> AsyncIterator[Bench]:
    """Everything is counted and stored; no worker runs."""
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    async with bench(tmp_path, document) as found:
        worker = found.start_worker()
        await produce(kafka, names, case.log)
        await found.settle(ends_of(case.log))
        await worker.stop()
        yield found


def redis_of(made: Bench) -> RedisStore:
    assert isinstance(made.store, RedisStore)
    return made.store


async def flip_a_bit(made: Bench, partition: int, dice: Random) -> None:
    """In one of the partition's blobs that a worker loads."""
    store = redis_of(made)
    stored = await store.read(partition)
    name = dice.choice(sorted(decode(stored.manifest).panes))
    key = store.keys.blob(partition, name)
    data = bytearray(await store.redis.get(key))
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    await store.redis.set(key, bytes(data))


async def delete_half(made: Bench, partition: int) -> int:
    """Of the partition's blobs; returns how many."""
    store = redis_of(made)
    stored = await store.read(partition)
    names = sorted(decode(stored.manifest).blob_names())[::2]
    return int(await store.redis.delete(*[store.keys.blob(partition, n) for n in names]))


async def counted_again(
    made: Bench, worker: Worker, partitions: int, seconds: float = SETTLE_SECONDS
) -> None:
    """Wait until a worker has begun to, and look at the state as if for the first time."""

    async def has_begun() -> bool:
        return worker.said().count("it is counted again from Kafka") == partitions

    await until(has_begun, "the damage is noticed", worker.said, seconds)
    made.reader = Reader(made.store)

    async def can_be_read() -> bool:
        with contextlib.suppress(CodecError):
            await made.reader.refresh()
            return True
        return False

    await until(can_be_read, "the new state is there", worker.said)


@long
async def test_damaged_partitions_are_counted_again_from_kafka(made: Bench, case: Case) -> None:
    store = redis_of(made)
    await flip_a_bit(made, 0, Random(7))
    assert await delete_half(made, 2)
    manifest = bytearray((await store.read(3)).manifest)
    manifest[len(manifest) // 2] ^= 4
    await store.redis.hset(store.keys.state(3), "manifest", bytes(manifest))
    damage = [bool((await verify(store, n)).damage) for n in range(PARTITIONS)]
    assert damage == [True, False, True, True]
    await run.preflight(made.settings)  # says so, and lets the workers begin
    worker = made.start_worker()
    await counted_again(made, worker, 3)
    await made.settle(ends_of(case.log))
    await check_readings(made, case.records)
    await check_states(made, case)
    assert not any([(await verify(store, n)).damage for n in range(PARTITIONS)])
    await worker.stop()


@long
async def test_what_kafka_no_longer_has_is_declared_lost(made: Bench, case: Case) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=made.settings.kafka.brokers)
    await admin.start()
    place = TopicPartition(made.settings.kafka.topics.impressions, 0)
    await admin.delete_records({place: RecordsToDelete(before_offset=40)})
    await admin.close()
    await delete_half(made, 0)
    await counted_again(made, made.start_worker(), 1)
    await made.settle(ends_of(case.log))
    topic = made.reader.manifests[0].topics["impressions"]
    assert (topic.lost, topic.gaps) == (40, [(0, 39)])


@long
async def test_an_exporter_shows_the_last_whole_copy_and_says_so(made: Bench) -> None:
    exporter, store = Exporter(made.settings, made.store), redis_of(made)
    before = (await exporter.read()).readings
    position, manifest = (found := await store.read(2)).position, found.manifest
    changes = {"position": b"another", "manifest": manifest[:-1]}
    await store.redis.hset(store.keys.state(2), mapping=changes)
    assert (await exporter.read()).readings == before
    assert "partition 2: the manifest: " in exporter.health.problems[0]
    late = Exporter(made.settings, made.store)  # it has no copy: its sums would be too small
    with pytest.raises(CodecError, match=r"^partition 2: the manifest: \d+ bytes are damaged"):
        await late.read()
    back = {"position": position, "manifest": manifest}
    await store.redis.hset(store.keys.state(2), mapping=back)
    await exporter.refresh()
    assert not exporter.reader.damaged


@long
async def test_inspect_verifies(made: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert await inspect._verify(made.settings, None, False) == 0
    assert capsys.readouterr().out.count("are whole") == PARTITIONS
    await flip_a_bit(made, 2, Random(3))
    assert await inspect._verify(made.settings, 2, True) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert "their checksum does not fit" in str(found["damage"])


@pytest.mark.parametrize("number", [b"99999999", b"-1", b"many"])
async def test_a_number_of_partitions_that_is_none(
    redis_url: str, redis_prefix: str, kafka: str, tmp_path: Path, topics: MakeTopics, number: bytes
) -> None:
    document = document_of(kafka, topics(partitions=1), redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        store = redis_of(made)
        await store.redis.set(store.keys.partitions, number)
        exporter = Exporter(made.settings, made.store)
        with pytest.raises(CodecError, match=r":partitions in Redis is '.*', not an integer up to"):
            await exporter.read()


async def test_reports_that_cannot_be_read_are_named(
    redis_url: str, redis_prefix: str, kafka: str, tmp_path: Path, topics: MakeTopics
) -> None:
    document = document_of(kafka, topics(partitions=1), redis_url, redis_prefix, {})
    bad = {
        "garbage": b"\xff\xfe",
        "buckets": json.dumps([1, {"worker": "buckets", "commit_buckets": [1]}]).encode(),
        "logs": json.dumps([1, {"worker": "logs", "read_to": {"nowhere": 1}}]).encode(),
        "huge": b"[" * (limits.MAX_REPORT_BYTES + 1),
        "deep": b"[" * 100_000,
    }
    async with bench(tmp_path, document) as made:
        store = redis_of(made)
        await store.redis.hset(store.keys.workers, mapping=bad)
        await store.report(WorkerReport("good:0"))
        exporter = Exporter(made.settings, made.store)
        await exporter.read()
        assert {r.worker for r in exporter.reports if r.is_present} == {"good:0"}
        assert len(exporter.health.problems) == len(bad) + 1  # nothing is stored, too
        for name in bad:
            assert f"the report of {name} in Redis cannot be read" in str(exporter.health.problems)
        list(exporter.processor())
