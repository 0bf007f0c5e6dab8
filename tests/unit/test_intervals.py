"""Sessions and viewings: the order of arrival changes nothing, and what was stored comes back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from streamer.canonical import canonical
from streamer.config import parse
from streamer.engine.intervals import Columns, IntervalTable, together
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.partition import Partition
from streamer.store import codec
from streamer.testing import Engines, LogRecord, chunks_of

GAP_MS = 30


class Counted(IntervalTable):
    """Intervals, and how many there were."""

    def __init__(self, limit: int = 10**6) -> None:
        super().__init__(GAP_MS, 100, limit, parts=np.int64)

    def reduce(self, columns: Columns, starts: Any) -> dict[str, Any]:
        return {"parts": np.add.reduceat(columns["parts"], starts)}

    def put(self, rows: list[tuple[int, int, int]]) -> None:
        key, low, high = (np.array(c) for c in zip(*rows, strict=True))
        parts = np.ones(len(rows), np.int64)
        self.merge({"key": key.astype(np.uint64), "low_ms": low, "high_ms": high, "parts": parts})

    def held(self) -> list[tuple[int, int, int, int]]:
        alive = self.rows["alive"]
        columns = [self.rows[n][alive].tolist() for n in ("key", "low_ms", "high_ms", "parts")]
        return sorted(zip(*columns, strict=True))


def some_rows(seed: int, n: int) -> list[tuple[int, int, int]]:
    dice = random.Random(seed)
    starts = [(dice.randint(1, 4), dice.randint(0, 2000)) for _ in range(n)]
    return [(key, low, low + dice.choice((0, 0, 5, 40))) for key, low in starts]


def in_words(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    found: list[tuple[int, int, int, int]] = []
    for key, low, high in sorted(rows):
        if found and found[-1][0] == key and low - found[-1][2] < GAP_MS:
            _, first, last, parts = found[-1]
            found[-1] = (key, first, max(last, high), parts + 1)
        else:
            found.append((key, low, high, 1))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_arrival_changes_nothing(seed: int) -> None:
    rows = some_rows(seed, 120)
    expected = in_words(rows)
    dice = random.Random(seed)
    for size in (1, 3, 200):
        dice.shuffle(rows)
        table = Counted()
        for i in range(0, len(rows), size):
            table.put(rows[i : i + size])
        assert table.held() == expected


def test_exactly_the_gap_apart_is_apart() -> None:
    table = Counted()
    table.put([(1, 0, 5), (1, 5 + GAP_MS, 99), (2, 0, 5), (2, 4 + GAP_MS, 99)])
    assert table.held() == [(1, 0, 5, 1), (1, 35, 99, 1), (2, 0, 99, 2)]


def test_a_short_interval_within_a_long_one_ends_nothing() -> None:
    key = np.array([1, 1, 1], np.uint64)
    order, starts = together(key, np.array([0, 10, 200]), np.array([180, 12, 201]), GAP_MS)
    assert (order.tolist(), starts.tolist()) == ([0, 1, 2], [0])


@pytest.mark.parametrize("seed", range(6))
def test_the_newest_stored_version_of_a_row_counts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.engine.intervals._COMPACT_ROWS", 10)
    rows = sorted(some_rows(seed, 150), key=lambda row: row[1] + 20 * (row[0] % 2))
    table, stored, first = Counted(), [], 0
    for i in range(0, len(rows), 10):
        table.put(rows[i : i + 10])
        table.seal()
        stored.append(codec.encode(table.versions(first, table.epoch)))
        first = table.epoch
        table.expire(rows[i][1] - 200)
        loaded = Counted()
        for blob in stored:
            loaded.load(codec.decode(blob))
        loaded.settle(rows[i][1] - 200)
        since = [row for row in table.held() if row[2] + 100 >= rows[i][1] - 200]
        assert [r for r in loaded.held() if r[2] + 100 >= rows[i][1] - 200] == since


def test_beyond_the_bound_the_oldest_leave_and_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamer.engine.intervals._COMPACT_ROWS", 10)
    table = Counted(limit=20)
    table.put([(key, 1000 * key, 1000 * key) for key in range(1, 51)])
    table.expire(0)
    assert table.evicted_early == 30
    assert [row[0] for row in table.held()] == list(range(31, 51))


def test_bounds_that_were_hit_show() -> None:
    settings = parse({"limits": {"open_sessions": 50}})
    engines = Engines(settings, 1)
    lines = [
        b'{"ts":%d,"user_id":"u%d","session_id":"s","action":"view"}' % (10**12 + i, i)
        for i in range(5000)
    ]
    records = [LogRecord("sessions", 0, i, 10**12 + i, line) for i, line in enumerate(lines)]
    for chunk in chunks_of(records, 500):
        engines.feed(chunk)
    partition = engines.partitions[0]
    early = partition.core.counters()["evicted_early"]["sessions"]
    assert early > 0
    assert partition.dropped_by_bounds == early


def test_an_empty_partition_is_canonical() -> None:
    settings = parse({})
    state = canonical(Partition(settings, Catalogue(settings), FIXED_KEY))
    assert state["sessions"] == state["viewings"] == []
    assert state["user_items"] == state["user_sums"] == {}
