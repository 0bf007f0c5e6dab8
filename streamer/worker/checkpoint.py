"""Carrying commits out: dead letters first, then the step in the store, however long it is away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from streamer.errors import BrokerError, StoreError
from streamer.ingest.dead_letters import DeadLetter, DeadLetters
from streamer.settings import limits
from streamer.state.manifest import parts_of_position
from streamer.state.store import Answer, Commit, Store
from streamer.state.worker_report import WorkerReport
from streamer.worker.partition_task import PartitionTask

logger = logging.getLogger("streamer")


def prepare(task: PartitionTask) -> tuple[Commit, list[DeadLetter]]:
    """The next commit of a partition, and the dead letters that it counts."""
    assert task.journal is not None
    dead, task.dead = task.dead, []
    task.journal.dead_letters += len(dead)
    task.journal.dead_letters_omitted += task.dead_omitted
    task.dead_omitted = 0
    task.dirty, task.rows_since_commit = False, 0
    return task.journal.prepare(), dead


class Committer:
    """Commits the partitions of one worker. ``when_done`` is called after each."""

    def __init__(
        self,
        store: Store,
        dead_letters: DeadLetters,
        worker_report: WorkerReport,
        when_done: Callable[[], None],
    ) -> None:
        self.store, self.dead_letters = store, dead_letters
        self.worker_report, self.when_done = worker_report, when_done

    async def commit(self, task: PartitionTask, commit: Commit, dead: list[DeadLetter]) -> None:
        """Carry out one commit, retrying for as long as the store or Kafka is away."""
        delay_seconds, named = 0.05, {"partition": task.number}
        try:
            while True:
                try:
                    await self.attempt(task, commit, dead)
                    if task.is_stuck:
                        task.is_stuck = False
                        self.worker_report.problems.pop(task.number, None)
                        logger.info("partition %(partition)d: commits succeed again", named)
                    break
                except (StoreError, BrokerError) as error:
                    if self.worker_report.problems.get(task.number) != str(error):
                        text = "partition %(partition)d cannot commit yet, trying again: %(why)s"
                        logger.warning(text, {**named, "why": str(error)})
                    task.is_stuck = True
                    self.worker_report.problems[task.number] = str(error)
                    await asyncio.sleep(delay_seconds)
                    delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)
        except Exception as error:  # whatever it is: what memory holds is not what is stored
            self.worker_report.problems[task.number] = type(error).__name__
            logger.exception("partition %(partition)d: a commit failed; loading it again", named)
            task.is_fenced = True
        finally:
            if task.committing is asyncio.current_task():
                task.committing = None
            self.when_done()

    async def attempt(self, task: PartitionTask, commit: Commit, dead: list[DeadLetter]) -> None:
        """Try once. Raises StoreError or BrokerError to be retried; marks the partition as fenced
        where another worker has claimed it."""
        started = time.perf_counter()
        await self.dead_letters.send(dead)
        dead.clear()
        answer = await self.store.commit(task.number, commit)
        if answer in (Answer.OK, Answer.ALREADY):
            seconds = time.perf_counter() - started
            size = len(commit.manifest) + sum(map(len, commit.blobs.values()))
            self.worker_report.commit_took(seconds, size)
            number, task.committed = parts_of_position(commit.position)
            if logger.isEnabledFor(logging.DEBUG):
                named = {"partition": task.number, "commit": number, "ms": round(1000 * seconds)}
                logger.debug("partition %(partition)d: commit %(commit)d in %(ms)d ms", named)
            if task.failures:
                task.failures = 0
                self.worker_report.problems.pop(task.number, None)
            return
        if answer is Answer.INCOMPLETE:
            raise StoreError(f"blobs of partition {task.number} are missing: Redis was rolled back")
        self.worker_report.fenced += 1
        refused = {"partition": task.number, "answer": str(answer)}
        text = "partition %(partition)d: a commit was answered %(answer)s; loading its state again"
        logger.warning(text, refused)
        task.is_fenced = True  # forgotten where nothing is being applied: see the runner
