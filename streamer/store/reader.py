"""Reading without owning: whole commits of all partitions, fetching only what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamer import limits
from streamer.batch import I64
from streamer.errors import CodecError
from streamer.readout.view import TrackView, View
from streamer.store import codec
from streamer.store.base import Store
from streamer.store.codec import Columns
from streamer.store.manifest import GROUPS, Manifest, decode


@dataclass
class _Copy:
    """The last whole copy of one partition."""

    position: bytes = b""
    manifest: Manifest | None = None
    blobs: dict[str, Columns] = field(default_factory=dict)
    view: View | None = None
    seen_ms: int = 0
    is_behind: bool = False


class Reader:
    """Keeps a copy of every partition; ``refresh`` brings it up to date."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._copies: dict[int, _Copy] = {}
        self.count = 0
        """Partitions of each topic; 0 where nothing was stored yet."""
        self.claimed: set[int] = set()
        """Partitions that a worker has taken and not given back."""
        self.moved_ms = 0
        """Store time of the commit in which stream time last moved."""
        self.stream_ms = 0
        self.updates = 0
        """How often what is known of any partition has changed."""

    @property
    def views(self) -> list[View]:
        """The partitions that hold anything."""
        return [c.view for c in self._copies.values() if c.view is not None]

    @property
    def manifests(self) -> dict[int, Manifest]:
        return {n: c.manifest for n, c in self._copies.items() if c.manifest is not None}

    @property
    def committed_ms(self) -> dict[int, int]:
        """Store time of each partition's commit that is shown."""
        return {n: c.seen_ms for n, c in self._copies.items() if c.manifest is not None}

    @property
    def behind(self) -> list[int]:
        """Partitions of which the store holds an older state than is shown."""
        return sorted(n for n, c in self._copies.items() if c.is_behind)

    async def refresh(self) -> None:
        """Read what was committed since the last call. StoreError, CodecError as the store has."""
        self.count = await self.store.partitions() or self.count
        numbers = range(self.count)
        for number in [n for n in self._copies if n >= self.count]:
            del self._copies[number]  # a state begun anew with fewer partitions
            self.updates += 1
        standing = await self.store.standing(numbers) if numbers else []
        self.claimed = {n for n, (claim, _) in enumerate(standing) if claim is not None}
        for number, (_, position) in zip(numbers, standing, strict=True):
            copy = self._copies.setdefault(number, _Copy())
            if position == copy.position:
                copy.is_behind = False
            elif position:
                await self._update(number, copy)
            else:
                copy.is_behind = True

    async def _update(self, number: int, copy: _Copy) -> None:
        for _ in range(limits.READ_ATTEMPTS):
            stored = await self.store.read(number)
            manifest = decode(stored.manifest)
            copy.is_behind = _went_back(copy.manifest, manifest)
            if copy.is_behind:
                return
            wanted = [
                *manifest.panes.values(),
                *manifest.users.values(),
                *manifest.experiments.values(),
                *(name for track in manifest.tracks.values() for name in track.panes.values()),
            ]
            changed = [name for name in wanted if name not in copy.blobs]
            found = await self.store.blobs(number, changed)
            fresh = {n: codec.decode(d) for n, d in zip(changed, found, strict=True) if d}
            if len(fresh) == len(changed):
                break
        else:
            raise CodecError(
                f"partition {number} changed {limits.READ_ATTEMPTS} times while it was read"
            )
        copy.blobs = {name: fresh[name] if name in fresh else copy.blobs[name] for name in wanted}
        self.updates += 1
        copy.position, copy.manifest, copy.seen_ms = stored.position, manifest, stored.seen_ms
        sums = {ring: name for ring, name in manifest.users.items() if ring != GROUPS}
        copy.view = View(
            manifest.header(copy.blobs.get(manifest.users.get(GROUPS, ""))),
            _pairs(manifest.panes, copy.blobs, "code"),
            _pairs(sums, copy.blobs, "key"),
            {shape: copy.blobs[name] for shape, name in manifest.experiments.items()},
            {
                shape: TrackView(t.since_ms, t.labels, _pairs(t.panes, copy.blobs, "code"))
                for shape, t in manifest.tracks.items()
            },
        )
        if manifest.stream_ms > self.stream_ms:
            self.stream_ms, self.moved_ms = manifest.stream_ms, stored.seen_ms


def _pairs(
    names: Mapping[int, str], blobs: Mapping[str, Columns], first: str
) -> dict[int, tuple[I64, I64]]:
    return {place: (blobs[name][first], blobs[name]["value"]) for place, name in names.items()}


def _went_back(old: Manifest | None, new: Manifest) -> bool:
    """Whether the store holds an older state than we have shown, not yet read past again.

    By the offsets: an older state's commits are numbered on, and soon pass the number we showed. A
    log that was made anew is read from its start again, and the state says so.
    """
    if old is None:
        return False
    return any(
        (topic.restarts, topic.next_offset)
        < (old.topics[kind].restarts, old.topics[kind].next_offset)
        for kind, topic in new.topics.items()
    )


async def manifests_of(store: Store, count: int) -> dict[int, Manifest]:
    """What is stored of each partition that has been committed."""
    stored = {number: await store.read(number) for number in range(count)}
    return {number: decode(found.manifest) for number, found in stored.items() if found.manifest}
