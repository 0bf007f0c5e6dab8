"""Detects a store that was rolled back or lost blobs, which an idle partition, committing nothing,
would not notice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from streamer.errors import StoreError
from streamer.settings import limits
from streamer.state.journal import Journal
from streamer.state.store import Store
from streamer.worker.partition_task import PartitionTask, Phase

logger = logging.getLogger("streamer")


class StoreWatch:
    """Asks the store periodically. A partition whose stored state is not the one last committed is
    marked as fenced; ``when_fenced`` is called then."""

    def __init__(self, store: Store, when_fenced: Callable[[], None]) -> None:
        self.store, self.when_fenced = store, when_fenced
        self._asked_at = self._counted_at = 0.0

    async def ask(self, partitions: Mapping[int, PartitionTask]) -> None:
        """Check that partitions still have this worker's claim, the last committed position and all
        their blobs."""
        now = asyncio.get_running_loop().time()
        if now - self._asked_at < limits.STANDING_SECONDS:
            return
        self._asked_at = now
        left = await _left(partitions)
        try:
            found = await self.store.standing(list(left))
            missing = dict.fromkeys(left, 0)
            if now - self._counted_at >= limits.BLOBS_SECONDS:
                self._counted_at = now
                for number, (_, _, names) in left.items():
                    missing[number] = len(names) - await self.store.count_blobs(number, names)
        except StoreError:
            return  # the next commit shows it
        for (number, (journal, commit, names)), standing in zip(left.items(), found, strict=True):
            task = partitions.get(number)
            if task is None or task.journal is not journal or journal.commit_number != commit:
                continue
            if standing != (journal.claim, journal.position):
                said = "Redis holds another state"
            elif missing[number]:
                said = f"{missing[number]} of {len(names)} blobs are missing in Redis"
            else:
                continue
            logger.warning("partition %d: %s; loading its state again", number, said)
            task.is_fenced = True
            self.when_fenced()


async def _left(
    partitions: Mapping[int, PartitionTask],
) -> dict[int, tuple[Journal, int, list[str]]]:
    """Partition → journal, commit and blobs as of its last commit, where none is under way."""
    left = {}
    for number, task in list(partitions.items()):
        async with task.lock:  # nothing is being prepared
            journal = task.journal
            if task.phase is Phase.OWNED and journal and task.committing is None:
                left[number] = (journal, journal.commit_number, journal.blob_names())
    return left
