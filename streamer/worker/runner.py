"""The worker: recovers partitions, applies what was fetched, commits. No Faust in here.

``ConsumerPort`` is all it needs of a consumer; the Faust transport is one. Partitions take turns of
their own, as many at a time as there are cores; whoever uses one holds its lock.

It detects a store that was rolled back or lost blobs, which an idle partition, committing nothing,
would not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from functools import partial

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streamer._core import PanicException
from streamer.errors import BrokerError, CodecError, SettingsError, StoreError, StreamerError
from streamer.formatting import partitions_in_words
from streamer.ingest.dead_letters import DeadLetters
from streamer.kafka.chunk import Chunk
from streamer.kafka.consumers import ConsumerPort, Progress
from streamer.kafka.topics import Readable
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.generations import fingerprint_of, require_declared
from streamer.state.journal import Journal
from streamer.state.partition import Partition
from streamer.state.store import Generation, Store
from streamer.state.worker_report import WorkerReport
from streamer.worker.checkpoint import Committer, prepare
from streamer.worker.interpreter import Pool
from streamer.worker.memory_bound import MemoryBound
from streamer.worker.partition_task import PartitionTask, Phase
from streamer.worker.recovery import find_place, leave_out, recover
from streamer.worker.schemas import SchemaFinder

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
            named = {"partition": number, "why": said}
            logger.warning("partition %(partition)d: %(why)s; loading its state again", named)
            task.is_fenced = True
            self.when_fenced()


def _say_assigned(text: str, numbers: Sequence[int]) -> None:
    named = {"which": partitions_in_words(numbers), "partitions": list(numbers)}
    logger.info(text, named)


def _named(task: PartitionTask, why: BaseException | None = None) -> dict[str, object]:
    """What a message names."""
    found: dict[str, object] = {"partition": task.number}
    return found if why is None else {**found, "why": str(why) or repr(why)}


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


logger = logging.getLogger("streamer")
_TELL_SECONDS = 5.0


class Runner:
    """All partitions of one worker process."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        log: ConsumerPort,
        worker: str,
        look_at_topics: Callable[[], Awaitable[Readable]] | None = None,
        when_changed: Callable[[], Awaitable[None]] | None = None,
        fingerprint: str = "",
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.settings, self.store, self.log = settings, store, log
        self.look_at_topics, self.when_changed = look_at_topics, when_changed
        self.fingerprint, self.generation = fingerprint or fingerprint_of(settings), 0
        self.readable = Readable(limits.MAX_PARTITIONS)
        self.catalogue = Catalogue(settings)
        self.dead_letters = dead_letters or DeadLetters(settings)
        self.worker_report = WorkerReport(worker, process=secrets.token_hex(8))
        self.partitions: dict[int, PartitionTask] = {}
        self._recoveries: dict[int, asyncio.Task[None]] = {}
        self._paused: set[TopicPartition] = set()
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pool = Pool()
        self.committer = Committer(store, self.dead_letters, self.worker_report, self._wake.set)
        self.schemas = SchemaFinder(settings, self.worker_report, self._tasks, self._wake.set)
        self._told_at = self._applied_at = 0.0
        self._epochs = itertools.count(1)
        self._aside, self._releases = set[asyncio.Future[None]](), set[asyncio.Task[None]]()
        self.memory = MemoryBound(settings)
        self.store_watch = StoreWatch(store, self._wake.set)
        self._doubted: set[int] = set()
        self._recovering = asyncio.Semaphore(limits.RECOVERIES_AT_ONCE)
        self._progress: dict[TopicPartition, Progress] = {}
        self.ahead_ms = 0
        """How far the store's clock, the wall clock of all workers, is ahead of this host's."""

    # Assignment ----------------------------------------------------------------------------------

    def _tp(self, log: str, number: int) -> TopicPartition:
        return TopicPartition(self.settings.logs[log].topic, number)

    def _tps(self, number: int) -> list[TopicPartition]:
        return [self._tp(log, number) for log in self.settings.logs]

    def _tasks(self) -> Iterable[PartitionTask]:
        """The partitions that are assigned now."""
        return self.partitions.values()

    async def assign(self, numbers: Iterable[int]) -> None:
        """Keep assigned partitions that are in memory, recover the others, release all the rest."""
        async with self._lock:
            before, self.partitions = self.partitions, {}
            self._stop_recoveries()
            wanted = sorted(numbers)
            if taken := [number for number in wanted if number not in before]:
                _say_assigned("assigned: %(which)s", taken)
            if lost := sorted(before.keys() - set(wanted)):
                _say_assigned("assigned to another worker or to none: %(which)s", lost)
            for number in wanted:
                task = before.pop(number, None) or PartitionTask(number, self.settings)
                self.partitions[number] = task
                self._start_recovery(task, 0.0)
            for task in before.values():  # in a job: Kafka gets no heartbeats meanwhile
                job = asyncio.create_task(self._release(task))
                self._releases.add(job)
                job.add_done_callback(self._releases.discard)

    async def count_by(self, settings: Settings, fingerprint: str, generation: int) -> None:
        """Commit and release all partitions, and recover them under other settings, which read the
        same topics of the same clusters."""
        async with self._lock:
            self._stop_recoveries()
            before = list(self.partitions.values())
            errors = await asyncio.gather(*map(self._suspend, before))
            self._say_lost({t.number: e for t, e in zip(before, errors, strict=True) if e})
            await asyncio.gather(*map(self._release, before))
            self.settings, self.catalogue = settings, Catalogue(settings)
            self.fingerprint, self.generation = fingerprint, generation
            self.memory = MemoryBound(settings)
            self.partitions = {t.number: PartitionTask(t.number, settings) for t in before}
            for task in self.partitions.values():
                self._start_recovery(task, 0.0)

    async def look_at_erasures(self) -> None:
        """Load partitions again without people whose erasure was asked for since they were."""
        last_ms = max((await self.store.erasures()).values(), default=0)
        for number, task in self.partitions.items():
            if task.journal is not None and task.journal.erased_ms < last_ms:
                self._doubted.add(number)

    def _stop_recoveries(self) -> None:
        for job in self._recoveries.values():
            job.cancel()
        self._recoveries.clear()
        self.worker_report.problems.clear()
        self._paused.clear()

    def _start_recovery(self, task: PartitionTask, delay_seconds: float) -> None:
        number = task.number
        if self.partitions.get(number) is not task:
            return  # it was taken away meanwhile
        self.log.pause(self._tps(number))
        self._paused.difference_update(self._tps(number))
        if number in self._recoveries:
            self._recoveries[number].cancel()
        job = asyncio.create_task(self._recover(task, delay_seconds))
        self._recoveries[number] = job

    async def _recover(self, task: PartitionTask, delay_seconds: float) -> None:
        """Claim, load, seek; retried until it succeeds or the partition is taken away."""
        while True:
            await asyncio.sleep(delay_seconds)
            try:
                if not await self._is_ours(task.number):
                    self.partitions.pop(task.number, None)  # a claim would fence its new owner
                    self.worker_report.problems.pop(task.number, None)
                    await self._release(task)
                    return
                async with self._recovering, task.lock:
                    await self._recover_once(task)
                break
            except SettingsError as error:
                self.worker_report.problems[task.number] = str(error)
                logger.error("partition %(partition)d: %(why)s", _named(task, error))
            except (StoreError, CodecError, BrokerError, KafkaError, OSError) as error:
                self.worker_report.problems[task.number] = str(error)
                text = "partition %(partition)d not recovered, retrying: %(why)s"
                logger.warning(text, _named(task, error))
            except (Exception, PanicException) as error:  # it must not stay without owner
                self.worker_report.problems[task.number] = type(error).__name__  # no text of events
                logger.exception("partition %(partition)d not recovered, retrying", _named(task))
            task.forget(Phase.ASSIGNED)
            delay_seconds = min(2 * delay_seconds + 0.1, limits.RETRY_SECONDS_MAX)
        if not task.failures:
            self.worker_report.problems.pop(task.number, None)
        self.worker_report.owned[task.number] = str(task.phase)
        if self.when_changed is not None:
            await self.when_changed()

    def _logs(self, number: int) -> dict[TopicPartition, str]:
        """The logs that can be read, by topic-partition."""
        names, left_out = self.settings.logs, self.readable.left_out
        tps = zip(self._tps(number), names, strict=True)
        return {tp: name for tp, name in tps if tp.topic not in left_out}

    async def _is_ours(self, number: int) -> bool:
        """Look at what can be read: whether the state has this partition, and Kafka has assigned
        it."""
        if self.look_at_topics is not None:
            self.readable = await self.look_at_topics()
        away = self.log.away()
        logs = self._logs(number) if number < self.readable.count else {}
        self.log.ignore(tp for tp in self._tps(number) if tp not in logs and tp.topic not in away)
        return bool(logs) and self.log.is_assigned(logs)

    async def _recover_once(self, task: PartitionTask) -> None:
        """Claim, load, seek. Called with the partition's lock held."""
        task.phase = Phase.RECOVERING
        logs, task.left_out = self._logs(task.number), self.readable.left_out
        partition, journal = task.partition, task.journal
        if partition is not None and journal is not None and await self._is_still_ours(task):
            task.dirty |= await find_place(self.log, logs, partition, journal)
        else:
            task.forget(Phase.RECOVERING)
            ids = self.readable.cluster_ids
            await self.declare_settings()
            counted = partial(Partition, self.settings, self.catalogue)
            empty = partial(counted, cluster_ids=ids, generation=self.generation)
            found = await recover(empty, self.store, self.log, logs, task.number)
            partition, task.journal, task.dirty = found.partition, found.journal, found.dirty
        leave_out(partition, self.settings.logs.keys() - set(logs.values()))
        offsets = {tp: partition.logs[name].next_offset for tp, name in logs.items()}
        epoch = next(self._epochs)
        task.epochs = dict.fromkeys(self.settings.logs, epoch)
        await self.log.start_at(offsets, epoch)
        task.partition, task.phase = partition, Phase.OWNED
        task.committed_at = _now()
        self.log.resume(offsets)
        logger.info("partition %(partition)d is recovered; this worker counts it", _named(task))

    async def declare_settings(self) -> Generation:
        """Learn the generation of the settings: others may have been made the newest since, or
        Redis may have been emptied. SettingsError where they have none."""
        found = await self.store.declare_settings(self.fingerprint, self.generation)
        require_declared(found.number)
        if found.number != self.generation:
            self.generation = found.number
            for task in self.partitions.values():
                if task.partition is not None:  # the next commit protects what it counts
                    task.partition.generation, task.dirty = found.number, True
        return found

    async def _is_still_ours(self, task: PartitionTask) -> bool:
        """Whether a partition in memory is the stored one, and nobody has claimed it since."""
        journal = task.journal
        (standing,) = await self.store.standing([task.number])
        return journal is not None and standing == (journal.claim, journal.position)

    async def revoke(self) -> None:
        """Commit everything; what cannot be committed will be read again. The claims stay until the
        next assignment: most partitions come back to where they were."""
        async with self._lock:
            self._stop_recoveries()
            tasks = list(self.partitions.values())
            errors = await asyncio.gather(*map(self._suspend, tasks))
            self._say_lost({t.number: e for t, e in zip(tasks, errors, strict=True) if e})

    def _say_lost(self, errors: Mapping[int, BaseException]) -> None:
        """Log which partitions could not be committed, in one line."""
        if errors:
            of = partitions_in_words(errors)
            logger.warning("%s not committed, read again: %r", of, next(iter(errors.values())))

    async def _suspend(self, task: PartitionTask) -> BaseException | None:
        async with task.lock:  # while others still commit, no turn of it begins
            error = await self._flush(task)
            if task.partition is None or task.is_fenced or task.is_stuck:
                task.forget(Phase.ASSIGNED)
            else:
                task.suspend()
        return error

    async def _release(self, task: PartitionTask) -> None:
        """Give back the claim of a committed partition, and drop it from memory."""
        async with task.lock:
            claim = task.journal.claim if task.journal is not None else None
            task.forget(Phase.ASSIGNED)
        if claim is None:
            return
        try:
            async with asyncio.timeout(limits.RETRY_SECONDS_MAX):
                await self.store.release(task.number, claim)
        except (StoreError, TimeoutError) as error:  # its next owner claims it all the same
            text = "partition %(partition)d was not released: %(why)s"
            logger.warning(text, _named(task, error))
            return
        logger.info("partition %(partition)d is released", _named(task))

    async def _flush(self, task: PartitionTask) -> BaseException | None:
        """Commit what was applied; returns why not. Called with the partition's lock held."""
        if task.phase is not Phase.OWNED or task.journal is None:
            return None
        try:
            async with asyncio.timeout(limits.RETRY_SECONDS_MAX):
                await self._commit_last(task)
        except (Exception, PanicException) as error:  # it is read again; the others go on
            task.forget(Phase.ASSIGNED)
            return error
        return None

    async def _commit_last(self, task: PartitionTask) -> None:
        if task.committing is not None:  # may be cancelled meanwhile: it was fenced
            await asyncio.wait({task.committing})
        if task.may_refresh_users_last and task.partition is not None:
            await self._pool.run(task.partition.refresh_user_sums)
            task.dirty = True
        if task.has_uncommitted:
            await self.committer.attempt(task, *await self._pool.run(prepare, task))

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
        task = self.partitions.get(chunk.partition)
        if task is None:
            return
        if not task.offer(chunk):
            return
        if task.rows(chunk.log) > self._inbox_bound:
            tp = TopicPartition(chunk.topic, chunk.partition)
            self._paused.add(tp)
            self.log.pause([tp])
        self._wake.set()

    @property
    def _inbox_bound(self) -> int:
        """Records of one topic-partition that may wait."""
        if self.memory.is_full:
            return 0
        logs = len(self.settings.logs) * max(1, len(self.partitions))
        return max(1000, self.settings.limits.inbox_records // logs)

    async def run(self) -> None:
        """Apply and commit until cancelled."""
        flush_seconds = self.settings.limits.flush_ms / 1000
        next_tick = 0.0
        while True:
            if _now() >= next_tick:
                next_tick = _now() + flush_seconds
                await self._look_around()
                for task in self.partitions.values():
                    task.is_tick = True
            self._wake.clear()
            for task in self.partitions.values():
                has_enough = task.waiting >= self.settings.limits.gather_rows
                if task.working is None and (task.is_tick or task.is_fenced or has_enough):
                    task.working = asyncio.create_task(self._take_turn(task))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(0.001, next_tick - _now()))

    async def _take_turn(self, task: PartitionTask) -> None:
        try:
            async with task.lock:
                is_tick, task.is_tick = task.is_tick, False
                if await self._work(task, is_tick):
                    self._wake.set()
        except (Exception, PanicException) as error:  # half of it may have been applied
            self._start_over(task, error)
        finally:
            task.working = None

    def _start_over(self, task: PartitionTask, error: BaseException) -> None:
        """After an error in streamer drop a partition from memory and recover it from the store,
        with growing delays while it fails."""
        if task.phase is not Phase.OWNED:
            return
        said = str(error) if isinstance(error, StreamerError) else type(error).__name__
        self.worker_report.problems[task.number] = said
        text = "partition %(partition)d: loading it again: %(why)s"
        logger.error(text, {**_named(task), "why": said}, exc_info=error)
        task.forget(Phase.FENCED)
        task.failures += 1
        delay_seconds = min(0.1 * 2.0 ** min(task.failures, 10), limits.RETRY_SECONDS_MAX)
        self._start_recovery(task, delay_seconds)

    async def _look_around(self) -> None:
        """Read the progress of the logs, and recover partitions whose logs may have changed."""
        self._progress = await self.log.progress()
        self.worker_report.owned = {n: str(o.phase) for n, o in self.partitions.items()}
        self.worker_report.read_to = {
            f"{log}/{task.number}": self._progress[tp].position
            for task in self.partitions.values()
            if task.committing is None and not task.dirty
            for log in task.at_end
            if (tp := self._tp(log, task.number)) in self._progress
        }
        self.schemas.ask_again()
        self._look_for_problems()
        if not self._aside:
            self._do_aside(self._tell_kafka())
            self._do_aside(self.store_watch.ask(self.partitions))
        self._doubted |= {tp.partition for tp in self.log.take_doubted()}
        for number in sorted(self._doubted):
            async with self._lock:
                await self._recover_again(number)

    def _do_aside(self, work: Awaitable[None]) -> None:
        job = asyncio.ensure_future(work)
        self._aside.add(job)
        job.add_done_callback(self._aside.discard)

    def _look_for_problems(self) -> None:
        """Report at once what keeps records from being fetched, and when it is over."""
        unread = {t: f"topic {t} is not read: its cluster is away" for t in self.log.away()}
        unread |= self.readable.unread
        self.memory.look(self.partitions.keys())
        self.memory.tell(self.worker_report)
        before, now = self.worker_report.log_problems, self.log.problems()
        if before == now and unread == self.worker_report.unread:
            return
        for text in unread.keys() - self.worker_report.unread.keys():
            logger.warning("%s", unread[text])
        self.worker_report.unread = unread
        self.worker_report.log_problems = now
        for text in now:
            if text not in before:
                logger.warning("%s", text)
        if before and not now:
            logger.info("records are fetched again")
        if self.when_changed is not None:
            self._do_aside(self.when_changed())

    def recover_changed(self, away: Set[str]) -> bool:
        """Recover, one by one, the partitions that were recovered when other topics could be read
        than now; ``away``: those whose cluster says itself when it is back. True if there are
        any."""
        wanted = self.readable.left_out - away
        changed = {n for n, task in self.partitions.items() if task.left_out - away != wanted}
        self._doubted |= changed
        return bool(changed)

    async def _recover_again(self, number: int) -> None:
        """A log may have changed: commit what was read, then recover by its fingerprints."""
        task = self.partitions.get(number)
        if task is not None and task.phase is not Phase.OWNED:
            return  # looked at again when its recovery is done
        self._doubted.discard(number)
        if task is not None:
            async with task.lock:
                if error := await self._flush(task):
                    self._say_lost({number: error})
            await self._release(task)
            self._start_recovery(task, 0.0)

    async def _work(self, task: PartitionTask, is_tick: bool) -> bool:
        """One turn of a partition: apply, refresh, commit as due. True if anything was applied."""
        if task.is_fenced and task.phase is Phase.OWNED:
            task.forget(Phase.FENCED)
            self._start_recovery(task, 1.0)
        if task.phase is not Phase.OWNED:
            return False
        if is_tick:
            logs = self.settings.logs
            found = {log: self._progress.get(self._tp(log, task.number)) for log in logs}
            missing = task.left_out.union(self.log.away())
            absent = frozenset(name for name, log in logs.items() if log.topic in missing)
            task.look({log: progress for log, progress in found.items() if progress}, absent)
        if task.is_stuck or task.has_too_much:
            return False
        bounds = self.settings.limits
        taken = task.take(bounds.gather_rows, everything=is_tick)
        core = task.partition.core if task.partition is not None and is_tick else None
        is_over = core is not None and self.memory.bound(task.number, core)
        if taken or is_over or (is_tick and task.may_settle):
            rows = await self._pool.run(task.apply, taken, self.ahead_ms)
            self.worker_report.applied_records += rows
            self._applied_at = _now()
            if task.unknown_schemas is not None and taken:
                self.schemas.find(task)
            self._resume(task)
        is_due = _now() - task.committed_at >= bounds.flush_ms / 1000
        is_due |= task.rows_since_commit >= limits.COMMIT_ROWS
        is_due |= len(task.dead) >= limits.MAX_DEAD_LETTERS
        if task.committing is None and (is_tick or (task.dirty and is_due)):
            await self._refresh_users(task)
        if task.dirty and is_due and task.committing is None:
            task.committed_at = _now()
            prepared = await self._pool.run(prepare, task)
            task.committing = asyncio.create_task(self.committer.commit(task, *prepared))
        return bool(taken)

    async def _refresh_users(self, task: PartitionTask) -> None:
        """Refresh the sums over users, if that is due."""
        started, partition = _now(), task.partition
        if partition is not None and task.may_refresh_users(started, self._refresh_parts(started)):
            everything = partition.is_stale
            await self._pool.run(partition.refresh_user_sums)
            task.refreshed_at, task.dirty = _now(), True
            if not everything:  # that comes once, after a recovery
                task.refresh_seconds = _now() - started

    def _refresh_parts(self, now: float) -> int:
        """Refreshing sums over users takes at most one in so many parts of a partition's time."""
        if now - self._applied_at > self.settings.limits.flush_ms / 1000:
            return 0  # nothing comes that would have to wait
        rows = self.settings.limits.gather_rows
        is_busy = any(task.waiting > rows for task in self.partitions.values())
        parts = limits.USER_REFRESH_PARTS if is_busy else limits.USER_REFRESH_PARTS_IDLE
        return parts * len(self.partitions)

    def _resume(self, task: PartitionTask) -> None:
        bound = self._inbox_bound // 2
        for log, tp in zip(self.settings.logs, self._tps(task.number), strict=True):
            if tp in self._paused and task.rows(log) <= bound:
                self._paused.discard(tp)
                self.log.resume([tp])

    async def _tell_kafka(self) -> None:
        """Commit what is committed here to Kafka too, for lag tools; nothing depends on it."""
        if _now() - self._told_at < _TELL_SECONDS:
            return
        self._told_at = _now()
        offsets = {
            self._tp(log, number): offset
            for number, task in self.partitions.items()
            for log, offset in task.committed.items()
            if offset and log in self.settings.logs
        }
        await self.log.tell_kafka(offsets)


def _now() -> float:
    """The event loop's clock, in seconds: tests may drive it."""
    return asyncio.get_running_loop().time()
