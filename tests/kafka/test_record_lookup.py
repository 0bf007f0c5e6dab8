"""Single records of logs, from brokers that say odd things."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import OffsetOutOfRangeError
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.kafka import record_lookup
from streamer.kafka.fingerprints import fingerprint_of
from streamer.settings.model import Kafka

TP = TopicPartition("clicks", 0)
RECORD = SimpleNamespace(offset=7, timestamp=70, value=b"seven", key=None, headers=())


class Consumer:
    """A consumer of a log from ``first`` to ``end``, whose answers are given."""

    def __init__(self, answers: list[Any], end: int, first: int = 0) -> None:
        self.answers, self.end, self.first = answers, end, first
        self.at = 0

    async def start(self) -> None:
        """Connected."""

    async def stop(self) -> None:
        """Not any more."""

    def assign(self, tps: list[TopicPartition]) -> None:
        assert tps == [TP]

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.at = offset

    async def getmany(self, *tps: TopicPartition, **bounds: int) -> Any:
        await asyncio.sleep(0.01)
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def beginning_offsets(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, self.first)

    def last_stable_offset(self, tp: TopicPartition) -> int:
        return self.end

    async def position(self, tp: TopicPartition) -> int:
        return self.at


async def ask(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        record_lookup, "aiokafka", SimpleNamespace(AIOKafkaConsumer=lambda **_: consumer)
    )
    return await record_lookup.records_at(Kafka(), {TP: 7})


async def test_a_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await ask(Consumer([{}, {TP: [RECORD]}], 9), monkeypatch)
    assert found == {TP: fingerprint_of(7, 70, b"seven")}


@pytest.mark.parametrize("end", [3, 7])
async def test_a_shorter_log_has_no_record(monkeypatch: pytest.MonkeyPatch, end: int) -> None:
    assert await ask(Consumer([], end), monkeypatch) == {}


async def test_beyond_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await ask(Consumer([OffsetOutOfRangeError({TP: 7})], 3), monkeypatch) == {}


async def test_retention_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is no other one: it is compared again."""
    with pytest.raises(BrokerError, match="clicks/0 begins at 8 now: offset 7 was deleted"):
        await ask(Consumer([OffsetOutOfRangeError({TP: 7})], 20, first=8), monkeypatch)
