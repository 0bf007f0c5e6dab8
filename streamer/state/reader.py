"""Reads whole commits of all partitions without claiming them, fetching only what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from streamer._core import UNIT_TABLES
from streamer.errors import CodecError, DamagedError, StoreError
from streamer.settings import limits
from streamer.state import codec
from streamer.state.acted import Acted
from streamer.state.changes import changes
from streamer.state.codec import Columns
from streamer.state.contents import Contents, reads_as
from streamer.state.experiment_sums import ExperimentSums
from streamer.state.manifest import Manifest, Texts, decode
from streamer.state.panes import Pane, chosen, split
from streamer.state.snapshot import SeriesView, View
from streamer.state.store import Store, Stored
from streamer.state.unit_rows import UnitRows


@dataclass(frozen=True)
class _Blob:
    """What a blob holds: one of panes these alone, that of texts what it says, others columns."""

    columns: Columns
    panes: Mapping[int, Pane]
    texts: Texts | None = None


@dataclass
class _Copy:
    """The last whole copy of one partition."""

    position: bytes = b""
    manifest: Manifest | None = None
    blobs: dict[str, _Blob] = field(default_factory=dict)
    view: View | None = None
    seen_ms: int = 0
    stored: tuple[Manifest, int] | None = None
    """What the store holds, shown or not, and when it was committed."""
    is_behind: bool = False
    damage: str = ""


class Reader:
    """Keeps a copy of every partition; ``refresh`` brings it up to date."""

    def __init__(self, store: Store, contents: Contents | None = None) -> None:
        """``contents``: state that holds anything else is not shown."""
        self.store, self.contents = store, contents
        self._fitting = b"" if contents is None else contents.encode()
        self._copies: dict[int, _Copy] = {}
        self.count = 0
        """Partitions of each topic; 0 where nothing was stored yet."""
        self.keyed: dict[str, bool] = {}
        """Kind → whether its topic is keyed by user, as far as that was looked at."""
        self.acted = Acted()
        self._stored_acted: dict[str, bytes] = {}
        self.claimed: set[int] = set()
        """Partitions that a worker has claimed and not released."""
        self.moved_ms = 0
        """Store time of the commit in which stream time last moved."""
        self.stream_ms = 0
        self.updates = 0
        """Number of changes to any partition so far."""

    @property
    def views(self) -> list[View]:
        """The partitions that hold anything."""
        return [c.view for c in self._copies.values() if c.view is not None]

    @property
    def manifests(self) -> dict[int, Manifest]:
        """Partition → the manifest of the commit that is shown."""
        return {n: c.manifest for n, c in self._copies.items() if c.manifest is not None}

    @property
    def committed_ms(self) -> dict[int, int]:
        """Store time of each partition's commit that is shown."""
        return {n: c.seen_ms for n, c in self._copies.items() if c.manifest is not None}

    @property
    def stored(self) -> dict[int, tuple[Manifest, int]]:
        """What the store holds of each partition, whether it is shown or not, and the store's time
        of that commit."""
        return {n: c.stored for n, c in self._copies.items() if c.stored is not None}

    @property
    def behind(self) -> list[int]:
        """Partitions of which the store holds an older state than is shown."""
        return sorted(n for n, c in self._copies.items() if c.is_behind)

    @property
    def damaged(self) -> dict[int, str]:
        """Partition → why what is stored of it cannot be read."""
        return {n: c.damage for n, c in self._copies.items() if c.damage}

    async def refresh(self) -> None:
        """Read what was committed since the last call. Of a partition that cannot be read the last
        whole copy is shown; CodecError where there is none. StoreError as the store has."""
        self.count = await self.store.partitions() or self.count
        keyed = await self.store.keyed()
        self.updates += keyed != self.keyed
        self.keyed = keyed
        await self._update_acted()
        numbers = range(self.count)
        for number in [n for n in self._copies if n >= self.count]:
            del self._copies[number]  # a new state with fewer partitions
            self.updates += 1
        standing = await self.store.standing(numbers) if numbers else []
        self.claimed = {n for n, (claim, _) in enumerate(standing) if claim is not None}
        changed = []
        for number, (_, position) in zip(numbers, standing, strict=True):
            copy = self._copies.setdefault(number, _Copy())
            copy.is_behind = not position and position != copy.position
            if position == copy.position:
                copy.damage = ""
            if position and position != copy.position:
                changed.append(number)
        for start in range(0, len(changed), limits.READ_PARTITIONS):
            await self._update(changed[start : start + limits.READ_PARTITIONS])
        for number, damage in self.damaged.items():
            if self._copies[number].view is None:
                raise CodecError(f"partition {number}: {damage}")

    async def _update_acted(self) -> None:
        """That somebody looked and found nothing is no update: it is so after each commit."""
        stored = await self.store.acted()
        if stored != self._stored_acted:
            before, self.acted, self._stored_acted = self.acted, Acted.of(stored), stored
            self.updates += not self.acted.has_same(before)

    def _fits(self, stored: bytes, ours: Contents) -> bool:
        if stored != self._fitting and reads_as(stored, ours):
            self._fitting = stored  # so that the next ones are compared by their bytes
        return stored == self._fitting

    async def _update(self, numbers: list[int]) -> None:
        """Read whole commits: manifests, then those blobs of each that are not known. A partition
        whose blobs are gone was committed in between, and is read again."""
        for _ in range(limits.READ_ATTEMPTS):
            stored = dict(zip(numbers, await self.store.read_all(numbers), strict=True))
            manifests, damage = await asyncio.to_thread(_decoded, stored)
            wanted = {}
            for number, manifest in manifests.items():
                copy = self._copies[number]
                copy.stored = manifest, stored[number].seen_ms
                copy.is_behind = _went_back(copy.manifest, manifest)
                if self.contents is not None and not self._fits(manifest.contents, self.contents):
                    damage[number] = other_settings(manifest, self.contents)
                elif not copy.is_behind:
                    wanted[number] = [n for n in manifest.shown_blobs() if n not in copy.blobs]
            found = await self.store.all_blobs(wanted)
            whole = {n: cast(list[bytes], some) for n, some in found.items() if None not in some}
            damage |= await asyncio.to_thread(self._take, stored, manifests, wanted, whole)
            for number in stored:
                self._copies[number].damage = damage.get(number, "")
            numbers = [number for number in found if number not in whole]
            if not numbers:
                return
        for number in numbers:
            self._copies[number].damage = (
                "blobs of its manifest are missing, or it was committed "
                f"{limits.READ_ATTEMPTS} times while it was read"
            )

    def _take(
        self,
        stored: Mapping[int, Stored],
        manifests: Mapping[int, Manifest],
        wanted: Mapping[int, Sequence[str]],
        found: Mapping[int, Sequence[bytes]],
    ) -> dict[int, str]:
        """Show the commits of partitions of which all blobs were found; returns what is damaged."""
        damage = {}
        for number, blobs in found.items():
            copy, manifest = self._copies[number], manifests[number]
            try:
                both = zip(wanted[number], blobs, strict=True)
                fresh = {name: _blob(manifest, name, data) for name, data in both}
                names = manifest.shown_blobs()
                parts = {n: fresh[n] if n in fresh else copy.blobs[n] for n in names}
                view = _view(manifest, parts, _experiments(manifest, parts, copy))
            except CodecError as error:
                damage[number] = str(error)
                continue
            copy.blobs, copy.manifest, copy.view = parts, manifest, view
            copy.position, copy.seen_ms = stored[number].position, stored[number].seen_ms
            self.updates += 1
            if manifest.stream_ms > self.stream_ms:
                self.stream_ms, self.moved_ms = manifest.stream_ms, copy.seen_ms
        return damage


def _decoded(stored: Mapping[int, Stored]) -> tuple[dict[int, Manifest], dict[int, str]]:
    """Manifests, and of those that cannot be read the reason."""
    manifests, damage = {}, {}
    for number, found in stored.items():
        try:
            manifests[number] = decode(found.manifest)
        except CodecError as error:
            damage[number] = str(error)
    return manifests, damage


def _blob(manifest: Manifest, name: str, data: bytes) -> _Blob:
    if name == manifest.texts:
        return _Blob({}, {}, Texts.decode(data, name))
    columns = codec.decode(data, name)
    return _Blob({}, split(columns)) if "pane" in columns else _Blob(columns, {})


def _experiments(manifest: Manifest, blobs: Mapping[str, _Blob], before: _Copy) -> ExperimentSums:
    """The sums of experiments: the same object as before, where they are the same."""
    old = before.manifest
    if old is not None and before.view is not None:
        same = (old.experiments, old.experiment_days)
        if same == (manifest.experiments, manifest.experiment_days):
            return before.view.experiments
    days = {day: blobs[name].columns for day, name in manifest.experiment_days.items()}
    return ExperimentSums(manifest.experiments, days)


def _view(manifest: Manifest, blobs: Mapping[str, _Blob], experiments: ExperimentSums) -> View:
    sums = {ring: blobs[name].columns for ring, name in manifest.users.items()}
    texts = blobs[manifest.texts].texts
    assert texts is not None
    return View(
        manifest.header(texts),
        _panes(manifest.panes, blobs),
        {ring: (columns["key"], columns["value"]) for ring, columns in sums.items()},
        experiments,
        {
            shape: SeriesView(t.since_ms, texts.series[shape], _panes(t.panes, blobs))
            for shape, t in manifest.series.items()
        },
        _units(manifest, blobs),
    )


def _units(manifest: Manifest, blobs: Mapping[str, _Blob]) -> UnitRows | None:
    """The rows of units of experiments, where these are not users."""
    if not manifest.unit_bits:
        return None
    tables = {
        table: tuple(blobs[ref.name].columns for ref in manifest.tables.get(table, []))
        for table in UNIT_TABLES
    }
    of = (manifest.unit_bits, manifest.hash_key, manifest.counted_since_ms, manifest.scopes)
    return UnitRows(tables, *of)


def _panes(names: Mapping[str, Sequence[int]], blobs: Mapping[str, _Blob]) -> dict[int, Pane]:
    found: dict[int, Pane] = {}
    for name, panes in names.items():
        found |= chosen(blobs[name].panes, name, panes)
    return found


def _went_back(old: Manifest | None, new: Manifest) -> bool:
    """Whether the store holds an older state than we have shown, not yet read past again.

    By the offsets: an older state's commits are numbered on, and soon pass the number we showed. A
    recreated log is read from its start again, and the state says so.
    """
    if old is None:
        return False
    was_read = {(t.cluster_id, t.topic): t for t in old.topics.values()}
    ours = {(t.cluster_id, t.topic): t for t in new.topics.values()}
    both = [(was_read[log], topic) for log, topic in ours.items() if log in was_read]
    if new.recounted != old.recounted:  # after damage: restarts are counted again, too
        return any(now.next_offset < was.next_offset for was, now in both)
    return any(
        (now.restarts, now.next_offset) < (was.restarts, was.next_offset) for was, now in both
    )


def other_settings(manifest: Manifest, ours: Contents) -> str:
    """How the settings of a reader differ from those that the state was written with."""
    found = "; ".join(map(str, changes(manifest.holding.contents, ours)))
    found = found or "none of the topics is the same, or settings have another order"
    return (
        f"it was written with other settings than these ({found}): run the workers and this with "
        "the same ones, and restart the workers first"
    )


async def texts_of(store: Store, manifests: Mapping[int, Manifest]) -> dict[int, Texts]:
    """The texts of those partitions of which they can be read."""
    found = {}
    for number, manifest in manifests.items():
        with suppress(CodecError, StoreError):
            (data,) = await store.blobs(number, [manifest.texts])
            found[number] = Texts.decode(data or b"", manifest.texts)
    return found


async def manifests_of(store: Store, count: int) -> tuple[dict[int, Manifest], dict[int, str]]:
    """What is stored of each partition that has been committed, and what is wrong with those that
    are damaged. CodecError where another version wrote one."""
    manifests, damaged = {}, {}
    for number, found in enumerate(await store.read_all(range(count))):
        try:
            if found.manifest:
                manifests[number] = decode(found.manifest)
        except DamagedError as error:
            damaged[number] = str(error)
    return manifests, damaged
