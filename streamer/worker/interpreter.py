"""Rarer garbage collections: a full one walks every object of a large heap.

Threads for work on partitions: the core releases the GIL meanwhile. And the end of a process whose
parent was killed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")
_LOOK_SECONDS = 1.0


def end_with(parent: int) -> None:
    """Stop this process, as SIGTERM does, once another one than this is its parent: the parent was
    killed, and nobody would stop us any more. It may have been before we came here."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def cores() -> int:
    """Cores that this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # of Linux
    return len(known(0)) if known else os.cpu_count() or 1


class Pool:
    """A thread for each core."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(cores(), "streamer-core")

    async def run(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Work on a partition whose lock is held."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def close(self) -> None:
        """Accept no more work, without waiting for work under way."""
        self._threads.shutdown(wait=False)


_THRESHOLDS = (200_000, 50, 100)


def calm() -> None:
    """Exclude all objects that exist now from collections, and collect new ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
