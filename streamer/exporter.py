"""The exporter: ``/metrics``, JSON and a page over what the store holds. Any number may run."""

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
from streamer.api import Api, errors
from streamer.config import Settings
from streamer.errors import StreamerError
from streamer.guard import guards
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.processor import Health, health, processor_metrics
from streamer.readout.readout import Readout, readout
from streamer.store.base import Store
from streamer.store.reader import Reader
from streamer.telemetry import Telemetry
from streamer.web import add_pages

_CLOSE_MS = 60_000
"""Stream time within this of the store's clock, when it last moved, is live traffic."""


class Exporter:
    """Reads the store at scrape time; readings are computed in a thread."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.catalogue = Catalogue(settings)
        self.reader = Reader(store)
        self.reports: list[Telemetry] = []
        self.health = Health()
        self.readout_seconds = 0.0
        self._live: int | None = None
        self._last: tuple[tuple[int, int | None], Readout] = (-1, None), Readout(0, [])
        self.at_ms = 0
        """Time at which windows were read last."""
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Bring what is known of the store up to date; StreamerError where it cannot be read."""
        async with self._lock:
            await self._refresh()

    async def _refresh(self) -> None:
        await self.reader.refresh()
        now_ms, self.reports = await self.store.now_ms(), await self.store.reports()
        self.health = health(self.reader, self.reports)
        self._live = self._live_ms(now_ms)
        self.at_ms = max(self.reader.stream_ms, self._live or 0)

    async def read(self, at_stream: bool = False) -> Readout:
        """The present readings, computed anew where anything but a part of a second has passed;
        StreamerError where the store cannot be read."""
        async with self._lock:
            started = time.perf_counter()
            await self._refresh()
            live_ms = None if at_stream else self._live
            state = (self.reader.updates, live_ms and live_ms // 1000)
            if state != self._last[0]:
                result = await asyncio.to_thread(
                    readout, self.settings, self.catalogue, self.reader.views, live_ms
                )
                self._last = state, result
                self.readout_seconds = time.perf_counter() - started
            return self._last[1]

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

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[*guards(self.settings.exporter), errors])
        app.router.add_get("/metrics", self.metrics)
        Api(self).add_routes(app)
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        add_pages(app)
        app.cleanup_ctx.append(self._first_load)
        return app

    async def _first_load(self, app: web.Application) -> AsyncIterator[None]:
        with contextlib.suppress(StreamerError):  # /readyz says so
            await self.read()
        yield
        await self.store.close()
