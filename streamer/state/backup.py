"""All that is stored under a prefix, copied from a store and put back."""

from __future__ import annotations

from streamer.errors import DamagedError, StoreError
from streamer.state.codec import body_of
from streamer.state.manifest import Manifest, decode, require_key
from streamer.state.memory import MemoryStore
from streamer.state.reader import manifests_of
from streamer.state.store import Answer, Commit, Store, Stored, new_claim

_TRIES = 100
"""How often a partition is read again that commits meanwhile."""


async def copy_of(store: Store) -> MemoryStore:
    """A copy of every partition, each of one whole commit. StoreError where nothing is stored, or
    a blob is missing; DamagedError where one is damaged; CodecError for another version's."""
    count, key = await store.partitions(), await store.hash_key()
    if count is None:
        raise StoreError("nothing is stored under this redis.prefix yet")
    if key is None:
        raise StoreError("the hash key is missing: the next worker that starts restores it")
    require_key((await manifests_of(store, count))[0], key)
    copy = MemoryStore()
    copy.count, copy.key, copy.owner_group = count, key, await store.group()
    copy.keys, copy.marks = await store.keyed(), await store.annotations()
    copy.kept_of_actions = await store.acted()
    for number in range(count):
        await _copy(store, number, copy)
    return copy


async def _copy(store: Store, number: int, copy: MemoryStore) -> None:
    held: dict[str, bytes] = {}
    for _ in range(_TRIES):
        stored = await store.read(number)
        if not stored.manifest:
            return
        names = sorted(decode(stored.manifest).blob_names())
        wanted = [name for name in names if name not in held]
        blobs = zip(wanted, await store.blobs(number, wanted), strict=True)
        held |= {name: blob for name, blob in blobs if blob is not None}
        missing = [name for name in names if name not in held]
        if not missing:
            for name in names:
                body_of(held[name], name)
            copy.states[number] = stored
            copy.held[number] = {name: held[name] for name in names}
            return
        if (await store.read(number)).position == stored.position:
            raise StoreError(
                f"partition {number}: {len(missing)} blobs of its commit are missing, {missing[0]} "
                f"first; `streamer inspect {number} --verify` names what is damaged"
            )
    raise StoreError(f"partition {number} commits faster than it can be read: try again")


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
    if not await store.lead(new_claim(), 0, copy.kept_of_actions):
        raise StoreError("`streamer act` runs there: stop it first")
    marks = {(mark.at_ms, mark.text) for mark in (await store.annotations()).values()}
    for mark in copy.marks.values():
        if (mark.at_ms, mark.text) not in marks:
            await store.annotate(mark)
    for number, stored in copy.states.items():
        await _write(store, number, there[number], stored, copy)


def _require_older(number: int, there: Stored, stored: Stored | None) -> None:
    try:
        read = _offsets(decode(there.manifest)) if there.manifest else {}
    except DamagedError:
        return  # what a restore is for
    own: dict[str, int] = {} if stored is None else _offsets(decode(stored.manifest))
    for log, offset in read.items():
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
    claim, _ = await store.claim(number)
    was = there.position
    if was == stored.position and there.manifest != stored.manifest:
        was += b"-"  # else it would count as done already
        await store.commit(number, Commit(claim, there.position, was, stored.manifest, held))
    commit = Commit(claim, was, stored.position, stored.manifest, held)
    answer = await store.commit(number, commit)
    is_done = answer in (Answer.OK, Answer.ALREADY)
    if is_done:
        await store.sweep(number, claim, {*held})
    await store.release(number, claim)
    if not is_done:
        raise StoreError(f"partition {number}: not restored ({answer}): a worker took it meanwhile")
