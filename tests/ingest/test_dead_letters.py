"""Dead letters that cannot be sent: what was sent before them is looked at, too."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder

from streamer.errors import BrokerError
from streamer.ingest.dead_letters import DeadLetter, DeadLetters
from streamer.ingest.rejections import Refusal
from streamer.settings.load import parse


class GoesAway:
    """A producer whose broker goes away: it takes one batch, whose answer is an error, and then no
    more."""

    def __init__(self) -> None:
        self.answers: list[asyncio.Future[object]] = []

    async def partitions_for(self, topic: str) -> set[int]:
        return {0}

    def create_batch(self) -> BatchBuilder:
        return BatchBuilder(10_000, 0, is_transactional=False)

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[object]:
        if self.answers:
            self.answers[0].set_exception(KafkaConnectionError("gone"))
            raise KafkaTimeoutError("gone")
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[0]


async def test_every_answer_is_looked_at_where_a_batch_cannot_be_sent() -> None:
    unseen: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    letters, producer = DeadLetters(parse({})), GoesAway()
    letters._producer = producer
    refusal = Refusal("json", "", "", "")
    refused = [DeadLetter("clicks", 0, offset, refusal, b"x" * 6_000) for offset in range(2)]
    with pytest.raises(BrokerError, match="cannot write dead letters"):
        await letters.send(refused)
    assert len(producer.answers) == 1
    producer.answers.clear()
    gc.collect()
    await asyncio.sleep(0)
    assert unseen == []


class Silent(GoesAway):
    """A producer whose broker goes away without an answer; the one it gives is shielded, as
    aiokafka's is."""

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[object]:
        self.answers.append(asyncio.get_running_loop().create_future())
        return asyncio.shield(self.answers[0])


async def test_an_answer_that_nobody_waits_for_any_more_is_looked_at() -> None:
    unseen: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    letters, producer = DeadLetters(parse({})), Silent()
    letters._producer = producer
    letter = DeadLetter("clicks", 0, 0, Refusal("json", "", "", ""), b"x")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(letters.send([letter]), 0.01)
    producer.answers.pop().set_exception(KafkaConnectionError("gone"))
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert unseen == []
