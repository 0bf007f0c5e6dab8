"""The retained log, counted again under new settings beside the running state, which it replaces.

The state of a partition follows from its logs up to its offsets. One that is counted from the same
first offsets and as far may stand in for it: what both count is equal, and what is new has a past.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Self

from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError, StoreError, StreamerError
from streamer.ingest.dead_letters import DeadLetter, DeadLetters
from streamer.kafka.chunk import Chunk
from streamer.kafka.consumers import JoinedConsumers
from streamer.kafka.other_cluster import OtherCluster
from streamer.kafka.topics import Readable, readable
from streamer.settings.model import Settings
from streamer.state.log_identity import new_names, renamed
from streamer.state.manifest import Manifest, decode, parts_of_position, position_of
from streamer.state.memory import MemoryStore
from streamer.state.reader import manifests_of
from streamer.state.store import Answer, Commit, Store
from streamer.worker.runner import Runner

_LOOK_SECONDS = 0.1
_STALLED_SECONDS = 60.0
"""Without any record that was counted, after which filling is given up."""


class Fill:
    """Counts all that the topics of the settings retain, a few partitions at a time."""

    def __init__(self, settings: Settings, store: Store, fingerprint: str) -> None:
        self.settings, self.store, self.fingerprint = settings, store, fingerprint
        self.records = 0
        """Counted again, of partitions that have switched."""
        self._copy = MemoryStore()
        self._letters = _NotSentYet(settings)
        self._runner: Runner | None = None
        self._readable: Readable | None = None
        clusters = settings.read_clusters
        self._consumers = [OtherCluster(settings, cluster, self._offer) for cluster in clusters]
        by_topic = {
            log.topic: consumer
            for cluster, consumer in zip(clusters, self._consumers, strict=True)
            for log in settings.logs_in(cluster)
        }
        self._log = JoinedConsumers(by_topic)

    async def __aenter__(self) -> Self:
        """BrokerError where a cluster cannot be reached."""
        for consumer in self._consumers:
            consumer.start()
        for consumer in self._consumers:
            await consumer.has_tried()
            if consumer.why_away is not None:
                await self.__aexit__()
                raise BrokerError(consumer.why_away)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(consumer.stop() for consumer in self._consumers))

    def _offer(self, chunk: Chunk) -> None:
        if self._runner is not None:
            self._runner.offer(chunk)

    async def require_retained(self) -> None:
        """StreamerError where the topics do not hold all that is counted of them any more."""
        count = await self.store.partitions() or 0
        manifests, damaged = await manifests_of(self.store, count)
        for number, damage in damaged.items():
            raise StoreError(f"partition {number}: {damage}")
        if unread := sorted((await self._look()).unread.values()):
            raise BrokerError(unread[0])
        for number, stored in manifests.items():
            manifest = self._named(stored)
            tps = {
                TopicPartition(log.topic, number): name
                for name, log in self.settings.logs.items()
                if name in manifest.topics
            }
            starts = {tps[tp]: at for tp, (at, _) in (await self._log.bounds(list(tps))).items()}
            _require(number, manifest, starts)

    async def _look(self) -> Readable:
        if self._readable is None:
            self._readable = await readable(self.settings, await self.store.partitions())
        return self._readable

    def _named(self, manifest: Manifest) -> Manifest:
        """With the names that topics have in our settings."""
        ids = {} if self._readable is None else self._readable.cluster_ids
        return renamed(manifest, new_names(manifest, self.settings.logs, ids))

    async def run(self, generation: int) -> None:
        """Count everything, and let each partition switch once it has come as far. ``generation``:
        of the settings, which are declared. StreamerError where one cannot: it goes on as it is."""
        count = await self.store.partitions() or 0
        copy, settings = self._copy, self.settings
        copy.count, copy.key = count, await self.store.hash_key()
        copy.settings = {self.fingerprint: generation}
        self._runner = Runner(
            *(settings, copy, self._log, "fill", self._look),
            fingerprint=self.fingerprint,
            dead_letters=self._letters,
        )
        self._runner.ahead_ms = await self.store.now_ms() - time.time_ns() // 1_000_000
        counting = asyncio.create_task(self._runner.run())
        try:
            numbers = iter(range(count))
            while some := list(itertools.islice(numbers, os.cpu_count() or 1)):
                await self._fill(self._runner, some)
        finally:
            counting.cancel()
            await asyncio.wait({counting})
            await self._runner.stop()  # closes the producer of letters, too

    async def _fill(self, runner: Runner, numbers: Sequence[int]) -> None:
        left = set(numbers)
        while left:
            for consumer in self._consumers:
                consumer.assign(left)
            await runner.assign(left)
            await self._catch_up(runner, left)
            await runner.revoke()  # after its last commit
            left -= {number for number in left if await self._switch(number)}

    async def _catch_up(self, runner: Runner, numbers: Collection[int]) -> None:
        """Wait until as much is counted of each as in the running state."""
        last: Sequence[Mapping[str, int]] = ()
        advanced_at = time.monotonic()
        while True:
            stored = await self.store.read_all(sorted(numbers))
            wanted = [parts_of_position(some.position)[1] for some in stored]
            self._letters.running |= zip(sorted(numbers), wanted, strict=True)
            tasks = [runner.partitions.get(number) for number in sorted(numbers)]
            there = [{} if task is None else task.committed for task in tasks]
            if all(map(_is_as_far, there, wanted)):
                return
            if there != last:
                last, advanced_at = there, time.monotonic()
            if time.monotonic() - advanced_at > _STALLED_SECONDS:
                problems = (*runner.worker_report.problems.values(), *self._log.problems())
                why = next(iter(problems), "the topics give no more records")
                raise BrokerError(f"cannot count the topics again: {why}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _switch(self, number: int) -> bool:
        """Put what was counted in the place of what is stored; False where that has come further
        meanwhile, or its worker claims it again."""
        claim, there = await self.store.claim(number)
        try:
            copied = self._copy.states.get(number)
            if copied is None or not there.manifest:
                return not there.manifest
            was, manifest = self._named(decode(there.manifest)), decode(copied.manifest)
            offsets = parts_of_position(copied.position)[1]
            if not _is_as_far(offsets, parts_of_position(there.position)[1]):
                return False
            _require(number, was, {name: t.first_offset for name, t in manifest.topics.items()})
            manifest.commit = max(was.commit, manifest.commit) + 1
            sent = await self._letters.send_from(number, parts_of_position(there.position)[1])
            manifest.dead_letters = was.dead_letters + sent
            manifest.dead_letters_omitted = was.dead_letters_omitted
            position = position_of(manifest.commit, offsets)
            commit = Commit(
                *(claim, there.position, position, manifest.encode()),
                blobs=self._copy.held.pop(number, {}),
                delete=sorted(was.blob_names()),
            )
            answer = await self.store.commit(number, commit)
            if answer in (Answer.OK, Answer.ALREADY):
                del self._copy.states[number]
                self.records += sum(t.counters["accepted"] for t in manifest.topics.values())
                return True
            self._copy.held[number] = dict(commit.blobs)
            return False
        finally:
            await self.store.release(number, claim)


class _NotSentYet(DeadLetters):
    """Keeps back those of records that the running state has not read: it has sent the others.
    ``running``: partition → log → its next offset."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.running: dict[int, Mapping[str, int]] = {}
        self._kept: list[DeadLetter] = []
        self._logs = {log.topic: name for name, log in settings.logs.items()}

    def _is_after(self, letter: DeadLetter, offsets: Mapping[str, int]) -> bool:
        return letter.offset >= offsets.get(self._logs[letter.topic], 0)

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Keep them, until the running state has read on, or ``send_from``."""
        self._kept = [
            letter
            for letter in (*self._kept, *letters)
            if self._is_after(letter, self.running.get(letter.partition, {}))
        ]

    async def send_from(self, number: int, offsets: Mapping[str, int]) -> int:
        """Send those of a partition from these offsets on; returns how many."""
        own = [letter for letter in self._kept if letter.partition == number]
        due = [letter for letter in own if self._is_after(letter, offsets)]
        await super().send(due)
        self._kept = [letter for letter in self._kept if letter.partition != number]
        return len(due)


def _is_as_far(ours: Mapping[str, int], theirs: Mapping[str, int]) -> bool:
    return all(ours.get(name, 0) >= offset for name, offset in theirs.items())


def _require(number: int, manifest: Manifest, starts: Mapping[str, int]) -> None:
    """StreamerError where a partition has counted what its logs do not hold; ``starts``: log → its
    first offset."""
    for name, topic in manifest.topics.items():
        where, start = f"{topic.topic}/{number}", starts.get(name)
        if topic.first_offset < 0:
            continue  # never read
        if start is None:
            raise StreamerError(f"{where} is counted, and these settings do not read it: {_WAY}")
        if topic.restarts:
            raise StreamerError(f"{where} was recreated since it is counted: {_WAY}")
        if start > topic.first_offset:
            first, last = topic.first_offset, start - 1
            raise StreamerError(
                f"records {first:,} to {last:,} of {where} are counted, and no longer retained: "
                f"{_WAY}"
            )


_WAY = "without --fill, what is new begins now and all else goes on"
