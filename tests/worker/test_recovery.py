"""A partition that is taken again: compared with its logs, looked at twice, by one task only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from streamer.kafka.fingerprints import fingerprint_of
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.store import Stored
from streamer.worker import recovery
from streamer.worker.partition_task import Phase
from tests.support.scripted import START_MS, TPS, Bench, running, until

COUNTED = 100


async def count_some(bench: Bench) -> None:
    await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
    bench.offer("impressions", COUNTED, START_MS)
    await until(lambda: bench.task.committed.get("impressions") == COUNTED, "committed")


# Logs are compared after every rebalance ----------------------------------------------------------


def recreated(bench: Bench) -> None:
    """A topic of the same name: longer than what was read, with other records."""
    bench.log.records = {
        (TPS[0], COUNTED - 1): fingerprint_of(COUNTED - 1, START_MS, b"another one")
    }


def truncated(bench: Bench) -> None:
    bench.log.start_offset = COUNTED + 25


@pytest.mark.parametrize(
    ("change", "goes_on_at", "declared"),
    [(recreated, 0, (0, [], 1)), (truncated, COUNTED + 25, (25, [(COUNTED, COUNTED + 24)], 0))],
)
async def test_a_partition_that_stays_is_compared_with_its_logs_again(
    change: Callable[[Bench], None],
    goes_on_at: int,
    declared: tuple[int, list[tuple[int, int]], int],
) -> None:
    """Its log changes while the group rebalances; the worker keeps the partition in memory."""
    store = MemoryStore()
    bench = Bench(store)
    async with running(bench):
        await count_some(bench)
        partition = bench.task.partition
        assert partition is not None
        await bench.runner.revoke()
        assert not bench.task.dirty
        assert bench.run is not None
        bench.run.cancel()  # nothing is applied any more
        change(bench)
        await bench.runner.assign([0])
        await until(lambda: bench.task.phase is Phase.OWNED, "it goes on")
        assert bench.task.partition is partition  # nothing was loaded
        assert bench.log.starts[-1][TPS[0]] == goes_on_at
        log = partition.logs["impressions"]
        assert (log.lost, log.gaps, log.restarts) == declared
    stored = decode(store.states[0].manifest).topics["impressions"]
    assert stored.next_offset == goes_on_at
    assert (stored.lost, stored.gaps, stored.restarts) == declared


# Damage counts when it is seen twice --------------------------------------------------------------


class Flawed(MemoryStore):
    """Gives one blob of a partition wrong until it is ``whole`` again."""

    whole = True

    async def blobs(self, partition: int, names: Sequence[str]) -> list[bytes | None]:
        found = await super().blobs(partition, names)
        return found if self.whole else [None, *found[1:]]


async def test_damage_that_is_gone_at_the_second_look_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recovery, "_SECOND_LOOK_SECONDS", 0.2)
    store = Flawed()
    async with running(Bench(store)) as first:
        await count_some(first)
    store.whole = False
    asyncio.get_running_loop().call_later(0.1, setattr, store, "whole", True)
    second = Bench(store)
    second.log.records = first.log.records
    async with running(second):
        await until(lambda: second.task.phase is Phase.OWNED, "recovered")
        assert store.whole
        assert second.log.starts == [dict.fromkeys(TPS, 0) | {TPS[0]: COUNTED}]
        async with second.task.lock:
            assert second.task.partition is not None
            topics = second.task.partition.core.state()["logs"]
        assert topics["impressions"]["counters"]["accepted"] == COUNTED
    assert "counted again" not in caplog.text


async def test_damage_that_stays_is_counted_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recovery, "_SECOND_LOOK_SECONDS", 0.0)
    store = Flawed()
    async with running(Bench(store)) as first:
        await count_some(first)
    store.whole = False
    async with running(Bench(store)) as second:
        await until(lambda: second.task.phase is Phase.OWNED, "recovered")
        assert second.log.starts[-1][TPS[0]] == 0
    assert "counted again from Kafka" in caplog.text


async def test_blobs_that_another_worker_replaced_are_no_damage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever claims a partition meanwhile sweeps blobs away: it is theirs, and not counted again
    by us under their feet."""
    monkeypatch.setattr(recovery, "_SECOND_LOOK_SECONDS", 0.0)
    store = Flawed()
    async with running(Bench(store)) as first:
        await count_some(first)
    store.whole = False
    second, read = Bench(store), store.read

    async def taken(partition: int) -> Stored:
        """At our second look; our first one came with our claim."""
        if store.claims.get(0) and second.task.phase is Phase.RECOVERING and second.log.assigned:
            looks.append(partition)
            if len(looks) == 2:
                store.claims[0] = "another worker's"
                second.log.assigned = False  # as Kafka tells us next
        return await read(partition)

    looks: list[int] = []
    store.read = taken  # type: ignore[method-assign]
    async with running(second):
        await until(lambda: not second.runner.partitions, "left to the other one")
        assert store.claims[0] == "another worker's"
        assert second.log.starts == []
    assert "was claimed by another worker while it was loaded" in caplog.text
    assert "counted again" not in caplog.text


# One recovery of a partition at a time ------------------------------------------------------------


class Slow(MemoryStore):
    """Claims wait until they are let through."""

    def __init__(self) -> None:
        super().__init__()
        self.through = asyncio.Event()
        self.asked = 0

    async def claim(self, partition: int) -> tuple[str, Stored]:
        self.asked += 1
        await self.through.wait()
        return await super().claim(partition)


async def test_a_recovery_ends_where_another_of_its_partition_begins() -> None:
    store = Slow()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: store.asked == 1, "the first one claims")
        first = bench.runner._recoveries[0]
        bench.runner._start_recovery(bench.task, 0.0)
        await until(lambda: store.asked == 2, "the second one claims")
        assert first.cancelled()
        store.through.set()
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        await asyncio.sleep(0.05)
        assert len(bench.log.starts) == 1


async def test_a_recovery_ends_where_the_partition_is_given_to_another_worker() -> None:
    store = Slow()
    bench = Bench(store)
    async with running(bench):
        await until(lambda: store.asked == 1, "it claims")
        await bench.runner.assign([])
        store.through.set()
        await asyncio.sleep(0.05)
        assert store.claims == {}
        assert bench.log.starts == []
