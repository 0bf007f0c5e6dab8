"""A partition that meets a schema which the registry does not have: it waits, and nothing of what
was fetched is lost or counted twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streamer.errors import SchemaMissingError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Batches, Chunk, Records
from streamer.kafka.registry import registry_at
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.partition import Partition
from streamer.state.worker_report import WorkerReport
from streamer.worker.partition_task import PartitionTask, Phase
from streamer.worker.schemas import SchemaFinder, SchemaLookup
from tests.core.test_record_batches import stored
from tests.support.encoded import AVRO, SOURCE, as_avro, as_json, events, wire
from tests.support.glue import REGION, PlainGlue, glue_wire
from tests.support.lanes import long, sized
from tests.support.registries import PlainRegistry, register
from tests.support.required import require_package
from tests.support.workers import until

AT_MS = 1_700_000_000_000
EACH = 7
"""Records of a batch."""


def owned(settings: Settings) -> PartitionTask:
    task = PartitionTask(0, settings, phase=Phase.OWNED)
    task.partition = Partition(settings, Catalogue(settings), FIXED_KEY)
    task.journal = Journal(task.partition, "claim")
    task.epochs = {"web": 0}
    return task


def as_records(values: Sequence[bytes], first: int) -> Chunk:
    offsets = np.arange(first, first + len(values))
    content = Records("web", offsets, AT_MS + offsets, list(values))
    return Chunk("web", 0, 0, content, AT_MS + first, first + len(values))


def as_batches(values: Sequence[bytes], first: int) -> Chunk:
    """Whole batches, of which the second is damaged."""
    blob = b""
    for at in range(0, len(values), EACH):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, 0, 0, 1 << 30)
        for i, value in enumerate(values[at : at + EACH]):
            builder.append(i, AT_MS + first + at + i, None, value, [])
        batch = bytearray(stored(bytes(builder.build()), first + at))
        if first == 0 and at == EACH:
            batch[-1] ^= 1
        blob += bytes(batch)
    content = Batches("web", blob, [], len(values))
    return Chunk("web", 0, 0, content, AT_MS + first, first + len(values))


def counters(task: PartitionTask) -> Any:
    assert task.partition is not None
    task.partition.refresh_user_sums()
    log = task.partition.logs["web"]
    return task.partition.state(), task.partition.core.counters(), log.lost, log.gaps


def finder_of(task: PartitionTask, report: WorkerReport, found: asyncio.Event) -> SchemaFinder:
    return SchemaFinder(task.settings, report, lambda: [task], found.set)


async def waits(report: WorkerReport) -> bool:
    return "waits for schema" in report.problems.get(0, "")


@pytest.mark.parametrize("chunk_of", [as_records, as_batches])
async def test_what_waits_for_a_schema_counts_once_it_is_there(
    chunk_of: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "streamer")
    monkeypatch.setattr(limits, "RETRY_SECONDS_MAX", 0.01)
    made = events(6 * EACH, AT_MS)
    with PlainRegistry() as registry:
        first = register(registry.url, "web", json.dumps(AVRO), "AVRO")
        source = {"topics": ["web"], **SOURCE}
        avro = {**source, "format": "avro", "registry": registry.url}
        task, plain = owned(parse({"sources": [avro]})), owned(parse({"sources": [source]}))
        ids = [first + (n >= 2 * EACH + 3) + (n >= 4 * EACH) for n in range(len(made))]
        values = [wire(i, as_avro(event)) for i, event in zip(ids, made, strict=True)]
        for at in range(0, len(made), 2 * EACH):
            task.offer(chunk_of(values[at : at + 2 * EACH], at))
            plain.offer(chunk_of([as_json(event) for event in made[at : at + 2 * EACH]], at))
        plain.apply(plain.take(1000, everything=True))
        report, found = WorkerReport("w"), asyncio.Event()
        finder, asked = finder_of(task, report, found), list[int]()
        while task.apply(task.take(1000, everything=True)) or task.unknown_schemas:
            if task.unknown_schemas is None:
                break
            assert task.take(1000, everything=True) == []
            asked.append(task.unknown_schemas[1][0])
            finder.find(task)
            if asked[-1] not in registry.schemas:
                await until(lambda: waits(report), "it says what it waits for")
                while asked[-1] not in registry.schemas:
                    register(registry.url, "web", json.dumps(AVRO), "AVRO")
            await asyncio.wait_for(found.wait(), 5)
            found.clear()
    assert asked == [first, first + 1, first + 2]
    assert (task.unknown_schemas, task.waiting, report.problems) == (None, 0, {})
    assert "partition 0 goes on" in caplog.text
    assert str(counters(task)) == str(counters(plain))


async def test_a_schema_that_cannot_be_used_is_said_and_its_records_rejected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with PlainRegistry() as registry:
        number = register(registry.url, "web", '{"type": "nothing"}', "AVRO")
        source = {"topics": ["web"], **SOURCE, "format": "avro", "registry": registry.url}
        task = owned(parse({"sources": [source]}))
        task.offer(as_records([wire(number, as_avro(event)) for event in events(3, AT_MS)], 0))
        task.apply(task.take(1000, everything=True))
        found = asyncio.Event()
        finder_of(task, WorkerReport("w"), found).find(task)
        await asyncio.wait_for(found.wait(), 5)
        task.apply(task.take(1000, everything=True))
    assert f"web: records of schema {number} are rejected: it cannot be used" in caplog.text
    assert [letter.refusal.reason for letter in task.dead] == ["schema"] * 3


def avro_of(registry: PlainRegistry, patience: str) -> PartitionTask:
    """A partition of a source in Avro, whose registry is asked for so long."""
    answers = {"url": registry.url, "unknown_after": patience}
    source = {"topics": ["web"], **SOURCE, "format": "avro", "registry": answers}
    return owned(parse({"sources": [source]}))


async def counted(task: PartitionTask, finder: SchemaFinder, found: asyncio.Event) -> None:
    """Apply all that waits."""
    while task.apply(task.take(10_000, everything=True)) or task.unknown_schemas:
        if task.unknown_schemas is None:
            break
        finder.find(task)
        await asyncio.wait_for(found.wait(), 20)
        found.clear()


@long
async def test_ids_that_nobody_knows_are_refused_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    strange, first = sized(1100, 3000), 1
    with PlainRegistry() as registry:
        assert register(registry.url, "web", json.dumps(AVRO), "AVRO") == first
        task = avro_of(registry, "0s")
        values = [wire(10_000 + n, b"") for n in range(strange)]
        values += [wire(first, as_avro(event)) for event in events(EACH, AT_MS)]
        task.offer(as_records(values, 0))
        found = asyncio.Event()
        finder = finder_of(task, WorkerReport("w"), found)
        begun = time.monotonic()
        await counted(task, finder, found)
        took = time.monotonic() - begun
        assert len(registry.asked) <= strange + strange // limits.MAX_REFUSED_SCHEMAS + 1
    assert took < 20, "each id took a turn of its own"
    assert counters(task)[0]["logs"]["web"]["counters"]["accepted"] == EACH
    assert len(task.dead) == strange
    assert len(finder.lookup.refused) == limits.MAX_REFUSED_SCHEMAS
    assert "records of schemas 10000, 10001, 10002 and 997 more are rejected" in caplog.text


async def test_one_wait_is_enough_and_what_comes_later_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(limits, "ASK_AGAIN_SECONDS", 0.0)
    with PlainRegistry() as registry:
        task, report, found = avro_of(registry, "1s"), WorkerReport("w"), asyncio.Event()
        made = events(5 * EACH, AT_MS)
        chunks = [made[at : at + EACH] for at in range(0, 5 * EACH, EACH)]
        for n, some in enumerate(chunks):  # of schemas 1 to 5, none of which is there
            task.offer(as_records([wire(1 + n, as_avro(event)) for event in some], n * EACH))
        finder, begun = finder_of(task, report, found), time.monotonic()
        task.apply(task.take(EACH, everything=False))
        finder.find(task)
        await until(lambda: waits(report), "it says what it waits for")
        assert "its records are rejected (registry.unknown_after)" in report.problems[0]
        await asyncio.wait_for(found.wait(), 20)
        found.clear()
        await counted(task, finder, found)
        assert 1 <= time.monotonic() - begun < 3, "it waited for each of them"
        assert (len(task.dead), report.problems) == (5 * EACH, {})
        register(registry.url, "web", json.dumps(AVRO), "AVRO")
        finder.ask_again()
        await until(lambda: is_gone(finder), "the registry has schema 1 by now")
        task.offer(as_records([wire(1, as_avro(event)) for event in made], 5 * EACH))
        await counted(task, finder, found)
    assert len(task.dead) == 5 * EACH
    assert counters(task)[0]["logs"]["web"]["counters"]["accepted"] == 5 * EACH


async def test_a_log_waits_in_vain_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"url": "http://127.0.0.1:9", "unknown_after": "5m"}
    source = {"topics": ["web"], **SOURCE, "format": "avro", "registry": answers}
    lookup, now = SchemaLookup(parse({"sources": [source]})), 0.0
    monkeypatch.setattr(lookup, "_schema", lambda log, number: SchemaMissingError("not there"))
    monkeypatch.setattr("streamer.worker.schemas.time", SimpleNamespace(monotonic=lambda: now))
    waited = 0
    for number in range(120):  # a minute apart, each of an id of its own
        found = await lookup.answers("web", [number // 10])
        waited, now = waited + len(found.waits), now + 60.0
    assert waited == 2 * 5


async def is_gone(finder: SchemaFinder) -> bool:
    return ("web", 1) not in finder.lookup.refused


async def test_a_registry_that_does_not_answer_is_waited_for_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RETRY_SECONDS_MAX", 0.05)
    with PlainRegistry() as registry:
        number = register(registry.url, "web", json.dumps(AVRO), "AVRO")
        registry.status = 503
        task, report, found = avro_of(registry, "0s"), WorkerReport("w"), asyncio.Event()
        task.offer(as_records([wire(number, as_avro(e)) for e in events(EACH, AT_MS)], 0))
        task.apply(task.take(1000, everything=True))
        finder = finder_of(task, report, found)
        finder.find(task)
        await until(lambda: waits(report), "it says what it waits for")
        await asyncio.sleep(0.5)
        assert not found.is_set()
        assert "answers 503" in report.problems[0]
        registry.status = None
        await asyncio.wait_for(found.wait(), 5)
        await counted(task, finder, found)
    assert counters(task)[0]["logs"]["web"]["counters"]["accepted"] == EACH


async def test_a_version_that_glue_does_not_have_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_package("botocore", extra="aws")
    monkeypatch.setattr(limits, "RETRY_SECONDS_MAX", 0.05)
    registry_at.cache_clear()
    with PlainGlue() as glue:
        for name, value in glue.environment.items():
            monkeypatch.setenv(name, value)
        version = glue.register(json.dumps(AVRO), "AVRO")
        missing = glue.versions.pop(str(version))
        source = {"topics": ["web"], **SOURCE, "format": "avro", "registry": f"glue://{REGION}"}
        task, report, found = (
            owned(parse({"sources": [source]})),
            WorkerReport("w"),
            asyncio.Event(),
        )
        made = [glue_wire(version, as_avro(e), is_compressed=True) for e in events(EACH, AT_MS)]
        task.offer(as_batches(made, 1))
        task.apply(task.take(1000, everything=True))
        finder = finder_of(task, report, found)
        finder.find(task)
        await until(lambda: waits(report), "it says what it waits for")
        assert f"waits for schema {version} of web" in report.problems[0]
        glue.versions[str(version)] = missing
        await asyncio.wait_for(found.wait(), 20)
        await counted(task, finder, found)
    registry_at.cache_clear()
    assert counters(task)[0]["logs"]["web"]["counters"]["accepted"] == EACH
