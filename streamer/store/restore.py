"""What is stored → a partition in memory, and the journal that continues it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from streamer.batch import I64
from streamer.engine.partition import Partition
from streamer.errors import DamagedError
from streamer.store import codec
from streamer.store.base import Store, Stored
from streamer.store.journal import Held, Journal
from streamer.store.manifest import BlobRef, Manifest, decode, require_same
from streamer.store.panes import PaneBlobs
from streamer.store.tables import TABLES


async def adopt(
    store: Store, number: int, partition: Partition, claim: str, stored: Stored
) -> Journal:
    """Load what is stored into an empty partition and continue it; orphan blobs are deleted."""
    journal = Journal(partition, claim)
    if not stored.manifest:
        await store.sweep(number, claim, set())
        return journal
    manifest = decode(stored.manifest)
    require_same(manifest.fingerprint, journal.fingerprint, str(number))
    journal.position = stored.position
    journal.commit_number, journal.recounted = manifest.commit, manifest.recounted
    journal.dead_letters = manifest.dead_letters
    _restore_counters(partition, journal, manifest)
    moves = partition.segments.load(manifest.segments)
    await _load_panes(store, number, partition, journal, manifest)
    for name, refs in manifest.tables.items():
        found = await _blobs(store, number, [ref.name for ref in refs])
        await _aside(_load_table, journal, name, refs, found, moves)
    await _aside(partition.rejoin)
    partition.cells.take_touched()
    journal.users = dict(manifest.users)
    wanted = {trial.shape for trial in partition.experiments.trials}
    journal.experiments = {s: b for s, b in manifest.experiments.items() if s in wanted}
    await store.sweep(number, claim, manifest.blob_names())
    return journal


def start_over(partition: Partition, claim: str, stored: Stored) -> Journal:
    """Continue a partition whose state cannot be read as an empty one. Its blobs stay until the
    next time that it is loaded: somebody may want to look at them."""
    journal = Journal(partition, claim)
    journal.position = stored.position
    try:
        journal.commit_number = msgspec.msgpack.decode(stored.position, type=tuple[int, Any])[0]
    except msgspec.MsgspecError:
        journal.commit_number = 1
    journal.recounted = journal.commit_number
    return journal


async def _aside(work: Callable[..., None], *arguments: Any) -> None:
    """Do what takes long off the event loop."""
    await asyncio.get_running_loop().run_in_executor(None, work, *arguments)


def _load_table(
    journal: Journal, name: str, refs: Sequence[BlobRef], found: Sequence[bytes], moves: I64
) -> None:
    table, partition = TABLES[name], journal.partition
    for ref, data in zip(refs, found, strict=True):
        first = table.next_serial(partition)
        table.load(partition, codec.decode(data), moves)
        journal.tables[name].append(Held(ref, first, table.next_serial(partition)))


def _restore_counters(partition: Partition, journal: Journal, manifest: Manifest) -> None:
    partition.stream_ms = manifest.stream_ms
    partition.unattributed.update(manifest.unattributed)
    partition.join_gap = manifest.join_gap
    partition.users.sample_bits = manifest.sample_bits
    partition.experiments.sample_bits = manifest.day_sample_bits
    partition.experiments.restore(
        manifest.labels,
        manifest.counted_since_ms,
        manifest.scopes,
        manifest.stream_ms,
        manifest.exposures_final_ms,
    )
    for name, early in manifest.evicted_early.items():
        getattr(partition, name).evicted_early = early
    for kind, topic in manifest.topics.items():
        log = partition.logs[kind]
        log.first_offset = topic.first_offset
        log.next_offset, log.arrival_ms = topic.next_offset, topic.arrival_ms
        log.borrowed_ms, log.accepted = topic.borrowed_ms, topic.accepted
        log.duplicates, log.late = topic.duplicates, topic.late
        log.rejected = dict(topic.rejected)
        log.ids.evicted_early = topic.evicted_early
        log.lost, log.gaps, log.restarts = topic.lost, list(topic.gaps), topic.restarts
        journal.witnesses[kind] = list(topic.witnesses)


async def _load_panes(
    store: Store, number: int, partition: Partition, journal: Journal, manifest: Manifest
) -> None:
    await _load_some(store, number, journal.panes, manifest.panes)
    for kept in partition.tracks.kept:
        shape = kept.track.shape
        if shape in manifest.tracks:
            stored = manifest.tracks[shape]
            kept.since_ms = stored.since_ms
            kept.labels.load(stored.labels)
            await _load_some(store, number, journal.tracks[shape], stored.panes)
            kept.cells.take_touched()
        else:
            kept.since_ms = manifest.stream_ms


async def _load_some(
    store: Store, number: int, panes: PaneBlobs, names: dict[str, list[int]]
) -> None:
    found = await _blobs(store, number, list(names))
    panes.load(names, [codec.decode(data) for data in found])


async def _blobs(store: Store, number: int, names: list[str]) -> list[bytes]:
    found = await store.blobs(number, names)
    missing = [name for name, data in zip(names, found, strict=True) if data is None]
    if missing:
        raise DamagedError(f"{len(missing)} of {len(names)} blobs of its manifest are gone")
    return [data for data in found if data is not None]
