"""One partition in a worker: its phase, and its queues of fetched chunks."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from streamer.ingest.dead_letters import DeadLetter
from streamer.ingest.rejections import Explainer
from streamer.kafka.chunk import Chunk
from streamer.kafka.consumers import Progress
from streamer.kafka.fingerprints import Fingerprint
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.partition import NEVER, Applied, Partition

logger = logging.getLogger("streamer")


class Phase(StrEnum):
    """assigned → recovering → owned → fenced; nothing is applied before ``owned``.

    ``revoked``: committed, and kept in memory until the next assignment.
    """

    ASSIGNED = "assigned"
    RECOVERING = "recovering"
    OWNED = "owned"
    REVOKED = "revoked"
    FENCED = "fenced"


@dataclass
class PartitionTask:
    """A partition number that Kafka has assigned to this worker."""

    number: int
    settings: Settings
    phase: Phase = Phase.ASSIGNED
    partition: Partition | None = None
    journal: Journal | None = None
    epochs: dict[str, int] = field(default_factory=dict)
    queues: dict[str, deque[Chunk]] = field(init=False)
    dead: list[DeadLetter] = field(default_factory=list)
    dead_omitted: int = 0
    at_end: frozenset[str] = frozenset()
    dirty: bool = False
    rows_since_commit: int = 0
    committed_at: float = 0.0
    committing: asyncio.Task[None] | None = None
    working: asyncio.Task[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever uses the partition: it is for one thread at a time."""
    is_tick: bool = False
    """Whether to apply all that waits, even if it is little."""
    failures: int = 0
    """Consecutive failures, by an error in streamer, between recovery and commit."""
    unknown_schemas: tuple[str, Sequence[int]] | None = None
    """Log, and ids of the schemas without which its next record, and others after it, cannot be
    read: nothing is taken."""
    is_stuck: bool = False
    is_fenced: bool = False
    caught_up: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    """Topics that could not be read when it was recovered."""
    absent: frozenset[str] = frozenset()
    """Logs that cannot be read now. None is at its end, and none holds back the others."""
    committed: dict[str, int] = field(default_factory=dict)
    refreshed_at: float = 0.0
    refresh_seconds: float = 0.0
    _asked_at: dict[str, float] = field(default_factory=dict)
    """Log → when Kafka was asked for its end, as of the last look."""
    _received_at: dict[str | None, float] = field(default_factory=dict)
    """Cluster → when the newest was received of what was applied of it."""
    _settled_at: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        self.queues = {name: deque() for name in self.settings.logs}

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.settings)

    def rows(self, log: str) -> int:
        """Records of one log that wait to be applied."""
        return sum(map(len, self.queues[log]))

    @property
    def waiting(self) -> int:
        """Records that are not applied yet."""
        return sum(map(self.rows, self.queues))

    def offer(self, chunk: Chunk) -> bool:
        """Queue a chunk, unless it was fetched before the last seek (its epoch is older); returns
        whether it was queued."""
        is_new = chunk.epoch == self.epochs.get(chunk.log)
        if is_new:
            self.queues[chunk.log].append(chunk)
        return is_new

    def look(self, progress: Mapping[str, Progress], absent: frozenset[str] = frozenset()) -> None:
        """Update ``absent``; ``at_end``, the topics applied up to the last stable offset; and
        ``caught_up``, those fetched up to it: with an empty queue they hold no other topic back.

        A topic ends where nothing of another cluster was applied that was received after the
        question for its end: there may be older records by now.
        """
        ended, caught_up = set(), set()
        for name, (handed_out, behind, _, asked_at) in progress.items():
            if self.partition is None or self.phase is not Phase.OWNED or behind != 0:
                continue
            caught_up.add(name)
            self._asked_at[name] = asked_at
            is_applied = self.partition.logs[name].next_offset >= handed_out
            if not self.queues[name] and is_applied and self._received_elsewhere(name) <= asked_at:
                ended.add(name)
        self.at_end, self.caught_up = frozenset(ended - absent), frozenset(caught_up - absent)
        self.absent = absent

    def _received_elsewhere(self, name: str) -> float:
        """When the newest was received of what was applied of other clusters than a log's."""
        own = self.settings.logs[name].cluster
        others = (at for cluster, at in self._received_at.items() if cluster != own)
        return max(others, default=-math.inf)

    def take(self, rows: int, everything: bool) -> list[Chunk]:
        """Chunks to apply together, oldest first over the topics; none while a schema is not known,
        or while there are fewer than ``rows`` rows, unless all that may be applied is asked for."""
        waiting = self.waiting
        if self.unknown_schemas is not None or not waiting or (waiting < rows and not everything):
            return []
        taken: list[Chunk] = []
        count = 0
        while count < rows or everything:
            name = self._oldest()
            if name is None or (taken and count + len(self.queues[name][0]) > 5 * rows):
                break
            chunk = self.queues[name].popleft()
            taken.append(chunk)
            count += len(chunk)
        return taken

    def _oldest(self) -> str | None:
        """The topic whose next record is the oldest; None if it has to wait for another topic that
        may still bring older records: one that lags far behind, or one of another cluster that was
        not asked since. (Topics of one cluster are asked together.)"""
        fronts = {name: queue[0].first_ms for name, queue in self.queues.items() if queue}
        if not fronts:
            return None
        oldest = min(fronts, key=lambda name: fronts[name])
        assert self.partition is not None
        logs, received_at = self.settings.logs, self.queues[oldest][0].received_at
        for sibling, log in self.partition.logs.items():
            if sibling in fronts:
                continue
            if sibling in self.caught_up:
                is_elsewhere = logs[sibling].cluster != logs[oldest].cluster
                if is_elsewhere and self._asked_at[sibling] < received_at:
                    return None
                continue
            if sibling in self.absent:
                continue
            behind_ms = fronts[oldest] - log.arrival_ms
            if behind_ms > self.settings.limits.hold_back_ms:
                return None
        return oldest

    def apply(self, taken: list[Chunk], ahead_ms: int = 0) -> int:
        """Apply chunks; returns the number of records. ``ahead_ms``: how far the wall clock is
        ahead of this host's."""
        assert self.partition is not None
        assert self.journal is not None
        contents, ended = [chunk.content for chunk in taken], sorted(self.at_end)
        wall_ms = time.time_ns() // 1_000_000 + ahead_ms
        until = time.monotonic() + limits.APPLY_MS / 1000

        def left_ms() -> int:
            return max(0, int(1000 * (until - time.monotonic())))

        applied = self.partition.apply(contents, ended, wall_ms, left_ms)
        for chunk in reversed(taken[len(taken) - applied.left :]):
            self.queues[chunk.log].appendleft(chunk)
        for chunk in taken:
            cluster = self.settings.logs[chunk.log].cluster
            received_at = self._received_at.get(cluster, -math.inf)
            self._received_at[cluster] = max(received_at, chunk.received_at)
        if taken:
            self.unknown_schemas = applied.unknown_schemas
        for name, last in applied.last.items():
            self.journal.remember(name, Fingerprint(*last))
        for lost in applied.skipped:
            named = {"topic": self._topic(lost.log), "partition": self.number, "why": lost.reason}
            logger.error(
                "%(topic)s/%(partition)d: the record batch of offsets %(first)d to %(last)d cannot "
                "be read (%(why)s): they are lost",
                {**named, "first": lost.first, "last": lost.end - 1},
            )
        self._keep_dead(applied)
        self.dirty = True
        self.rows_since_commit += applied.rows
        self._settled_at = self._clocks()
        return applied.rows

    def _topic(self, log: str) -> str:
        return self.settings.logs[log].topic

    def _keep_dead(self, applied: Applied) -> None:
        self.dead_omitted += applied.omitted
        for each in applied.rejected:
            beside = (each.key, each.headers, each.record_ms)
            refusal = self._explainer.explain(each.log, each.value, each.reason, beside)
            topic = self._topic(each.log)
            self.dead.append(DeadLetter(topic, self.number, each.offset, refusal, each.value))

    def _clocks(self) -> tuple[object, ...]:
        assert self.partition is not None
        return (self.at_end, *(log.arrival_ms for log in self.partition.logs.values()))

    @property
    def may_settle(self) -> bool:
        """Whether an idle topic can take a watermark from the others since the last apply."""
        assert self.partition is not None
        seen = any(log.arrival_ms > NEVER for log in self.partition.logs.values())
        return seen and bool(self.at_end) and self._clocks() != self._settled_at

    def may_refresh_users(self, now: float, parts: int) -> bool:
        """Whether to refresh the sums over users now: they are dirty, and refreshing takes at most
        1 / ``parts`` of the time (0: at once)."""
        if self.partition is None or not self.partition.is_dirty:
            return False
        pause = max(limits.USER_REFRESH_SECONDS, parts * self.refresh_seconds) if parts else 0.0
        return now - self.refreshed_at >= pause

    @property
    def may_refresh_users_last(self) -> bool:
        """Whether to refresh the sums over users before the partition is released: another
        worker may not take it over soon."""
        p = self.partition
        wanted = p is not None and p.is_dirty and not p.is_stale
        return wanted and self.refresh_seconds <= limits.USER_REFRESH_SECONDS

    @property
    def has_uncommitted(self) -> bool:
        """Whether applied records are not committed yet."""
        return self.phase is Phase.OWNED and self.dirty

    @property
    def has_too_much(self) -> bool:
        """Whether to wait for the commit under way before more is applied."""
        if self.committing is None:
            return False
        many = self.rows_since_commit >= limits.COMMIT_ROWS
        return many or len(self.dead) >= limits.MAX_DEAD_LETTERS

    def forget(self, phase: Phase) -> None:
        """Drop everything in memory, and the commit under way."""
        if self.committing is not None:
            self.committing.cancel()
            self.committing = None  # one that has not begun does not end by itself
        self.phase = phase
        self.partition = self.journal = None
        self.dead, self.dead_omitted = [], 0
        self.dirty, self.rows_since_commit = False, 0
        self.is_stuck = self.is_fenced = False
        self.committed = {}
        self.refreshed_at = self.refresh_seconds = 0.0
        self._settled_at = ()
        self._drop_queues()

    def suspend(self) -> None:
        """Keep what was committed, and drop all that waits, until the next assignment."""
        self.phase = Phase.REVOKED
        self._drop_queues()

    def _drop_queues(self) -> None:
        """Empty the queues, and reject all chunks fetched before the next seek."""
        self.at_end = self.caught_up = self.absent = frozenset()
        self.unknown_schemas = None
        self.epochs = {}
        for queue in self.queues.values():
            queue.clear()
