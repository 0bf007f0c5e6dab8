"""The bound of memory of a whole worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import pytest

from streamer.cli.check import memory_finding
from streamer.cli.finding import OK, WARN
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.worker_report import WorkerReport
from streamer.worker.memory_bound import ROW_BYTES, MemoryBound, memory_bytes, partition_bytes
from tests.support.agreement import read_engines
from tests.support.engines import Engines, LogRecord, chunks_of

SMALL = dict.fromkeys(
    ("event_ids", "open_impressions", "open_feedback", "user_items", "open_sessions", "items"), 1000
)
PAGES = (1 << 20) // os.sysconf("SC_PAGE_SIZE")
"""Of a megabyte."""
START_MS = 1_700_000_000_000
MEMINFO = "MemTotal:       4096000 kB\nMemFree:         100 kB\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"/proc/meminfo": MEMINFO}, 4096000 * 1024),
        ({"/proc/meminfo": MEMINFO, "/sys/fs/cgroup/memory.max": "max\n"}, 4096000 * 1024),
        ({"/proc/meminfo": MEMINFO, "/sys/fs/cgroup/memory.max": "1000000\n"}, 1_000_000),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000"}, 2_000_000),
    ],
)
def test_what_there_is(files: Mapping[str, str], expected: int | None) -> None:
    assert memory_bytes(lambda path: files.get(path, "")) == expected


def bound_of(settings: Settings, megabytes: Callable[[], int]) -> MemoryBound:
    def text(path: str) -> str:
        return f"0 {megabytes() * PAGES} 0" if path == "/proc/self/statm" else ""

    return MemoryBound(settings, text)


def test_a_worker_is_full_beyond_its_bound() -> None:
    taken = 100
    bound = bound_of(parse({"limits": {"worker_memory_mb": 1000}}), lambda: taken)
    assert bound.of_rows == int((900 << 20) * 0.75)
    seen = []
    for megabytes in (900, 1001, 1200, 999):
        taken = megabytes
        bound.look([])
        seen.append(bound.is_full)
    assert seen == [False, True, True, False]


def shown(count: int, first: int = 0) -> list[LogRecord]:
    """Impressions, each a slate of its own."""
    event = b'{"ts":%d,"user_id":"u%d","item_id":"i","request_id":"r%d"}'
    return [
        LogRecord("impressions", 0, n, START_MS + n, event % (START_MS + n, n, n))
        for n in range(first, first + count)
    ]


def clicked(*numbers: int) -> list[LogRecord]:
    event = b'{"ts":%d,"user_id":"u%d","item_id":"i","request_id":"r%d"}'
    return [
        LogRecord("clicks", 0, at, START_MS + n, event % (START_MS + n, n, n))
        for at, n in enumerate(numbers)
    ]


def feed(engines: Engines, bound: MemoryBound, records: Sequence[LogRecord]) -> int:
    """What a worker does at each tick; returns how many impressions were kept at most."""
    most = 0
    for chunk in chunks_of(records, 1000):
        bound.bound(0, engines.partitions[0].core)
        engines.feed(chunk)
        most = max(most, engines.partitions[0].core.sizes()["impressions_rows"])
    return most


def test_beyond_its_memory_a_partition_goes_on_and_says_what_is_not_exact() -> None:
    settings = parse(
        {"metrics": {"families": ["traffic"]}, "limits": {"worker_memory_mb": 100 + 3}}
    )
    bound = bound_of(settings, lambda: 100)
    engines, free = Engines(settings, 1), Engines(settings, 1)
    most = feed(engines, bound, shown(50_000))
    assert most < 20_000
    assert bound.of_rows is not None
    tables = dict(engines.partitions[0].core.bounded())
    assert tables["impressions"] * ROW_BYTES["impressions"] < bound.of_rows
    late = clicked(10, 49_990)
    feed(engines, bound, late)
    for chunk in chunks_of([*shown(50_000), *late], 1000):
        free.feed(chunk)
    (partition,) = engines.partitions
    early = partition.core.counters()["evicted_early.impressions"]
    assert early > 30_000
    ours, exact = read_engines(engines), read_engines(free)
    causes = {dict(labels)["cause"] for name, labels in ours if name == "streamer_inexact"}
    assert causes == {"impressions"}
    differing = {name for name, _ in ours.keys() ^ exact.keys()} | {
        name for (name, labels), value in ours.items() if exact.get((name, labels)) != value
    }
    assert "streamer_ctr_attributed_ratio" in differing
    exact_ones = {"impressions_total", "window_impressions", "window_clicks", "ctr_ratio"}
    assert differing.isdisjoint(f"streamer_{name}" for name in exact_ones), differing


def test_a_report_says_what_is_taken_and_how_full_the_fullest_partition_is() -> None:
    settings = parse({"limits": {"open_impressions": 20_000, "worker_memory_mb": 1000}})
    bound, report = bound_of(settings, lambda: 100), WorkerReport("w")
    for number, count in enumerate((5000, 8000, 1000)):
        engines = Engines(settings, 1)
        feed(engines, bound, shown(count))
        core = engines.partitions[0].core
        bound.bound(number, core)
        if count == 8000:
            rows = core.sizes()["impressions_rows"]
    bound.tell(report)
    assert report.tables_used["impressions"] == round(rows / 20_000, 4) > 0.3
    assert (report.memory_bytes, report.memory_limit_bytes) == (100 << 20, 1000 << 20)
    bound.look([])
    bound.tell(report)
    assert report.tables_used == {}


def test_what_gives_way_is_what_takes_most() -> None:
    settings = parse({"limits": {"worker_memory_mb": 100 + 40}})
    bound, engines = bound_of(settings, lambda: 100), Engines(settings, 1)
    visits = [
        LogRecord("sessions", 0, n, START_MS + n, event % (START_MS + n, n))
        for event in [b'{"ts":%d,"user_id":"u%d","session_id":"s","action":"view"}']
        for n in range(2000)
    ]
    feed(engines, bound, [*visits, *shown(200_000)])
    counters = engines.partitions[0].core.counters()
    assert counters["evicted_early.impressions"] > 0
    assert counters["evicted_early.sessions"] == 0


def test_partitions_share_what_there_is() -> None:
    settings = parse({"metrics": {"families": ["traffic"]}, "limits": {"worker_memory_mb": 104}})
    bound = bound_of(settings, lambda: 100)
    both = [Engines(settings, 1).partitions[0].core for _ in range(2)]
    for core in both:
        engines = Engines(settings, 1)
        engines.partitions[0].core = core
        for chunk in chunks_of(shown(8000), 1000):
            engines.feed(chunk)
    assert not bound.bound(0, both[0])
    assert bound.bound(1, both[1])
    assert bound.bound(0, both[0])
    bound.look([1])  # the other one has moved away
    assert not bound.bound(1, both[1])


def test_a_bound_of_its_own_is_a_share_of_what_there_is() -> None:
    bound = MemoryBound(parse({}), lambda path: MEMINFO if path == "/proc/meminfo" else "")
    assert bound.most == int(4096000 * 1024 * 0.85)
    assert MemoryBound(parse({}), lambda _: "").most is None


def test_check_says_what_partitions_may_take() -> None:
    small = parse({"limits": SMALL})
    assert sum(partition_bytes(small).values()) < 3_000_000
    finding = memory_finding(small, 4)
    assert (finding.level, "enough for 4 of 4 partitions" in finding.what) == (OK, True)
    assert memory_finding(small, None).level == OK
    assert memory_finding(small, 10**6).level == WARN
    tight = parse({"limits": {"worker_memory_mb": 1000}})
    for partitions, said in (
        (4, "enough for 0 of 4 partitions"),
        (None, "enough for 0 of 1 partition"),
    ):
        finding = memory_finding(tight, partitions)
        assert (finding.level, said in finding.what) == (WARN, True)
        assert "open_impressions 3." in finding.what
    more = memory_finding(parse({"limits": {**SMALL, "worker_memory_mb": 10**9}}), 4)
    assert (more.level, "the machine or container has" in more.what) == (WARN, True)


def test_rows_that_are_not_kept_take_nothing() -> None:
    assert "user_days" not in partition_bytes(parse({}))
    bare = parse({"metrics": {"families": ["traffic"]}})
    assert partition_bytes(bare).keys() == {
        *("event_ids", "open_impressions", "open_feedback", "open_sessions"),
    }
