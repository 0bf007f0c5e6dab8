"""Batches of a source, read by a thread: whoever waits for the next one can do other things, and a
pipe that nobody writes to keeps no process alive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
_WAITING = 4
"""Batches that are read ahead."""


class Silence(Exception):  # noqa: N818 — it is no error
    """Nothing has come for a while."""


class Background(Generic[T]):
    """What an iterable gives, in order; errors of it are raised by ``next``."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source, self._loop = source, asyncio.get_running_loop()
        self._queue: asyncio.Queue[T | BaseException | None] = asyncio.Queue(_WAITING)
        self._waiting: asyncio.Task[T | BaseException | None] | None = None
        threading.Thread(target=self._read, name="source", daemon=True).start()

    async def next(self, seconds: float) -> T | None:
        """The next one; ``Silence`` where there is none in so many seconds, None at the end."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._queue.get())
        done, _ = await asyncio.wait({self._waiting}, timeout=seconds)
        if not done:
            raise Silence
        found, self._waiting = self._waiting.result(), None
        if isinstance(found, BaseException):
            raise found
        return found

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for one in self._source:
                self._put(one)
        except BaseException as error:  # also the core's panics: the reader must not wait for ever
            end = error
        self._put(end)

    def _put(self, one: T | BaseException | None) -> None:
        putting = self._queue.put(one)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except RuntimeError:  # the loop has ended
            putting.close()
