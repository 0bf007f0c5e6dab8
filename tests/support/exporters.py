"""An exporter over a real Redis that holds two partitions and two workers' reports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from unittest.mock import patch

import aiohttp
from aiohttp import web

from streamer.kafka.log_ends import LogEnds
from streamer.query.readings import ReadingSet, readout
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.load import parse
from streamer.settings.model import Settings, Topics
from streamer.state import worker_report
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store
from streamer.state.worker_report import WorkerReport
from streamer.testing.embedded import HOST
from tests.support.agreement import DOCUMENTS, log_records, to_log
from tests.support.engines import chunks_of
from tests.support.journals import Run, commit, start
from tests.support.site import ends_after

NAME, PARTITIONS = "few values", 2
DEFAULT_TOPICS = Topics()


def settings_of(url: str, prefix: str, topics: Topics = DEFAULT_TOPICS) -> Settings:
    redis = {"url": url, "prefix": prefix}
    return parse({**DOCUMENTS[NAME], "redis": redis, "kafka": {"topics": topics.named}})


async def fill(store: Store, settings: Settings) -> Run:
    """State of two partitions, and two workers' reports."""
    records = log_records(3, NAME, 400, PARTITIONS)
    run = await start(store, settings, PARTITIONS)
    for chunk in chunks_of(to_log(records), 200, 1):
        run.engines.feed(chunk)
    run.engines.finish()
    for number in range(PARTITIONS):
        await commit(store, run, number)
    report = WorkerReport("host:1:a", {0: "owned"}, fenced=2)
    report.commit_took(0.02)
    await store.report(report)
    await store.report(WorkerReport("host:2:b", {1: "owned"}))
    return run


class Site(NamedTuple):
    """An exporter that listens, and what it should show."""

    url: str
    settings: Settings
    expected: ReadingSet
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
    """An exporter over a filled Redis, whose workers said when it was filled that they run."""
    settings = settings_of(redis_url, redis_prefix)
    store = RedisStore(settings.redis)
    run = await fill(store, settings)
    manifests, _ = await manifests_of(store, PARTITIONS)
    bounds = ends_after(manifests, {"clicks/0": 3})
    exporter = Exporter(settings, store, LogEnds(bounds))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    port = await listen(runner, HOST, 0)
    views = exporter.reader.views
    lasting = patch.object(worker_report, "_SILENT_SECONDS", 600)  # however slow the machine is
    async with aiohttp.ClientSession() as session:
        expected = readout(settings, run.engines.catalogue, views)
        with lasting:
            yield Site(f"http://{HOST}:{port}", settings, expected, session)
    await runner.cleanup()
