"""``streamer export`` as a process with few files, and more clients than that."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from streamer.settings import limits
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST
from tests.support.agreement import DOCUMENTS
from tests.support.exporters import NAME, fill, settings_of
from tests.support.fixtures import COMMAND_SECONDS
from tests.support.lanes import long
from tests.support.workers import as_toml

pytestmark = long

FILES = 256
HALF_OPEN = 300
PROMPT_SECONDS = 3.0
"""Longest wait for a page that computes nothing, and for a scrape, on a machine that is busy."""


class Exporting(NamedTuple):
    port: int
    errors: Path
    """What it writes to stderr."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def lines(self) -> list[str]:
        """Its warnings, but not those of the Kafka client, for which there is no broker."""
        text = self.errors.read_text(encoding="utf-8")
        return [line for line in text.splitlines() if "localhost:9092" not in line]


@pytest.fixture
async def exporting(redis_url: str, redis_prefix: str, tmp_path: Path) -> AsyncIterator[Exporting]:
    settings = settings_of(redis_url, redis_prefix)
    store = RedisStore(settings.redis)
    await fill(store, settings)
    await store.close()
    document = {
        **DOCUMENTS[NAME],
        "redis": {"url": redis_url, "prefix": redis_prefix},
        "exporter": {"port": 0},
    }
    config, errors = tmp_path / "streamer.toml", tmp_path / "stderr"
    config.write_text(as_toml(document))
    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streamer", "export", "-c", str(config)),
            stdout=subprocess.PIPE,
            stderr=stderr,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
        )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), COMMAND_SECONDS)
        yield Exporting(int(line.decode().split(":")[-1].removesuffix("/metrics\n")), errors)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), COMMAND_SECONDS)


@contextlib.asynccontextmanager
async def clients(port: int, count: int, sent: bytes) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Clients that stay; those that are closed by the exporter at once are among them."""
    streams = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection(HOST, port)
        with contextlib.suppress(ConnectionError):
            writer.write(sent)
        streams.append((reader, writer))
    yield [reader for reader, _ in streams]
    for _, writer in streams:
        writer.close()


async def page(url: str, path: str) -> tuple[int, float]:
    """Status and seconds, over a connection of its own."""
    started = time.monotonic()
    async with aiohttp.ClientSession() as session, session.get(url + path) as answer:
        await answer.read()
        return answer.status, time.monotonic() - started


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: local"])
async def test_more_clients_than_files_keep_nobody_out(exporting: Exporting, sent: bytes) -> None:
    async with clients(exporting.port, HALF_OPEN, sent) as silent:
        for path in ("/healthz", "/metrics", "/healthz", "/api/health"):
            status, seconds = await page(exporting.url, path)
            assert (status, seconds < PROMPT_SECONDS) == (200, True), (path, seconds)
        ends = [asyncio.create_task(reader.read()) for reader in silent]
        _, still_open = await asyncio.wait(ends, timeout=limits.HEADER_SECONDS + 3)
        assert not still_open
        await asyncio.gather(*ends, return_exceptions=True)
    lines = exporting.lines()
    assert 1 <= len(lines) <= 2, lines
    assert not [line for line in lines if "Traceback" in line]


async def test_a_scrape_does_not_wait_for_others(exporting: Exporting) -> None:
    await page(exporting.url, "/metrics")
    for path, answered in (("/api/readings", 200), ("/readyz", 503), ("/metrics", 200)):
        asked = [asyncio.create_task(page(exporting.url, path)) for _ in range(150)]
        asked += [asyncio.create_task(page(exporting.url, f"{path}?window=1h")) for _ in range(150)]
        await asyncio.sleep(0.05)
        status, seconds = await page(exporting.url, "/metrics")
        assert (status, seconds < PROMPT_SECONDS) == (200, True), (path, seconds)
        statuses = [status for status, _ in await asyncio.gather(*asked)]
        assert answered in statuses  # without Kafka it is not ready
        assert set(statuses) <= {answered, 503}
