"""``/api/metrics``: what each metric means; ``/api/history``: its course, from stored panes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import msgspec
from aiohttp import web

from streamer.encoding.segments import ALL
from streamer.metrics import own_ratios
from streamer.metrics.catalogue import PREFIX, form_of, title_of
from streamer.metrics.definition import DeclaredSeries, Metric
from streamer.query.pane_history import (
    History,
    NotByPaneError,
    NotKeptError,
    PaneHistory,
    Wanted,
)
from streamer.query.panes import PaneReader
from streamer.server.api import error_answer, without_parameters
from streamer.server.documents import UnknownValueError, require_known
from streamer.server.exporter import Exporter
from streamer.server.scrape import accepts_gzip
from streamer.server.series import OTHERS
from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.settings.labels import OF_READINGS
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.settings.own_metrics import definition
from streamer.state.snapshot import View


class QueryError(Exception):
    """A query asks for what there is not; the text says what there is."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class HistoryApi:
    """Documents of the metrics that an exporter shows. Courses are kept until the next commit, or
    until a new point begins."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
        self._lock = asyncio.Lock()
        self._panes: tuple[int, PaneHistory] | None = None
        self._reader = PaneReader()
        self._made: dict[tuple[object, ...], bytes] = {}

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``."""
        app.router.add_get("/api/metrics", self.metrics)
        app.router.add_get("/api/history", self.history)
        app.router.add_get("/api/before", self.before)

    async def metrics(self, request: web.Request) -> web.Response:
        """Every series that the settings switch on, by family."""
        if refused := without_parameters(request):
            return refused
        catalogue = self.exporter.catalogue
        shown = {each.name for each in catalogue.metrics}
        shown |= {each.name for family in OTHERS for each in family.metrics}
        listed = [
            {"family": family.name, "scope": each.scope, **_described(each, catalogue.settings)}
            for family in (*catalogue.families, *OTHERS)
            for each in family.metrics
            if each.name in shown
        ]
        return _answer(msgspec.json.encode({"metrics": listed}), request)

    async def history(self, request: web.Request) -> web.Response:
        """The course of one metric over a window, by parts of it."""
        return await self._answered(request, _document)

    async def before(self, request: web.Request) -> web.Response:
        """One metric in the window that a window is compared with."""
        return await self._answered(request, _before)

    async def _answered(self, request: web.Request, make: _Make) -> web.Response:
        try:
            wanted = self._wanted(request.query)
            async with self._lock:
                await self.exporter.refresh()
                reader, at_ms = self.exporter.reader, self.exporter.at_ms
                views, updates = reader.views, reader.updates
                body = await asyncio.to_thread(self._body, make, wanted, views, updates, at_ms)
        except QueryError as error:
            return error_answer(error.status, str(error))
        except UnknownValueError as error:
            return error_answer(400, str(error))
        return _answer(body, request)

    @cached_property
    def _shown(self) -> dict[str, Metric]:
        """The metrics of windows, by name."""
        metrics = self.exporter.catalogue.metrics
        return {m.name: m for m in metrics if m.scope == "window"}

    def _wanted(self, query: Mapping[str, str]) -> Wanted:
        windows, dimensions = self.settings.windows.lengths_ms, self.settings.dimension_names
        own = {"name", "window", "split", "points", "from_ms", "until_ms"}
        parameters = [*sorted(own), *dimensions, *OF_READINGS]
        if unknown := set(query) - set(parameters):
            raise QueryError(
                f"unknown parameter {min(unknown)!r}; there are {', '.join(parameters)}"
            )
        window = query.get("window") or max(windows, key=lambda label: windows[label])
        require_known("window", window, tuple(windows))
        split = query.get("split")
        if split is not None:
            require_known("split", split, dimensions)
        where = {name: query[name] for name in dimensions if query.get(name, ALL) != ALL}
        labels = {k: v for k, v in query.items() if k in OF_READINGS and k not in dimensions}
        points, part = _points(query.get("points")), _part(query)
        return Wanted(self._metric(query.get("name")), window, where, split, labels, points, *part)

    def _metric(self, name: str | None) -> Metric:
        if name is None:
            raise QueryError("name is missing: the metric, as in /api/metrics")
        found = self._shown.get(name.removeprefix(PREFIX))
        if found is None:
            close = nearest(name.removeprefix(PREFIX), list(self._shown))
            meant = f"did you mean {close!r}?" if close else "/api/metrics lists what there is"
            shown = name[: limits.MAX_FOUND_CHARS]
            raise QueryError(f"no metric {shown!r} of windows: {meant}", 404)
        return found

    def _body(
        self, make: _Make, wanted: Wanted, views: Sequence[View], updates: int, at_ms: int
    ) -> bytes:
        if self._panes is None or self._panes[0] != updates:
            history = PaneHistory(self.settings, self.exporter.catalogue, views, self._reader)
            self._panes, self._made = (updates, history), {}
        panes = self._panes[1]
        for name, value in wanted.where.items():
            require_known(name, value, panes.values_of(name))
        step_ms = panes.step_ms(wanted)
        key = (make, at_ms // step_ms, repr(wanted))
        if key not in self._made:
            if len(self._made) >= limits.MAX_DOCUMENTS:
                self._made.clear()
            self._made[key] = msgspec.json.encode(make(wanted, panes, at_ms))
        return self._made[key]


def _points(text: str | None) -> int:
    """How many points there are at most."""
    most = limits.HISTORY_POINTS
    if text is None:
        return most
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= most:
        raise QueryError(f"points = {text[:20]!r}: from 1 to {most}")
    return int(text)


def _part(query: Mapping[str, str]) -> tuple[int | None, int | None]:
    """The part of a window that is wanted: both of its ends or none."""
    texts = [query.get(name) for name in ("from_ms", "until_ms")]
    if texts == [None, None]:
        return None, None
    numbers = [int(t) for t in texts if t and t.isascii() and t.isdigit() and len(t) < 16]
    if len(numbers) < 2 or numbers[0] >= numbers[1]:
        raise QueryError("from_ms and until_ms: both are needed, in milliseconds, in this order")
    return numbers[0], numbers[1]


_Make = Callable[[Wanted, PaneHistory, int], dict[str, Any]]


def _before(wanted: Wanted, panes: PaneHistory, at_ms: int) -> dict[str, Any]:
    """The values at the same time last week, or else in the window before: in the finest panes that
    are kept and fit, whole ones that end by then. Without any there are no lines."""
    windows = panes.settings.windows
    length_ms = windows.lengths_ms[wanted.window]
    for ago_ms, title in ((7 * DAY_MS, "a week before"), (length_ms, f"{wanted.window} before")):
        for label in windows.by_length:
            part = replace(wanted, window=label, points=limits.HISTORY_POINTS)
            pane_ms = panes.step_ms(part)
            until_ms = (at_ms + 1 - ago_ms) // pane_ms * pane_ms
            from_ms = until_ms - -(-length_ms // pane_ms) * pane_ms
            first_ms = max(panes.oldest_ms, panes.kept_from_ms(part, at_ms))
            if first_ms <= from_ms and 2 * pane_ms <= length_ms:
                part = replace(part, points=1, from_ms=from_ms, until_ms=until_ms)
                course = _read(part, panes, at_ms)
                if course.lines and course.counted_since_ms <= from_ms:
                    ends = {"from_ms": from_ms, "until_ms": until_ms}
                    return {"title": title, **ends, "lines": course.lines}
    return {"title": "", "from_ms": None, "until_ms": None, "lines": []}


def _document(wanted: Wanted, panes: PaneHistory, at_ms: int) -> dict[str, Any]:
    kept_ms = panes.kept_from_ms(wanted, at_ms)
    whole = None
    if wanted.from_ms is not None and wanted.until_ms is not None:
        if wanted.until_ms <= kept_ms or wanted.from_ms > at_ms:
            raise QueryError(
                f"from_ms = {wanted.from_ms}: the window {wanted.window} is kept from {kept_ms} to "
                f"{at_ms}",
                404,
            )
        ends = max(wanted.from_ms, kept_ms), min(wanted.until_ms, at_ms + 1)
        wanted = replace(wanted, from_ms=ends[0], until_ms=ends[1])
        whole = _read(replace(wanted, points=1), panes, at_ms)
    elif panes.oldest_ms > kept_ms:  # the axis is what has been counted
        wanted = replace(wanted, from_ms=panes.oldest_ms, until_ms=at_ms + 1)
    course = _read(wanted, panes, at_ms)
    return {
        **_described(wanted.metric, panes.settings),
        "window": wanted.window,
        "split": wanted.split,
        "at_ms": at_ms,
        "kept_from_ms": kept_ms,
        "whole": None if whole is None else asdict(whole)["lines"],
        **asdict(course),
    }


def _read(wanted: Wanted, panes: PaneHistory, at_ms: int) -> History:
    """A course; QueryError where there is none."""
    try:
        course = panes.read(wanted, at_ms)
    except NotByPaneError as error:
        raise QueryError(
            f"The metric {title_of(wanted.metric)} has no history: {error}", 404
        ) from error
    except NotKeptError as error:
        named = ", ".join([*wanted.where, *([wanted.split] if wanted.split else [])])
        text = f"sums of {wanted.metric.name} are not kept by {named}: in the settings, {error}"
        raise QueryError(text, 404) from error
    if len(course.lines) > limits.HISTORY_SERIES:
        names = sorted({name for line in course.lines for name in line.labels} & {*OF_READINGS})
        refusal = f"{len(course.lines)} series; at most {limits.HISTORY_SERIES}: choose by "
        raise QueryError(refusal + (", ".join(names) or "dimensions"))
    return course


def _described(metric: DeclaredSeries[Any], settings: Settings) -> dict[str, Any]:
    """What a metric means; of ``[[ratios]]`` each by its name."""
    ratios = settings.ratios if own_ratios.NAME in metric.labels else ()
    return {
        "ratios": {
            each.name: {
                "title": each.title or each.name,
                "definition": definition(each),
                "form": own_ratios.form_of(each),
                "unit": each.unit,
            }
            for each in ratios
        },
        "name": PREFIX + metric.name,
        "title": title_of(metric),
        "form": form_of(metric),
        "unit": metric.unit,
        "formula": metric.formula,
        "about": metric.doc,
        "empty": metric.empty,
        "labels": metric.labels,
    }


def _answer(body: bytes, request: web.Request) -> web.Response:
    response = web.Response(body=body, content_type="application/json")
    response.headers["Vary"] = "Accept-Encoding"
    if accepts_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
    return response
