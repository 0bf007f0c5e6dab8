"""An exporter over a real Redis that holds two partitions and two workers' reports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from streamer.config import Settings, parse
from streamer.embedded import HOST
from streamer.ends import LogEnds
from streamer.exporter import Exporter
from streamer.listener import listen
from streamer.readout.readout import Readout, readout
from streamer.store.base import Store
from streamer.store.reader import manifests_of
from streamer.store.redis import RedisStore
from streamer.telemetry import Telemetry
from streamer.testing import chunks_of
from tests.agreement import DOCUMENTS, random_records, to_log
from tests.journal_suite import Run, commit, start
from tests.site import ends_after

NAME, PARTITIONS = "few values", 2


def settings_of(url: str, prefix: str) -> Settings:
    return parse({**DOCUMENTS[NAME], "redis": {"url": url, "prefix": prefix}})


async def fill(store: Store, settings: Settings) -> Run:
    """State of two partitions, and two workers' reports."""
    records, _ = random_records(3, NAME, 800, PARTITIONS)
    run = await start(store, settings, PARTITIONS)
    for chunk in chunks_of(to_log(records), 200, 1):
        run.engines.feed(chunk)
    run.engines.finish()
    for number in range(PARTITIONS):
        await commit(store, run, number)
    told = Telemetry("host:1:a", {0: "owned"}, fenced=2)
    told.commit_took(0.02)
    await store.report(told)
    await store.report(Telemetry("host:2:b", {1: "owned"}))
    return run


class Site(NamedTuple):
    """An exporter that listens, and what it should show."""

    url: str
    settings: Settings
    expected: Readout
    session: aiohttp.ClientSession

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.url + path) as answer:
            return answer.status, await answer.text()

    async def readings(self, query: str = "") -> list[dict[str, Any]]:
        status, text = await self.get(f"/api/readings{query}")
        assert status == 200, text
        document = json.loads(text)
        assert document["stream_time_ms"] == self.expected.stream_ms
        found: list[dict[str, Any]] = document["readings"]
        return found


@contextlib.asynccontextmanager
async def serving(redis_url: str, redis_prefix: str) -> AsyncIterator[Site]:
    """An exporter over a filled Redis."""
    settings = settings_of(redis_url, redis_prefix)
    store = RedisStore(settings.redis)
    run = await fill(store, settings)
    manifests, _ = await manifests_of(store, PARTITIONS)
    bounds = ends_after(manifests, {"clicks/0": 3})
    exporter = Exporter(settings, store, LogEnds(bounds))
    runner = web.AppRunner(exporter.app())
    await runner.setup()
    port = await listen(runner, HOST, 0)
    views = exporter.reader.views
    async with aiohttp.ClientSession() as session:
        expected = readout(settings, run.engines.catalogue, views)
        yield Site(f"http://{HOST}:{port}", settings, expected, session)
    await runner.cleanup()
