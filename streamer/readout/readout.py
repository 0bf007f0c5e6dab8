"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.config import Settings
from streamer.engine.partition import rings_of
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.declare import Metric, Series
from streamer.readout.counters import COUNTERS, Known
from streamer.readout.view import View
from streamer.readout.windows import Numbering, Window, window_of


@dataclass(frozen=True, slots=True)
class Reading:
    """One value. ``kind`` is counter or gauge; ``name`` has the prefix."""

    name: str
    kind: str
    doc: str
    labels: dict[str, str]
    value: int | float


@dataclass(frozen=True)
class Readout:
    """All readings at one stream time, in catalogue order."""

    stream_ms: int
    readings: list[Reading]

    def as_json(self) -> dict[str, object]:
        """The document of ``/api/readings``."""
        return {
            "stream_time_ms": self.stream_ms,
            "readings": [
                {"name": r.name, "labels": r.labels, "value": r.value} for r in self.readings
            ],
        }


def readout(
    settings: Settings, catalogue: Catalogue, views: Sequence[View], now_ms: int | None = None
) -> Readout:
    """Read all windows at stream time (or at ``now_ms``, which only a live reader gives)."""
    stream_ms = max((v.header.stream_ms for v in views), default=0)
    at_ms = stream_ms if now_ms is None else max(now_ms, stream_ms)
    known = Known(settings, [v.header for v in views], stream_ms)
    readings = list(_counters(known))
    numbering = Numbering(settings, views)
    totals = window_of(settings, catalogue.layout, views, numbering, 0, None, at_ms)
    readings += _shown(settings, catalogue, "total", [("", totals)])
    windows = [
        (ring.label, window_of(settings, catalogue.layout, views, numbering, i, ring, at_ms))
        for i, ring in enumerate(rings_of(settings), 1)
    ]
    readings += _shown(settings, catalogue, "window", windows)
    return Readout(stream_ms, readings)


def _shown(
    settings: Settings, catalogue: Catalogue, scope: str, windows: Sequence[tuple[str, Window]]
) -> Iterator[Reading]:
    rolled = [
        (label, window.rolled_up(rollup))
        for label, window in windows
        for rollup in settings.rollups
    ]
    names = settings.dimension_names
    for metric in catalogue.metrics:
        if metric.scope != scope:
            continue
        for label, sums in rolled:
            if not sums.segments:
                continue
            labels = [dict(zip(names, s, strict=True)) for s in sums.segments]
            if label:
                labels = [{"window": label, **x} for x in labels]
            for series in metric.series(sums):
                yield from _readings(metric, series, labels)


def _readings(metric: Metric, series: Series, labels: list[dict[str, str]]) -> Iterator[Reading]:
    values = series.values.tolist()
    for i in series.present.nonzero()[0].tolist():
        yield Reading(
            PREFIX + metric.name, metric.kind, metric.doc, {**labels[i], **series.labels}, values[i]
        )


def _counters(known: Known) -> Iterator[Reading]:
    for c in COUNTERS:
        for labels, value in c.samples(known):
            named = dict(zip(c.labels, labels, strict=True))
            yield Reading(PREFIX + c.name, c.kind, c.doc, named, value)
