"""A process that may be stopped: while it is, nothing that it asks for goes on."""

from __future__ import annotations

import asyncio
from random import Random


class Process:
    """One worker's view of the world."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self._running = asyncio.Event()
        self._running.set()

    def stop(self) -> None:
        """As SIGSTOP does."""
        self._running.clear()

    def go_on(self) -> None:
        """As SIGCONT does."""
        self._running.set()

    @property
    def is_stopped(self) -> bool:
        return not self._running.is_set()

    async def gate(self) -> None:
        await self._running.wait()

    async def pause_a_little(self, longest_seconds: float = 0.05) -> None:
        """A random time on the network."""
        await asyncio.sleep(self.dice.random() * longest_seconds)
        await self.gate()
