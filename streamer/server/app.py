"""The exporter's web application: ``/metrics``, JSON and a page. Any number may run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import ProcessCollector

from streamer.errors import StreamerError
from streamer.logs import Notices
from streamer.query.readings import SeriesBlock
from streamer.server.alert_history import AlertHistoryApi
from streamer.server.annotations import AnnotationsApi, is_annotation
from streamer.server.api import Api
from streamer.server.authentication import guards, is_open
from streamer.server.decisions import DecisionsApi
from streamer.server.experiments import ExperimentsApi
from streamer.server.exporter import Exporter
from streamer.server.failures import add_headers, errors, gate
from streamer.server.history import HistoryApi
from streamer.server.host_names import host_guard
from streamer.server.prometheus_text import render
from streamer.server.runbooks import add_runbooks
from streamer.server.scrape import Bodies, Sending, form_of
from streamer.server.web import add_pages


class Pages:
    """Answers of an exporter, but for the API and the web page."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter
        self._bodies = {is_at: Bodies() for is_at in (False, True)}
        self._sending = Sending()
        self._process = ProcessCollector(registry=None)

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """``/metrics``: Prometheus text or OpenMetrics; with ``?at=stream`` as of stream time."""
        at_stream = request.query.get("at") == "stream"
        result = await self.exporter.read(at_stream)
        form = form_of(
            ",".join(request.headers.getall("Accept", [])),
            ",".join(request.headers.getall("Accept-Encoding", [])),
        )
        own = [*self.exporter.processor(), *_process_blocks(self._process)]
        rest = render(own, form.is_openmetrics) + ("# EOF\n" if form.is_openmetrics else "")
        head, tail = await self._bodies[at_stream].body(result, form, rest.encode())
        return await self._sending.send(request, form.headers, head, tail)

    async def healthz(self, request: web.Request) -> web.Response:
        """``/healthz``: 200 while the process answers."""
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """``/readyz``: 200 while nothing is wrong, else 503 with the problems."""
        try:
            await self.exporter.read()
        except StreamerError as error:
            return web.Response(status=503, text=f"not ready: {error}\n")
        if not self.exporter.health.is_ready:
            problems = (
                "\n".join(
                    ["not ready:", *self.exporter.health.problems, *self.exporter.health.warnings]
                )
                + "\n"
            )
            return web.Response(status=503, text=problems)
        return web.Response(text="\n".join(["ready", *self.exporter.health.warnings]) + "\n")

    async def first_load(self, app: web.Application) -> AsyncIterator[None]:
        """Read before the first question, and follow the ends of Kafka's logs."""
        with contextlib.suppress(Exception):  # /readyz says so
            await self.exporter.read()
        async with self.exporter.ends.followed(lambda: self.exporter.reader.count):
            yield
        await self.exporter.store.close()


def _process_blocks(process: ProcessCollector) -> Iterator[SeriesBlock]:
    """What operating systems say of the exporter's process: memory, time, open files."""
    for family in process.collect():
        for each in family.samples:
            doc, labels = family.documentation, dict(each.labels)
            yield SeriesBlock(each.name, family.type, doc, [labels], {}, [each.value], [0])


def application(exporter: Exporter, notices: Notices | None = None) -> web.Application:
    """The web application over an exporter. ``notices``: where trouble is logged."""
    settings, pages = exporter.settings.exporter, Pages(exporter)
    asking = guards(settings, is_annotation)
    middlewares = [errors(notices or Notices()), host_guard(settings, is_open), *asking]
    app = web.Application(middlewares=[*middlewares, gate()])
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/metrics", pages.metrics)
    Api(exporter).add_routes(app)
    ExperimentsApi(exporter).add_routes(app)
    HistoryApi(exporter).add_routes(app)
    AlertHistoryApi(exporter).add_routes(app)
    AnnotationsApi(exporter).add_routes(app)
    DecisionsApi(exporter).add_routes(app)
    app.router.add_get("/healthz", pages.healthz)
    app.router.add_get("/readyz", pages.readyz)
    add_pages(app)
    add_runbooks(app)
    app.cleanup_ctx.append(pages.first_load)
    return app
