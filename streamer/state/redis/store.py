"""The store in Redis (7 or newer) or Valkey, alone or as a cluster.

Every key in Redis. None has a time to live: state leaves by the log's clock, in commits.

All keys of one partition carry the hash tag ``{number}``, so that one script may touch them all on
Redis Cluster too.

| key | type | holds |
| --- | --- | --- |
| ``prefix:partitions`` | string | number of partitions of every topic |
| ``prefix:group`` | string | the consumer group whose workers count, and its cluster's id |
| ``prefix:settings`` | hash | fingerprint of settings → their generation |
| ``prefix:erasures`` | hash | hash of an id → the number of its erasure; the last number |
| ``prefix:hash_key`` | string | the secret key under which ids are hashed, 32 hexadecimal digits |
| ``prefix:{p}:claim`` | string | the random id of the worker that may write partition p |
| ``prefix:{p}:state`` | hash | ``position``, ``manifest``, ``seen_ms`` (Redis time of the commit) |
| ``prefix:{p}:blobs`` | set | names of all blobs written, orphans too |
| ``prefix:{p}:b:name`` | string | one blob: immutable, named by claim and number |
| ``prefix:keyed`` | hash | log → 1: its topic is keyed by user, 0: it was not once |
| ``prefix:workers`` | hash | worker → its last report (no state), and when |
| ``prefix:annotations`` | hash | id → a mark from outside (no state) |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

import msgspec

from streamer.errors import StoreError
from streamer.ingest.hash_key import HashKey, key_text
from streamer.settings import limits
from streamer.settings.model import Redis as RedisSettings
from streamer.settings.redis_url import place_of
from streamer.state.annotations import Annotation, beyond_bound, stored_annotations
from streamer.state.redis.client import client, failures
from streamer.state.redis.input import decoded, hash_key, whole
from streamer.state.store import Answer, Commit, Generation, Stored, new_claim
from streamer.state.worker_report import WorkerReport


@dataclass(frozen=True)
class Keys:
    """The key names under one prefix."""

    prefix: str

    @property
    def partitions(self) -> str:
        return f"{self.prefix}:partitions"

    @property
    def group(self) -> str:
        return f"{self.prefix}:group"

    @property
    def settings(self) -> str:
        return f"{self.prefix}:settings"

    @property
    def erasures(self) -> str:
        return f"{self.prefix}:erasures"

    @property
    def hash_key(self) -> str:
        return f"{self.prefix}:hash_key"

    @property
    def keyed(self) -> str:
        return f"{self.prefix}:keyed"

    @property
    def workers(self) -> str:
        return f"{self.prefix}:workers"

    @property
    def annotations(self) -> str:
        return f"{self.prefix}:annotations"

    @property
    def leader(self) -> str:
        return f"{self.prefix}:{{act}}:leader"

    @property
    def acted(self) -> str:
        return f"{self.prefix}:{{act}}:kept"

    def claim(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:claim"

    def state(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:state"

    def blobs(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:blobs"

    def blob(self, partition: int, name: str) -> str:
        return f"{self.prefix}:{{{partition}}}:b:{name}"


MIN_VERSION = 7
_TRIAL_MS = 10_000
_BLOBS_PER_CALL = 500
_STATE = ("position", "manifest", "seen_ms")
_REPORTS_PER_TIDYING = 100
_FORGET_SECONDS = 3600
"""After so long without a report a worker is forgotten."""


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The names, as many together as one call may have."""
    for start in range(0, len(names), _BLOBS_PER_CALL):
        yield names[start : start + _BLOBS_PER_CALL]


def _eviction(info: Mapping[str, Any]) -> str | None:
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if not policy.startswith("allkeys") and (policy == "noeviction" or not info.get("maxmemory")):
        return None
    return (
        f"Redis has maxmemory-policy {policy!r}: it may drop state without an error; set it to "
        "noeviction"
    )


class RedisStore:
    """Partitions in Redis, under the keys above."""

    def __init__(self, settings: RedisSettings) -> None:
        self.settings = settings
        self.keys = Keys(settings.prefix)
        self.redis = client(settings)
        lua = files("streamer.state.redis") / "lua"
        self._commit = self.redis.register_script((lua / "commit.lua").read_text())
        self._sweep = self.redis.register_script((lua / "sweep.lua").read_text())
        self._erase = self.redis.register_script((lua / "erase.lua").read_text())
        self._lead = self.redis.register_script((lua / "lead.lua").read_text())
        self._declare = self.redis.register_script((lua / "declare.lua").read_text())
        self._reports = 0
        self._release = self.redis.register_script((lua / "release.lua").read_text())

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return failures(doing, self.settings)

    async def info(self) -> dict[str, dict[str, Any]]:
        """INFO of the server, or of every master of a cluster, by address."""
        with self._errors("cannot use Redis"):
            if not self.settings.cluster:
                return {place_of(self.settings.url): await self.redis.info()}
            found = await self.redis.info(target_nodes=self.redis.PRIMARIES)
            return {"": found} if "redis_version" in found else found

    async def eviction(self) -> str | None:
        try:
            nodes = await self.info()
        except StoreError:  # away, or a user who may only read
            return None
        return next(filter(None, map(_eviction, nodes.values())), None)

    async def fullness(self) -> str | None:
        try:
            nodes = await self.info()
        except StoreError:  # a user who may only read has no INFO
            return None
        for place, info in nodes.items():
            used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
            if 0 < most <= used + most // 100:
                at = f"; at {place}" if place else ""
                return f"Redis is full: {used >> 20} of {most >> 20} MiB of maxmemory are used{at}"
        return None

    async def check(self) -> None:
        for info in (await self.info()).values():
            version = str(info.get("redis_version", "0"))
            if int(version.split(".")[0]) < MIN_VERSION:
                raise StoreError(f"Redis {version} is too old: {MIN_VERSION}.0 or newer is needed")
            if text := _eviction(info):
                raise StoreError(text)
            if info.get("role", "master") != "master":
                raise StoreError("Redis is a read-only replica: connect to its master")
            if info.get("redis_mode") == "cluster" and not self.settings.cluster:
                raise StoreError("Redis is a node of a cluster: set redis.cluster = true")

    async def try_writing(self) -> None:
        """StoreError where a worker could not write here: no permission, a replica, no memory, no
        disk. Leaves nothing behind; the key of the trial is no partition's."""
        key, trial = f"{self.keys.prefix}:{{trial}}:claim", new_claim()
        with self._errors("cannot write to Redis"):
            await self.redis.set(key, trial, px=_TRIAL_MS)
            await self._release(keys=[key], args=[trial])

    async def set_partitions(self, count: int) -> int:
        with self._errors("cannot store the number of partitions"):
            await self.redis.set(self.keys.partitions, count, nx=True)
        return await self.partitions() or count

    async def partitions(self) -> int | None:
        with self._errors("cannot read the number of partitions"):
            count = await self.redis.get(self.keys.partitions)
        return None if count is None else whole(count, self.keys.partitions, limits.MAX_PARTITIONS)

    async def set_group(self, group: str, *, take_over: bool = False) -> str:
        with self._errors("cannot store the consumer group"):
            await self.redis.set(self.keys.group, group, nx=not take_over)
        return await self.group() or group

    async def group(self) -> str | None:
        with self._errors("cannot read the consumer group"):
            group = await self.redis.get(self.keys.group)
        return None if group is None else group.decode(errors="replace")

    async def declare_settings(
        self, fingerprint: str, known: int = 0, above: int | None = None
    ) -> Generation:
        args = [fingerprint, known, "" if above is None else above]
        with self._errors("cannot store the generation of the settings"):
            found = await self._declare(keys=[self.keys.settings], args=args)
        return Generation(*map(int, found))

    async def erase(self, digest: int, above: int) -> int:
        now_ms = await self.now_ms()
        with self._errors("cannot ask for an erasure"):
            return int(await self._erase(keys=[self.keys.erasures], args=[digest, now_ms, above]))

    async def erasures(self) -> dict[int, int]:
        with self._errors("cannot read the erasures"):
            found = await self.redis.hgetall(self.keys.erasures)
        return {int(digest): int(n) for digest, n in found.items() if digest != b"last"}

    async def forget_erasure(self, digest: int) -> None:
        with self._errors("cannot forget an erasure"):
            await self.redis.hdel(self.keys.erasures, str(digest))

    async def set_hash_key(self, key: HashKey) -> HashKey:
        with self._errors("cannot store the hash key"):
            stored = await self.redis.set(self.keys.hash_key, key_text(key), nx=True, get=True)
        return key if stored is None else hash_key(stored, self.keys.hash_key)

    async def hash_key(self) -> HashKey | None:
        with self._errors("cannot read the hash key"):
            stored = await self.redis.get(self.keys.hash_key)
        return None if stored is None else hash_key(stored, self.keys.hash_key)

    async def claim(self, partition: int) -> tuple[str, Stored]:
        claim = new_claim()
        with self._errors(f"cannot claim partition {partition}"):
            await self.redis.set(self.keys.claim(partition), claim)
        return claim, await self.read(partition)

    async def clear(self, count: int) -> None:
        """Delete so many partitions, and what is stored of them all; whoever has one is fenced."""
        for partition in range(count):
            claim, _ = await self.claim(partition)
            with self._errors(f"cannot delete partition {partition}"):
                await self.redis.delete(self.keys.state(partition))
            await self.sweep(partition, claim, set())
            await self.release(partition, claim)
        keys = self.keys
        with self._errors("cannot delete what is stored of all partitions"):
            for key in (
                keys.annotations,
                keys.acted,
                keys.keyed,
                keys.settings,
                keys.erasures,
                keys.hash_key,
                keys.partitions,
            ):
                await self.redis.delete(key)

    async def sweep(self, partition: int, claim: str, held: set[str]) -> int:
        with self._errors(f"cannot delete old blobs of partition {partition}"):
            known = await self.redis.smembers(self.keys.blobs(partition))
            orphans = [name.decode() for name in known if name.decode() not in held]
            return await self._drop(partition, claim, orphans)

    async def _drop(self, partition: int, claim: str, names: Sequence[str]) -> int:
        """Delete blobs that nothing refers to, if the claim is still ours; returns how many."""
        dropped = 0
        for some in _parts(names):
            fixed = [self.keys.claim(partition), self.keys.blobs(partition)]
            keys = [*fixed, *(self.keys.blob(partition, n) for n in some)]
            dropped += int(await self._sweep(keys=keys, args=[claim, *some]))
        return dropped

    async def blobs(self, partition: int, names: Sequence[str]) -> list[bytes | None]:
        found: list[bytes | None] = []
        with self._errors(f"cannot read partition {partition}"):
            for some in _parts(names):
                found += await self.redis.mget([self.keys.blob(partition, n) for n in some])
        return found

    async def count_blobs(self, partition: int, names: Sequence[str]) -> int:
        found = 0
        with self._errors(f"cannot look for the blobs of partition {partition}"):
            for some in _parts(names):
                found += await self.redis.exists(*[self.keys.blob(partition, n) for n in some])
        return found

    async def all_blobs(self, wanted: Mapping[int, Sequence[str]]) -> dict[int, list[bytes | None]]:
        pipeline = self.redis.pipeline(transaction=False)
        asked = [(number, some) for number, names in wanted.items() for some in _parts(names)]
        found: dict[int, list[bytes | None]] = {partition: [] for partition in wanted}
        with self._errors("cannot read blobs of partitions"):
            for partition, names in asked:  # a cluster's pipeline has no mget, but sends one
                pipeline.execute_command("MGET", *(self.keys.blob(partition, n) for n in names))
            for (partition, _), blobs in zip(asked, await pipeline.execute(), strict=True):
                found[partition] += blobs
        return found

    async def commit(self, partition: int, commit: Commit) -> Answer:
        if len(commit.manifest) > limits.MAX_MANIFEST_BYTES:
            raise StoreError(
                f"manifest of partition {partition} has {len(commit.manifest)} bytes; "
                f"at most {limits.MAX_MANIFEST_BYTES} are written in one step"
            )
        delete = commit.delete[: limits.MAX_SCRIPT_KEYS]
        keys = [
            self.keys.claim(partition),
            self.keys.state(partition),
            self.keys.blobs(partition),
            *(self.keys.blob(partition, name) for name in (*commit.blobs, *delete)),
        ]
        state = [commit.claim, commit.expected, commit.position, commit.manifest]
        with self._errors(f"cannot commit partition {partition}"):
            await self._write_blobs(partition, commit)
            answer = await self._commit(keys=keys, args=[*state, len(commit.blobs), *delete])
            if answer in (b"OK", b"ALREADY"):
                await self._drop(partition, commit.claim, commit.delete[len(delete) :])
        return Answer(answer.decode())

    async def _write_blobs(self, partition: int, commit: Commit) -> None:
        for some in _parts(list(commit.blobs)):
            await self.redis.sadd(self.keys.blobs(partition), *some)  # none without its name
            await self.redis.mset({self.keys.blob(partition, n): commit.blobs[n] for n in some})
            await self.redis.sadd(self.keys.blobs(partition), *some)  # a sweep may have taken it

    async def release(self, partition: int, claim: str) -> None:
        with self._errors(f"cannot release partition {partition}"):
            await self._release(keys=[self.keys.claim(partition)], args=[claim])

    async def read(self, partition: int) -> Stored:
        with self._errors(f"cannot read partition {partition}"):
            fields = await self.redis.hmget(self.keys.state(partition), _STATE)
        return self._stored(partition, fields)

    async def read_all(self, partitions: Sequence[int]) -> list[Stored]:
        with self._errors("cannot read partitions"):
            pipeline = self.redis.pipeline(transaction=False)
            for partition in partitions:
                pipeline.hmget(self.keys.state(partition), _STATE)
            found = await pipeline.execute()
        return [self._stored(p, fields) for p, fields in zip(partitions, found, strict=True)]

    def _stored(self, partition: int, fields: Sequence[bytes | None]) -> Stored:
        position, manifest, seen_ms = fields
        name = f"{self.keys.state(partition)} seen_ms"
        return Stored(position or b"", manifest or b"", whole(seen_ms or b"0", name, limits.MAX_MS))

    async def standing(self, partitions: Sequence[int]) -> list[tuple[str | None, bytes]]:
        with self._errors("cannot read the owners of partitions"):
            pipeline = self.redis.pipeline(transaction=False)
            for partition in partitions:
                pipeline.get(self.keys.claim(partition))
                pipeline.hget(self.keys.state(partition), "position")
            found = await pipeline.execute()
        claims = [claim.decode() if claim else None for claim in found[::2]]
        return list(zip(claims, [position or b"" for position in found[1::2]], strict=True))

    async def owner(self, partition: int) -> str | None:
        with self._errors(f"cannot read the owner of partition {partition}"):
            claim = await self.redis.get(self.keys.claim(partition))
        return None if claim is None else claim.decode()

    async def set_keyed(self, found: Mapping[str, bool]) -> None:
        known = await self.keyed()
        changed = {
            kind: int(by) for kind, by in found.items() if known.get(kind) not in (by, False)
        }
        if changed:
            with self._errors("cannot store how topics are keyed"):
                await self.redis.hset(self.keys.keyed, mapping=changed)

    async def keyed(self) -> dict[str, bool]:
        with self._errors("cannot read how topics are keyed"):
            found = await self.redis.hgetall(self.keys.keyed)
        return {log.decode(): text == b"1" for log, text in found.items()}

    async def report(self, worker_report: WorkerReport) -> str:
        with self._errors("cannot report"):
            seconds, _ = await self._time()
            before = await self.redis.hget(self.keys.workers, worker_report.worker)
            data = msgspec.json.encode([seconds, worker_report])
            await self.redis.hset(self.keys.workers, worker_report.worker, data)
            if self._reports % _REPORTS_PER_TIDYING == 0:
                reports = decoded(seconds, await self.redis.hgetall(self.keys.workers))
                gone = [t.worker for t in reports if t.silent_seconds > _FORGET_SECONDS]
                if gone:
                    await self.redis.hdel(self.keys.workers, *gone)
            self._reports += 1
        replaced = decoded(seconds, {b"": before}) if before else []
        return replaced[0].process if replaced else ""

    async def _time(self) -> tuple[int, int]:
        """The clock of the node that holds the reports: of a cluster always the same one's."""
        if not self.settings.cluster:
            return cast(tuple[int, int], await self.redis.time())
        await self.redis.initialize()
        node = self.redis.get_node_from_key(self.keys.workers)
        return cast(tuple[int, int], await self.redis.time(target_nodes=node))

    async def now_ms(self) -> int:
        with self._errors("cannot read the clock of Redis"):
            seconds, micros = await self._time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def reports(self) -> list[WorkerReport]:
        with self._errors("cannot read the reports of workers"):
            seconds, _ = await self._time()
            return decoded(seconds, await self.redis.hgetall(self.keys.workers))

    async def leave(self, worker: str) -> None:
        with self._errors("cannot delete the report of a worker"):
            await self.redis.hdel(self.keys.workers, worker)

    async def annotate(self, mark: Annotation) -> str:
        name = new_claim()
        with self._errors("cannot store a mark"):
            await self.redis.hset(self.keys.annotations, name, msgspec.json.encode(mark))
        if gone := beyond_bound(await self.annotations(), await self.now_ms()):
            with self._errors("cannot delete old marks"):
                await self.redis.hdel(self.keys.annotations, *gone)
        return name

    async def forget_annotation(self, name: str) -> bool:
        with self._errors("cannot delete a mark"):
            return bool(await self.redis.hdel(self.keys.annotations, name))

    async def annotations(self) -> dict[str, Annotation]:
        with self._errors("cannot read the marks"):
            return stored_annotations(await self.redis.hgetall(self.keys.annotations))

    async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        args = [who, lease_ms, *(each for pair in changes.items() for each in pair)]
        with self._errors("cannot write what is acted on"):
            return bool(await self._lead(keys=[self.keys.leader, self.keys.acted], args=args))

    async def acted(self) -> dict[str, bytes]:
        with self._errors("cannot read what was acted on"):
            found = await self.redis.hgetall(self.keys.acted)
        return {name.decode(errors="replace"): data for name, data in found.items()}

    async def close(self) -> None:
        await cast(Callable[[], Awaitable[None]], self.redis.aclose)()
