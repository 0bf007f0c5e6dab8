"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.config import Settings
from streamer.engine.partition import rings_of
from streamer.events import KINDS
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.declare import Metric, Series
from streamer.readout.view import View
from streamer.readout.windows import Numbering, Rolled, window_of


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
    readings = list(_counters(settings, views, stream_ms))
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
    settings: Settings, catalogue: Catalogue, scope: str, windows: Sequence[tuple[str, object]]
) -> Iterator[Reading]:
    rolled = [
        (label, window.rolled_up(rollup))  # type: ignore[attr-defined]
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


_TOPIC_COUNTERS = {
    "events": "Records seen: accepted, duplicates, late and rejected.",
    "accepted": "Events that count.",
    "duplicates": "Copies of an accepted event_id within the horizon.",
    "late": "Events later than max_lateness; dead-lettered.",
}


def _counters(settings: Settings, views: Sequence[View], stream_ms: int) -> Iterator[Reading]:
    """What is counted beside the families: acceptance, joins, bounds, stream time."""

    def reading(name: str, kind: str, doc: str, value: float, **labels: str) -> Reading:
        return Reading(PREFIX + name, kind, doc, labels, value)

    headers = [v.header for v in views]
    for name, doc in _TOPIC_COUNTERS.items():
        for kind in KINDS:
            value = sum(topic_counter(h.topics[kind], name) for h in headers)
            yield reading(f"{name}_total", "counter", doc, value, topic=kind)
    for kind in KINDS:
        reasons = sorted({r for h in headers for r in h.topics[kind].rejected})
        for reason in reasons:
            value = sum(h.topics[kind].rejected.get(reason, 0) for h in headers)
            doc = "Records refused and dead-lettered, by reason."
            yield reading("rejected_total", "counter", doc, value, topic=kind, reason=reason)
    for kind in ("clicks", "conversions"):
        doc = "Feedback that joined no impression, when none can come any more."
        value = sum(h.unattributed[kind] for h in headers)
        yield reading("unattributed_total", "counter", doc, value, topic=kind)
    for kind in ("clicks", "conversions"):
        doc = "Feedback whose dimensions may still change; not in the totals yet."
        value = sum(h.unsettled[kind] for h in headers)
        yield reading("unsettled", "gauge", doc, value, topic=kind)
    for i, name in enumerate(settings.dimension_names):
        doc = "Accepted events with a value beyond the bound of the dimension."
        value = sum(h.capped[i] for h in headers)
        yield reading("label_values_capped_total", "counter", doc, value, dimension=name)
    gap = sum(h.join_gap for h in headers)
    dropped = sum(h.dropped for h in headers)
    doc = "Records that appeared below a clock their topic had borrowed while idle."
    yield reading("join_gap_total", "counter", doc, gap)
    doc = "1 while no bound was hit and no join clock was passed: the numbers are exact."
    yield reading("identity_exact", "gauge", doc, int(gap == 0 and dropped == 0))
    yield reading(
        "stream_time_seconds", "gauge", "Stream time: the newest event, in epoch seconds.",
        stream_ms / 1000,
    )


def topic_counter(counts: object, name: str) -> int:
    """One counter of a topic; ``events`` is the sum of all outcomes."""
    c = counts
    if name == "events":
        return int(c.accepted + c.duplicates + c.late + sum(c.rejected.values()))  # type: ignore[attr-defined]
    return int(getattr(c, name))
