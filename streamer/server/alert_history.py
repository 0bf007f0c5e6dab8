"""``/api/alerts/NAME``: an alert over time, computed again from what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from streamer.query.alert_history import AlertHistory
from streamer.query.alerts import AlertEvaluation
from streamer.server.api import error_answer, named, without_parameters
from streamer.server.exporter import Exporter
from streamer.server.slow_documents import SlowDocuments
from streamer.settings.alerts import Alert
from streamer.state.snapshot import View


class AlertHistoryApi:
    """Documents of alerts."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
        self._alerts = {alert.name: alert for alert in self.settings.alerts}
        self._documents = SlowDocuments[bytes]()

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``."""
        app.router.add_get("/api/alerts/{name}", self.alert)

    async def alert(self, request: web.Request) -> web.Response:
        """When one alert was beyond what is tolerated, and when more may be said."""
        name = request.match_info["name"]
        if name not in self._alerts:
            refusal = f"no alert {name!r}; the settings have {', '.join(self._alerts) or 'none'}"
            return error_answer(404, refusal)
        if refused := without_parameters(request):
            return refused
        await self.exporter.refresh()
        body = await self._documents.get(name, partial(self._make, self._alerts[name]))
        response = web.Response(body=body, content_type="application/json")
        response.enable_compression()
        return response

    async def _make(self, alert: Alert) -> bytes:
        views, at_ms = self.exporter.reader.views, self.exporter.at_ms
        return await asyncio.to_thread(self._body, alert, views, at_ms)

    def _body(self, alert: Alert, views: Sequence[View], at_ms: int) -> bytes:
        measures, names = self.exporter.catalogue.alert_measures, self.settings.dimension_names
        history = AlertHistory(AlertEvaluation(self.settings, alert, measures, views, at_ms), at_ms)
        document: dict[str, Any] = {
            "alert": alert.name,
            "metric": alert.metric,
            **named(measures.ratios[alert.metric]),
            "window": alert.window,
            "for_ms": alert.for_ms,
            "step_ms": history.step_ms,
            "from_ms": history.looks_ms[0],
            "at_ms": at_ms,
            "segments": [
                {
                    "segment": dict(zip(names, each.segment, strict=True)),
                    "spans": msgspec.to_builtins(each.spans),
                    "expected_ms": each.expected_ms,
                    "strip": msgspec.to_builtins(each.strip),
                }
                for each in history.segments()
            ],
            "omitted": history.omitted,
        }
        return msgspec.json.encode(document)
