"""The store in memory: the reference for the one in Redis, and enough for tests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from streamer.errors import CodecError, DamagedError
from streamer.ingest.hash_key import HashKey
from streamer.state.annotations import Annotation, beyond_bound
from streamer.state.codec import body_of, framed
from streamer.state.store import Answer, Commit, Generation, Stored, new_claim
from streamer.state.worker_report import WorkerReport

_PLACE = "memory"


class _Dump(msgspec.Struct, array_like=True):
    """A store as bytes."""

    count: int
    key: HashKey
    states: dict[int, Stored]
    blobs: dict[int, dict[str, bytes]]
    group: str | None = None
    keys: dict[str, bool] = {}
    marks: dict[str, Annotation] = {}
    actions: dict[str, bytes] = {}


class MemoryStore:
    """Keeps everything in dictionaries, with the same rules as ``lua/commit.lua``."""

    def __init__(self) -> None:
        self.claims: dict[int, str] = {}
        self.states: dict[int, Stored] = {}
        self.held: dict[int, dict[str, bytes]] = {}
        self.count: int | None = None
        self.key: HashKey | None = None
        self.owner_group: str | None = None
        self.settings: dict[str, int] = {}
        self.to_erase: dict[int, int] = {}
        self.last_erasure = 0
        self.keys: dict[str, bool] = {}
        self.reported: dict[str, WorkerReport] = {}
        self.marks: dict[str, Annotation] = {}
        self.leader: tuple[str, int] | None = None
        self.kept_of_actions: dict[str, bytes] = {}

    def dump(self) -> bytes:
        """All partitions, with a checksum."""
        assert self.count is not None
        assert self.key is not None
        beside = self.owner_group, self.keys, self.marks, self.kept_of_actions
        dump = _Dump(self.count, self.key, self.states, self.held, *beside)
        return framed(msgspec.msgpack.encode(dump), _PLACE)

    @classmethod
    def loaded(cls, data: bytes) -> MemoryStore:
        """What was dumped; CodecError where it is something else, or damaged."""
        try:
            dump = msgspec.msgpack.decode(body_of(data, _PLACE), type=_Dump)
        except DamagedError as error:
            raise CodecError(f"no state of a counter: {error}") from None
        except msgspec.MsgspecError as error:
            raise CodecError(f"no state of a counter of this version: {error}") from None
        store = cls()
        store.count, store.key, store.states = dump.count, dump.key, dump.states
        store.held, store.owner_group = dump.blobs, dump.group
        store.keys, store.marks = dump.keys, dump.marks
        store.kept_of_actions = dump.actions
        return store

    async def check(self) -> None:
        """Memory keeps what it was given."""

    async def set_partitions(self, count: int) -> int:
        self.count = self.count or count
        return self.count

    async def partitions(self) -> int | None:
        return self.count

    async def set_group(self, group: str, *, take_over: bool = False) -> str:
        self.owner_group = group if take_over else self.owner_group or group
        return self.owner_group

    async def group(self) -> str | None:
        return self.owner_group

    async def declare_settings(
        self, fingerprint: str, known: int = 0, above: int | None = None
    ) -> Generation:
        newest, own = max(self.settings.values(), default=0), self.settings.get(fingerprint, 0)
        if above is not None:
            least = max(newest, above)
            own = own if own and own >= least else least + 1
        elif not own and (known or not newest):
            own = newest + 1 if known in (0, *self.settings.values()) else known
        if own:
            self.settings[fingerprint] = own
        return Generation(own, max(newest, own))

    async def erase(self, digest: int, above: int) -> int:
        self.last_erasure = max(await self.now_ms(), self.last_erasure + 1, above + 1)
        self.to_erase[digest] = self.last_erasure
        return self.last_erasure

    async def erasures(self) -> dict[int, int]:
        return dict(self.to_erase)

    async def forget_erasure(self, digest: int) -> None:
        self.to_erase.pop(digest, None)

    async def set_hash_key(self, key: HashKey) -> HashKey:
        self.key = self.key or key
        return self.key

    async def hash_key(self) -> HashKey | None:
        return self.key

    async def claim(self, partition: int) -> tuple[str, Stored]:
        self.claims[partition] = new_claim()
        return self.claims[partition], await self.read(partition)

    async def sweep(self, partition: int, claim: str, held: set[str]) -> int:
        if self.claims.get(partition) != claim:
            return 0
        blobs = self.held.setdefault(partition, {})
        gone = blobs.keys() - held
        for name in gone:
            del blobs[name]
        return len(gone)

    async def blobs(self, partition: int, names: Sequence[str]) -> list[bytes | None]:
        blobs = self.held.get(partition, {})
        return [blobs.get(name) for name in names]

    async def count_blobs(self, partition: int, names: Sequence[str]) -> int:
        return len(self.held.get(partition, {}).keys() & set(names))

    async def all_blobs(self, wanted: Mapping[int, Sequence[str]]) -> dict[int, list[bytes | None]]:
        return {number: await self.blobs(number, names) for number, names in wanted.items()}

    async def commit(self, partition: int, commit: Commit) -> Answer:
        self.write(partition, commit.blobs)
        return await self.flip(partition, commit)

    def write(self, partition: int, blobs: Mapping[str, bytes]) -> None:
        """The first part of a commit."""
        self.held.setdefault(partition, {}).update(blobs)

    async def flip(self, partition: int, commit: Commit) -> Answer:
        """The second part: what the script does."""
        blobs = self.held.setdefault(partition, {})
        if self.claims.get(partition) != commit.claim:
            return Answer.FENCED
        position = (await self.read(partition)).position
        if position == commit.position:
            return Answer.ALREADY
        if position != commit.expected:
            return Answer.MOVED
        if not commit.blobs.keys() <= blobs.keys():
            return Answer.INCOMPLETE
        self.states[partition] = Stored(
            commit.position, commit.manifest, time.time_ns() // 1_000_000
        )
        for name in commit.delete:
            blobs.pop(name, None)
        return Answer.OK

    async def release(self, partition: int, claim: str) -> None:
        if self.claims.get(partition) == claim:
            del self.claims[partition]

    async def read(self, partition: int) -> Stored:
        return self.states.get(partition, Stored(b"", b"", 0))

    async def read_all(self, partitions: Sequence[int]) -> list[Stored]:
        return [await self.read(partition) for partition in partitions]

    async def standing(self, partitions: Sequence[int]) -> list[tuple[str | None, bytes]]:
        return [(self.claims.get(p), (await self.read(p)).position) for p in partitions]

    async def owner(self, partition: int) -> str | None:
        return self.claims.get(partition)

    async def set_keyed(self, found: Mapping[str, bool]) -> None:
        self.keys |= {kind: is_by and self.keys.get(kind, True) for kind, is_by in found.items()}

    async def keyed(self) -> dict[str, bool]:
        return dict(self.keys)

    async def report(self, worker_report: WorkerReport) -> str:
        before = self.reported.get(worker_report.worker)
        self.reported[worker_report.worker] = worker_report
        return before.process if before else ""

    async def leave(self, worker: str) -> None:
        self.reported.pop(worker, None)

    async def annotate(self, mark: Annotation) -> str:
        self.marks[name := new_claim()] = mark
        for gone in beyond_bound(self.marks, await self.now_ms()):
            del self.marks[gone]
        self.marks = dict(sorted(self.marks.items(), key=lambda pair: pair[1].at_ms))
        return name

    async def forget_annotation(self, name: str) -> bool:
        return self.marks.pop(name, None) is not None

    async def annotations(self) -> dict[str, Annotation]:
        return dict(self.marks)

    async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        now_ms = await self.now_ms()
        leader, until_ms = self.leader or ("", 0)
        is_led = now_ms < until_ms
        if not (is_led and leader == who) and (is_led or (lease_ms and changes)):
            if is_led and lease_ms:
                self.leader = leader, min(until_ms, now_ms + lease_ms)
            return False
        kept = {**self.kept_of_actions, **changes}
        self.kept_of_actions = {name: data for name, data in kept.items() if data}
        self.leader = (who, now_ms + lease_ms) if lease_ms else None
        return True

    async def acted(self) -> dict[str, bytes]:
        return dict(self.kept_of_actions)

    async def eviction(self) -> str | None:
        return None

    async def fullness(self) -> str | None:
        return None

    async def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def reports(self) -> list[WorkerReport]:
        return list(self.reported.values())

    async def close(self) -> None:
        """Nothing to close."""
