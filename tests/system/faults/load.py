"""A log written at a steady pace, while things go wrong."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer

from streamer.settings.model import Topics
from tests.support.engines import LogRecord

_BLOCK = 50


class Load:
    """Produces a log's records in order, each exactly once even if the broker goes away."""

    def __init__(
        self, brokers: str, topics: Topics, log: Sequence[LogRecord], seconds: float
    ) -> None:
        self.brokers, self.topics, self.log = brokers, topics, log
        self.seconds = seconds
        self.written = 0
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Load:
        self._task = asyncio.create_task(self._produce())
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._task is not None
        if kind is not None:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=kind is not None)

    async def finish(self) -> None:
        """Write what is left at once."""
        assert self._task is not None
        self._hurry.set()
        await self._task

    async def _produce(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.brokers,
            enable_idempotence=True,
            compression_type="lz4",
            max_request_size=4_000_000,
            linger_ms=5,
        )
        await producer.start()
        try:
            started = time.monotonic()
            for start in range(0, len(self.log), _BLOCK):
                due = started + self.seconds * start / len(self.log)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), max(0.0, due - time.monotonic()))
                block = self.log[start : start + _BLOCK]
                await asyncio.gather(*[await self._send(producer, r) for r in block])
                self.written += len(block)
        finally:
            await producer.stop()

    async def _send(self, producer: AIOKafkaProducer, record: LogRecord) -> Any:
        return await producer.send(
            getattr(self.topics, record.kind),
            record.value,
            partition=record.partition,
            timestamp_ms=record.record_ms,
        )
