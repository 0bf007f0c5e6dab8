"""What is stored → a partition in memory, and the journal that continues it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from streamer._core import MIGRATED_TABLES, TOTAL_RING
from streamer.encoding.packed import ring_and_pane
from streamer.errors import DamagedError
from streamer.metrics.alert_series import AlertSeries
from streamer.metrics.item_counts import ItemCounts
from streamer.state import codec
from streamer.state.changes import require_continuable
from streamer.state.codec import Columns
from streamer.state.contents import ItemsHeld, beside_of, decode_contents
from streamer.state.counted_since import began_after
from streamer.state.erasure import TABLES, Erasure, pending
from streamer.state.generations import require_newest
from streamer.state.journal import Held, Journal
from streamer.state.log_identity import new_names, renamed, require_distinct
from streamer.state.manifest import BlobRef, Manifest, Texts, decode, require_key
from streamer.state.migration import Holding, ItemMigration, PaneMigration
from streamer.state.panes import PaneBlobs
from streamer.state.partition import PaneSeries, Partition
from streamer.state.store import Store, Stored


async def load_partition(
    store: Store, number: int, partition: Partition, claim: str, stored: Stored
) -> Journal:
    """Load what is stored into an empty partition and continue it; orphan blobs are deleted.

    What other settings wrote is mapped to ours, and written again with the next commit.
    SettingsError where it cannot be, or newer settings wrote it; StoreError under another hash key.
    """
    if not stored.manifest:
        require_distinct(partition.settings.logs, partition.cluster_ids)
        await store.sweep(number, claim, set())
        journal = Journal(partition, claim)
        journal.erased_ms = max((await store.erasures()).values(), default=0)
        return journal
    was = decode(stored.manifest)
    require_newest(was.generation, partition.generation)
    names = new_names(was, partition.settings.logs, partition.cluster_ids)
    manifest = renamed(was, names)
    require_key({number: manifest}, partition.key)
    (data,) = await _blobs(store, number, [manifest.texts])
    texts = Texts.decode(data, manifest.texts)
    erased = pending(await store.erasures(), manifest.erased_ms)
    erasure = Erasure(erased, len(decode_contents(manifest.contents).dimensions))
    anonymous = erasure.texts(texts)
    journal, carried = _continued(partition, manifest, anonymous, claim)
    if names:
        keyed = await store.keyed()  # what was counted wrong once stays so
        await store.set_keyed({new: keyed[was] for was, new in names.items() if was in keyed})
    journal.texts = manifest.texts, texts
    journal.position = stored.position
    journal.commit_number, journal.recounted = manifest.commit, manifest.recounted
    journal.erased_ms = max(erased.values(), default=manifest.erased_ms)
    if erased:
        journal.outdated.update(TABLES)
    is_continued = was.contents == journal.contents and was.scopes.keys() == partition.scopes.keys()
    journal.is_of_others = bool(erased) or not is_continued
    journal.dead_letters = manifest.dead_letters
    journal.dead_letters_omitted = manifest.dead_letters_omitted
    with _damage():
        _restore_counters(partition, journal, manifest, anonymous, carried)
    await _load_panes(store, number, partition, journal, manifest, carried)
    for name in partition.core.tables():
        refs = manifest.tables.get(name, [])
        found = await _blobs(store, number, [ref.name for ref in refs])
        await asyncio.to_thread(_load_table, journal, name, refs, found, carried, erasure)
    partition.core.finish_load()
    if carried is None:
        journal.users = dict(manifest.users)
    else:
        journal.outdated.update(MIGRATED_TABLES)
        journal.replaced += manifest.users.values()
    journal.replaced += manifest.experiment_days.values()
    kept = {found.key for found in partition.found_experiments(partition.state())}
    if any(found.key not in kept for found in manifest.found_experiments):
        journal.outdated.add("user_exposures")  # some are those of declared experiments now
    await store.sweep(number, claim, manifest.blob_names())
    return journal


def _continued(
    partition: Partition, manifest: Manifest, texts: Texts, claim: str
) -> tuple[Journal, PaneMigration | None]:
    """The partition goes on where the manifest stands; how to map what other settings wrote."""
    partition.ranks = {name: topic.rank for name, topic in manifest.topics.items()}
    journal = Journal(partition, claim)
    old, began = manifest.holding, manifest.began
    ours = Holding(decode_contents(journal.contents), journal.beside, partition.core.unit_ms)
    is_other = (old.contents, old.beside) != (ours.contents, ours.beside)
    if is_other:
        counted, prefix = manifest.counted_contents, partition.settings.redis.prefix
        found = require_continuable(counted, ours.contents, prefix)
        began = began_after(began, old, ours, found, manifest.newest_ms)
    meant = ours.beside.meanings
    since_ms = {
        name: ms
        for name, ms in manifest.counted_since_ms.items()
        if old.beside.meanings.get(name) == meant.get(name)
    }
    known = manifest.found_experiments
    partition.continue_counting(since_ms, manifest.scopes, manifest.stream_ms, began, known)
    journal = Journal(partition, claim)
    ours = replace(ours, unit_ms=partition.core.unit_ms)
    if not is_other and old.unit_ms == ours.unit_ms:
        return journal, None
    accepted = sum(topic.counters["accepted"] for topic in manifest.topics.values())
    return journal, PaneMigration(old, ours, texts.with_events(manifest.events), accepted)


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
    journal: Journal,
    name: str,
    refs: Sequence[BlobRef],
    found: Sequence[bytes],
    carried: PaneMigration | None,
    erasure: Erasure,
) -> None:
    blobs = [codec.decode(data, ref.name) for data, ref in zip(found, refs, strict=True)]
    with _damage():
        kept = erasure.table(name, blobs) if erasure.ids else blobs
        spans = journal.partition.core.load(name, kept, carried.tables if carried else None)
    journal.tables[name] = [
        Held(ref, first, end) for ref, (first, end) in zip(refs, spans, strict=True)
    ]


def _restore_counters(
    partition: Partition,
    journal: Journal,
    manifest: Manifest,
    texts: Texts,
    carried: PaneMigration | None,
) -> None:
    segments = carried.segments if carried else texts.with_events(manifest.events)
    restore_segments(partition, segments)
    overflowed = [manifest.overflowed.get(of.key, 0) for of in partition.catalogue.rollups]
    partition.core.restore(
        {
            "stream_ms": manifest.stream_ms,
            "oldest_ms": manifest.oldest_ms,
            "newest_ms": manifest.newest_ms,
            "logs": {
                name: msgspec.structs.asdict(topic)
                for name, topic in manifest.topics.items()
                if name in partition.logs
            },
            "counters": manifest.counters,
            "first_retained": manifest.first_retained,
            "segments_overflowed": overflowed,
        }
    )
    restore_labels(partition, manifest, texts)
    fields = manifest.counted_contents.fields
    for name, topic in manifest.topics.items():
        if name not in partition.logs:
            journal.other_topics[name] = topic
            journal.other_fields[name] = fields.get(name, {})
            continue
        topic.restore(partition.logs[name])
        journal.fingerprints[name] = list(topic.fingerprints)


def restore_segments(partition: Partition, segments: Mapping[str, Any]) -> None:
    """Take over the values of dimensions, and the segments."""
    values = [(v["texts"], v["events"], v["kept"]) for v in segments["values"]]
    partition.core.restore_dimensions(values, segments["segments"])


def restore_labels(partition: Partition, manifest: Manifest, texts: Texts) -> None:
    """Take over what is stored of experiments beside rows."""
    names = partition.label_names
    labels = [[label.get(name, "") for name in names] for label in texts.labels]
    found = [
        (
            *(one.slot, [one.key, *one.arms], list(one.named_by)),
            *((one.first_day, one.last_day), one.code),
        )
        for one in manifest.found_experiments
    ]
    partition.core.restore_found_experiments(found)
    partition.core.restore_experiments(labels, manifest.exposures_final_ms)
    partition.restore_unit_bits(manifest.unit_bits)


async def _load_panes(
    store: Store,
    number: int,
    partition: Partition,
    journal: Journal,
    manifest: Manifest,
    carried: PaneMigration | None,
) -> None:
    kept = partition.continue_day_before(manifest.day_before_since_ms, manifest.stream_ms)
    if carried is None:
        panes = {
            name: [
                pane
                for pane in some
                if (ring := ring_and_pane(pane)[0]) <= TOTAL_RING or ring in kept
            ]
            for name, some in manifest.panes.items()
        }
        await _load_some(store, number, journal.panes, panes)
        partition.core.take_changed_panes(None)
    else:
        blobs = await _columns(store, number, list(manifest.panes))
        with _damage():
            journal.panes.load_other(manifest.panes, blobs, carried.pane)
        journal.replaced += manifest.panes
    for series in partition.series:
        await _load_series(store, number, partition, journal, manifest, series)


async def _load_series(
    store: Store,
    number: int,
    partition: Partition,
    journal: Journal,
    manifest: Manifest,
    series: PaneSeries,
) -> None:
    shape, since_ms = series.declared.shape, manifest.stream_ms
    stored = manifest.series.get(shape)
    old = manifest.beside.items
    if isinstance(series.declared, ItemCounts) and old not in (None, journal.beside.items):
        assert old is not None
        since_ms = await _load_items(store, number, journal, manifest, series, old)
    elif stored is not None and _means_the_same(partition, manifest, series.declared):
        since_ms = stored.since_ms
        labels = [
            [label[name] for name in series.names] for label in _series_labels(journal, shape)
        ]
        partition.core.restore_series_labels(series.number, labels)
        await _load_some(store, number, journal.series[shape], stored.panes)
    partition.series_since_ms[series.number] = since_ms
    partition.core.take_changed_panes(series.number)


def _means_the_same(
    partition: Partition, manifest: Manifest, declared: AlertSeries | ItemCounts
) -> bool:
    if isinstance(declared, ItemCounts):
        return True
    measures, measure = partition.catalogue.alert_measures, declared.measure
    of = (measure.above, measure.below, measure.high, measure.below_high)
    names = [measures.sums[place] for place in of if place is not None]
    ours = beside_of(partition.settings, partition.catalogue).meanings
    return all(manifest.beside.meanings.get(name) == ours[name] for name in names)


async def _load_items(
    store: Store,
    number: int,
    journal: Journal,
    manifest: Manifest,
    series: PaneSeries,
    old: ItemsHeld,
) -> int:
    """Take over counts of items that other settings stored; returns since when they are counted."""
    assert journal.beside.items is not None
    assert isinstance(series.declared, ItemCounts)
    stored = manifest.series[old.shape]
    labels, most = _series_labels(journal, old.shape), series.declared.max_labels
    carried = ItemMigration(old, journal.beside.items, labels, most)
    partition = journal.partition
    partition.core.restore_series_labels(series.number, carried.labels)
    blobs = await _columns(store, number, list(stored.panes))
    with _damage():
        journal.series[series.declared.shape].load_other(stored.panes, blobs, carried.pane)
    journal.replaced += stored.panes
    return stored.since_ms


async def _load_some(
    store: Store, number: int, panes: PaneBlobs, names: dict[str, list[int]]
) -> None:
    blobs = await _columns(store, number, list(names))
    with _damage():
        panes.load(names, blobs)


def _series_labels(journal: Journal, shape: str) -> list[dict[str, str]]:
    """What is stored of them."""
    assert journal.texts is not None
    return journal.texts[1].series[shape]


async def _columns(store: Store, number: int, names: list[str]) -> list[Columns]:
    found = await _blobs(store, number, names)
    with _damage():
        return [codec.decode(data, name) for data, name in zip(found, names, strict=True)]


async def _blobs(store: Store, number: int, names: list[str]) -> list[bytes]:
    found = await store.blobs(number, names)
    missing = [name for name, data in zip(names, found, strict=True) if data is None]
    if missing:
        raise DamagedError(f"{len(missing)} of {len(names)} blobs of its manifest are missing")
    return [data for data in found if data is not None]
