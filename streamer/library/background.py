"""Coroutines for callers that have none: they run on a thread of their own, for a notebook has a
loop already."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from streamer.errors import UsageError

T = TypeVar("T")


class BackgroundLoop:
    """An event loop on a thread that ends with the process, or by ``close``."""

    def __init__(self) -> None:
        self._loop, self._process = asyncio.new_event_loop(), os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="streamer", daemon=True)
        self._thread.start()
        self._closing = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns; its exceptions pass through. UsageError where this was closed,
        or belongs to the process that forked this one."""
        if not self.is_open:
            work.close()
            is_own = self._process == os.getpid()
            state = "is closed" if is_own else "belongs to the process that forked this one"
            raise UsageError(f"the connection {state}: make a new one with streamer.connect()")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def is_open(self) -> bool:
        """Whether it was not closed, and is of this process."""
        return self._process == os.getpid() and not self._loop.is_closed()

    def close(self) -> None:
        """End the thread; a second call does nothing, nor does one in a forked process."""
        with self._closing:
            if self.is_open:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """What a single coroutine returns."""
    loop = BackgroundLoop()
    try:
        return loop.run(work)
    finally:
        loop.close()
