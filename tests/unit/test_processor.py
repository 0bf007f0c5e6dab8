"""What readiness depends on."""

from __future__ import annotations

from streamer.processor import health
from streamer.store.memory import MemoryStore
from streamer.store.reader import Reader
from streamer.telemetry import Telemetry


async def reader_of(partitions: int) -> Reader:
    store = MemoryStore()
    if partitions:
        await store.set_partitions(partitions)
    reader = Reader(store)
    await reader.refresh()
    return reader


async def test_nobody_is_there_and_nobody_is_missed() -> None:
    assert health(await reader_of(2), []).is_ready


async def test_a_partition_that_was_not_given_back_is_missed() -> None:
    """Its worker may never have got round to a report."""
    reader = await reader_of(2)
    reader.claimed = {1}
    assert health(reader, []).problems == ("partition 1 of 2: no worker has it",)
    assert health(reader, [Telemetry("a", {0: "owned", 1: "owned"})]).is_ready


async def test_a_silent_worker_is_missed_while_nobody_else_has_its_partitions() -> None:
    reader = await reader_of(2)
    killed = Telemetry("a", {0: "owned", 1: "owned"}, silent_seconds=60)
    assert health(reader, [killed]).problems == (
        "a: has been silent for 60 s",
        "partitions 0, 1 of 2: no worker has it",
    )
    half = Telemetry("b", {0: "owned", 1: "adopting"})
    assert not health(reader, [killed, half]).is_ready
    whole = Telemetry("b", {0: "owned", 1: "owned"})
    assert health(reader, [killed, whole]).is_ready


async def test_an_empty_store_under_workers_is_told() -> None:
    there = Telemetry("a", {0: "owned"})
    assert health(await reader_of(0), [there]).problems == (
        "workers are there, but nothing is stored",
    )


async def test_many_partitions_are_told_in_short() -> None:
    there = Telemetry("a", {0: "owned"}, problems={0: "no broker"})
    assert health(await reader_of(64), [there]).problems == (
        "a: partition 0: no broker",
        "partitions 1, 2, 3, 4, 5, 6, 7, 8 … of 64: no worker has it",
    )
