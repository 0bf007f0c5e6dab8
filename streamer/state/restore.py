"""What is stored → a partition in memory, and the journal that continues it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from streamer._core import TOTAL_RING
from streamer.encoding.packed import ring_and_pane
from streamer.errors import DamagedError
from streamer.state import codec
from streamer.state.journal import Held, Journal
from streamer.state.manifest import BlobRef, Manifest, decode, require_key, require_same
from streamer.state.panes import PaneBlobs
from streamer.state.partition import Partition
from streamer.state.store import Store, Stored


async def load_partition(
    store: Store, number: int, partition: Partition, claim: str, stored: Stored
) -> Journal:
    """Load what is stored into an empty partition and continue it; orphan blobs are deleted.

    SettingsError where it was written with other settings, StoreError under another hash key.
    """
    if not stored.manifest:
        await store.sweep(number, claim, set())
        return Journal(partition, claim)
    manifest = decode(stored.manifest)
    require_key({number: manifest}, partition.key)
    partition.continue_counting(manifest.counted_since_ms, manifest.scopes, manifest.stream_ms)
    journal = Journal(partition, claim)
    require_same(manifest.fingerprint, journal.fingerprint, str(number))
    journal.position = stored.position
    journal.commit_number, journal.recounted = manifest.commit, manifest.recounted
    journal.dead_letters = manifest.dead_letters
    journal.dead_letters_omitted = manifest.dead_letters_omitted
    with _damage():
        _restore_counters(partition, journal, manifest)
    await _load_panes(store, number, partition, journal, manifest)
    for name in partition.core.tables():
        refs = manifest.tables.get(name, [])
        found = await _blobs(store, number, [ref.name for ref in refs])
        await asyncio.to_thread(_load_table, journal, name, refs, found)
    partition.core.finish_load()
    journal.users = dict(manifest.users)
    wanted = {trial.shape for trial in partition.catalogue.experiment_measures.trials}
    journal.experiments = {s: b for s, b in manifest.experiments.items() if s in wanted}
    await store.sweep(number, claim, manifest.blob_names())
    return journal


@contextmanager
def _damage() -> Iterator[None]:
    """Raise DamagedError for stored values that the core refuses."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise DamagedError(f"what is stored cannot be loaded: {error}") from error


def start_over(partition: Partition, claim: str, stored: Stored) -> Journal:
    """Replace a partition whose state cannot be read by an empty one. Its blobs stay for inspection
    until it is loaded again."""
    journal = Journal(partition, claim)
    journal.position = stored.position
    try:
        journal.commit_number = msgspec.msgpack.decode(stored.position, type=tuple[int, Any])[0]
    except msgspec.MsgspecError:
        journal.commit_number = 1
    journal.recounted = journal.commit_number
    return journal


def _load_table(
    journal: Journal, name: str, refs: Sequence[BlobRef], found: Sequence[bytes]
) -> None:
    blobs = [codec.decode(data) for data in found]
    with _damage():
        spans = journal.partition.core.load(name, blobs)
    journal.tables[name] = [
        Held(ref, first, end) for ref, (first, end) in zip(refs, spans, strict=True)
    ]


def _restore_counters(partition: Partition, journal: Journal, manifest: Manifest) -> None:
    restore_segments(partition, manifest)
    partition.core.restore(
        {
            "stream_ms": manifest.stream_ms,
            "logs": {name: msgspec.structs.asdict(t) for name, t in manifest.topics.items()},
            "unattributed": manifest.unattributed,
            "settled_moved": manifest.settled_moved,
            "evicted_early": manifest.evicted_early,
            "segments_overflowed": manifest.segments["overflowed"],
            "sample_bits": manifest.sample_bits,
        }
    )
    restore_labels(partition, manifest)
    for name, topic in manifest.topics.items():
        topic.restore(partition.logs[name])
        journal.fingerprints[name] = list(topic.fingerprints)


def restore_segments(partition: Partition, manifest: Manifest) -> None:
    """Take over the values of dimensions, and their combinations."""
    values = [(v["texts"], v["events"], v["kept"]) for v in manifest.segments["values"]]
    partition.core.restore_dimensions(values, manifest.segments["tuples"])


def restore_labels(partition: Partition, manifest: Manifest) -> None:
    """Take over what is stored of experiments beside rows."""
    names = partition.label_names
    labels = [[label.get(name, "") for name in names] for label in manifest.labels]
    final_ms, bits = manifest.exposures_final_ms, manifest.day_sample_bits
    partition.core.restore_experiments(labels, final_ms, bits)


async def _load_panes(
    store: Store, number: int, partition: Partition, journal: Journal, manifest: Manifest
) -> None:
    kept = partition.continue_day_before(manifest.day_before_since_ms, manifest.stream_ms)
    panes = {
        name: [
            pane for pane in some if (ring := ring_and_pane(pane)[0]) <= TOTAL_RING or ring in kept
        ]
        for name, some in manifest.panes.items()
    }
    await _load_some(store, number, journal.panes, panes)
    for series in partition.series:
        shape = series.declared.shape
        since_ms = manifest.stream_ms
        if shape in manifest.series:
            stored = manifest.series[shape]
            since_ms = stored.since_ms
            labels = [[label[name] for name in series.names] for label in stored.labels]
            partition.core.restore_series_labels(series.number, labels)
            await _load_some(store, number, journal.series[shape], stored.panes)
        partition.series_since_ms[series.number] = since_ms
    for at in (None, *(series.number for series in partition.series)):
        partition.core.take_changed_panes(at)


async def _load_some(
    store: Store, number: int, panes: PaneBlobs, names: dict[str, list[int]]
) -> None:
    found = await _blobs(store, number, list(names))
    with _damage():
        panes.load(names, [codec.decode(data) for data in found])


async def _blobs(store: Store, number: int, names: list[str]) -> list[bytes]:
    found = await store.blobs(number, names)
    missing = [name for name, data in zip(names, found, strict=True) if data is None]
    if missing:
        raise DamagedError(f"{len(missing)} of {len(names)} blobs of its manifest are missing")
    return [data for data in found if data is not None]
