"""Acceptance in the core: late, future, duplicate; inclusive where the pages say so."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.state.partition import Partition, TopicLog

SETTINGS = parse({"time": {"max_lateness": "10s", "max_skew": "2s", "dedup_horizon": "5s"}})
T0 = 1_700_000_000_000
ARRIVALS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=40)
Given = tuple[int, int | bytes, str | None]
"""Arrival, event time (or a record that is none) and id; times in ms after T0."""


class Feed:
    """One log of clicks."""

    def __init__(self) -> None:
        self.partition = Partition(SETTINGS, Catalogue(SETTINGS), FIXED_KEY)
        self.dead: list[tuple[int, str]] = []

    @property
    def log(self) -> TopicLog:
        return self.partition.logs["clicks"]

    @property
    def counters(self) -> dict[str, Any]:
        found = self.partition.core.state()["logs"]["clicks"]
        return {**found["counters"], "rejected": found["rejected"]}

    def give(self, *records: Given) -> list[bool]:
        """Which events are accepted, one by one."""
        return [self.accepted(record) == 1 for record in records]

    def accepted(self, *records: Given) -> int:
        """How many events of one batch are accepted."""
        before, first = self.counters["accepted"], self.log.next_offset
        offset = np.arange(first, first + len(records))
        record_ms = np.array([T0 + at_ms for at_ms, _, _ in records])
        values = [
            event if isinstance(event, bytes) else self.event(event, name)
            for _, event, name in records
        ]
        applied = self.partition.apply([Records("clicks", offset, record_ms, values)])
        self.dead += [(rejected.offset, rejected.reason) for rejected in applied.rejected]
        return int(self.counters["accepted"]) - int(before)

    @staticmethod
    def event(event_ms: int, name: str | None) -> bytes:
        event: dict[str, Any] = {"ts": T0 + event_ms, "user_id": "u", "item_id": "i"}
        return json.dumps(event if name is None else event | {"event_id": name}).encode()


def test_late_is_strictly_beyond_max_lateness() -> None:
    feed = Feed()
    assert feed.give((20_000, 10_000, None), (20_000, 9_999, None)) == [True, False]
    assert feed.dead == [(1, "late")]
    assert feed.counters["late"] == 1
    assert not feed.counters["rejected"]


def test_future_is_strictly_beyond_max_skew() -> None:
    feed = Feed()
    assert feed.give((0, 2_000, None), (0, 2_001, None)) == [True, False]
    assert feed.counters["rejected"] == {"future": 1}


def test_broken_records_move_the_arrival_clock() -> None:
    # arrival: 0 ... 20 s (broken) ; then a record stamped 1 s arrives at 20 s
    feed = Feed()
    assert feed.accepted((0, 0, None), (20_000, b"{", None), (1_000, 9_999, None)) == 1
    assert feed.dead == [(1, "json"), (2, "late")]
    assert feed.log.arrival_ms == T0 + 20_000
    assert feed.log.next_offset == 3


def test_copies_do_not_prolong_the_horizon() -> None:
    # a: 0 first, 5 s copy (inclusive), 5001 new first, 10001 copy, 10002 new first
    feed = Feed()
    times = (0, 5_000, 5_001, 10_001, 10_002)
    assert feed.accepted(*((t, t, "a") for t in times)) == 3
    again = Feed()
    assert again.give(*((t, t, "a") for t in times)) == [True, False, True, False, True]
    assert feed.counters["duplicates"] == again.counters["duplicates"] == 2


def test_only_accepted_events_are_remembered() -> None:
    feed = Feed()
    late, good = (20_000, 9_000, "a"), (20_000, 19_000, "a")
    assert feed.give(late, (20_000, 30_000, "a"), good, good) == [False, False, True, False]
    assert feed.counters["duplicates"] == 1


def test_events_without_id_are_never_duplicates() -> None:
    feed = Feed()
    assert feed.accepted((0, 0, None), (0, 0, None), (0, 0, "a")) == 3


@pytest.mark.parametrize("gap", [1, 7])
def test_records_below_the_watermark_of_an_idle_topic_are_counted(gap: int) -> None:
    feed = Feed()
    feed.give((0, 0, None))
    shown = Records("impressions", np.array([0]), np.array([T0 + 7_000]), [b"{"])
    feed.partition.apply([shown], at_end=KINDS)
    assert feed.accepted(*[(4_999, 4_999, None)] * gap) == gap
    assert feed.counters["join_gap"] == gap
    assert feed.accepted((5_000, 5_000, None)) == 1
    assert feed.counters["join_gap"] == gap


def firsts(events: list[tuple[int, int]], horizon_ms: int) -> list[bool]:
    """The rule, in words of one loop."""
    first: dict[int, int] = {}
    result = []
    for key, at_ms in events:
        result.append(key not in first or at_ms - first[key] > horizon_ms)
        if result[-1]:
            first[key] = at_ms
    return result


@given(ARRIVALS, st.sampled_from([1, 3, 50]))
def test_first_copies_are_accepted(steps: list[tuple[int, int]], batch: int) -> None:
    arrivals = np.cumsum([1000 * step for _, step in steps]).tolist()
    events = [(key, int(at_ms)) for (key, _), at_ms in zip(steps, arrivals, strict=True)]
    expected, feed = firsts(events, 5000), Feed()
    for start in range(0, len(events), batch):
        some: list[Given] = [(at, at, f"e{key}") for key, at in events[start : start + batch]]
        assert feed.accepted(*some) == sum(expected[start : start + batch])
