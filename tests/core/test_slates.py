"""Slates where another worker takes over in the middle, and where a bound closes them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from tests.oracle.oracle import run
from tests.oracle.shape import Readings
from tests.oracle.timeline import H, Log, M, S
from tests.support.agreement import differences, read_engines, run_engines, to_log
from tests.support.canonical import canonical
from tests.support.engines import Engines, LogChunk, LogRecord, chunks_of
from tests.support.lanes import long, shortened
from tests.support.rollups import every

BASE: dict[str, Any] = {
    "dimensions": [{"name": "variant"}],
    "windows": {"lengths": ["1h", "24h"]},
    "metrics": every(
        "variant",
        k=[2, 10],
        feedback={"click": 1.0, "like": 3.0},
        conventions={"ndcg_ratio": ["jurity"]},
    ),
}
PLAIN = parse(BASE)
GRADED = parse(
    {**BASE, "metrics": {**BASE["metrics"], "feedback": {"click": 1.0, "conversion": 5.0}}}
)


def value(readings: Readings, name: str, **labels: Any) -> float | None:
    """In the window of 24 hours, of all segments unless told otherwise, provisional."""
    wanted = {"window": "24h", "variant": "all", "maturity": "provisional", **labels}
    return readings.get((f"streamer_{name}", frozenset((k, str(v)) for k, v in wanted.items())))


def slate(log: Log, event_ms: int, items: str, **fields: Any) -> Log:
    """A whole slate in one event, an item a letter."""
    return log.shown(
        event_ms, items=[{"item_id": i} for i in items], **{"request_id": "r"} | fields
    )


async def recovered(
    settings: Settings, log: Sequence[LogRecord], seed: int, size: int = 2, commits: float = 1.0
) -> Engines:
    """Fed in small chunks; another worker takes over after each commit."""
    store, engines, dice = MemoryStore(), Engines(settings, 1), Random(seed)
    await store.set_partitions(1)
    journal = await take_over(store, engines)
    for chunk in chunks_of(log, size, seed):
        engines.feed(chunk)
        if dice.random() < commits:
            await store.commit(0, journal.prepare())
            journal = await take_over(store, engines)
    engines.finish()
    return engines


async def take_over(store: MemoryStore, engines: Engines) -> Journal:
    claim, stored = await store.claim(0)
    partition = Partition(engines.settings, engines.catalogue, engines.key)
    engines.partitions[0] = partition
    return await load_partition(store, 0, partition, claim, stored)


@pytest.mark.parametrize("settings", [PLAIN, GRADED], ids=["clicks", "conversions"])
@pytest.mark.parametrize(
    ("seed", "commits"), shortened([(0, 1.0), (3, 0.1), (1, 1.0), (2, 0.3), (4, 0.1)], 2)
)
async def test_takeovers_in_the_middle_of_slates_change_nothing(
    settings: Settings, seed: int, commits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BLOB_FAN_IN", 2)
    log = Log()
    for i in range(6):
        at_ms = i * 40 * M
        log.shown(at_ms, request_id=f"r{i}", item_id="a", position=1, score=0.2, reference=["b"])
        log.click(at_ms + S, request_id=f"r{i}", item_id="b")
        log.shown(at_ms, at_ms + M, request_id=f"r{i}", item_id="b", position=2, score=0.1)
        log.shown(at_ms + 30 * M, request_id=f"r{i}", item_id="c", held_out="c")
        early: dict[str, Any] = {"item_id": "d", "reference": ["d", "c"], "held_out": "x"}
        log.shown(at_ms - M * (i % 2), at_ms + 31 * M, request_id=f"r{i}", **early)
        log.bought(at_ms + 2 * H, request_id=f"r{i}", item_id="b")
    records = to_log(log.records)
    reference = run_engines(settings, 1, records, 10**6)
    engines = await recovered(settings, records, seed, 2, commits)
    expected = run(log.records, settings).readings
    assert differences(read_engines(engines), expected) == []
    assert canonical(engines.partitions[0]) == canonical(reference.partitions[0])


async def fed_in_two(settings: Settings, log: Log, first: int) -> Readings:
    """The first records one by one and in one commit; another worker does the others."""
    store, engines, records = MemoryStore(), Engines(settings, 1), to_log(log.records)
    await store.set_partitions(1)
    journal = await take_over(store, engines)
    for i, record in enumerate(records):
        if i == first:
            await store.commit(0, journal.prepare())
            journal = await take_over(store, engines)
        engines.feed(LogChunk(record.kind, record.partition, [record]))
    engines.finish()
    return read_engines(engines)


async def test_a_slate_of_several_batches_in_one_blob_keeps_its_bound() -> None:
    log = Log().shown(0, request_id="r", items=[{"item_id": f"a{i}"} for i in range(600)])
    log.shown(0, user_id="v", item_id="x")
    log.shown(S, request_id="r", items=[{"item_id": f"b{i}"} for i in range(600)])
    log.click(2 * S, request_id="r", item_id="b599").click(2 * S, request_id="r", item_id="a599")
    expected = run(log.records, PLAIN).readings
    assert differences(await fed_in_two(PLAIN, log, 3), expected) == []


async def test_a_slate_of_several_batches_in_one_blob_stays_whole() -> None:
    log = slate(Log(), 0, "ab").click(S, request_id="r", item_id="b")
    log.shown(S, user_id="v", item_id="y").shown(85 * M, request_id="r", item_id="c")
    first = len(log.records)
    for minute in range(86, 114, 2):
        log.shown(minute * M, user_id="v", item_id="x").click(minute * M, user_id="v")
    log.click(114 * M, request_id="r", item_id="c").shown(115 * M, user_id="v", item_id="x")
    expected = run(log.records, PLAIN).readings
    assert differences(await fed_in_two(PLAIN, log, first), expected) == []


async def test_slates_closed_by_a_bound_never_show_less_than_none() -> None:
    settings = parse({**BASE, "windows": {"lengths": ["5m"]}, "limits": {"open_impressions": 2}})
    log = Log().shown(0, request_id="r", item_id="a").shown(20 * M, request_id="r", item_id="b")
    log.shown(20 * M, user_id="v", item_id="x").shown(10 * M, 21 * M, request_id="r", item_id="c")
    for seed in range(3):
        readings = read_engines(await recovered(settings, to_log(log.records), seed, 1))
        assert all(v > 0 for (name, _), v in readings.items() if "slates" in name)


@long
def test_keys_of_old_slates_are_forgotten() -> None:
    """Also where the same users come back with other requests again and again."""
    engines = Engines(PLAIN, 1)
    (partition,) = engines.partitions
    for minute in range(0, 60 * 6, 20):
        log = Log()
        for i in range(1500):
            log.shown(minute * M + i, user_id=f"u{i % 50}", request_id=f"r{minute}-{i}")
            log.click(minute * M + i, user_id="v")
        for chunk in chunks_of(to_log(log.records), 10**6):
            engines.feed(chunk)
    assert partition.core.sizes()["slates_rows"] <= 1500 * 110 // 20


def test_what_the_bound_of_impressions_drops_leaves_its_slate_as_it_was_emitted() -> None:
    settings = parse({**BASE, "limits": {"open_impressions": 4}})
    log = slate(Log(), 0, "ab").click(S, request_id="r", item_id="b")
    for at in range(3):
        slate(log, (2 + at) * S, "cd", request_id=f"q{at}")
    log.shown(9 * S, request_id="r", item_id="e").click(10 * S, request_id="r", item_id="e")
    engines = run_engines(settings, 1, to_log(log.records), 1, 1)
    readings = read_engines(engines)
    assert readings["streamer_identity_exact", frozenset()] == 0
    assert all(v >= 0 for (name, _), v in readings.items() if "slates" in name)


def test_members_beyond_the_bound_are_not_retained_for_conversions() -> None:
    settings = parse(
        {
            **BASE,
            "metrics": {**BASE["metrics"], "feedback": {"click": 1.0, "conversion": 5.0}},
            "limits": {"open_impressions": 4},
        }
    )
    log = slate(Log(), 0, "abc").click(S, request_id="r", item_id="b")
    slate(log, 2 * S, "abc", request_id="q").click(3 * S, request_id="q", item_id="c")
    log.shown(4 * H, user_id="v", item_id="x").click(4 * H, user_id="v")
    log.bought(5 * H, request_id="r", item_id="b").bought(5 * H, request_id="q", item_id="c")
    (partition,) = (engines := run_engines(settings, 1, to_log(log.records), 1, 3)).partitions
    readings = read_engines(engines)
    assert readings["streamer_identity_exact", frozenset()] == 0
    assert partition.core.counters()["evicted_early.retained"] > 0
    assert value(readings, "window_slates", over="engaged") == 2
    assert all(v >= 0 for (name, _), v in readings.items() if "slates" in name)


def test_brute_force_lists_beyond_the_bound_are_counted() -> None:
    settings = parse({"limits": {"open_impressions": 1000}})
    log = Log()
    for i in range(4):
        log.shown(i * S, request_id=f"r{i}", item_id="a", reference=[f"i{j}" for j in range(400)])
    (partition,) = (engines := run_engines(settings, 1, to_log(log.records), 10)).partitions
    readings = read_engines(engines)
    assert readings["streamer_identity_exact", frozenset()] == 0
    assert partition.core.counters()["evicted_early.probes"] == 2
    slates = {v for (name, _), v in readings.items() if name == "streamer_window_reference_slates"}
    assert slates == {2}
