"""``/api/alerts/NAME``: an alert over time, computed again from what is stored."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from streamer.query.alert_history import AlertHistory, looks_apart_ms
from streamer.query.alerts import Windows
from streamer.server.api import error_answer, named, without_parameters
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.alerts import Alert


class AlertHistoryApi:
    """Documents of alerts, each kept for ``limits.HISTORY_SECONDS``, or until its next look."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
        self._alerts = {alert.name: alert for alert in self.settings.alerts}
        self._lock = asyncio.Lock()
        self._made: dict[str, tuple[tuple[int, int], bytes]] = {}

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``."""
        app.router.add_get("/api/alerts/{name}", self.alert)

    async def alert(self, request: web.Request) -> web.Response:
        """When one alert was beyond what is tolerated, and when more may be said."""
        name = request.match_info["name"]
        if name not in self._alerts:
            text = f"no alert {name!r}; the settings have {', '.join(self._alerts) or 'none'}"
            return error_answer(404, text)
        if refused := without_parameters(request):
            return refused
        async with self._lock:
            await self.exporter.refresh()
            body = await asyncio.to_thread(self._body, self._alerts[name])
        response = web.Response(body=body, content_type="application/json")
        response.enable_compression()
        return response

    def _body(self, alert: Alert) -> bytes:
        at_ms, now_ms = self.exporter.at_ms, self.exporter.now_ms
        measures, views = self.exporter.catalogue.alert_measures, self.exporter.reader.views
        key = now_ms // (1000 * limits.HISTORY_SECONDS), at_ms // looks_apart_ms(alert)
        kept_key, body = self._made.get(alert.name, (None, b""))
        if kept_key != key:
            windows = Windows(self.settings, alert, measures, views, at_ms)
            history = AlertHistory(windows, at_ms)
            made = {
                "alert": alert.name,
                "metric": alert.metric,
                **named(measures.ratios[alert.metric]),
            }
            body = msgspec.json.encode(made | self._document(history, alert, at_ms))
            self._made[alert.name] = key, body
        return body

    def _document(self, history: AlertHistory, alert: Alert, at_ms: int) -> dict[str, Any]:
        names = self.settings.dimension_names
        return {
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
                }
                for each in history.segments()
            ],
            "omitted": history.omitted,
        }
