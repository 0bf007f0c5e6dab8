"""Documents that take long to compute, and change slowly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from streamer.settings import limits

T = TypeVar("T")


class _Kept(NamedTuple, Generic[T]):
    """A document, and until when (s) it is not computed again."""

    document: T
    until: float


class SlowDocuments(Generic[T]):
    """Documents by name, computed one at a time. Each is kept for 1 / ``SLOW_DOCUMENT_SHARE`` times
    as long as it took to compute."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._made: dict[str, _Kept[T]] = {}

    def _fresh(self, name: str) -> _Kept[T] | None:
        kept = self._made.get(name)
        return kept if kept is not None and time.monotonic() < kept.until else None

    async def get(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """The document of a name, which is made where none is kept."""
        if (kept := self._fresh(name)) is not None:
            return kept.document
        async with self._lock:
            kept = self._fresh(name)
            if kept is None:
                begun = time.monotonic()
                document = await make()
                now = time.monotonic()
                until = now + (now - begun) / limits.SLOW_DOCUMENT_SHARE
                kept = self._made[name] = _Kept(document, until)
        return kept.document
