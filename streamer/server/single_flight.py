"""Work that many ask for at the same time, and that one does for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """One piece of work at a time. Who asks while a piece runs shares the next run of it with all
    who ask until that begins: whoever asks waits for at most one run of every kind, and none gets
    a result that is older than the question."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._next: dict[str, asyncio.Task[Any]] = {}

    async def share(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the next run of ``work``; of one ``kind`` it is always the same work. It
        runs to its end even if all who wait for it leave."""
        task = self._next.get(kind)
        if task is None:
            task = self._next[kind] = asyncio.create_task(self._run(kind, work))
            task.add_done_callback(_look)
        result: T = await asyncio.shield(task)
        return result

    async def _run(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            del self._next[kind]
            return await work()


def _look(done: asyncio.Task[Any]) -> None:
    """Asyncio logs an exception that nobody looked at; all who waited may have left."""
    if not done.cancelled():
        done.exception()
