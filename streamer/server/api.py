"""The JSON API of the exporter: readings, health, alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
from aiohttp import web

from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import PREFIX
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.alert_status import alert_status
from streamer.query.alerts import AlertEvaluation
from streamer.query.causes import command_of, incident
from streamer.query.checks import CHECKS
from streamer.query.default_view import default_view
from streamer.query.firing import FiringAlert, Pipeline, firing_alerts
from streamer.query.readings import ReadingSet
from streamer.query.silence import Silence
from streamer.query.why import change_parts, sentences, sides
from streamer.server.documents import Documents, UnknownValueError
from streamer.server.exporter import Exporter
from streamer.server.scrape import accepts_gzip
from streamer.settings.alerts import Alert
from streamer.settings.file_window import FILE
from streamer.settings.labels import OF_READINGS, UNRESERVED
from streamer.stats.alerting.baseline import STATUSES
from streamer.stats.alerting.traffic import Traffic


class Api:
    """Documents of what an exporter has read."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
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
        lags: dict[str, int] = {}
        for (kind, _), records in self.exporter.lags.items():
            lags[kind] = lags.get(kind, 0) + records
        single = {
            b.name: b.values[b.present[0]]
            for b in result.blocks
            if b.present and not b.extra and not b.labels[b.present[0]]
        }
        read, silent = self.exporter.what_was_read(result)
        behind = self.exporter.behind_seconds()
        pipeline = self.exporter.recent.pipeline(behind or 0.0)
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
                "owned": sum(p == "owned" for r in self.exporter.present for p in r.owned.values()),
                "lag_records": lags,
                "behind_seconds": behind,
                "pipeline": pipeline.vitals,
                "silent": [{**each._asdict(), "text": each.text} for each in silent],
                "users_behind_seconds": single.get(f"{PREFIX}users_behind_seconds", 0.0),
                "inexact": [
                    {"metrics": each.metrics, "cause": each.cause, "text": each.sentence}
                    for each in result.inexact
                ],
                "workers": [
                    {"worker": r.worker, "is_present": r.is_present, "partitions": sorted(r.owned)}
                    for r in self.exporter.reports
                ],
                "read": read.counted,
                "dimensions": self.settings.dimension_names,
                "windows": sorted(self.settings.windows.lengths_ms, key=FILE.__eq__),
                "default_view": default_view(self.settings, self._firing(result, pipeline, silent)),
                "window_spans": dict(result.spans) if self.exporter.files else {},
            }
        )

    async def alerts(self, request: web.Request) -> web.Response:
        """What is said of every segment that an alert watches."""
        if refused := without_parameters(request):
            return refused
        result = await self.exporter.read()
        ratios = self.exporter.catalogue.alert_measures.ratios
        names = self.settings.dimension_names
        _, silent = self.exporter.what_was_read(result)
        pipeline = self.exporter.recent.pipeline(self.exporter.behind_seconds() or 0.0)
        return json_answer(
            {
                "alerts": [alert_status(each, ratios, names) for each in result.watched],
                "declared": [alert.name for alert in self.settings.alerts],
                "firing": self._firing(result, pipeline, silent),
                "checks": [{"name": check.name, "title": check.title} for check in CHECKS],
                "statuses": [{"status": each, **asdict(words)} for each, words in STATUSES.items()],
            }
        )

    def _firing(
        self, result: ReadingSet, pipeline: Pipeline, silent: Sequence[Silence]
    ) -> list[FiringAlert]:
        ratios = self.exporter.catalogue.alert_measures.ratios
        names = self.settings.dimension_names
        return firing_alerts(result.watched, ratios, names, pipeline, silent)

    async def explain(self, request: web.Request) -> web.Response:
        """Why a metric that an alert watches moved: the change from its baseline by segment."""
        query = dict(request.query)
        segment = query.pop("segment", "")
        try:
            alert = self._explained_alert(query)
        except UnknownValueError as error:
            is_unknown = set(query) - {"alert", "metric", "window"}
            return error_answer(400 if is_unknown else 404, str(error))
        result = await self.exporter.read()
        names = self.settings.dimension_names
        watched = {w.segment: w for w in result.watched if w.alert.name == alert.name}
        segments = {segment_text(names, each): each for each in watched}
        if segment not in ("", *segments):
            known = ", ".join(name for name in segments if name) or "none"
            return error_answer(404, f"{alert.name} has no segment {segment!r}; there are {known}")
        chosen = [value for value in segments.get(segment, ()) if value != ALL]
        whole = watched.get((ALL,) * len(names))
        traffic = whole.traffic if whole else None
        document = await asyncio.to_thread(self._explanation, alert, " · ".join(chosen), traffic)
        return json_answer(document)

    def _explanation(self, alert: Alert, chosen: str, traffic: Traffic | None) -> dict[str, Any]:
        measures, views = self.exporter.catalogue.alert_measures, self.exporter.reader.views
        of = measures.ratios[alert.metric]
        windows = AlertEvaluation(self.settings, alert, measures, views, self.exporter.at_ms)
        explained = windows.explained()
        said = list(sentences(explained, of.form, windows.unit, chosen, traffic))
        said += sides(of.words, *windows.explained_totals())
        return {
            "alert": alert.name,
            "metric": alert.metric,
            **named(of),
            "window": alert.window,
            "baseline": alert.baseline,
            "compared": windows.compared,
            "traffic": [
                {"segment": name, "now": now, "usual": usual}
                for name, now, usual in windows.explained_traffic()
            ],
            "segments_by": alert.segments,
            "chosen": chosen,
            "command": command_of(alert, incident(windows)),
            "sentences": said,
            **msgspec.structs.asdict(change_parts(explained, windows.unit)),
        }

    def _explained_alert(self, query: Mapping[str, str]) -> Alert:
        """The alert that a query chooses, of several that fit the one of most segments."""
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
            raise UnknownValueError(
                f"{problem}: choose by alert, metric and window; the settings have "
                f"{alerts or 'none'}"
            )
        return max(fitting, key=lambda a: len(a.segments))


def segment_text(names: Sequence[str], segment: Sequence[str]) -> str:
    """A segment as addresses have it; empty for everything together.

    >>> segment_text(("variant", "surface"), ("all", "women"))
    'surface:women'
    """
    pairs = zip(names, segment, strict=True)
    return ",".join(f"{name}:{value}" for name, value in pairs if value != ALL)


def without_parameters(request: web.Request) -> web.Response | None:
    """The refusal of a parameter that would change nothing."""
    if not request.query:
        return None
    text = f"unknown parameter {min(request.query)!r}: {request.path} takes none"
    return error_answer(400, text)


def named(of: ComparedRatio) -> dict[str, str]:
    """What a metric is called, and how its values are written."""
    return {"title": of.title, "form": of.form, "definition": of.definition}


def json_answer(document: Any) -> web.Response:
    """A document."""
    response = web.Response(body=msgspec.json.encode(document), content_type="application/json")
    response.enable_compression()
    return response


def error_answer(status: int, text: str) -> web.Response:
    """A refusal, with what is wrong."""
    return web.json_response({"error": text}, status=status)
