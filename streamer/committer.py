"""Carrying commits out: dead letters first, then the step in the store, however long it is away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from streamer import limits
from streamer.deadletters import DeadLetter, DeadLetters
from streamer.errors import BrokerError, StoreError
from streamer.owned import OwnedPartition
from streamer.store.base import Answer, Commit, Store
from streamer.telemetry import Telemetry

logger = logging.getLogger("streamer")


def prepare(owned: OwnedPartition) -> tuple[Commit, list[DeadLetter]]:
    """The next commit of a partition, and the dead letters that it counts."""
    assert owned.journal is not None
    dead, owned.dead = owned.dead, []
    owned.journal.dead_letters += len(dead)
    owned.journal.dead_letters_omitted += owned.dead_omitted
    owned.dead_omitted = 0
    owned.dirty, owned.rows_since_commit = False, 0
    return owned.journal.prepare(), dead


class Committer:
    """Commits the partitions of one worker. ``when_done`` is called after each."""

    def __init__(
        self,
        store: Store,
        dead_letters: DeadLetters,
        telemetry: Telemetry,
        when_done: Callable[[], None],
    ) -> None:
        self.store, self.dead_letters = store, dead_letters
        self.telemetry, self.when_done = telemetry, when_done

    async def commit(self, owned: OwnedPartition, commit: Commit, dead: list[DeadLetter]) -> None:
        """Carry one commit out, however long the store is away; then let the next one come."""
        delay_seconds = 0.05
        try:
            while True:
                try:
                    await self.attempt(owned, commit, dead)
                    if owned.is_stuck:
                        owned.is_stuck = False
                        self.telemetry.problems.pop(owned.number, None)
                        logger.warning("partition %d: commits work again", owned.number)
                    break
                except (StoreError, BrokerError) as error:
                    if self.telemetry.problems.get(owned.number) != str(error):
                        logger.warning("partition %d waits: %s", owned.number, error)
                    owned.is_stuck = True
                    self.telemetry.problems[owned.number] = str(error)
                    await asyncio.sleep(delay_seconds)
                    delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)
        except Exception as error:  # whatever it is: what memory holds is not what is stored
            self.telemetry.problems[owned.number] = type(error).__name__
            logger.exception("partition %d: a commit failed; adopting again", owned.number)
            owned.is_fenced = True
        finally:
            if owned.committing is asyncio.current_task():
                owned.committing = None
            self.when_done()

    async def attempt(self, owned: OwnedPartition, commit: Commit, dead: list[DeadLetter]) -> None:
        """Try once. StoreError, BrokerError: to be tried again; a partition that is not ours any
        more is marked as fenced."""
        started = time.perf_counter()
        await self.dead_letters.send(dead)
        dead.clear()
        answer = await self.store.commit(owned.number, commit)
        if answer in (Answer.OK, Answer.ALREADY):
            self.telemetry.commit_took(time.perf_counter() - started)
            owned.committed = msgspec.msgpack.decode(commit.position)[1]
            if owned.failures:
                owned.failures = 0
                self.telemetry.problems.pop(owned.number, None)
            return
        if answer is Answer.INCOMPLETE:
            raise StoreError(f"blobs of partition {owned.number} are gone: the store went back")
        self.telemetry.fenced += 1
        logger.warning("partition %d: commit answered %s; adopting again", owned.number, answer)
        owned.is_fenced = True  # forgotten where nothing is being applied: see the runner
