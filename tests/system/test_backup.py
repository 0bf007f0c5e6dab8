"""A backup of everything under a prefix, taken while workers count, and put back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from streamer.cli.main import main
from streamer.errors import CodecError, DamagedError, StoreError
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import Reading, readout
from streamer.settings.model import Settings
from streamer.state.annotations import Annotation
from streamer.state.backup import copy_of, put_back
from streamer.state.memory import MemoryStore
from streamer.state.store import Stored
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.journals import commit, start
from tests.support.workers import Bench, as_toml, bench, document_of, ends_of, produce
from tests.system.test_prefix_owner import impressions

FIRST, MORE = 60, 40


def shown(made: Bench) -> list[Reading]:
    """All that an exporter would show of partitions."""
    found = readout(made.settings, Catalogue(made.settings), made.reader.views).readings
    return [reading for reading in found if "redis" not in reading.name]


async def test_a_backup_is_put_back_into_an_empty_redis(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, redis_prefix: str, tmp_path: Path
) -> None:
    names, first, second = topics(partitions=2), make_redis(), make_redis()
    document = document_of(kafka, names, first.url, redis_prefix, {})
    await produce(kafka, names, impressions(FIRST))
    file = tmp_path / "shop.backup"
    async with bench(tmp_path / "first", document) as made:
        worker = made.start_worker()
        await made.settle(ends_of(impressions(FIRST)))
        await made.store.annotate(Annotation(1_700_000_000_000, "deployed"))
        command = ["-c", str(made.config), str(file)]
        assert await asyncio.to_thread(main, ["backup", *command]) == 0
        await worker.stop()
        await made.reader.refresh()
        before = shown(made)
        copy = MemoryStore.loaded(file.read_bytes())
        again = await copy_of(made.store)
        assert (copy.held, copy.states) == (again.held, again.states)
        older = MemoryStore.loaded(file.read_bytes())
        del older.states[0]
        with pytest.raises(StoreError, match="is newer there: impressions is read up to"):
            await put_back(older, made.store)
    elsewhere = document_of(kafka, names, second.url, redis_prefix, {})
    config = tmp_path / "second.toml"
    config.write_text(as_toml(elsewhere))
    assert await asyncio.to_thread(main, ["restore", "-c", str(config), str(file)]) == 0
    async with bench(tmp_path / "second", elsewhere) as made:
        await made.reader.refresh()
        assert shown(made) == before
        assert [mark.text for mark in (await made.store.annotations()).values()] == ["deployed"]
        more: list[LogRecord] = impressions(FIRST + MORE)
        await produce(kafka, names, more[FIRST:])
        made.start_worker()
        await made.settle(ends_of(more))
        accepted = [m.topics["impressions"].counters for m in made.reader.manifests.values()]
        assert sum(counters["accepted"] for counters in accepted) == FIRST + MORE
        with pytest.raises(StoreError, match="workers count there"):
            await put_back(copy, made.store)
        await made.stop_workers()
        with pytest.raises(StoreError, match="is newer there"):
            await put_back(copy, made.store)


async def test_what_is_missing_is_no_backup() -> None:
    store = MemoryStore()
    with pytest.raises(StoreError, match="nothing is stored"):
        await copy_of(store)
    with pytest.raises(CodecError):
        MemoryStore.loaded(b"no backup")
    run = await start(store, Settings(), 1)
    await commit(store, run, 0)
    copy = MemoryStore.loaded((await copy_of(store)).dump())
    await put_back(copy, empty := MemoryStore())
    assert empty.states[0].manifest == store.states[0].manifest
    assert empty.states[0].position == store.states[0].position
    assert empty.held == store.held
    damaged = MemoryStore.loaded(store.dump())
    damaged.states[0] = replace(damaged.states[0], manifest=damaged.states[0].manifest[:-1])
    await put_back(copy, damaged)
    assert damaged.states[0].manifest == store.states[0].manifest
    name, blob = next(iter(store.held[0].items()))
    store.held[0][name] = blob[:-1] + bytes([blob[-1] ^ 1])
    with pytest.raises(DamagedError, match="damaged"):
        await copy_of(store)
    del store.held[0][name]
    with pytest.raises(StoreError, match=r"1 blobs of its commit are missing"):
        await copy_of(store)


async def test_a_partition_that_a_worker_takes_meanwhile_keeps_its_blobs() -> None:
    store = MemoryStore()
    run = await start(store, Settings(), 1)
    await commit(store, run, 0)
    copy = await copy_of(store)
    taken = MemoryStore.loaded(store.dump())
    claim = taken.claim

    async def claim_late(partition: int) -> tuple[str, Stored]:
        taken.held[partition] = {"new": b"blob"}
        taken.states[partition] = replace(taken.states[partition], position=b"newer")
        return await claim(partition)

    taken.claim = claim_late  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="not restored"):
        await put_back(copy, taken)
    assert "new" in taken.held[0]
