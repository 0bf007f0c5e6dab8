"""An event loop whose clock jumps to the next timer: hours pass in milliseconds, always alike."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

_LONGEST_WORK_SECONDS = 0.3


class DeadlockError(AssertionError):
    """Nothing is ready and nothing is scheduled: the simulated system waits for ever."""


class _Jump(selectors.BaseSelector):
    """Waits for nothing: it moves the clock on."""

    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, int(fileobj), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            raise DeadlockError(f"after {self.loop.now_seconds:.3f} s nothing can happen any more")
        self.loop.now_seconds += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time is a number; threads are tasks whose work takes a random time."""

    def __init__(self, dice: Random) -> None:
        self.now_seconds = 1000.0
        self.dice = dice
        jump = _Jump()
        super().__init__(jump)
        jump.loop = self

    def time(self) -> float:
        return self.now_seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        return self.create_task(self._work(func, *args))

    async def _work(self, func: Callable[..., Any], *args: Any) -> Any:
        await asyncio.sleep(self.dice.random() * _LONGEST_WORK_SECONDS / 2)
        result = func(*args)
        await asyncio.sleep(self.dice.random() * _LONGEST_WORK_SECONDS / 2)
        return result
