"""Kills and pauses of worker processes at random moments."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.support.workers import Bench, Worker

SESSION_SECONDS = 3.0


@dataclass
class Storm:
    """So many kills and so many pauses longer than the session time-out, in random order."""

    made: Bench
    kills: int
    pauses: int
    seed: int = 1
    command: Sequence[str] | None = None
    workers: int = 2
    longest_quiet_seconds: float = 3.0
    running: list[Worker] = field(default_factory=list)

    async def rage(self) -> None:
        """Start the workers, then let it happen; afterwards all workers run."""
        dice = Random(self.seed)
        acts = ["kill"] * self.kills + ["pause"] * self.pauses
        dice.shuffle(acts)
        self.running = [self.made.start_worker(self.command) for _ in range(self.workers)]
        for act in acts:
            await asyncio.sleep(dice.uniform(0.2, self.longest_quiet_seconds))
            worker = dice.choice(self.running)
            assert worker.process.poll() is None, worker.said()
            if act == "pause":
                worker.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(SESSION_SECONDS + dice.uniform(0.5, 2.5))
                worker.process.send_signal(signal.SIGCONT)
                continue
            worker.kill()
            self.running.remove(worker)
            await asyncio.sleep(dice.uniform(0.0, 0.5))
            self.running.append(self.made.start_worker(self.command))

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        quiet = self.longest_quiet_seconds / 2 + 0.4
        return (self.kills + self.pauses) * quiet + self.pauses * (SESSION_SECONDS + 1.5)
