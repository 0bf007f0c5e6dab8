"""``streamer inspect --verify`` of a state that another version wrote."""

from __future__ import annotations

from typing import Any

import cramjam
import msgspec
import pytest

from streamer.cli import inspect
from streamer.cli.inspect import verify
from streamer.settings.model import Settings
from streamer.state.manifest import VERSION, decode
from streamer.state.memory import MemoryStore
from streamer.state.store import Stored
from tests.support.scripted import Bench, running, until


class Store(MemoryStore):
    async def close(self) -> None:
        """Nothing is open."""


def rewritten(manifest: bytes, version: int, has_checksum: bool) -> bytes:
    """The manifest as if that version had written it."""
    found = decode(manifest)
    found.version = version
    if has_checksum:
        return found.encode()
    return bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode(found)))


async def stored_by(version: int, has_checksum: bool = True) -> Store:
    store = Store()
    await store.set_partitions(1)
    async with running(Bench(store)) as bench:
        await until(lambda: bench.task.epochs, "recovered")
        bench.offer("impressions", 10, 1_700_000_000_000)
        await until(lambda: bench.task.committed.get("impressions") == 10, "committed")
    held = store.states[0]
    manifest = rewritten(held.manifest, version, has_checksum)
    store.states[0] = Stored(held.position, manifest, held.seen_ms)
    return store


async def test_a_state_of_this_version_is_whole() -> None:
    found = await verify(await stored_by(VERSION), 0)
    assert found.damage == {}
    assert found.blobs > 0


@pytest.mark.parametrize(
    ("version", "has_checksum"), [(VERSION + 1, True), (VERSION - 2, True), (6, False)]
)
async def test_a_state_of_another_version_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: int,
    has_checksum: bool,
) -> None:
    store: Any = await stored_by(version, has_checksum)
    monkeypatch.setattr(inspect, "RedisStore", lambda redis: store)
    assert await inspect._verify(Settings(), None, False) == 1
    said = capsys.readouterr().out
    assert f"manifest: manifest of version {version}; this is version {VERSION}" in said
    assert "use another redis.prefix" in said
    assert "and waits at one of another version" in said
