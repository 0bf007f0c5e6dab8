"""Broken, future, late, duplicate, accepted: in that order, by each log alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.batch import assemble
from streamer.config import parse
from streamer.decode import Decoder
from streamer.engine.acceptance import NEVER, SeenIds, TopicLog, is_first

SETTINGS = parse({"time": {"max_lateness": "10s", "max_skew": "2s", "dedup_horizon": "5s"}})
T0 = 1_700_000_000_000
ARRIVALS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=40)


class Feed:
    """One log of clicks, given record by record as (arrival, event time, id or a bad value)."""

    def __init__(self) -> None:
        self.log = TopicLog("clicks", SETTINGS)
        self.decoder = Decoder(SETTINGS)
        self.dead: list[tuple[int, str]] = []

    def give(self, *records: tuple[int, int | bytes, str | None]) -> list[bool]:
        """Which events of one batch are accepted; times in ms after T0."""
        first = self.log.next_offset
        offset = np.arange(first, first + len(records))
        record_ms = np.array([T0 + at_ms for at_ms, _, _ in records])
        values = [
            event if isinstance(event, bytes) else self.event(event, name)
            for _, event, name in records
        ]
        columns = self.decoder.chunk("clicks", offset, record_ms, values)
        verdict = self.log.accept(assemble([columns])["clicks"])
        self.dead += verdict.dead
        return [bool(x) for x in verdict.accepted]

    @staticmethod
    def event(event_ms: int, name: str | None) -> bytes:
        event: dict[str, Any] = {"ts": T0 + event_ms, "user_id": "u", "item_id": "i"}
        return json.dumps(event if name is None else event | {"event_id": name}).encode()


def test_late_is_strictly_beyond_max_lateness() -> None:
    feed = Feed()
    assert feed.give((20_000, 10_000, None), (20_000, 9_999, None)) == [True, False]
    assert feed.dead == [(1, "late")]
    assert (feed.log.accepted, feed.log.late, feed.log.rejected) == (1, 1, {})


def test_future_is_strictly_beyond_max_skew() -> None:
    feed = Feed()
    assert feed.give((0, 2_000, None), (0, 2_001, None)) == [True, False]
    assert feed.log.rejected == {"future": 1}


def test_broken_records_move_the_arrival_clock() -> None:
    # arrival: 0 ... 20 s (broken) ; then a record stamped 1 s arrives at 20 s
    feed = Feed()
    assert feed.give((0, 0, None), (20_000, b"{", None), (1_000, 9_999, None)) == [True, False]
    assert feed.dead == [(1, "json"), (2, "late")]
    assert feed.log.arrival_ms == T0 + 20_000
    assert feed.log.next_offset == 3
    assert feed.log.events == 3


def test_copies_do_not_prolong_the_horizon() -> None:
    # a: 0 first, 5 s copy (inclusive), 5001 new first, 10001 copy, 10002 new first
    feed = Feed()
    times = (0, 5_000, 5_001, 10_001, 10_002)
    assert feed.give(*((t, t, "a") for t in times)) == [True, False, True, False, True]
    again = Feed()
    assert [again.give((t, t, "a"))[0] for t in times] == [True, False, True, False, True]
    assert feed.log.duplicates == again.log.duplicates == 2


def test_only_accepted_events_are_remembered() -> None:
    feed = Feed()
    late, good = (20_000, 9_000, "a"), (20_000, 19_000, "a")
    assert feed.give(late, (20_000, 30_000, "a"), good, good) == [False, False, True, False]
    assert feed.log.duplicates == 1


def test_events_without_id_are_never_duplicates() -> None:
    feed = Feed()
    assert feed.give((0, 0, None), (0, 0, None), (0, 0, "a")) == [True] * 3


def firsts(events: list[tuple[int, int]], horizon: int) -> list[bool]:
    """The rule, in words of one loop."""
    first: dict[int, int] = {}
    result = []
    for key, at in events:
        result.append(key not in first or at - first[key] > horizon)
        if result[-1]:
            first[key] = at
    return result


@given(ARRIVALS, st.sampled_from([1, 3, 50]), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_seen_ids_are_the_rule(steps: list[tuple[int, int]], batch: int, horizon: int) -> None:
    arrivals = np.cumsum([step for _, step in steps]).tolist()
    events = [(key, int(at)) for (key, _), at in zip(steps, arrivals, strict=True)]
    seen, found = SeenIds(horizon, 1000), []
    for start in range(0, len(events), batch):
        some = events[start : start + batch]
        keys = np.array([k for k, _ in some], np.uint64)
        at_ms = np.array([a for _, a in some], np.int64)
        found += [bool(x) for x in seen.admit(keys, at_ms)]
        seen.expire(some[-1][1])
    assert found == firsts(events, horizon)


@given(ARRIVALS, st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_is_first_goes_on_from_what_is_known(steps: list[tuple[int, int]], horizon: int) -> None:
    at_ms = np.cumsum([step for _, step in steps]).astype(np.int64) + 6
    keys = np.array([k for k, _ in steps], np.uint64)
    known = np.where(keys % 2 == 0, 3, NEVER).astype(np.int64)
    before = [(2, 3), (4, 3)]
    events = before + [(int(k), int(a)) for k, a in zip(keys, at_ms, strict=True)]
    found = [bool(x) for x in is_first(keys, at_ms, known, horizon)]
    assert found == firsts(events, horizon)[2:]


def test_the_bound_of_ids_is_counted() -> None:
    seen = SeenIds(1_000_000, 10)
    seen.admit(np.arange(1, 31, dtype=np.uint64), np.arange(30))
    seen.expire(30)
    assert seen.evicted_early == 20
    assert len(seen.log) == 10
    again = seen.admit(np.array([1, 30], np.uint64), np.array([31, 31]))
    assert again.tolist() == [True, False]


def test_ids_leave_and_memory_is_bounded() -> None:
    seen = SeenIds(100, 1_000_000)
    for i in range(400):
        seen.admit(np.arange(1 + i * 500, 501 + i * 500, dtype=np.uint64), np.full(500, i * 10))
        seen.expire(i * 10)
    assert len(seen.log) == 11 * 500
    assert seen.evicted_early == 0
    assert seen.nbytes < 3_000_000


@pytest.mark.parametrize("gap", [1, 7])
def test_records_below_a_borrowed_clock_are_counted(gap: int) -> None:
    feed = Feed()
    feed.give((0, 0, None))
    feed.log.borrowed_ms = T0 + 5_000
    columns = feed.decoder.chunk(
        "clicks",
        np.arange(1, 1 + gap),
        np.full(gap, T0 + 4_999),
        [Feed.event(4_999, None)] * gap,
    )
    assert feed.log.accept(assemble([columns])["clicks"]).below_borrowed == gap
    assert feed.log.clock_ms == T0 + 5_000
