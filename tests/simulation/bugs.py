"""Bugs to plant: each a world whose system breaks one rule, which the simulation has to find."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from streamer.actions.bodies import HttpRequest
from streamer.ingest.hash_key import HashKey
from streamer.kafka.chunk import Batches, Chunk, Records
from streamer.settings.event_fields import KINDS
from streamer.state import upgrades
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import Applied, Partition
from streamer.state.store import Answer, Commit, Generation, Stored
from streamer.worker.checkpoint import Committer
from streamer.worker.partition_task import PartitionTask
from streamer.worker.runner import Runner
from tests.simulation.acting import Acting, SimLeader
from tests.simulation.store import SimStore
from tests.simulation.world import Outcome, World

_TTL_SECONDS = 20.0


class ClaimNotCompared(World):
    """Whoever continues the stored state may commit, claim or no claim."""

    class memory_type(MemoryStore):  # noqa: N801 — an attribute of the world
        async def flip(self, partition: int, commit: Commit) -> Answer:
            claim = self.claims.get(partition, commit.claim)
            return await super().flip(partition, dataclasses.replace(commit, claim=claim))


class SoughtBeforeClaim(World):
    """The offsets to seek are read before the claim is written, not after."""

    class store_type(SimStore):  # noqa: N801
        async def claim(self, partition: int) -> tuple[str, Stored]:
            before = await self.read(partition)
            await asyncio.sleep(1.0)
            claim, stored = await super().claim(partition)
            if not before.manifest:
                return claim, stored
            old, new = decode(before.manifest), decode(stored.manifest)
            for kind, topic in old.topics.items():
                new.topics[kind].next_offset = topic.next_offset
            return claim, dataclasses.replace(stored, manifest=new.encode())


class OffsetWithoutState(World):
    """Offsets are stored in one step and what was counted in the next."""

    class store_type(SimStore):  # noqa: N801
        async def commit(self, partition: int, commit: Commit) -> Answer:
            stored = self.memory.states.get(partition)
            if stored is not None and stored.position == commit.expected:
                old, new = decode(stored.manifest), decode(commit.manifest)
                for kind, topic in old.topics.items():
                    topic.next_offset = new.topics[kind].next_offset
                ahead = dataclasses.replace(stored, manifest=old.encode())

                async def write() -> None:
                    if self.memory.states.get(partition) == stored:
                        self.memory.states[partition] = ahead

                await self._ask(write)
            return await super().commit(partition, commit)


class BlobsExpire(World):
    """Blobs have a time to live, as caches do."""

    class memory_type(MemoryStore):  # noqa: N801
        def write(self, partition: int, blobs: Mapping[str, bytes]) -> None:
            super().write(partition, blobs)
            loop = asyncio.get_running_loop()
            for name in blobs:
                loop.call_later(_TTL_SECONDS, self.held[partition].pop, name, None)


class IdleBeforeTheEnd(World):
    """Every topic counts as read to its end, so that joins are final before all has come."""

    class runner_type(Runner):  # noqa: N801
        async def _recover_once(self, task: PartitionTask) -> None:
            await super()._recover_once(task)
            assert task.partition is not None
            _end_early(task.partition)


def _end_early(partition: Partition) -> None:
    def apply(
        fed: Sequence[Records | Batches],
        at_end: Sequence[str] = (),
        wall_ms: int | None = None,
        left_ms: Callable[[], int] | None = None,
    ) -> Applied:
        return Partition.apply(partition, fed, KINDS, wall_ms, left_ms)

    partition.apply = apply  # type: ignore[method-assign]


class SweptWithoutClaim(World):
    """Orphans are swept by whoever once thought that they were orphans."""

    class memory_type(MemoryStore):  # noqa: N801
        async def sweep(self, partition: int, claim: str, held: set[str]) -> int:
            return await super().sweep(partition, self.claims.get(partition, claim), held)


class BlobsNotLookedFor(World):
    """A commit does not ask whether its blobs are still there."""

    class memory_type(MemoryStore):  # noqa: N801
        async def flip(self, partition: int, commit: Commit) -> Answer:
            return await super().flip(partition, dataclasses.replace(commit, blobs={}))


class StaleChunkTaken(World):
    """What was fetched before a seek is applied after it."""

    class runner_type(Runner):  # noqa: N801
        def offer(self, chunk: Chunk) -> None:
            task = self.partitions.get(chunk.partition)
            if task is not None and task.epochs:
                chunk.epoch = task.epochs[chunk.log]
            super().offer(chunk)


class IdleAsksNothing(World):
    """A partition without traffic does not look whether the store still holds its state."""

    class runner_type(Runner):  # noqa: N801
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.store_watch.ask = _ask_nothing  # type: ignore[method-assign]


async def _ask_nothing(partitions: Mapping[int, PartitionTask]) -> None:
    """Only commits tell."""


class KeyRemembered(World):
    """A worker keeps to the first hash key that it has seen, whatever becomes of the store."""

    class store_type(SimStore):  # noqa: N801
        seen: HashKey | None = None

        async def hash_key(self) -> HashKey | None:
            self.seen = self.seen or await super().hash_key()
            return self.seen


class _LateLetters(Committer):
    async def attempt(self, task: PartitionTask, commit: Commit, dead: list[Any]) -> None:
        later: Sequence[Any] = list(dead)
        await super().attempt(task, commit, [])
        await self.dead_letters.send(later)
        dead.clear()


class DeadLettersAfterCommit(World):
    """Dead letters are sent when the commit that counts them is done."""

    class runner_type(Runner):  # noqa: N801
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            known = (self.store, self.dead_letters, self.worker_report, self._wake.set)
            self.committer = _LateLetters(*known)


class OlderSettingsCount(World):
    """A worker does not ask whether newer settings have written a partition."""

    changing, stragglers = 1, 1.0

    class store_type(SimStore):  # noqa: N801
        async def claim(self, partition: int) -> tuple[str, Stored]:
            claim, stored = await super().claim(partition)
            if not stored.manifest:
                return claim, stored
            manifest = decode(stored.manifest)
            manifest.generation = 0
            return claim, dataclasses.replace(stored, manifest=manifest.encode())


class OldGenerationAfterApply(World):
    """Settings keep the generation that they were given first, whatever is applied again."""

    class memory_type(MemoryStore):  # noqa: N801
        async def declare_settings(
            self, fingerprint: str, known: int = 0, above: int | None = None
        ) -> Generation:
            return await super().declare_settings(
                fingerprint, known, None if fingerprint in self.settings else above
            )


class UpgradedWithoutRows(World):
    """A step from the release before leaves out the table of its rows of impressions."""

    upgrading = 1

    async def run(self) -> Outcome:
        step = upgrades.STEPS[19]

        def without(raw: dict[str, Any]) -> dict[str, Any]:
            found = step(raw)
            return {**found, "tables": {**found["tables"], "impressions": []}}

        with patch.dict(upgrades.STEPS, {19: without}):
            return await super().run()


class LeaseNotCompared(World):
    """Whoever asks for the lease has it."""

    acted_on = 1

    class memory_type(MemoryStore):  # noqa: N801
        async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
            self.leader = who, 1 << 60
            return await super().lead(who, lease_ms, changes)


class KeyOfProcess(World):
    """Each process sends a message under a key of its own."""

    acted_on = 1

    class acting_type(Acting):  # noqa: N801
        class leader_type(SimLeader):  # noqa: N801
            async def _answer(self, request: HttpRequest) -> int:
                request.headers["Idempotency-Key"] += self.token
                return await super()._answer(request)


class ToldBeforeRecorded(World):
    """What happened is sent, then stored."""

    acted_on = 1

    class acting_type(Acting):  # noqa: N801
        class leader_type(SimLeader):  # noqa: N801
            async def _keep(self, changes: dict[str, bytes]) -> bool:
                if any(name.startswith("r:") for name in changes):
                    self.acted = self.acted.after(changes)
                    self._send_due()
                    await asyncio.gather(*self._sending.values())
                return await super()._keep(changes)


class OthersNotSent(World):
    """Who takes over sends only what it has recorded itself."""

    acted_on = 1

    class acting_type(Acting):  # noqa: N801
        class leader_type(SimLeader):  # noqa: N801
            async def _look(self) -> None:
                others = self.acted.deliveries.keys()
                self._due |= dict.fromkeys(others - self._due.keys(), 1e9)
                await super()._look()


class AgeNotAsked(World):
    """Who acts does not ask how long records have waited."""

    acted_on = 1

    class acting_type(Acting):  # noqa: N801
        class leader_type(SimLeader):  # noqa: N801
            _age_ms = 0.0


BUGS: dict[str, type[World]] = {
    "a commit that does not compare the claim": ClaimNotCompared,
    "seek before the claim": SoughtBeforeClaim,
    "offset without its state": OffsetWithoutState,
    "a TTL on a referenced blob": BlobsExpire,
    "topics that are idle before their ends": IdleBeforeTheEnd,
    "a sweep that does not compare the claim": SweptWithoutClaim,
    "a commit that does not look for its blobs": BlobsNotLookedFor,
    "a stale chunk taken": StaleChunkTaken,
    "an idle partition that asks nothing": IdleAsksNothing,
    "a hash key that a worker remembers": KeyRemembered,
    "dead letters sent after the commit": DeadLettersAfterCommit,
    "older settings that count on": OlderSettingsCount,
    "settings applied again that stay old": OldGenerationAfterApply,
    "an upgrade that loses rows": UpgradedWithoutRows,
    "a message told before it is recorded": ToldBeforeRecorded,
    "a lease that is not compared": LeaseNotCompared,
    "a key of each process": KeyOfProcess,
    "a message that who takes over leaves": OthersNotSent,
    "old data that are acted on": AgeNotAsked,
}
