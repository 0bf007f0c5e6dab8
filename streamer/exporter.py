"""The exporter: ``/metrics`` and the JSON API over what the store holds. Any number may run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from streamer import exposition
from streamer.config import Settings
from streamer.errors import StreamerError
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.readout.readout import Reading, Readout, readout
from streamer.store.base import Store
from streamer.store.manifest import Manifest
from streamer.store.reader import Reader
from streamer.telemetry import COMMIT_BUCKETS_SECONDS, Telemetry

_CLOSE_MS = 60_000
"""Stream time within this of the store's clock, when it last moved, is live traffic."""
_BOUNDS = [*map(str, COMMIT_BUCKETS_SECONDS), "+Inf"]
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
        self.readout_seconds = 0.0
        self._lock = asyncio.Lock()

    async def read(self, at_stream: bool = False) -> Readout:
        """The present readings; StreamerError where the store cannot be read."""
        async with self._lock:
            started = time.perf_counter()
            await self.reader.refresh()
            self.reports = await self.store.reports()
            now_ms = None if at_stream else self._live_ms()
            result = await asyncio.to_thread(
                readout, self.settings, self.catalogue, self.reader.views, now_ms
            )
            self.readout_seconds = time.perf_counter() - started
            return result

    def _live_ms(self) -> int | None:
        """Stream time plus the time that live traffic has been silent, if it was live and all of
        it has been read: so that windows drain."""
        reader = self.reader
        is_live = abs(reader.moved_ms - reader.stream_ms) <= _CLOSE_MS
        lags = [lag for report in self.reports for lag in report.lag_records.values()]
        if not is_live or not lags or any(lags):
            return None
        idle_ms = int(time.time() * 1000) - reader.moved_ms
        return reader.stream_ms + max(0, idle_ms)

    def processor(self) -> Iterator[Metric]:
        """Metrics of the workers and of this exporter."""
        yield from _workers(self.reports)
        yield from _logs(self.reader.manifests)
        readout_seconds = GaugeMetricFamily(
            f"{PREFIX}readout_seconds", "Time the last readout took.", value=self.readout_seconds
        )
        yield readout_seconds

    def collect(self) -> Iterator[Metric]:
        """For a Prometheus registry: the processor's metrics."""
        return self.processor()

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
        problems = [
            f"{r.worker}: partition {number}: {text}"
            for r in self.reports
            for number, text in r.problems.items()
        ]
        if problems:
            return web.Response(status=503, text="\n".join(["not ready:", *problems]) + "\n")
        return web.Response(text="ready\n")

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text=_PAGE, content_type="text/html")

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[_errors])
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


def _workers(reports: list[Telemetry]) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        f"{PREFIX}consumer_lag_records",
        "Records up to the last stable offset that no worker was handed yet.",
        labels=["topic", "partition"],
    )
    owner = GaugeMetricFamily(
        f"{PREFIX}partition_owner_info",
        "1 for the worker that has the partition, with its phase.",
        labels=["partition", "worker", "phase"],
    )
    seconds = HistogramMetricFamily(
        f"{PREFIX}commit_seconds", "Time of one commit to the store.", labels=["worker"]
    )
    fenced = CounterMetricFamily(
        f"{PREFIX}fenced", "Commits refused because the partition was not ours.", labels=["worker"]
    )
    for report in reports:
        for key, value in report.lag_records.items():
            lag.add_metric(key.split("/"), value)
        for number, phase in report.owned.items():
            owner.add_metric([str(number), report.worker, phase], 1)
        running = 0
        buckets = []
        for bound, count in zip(_BOUNDS, report.commit_buckets, strict=True):
            running += count
            buckets.append((bound, float(running)))
        seconds.add_metric([report.worker], buckets, report.commit_seconds_sum)
        fenced.add_metric([report.worker], report.fenced)
    yield from (lag, owner, seconds, fenced)


def _logs(manifests: dict[int, Manifest]) -> Iterator[Metric]:
    dead = CounterMetricFamily(f"{PREFIX}dead_letters", "Records sent to the dead-letter topic.")
    dead.add_metric([], sum(m.dead_letters for m in manifests.values()))
    lost = CounterMetricFamily(
        f"{PREFIX}lost_records",
        "Records that left the log before they were read.",
        labels=["topic"],
    )
    restarts = CounterMetricFamily(
        f"{PREFIX}log_restarts",
        "Times a log was shorter than what had been read of it: topic recreated.",
        labels=["topic"],
    )
    topics = {kind for m in manifests.values() for kind in m.topics}
    for kind in sorted(topics):
        lost.add_metric([kind], sum(m.topics[kind].lost for m in manifests.values()))
        restarts.add_metric([kind], sum(m.topics[kind].restarts for m in manifests.values()))
    yield from (dead, lost, restarts)
