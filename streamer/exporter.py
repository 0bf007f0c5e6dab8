"""The exporter: ``/metrics`` and the JSON API over what the store holds. Any number may run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from streamer import exposition
from streamer.config import Settings
from streamer.errors import StreamerError
from streamer.guard import guards
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.processor import Health, health, processor_metrics
from streamer.readout.readout import Reading, Readout, readout
from streamer.store.base import Store
from streamer.store.reader import Reader
from streamer.telemetry import Telemetry

_CLOSE_MS = 60_000
"""Stream time within this of the store's clock, when it last moved, is live traffic."""
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>streamer</title>
<h1>streamer</h1><ul><li><a href="/metrics">/metrics</a><li><a href="/api/readings">/api/readings
</a> (also ?window=5m&amp;variant=A, ?at=stream)<li><a href="/readyz">/readyz</a></ul></html>"""


class Exporter:
    """Reads the store at scrape time; readings are computed in a thread."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.catalogue = Catalogue(settings)
        self.reader = Reader(store)
        self.reports: list[Telemetry] = []
        self.health = Health()
        self.readout_seconds = 0.0
        self._lock = asyncio.Lock()

    async def read(self, at_stream: bool = False) -> Readout:
        """The present readings; StreamerError where the store cannot be read."""
        async with self._lock:
            started = time.perf_counter()
            await self.reader.refresh()
            now_ms, self.reports = await self.store.now_ms(), await self.store.reports()
            self.health = health(self.reader, self.reports)
            live_ms = None if at_stream else self._live_ms(now_ms)
            result = await asyncio.to_thread(
                readout, self.settings, self.catalogue, self.reader.views, live_ms
            )
            self.readout_seconds = time.perf_counter() - started
            return result

    def _live_ms(self, now_ms: int) -> int | None:
        """Stream time plus the time that live traffic has been silent, if it was live and all of
        it has been read: so that windows drain."""
        reader = self.reader
        is_live = abs(reader.moved_ms - reader.stream_ms) <= _CLOSE_MS
        lags = [
            lag
            for report in self.reports
            if report.is_present
            for lag in report.lag_records.values()
        ]
        if not is_live or not lags or any(lags):
            return None
        return reader.stream_ms + max(0, now_ms - reader.moved_ms)

    def collect(self) -> Iterator[Metric]:
        """For a Prometheus registry: the processor's metrics, and this exporter's own."""
        yield from processor_metrics(self.reader, self.reports, self.health)
        name, text = f"{PREFIX}readout_seconds", "Time the last readout took."
        yield GaugeMetricFamily(name, text, value=self.readout_seconds)

    # Pages -------------------------------------------------------------------------------------

    async def metrics(self, request: web.Request) -> web.Response:
        result = await self.read(request.query.get("at") == "stream")
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        body = exposition.render(result).encode() + generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def readings(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        at = query.pop("at", None)
        if at not in (None, "stream"):
            text = f"at = {at!r}: only 'stream' is known"
            return web.json_response({"error": text}, status=400)
        names = {"name", "window", *self.settings.dimension_names, *_EXTRA_LABELS}
        unknown = set(query) - names
        if unknown:
            text = f"unknown parameter {min(unknown)!r}; known are at, {', '.join(sorted(names))}"
            return web.json_response({"error": text}, status=400)
        result = await self.read(at == "stream")
        chosen = [r for r in result.readings if _matches(r, query)]
        return web.json_response(Readout.of(result.stream_ms, chosen).as_json())

    async def healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        try:
            await self.read()
        except StreamerError as error:
            return web.Response(status=503, text=f"not ready: {error}\n")
        if not self.health.is_ready:
            text = "\n".join(["not ready:", *self.health.problems]) + "\n"
            return web.Response(status=503, text=text)
        return web.Response(text="ready\n")

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text=_PAGE, content_type="text/html")

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[*guards(self.settings.exporter), _errors])
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get("/api/readings", self.readings)
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/", self.page)
        app.cleanup_ctx.append(self._first_load)
        return app

    async def _first_load(self, app: web.Application) -> AsyncIterator[None]:
        with contextlib.suppress(StreamerError):  # /readyz says so
            await self.read()
        yield
        await self.store.close()


_EXTRA_LABELS = (
    *("quantile", "feedback", "maturity", "position", "topic", "reason", "dimension"),
    *("k", "over", "definition", "convention"),
)


def _matches(reading: Reading, query: dict[str, str]) -> bool:
    return all(
        reading.name in (value, PREFIX + value)
        if key == "name"
        else reading.labels.get(key) == value
        for key, value in query.items()
    )


@web.middleware
async def _errors(request: web.Request, handler: object) -> web.StreamResponse:
    try:
        return await handler(request)  # type: ignore[operator,no-any-return]
    except StreamerError as error:
        return web.Response(status=503, text=f"{error}\n")
