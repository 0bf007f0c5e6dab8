"""A worker that is killed or stopped stops nobody else, and its partitions go on soon after."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from streamer.kafka.log_ends import KafkaLogEnds
from streamer.server.exporter import Exporter
from streamer.settings.model import Topics
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import Bench, Worker, bench, document_of, until

PARTITIONS = 4
EVENTS_PER_SECOND = 500
BACK_SECONDS = 10.0
"""Longest time for which the partitions of a killed worker stand still."""
UNDISTURBED_SECONDS = 3.0
"""Longest time for which those of the others do; a commit follows an event by half a second."""
WATCHED_SECONDS = 14.0


@contextlib.asynccontextmanager
async def traffic(brokers: str, topics: Topics) -> AsyncIterator[None]:
    """Impressions of now on all partitions, until the block ends."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=5)
    await producer.start()

    async def produce() -> None:
        pause, number = PARTITIONS / EVENTS_PER_SECOND, 0
        due = time.monotonic()
        while True:
            for partition in range(PARTITIONS):
                number += 1
                event = {
                    "ts": int(time.time() * 1000),
                    "user_id": f"u{partition}-{number % 100}",
                    "item_id": f"i{number % 50}",
                }
                value = json.dumps(event).encode()
                await producer.send(topics.impressions, value, partition=partition)
            due += pause
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    task = asyncio.create_task(produce())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await producer.stop()


async def standstills(made: Bench, seconds: float) -> dict[int, float]:
    """Of each partition the longest time in which its stored offset did not move."""
    started = time.monotonic()
    moved = dict.fromkeys(range(PARTITIONS), started)
    offsets = dict.fromkeys(range(PARTITIONS), -1)
    longest = dict.fromkeys(range(PARTITIONS), 0.0)
    while time.monotonic() < started + seconds:
        await made.reader.refresh()
        for number, manifest in made.reader.manifests.items():
            now, offset = time.monotonic(), manifest.topics["impressions"].next_offset
            longest[number] = max(longest[number], now - moved[number])
            if offset != offsets[number]:
                offsets[number], moved[number] = offset, now
        await asyncio.sleep(0.05)
    return longest


def child_of(worker: Worker) -> int:
    """The process id of the only worker of a supervisor."""
    path = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    (child,) = path.read_text().split()
    return int(child)


async def partitions_of(made: Bench) -> dict[str, set[int]]:
    """Worker → the partitions that it counts."""
    return {
        r.worker: {n for n, phase in r.owned.items() if phase == "owned"}
        for r in await made.store.reports()
        if r.is_present
    }


@long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("fate", ["killed for good", "killed, started again", "stopped"])
async def test_a_worker_that_goes_stops_nobody_else(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    fate: str,
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    del document["kafka"]["session_timeout"]
    async with bench(tmp_path, document) as made, traffic(kafka, names):
        command = [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
        first = made.start_worker(command)
        (first_worker,) = await until(lambda: partitions_of(made), "a worker reports", made.said)
        made.start_worker(command)

        async def share() -> dict[str, set[int]] | None:
            found = await partitions_of(made)
            return found if sorted(map(len, found.values())) == [2, 2] else None

        before = await until(share, "each of two workers has two partitions", made.said)
        await asyncio.sleep(3)
        victim = child_of(first)
        theirs = before[first_worker]
        if fate == "stopped":
            first.process.send_signal(signal.SIGTERM)
        elif fate == "killed for good":
            first.kill()
            os.kill(victim, signal.SIGKILL)
        else:
            os.kill(victim, signal.SIGKILL)
        longest = await standstills(made, WATCHED_SECONDS)
        if fate == "killed, started again":  # nothing is left of the one that was killed
            reports = await made.store.reports()
            assert {r.worker for r in reports if r.is_present} == set(before)
            assert await partitions_of(made) == before
        print(f"partitions stood still for {longest} s; the killed worker had {theirs}")
        back = max(longest[n] for n in theirs)
        others = max(longest[n] for n in set(longest) - theirs)
        assert back < (BACK_SECONDS if "killed" in fate else UNDISTURBED_SECONDS), made.said()
        assert others < UNDISTURBED_SECONDS, made.said()


@long
@pytest.mark.timeout(180)
async def test_two_hosts_of_one_name_are_distinguished(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    """As containers on the host's network: one host name, and folders of their own."""
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    document["kafka"]["host_name"] = "same"
    async with bench(tmp_path, document) as made:
        for place in ("one", "other"):
            (tmp_path / place).mkdir()
            run = [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
            made.start_worker(["env", f"TMPDIR={tmp_path / place}", *run])

        async def share() -> bool:
            found = await partitions_of(made)
            return sorted(map(len, found.values()))[-2:] == [2, 2]

        await until(share, "each has two partitions, under a name of its own", made.said, 60.0)
        await asyncio.sleep(3 * 2 + 1)
        assert await share()
        await made.stop_workers()
        assert "another worker is already called same:0" in made.said()


@long
@pytest.mark.timeout(120)
async def test_the_lag_is_true_when_all_workers_are_dead(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        exporter = Exporter(made.settings, made.store, KafkaLogEnds(made.settings))

        async def lag() -> int | None:
            await exporter.refresh()
            return None if exporter.ends.problem else sum(exporter.lags.values())

        async def none_waits() -> bool:
            known = exporter.ends.bounds.get(("impressions", 1))
            return await lag() == 0 and known == (0, 102, 102)

        async with exporter.ends.followed(lambda: exporter.reader.count):
            worker = made.start_worker()
            await _produce_once(kafka, names, 100)
            await until(none_waits, "all is counted", made.said)
            worker.kill()
            await _produce_once(kafka, names, 250)

            async def all_wait() -> bool:
                is_known = await lag() == 252  # nobody has read past the two new markers
                return is_known and exporter.standstill.seconds[1] > 0

            await until(all_wait, "250 records and two markers wait")
            assert exporter.lags["impressions", 1] == 252
            assert not exporter.standstill.seconds[0]


async def _produce_once(brokers: str, topics: Topics, events: int) -> None:
    """Impressions of now on partition 1, in two transactions: each leaves a marker in the log."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, transactional_id=topics.impressions)
    await producer.start()
    try:
        for some in (events // 2, events - events // 2):
            async with producer.transaction():
                for number in range(some):
                    now_ms = int(time.time() * 1000)
                    event = {"ts": now_ms, "user_id": "u", "item_id": f"i{number}"}
                    value = json.dumps(event).encode()
                    await producer.send(topics.impressions, value, partition=1)
    finally:
        await producer.stop()
