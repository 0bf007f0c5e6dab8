"""Redis Cluster and Sentinel: the same numbers while slots move and replicas take over."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Topics
from streamer.testing.embedded import EmbeddedRedis
from tests.oracle.oracle import Record, records_of_log
from tests.oracle.random_log import random_log
from tests.support.agreement import DOCUMENTS, run_engines, states, to_log
from tests.support.cases import check_readings
from tests.support.clusters import Cluster
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.sentinels import Sentinels
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)

pytestmark = long

PARTITIONS, LINES, SEED, BLOCK = 4, 4_000, 21, 100
BUSY = (2, 0)
"""Partitions with most of the log."""
PAUSE_SECONDS = 0.05
"""Between two blocks of records."""
HALFWAY_SECONDS = 1.0
"""How long some keys of a moving slot are on one node, and some on the other."""
DOCUMENT = {
    **DOCUMENTS["few values"],
    "time": {"max_lateness": "1h", "max_skew": "10d", "dedup_horizon": "1h"},
    "limits": {"gather_rows": 300, "flush_ms": 50},
}


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """A random log."""
    settings = parse(DOCUMENT)
    return records_of_log(random_log(SEED, settings, LINES), settings, partitions=PARTITIONS)


class Load:
    """Writes the log block by block while something else happens."""

    def __init__(self, brokers: str, topics: Topics, log: Sequence[LogRecord]) -> None:
        self.brokers, self.topics = brokers, topics
        self.blocks = [log[start : start + BLOCK] for start in range(0, len(log), BLOCK)]

    async def during(self, share: float, what: Callable[[], object]) -> None:
        """``what`` in a thread, under a load of so great a share of the log, at the least."""
        last = len(self.blocks) - int(share * LINES / BLOCK)
        doing = asyncio.create_task(asyncio.to_thread(what))
        while self.blocks and (len(self.blocks) > last or not doing.done()):
            await produce(self.brokers, self.topics, self.blocks.pop(0))
            await asyncio.sleep(PAUSE_SECONDS)
        await doing

    async def rest(self) -> None:
        for block in self.blocks:
            await produce(self.brokers, self.topics, block)


@asynccontextmanager
async def loaded(
    kafka: str,
    topics: Topics,
    servers: Cluster | Sentinels,
    folder: Path,
    log: Sequence[LogRecord],
) -> AsyncIterator[tuple[Bench, Load]]:
    """Two workers on several servers, and what to load them with."""
    prefix = f"cluster-{uuid.uuid4().hex[:8]}"
    document = document_of(kafka, topics, servers.url, prefix, DOCUMENT)
    document["redis"]["cluster"] = isinstance(servers, Cluster)
    async with bench(folder, document) as made:
        made.start_worker()
        made.start_worker()
        load = Load(kafka, topics, log)

        async def shared() -> bool:
            reports = await made.store.reports()
            owned = [[p for p in r.owned.values() if p == "owned"] for r in reports]
            return all(owned) and sum(map(len, owned)) == PARTITIONS

        await until(shared, "two workers own all partitions", made.said)
        await load.during(0.1, lambda: None)
        yield made, load


async def check(made: Bench, records: list[Record]) -> None:
    """All is read; readings are the oracle's, and states those of an engine fed in this process."""
    log = to_log(records)
    await made.settle(ends_of(log))
    await check_readings(made, records)
    await made.stop_workers()
    assert "Traceback" not in made.said(), made.said()
    key = await made.hash_key()
    expected = states(run_engines(made.settings, PARTITIONS, log, 3000, 5, key))
    stored = await made.states(PARTITIONS)
    for number in range(PARTITIONS):
        for part, value in expected[number].items():
            assert stored[number][part] == value, (number, part)


def other(cluster: Cluster, node: EmbeddedRedis) -> EmbeddedRedis:
    return next(n for n in cluster.nodes if n is not node)


async def test_slots_move_and_a_node_dies_under_load(
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    records: list[Record],
) -> None:
    log = to_log(records)
    made_topics = topics(partitions=PARTITIONS)
    with Cluster(tmp_path / "cluster") as cluster:
        slots = [cluster.slot_of(f"{{{number}}}") for number in BUSY]
        moved: list[int] = []

        def move(slot: int) -> None:
            source = cluster.master_of(slot)
            target = next(n for n in cluster.nodes if n is not source)
            moved.append(cluster.migrate(slot, target, halfway=lambda: time.sleep(HALFWAY_SECONDS)))

        async with loaded(kafka, made_topics, cluster, tmp_path, log) as (made, load):
            await load.during(0.1, lambda: None)
            await counted(made)
            for slot in slots:
                await load.during(0.1, lambda slot=slot: move(slot))  # type: ignore[misc]
            victim = cluster.master_of(slots[0])

            def crash() -> None:
                victim.kill()
                cluster.wait(lambda: not cluster.is_well(other(cluster, victim)))
                victim.start()
                cluster.wait(lambda: all(map(cluster.is_well, cluster.nodes)))

            await load.during(0.2, crash)
            await load.during(0.1, lambda: move(slots[0]))
            await load.rest()
            await check(made, records)
            assert all(keys > 3 for keys in moved), moved


async def test_a_stale_replica_takes_over_under_load(
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    records: list[Record],
) -> None:
    log = to_log(records)
    made_topics = topics(partitions=PARTITIONS)
    with Cluster(tmp_path / "cluster", replicas=True) as cluster:
        number = BUSY[0]
        slot = cluster.slot_of(f"{{{number}}}")
        async with loaded(kafka, made_topics, cluster, tmp_path, log) as (made, load):
            master = cluster.master_of(slot)
            replica = cluster.replica_of(master)
            await load.during(0.2, lambda: None)
            await counted(made)
            cluster.stop_replicating(master)
            before = await position(made, number)
            await load.during(0.3, lambda: None)
            newest = await position(made, number)
            assert newest > before

            def fail_over() -> None:
                master.kill()
                cluster.wait(lambda: cluster.is_master(replica) and cluster.is_well(replica))

            await load.during(0.1, fail_over)
            master.start()  # it comes back as the replica of its successor
            cluster.wait(lambda: not cluster.is_master(master))
            await load.rest()
            await check(made, records)
            assert (
                "loading its state again" in made.said() or "not recovered, retrying" in made.said()
            )


async def test_sentinel_names_another_master_under_load(
    kafka: str,
    topics: MakeTopics,
    tmp_path: Path,
    records: list[Record],
) -> None:
    """Twice: the second time back to the first server, which has become the replica meanwhile."""
    log = to_log(records)
    made_topics = topics(partitions=PARTITIONS)
    with Sentinels(tmp_path / "sentinels") as servers:
        async with loaded(kafka, made_topics, servers, tmp_path, log) as (made, load):
            for old, new in (servers.nodes, servers.nodes[::-1]):
                await load.during(0.2, lambda: None)
                await counted(made)

                def fail_over(old: EmbeddedRedis = old, new: EmbeddedRedis = new) -> None:
                    old.kill()
                    servers.wait(lambda: servers.is_master(new))

                await load.during(0.1, fail_over)
                old.start()  # it comes back as a master, and Sentinel corrects it
                servers.wait_for_replica(old)
            await load.rest()
            await check(made, records)
            assert "cannot commit yet" in made.said()


async def counted(made: Bench) -> None:
    """Wait until the busy partitions have a state."""

    async def have() -> bool:
        await made.reader.refresh()
        return set(BUSY) <= made.reader.manifests.keys()

    await until(have, "the busy partitions are committed", made.said)


async def position(made: Bench, number: int) -> int:
    """Records of a partition that the stored state holds."""
    await made.reader.refresh()
    topics = made.reader.manifests[number].topics
    return sum(int(topic.next_offset) for topic in topics.values())
