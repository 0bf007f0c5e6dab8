"""``streamer inspect``: what is stored of each partition, in words; or with ``--verify`` every blob
read, and compared with its checksum."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from streamer._core import TOTAL_RING
from streamer.cli.terminal import (
    Grid,
    TextColumn,
    console_of,
    name_column,
    print_document,
    print_line,
    say,
    text_column,
    waiting,
)
from streamer.encoding.packed import ring_and_pane
from streamer.errors import CodecError, StoreError, UsageError
from streamer.formatting import counted, moment
from streamer.ingest.hash_key import key_text
from streamer.metrics.rings import Ring, rings_of
from streamer.settings import limits
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state import codec
from streamer.state.manifest import Manifest, Texts, decode
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store

_AT_ONCE = 100
"""Blobs that are read together."""


def main(args: argparse.Namespace) -> int:
    """Print what is stored, or with ``--verify`` check it: then 1 where anything is damaged."""
    settings = load(args.config, os.environ)
    if args.hash_key:
        print_line(asyncio.run(_hash_key(settings)))
        return 0
    if args.verify:
        return asyncio.run(_verify(settings, args.partition, args.json))
    with waiting("reading the state in Redis"):
        partitions = asyncio.run(_read(settings, args.partition))
    if args.json:
        print_document(json.dumps(partitions, indent=2) + "\n")
    else:
        _print(partitions)
    return 0


async def _hash_key(settings: Settings) -> str:
    """The key of the prefix; StoreError where there is none."""
    store = RedisStore(settings.redis)
    try:
        key = await store.hash_key()
    finally:
        await store.close()
    if key is None:
        raise StoreError(f"{store.keys.hash_key} is not in Redis: start a worker, which creates it")
    return key_text(key)


async def _read(settings: Settings, partition: int | None) -> list[dict[str, Any]]:
    store = RedisStore(settings.redis)
    try:
        return [await _partition(settings, store, n) for n in await _numbers(store, partition)]
    finally:
        await store.close()


async def _numbers(store: RedisStore, partition: int | None) -> Sequence[int]:
    """The partitions asked for."""
    count = await store.partitions() or 0
    if partition is not None and not 0 <= partition < count:
        raise UsageError(f"no partition {partition}: the state has {count}, numbered from 0")
    return range(count) if partition is None else [partition]


async def _verify(settings: Settings, partition: int | None, is_json: bool) -> int:
    store = RedisStore(settings.redis)
    try:
        with waiting("reading all blobs in Redis"):
            checks = [await verify(store, n) for n in await _numbers(store, partition)]
    finally:
        await store.close()
    if is_json:
        print_document(json.dumps([asdict(verified) for verified in checks], indent=2) + "\n")
    else:
        for line in [*map(str, checks)] or ["nothing is stored yet"]:
            print_line(line)
    return int(any(verified.damage for verified in checks))


async def _partition(settings: Settings, store: RedisStore, partition: int) -> dict[str, Any]:
    stored = await store.read(partition)
    owner = await store.owner(partition)
    reports = await store.reports()
    workers = [r.worker for r in reports if r.is_present and r.owned.get(partition) == "owned"]
    about: dict[str, Any] = {"partition": partition, "claim": owner, "workers": workers}
    if not stored.manifest:
        return {**about, "commit": None}
    manifest = decode(stored.manifest)
    return {
        **about,
        "commit": manifest.commit,
        "committed": _moment(stored.seen_ms),
        "manifest_bytes": len(stored.manifest),
        "stream_time": _moment(manifest.stream_ms),
        "topics": {kind: _topic(manifest, kind) for kind in manifest.topics},
        "windows": _windows(settings, manifest),
        "tables": {
            name: {"blobs": len(refs), "rows": sum(r.rows for r in refs)}
            for name, refs in manifest.tables.items()
        },
        "combinations": manifest.counters["combinations"],
        "dead_letters": manifest.dead_letters,
        "dead_letters_omitted": manifest.dead_letters_omitted,
    }


def _topic(manifest: Manifest, kind: str) -> dict[str, Any]:
    topic = manifest.topics[kind]
    return {
        "next_offset": topic.next_offset,
        "arrival": _moment(topic.arrival_ms),
        **{name: topic.counters[name] for name in ("accepted", "duplicates", "late")},
        "rejected": topic.rejected,
        "lost": topic.lost,
        "lost_ranges": topic.gaps,
        "restarts": topic.restarts,
    }


def _windows(settings: Settings, manifest: Manifest) -> dict[str, dict[str, Any]]:
    windows: dict[str, dict[str, Any]] = {}
    stored: dict[int, list[int]] = defaultdict(list)
    for packed in (pane for panes in manifest.panes.values() for pane in panes):
        ring_number, pane = ring_and_pane(packed)
        stored[ring_number].append(pane)
    for ring_number, ring in enumerate(rings_of(settings), 1):
        windows[ring.label] = _ring(stored[ring_number], ring)
        if day_before := stored[TOTAL_RING + ring_number]:
            windows[f"{ring.label}, and a day"] = _ring(day_before, ring)
    windows["since start"] = {"panes": len(stored[TOTAL_RING]), "oldest": None, "newest": None}
    return windows


def _ring(panes: list[int], ring: Ring) -> dict[str, Any]:
    return {
        "panes": len(panes),
        "oldest": _moment(min(panes) * ring.pane_ms) if panes else None,
        "newest": _moment(max(panes) * ring.pane_ms) if panes else None,
    }


def _moment(epoch_ms: int) -> str | None:
    return moment(epoch_ms) if epoch_ms > 0 else None


def _print(partitions: list[dict[str, Any]]) -> None:
    console = console_of()
    if not partitions:
        say(console, "nothing is stored yet")
    for about in partitions:
        if about["commit"] is None:
            say(console, f"partition {about['partition']}: nothing committed yet")
            continue
        owner = ", ".join(about["workers"]) or "no live worker"
        say(
            console,
            f"partition {about['partition']}: commit {about['commit']} at {about['committed']}, "
            f"stream time {about['stream_time']}, owner {owner} (claim {about['claim']})",
        )
        _topics(about["topics"]).print(console)
        for kind, t in about["topics"].items():
            for first, last in t["lost_ranges"]:
                say(console, f"{kind}: records {first} to {last} were lost", indent=2)
            if t["restarts"]:
                times = counted(t["restarts"], "time")
                say(console, f"{kind}: the log was truncated or recreated {times}", indent=2)
        for label, w in about["windows"].items():
            span = f", {w['oldest']} to {w['newest']}" if w["oldest"] else ""
            say(console, f"window {label}: {counted(w['panes'], 'pane')}{span}", indent=2)
        for kind, t in about["tables"].items():
            rows, blobs = counted(t["rows"], "row"), counted(t["blobs"], "blob")
            say(console, f"table {kind}: {rows} in {blobs}", indent=2)


def _topics(topics: dict[str, dict[str, Any]]) -> Grid:
    counts = map(TextColumn, ("accepted", "duplicates", "late"))
    columns = (
        name_column("topic"),
        TextColumn("next offset"),
        TextColumn("arrival clock"),
        *counts,
    )
    table = Grid(*columns, text_column("rejected"))
    for kind, t in topics.items():
        rejected = ", ".join(f"{k} {n:,}" for k, n in t["rejected"].items()) or "0"
        numbers = (f"{t[key]:,}" for key in ("accepted", "duplicates", "late"))
        table.add(kind, f"{t['next_offset']:,}", t["arrival"] or "", *numbers, rejected)
    return table


@dataclass
class Verified:
    """What was read of one partition. ``damage``: a blob, or `manifest`, and what is wrong."""

    partition: int
    blobs: int = 0
    bytes: int = 0
    damage: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.damage:
            return f"partition {self.partition}: {self.blobs} blobs of {self.bytes} bytes are whole"
        wrong = "; ".join(f"{name}: {what}" for name, what in sorted(self.damage.items())[:5])
        return (
            f"partition {self.partition}: {len(self.damage)} of {self.blobs + 1} stored parts are "
            f"damaged or missing: {wrong}; a worker counts a damaged partition again from Kafka, "
            "and waits at one of another version"
        )


async def verify(store: Store, partition: int) -> Verified:
    """Read a partition whole; again where it was committed meanwhile, and blobs left."""
    for _ in range(limits.READ_ATTEMPTS):
        verified, position = Verified(partition), (await store.read(partition)).position
        await _read_blobs(store, partition, verified)
        if not verified.damage or (await store.read(partition)).position == position:
            break
    return verified


async def _read_blobs(store: Store, partition: int, verified: Verified) -> None:
    manifest = (await store.read(partition)).manifest
    if not manifest:
        return
    try:
        decoded = decode(manifest)
        names = sorted(decoded.blob_names())
    except CodecError as error:
        verified.damage["manifest"] = str(error)
        return
    for start in range(0, len(names), _AT_ONCE):
        batch = names[start : start + _AT_ONCE]
        for name, data in zip(batch, await store.blobs(partition, batch), strict=True):
            verified.blobs += 1
            verified.bytes += len(data or b"")
            try:
                if data is None:
                    raise CodecError("it is missing")
                read = Texts.decode if name == decoded.texts else codec.decode
                read(data, name)
            except CodecError as error:
                verified.damage[name] = str(error)
