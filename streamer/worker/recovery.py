"""Recovery of a partition: claim it, load it, find its place in its logs.

Where stored bytes are damaged or missing, the partition is counted again from Kafka: what its logs
still hold is exact, what they no longer hold is declared lost.

Where a partition continues in its logs, and which records are declared lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from streamer.errors import CodecError, DamagedError, StoreError
from streamer.ingest.hash_key import HashKey, random_key
from streamer.kafka.fingerprints import RecordLookup, resume
from streamer.state.journal import Journal
from streamer.state.log_identity import new_names, renamed
from streamer.state.manifest import decode
from streamer.state.partition import Partition, TopicLog
from streamer.state.reader import manifests_of
from streamer.state.restore import load_partition, start_over
from streamer.state.store import Store, Stored

logger = logging.getLogger("streamer")
NOT_BEGUN = -1
"""The first offset of a log that could not be read since the state began."""
_PLACE = "%(topic)s/%(partition)d"
_NOT_THERE = "records {} to {} are lost: Kafka has deleted them"


async def find_start(
    records: RecordLookup,
    logs: Mapping[TopicPartition, str],
    partition: Partition,
    known: Mapping[str, int],
) -> None:
    """Start a partition whose state was lost at the beginning of its logs, and declare lost what
    these no longer hold. ``known``: log → first offset ever read; 0 where that is not known."""
    for tp, (start, _) in (await records.bounds(list(logs))).items():
        log, first = partition.logs[logs[tp]], known.get(logs[tp], 0)
        log.first_offset, log.next_offset = min(first, start), start
        if start > first:
            why = _NOT_THERE.format(first, start - 1)
            logger.error(f"{_PLACE}: %(why)s", {**tp._asdict(), "why": why})
            log.lose(first, start - 1)


async def find_place(
    records: RecordLookup,
    logs: Mapping[TopicPartition, str],
    partition: Partition,
    journal: Journal,
) -> bool:
    """Set the next offsets of a loaded partition; True if records were declared lost or a log was
    found truncated or recreated.

    What was never committed begins at the start of its log.
    """
    is_new = journal.commit_number == 0
    new = [tp for tp, name in logs.items() if is_new or _has_not_begun(partition.logs[name])]
    for tp, (start, _) in (await records.bounds(new)).items() if new else ():
        log = partition.logs[logs[tp]]
        log.first_offset = log.next_offset = start
        log.is_new = False
    known = {tp: name for tp, name in logs.items() if tp not in new}
    if not known:
        return False
    found = await resume(
        records,
        {tp: partition.logs[name].next_offset for tp, name in known.items()},
        {tp: journal.fingerprints[name] for tp, name in known.items()},
    )
    for tp, place in found.items():
        log, named = partition.logs[logs[tp]], tp._asdict()
        if place.lost is not None:
            first, last = place.lost
            text = f"{_PLACE}: records %(first)d to %(last)d were lost before they were read"
            logger.error(text, {**named, "first": first, "last": last})
            log.lose(*place.lost)
        elif place.is_other_log:
            text = (
                f"{_PLACE}: truncated or recreated since it was read up to %(first)d: reading "
                "again from %(last)d"
            )
            logger.warning(text, {**named, "first": log.next_offset, "last": place.offset})
            log.restart(place.offset)
            journal.forget_fingerprints(logs[tp], place.offset)
    return any(place.lost or place.is_other_log for place in found.values())


def _has_not_begun(log: TopicLog) -> bool:
    return log.is_new or log.first_offset == NOT_BEGUN


def leave_out(partition: Partition, names: Iterable[str]) -> None:
    """Logs that cannot be read now: one that was never read begins at its start later."""
    for name in names:
        if _has_not_begun(partition.logs[name]):
            partition.logs[name].first_offset = NOT_BEGUN


logger = logging.getLogger("streamer")
_SECOND_LOOK_SECONDS = 1.0
"""Damage counts when it is seen twice."""


@dataclass(frozen=True)
class Recovered:
    """A partition ready to count. ``dirty``: it has changes to commit: lost records, or that it is
    of other settings now."""

    partition: Partition
    journal: Journal
    dirty: bool


async def recover(
    empty: Callable[[HashKey], Partition],
    store: Store,
    records: RecordLookup,
    logs: Mapping[TopicPartition, str],
    number: int,
) -> Recovered:
    """Claim a partition and load it. ``empty``: makes it without any state, under a hash key.

    Raises StoreError, BrokerError, SettingsError where the state is one of other settings, or
    CodecError where another version wrote it; the caller retries.
    """
    key, claim, stored = await _claim(store, number)
    for _ in range(2):
        partition = empty(key)
        try:
            journal = await load_partition(store, number, partition, claim, stored)
        except DamagedError as error:
            damage = error
            await asyncio.sleep(_SECOND_LOOK_SECONDS)
            stored = await store.read(number)
            continue
        is_dirty = await find_place(records, logs, partition, journal)
        return Recovered(partition, journal, is_dirty or journal.is_of_others)
    if await store.standing([number]) != [(claim, stored.position)]:
        raise StoreError(f"partition {number} was claimed by another worker while it was loaded")
    logger.error(
        "partition %(partition)d: %(why)s; it is counted again from Kafka. If its logs do not hold "
        "all that was counted, and Redis has a backup, stop the workers and restore that instead; "
        "docs/operations.md says more under damaged state",
        {"partition": number, "why": str(damage)},
    )
    partition = empty(key)
    journal = start_over(partition, claim, stored)
    await find_start(records, logs, partition, _first_known(stored, partition))
    return Recovered(partition, journal, True)


async def _claim(store: Store, number: int) -> tuple[HashKey, str, Stored]:
    """Claim a partition; returns the hash key, the claim and what is stored.

    A key is stored before the claim, so that a restored Redis with the claim has the key, too. It
    is read after the claim, so that it is not one from before Redis was emptied.
    """
    if await store.hash_key() is None:
        await _make_hash_key(store)
    claim, stored = await store.claim(number)
    key = await store.hash_key()
    if key is None:
        raise StoreError(f"the hash key was lost while partition {number} was claimed")
    return key, claim, stored


async def _make_hash_key(store: Store) -> None:
    """Restore a lost hash key from the manifests, or store a random one if there are none. If
    several workers do so at once, the first one's stays."""
    manifests, _ = await manifests_of(store, await store.partitions() or 0)
    known = [manifest.hash_key for manifest in manifests.values()]
    await store.set_hash_key(known[0] if known else random_key())


def _first_known(stored: Stored, partition: Partition) -> dict[str, int]:
    """Log → the offset at which reading had begun, by the manifest, if it can be read."""
    try:
        manifest = decode(stored.manifest)
        names = new_names(manifest, partition.settings.logs, partition.cluster_ids)
        topics = renamed(manifest, names).topics
    except CodecError:
        return {}
    known = {name: topic.first_offset for name, topic in topics.items()}
    return {name: offset for name, offset in known.items() if offset != NOT_BEGUN}
