"""The worker: adopts partitions, applies what was fetched, commits. No Faust in here.

``Log`` is all it needs of a consumer; the Faust transport is one. Partitions take turns of their
own, as many at a time as there are cores; whoever uses one holds its lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streamer import limits
from streamer._core import PanicException
from streamer.chunk import Chunk
from streamer.committer import Committer, prepare
from streamer.config import Settings
from streamer.deadletters import DeadLetters
from streamer.errors import BrokerError, CodecError, SettingsError, StoreError, StreamerError
from streamer.events import KINDS
from streamer.log import Log, Progress
from streamer.metrics.catalogue import Catalogue
from streamer.owned import OwnedPartition, Phase
from streamer.pool import Pool
from streamer.recovery import recover
from streamer.store.base import Store
from streamer.store_watch import StoreWatch
from streamer.telemetry import Telemetry
from streamer.witnesses import find_place

logger = logging.getLogger("streamer")
_TELL_SECONDS = 5.0


class Runner:
    """All partitions of one worker process."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        log: Log,
        worker: str,
        before_adoption: Callable[[], Awaitable[None]] | None = None,
        after_adoption: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.settings, self.store, self.log = settings, store, log
        self.before_adoption, self.after_adoption = before_adoption, after_adoption
        self.catalogue = Catalogue(settings)
        self.dead_letters = DeadLetters(settings)
        self.telemetry = Telemetry(worker, process=secrets.token_hex(8))
        self.partitions: dict[int, OwnedPartition] = {}
        topics = settings.kafka.topics
        self.topic_of = {kind: str(getattr(topics, kind)) for kind in KINDS}
        self._adoptions: dict[int, asyncio.Task[None]] = {}
        self._paused: set[TopicPartition] = set()
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pool = Pool()
        self.committer = Committer(store, self.dead_letters, self.telemetry, self._wake.set)
        self._told_at = self._applied_at = 0.0
        self._epochs = itertools.count(1)
        self._aside: set[asyncio.Task[None]] = set()
        self._releases: set[asyncio.Task[None]] = set()
        self.store_watch = StoreWatch(store, self._wake.set)
        self._doubted: set[int] = set()
        self._adopting = asyncio.Semaphore(limits.ADOPTIONS_AT_ONCE)
        self._progress: dict[TopicPartition, Progress] = {}

    # Assignment ----------------------------------------------------------------------------------

    def _tp(self, kind: str, number: int) -> TopicPartition:
        return TopicPartition(self.topic_of[kind], number)

    def _tps(self, number: int) -> list[TopicPartition]:
        return [self._tp(kind, number) for kind in self.topic_of]

    async def assign(self, numbers: Iterable[int]) -> None:
        """Go on with partitions that we had, adopt the others, and release what is not ours."""
        async with self._lock:
            before, self.partitions = self.partitions, {}
            self._stop_adoptions()
            for number in sorted(numbers):
                owned = before.pop(number, None) or OwnedPartition(number, self.settings)
                self.partitions[number] = owned
                self._start_adoption(owned, 0.0)
            for owned in before.values():  # in a task: Kafka gets no heartbeats meanwhile
                task = asyncio.create_task(self._release(owned))
                self._releases.add(task)
                task.add_done_callback(self._releases.discard)

    def _stop_adoptions(self) -> None:
        for task in self._adoptions.values():
            task.cancel()
        self._adoptions.clear()
        self.telemetry.problems.clear()
        self._paused.clear()

    def _start_adoption(self, owned: OwnedPartition, delay_seconds: float) -> None:
        number = owned.number
        if self.partitions.get(number) is not owned:
            return  # it was taken away meanwhile
        self.log.pause(self._tps(number))
        self._paused.difference_update(self._tps(number))
        if number in self._adoptions:
            self._adoptions[number].cancel()
        task = asyncio.create_task(self._adopt(owned, delay_seconds))
        self._adoptions[number] = task

    async def _adopt(self, owned: OwnedPartition, delay_seconds: float) -> None:
        """Claim, load, seek: again and again until it is done or the partition is taken away."""
        while True:
            await asyncio.sleep(delay_seconds)
            if not self.log.is_assigned(self._tps(owned.number)):
                self.partitions.pop(owned.number, None)  # a claim would fence its new owner
                self.telemetry.problems.pop(owned.number, None)
                await self._release(owned)
                return
            try:
                async with self._adopting, owned.lock:
                    await self._adopt_once(owned)
                break
            except SettingsError as error:
                self.telemetry.problems[owned.number] = str(error)
                logger.error("partition %d: %s", owned.number, error)
            except (StoreError, CodecError, BrokerError, KafkaError, OSError) as error:
                self.telemetry.problems[owned.number] = str(error)
                logger.warning("partition %d is not adopted yet: %s", owned.number, error)
            except (Exception, PanicException) as error:  # it must not stay without owner
                self.telemetry.problems[owned.number] = type(error).__name__  # no text of events
                logger.exception("partition %d is not adopted yet", owned.number)
            owned.forget(Phase.ASSIGNED)
            delay_seconds = min(2 * delay_seconds + 0.1, limits.RETRY_SECONDS_MAX)
        if not owned.failures:
            self.telemetry.problems.pop(owned.number, None)
        self.telemetry.owned[owned.number] = str(owned.phase)
        if self.after_adoption is not None:
            await self.after_adoption()

    async def _adopt_once(self, owned: OwnedPartition) -> None:
        """Claim, load, seek. Called with the partition's lock held."""
        owned.phase = Phase.ADOPTING
        if self.before_adoption is not None:
            await self.before_adoption()
        kinds = dict(zip(self._tps(owned.number), self.topic_of, strict=True))
        partition, journal = owned.partition, owned.journal
        if partition is not None and journal is not None and await self._is_still_ours(owned):
            owned.dirty |= await find_place(self.log, kinds, partition, journal)
        else:
            owned.forget(Phase.ADOPTING)
            found = await recover(
                self.settings, self.catalogue, self.store, self.log, kinds, owned.number
            )
            partition, owned.journal, owned.dirty = found.partition, found.journal, found.dirty
        offsets = {tp: partition.logs[kind].next_offset for tp, kind in kinds.items()}
        epoch = next(self._epochs)
        owned.epochs = dict.fromkeys(KINDS, epoch)
        await self.log.start_at(offsets, epoch)
        owned.partition, owned.phase = partition, Phase.OWNED
        owned.committed_at = _now()
        self.log.resume(offsets)
        logger.info("partition %d is counted from here", owned.number)

    async def _is_still_ours(self, owned: OwnedPartition) -> bool:
        """Whether a partition in memory is the stored one, and nobody has claimed it since."""
        journal = owned.journal
        (standing,) = await self.store.standing([owned.number])
        return journal is not None and standing == (journal.claim, journal.position)

    async def revoke(self) -> None:
        """Commit everything; what cannot be committed will be read again. The claims stay until the
        next assignment: most partitions come back to where they were."""
        async with self._lock:
            self._stop_adoptions()
            await asyncio.gather(*map(self._flush, self.partitions.values()))
            for owned in self.partitions.values():
                if owned.partition is None or owned.is_fenced or owned.is_stuck:
                    owned.forget(Phase.ASSIGNED)
                else:
                    owned.suspend()

    async def _release(self, owned: OwnedPartition) -> None:
        """Give a partition up that was committed, and forget it."""
        async with owned.lock:
            claim = owned.journal.claim if owned.journal is not None else None
            owned.forget(Phase.ASSIGNED)
        if claim is None:
            return
        try:
            async with asyncio.timeout(limits.RETRY_SECONDS_MAX):
                await self.store.release(owned.number, claim)
        except (StoreError, TimeoutError) as error:  # its next owner claims it all the same
            logger.warning("partition %d was not released: %r", owned.number, error)

    async def _flush(self, owned: OwnedPartition) -> None:
        async with owned.lock:
            if owned.phase is not Phase.OWNED or owned.journal is None:
                return
            try:
                async with asyncio.timeout(limits.RETRY_SECONDS_MAX):
                    await self._commit_last(owned)
            except (Exception, PanicException) as error:  # it is read again; the others go on
                logger.warning("partition %d was not committed: %r", owned.number, error)
                owned.forget(Phase.ASSIGNED)

    async def _commit_last(self, owned: OwnedPartition) -> None:
        if owned.committing is not None:  # may be cancelled meanwhile: it was fenced
            await asyncio.wait({owned.committing})
        if owned.may_file_last and owned.partition is not None:
            await self._pool.run(owned.partition.refresh_user_sums)
            owned.dirty = True
        if owned.has_uncommitted:
            await self.committer.attempt(owned, *await self._pool.run(prepare, owned))

    async def stop(self) -> None:
        """Commit, release, close."""
        await self.revoke()
        await self.assign(())
        await asyncio.gather(*self._releases)
        await self.dead_letters.close()
        self._pool.close()

    # Applying ------------------------------------------------------------------------------------

    def offer(self, chunk: Chunk) -> None:
        """Queue a fetched chunk; fetching pauses where too much waits."""
        owned = self.partitions.get(chunk.partition)
        if owned is None:
            return
        owned.offer(chunk)
        if owned.rows(chunk.kind) > self._inbox_bound:
            tp = TopicPartition(chunk.topic, chunk.partition)
            self._paused.add(tp)
            self.log.pause([tp])
        self._wake.set()

    @property
    def _inbox_bound(self) -> int:
        """Records of one topic-partition that may wait."""
        logs = len(KINDS) * max(1, len(self.partitions))
        return max(1000, self.settings.limits.inbox_records // logs)

    async def run(self) -> None:
        """Apply and commit, for ever."""
        flush_seconds = self.settings.limits.flush_ms / 1000
        next_tick = 0.0
        while True:
            if _now() >= next_tick:
                next_tick = _now() + flush_seconds
                await self._look_around()
                for owned in self.partitions.values():
                    owned.is_tick = True
            self._wake.clear()
            for owned in self.partitions.values():
                has_enough = owned.waiting >= self.settings.limits.gather_rows
                if owned.working is None and (owned.is_tick or owned.is_fenced or has_enough):
                    owned.working = asyncio.create_task(self._take_turn(owned))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(0.001, next_tick - _now()))

    async def _take_turn(self, owned: OwnedPartition) -> None:
        try:
            async with owned.lock:
                is_tick, owned.is_tick = owned.is_tick, False
                if await self._work(owned, is_tick):
                    self._wake.set()
        except (Exception, PanicException) as error:  # half of it may have been applied
            self._start_over(owned, error)
        finally:
            owned.working = None

    def _start_over(self, owned: OwnedPartition, error: BaseException) -> None:
        """Drop a partition's memory after an error of ours, and go on with what is stored; if that
        fails as well, then ever later."""
        if owned.phase is not Phase.OWNED:
            return
        said = str(error) if isinstance(error, StreamerError) else type(error).__name__
        self.telemetry.problems[owned.number] = said
        logger.error("partition %d is loaded again: %s", owned.number, said, exc_info=error)
        owned.forget(Phase.FENCED)
        owned.failures += 1
        delay_seconds = min(0.1 * 2.0 ** min(owned.failures, 10), limits.RETRY_SECONDS_MAX)
        self._start_adoption(owned, delay_seconds)

    async def _look_around(self) -> None:
        """Where the logs end, and what fell out of them."""
        self._progress = await self.log.progress()
        self.telemetry.owned = {n: str(o.phase) for n, o in self.partitions.items()}
        self.telemetry.read_to = {
            f"{kind}/{owned.number}": self._progress[tp].position
            for owned in self.partitions.values()
            if owned.committing is None and not owned.dirty
            for kind in owned.at_end
            if (tp := self._tp(kind, owned.number)) in self._progress
        }
        if not self._aside:
            for work in (self._tell_kafka(), self.store_watch.ask(self.partitions)):
                task = asyncio.create_task(work)
                self._aside.add(task)
                task.add_done_callback(self._aside.discard)
        self._doubted |= {tp.partition for tp in self.log.take_doubted()}
        for number in sorted(self._doubted):
            async with self._lock:
                await self._adopt_again(number)

    async def _adopt_again(self, number: int) -> None:
        """A log may have changed: keep what was read of it, then compare and go on."""
        owned = self.partitions.get(number)
        if owned is not None and owned.phase is not Phase.OWNED:
            return  # looked at again when its adoption is done
        self._doubted.discard(number)
        if owned is not None:
            await self._flush(owned)
            await self._release(owned)
            self._start_adoption(owned, 0.0)

    async def _work(self, owned: OwnedPartition, is_tick: bool) -> bool:
        """One turn of a partition; True where it was fed."""
        if owned.is_fenced and owned.phase is Phase.OWNED:
            owned.forget(Phase.FENCED)
            self._start_adoption(owned, 1.0)
        if owned.phase is not Phase.OWNED:
            return False
        if is_tick:
            found = {kind: self._progress.get(self._tp(kind, owned.number)) for kind in KINDS}
            owned.look({kind: progress for kind, progress in found.items() if progress})
        if owned.is_stuck or owned.has_too_much:
            return False
        bounds = self.settings.limits
        taken = owned.take(bounds.gather_rows, everything=is_tick)
        if taken or (is_tick and owned.may_settle):
            rows = await self._pool.run(owned.apply, taken)
            self.telemetry.applied_records += rows
            self._applied_at = _now()
            self._resume(owned)
        is_due = _now() - owned.committed_at >= bounds.flush_ms / 1000
        is_due |= owned.rows_since_commit >= limits.COMMIT_ROWS
        is_due |= len(owned.dead) >= limits.MAX_DEAD_LETTERS
        if owned.committing is None and (is_tick or (owned.dirty and is_due)):
            await self._file_users(owned)
        if owned.dirty and is_due and owned.committing is None:
            owned.committed_at = _now()
            prepared = await self._pool.run(prepare, owned)
            owned.committing = asyncio.create_task(self.committer.commit(owned, *prepared))
        return bool(taken)

    async def _file_users(self, owned: OwnedPartition) -> None:
        """Bring the sums over users up to date, if it is worth its time now."""
        started, partition = _now(), owned.partition
        if partition is not None and owned.may_file(started, self._filing_parts(started)):
            everything = partition.is_stale
            await self._pool.run(partition.refresh_user_sums)
            owned.filed_at, owned.dirty = _now(), True
            if not everything:  # that comes once, after an adoption
                owned.filing_seconds = _now() - started

    def _filing_parts(self, now: float) -> int:
        """Filing takes at most one in so many parts of a partition's time."""
        if now - self._applied_at > self.settings.limits.flush_ms / 1000:
            return 0  # nothing comes that would have to wait
        rows = self.settings.limits.gather_rows
        is_busy = any(owned.waiting > rows for owned in self.partitions.values())
        parts = limits.FILING_PARTS if is_busy else limits.FILING_PARTS_IDLE
        return parts * len(self.partitions)

    def _resume(self, owned: OwnedPartition) -> None:
        bound = self._inbox_bound // 2
        for kind, tp in zip(self.topic_of, self._tps(owned.number), strict=True):
            if tp in self._paused and owned.rows(kind) <= bound:
                self._paused.discard(tp)
                self.log.resume([tp])

    async def _tell_kafka(self) -> None:
        """Commit what is committed here to Kafka too, for lag tools; nothing depends on it."""
        if _now() - self._told_at < _TELL_SECONDS:
            return
        self._told_at = _now()
        offsets = {
            self._tp(kind, number): offset
            for number, owned in self.partitions.items()
            for kind, offset in owned.committed.items()
            if offset
        }
        await self.log.tell_kafka(offsets)


def _now() -> float:
    """The event loop's clock, in seconds: tests may drive it."""
    return asyncio.get_running_loop().time()
