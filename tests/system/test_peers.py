"""The peers' benchmark: its log, what it expects, and that streamer counts it."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest

from benchmarks.peers import job, log
from benchmarks.peers import run as peers
from benchmarks.peers.contestant import Contestant
from benchmarks.peers.contestants import CONTESTANTS
from benchmarks.peers.run import costs
from streamer.testing.embedded import delete_topics
from tests.support.lanes import long, shortened
from tests.support.servers import own_redis

EVENTS = 6_000


def test_the_log_is_what_it_says() -> None:
    made = list(log.generate(60_000))
    events, endings = made[:60_000], made[60_000:]
    assert [ts for ts, *_ in events] == sorted(ts for ts, *_ in events)
    shares = Counter(topic for _, topic, *_ in events)
    assert 0.87 < shares["impressions"] / 60_000 < 0.9
    assert 0.07 < shares["clicks"] / 60_000 < 0.09
    assert {(topic, variant) for _, topic, variant, *_ in endings} == {
        (topic, job.END) for topic in job.TOPICS
    }
    for ts, topic, variant, surface, text in made:
        event = msgspec.json.decode(text)
        assert (event["ts"], event["type"] + "s") == (ts, topic)
        assert (event["variant"], event["surface"]) == (variant, surface)


def test_windows_that_are_expected_hold_each_event_so_often() -> None:
    made = list(log.generate(5_000))
    counts = log.expected(made)
    for end, variant, surface in list(counts)[:50]:
        for field in job.FIELDS:
            inside = [
                1
                for ts, topic, *segment, _ in made
                if topic == field
                and segment == [variant, surface]
                and end - job.WINDOW_MS <= ts < end
            ]
            assert counts[end, variant, surface][field] == len(inside)


def test_costs_are_those_of_the_difference() -> None:
    short = {"events": 1e6, "seconds": 5.0, "cpu_seconds": 3.0}
    long = {"events": 3e6, "seconds": 9.0, "cpu_seconds": 6.0}
    assert costs([short, long]) == (500_000.0, 1.5)
    assert costs([short, {**long, "seconds": 5.5}]) == (None, 1.5)


@pytest.mark.parametrize("contestant", shortened(list(CONTESTANTS[:2])), ids=lambda some: some.name)
@long
def test_streamer_counts_every_window_of_the_log(
    kafka: str, contestant: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "LIMIT_SECONDS", 60.0)
    expected = peers.fill_log(kafka, EVENTS)
    try:
        with own_redis() as redis:
            found = peers.run(contestant, kafka, redis.url, EVENTS, expected)
            assert isinstance(found, peers.Run), found
            window = max(expected, key=lambda window: expected[window]["impressions"])
            wrong = {**expected, window: {**expected[window], "impressions": 0}}
            monkeypatch.setattr(peers, "LIMIT_SECONDS", 5.0)
            refused = peers.run(contestant, kafka, redis.url, EVENTS, wrong)
            assert isinstance(refused, str)
    finally:
        topics = [topic + peers.suffix(EVENTS) for topic in job.TOPICS]
        asyncio.run(delete_topics(kafka, topics))
