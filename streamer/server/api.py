"""The JSON API of the exporter: readings, health, alerts."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from streamer.metrics.catalogue import PREFIX
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.alerts import AlertEvaluation
from streamer.query.checks import CHECKS
from streamer.query.crossings import crossings_document
from streamer.query.what_was_read import of_counters
from streamer.server.documents import Documents, UnknownValueError
from streamer.server.exporter import Exporter
from streamer.server.scrape import accepts_gzip
from streamer.server.slow_documents import SlowDocuments
from streamer.settings.alerts import Alert
from streamer.settings.labels import OF_READINGS, UNRESERVED
from streamer.stats.alerting.baseline import STATUSES


class Api:
    """Documents of what an exporter has read."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
        self._crossings = SlowDocuments[dict[str, object] | None]()
        self._documents = {is_at: Documents(self.settings) for is_at in (False, True)}

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``."""
        app.router.add_get("/api/readings", self.readings)
        app.router.add_get("/api/health", self.health)
        app.router.add_get("/api/alerts", self.alerts)
        app.router.add_get("/api/explain", self.explain)

    async def readings(self, request: web.Request) -> web.Response:
        """All readings, or those that the query's name and labels match."""
        query = {key: request.query.getall(key) for key in request.query}
        at = query.pop("at", [None])[-1]
        if at not in (None, "stream"):
            return error_answer(400, f"at = {at!r}: only 'stream' is allowed")
        names = {"name", "window", *self.settings.dimension_names, *OF_READINGS, *UNRESERVED}
        unknown = set(query) - names
        if unknown:
            parameters = ", ".join(sorted(names))
            refusal = f"unknown parameter {min(unknown)!r}; the parameters are at, {parameters}"
            return error_answer(400, refusal)
        result = await self.exporter.read(at == "stream")
        is_gzip = accepts_gzip(request)
        try:
            body = await self._documents[at == "stream"].body(result, query, is_gzip)
        except UnknownValueError as error:
            return error_answer(400, str(error))
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if is_gzip else {})
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def health(self, request: web.Request) -> web.Response:
        """Whether what is shown follows the logs, and how far it is behind."""
        if refused := without_parameters(request):
            return refused
        result = await self.exporter.read()
        reports = self.exporter.reports
        present = [report for report in reports if report.is_present]
        lags: dict[str, int] = {}
        for (kind, _), records in self.exporter.lags.items():
            lags[kind] = lags.get(kind, 0) + records
        single = {
            b.name: b.values[i]
            for b in result.blocks
            if not b.extra
            for i in b.present
            if not b.labels[i]
        }
        return json_answer(
            {
                "is_ready": self.exporter.health.is_ready,
                "problems": self.exporter.health.problems,
                "warnings": self.exporter.health.warnings,
                "files": list(self.exporter.files),
                "about": self.exporter.about,
                "now_ms": self.exporter.now_ms,
                "stream_time_ms": result.stream_ms,
                "partitions": self.exporter.reader.count,
                "owned": sum(p == "owned" for r in present for p in r.owned.values()),
                "lag_records": lags,
                "users_behind_seconds": single.get(f"{PREFIX}users_behind_seconds", 0.0),
                "inexact": [
                    {"metrics": each.metrics, "cause": each.cause, "text": each.sentence}
                    for each in result.inexact
                ],
                "workers": [
                    {"worker": r.worker, "is_present": r.is_present, "partitions": sorted(r.owned)}
                    for r in reports
                ],
                "read": of_counters(self.settings, result).as_json(),
                "dimensions": self.settings.dimension_names,
                "windows": list(self.settings.windows.lengths_ms),
            }
        )

    async def alerts(self, request: web.Request) -> web.Response:
        """What is said of every segment that an alert watches."""
        if refused := without_parameters(request):
            return refused
        watched = (await self.exporter.read()).watched
        ratios = self.exporter.catalogue.alert_measures.ratios
        names = self.settings.dimension_names
        listed = [
            {
                "alert": w.alert.name,
                "metric": w.alert.metric,
                **named(ratios[w.alert.metric]),
                "window": w.alert.window,
                "drop": w.alert.drop,
                "direction": w.alert.direction,
                "segment": dict(zip(names, w.segment, strict=True)),
                "checks": w.document(),
            }
            for w in watched
        ]
        checks = [{"name": check.name, "title": check.title} for check in CHECKS]
        statuses = [{"status": each, **asdict(words)} for each, words in STATUSES.items()]
        return json_answer({"alerts": listed, "checks": checks, "statuses": statuses})

    async def explain(self, request: web.Request) -> web.Response:
        """Why a metric that an alert watches moved: the change from its baseline by segment."""
        query = dict(request.query)
        metric, window = query.get("metric", ""), query.get("window", "")
        fitting = [
            alert
            for alert in self.settings.alerts
            if query.get("alert", alert.name) == alert.name
            and metric in ("", alert.metric, alert.metric.removesuffix("_ratio"))
            and window in ("", alert.window)
        ]
        unknown = set(query) - {"alert", "metric", "window"}
        if unknown or not fitting:
            alerts = "; ".join(f"{a.metric} over {a.window}" for a in self.settings.alerts)
            problem = f"unknown parameter {min(unknown)!r}" if unknown else "no such alert"
            refusal = (
                f"{problem}: choose by alert, metric and window; the settings have "
                f"{alerts or 'none'}"
            )
            return error_answer(400 if unknown else 404, refusal)
        alert = max(fitting, key=lambda a: len(a.segments))
        await self.exporter.refresh()
        reader = self.exporter.reader
        measures = self.exporter.catalogue.alert_measures
        windows = AlertEvaluation(self.settings, alert, measures, reader.views, self.exporter.at_ms)
        return json_answer(
            {
                "alert": alert.name,
                "metric": alert.metric,
                **named(measures.ratios[alert.metric]),
                "window": alert.window,
                "baseline": alert.baseline,
                "compared": windows.compared,
                "traffic": [
                    {"segment": name, "now": now, "usual": usual}
                    for name, now, usual in windows.explained_traffic()
                ],
                "segments_by": alert.segments,
                **await asyncio.to_thread(lambda: windows.explained().document(windows.unit)),
                "crossings": await self._crossings_of(alert),
            }
        )

    async def _crossings_of(self, alert: Alert) -> dict[str, object] | None:
        """Where an alert's metric moved; None where it keeps no crossings."""
        if not alert.crossings:
            return None
        return await self._crossings.get(alert.name, partial(self._search, alert))

    async def _search(self, alert: Alert) -> dict[str, object] | None:
        measures, reader = self.exporter.catalogue.alert_measures, self.exporter.reader
        at_ms = self.exporter.at_ms
        return await asyncio.to_thread(
            crossings_document, self.settings, alert, measures, reader.views, at_ms
        )


def without_parameters(request: web.Request) -> web.Response | None:
    """The refusal of a parameter that would change nothing."""
    if not request.query:
        return None
    text = f"unknown parameter {min(request.query)!r}: {request.path} takes none"
    return error_answer(400, text)


def named(of: ComparedRatio) -> dict[str, str]:
    """What a metric is called, and how its values are written."""
    return {"title": of.title, "form": of.form}


def json_answer(document: Any) -> web.Response:
    """A document."""
    response = web.Response(body=msgspec.json.encode(document), content_type="application/json")
    response.enable_compression()
    return response


def error_answer(status: int, text: str) -> web.Response:
    """A refusal, with what is wrong."""
    return web.json_response({"error": text}, status=status)
