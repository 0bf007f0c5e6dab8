"""The bound of memory of a whole worker."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from streamer.cli.check import memory_finding
from streamer.cli.finding import OK, WARN
from streamer.settings.load import parse
from streamer.worker.memory_bound import MemoryBound, memory_bytes, partition_bytes

PAGES = (1 << 20) // os.sysconf("SC_PAGE_SIZE")
"""Of a megabyte."""
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


def test_a_worker_is_full_until_it_is_well_below_its_bound() -> None:
    taken = 0

    def text(path: str) -> str:
        return f"0 {taken * PAGES} 0" if path == "/proc/self/statm" else ""

    bound = MemoryBound(parse({"limits": {"worker_memory_mb": 1000}}), text)
    seen = []
    for megabytes in (900, 1001, 980, 951, 949, 1000):
        taken = megabytes
        bound.look()
        seen.append(bound.is_full)
        assert (bound.problem is not None) == bound.is_full
    assert seen == [False, True, True, True, False, False]
    taken = 1200
    bound.look()
    assert "it uses more than its 1000 MB of memory" in str(bound.problem)


def test_a_bound_of_its_own_is_a_share_of_what_there_is() -> None:
    bound = MemoryBound(parse({}), lambda path: MEMINFO if path == "/proc/meminfo" else "")
    assert bound.most == int(4096000 * 1024 * 0.85)
    assert MemoryBound(parse({}), lambda _: "").most is None


def test_check_says_what_partitions_may_take() -> None:
    few = {"event_ids": 1000, "open_impressions": 1000, "open_feedback": 1000, "user_items": 1000}
    small = parse({"limits": {**few, "open_sessions": 1000, "items": 1000}})
    assert sum(partition_bytes(small).values()) < 3_000_000
    finding = memory_finding(small, 4)
    assert (finding.level, "which 4 of 4 partitions fit into" in finding.what) == (OK, True)
    tight = parse({"limits": {"worker_memory_mb": 1000}})
    finding = memory_finding(tight, 4)
    assert (finding.level, "which 0 of 4 partitions fit into" in finding.what) == (WARN, True)
    assert "open_impressions 3." in finding.what


def test_rows_that_are_not_kept_take_nothing() -> None:
    assert "user_days" not in partition_bytes(parse({}))
    bare = parse({"metrics": {"families": ["traffic"]}})
    assert partition_bytes(bare).keys() == {
        *("event_ids", "open_impressions", "open_feedback", "open_sessions"),
    }
