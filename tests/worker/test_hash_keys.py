"""Each prefix has a key of its own, under which ids are hashed; its state says which."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from streamer.cli import arguments
from streamer.cli.check_store import key_finding
from streamer.cli.finding import ERROR, WARN
from streamer.errors import StoreError, UsageError
from streamer.ingest.hash_key import FIXED_KEY, HashKey, key_text, parse_key, random_key
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Settings
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from streamer.state.manifest import Manifest, decode, require_key
from streamer.state.memory import MemoryStore
from streamer.state.store import Stored
from streamer.worker import recovery
from tests.oracle.hashing import digest
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.support.agreement import (
    SETTINGS,
    by_key,
    log_records,
    read_engines,
    run_engines,
    to_log,
)
from tests.support.canonical import canonical
from tests.support.engines import Engines
from tests.support.scripted import START_MS, Bench, running, until
from tests.worker.test_recovery import COUNTED, count_some

ONE, OTHER = (1, 2), (3, 1 << 63)


def manifest_of(store: MemoryStore) -> Manifest:
    return decode(store.states[0].manifest)


# The key ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [FIXED_KEY, ONE, OTHER, (0, 0), (2**64 - 1, 2**64 - 1)])
def test_a_key_is_its_text(key: HashKey) -> None:
    assert parse_key(key_text(key)) == parse_key(key_text(key).upper()) == key


def test_random_keys_differ() -> None:
    keys = {random_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(0 <= half < 2**64 for key in keys for half in key)


@pytest.mark.parametrize(
    "text", ["", "0" * 31, "0" * 33, "g" * 32, "0" * 31 + "\n", "0x" + "1" * 30]
)
def test_other_text_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a hash key has 32 hexadecimal digits$"):
        parse_key(text)
    with pytest.raises(UsageError) as error:
        arguments.parse(["replay", "-", f"--hash-key={text}"])
    assert f"--hash-key: a hash key has 32 hexadecimal digits; this has {len(text)}" in str(
        error.value
    )
    assert len(text) < 31 or text not in str(error.value)


# Recovery -----------------------------------------------------------------------------------------


async def test_the_first_worker_makes_it_and_the_state_names_it() -> None:
    keys = set()
    for _ in range(2):
        store = MemoryStore()
        async with running(Bench(store)) as bench:
            await count_some(bench)
        assert store.key == manifest_of(store).hash_key
        keys.add(store.key)
    assert len(keys - {FIXED_KEY}) == 2


async def test_workers_that_start_at_once_take_one_key() -> None:
    class Slow(MemoryStore):
        async def hash_key(self) -> HashKey | None:
            await asyncio.sleep(0)
            return await super().hash_key()

        async def partitions(self) -> int | None:
            await asyncio.sleep(0)
            return await super().partitions()

    store = Slow()
    found = await asyncio.gather(*[recovery._claim(store, number) for number in range(20)])
    assert {key for key, _, _ in found} == {store.key}


async def test_one_that_ends_between_the_key_and_its_first_commit_leaves_the_key() -> None:
    store = MemoryStore()
    async with running(Bench(store)) as bench:
        await until(lambda: bench.task.epochs, "recovered")
    made = store.key
    assert store.states == {}
    async with running(Bench(store)) as bench:
        await count_some(bench)
    assert made == store.key == manifest_of(store).hash_key


async def test_a_lost_key_is_put_back_from_the_state() -> None:
    store = MemoryStore()
    await store.set_partitions(1)
    async with running(Bench(store)) as first:
        await count_some(first)
    made, store.key = store.key, None
    second = Bench(store)
    second.log.records, second.sent = first.log.records, first.sent
    async with running(second):
        await until(lambda: second.task.epochs, "recovered")
        assert store.key == made
        second.offer("impressions", 5, START_MS)
        done = COUNTED + 5
        await until(lambda: second.task.committed.get("impressions") == done, "committed")
    assert await second.stored_events() == done


async def test_a_partition_without_state_takes_the_key_of_the_others() -> None:
    store = MemoryStore()
    await store.set_partitions(2)
    async with running(Bench(store)) as bench:
        await count_some(bench)
    made, store.key = store.key, None
    key, _, stored = await recovery._claim(store, 1)
    assert (key, stored.manifest) == (made, b"")


async def test_a_state_under_another_key_is_not_continued() -> None:
    store = MemoryStore()
    async with running(Bench(store)) as bench:
        await count_some(bench)
    before, store.key = manifest_of(store), OTHER
    second = Bench(store)
    second.log.records = bench.log.records
    async with running(second) as bench:
        problems = bench.runner.worker_report.problems
        await until(lambda: problems, "it says what is wrong")
        assert problems[0].startswith("partition 0 was counted under another hash key than the one")
        assert "restore all of Redis from one backup" in problems[0]
        assert bench.log.starts == []
        store.key = before.hash_key  # the backup is there
        await until(lambda: not problems, "it goes on by itself")
    assert manifest_of(store).hash_key == before.hash_key
    assert manifest_of(store).topics["impressions"] == before.topics["impressions"]


async def test_a_redis_that_is_emptied_while_a_partition_is_claimed_is_asked_again() -> None:
    class Emptied(MemoryStore):
        async def claim(self, partition: int) -> tuple[str, Stored]:
            found = await super().claim(partition)
            self.key = None
            return found

    with pytest.raises(StoreError, match=r"^the hash key was lost while partition 3 was claimed$"):
        await recovery._claim(Emptied(), 3)


async def test_a_redis_that_was_emptied_gets_another_key() -> None:
    store = MemoryStore()
    async with running(Bench(store)) as bench:
        await count_some(bench)
        made = store.key
        store.key, store.claims, store.states, store.held = None, {}, {}, {}
        bench.sent["impressions"] = COUNTED
        bench.offer("impressions", 1, START_MS)
        await until(lambda: len(bench.log.starts) == 2, "it begins again")
        bench.sent["impressions"] = 0
        await count_some(bench)
    assert made != store.key == manifest_of(store).hash_key


async def test_states_of_two_keys_are_recognised_without_the_stored_one() -> None:
    found = {}
    for number, key in enumerate((ONE, ONE, OTHER)):
        store = MemoryStore()
        await store.set_hash_key(key)
        async with running(Bench(store)) as bench:
            await count_some(bench)
        found[number] = manifest_of(store)
    for stored, wrong in ((None, 2), (ONE, 2), (OTHER, 0)):
        with pytest.raises(StoreError, match=f"^partition {wrong} was counted under another"):
            require_key(found, stored)
    require_key({0: found[0], 1: found[1]}, None)
    for stored, level in ((ONE, None), (None, WARN), (OTHER, ERROR)):
        store.key = stored
        finding = await key_finding("here", store, {0: found[0]})
        assert (None if finding is None else finding.level) == level


# What depends on it -------------------------------------------------------------------------------


def ids_of(engines: Engines) -> set[int]:
    """The hashes of event ids that partitions hold."""
    cores = [partition.core for partition in engines.partitions]
    return {
        id_
        for core in cores
        for kind in KINDS
        for id_ in core.rows(f"ids_{kind}", *core.serials(f"ids_{kind}"))[0]["key"].tolist()
    }


def without_intervals(readings: Readings) -> Readings:
    """Intervals are of groups of users, which go by hashes."""
    return {k: v for k, v in readings.items() if "_lower" not in k[0] and "_upper" not in k[0]}


def test_two_keys_hash_one_id_differently_and_read_the_same() -> None:
    assert len({digest("u1", key) for key in (FIXED_KEY, ONE, OTHER)}) == 3
    settings = SETTINGS["defaults"]
    records = log_records(2, "defaults", 800, 2)
    made = [run_engines(settings, 2, to_log(records), 50, 1, key) for key in (ONE, OTHER)]
    assert len(ids_of(made[0])) == len(ids_of(made[1])) > 100
    assert not ids_of(made[0]) & ids_of(made[1])
    one, other = (without_intervals(read_engines(engines)) for engines in made)
    assert one == other


# Commands -----------------------------------------------------------------------------------------


def test_a_replay_under_the_key_of_a_prefix_holds_its_state(tmp_path: Path) -> None:
    settings, lines = Settings(), random_log(3, Settings(), 600)
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(lines))

    def replayed(*words: str) -> Replay:
        args = arguments.parse(["replay", str(path), *words])
        replay = Replay(settings, args.partitions, key=args.hash_key)
        for some in FileSource([str(path)], settings):
            replay.feed(some)
        replay.finish()
        return replay

    fixed, found = replayed(), replayed(f"--hash-key={key_text(OTHER)}")
    assert (fixed.partitions[0].key, found.partitions[0].key) == (FIXED_KEY, OTHER)
    assert canonical(fixed.partitions[0]) != canonical(found.partitions[0])
    one, other = (without_intervals(by_key(replay.readout())) for replay in (fixed, found))
    assert one.keys() == other.keys()
