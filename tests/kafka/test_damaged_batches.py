"""What is done with an answer that holds damaged batches."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from streamer.kafka import damaged_batches
from streamer.kafka.damaged_batches import DamagedBatches
from streamer.kafka.fetching import require_fetching
from streamer.kafka.raw_batches import DamagedBytes
from streamer.settings import limits

TP = TopicPartition("clicks", 0)
END = 100


def batch(base_offset: int, count: int = 3) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 100_000)
    for offset in range(count):
        builder.append(offset, 5, None, b"value", [])
    return base_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def flipped(data: bytes, at: int = -3) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x20
    return bytes(changed)


def request(offset: int, *others: int) -> Any:
    asked = [(number, offset, 1000) for number in (0, *others)]
    return FetchRequest(100, 1, 1000, 1, [("clicks", asked)])


def answer(blob: bytes, code: int = 0) -> Any:
    return SimpleNamespace(topics=[("clicks", [(0, code, END, END, 0, [], -1, blob)])])


def blob_of(response: Any) -> bytes:
    return bytes(response.topics[0][1][0][-1])


def test_what_is_whole_is_kept_and_the_rest_fetched_again() -> None:
    found, good = DamagedBatches(), batch(0)
    whole = answer(good + batch(3) + batch(6)[:30])
    assert not found.examine(request(0), whole)
    assert blob_of(whole) == good + batch(3) + batch(6)[:30]
    part = answer(good + flipped(batch(3)) + batch(6))
    assert found.examine(request(0), part)
    assert blob_of(part) == good
    assert "the record batch at offset 3 arrived damaged 1 times" in found.problems()[TP]
    assert not found.examine(request(3), answer(batch(3)))
    assert found.problems() == {}


def test_a_batch_that_is_damaged_each_time_is_handed_on_alone() -> None:
    found, damaged = DamagedBatches(), flipped(batch(3))
    for _ in range(limits.DAMAGED_FETCHES - 1):
        part = answer(damaged + batch(6))
        assert found.examine(request(3), part)
        assert blob_of(part) == b""
    last = answer(damaged + batch(6))
    found.examine(request(3), last)
    handed_on = last.topics[0][1][0][-1]
    assert isinstance(handed_on, DamagedBytes)
    assert handed_on == damaged + batch(6)[:12]
    assert found.problems() == {}


@pytest.mark.parametrize("at", [7, 11, 16], ids=["offset", "length", "format"])
def test_what_the_checksum_does_not_cover(at: int) -> None:
    found, blob = DamagedBatches(), batch(3)
    damaged = answer(flipped(blob, at) + batch(6))
    assert found.examine(request(3), damaged)
    assert blob_of(damaged) == b""


def test_a_batch_whose_frame_is_damaged_is_never_given_up() -> None:
    found = DamagedBatches()
    for _ in range(2 * limits.DAMAGED_FETCHES):
        part = answer(flipped(batch(3), 16))
        assert found.examine(request(3), part)
        assert blob_of(part) == b""
    assert TP in found.problems()


async def test_others_are_fetched_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damaged_batches, "_PAUSE_SECONDS", 0.0)
    found = DamagedBatches()
    found.examine(request(3, 1), answer(flipped(batch(3))))
    asked = request(3, 1)
    assert await found.hold_back(asked) is None
    assert asked.topics == [("clicks", [(1, 3, 1000)])]
    alone = request(3)
    nothing = await found.hold_back(alone)
    assert nothing.topics == []
    found.forget(TP)
    alone = request(3)
    assert await found.hold_back(alone) is None
    assert alone.topics == [("clicks", [(0, 3, 1000)])]


def test_the_broker_may_find_the_damage_itself() -> None:
    found = DamagedBatches()
    assert not found.examine(request(3), answer(b"", code=2))
    assert TP in found.problems()


def test_an_answer_to_another_question() -> None:
    found, other = DamagedBatches(), answer(batch(3))
    other.topics = [("clacks", other.topics[0][1])]
    with pytest.raises(KafkaConnectionError, match="what it was not asked"):
        found.examine(request(3), other)


async def test_fetches_that_have_ended_are_noticed() -> None:
    """aiokafka logs what ends them, and gives no records from then on."""
    assert isinstance(fetcher.Fetcher.error_future, property)

    async def broken() -> None:
        raise RuntimeError("broken")

    task = asyncio.ensure_future(broken())
    consumer = SimpleNamespace(_fetcher=SimpleNamespace(error_future=task))
    require_fetching(consumer)
    await asyncio.wait({task})
    with pytest.raises(RuntimeError, match="broken"):
        require_fetching(consumer)
