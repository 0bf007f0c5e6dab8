"""Pages that are served to a browser: by an exporter over made-up visitors, or from documents."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
import tomllib
import urllib.request
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec
from aiohttp import web

from streamer.cli import demo
from streamer.cli.demo_log import replay
from streamer.errors import StreamerError
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.server.web import add_pages
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.manifest import Manifest
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore
from streamer.state.worker_report import WorkerReport
from streamer.testing.embedded import HOST
from tests.support.engines import LogRecord, chunks_of
from tests.support.journals import Run, commit, start
from tests.support.visitors import Event

T = TypeVar("T")
PARTITIONS = 2
DEMO_MS = 1_795_960_800_000
"""When the demo begins: 14:00 UTC."""
REPORT_SECONDS = 1.0
"""How often the made-up worker reports: one that is silent for 15 s is not present."""


class Served:
    """An application that listens, in a thread with a loop of its own: a browser's driver may block
    the test. ``url`` is its address."""

    def __init__(self) -> None:
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def app(self) -> web.Application:
        """What is served."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, run in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def get(self, path: str) -> Any:
        """A document of the JSON API."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)

    async def _begin(self) -> None:
        self._runner = web.AppRunner(self.app())
        await self._runner.setup()
        self.url = f"http://{HOST}:{await listen(self._runner, HOST, 0)}"

    async def _end(self) -> None:
        await self._runner.cleanup()


class Site(Served):
    """An exporter over what events add to a Redis. ``lag``: records that wait in made-up logs, by
    "kind/partition"."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.lag: dict[str, int] = {}
        self.has_stopped = False
        """Whether the made-up worker reports no more, and the clock goes on as it is."""
        self.ends = LogEnds()
        self.newest_ms = 0
        """Time of the newest event, at which the exporter's clock stands."""
        self._offsets: dict[tuple[str, int], int] = {}
        self._run: Run | None = None

    def app(self) -> web.Application:
        return application(Exporter(self.settings, _Clock(self), self.ends))

    def add(self, events: Sequence[Event]) -> None:
        """Count events, in order of time, and commit."""
        self.call(self._add(events))

    async def _begin(self) -> None:
        self.store = RedisStore(self.settings.redis)
        await super()._begin()
        self._reporting = asyncio.create_task(self._report_on())

    async def _end(self) -> None:
        self._reporting.cancel()
        await super()._end()
        await self.store.close()

    async def _report_on(self) -> None:
        while True:
            if self._run is not None and not self.has_stopped:
                with contextlib.suppress(StreamerError):
                    await self._report()
            await asyncio.sleep(REPORT_SECONDS)

    async def _report(self) -> None:
        owned = dict.fromkeys(range(PARTITIONS), "owned")
        await self.store.report(WorkerReport("worker:1", owned))
        manifests, _ = await manifests_of(self.store, PARTITIONS)
        self.ends.bounds = ends_after(manifests, self.lag)

    async def _add(self, events: Sequence[Event]) -> None:
        self.newest_ms = max(self.newest_ms, *(event["ts"] for event in events))
        if self._run is None:
            self._run = await start(self.store, self.settings, PARTITIONS)
            await self._report()
        for chunk in chunks_of(self._records(events), 2000, 1):
            self._run.engines.feed(chunk)
        self._run.engines.finish()
        for number in range(PARTITIONS):
            await commit(self.store, self._run, number)

    def _records(self, events: Sequence[Event]) -> Iterator[LogRecord]:
        for event in events:
            kind = LINE_TYPES[event["type"]]
            partition = sum(event["user_id"].encode()) % PARTITIONS
            offset = self._offsets.get((kind, partition), 0)
            self._offsets[kind, partition] = offset + 1
            yield LogRecord(kind, partition, offset, event["ts"], json.dumps(event).encode())


class _Clock(RedisStore):
    """The store of a site, whose clock stands at its newest event while its worker works."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.settings.redis)
        self._site = site

    async def now_ms(self) -> int:
        return await super().now_ms() if self._site.has_stopped else self._site.newest_ms


class Demo(Served):
    """The page of the demo as it begins: its two weeks of the past, counted in memory as a file."""

    def app(self) -> web.Application:
        about = f"A demo: {demo.ABOUT[0]} Planted: {demo.ABOUT[1]}"
        return application(Exporter(self._settings, self._store, files=["demo"], about=about))

    async def _begin(self) -> None:
        counted = replayed_demo(DEMO_MS)
        self._settings, self._store = counted.settings, await counted.store()
        await super()._begin()


def replayed_demo(now_ms: int) -> Replay:
    """The traffic of a demo that begins now, counted with its settings."""
    counted = Replay(parse(tomllib.loads(demo.document("-:9092", "redis://-", now_ms))))
    encode = msgspec.json.Encoder().encode
    past = replay(itertools.islice(demo.legs(now_ms, 200), 2))
    lines = [(LINE_TYPES[e["type"]], e["ts"], encode(e)) for e in past if e["ts"] <= now_ms]
    for first in range(0, len(lines), 5000):
        counted.feed(lines[first : first + 5000])
    counted.finish()
    return counted


class Documents(Served):
    """The page over documents of the JSON API that no exporter has to give.

    They are (status, document) by path, or by path and query, and may be changed while they are
    served.
    """

    def __init__(self, documents: Mapping[str, tuple[int, Any]]) -> None:
        super().__init__()
        self.documents = dict(documents)
        self.seconds = 0.0
        """How long each answer takes."""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/{path:.*}", self._answer)
        add_pages(app)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.seconds)
        missing = 404, {"error": f"nothing at {request.path}"}
        found = self.documents.get(request.path, missing)
        status, document = self.documents.get(request.path_qs, found)
        return web.json_response(document, status=status)


def ends_after(
    manifests: Mapping[int, Manifest], lag: Mapping[str, int]
) -> dict[tuple[str, int], Bounds]:
    """Bounds of logs of which so many records, by "kind/partition", are not stored yet."""
    ends = {
        (kind, number): topic.next_offset + lag.get(f"{kind}/{number}", 0)
        for number, manifest in manifests.items()
        for kind, topic in manifest.topics.items()
    }
    return {place: Bounds(0, end, end) for place, end in ends.items()}
