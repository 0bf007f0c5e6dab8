"""A worker's connection to the store in memory: late, cut, with replies that get lost."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from streamer.errors import StoreError
from streamer.ingest.hash_key import HashKey
from streamer.state.annotations import Annotation
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.store import Answer, Commit, Generation, Stored
from streamer.state.worker_report import WorkerReport
from tests.simulation.process import Process

_T = TypeVar("_T")
_LONGEST_LATE_SECONDS = 15.0


@dataclass
class Weather:
    """How the network to the store is now."""

    is_down: bool = False
    lost_requests: float = 0.0
    lost_replies: float = 0.0
    late: float = 0.0


class Server:
    """The real store in memory, with a network in front of it and copies of older states."""

    def __init__(self, memory: MemoryStore, dice: Random) -> None:
        self.memory, self.dice = memory, dice
        self.weather = Weather()
        self.wrong: list[str] = []
        """What no worker may do, and one did."""
        self.went_back = False
        """Whether it has ever lost anything."""
        self.on_their_way: set[asyncio.Task[object]] = set()
        self._claims = 0
        self._older: MemoryStore | None = None

    def new_claim(self) -> str:
        self._claims += 1
        return f"claim{self._claims}"

    def keep_copy(self) -> None:
        own = {name: of for name, of in vars(self.memory).items() if name != "now_ms"}
        self._older = type(self.memory)()
        vars(self._older).update(copy.deepcopy(own))

    def wipe(self) -> None:
        """Everything is gone, as with a Redis without a file."""
        memory = self.memory
        memory.claims, memory.states, memory.held, memory.count = {}, {}, {}, None
        memory.key, memory.settings = None, {}
        memory.leader, memory.kept_of_actions = None, {}
        self.went_back = True

    def roll_back(self) -> bool:
        """Go back to the copy, as a fail-over to a replica that lags does."""
        older, self._older = self._older, None
        if older is None:
            return False
        memory = self.memory
        memory.claims, memory.states, memory.held = older.claims, older.states, older.held
        memory.key, memory.settings = older.key, older.settings
        memory.leader, memory.kept_of_actions = older.leader, older.kept_of_actions
        self.went_back = True
        return True


class SimStore:
    """The runner's ``Store``: requests reach the server some time, or never; so do replies."""

    def __init__(self, server: Server, process: Process) -> None:
        self.server, self.process = server, process
        self.dice = server.dice

    @property
    def memory(self) -> MemoryStore:
        return self.server.memory

    async def _ask(self, effect: Callable[[], Awaitable[_T]]) -> _T:
        """The effect takes place even if the asking process dies meanwhile."""
        await self.process.pause_a_little(0.02)
        weather = self.server.weather
        if weather.is_down or self.dice.random() < weather.lost_requests:
            raise StoreError("no connection")
        if self.dice.random() < weather.late:
            self._send(effect, self.dice.random() * _LONGEST_LATE_SECONDS)
            raise StoreError("timed out; the request arrives later")
        result = await asyncio.shield(self._send(effect, self.dice.random() * 0.05))
        await self.process.pause_a_little(0.02)
        if self.dice.random() < weather.lost_replies:
            raise StoreError("the reply was lost")
        return result

    def _send(self, effect: Callable[[], Awaitable[_T]], delay_seconds: float) -> asyncio.Task[_T]:
        async def arrive() -> _T:
            await asyncio.sleep(delay_seconds)
            return await effect()

        task = asyncio.create_task(arrive())
        self.server.on_their_way.add(task)
        task.add_done_callback(self.server.on_their_way.discard)
        return task

    async def check(self) -> None:
        """Fit."""

    async def set_partitions(self, count: int) -> int:
        return await self._ask(lambda: self.memory.set_partitions(count))

    async def partitions(self) -> int | None:
        return await self._ask(self.memory.partitions)

    async def set_group(self, group: str, *, take_over: bool = False) -> str:
        return await self._ask(lambda: self.memory.set_group(group, take_over=take_over))

    async def group(self) -> str | None:
        return await self._ask(self.memory.group)

    async def declare_settings(
        self, fingerprint: str, known: int = 0, above: int | None = None
    ) -> Generation:
        return await self._ask(lambda: self.memory.declare_settings(fingerprint, known, above))

    async def erase(self, digest: int, above: int) -> int:
        return await self._ask(lambda: self.memory.erase(digest, above))

    async def erasures(self) -> dict[int, int]:
        return await self._ask(self.memory.erasures)

    async def forget_erasure(self, digest: int) -> None:
        await self._ask(lambda: self.memory.forget_erasure(digest))

    async def set_hash_key(self, key: HashKey) -> HashKey:
        return await self._ask(lambda: self.memory.set_hash_key(key))

    async def hash_key(self) -> HashKey | None:
        return await self._ask(self.memory.hash_key)

    async def claim(self, partition: int) -> tuple[str, Stored]:
        claim = self.server.new_claim()

        async def write() -> None:
            self.memory.claims[partition] = claim

        await self._ask(write)
        return claim, await self.read(partition)

    async def sweep(self, partition: int, claim: str, held: set[str]) -> int:
        known = sorted(await self._ask(lambda: self._names(partition)))
        orphans = set(known) - held
        return await self._ask(lambda: self._sweep(partition, claim, orphans))

    async def _names(self, partition: int) -> list[str]:
        return list(self.memory.held.get(partition, {}))

    async def _sweep(self, partition: int, claim: str, orphans: set[str]) -> int:
        kept = self.memory.held.get(partition, {}).keys() - orphans
        return await self.memory.sweep(partition, claim, set(kept))

    async def blobs(self, partition: int, names: Sequence[str]) -> list[bytes | None]:
        return await self._ask(lambda: self.memory.blobs(partition, names))

    async def count_blobs(self, partition: int, names: Sequence[str]) -> int:
        return await self._ask(lambda: self.memory.count_blobs(partition, names))

    async def all_blobs(self, wanted: Mapping[int, Sequence[str]]) -> dict[int, list[bytes | None]]:
        return await self._ask(lambda: self.memory.all_blobs(wanted))

    async def commit(self, partition: int, commit: Commit) -> Answer:
        """As in Redis: blobs first, some at a time, then the script."""
        names = list(commit.blobs)
        middle = self.dice.randint(0, len(names))
        for some in (names[:middle], names[middle:]):
            if some:
                await self._ask(lambda some=some: self._write(partition, commit, some))  # type: ignore[misc]
        return await self._ask(lambda: self._flip(partition, commit))

    async def _flip(self, partition: int, commit: Commit) -> Answer:
        before = self.memory.states.get(partition)
        answer = await self.memory.flip(partition, commit)
        if answer is Answer.OK and before is not None:
            was, now = (decode(m).generation for m in (before.manifest, commit.manifest))
            if now < was:
                self.server.wrong.append(f"generation {now} wrote after generation {was}")
        return answer

    async def _write(self, partition: int, commit: Commit, names: Sequence[str]) -> None:
        self.memory.write(partition, {name: commit.blobs[name] for name in names})

    async def release(self, partition: int, claim: str) -> None:
        await self._ask(lambda: self.memory.release(partition, claim))

    async def read(self, partition: int) -> Stored:
        return await self._ask(lambda: self.memory.read(partition))

    async def read_all(self, partitions: Sequence[int]) -> list[Stored]:
        return await self._ask(lambda: self.memory.read_all(partitions))

    async def standing(self, partitions: Sequence[int]) -> list[tuple[str | None, bytes]]:
        return await self._ask(lambda: self.memory.standing(partitions))

    async def owner(self, partition: int) -> str | None:
        return await self._ask(lambda: self.memory.owner(partition))

    async def set_keyed(self, found: Mapping[str, bool]) -> None:
        await self._ask(lambda: self.memory.set_keyed(found))

    async def keyed(self) -> dict[str, bool]:
        return await self._ask(self.memory.keyed)

    async def report(self, worker_report: WorkerReport) -> str:
        """Nobody reads it."""
        return ""

    async def leave(self, worker: str) -> None:
        """Nobody reads it."""

    async def annotate(self, mark: Annotation) -> str:
        """Nobody reads it."""
        return ""

    async def forget_annotation(self, name: str) -> bool:
        return False

    async def annotations(self) -> dict[str, Annotation]:
        return {}

    async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        return False

    async def acted(self) -> dict[str, bytes]:
        return {}

    async def eviction(self) -> str | None:
        return None

    async def fullness(self) -> str | None:
        return None

    async def now_ms(self) -> int:
        return 0

    async def reports(self) -> list[WorkerReport]:
        return []

    async def close(self) -> None:
        """Nothing to close."""
