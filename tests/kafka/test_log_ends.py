"""Where logs end is asked again whatever the last question ended with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import TopicPartition

from streamer.kafka import log_ends
from streamer.kafka.log_ends import NOT_ASKED, KafkaLogEnds
from streamer.settings import limits
from streamer.settings.clusters import Cluster
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from tests.support.scripted import until

Offsets = dict[TopicPartition, int]


class Broker:
    """Answers, or raises ``error``."""

    error: Exception | None = None
    asked = 0
    end = 7
    """Of all records; that of those that can be read is 7."""

    def __init__(self) -> None:
        self.there = {*KINDS, "web"}
        self._client = self
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    @contextlib.asynccontextmanager
    async def consumer(self, cluster: Cluster, isolation_level: str) -> AsyncIterator[Any]:
        if isolation_level == "read_uncommitted":
            yield SimpleNamespace(end_offsets=self.end_offsets_of_all)
            return
        self.asked += 1
        if self.error is not None and self.asked == 1:
            raise self.error
        yield self

    async def fetch_all_metadata(self) -> Broker:
        return self

    def topics(self) -> set[str]:
        return self.there

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1, 2}

    async def beginning_offsets(self, places: Sequence[TopicPartition]) -> Offsets:
        return dict.fromkeys(places, 3)

    async def end_offsets(self, places: Sequence[TopicPartition]) -> Offsets:
        if self.error is not None:
            raise self.error
        await self.goes_on.wait()
        return dict.fromkeys(places, 7)

    async def end_offsets_of_all(self, places: Sequence[TopicPartition]) -> Offsets:
        return dict.fromkeys(places, self.end)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ValueError("nobody expected it"),
            "ValueError: nobody expected it; at kafka.brokers broker:1",
        ),
        (KafkaConnectionError("away"), "away; at kafka.brokers broker:1"),
    ],
)
async def test_no_error_ends_the_questions(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    """Once while it connects, once in the midst: what is not asked again is not shown as known."""
    monkeypatch.setattr(limits, "ENDS_SECONDS", 0.01)
    broker = Broker()
    broker.error = error
    monkeypatch.setattr(log_ends, "_consumer", broker.consumer)
    found = KafkaLogEnds(parse({"kafka": {"brokers": "broker:1"}}))
    assert found.problem == NOT_ASKED
    async with found.followed(lambda: 2):
        await until(lambda: broker.asked > 1, "asked again after it did not connect")
        broker.error = None
        await until(lambda: found.problem is None, "known")
        assert len(found.bounds) == 8
        assert found.bounds["clicks", 1] == (3, 7, 7)
        broker.error = error
        await until(lambda: found.problem, "the error is reported")
        assert found.problem is not None
        assert said in found.problem
        assert found.bounds == {}
        broker.error = None
        await until(lambda: found.bounds, "known again")


async def test_a_topic_that_is_missing_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    broker.there.remove("sessions")
    monkeypatch.setattr(log_ends, "_consumer", broker.consumer)
    found = KafkaLogEnds(parse({"kafka": {"brokers": "broker:1"}}))
    async with found.followed(lambda: 1):
        await until(lambda: found.bounds, "known")
        assert found.bounds.keys() == {(kind, 0) for kind in KINDS if kind != "sessions"}
        assert found.problem is None


async def test_what_open_transactions_hold_back_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENDS_SECONDS", 0.01)
    broker = Broker()
    monkeypatch.setattr(log_ends, "_consumer", broker.consumer)
    found = KafkaLogEnds(parse({"kafka": {"brokers": "broker:1"}}))
    async with found.followed(lambda: 2):
        await until(lambda: found.unstable == dict.fromkeys(KINDS, 0), "no transaction is open")
        broker.end = 10
        await until(lambda: found.unstable == dict.fromkeys(KINDS, 6), "each log has one")
        broker.end = 6  # an older answer than that of what can be read
        await until(lambda: found.unstable == dict.fromkeys(KINDS, 0), "none is open any more")


async def test_an_old_answer_is_not_known_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker stands still: no error ends the question."""
    monkeypatch.setattr(limits, "ENDS_SECONDS", 0.01)
    monkeypatch.setattr(limits, "ENDS_OLD_SECONDS", 0.2)
    broker = Broker()
    monkeypatch.setattr(log_ends, "_consumer", broker.consumer)
    found = KafkaLogEnds(parse({"kafka": {"brokers": "broker:1"}}))
    async with found.followed(lambda: 2):
        await until(lambda: found.bounds, "known")
        broker.goes_on.clear()
        await until(lambda: not found.bounds, "not known any more")
        assert found.problem == "no answer for more than 0.2 s; at kafka.brokers broker:1"
        broker.goes_on.set()
        await until(lambda: found.bounds, "known again")
        assert found.problem is None


async def test_one_cluster_that_is_away_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ENDS_SECONDS", 0.01)
    web = {"topics": ["web"], "fields": {"ts": "at", "item_id": "item"}}
    sources = [
        {**web, "kind": {"fixed": "impression"}},
        {**web, "kind": {"fixed": "click"}, "cluster": "eu"},
    ]
    brokers = {None: Broker(), "eu": Broker()}
    brokers["eu"].error = KafkaConnectionError("away")
    monkeypatch.setattr(
        log_ends, "_consumer", lambda cluster, level: brokers[cluster.name].consumer(cluster, level)
    )
    found = KafkaLogEnds(parse({"sources": sources, "clusters": {"eu": {"brokers": "eu:1"}}}))
    async with found.followed(lambda: 2):
        await until(lambda: found.bounds and brokers["eu"].asked, "the one is known")
        await until(
            lambda: "away; at clusters.eu.brokers eu:1" in str(found.problem),
            "the other one is known to be away",
        )
        assert found.bounds == {("web", 0): (3, 7, 7), ("web", 1): (3, 7, 7)}
        brokers["eu"].error = None
        await until(lambda: found.problem is None, "both are known")
        assert found.bounds.keys() == {(name, n) for name in ("web", "web@eu") for n in range(2)}


async def test_all_partitions_are_asked_for_where_nothing_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ENDS_SECONDS", 0.01)
    monkeypatch.setattr(log_ends, "_consumer", Broker().consumer)
    found = KafkaLogEnds(parse({"kafka": {"brokers": "broker:1"}}))
    async with found.followed(lambda: 0):
        for _ in range(100):
            await asyncio.sleep(0.01)
            if found.bounds:
                break
    assert {number for _, number in found.bounds} == {0, 1, 2}
