"""All that is stored under a prefix, copied from a store and put back."""

from __future__ import annotations

from streamer.errors import StoreError
from streamer.state.codec import body_of
from streamer.state.manifest import Manifest, decode
from streamer.state.memory import MemoryStore
from streamer.state.store import Answer, Commit, Store, Stored

_TRIES = 100
"""How often a partition is read again that commits meanwhile."""


async def copy_of(store: Store) -> MemoryStore:
    """A copy of every partition, each of one whole commit. StoreError where nothing is stored, or
    a blob is missing; DamagedError where one is damaged; CodecError for another version's."""
    count, key = await store.partitions(), await store.hash_key()
    if count is None or key is None:
        raise StoreError("nothing is stored under this redis.prefix yet")
    copy = MemoryStore()
    copy.count, copy.key, copy.owner_group = count, key, await store.group()
    copy.keys, copy.marks = await store.keyed(), await store.annotations()
    for number in range(count):
        await _copy(store, number, copy)
    return copy


async def _copy(store: Store, number: int, copy: MemoryStore) -> None:
    missing: list[str] = []
    for _ in range(_TRIES):
        stored = await store.read(number)
        if not stored.manifest:
            return
        names = sorted(decode(stored.manifest).blob_names())
        blobs = dict(zip(names, await store.blobs(number, names), strict=True))
        whole = {name: blob for name, blob in blobs.items() if blob is not None}
        missing = [name for name in names if name not in whole]
        if not missing:
            for name, blob in whole.items():
                body_of(blob, name)
            copy.states[number], copy.held[number] = stored, whole
            return
        if (await store.read(number)).position == stored.position:
            break
    raise StoreError(
        f"partition {number}: {len(missing)} blobs of its commit are missing, {missing[0]} first; "
        f"`streamer inspect {number} --verify` names what is damaged"
    )


async def put_back(copy: MemoryStore, store: Store) -> None:
    """Make a store what the copy is. StoreError, before anything is written, where workers count,
    or where the store has something newer or of another hash key."""
    assert copy.count is not None
    assert copy.key is not None
    if present := sorted(each.worker for each in await store.reports() if each.is_present):
        raise StoreError(f"workers count there: {', '.join(present)}; stop them first")
    count, key = await store.partitions(), await store.hash_key()
    if count not in (None, copy.count):
        raise StoreError(f"{count} partitions are stored there, and {copy.count} in the backup")
    if key not in (None, copy.key):
        raise StoreError("what is stored there was counted under another hash key")
    there = [await store.read(number) for number in range(copy.count)]
    for number, stored in enumerate(there):
        _require_older(number, stored, copy.states.get(number))
    await store.set_partitions(copy.count)
    await store.set_hash_key(copy.key)
    if copy.owner_group is not None:
        await store.set_group(copy.owner_group)
    await store.set_keyed(copy.keys)
    marks = {(mark.at_ms, mark.text) for mark in (await store.annotations()).values()}
    for mark in copy.marks.values():
        if (mark.at_ms, mark.text) not in marks:
            await store.annotate(mark)
    for number, stored in copy.states.items():
        await _write(store, number, there[number], stored, copy)


def _require_older(number: int, there: Stored, stored: Stored | None) -> None:
    if not there.manifest:
        return
    own: dict[str, int] = {} if stored is None else _offsets(decode(stored.manifest))
    for log, offset in _offsets(decode(there.manifest)).items():
        if offset > own.get(log, 0):
            raise StoreError(
                f"partition {number} is newer there: {log} is read up to offset {offset:,}, in the "
                f"backup up to {own.get(log, 0):,}; restore it under another redis.prefix, or "
                "delete what is stored there"
            )


def _offsets(manifest: Manifest) -> dict[str, int]:
    return {name: topic.next_offset for name, topic in manifest.topics.items()}


async def _write(
    store: Store, number: int, there: Stored, stored: Stored, copy: MemoryStore
) -> None:
    held = copy.held[number]
    gone = decode(there.manifest).blob_names() - held.keys() if there.manifest else set[str]()
    claim, _ = await store.claim(number)
    places = (claim, there.position, stored.position, stored.manifest)
    answer = await store.commit(number, Commit(*places, held, sorted(gone)))
    await store.release(number, claim)
    if answer not in (Answer.OK, Answer.ALREADY):
        raise StoreError(f"partition {number}: not restored ({answer}): a worker took it meanwhile")
