"""What a store can do, whatever keeps the bytes. All bytes are opaque to it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from streamer.ingest.hash_key import HashKey
from streamer.state.annotations import Annotation
from streamer.state.worker_report import WorkerReport


class Answer(StrEnum):
    """The outcome of a commit."""

    OK = "OK"
    ALREADY = "ALREADY"
    """The same commit was done before: its reply was lost."""
    MOVED = "MOVED"
    """The stored state is not the one that this commit continues."""
    FENCED = "FENCED"
    """Another worker has claimed the partition."""
    INCOMPLETE = "INCOMPLETE"
    """Blobs of the commit are missing: the store was rolled back after they were written. Retry."""


@dataclass(frozen=True)
class Commit:
    """One step: blobs to write first, then the manifest and position to flip to.

    ``expected`` is the position that the step continues (b"": none yet); ``delete`` names blobs
    that the new manifest no longer refers to: the step deletes ``limits.MAX_SCRIPT_KEYS`` of them,
    and the others are deleted right after it (nothing needs them, and a sweep would find them).
    """

    claim: str
    expected: bytes
    position: bytes
    manifest: bytes
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    delete: Sequence[str] = ()


class Generation(NamedTuple):
    """The number of some settings under a prefix, 0 where they were never declared, and the newest
    there is."""

    number: int
    newest: int


@dataclass(frozen=True)
class Stored:
    """What is stored of a partition: empty bytes where nothing is. ``seen_ms``: when committed."""

    position: bytes
    manifest: bytes
    seen_ms: int


class Store(Protocol):
    """Keeps partitions. Raises StoreError where it cannot be reached."""

    async def check(self) -> None:
        """StoreError where the store may lose what it was given."""

    async def set_partitions(self, count: int) -> int:
        """Store the number of partitions if none is stored; returns the stored one."""

    async def partitions(self) -> int | None:
        """The stored number of partitions."""

    async def set_group(self, group: str, *, take_over: bool = False) -> str:
        """Store whose workers count (``group_of``) if none is stored, or in any case; returns the
        stored one."""

    async def group(self) -> str | None:
        """The stored group."""

    async def set_hash_key(self, key: HashKey) -> HashKey:
        """Store the key under which ids are hashed if none is stored; returns the stored one."""

    async def hash_key(self) -> HashKey | None:
        """The stored key."""

    async def declare_settings(
        self, fingerprint: str, known: int = 0, above: int | None = None
    ) -> Generation:
        """The generation of settings (``fingerprint_of``). Those that are not stored are stored as
        generation ``known``, or else, where none is stored at all, as the first; ``above``: as the
        newest, whose number is larger."""

    async def erase(self, digest: int, above: int) -> int:
        """Ask workers to erase a person, by the hash of the id. Returns the number of the erasure:
        its time, but larger than that of any before, and than ``above``."""

    async def erasures(self) -> dict[int, int]:
        """The erasures that were asked for: hash of an id → the number."""

    async def forget_erasure(self, digest: int) -> None:
        """An erasure is done everywhere."""

    async def claim(self, partition: int) -> tuple[str, Stored]:
        """Claim the partition, whoever has it, then read its state."""

    async def sweep(self, partition: int, claim: str, held: set[str]) -> int:
        """Delete blobs not in ``held``, if the claim is still this worker's; returns how many."""

    async def blobs(self, partition: int, names: Sequence[str]) -> list[bytes | None]:
        """Blobs by name; None for one that is gone."""

    async def count_blobs(self, partition: int, names: Sequence[str]) -> int:
        """How many of these blobs are there."""

    async def all_blobs(self, wanted: Mapping[int, Sequence[str]]) -> dict[int, list[bytes | None]]:
        """Blobs of many partitions, as ``blobs`` gives them, in few round trips."""

    async def commit(self, partition: int, commit: Commit) -> Answer:
        """Write blobs, manifest and position in one step, if the claim and position still match."""

    async def release(self, partition: int, claim: str) -> None:
        """Release a partition, if the claim is still this worker's."""

    async def read(self, partition: int) -> Stored:
        """The stored manifest and position of one partition."""

    async def read_all(self, partitions: Sequence[int]) -> list[Stored]:
        """What ``read`` gives of each, in few round trips: not of the same moment."""

    async def standing(self, partitions: Sequence[int]) -> list[tuple[str | None, bytes]]:
        """Claim and position of partitions, cheaply."""

    async def owner(self, partition: int) -> str | None:
        """The claim on a partition."""

    async def set_keyed(self, found: Mapping[str, bool]) -> None:
        """Store by kind whether the topic is keyed by user. False stays: users were counted wrong
        once."""

    async def keyed(self) -> dict[str, bool]:
        """What ``set_keyed`` stored, by kind."""

    async def report(self, worker_report: WorkerReport) -> str:
        """Store a worker's report; returns the ``process`` of the report that it replaces."""

    async def leave(self, worker: str) -> None:
        """Delete the report of a worker that has stopped on purpose."""

    async def reports(self) -> list[WorkerReport]:
        """The last report of every worker, silent ones included."""

    async def annotate(self, mark: Annotation) -> str:
        """Keep a mark from outside; returns its id. Of more than ``limits.MAX_ANNOTATIONS`` those
        of the future leave, then the oldest."""

    async def forget_annotation(self, name: str) -> bool:
        """Delete the mark of an id; False where there is none."""

    async def annotations(self) -> dict[str, Annotation]:
        """The marks by their ids, the oldest first."""

    async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        """Take or keep the lease of who acts on experiments (0 ms: give it back), and write by name
        what is kept of actions, all or nothing (b"" deletes). False where another one has the
        lease, or who writes to keep it does not have it; nothing is written then."""

    async def acted(self) -> dict[str, bytes]:
        """What is kept of actions, by name."""

    async def eviction(self) -> str | None:
        """In words that the store may drop state without an error; None where it does not, or does
        not say."""

    async def fullness(self) -> str | None:
        """In words how full the store is, where it takes no more; None where it does, or does not
        say."""

    async def now_ms(self) -> int:
        """The store's clock in epoch milliseconds, which all processes share."""

    async def close(self) -> None:
        """Close the connections."""


def new_claim() -> str:
    """A random 128-bit id: after a rollback a counter would repeat, this does not."""
    return secrets.token_urlsafe(16)
