"""``streamer check``: what Redis says about itself, and about the state in it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from streamer.cli.finding import ERROR, OK, WARN, Finding
from streamer.errors import CodecError, StoreAccessError, StoreError
from streamer.kafka.topics import require_count
from streamer.metrics.catalogue import Catalogue
from streamer.settings.logs import ClusterIds
from streamer.settings.model import Settings
from streamer.state.changes import SettingChange, changes
from streamer.state.contents import Contents, contents_of
from streamer.state.log_identity import (
    LogIdentityError,
    group_of,
    new_names,
    renamed,
    require_distinct,
    require_group,
)
from streamer.state.manifest import Manifest, decode, require_key
from streamer.state.reader import manifests_of
from streamer.state.redis.store import MIN_VERSION, RedisStore
from streamer.state.store import Store

_FULL = 0.8
"""Share of maxmemory, or of the machine's memory, above which there is little left."""
_CLOCK_SECONDS = 5.0
_DAMAGED = (
    "restore Redis from a backup, or let workers count the partition again from Kafka, which they "
    "do by themselves; `streamer inspect --verify` lists what is damaged"
)
_HASH_KEY = "see docs/operations.md, Hash key"
_OTHER_STATE = "set it back, or start anew with another redis.prefix and another kafka.group"
_RESTART = "restart all workers with these settings, then exporters; until then nothing changes"


async def store_findings(
    settings: Settings,
    store: RedisStore,
    manifests: dict[int, Manifest],
    count: int | None,
    cluster_ids: ClusterIds,
) -> AsyncIterator[Finding]:
    """Findings about the server; ``manifests`` is filled with what is stored.

    ``count``: partitions of the topics, where they are known; ``cluster_ids``: of the clusters that
    answered.
    """
    mode = cluster_finding(settings, await _mode(store))
    if mode is not None:
        yield mode
        return
    try:
        nodes = await store.info()
    except StoreAccessError as error:
        yield Finding(ERROR, f"Redis: {error}", "correct the section [redis] of the settings")
        return
    except StoreError as error:
        yield Finding(ERROR, f"Redis: {error}", "start it, or correct redis.url")
        return
    for address, info in nodes.items():
        for finding in redis_findings(address, info):
            yield finding
    try:
        await store.try_writing()
        yield clock_finding(await store.now_ms() / 1000 - time.time())
    except StoreError as error:
        yield Finding(ERROR, f"Redis: {error}", _fix_of(error))
    async for finding in _state_findings(settings, store, manifests, count, cluster_ids):
        yield finding


async def _mode(store: RedisStore) -> str:
    """The server's redis_mode, asked by a client that knows nothing of clusters; "" unless told."""
    plain = RedisStore(msgspec.structs.replace(store.settings, cluster=False))
    try:
        info = next(iter((await plain.info()).values()))
    except StoreError:
        return ""  # what is wrong is said when the store itself is asked
    finally:
        await plain.close()
    return str(info.get("redis_mode", ""))


def cluster_finding(settings: Settings, mode: str) -> Finding | None:
    """Whether redis.cluster says what the server is."""
    if mode and settings.redis.cluster != (mode == "cluster"):
        wanted = "true" if mode == "cluster" else "false"
        what = f"Redis is {'a node of' if mode == 'cluster' else 'not'} a cluster"
        shown = str(settings.redis.cluster).lower()
        return Finding(
            ERROR, f"{what}, but redis.cluster = {shown}", f"set redis.cluster = {wanted}"
        )
    return None


def redis_findings(address: str, info: dict[str, Any]) -> Iterator[Finding]:
    """Whether a server (its INFO) is fit to keep state."""
    version = str(info.get("redis_version", "0"))
    if int(version.split(".")[0]) < MIN_VERSION:
        fix = f"upgrade to {MIN_VERSION}.0 or newer"
        yield Finding(ERROR, f"Redis at {address}: version {version} is too old", fix)
    else:
        yield Finding(OK, f"Redis: version {version}, reachable at {address}")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        fix = "set maxmemory-policy noeviction: Redis may evict state without an error"
        yield Finding(ERROR, f"Redis at {address}: maxmemory-policy is {policy}", fix)
    if info.get("role", "master") != "master":
        fix = "connect to its master: a replica is read-only"
        yield Finding(ERROR, f"Redis at {address} is a {info['role']}", fix)
    if not int(info.get("aof_enabled", 0)):
        fix = "set appendonly yes: without it a restart reads Kafka again from the last snapshot"
        yield Finding(WARN, f"Redis at {address}: appendonly is off", fix)
    for name in ("aof_last_write_status", "rdb_last_bgsave_status"):
        if info.get(name, "ok") != "ok":
            fix = "check the disk of Redis: it may refuse writes"
            yield Finding(ERROR, f"Redis at {address}: {name} is {info[name]}", fix)
    yield from _memory_findings(address, info)


def _memory_findings(place: str, info: dict[str, Any]) -> Iterator[Finding]:
    used = int(info.get("used_memory", 0))
    for name in ("maxmemory", "total_system_memory"):
        size = int(info.get(name, 0))
        if size and used > _FULL * size:
            level = ERROR if used >= size else WARN
            fix = "give Redis more memory: workers wait when it is full"
            what = f"{used / 2**20:.0f} of {size / 2**20:.0f} MiB of {name} are used"
            yield Finding(level, f"Redis at {place}: {what}", fix)
            return


def clock_finding(ahead_seconds: float) -> Finding:
    """Whether this machine's clock is that of Redis."""
    side = "ahead of" if ahead_seconds > 0 else "behind"
    what = f"Redis: its clock is {abs(ahead_seconds):.1f} s {side} this machine's"
    if abs(ahead_seconds) > _CLOCK_SECONDS:
        return Finding(
            WARN, what, "synchronise both by NTP: `produce` and `replay` use this machine's"
        )
    return Finding(OK, what)


def _fix_of(error: StoreError) -> str:
    text = str(error)
    if isinstance(error, StoreAccessError):
        return "give this user the rights of a worker: docs/how-to/secure-it.md has the line"
    if "maxmemory" in text or "OOM" in text:
        return "give Redis more memory: it is full"
    if "read only" in text or "READONLY" in text:
        return "connect to its master: a replica is read-only"
    return "look at the log of Redis"


async def _state_findings(
    settings: Settings,
    store: RedisStore,
    manifests: dict[int, Manifest],
    count: int | None,
    cluster_ids: ClusterIds,
) -> AsyncIterator[Finding]:
    """Whether the stored state is one that these settings and topics continue."""
    state = f"state under {settings.redis.prefix!r}"
    ours = contents_of(settings, Catalogue(settings))
    try:
        require_distinct(settings.logs, cluster_ids)
        stored = await store.partitions()
        if stored is None:
            yield Finding(OK, f"{state}: none yet")
            return
        group = group_of(settings, cluster_ids)
        require_group(settings.redis.prefix, await store.group(), group)
        whole, damaged = await manifests_of(store, stored)
        manifests |= {
            n: renamed(m, new_names(m, settings.logs, cluster_ids)) for n, m in whole.items()
        }
        for partition, damage in damaged.items():
            yield Finding(ERROR, f"{state}: partition {partition}: {damage}", _DAMAGED)
        if count is not None:
            require_count(stored, count)
        found_changes = changes_of(manifests, ours)
    except CodecError as error:
        fix = "use the version that wrote it, or set another redis.prefix"
        yield Finding(ERROR, f"{state}: {error}", fix)
    except LogIdentityError as error:
        yield Finding(ERROR, f"{state}: refused: {error}", _OTHER_STATE)
    except StoreError as error:
        yield Finding(ERROR, f"{state}: {error}", "or recreate the topics as they were")
    else:
        for finding in change_findings(state, stored, found_changes):
            yield finding
        if (wrong := await key_finding(state, store, manifests)) is not None:
            yield wrong
        for partition, manifest in sorted(manifests.items()):
            names = sorted(manifest.blob_names())
            missing = len(names) - await store.count_blobs(partition, names)
            again = await store.read(partition)
            if missing and again.manifest and decode(again.manifest).commit == manifest.commit:
                what = (
                    f"{state}: {missing} of {len(names)} blobs of partition {partition} are missing"
                )
                yield Finding(ERROR, what, _DAMAGED)


def changes_of(manifests: Mapping[int, Manifest], ours: Contents) -> list[SettingChange]:
    """What settings change in any partition, each once."""
    stored = {m.counted_contents.encode(): m.counted_contents for m in manifests.values()}
    return list(dict.fromkeys(change for one in stored.values() for change in changes(one, ours)))


def change_findings(place: str, count: int, found: Sequence[SettingChange]) -> Iterator[Finding]:
    """What workers with these settings will do to the state."""
    if not found:
        yield Finding(OK, f"{place}: {count} partitions, written with these settings")
    for change in found:
        if change.is_refused:
            yield Finding(ERROR, f"{place}: refused: {change}", _OTHER_STATE)
        else:
            yield Finding(WARN, f"{place}: {change}", _RESTART)


async def key_finding(state: str, store: Store, manifests: dict[int, Manifest]) -> Finding | None:
    """What is wrong with the hash key, if anything."""
    try:
        key = await store.hash_key()
        require_key(manifests, key)
    except (CodecError, StoreError) as error:
        return Finding(ERROR, f"{state}: {error}", _HASH_KEY)
    if key is None and manifests:
        fix = "nothing to do: the next worker that takes a partition restores it from the state"
        return Finding(WARN, f"{state}: its hash key is missing", fix)
    return None
