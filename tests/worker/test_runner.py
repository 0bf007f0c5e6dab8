"""The worker's state machine on the store in memory and a scripted log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from streamer._core import Core, PanicException
from streamer.ingest.dead_letters import DeadLetter
from streamer.kafka.chunk import chunk_of
from streamer.kafka.fingerprints import fingerprint_of
from streamer.settings import limits
from streamer.state import partition
from streamer.state.journal import Journal
from streamer.state.manifest import Manifest, decode
from streamer.state.memory import MemoryStore
from streamer.state.store import Answer, Commit
from streamer.worker import recovery
from streamer.worker.partition_task import Phase
from tests.support.scripted import START_MS, TPS, Bench, running, until


async def test_what_is_applied_is_committed_and_released_at_the_end() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        bench.offer("impressions", 5, START_MS)

        def is_applied() -> bool:
            owned = bench.task
            return owned.rows_since_commit == 5 or owned.committed.get("impressions") == 105

        await until(is_applied, "applied")
    assert await bench.stored_events() == 105
    assert await bench.store.owner(0) is None


async def test_a_fenced_commit_during_an_apply_recovers_again() -> None:
    store = MemoryStore()
    commit = store.commit

    async def slow(partition: int, step: Commit) -> Answer:
        await asyncio.sleep(0.03)
        return await commit(partition, step)

    store.commit = slow  # type: ignore[assignment, method-assign]
    bench = Bench(store)
    async with running(bench):
        for i in range(60):
            if bench.task.phase is Phase.OWNED:
                bench.offer("impressions", 500, START_MS)
            if i % 10 == 5:
                await store.claim(0)  # another worker takes it, and dies
            await asyncio.sleep(0.01)
        assert bench.run is not None
        assert not bench.run.done()
        assert bench.runner.worker_report.fenced > 0
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered again")


async def test_a_kafka_error_does_not_end_an_recovery() -> None:
    bench = Bench(MemoryStore())
    bench.log.failures = 2
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered in the end")
        assert len(bench.log.starts) == 3
        assert bench.runner.worker_report.problems == {}


async def test_a_partition_taken_away_is_not_claimed_again() -> None:
    bench = Bench(MemoryStore())
    bench.log.failures = 10**6
    async with running(bench):
        await until(lambda: bench.log.starts, "a recovery was tried")
        bench.log.assigned = False
        await until(lambda: not bench.runner.partitions, "given up")
        claim = await bench.store.owner(0)
        await asyncio.sleep(0.3)
        assert await bench.store.owner(0) == claim
        assert bench.runner.worker_report.problems == {}


async def test_an_idle_partition_notices_that_the_store_was_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "STANDING_SECONDS", 0.05)
    store = MemoryStore()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        store.claims.clear()
        store.states.clear()
        store.held.clear()
        await until(lambda: len(bench.log.starts) == 2, "recovered again")
        assert bench.log.starts[-1][TPS[0]] == 0


async def test_a_partition_whose_blobs_are_gone_is_counted_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "STANDING_SECONDS", 0.05)
    monkeypatch.setattr(limits, "BLOBS_SECONDS", 0.05)
    monkeypatch.setattr(recovery, "_SECOND_LOOK_SECONDS", 0.0)
    store = MemoryStore()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        await asyncio.sleep(0.2)
        assert len(bench.log.starts) == 1  # nothing is missing
        del store.held[0][next(iter(store.held[0]))]
        await until(lambda: len(bench.log.starts) == 2, "it begins at the start of the logs")
        assert bench.log.starts[-1][TPS[0]] == 0
    assert "blobs are missing in Redis" in caplog.text
    assert "it is counted again from Kafka" in caplog.text


async def test_partitions_that_come_back_after_a_rebalance_go_on() -> None:
    """Nothing is loaded or claimed again, and what was fetched before does not count."""
    store = MemoryStore()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        partition, claim = bench.task.partition, await store.owner(0)
        await bench.runner.revoke()
        assert bench.task.phase is Phase.REVOKED
        bench.offer("impressions", 100, START_MS)  # of the generation before
        await bench.runner.assign([0])
        await until(lambda: bench.task.phase is Phase.OWNED, "it goes on")
        assert bench.task.partition is partition
        assert await store.owner(0) == claim
        assert bench.log.starts[-1][TPS[0]] == 100
        await bench.runner.revoke()
        store.claims[0] = "another worker's"
        await bench.runner.assign([0])
        await until(lambda: bench.task.phase is Phase.OWNED, "it is loaded again")
        assert bench.task.partition is not partition
        await bench.runner.revoke()
        await bench.runner.assign([])
        assert not bench.runner.partitions
        await until(lambda: 0 not in store.claims, "the claim is given back")


async def test_nothing_is_applied_between_the_last_commit_and_the_next_assignment() -> None:
    """A partition that has committed does not go on while another one still commits."""
    bench = Bench(MemoryStore())
    async with running(bench):
        await bench.runner.assign([0, 1])
        other = bench.runner.partitions[1]
        await until(lambda: bench.task.phase is other.phase is Phase.OWNED, "recovered")
        async with other.lock:
            revoked = asyncio.create_task(bench.runner.revoke())
            await until(lambda: not bench.task.lock.locked(), "committed")
            await asyncio.sleep(0)
            bench.offer("impressions", 100, START_MS)
            await asyncio.sleep(0.1)
        await revoked
        assert bench.task.phase is Phase.REVOKED
        assert bench.task.committing is None
        assert not bench.task.dirty
        assert bench.task.committed.get("impressions", 0) == 0


async def test_a_commit_in_the_making_is_not_another_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked where the next commit has its number, but not yet its position."""
    monkeypatch.setattr(limits, "STANDING_SECONDS", 0.0)
    bench, loop, written = Bench(MemoryStore()), asyncio.get_running_loop(), Journal._manifest
    standing = bench.store.standing

    async def late(partitions: Sequence[int]) -> Any:
        """What stood there, reported once the next position is known, or soon."""
        found, journal = await standing(partitions), bench.task.journal
        position = journal and journal.position
        for _ in range(100):
            if journal and journal.position != position:
                break
            await asyncio.sleep(0.001)
        return found

    def meanwhile(journal: Journal, *made: Any) -> Manifest:
        asyncio.run_coroutine_threadsafe(
            bench.runner.store_watch.ask(bench.runner.partitions), loop
        )
        time.sleep(0.05)
        return written(journal, *made)

    monkeypatch.setattr(Journal, "_manifest", meanwhile)
    monkeypatch.setattr(bench.store, "standing", late)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        await asyncio.sleep(0.3)
        assert bench.task.phase is Phase.OWNED


async def test_whatever_ends_a_commit_leads_to_a_new_recovery() -> None:
    store = MemoryStore()
    commit = store.commit

    async def broken(partition: int, step: Commit) -> Answer:
        store.commit = commit  # type: ignore[method-assign]
        raise RuntimeError("a client's own mistake")

    store.commit = broken  # type: ignore[assignment, method-assign]
    bench = Bench(store)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: len(bench.log.starts) == 2, "recovered again")
        await until(lambda: bench.runner.worker_report.problems == {}, "no problem is left")


@pytest.mark.parametrize("error", [PanicException("index out of bounds"), ValueError("u7's")])
async def test_after_an_error_of_ours_a_partition_is_loaded_again(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(MemoryStore())
    failures = [error, error]

    def fails(core: Any, at_end: Sequence[str]) -> None:
        if failures and core.log("impressions")[0] > 100:
            raise failures.pop()
        end_apply(core, at_end)

    end_apply = Core.end_apply
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 100, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 100, "committed")
        monkeypatch.setattr(partition, "Core", with_end_apply(fails))
        await bench.runner._recover_again(0)
        await until(lambda: len(bench.log.starts) == 2, "recovered again")
        for attempt in (3, 4):
            bench.offer_again("impressions", 100, 50, START_MS)
            await until(lambda n=attempt: len(bench.log.starts) == n, "loaded again")  # type: ignore[misc]
            assert bench.log.starts[-1][TPS[0]] == 100, "nothing of it was stored"
        assert bench.runner.worker_report.problems.keys() == {0}, "until it has committed"
        assert "u7" not in bench.runner.worker_report.problems[0]
        bench.offer_again("impressions", 100, 50, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 150, "committed")
        await until(lambda: bench.runner.worker_report.problems == {}, "no problem is left")
    assert await bench.stored_events() == 150
    assert "partition 0: loading it again" in caplog.text


def with_end_apply(instead: Callable[[Any, Sequence[str]], None]) -> Any:
    """The core's class with another ``end_apply``."""

    class Replaced:
        def __init__(self, spec: bytes) -> None:
            self.core = Core(spec)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def end_apply(self, at_end: Sequence[str]) -> None:
            instead(self.core, at_end)

    return Replaced


async def test_a_stale_chunk_is_not_taken() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        old = bench.task.epochs["impressions"]
        of_kafka = {"offset": 0, "timestamp": START_MS, "value": b"{}"}
        records = [SimpleNamespace(**of_kafka, key=None, headers=())]
        bench.runner.offer(chunk_of("impressions", 0, old - 1, "impressions", records))
        assert not bench.task.queues["impressions"]


async def test_a_cut_log_is_declared_with_its_range() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 10, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 10, "committed")
        bench.log.start_offset = 25
        bench.log.gone = {TPS[0]}
        await until(lambda: bench.task.committed.get("impressions") == 25, "declared")
        assert bench.task.partition is not None
        found = bench.task.partition.logs["impressions"]
        assert (found.lost, found.gaps, found.restarts) == (15, [(10, 24)], 0)
        assert bench.log.starts[-1][TPS[0]] == 25


async def test_another_log_of_the_same_name_is_read_from_its_start() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 10, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 10, "committed")
        bench.log.records = {(TPS[0], 9): fingerprint_of(9, START_MS, b"another one")}
        bench.log.gone = {TPS[0]}
        await until(lambda: bench.task.committed.get("impressions") == 0, "declared")
        assert bench.task.partition is not None
        assert bench.task.partition.logs["impressions"].restarts == 1
        assert bench.task.journal is not None
        assert bench.task.journal.fingerprints["impressions"] == []


async def test_a_caught_up_topic_holds_nobody_back() -> None:
    """Steady impressions; one click's record is two hours ahead: clicks go on all the same."""
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("clicks", 1, START_MS + 2 * 3_600_000)
        for i in range(40):
            bench.offer("impressions", 1, START_MS + i)
            if i % 4 == 0:
                bench.offer("clicks", 1, START_MS + i)
            await asyncio.sleep(0.01)
        partition = bench.task.partition
        assert partition is not None
        await until(lambda: partition.logs["clicks"].next_offset == 11, "all clicks are applied")


async def test_a_worker_without_memory_goes_on() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        memory = bench.runner.memory
        memory.most = memory.of_rows = 1
        await until(lambda: memory.is_full, "it has looked")
        for _ in range(2):
            bench.offer("impressions", 10, START_MS)
            assert TPS[0] in bench.runner._paused, "little waits at a time"
            await until(lambda: TPS[0] not in bench.runner._paused, "fetched again")
        await until(lambda: bench.task.committed.get("impressions") == 20, "committed")
        assert bench.runner.worker_report.log_problems == []
        partition = bench.task.partition
        assert partition is not None
        counters = partition.core.counters
        await until(lambda: counters()["evicted_early.impressions"] == 20, "all have left")


async def test_a_stale_chunk_pauses_nothing() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.runner.memory.is_full = True
        of_kafka = {"offset": 0, "timestamp": START_MS, "value": b"{}"}
        records = [SimpleNamespace(**of_kafka, key=None, headers=())]
        old = bench.task.epochs["impressions"] - 1
        bench.runner.offer(chunk_of("impressions", 0, old, "impressions", records))
        assert bench.runner._paused == set()


async def test_each_partition_is_recovered_by_what_could_be_read_then() -> None:
    bench = Bench(MemoryStore())
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        runner = bench.runner
        assert not runner.recover_changed(set())
        bench.task.left_out = frozenset(["sessions"])  # as if it were recovered without it
        assert not runner.recover_changed({"sessions"}), "its cluster says itself when it is back"
        assert runner.recover_changed(set())
        await until(lambda: bench.task.left_out == frozenset(), "recovered with all topics")


async def test_dead_letters_wait_for_their_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DEAD_LETTERS", 2000)
    bench = Bench(MemoryStore())

    async def slow(letters: Sequence[DeadLetter]) -> None:
        await asyncio.sleep(len(letters) / 10_000)

    bench.runner.dead_letters.send = slow  # type: ignore[method-assign]
    most = 0
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        for _ in range(50):
            if bench.task.rows("impressions") < 5000:
                bench.offer("impressions", 1000, START_MS, b"broken")
            most = max(most, len(bench.task.dead))
            await asyncio.sleep(0.01)
    assert 0 < most <= 2000 + 5 * 1000


async def test_settings_that_are_applied_again_protect_what_is_in_memory() -> None:
    """The next commit has the new number, though nothing is loaded again."""
    store = MemoryStore()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        bench.offer("impressions", 10, START_MS)
        await until(lambda: bench.task.committed.get("impressions") == 10, "committed")
        assert decode(store.states[0].manifest).generation == 1
        await store.declare_settings("others", above=1)
        await store.declare_settings(bench.runner.fingerprint, above=2)
        assert await bench.runner.declare_settings() == (3, 3)

        def is_protected() -> bool:
            return decode(store.states[0].manifest).generation == 3

        await until(is_protected, "committed under the new number")
