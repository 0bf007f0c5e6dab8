"""Record batches that are filled by hand: cheaper than sending one record after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]
"""(timestamp in epoch milliseconds, key, value, headers)."""


def filled_batches(producer: Any, rows: Iterable[Row]) -> Iterator[tuple[Any, int]]:
    """Batches for ``producer.send_batch`` that hold the rows in order, and how many each holds.

    A row that is larger than a batch has one of its own.
    """
    batch, held = producer.create_batch(), 0
    for ms, key, value, headers in rows:
        if batch.append(timestamp=ms, key=key, value=value, headers=headers) is None:
            yield batch, held
            batch, held = producer.create_batch(), 0
            batch.append(timestamp=ms, key=key, value=value, headers=headers)
        held += 1
    if held:
        batch.close()
        yield batch, held


Answer = asyncio.Future[object]
"""Kafka's, for one batch."""


async def sent(producer: Any, batch: Any, topic: str, partition: int) -> Answer:
    """Send a batch; asyncio logs no error of the answer where nobody waits for it any more."""
    answer: Answer = await producer.send_batch(batch, topic, partition=partition)
    answer.add_done_callback(_look)
    return answer


async def errors_of(answers: Sequence[Answer]) -> list[BaseException | None]:
    """Wait for all; None where Kafka has the batch. A cancelled wait cancels no answer, whose error
    aiokafka would then leave to asyncio's log."""
    if answers:
        await asyncio.wait(answers)
    return [answer.exception() for answer in answers]


def _look(done: Answer) -> None:
    if not done.cancelled():
        done.exception()
