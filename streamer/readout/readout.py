"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamer.config import Settings
from streamer.engine.partition import rings_of
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.declare import Metric, Series
from streamer.readout import alert_gauges, experiment_gauges
from streamer.readout.alerts import Watched, watched
from streamer.readout.counters import COUNTERS, Known
from streamer.readout.experiments import books
from streamer.readout.view import View
from streamer.readout.windows import Numbering, Rolled, Window


@dataclass(frozen=True, slots=True)
class Reading:
    """One value. ``kind`` is counter or gauge; ``name`` has the prefix."""

    name: str
    kind: str
    doc: str
    labels: dict[str, str]
    value: int | float


Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Block:
    """Readings of one name whose labels differ in the segment only: ``values[i]`` has
    ``labels[i]`` and ``extra``, for each i of ``present``."""

    name: str
    kind: str
    doc: str
    labels: Sequence[Labels]
    extra: Labels
    values: Sequence[int | float]
    present: Sequence[int]

    def readings(self) -> Iterator[Reading]:
        for i in self.present:
            labels = {**self.labels[i], **self.extra}
            yield Reading(self.name, self.kind, self.doc, labels, self.values[i])


@dataclass(frozen=True)
class Readout:
    """All readings at one stream time, in catalogue order, those of a name together; ``watched``:
    what is said of every segment that an alert watches, of which some are readings, too."""

    stream_ms: int
    blocks: Sequence[Block]
    watched: Sequence[Watched] = ()

    @staticmethod
    def of(stream_ms: int, readings: Sequence[Reading]) -> Readout:
        """A readout of single readings."""
        blocks = [Block(r.name, r.kind, r.doc, [r.labels], {}, [r.value], [0]) for r in readings]
        return Readout(stream_ms, blocks)

    @cached_property
    def readings(self) -> list[Reading]:
        return [reading for block in self.blocks for reading in block.readings()]

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
    experiments = [b.read() for b in books(settings, catalogue.experiment_facts, views).values()]
    alerts = watched(settings, catalogue.alert_facts, views, at_ms)
    known = Known(settings, [v.header for v in views], stream_ms, experiments, alerts)
    blocks = list(_counters(known))
    numbering = Numbering(settings, views)
    totals = Window(settings, catalogue.layout, views, numbering, 0, None, at_ms)
    blocks += _shown(settings, catalogue, "total", [("", totals)])
    windows = [
        (ring.label, Window(settings, catalogue.layout, views, numbering, i, ring, at_ms))
        for i, ring in enumerate(rings_of(settings), 1)
    ]
    blocks += _shown(settings, catalogue, "window", windows)
    return Readout(stream_ms, blocks, alerts)


def _shown(
    settings: Settings, catalogue: Catalogue, scope: str, windows: Sequence[tuple[str, Window]]
) -> Iterator[Block]:
    names = settings.dimension_names
    rolled: list[tuple[Rolled, list[Labels]]] = []
    for label, window in windows:
        for rollup in settings.rollups:
            sums = window.rolled_up(rollup)
            if sums.segments:
                first = {"window": label} if label else {}
                rolled.append((sums, [{**first, **_named(names, s)} for s in sums.segments]))
    for metric in catalogue.metrics:
        if metric.scope == scope:
            for sums, labels in rolled:
                for series in metric.series(sums):
                    yield _block(metric, series, labels)


def _named(names: Sequence[str], segment: Sequence[str]) -> Labels:
    return dict(zip(names, segment, strict=True))


def _block(metric: Metric, series: Series, labels: list[Labels]) -> Block:
    present = series.present.nonzero()[0].tolist()
    values = series.values.tolist() if present else []
    name = PREFIX + metric.name
    return Block(name, metric.kind, metric.doc, labels, dict(series.labels), values, present)


def _counters(known: Known) -> Iterator[Block]:
    for c in (*COUNTERS, *experiment_gauges.GAUGES, *alert_gauges.GAUGES):
        names = [
            name
            for label in c.labels
            for name in (known.settings.dimension_names if label == "<dimension>" else (label,))
        ]
        for labels, value in c.samples(known):
            named = dict(zip(names, labels, strict=True))
            yield Block(PREFIX + c.name, c.kind, c.doc, [named], {}, [value], [0])
