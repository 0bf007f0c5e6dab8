"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from streamer.ingest.keying import topics_not_by_user
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.definition import Metric, Series
from streamer.metrics.rings import rings_of
from streamer.query import alert_gauges, experiment_gauges
from streamer.query.alerts import Watched, watched
from streamer.query.counters import COUNTERS, Known
from streamer.query.experiments import stored_experiments
from streamer.query.item_sums import ItemSums
from streamer.query.pane_sums import PaneSums
from streamer.query.windows import Numbering, Rolled, Window
from streamer.settings.model import Settings
from streamer.state.snapshot import View


@dataclass(frozen=True, slots=True)
class Reading:
    """One value. ``kind`` is counter, gauge or histogram; ``name`` has the prefix, and of a
    histogram the suffix."""

    name: str
    kind: str
    doc: str
    labels: dict[str, str]
    value: int | float


def family_of(name: str, kind: str) -> str:
    """What HELP and TYPE call a series.

    >>> family_of("streamer_dwell_seconds_sum", "histogram"), family_of("a_sum", "gauge")
    ('streamer_dwell_seconds', 'a_sum')
    """
    return name.rpartition("_")[0] if kind == "histogram" else name


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

    @property
    def family(self) -> str:
        """Its name in HELP and TYPE: of a histogram without ``_bucket``, ``_sum`` or ``_count``."""
        return family_of(self.name, self.kind)

    def readings(self) -> Iterator[Reading]:
        """One reading for each segment that is present."""
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
        """All blocks as single readings."""
        return [reading for block in self.blocks for reading in block.readings()]

    def as_json(self) -> dict[str, object]:
        """The document of ``/api/readings``."""
        return {
            "stream_time_ms": self.stream_ms,
            "readings": [
                {"name": r.name, "labels": r.labels, "value": r.value} for r in self.readings
            ],
        }


@dataclass
class KeptSums:
    """Sums of the readout before, of the same reader."""

    panes: PaneSums = field(default_factory=PaneSums)
    items: ItemSums = field(default_factory=ItemSums)


def readout(
    settings: Settings,
    catalogue: Catalogue,
    views: Sequence[View],
    now_ms: int | None = None,
    kept: KeptSums | None = None,
    keyed: Mapping[str, bool] = MappingProxyType({}),
) -> Readout:
    """Read all windows at stream time (or at ``now_ms``, which only a live reader gives).

    ``kept``: sums of the readout before, of the same reader; ``keyed``: kind → whether its topic is
    keyed by user; where one is not, metrics of users and experiments are left out.
    """
    if topics_not_by_user(settings, keyed):
        catalogue = catalogue.without_users()
    stream_ms = max((v.header.stream_ms for v in views), default=0)
    at_ms = stream_ms if now_ms is None else max(now_ms, stream_ms)
    experiments = [
        b.read()
        for b in stored_experiments(settings, catalogue.experiment_measures, views).values()
        if catalogue.has_users
    ]
    alerts = watched(settings, catalogue.alert_measures, views, at_ms)
    windows = _windows(settings, catalogue, views, at_ms, KeptSums() if kept is None else kept)
    samples = {
        label: items.sample_ratio
        for label, window in (windows["window"] if stream_ms else ())
        if (items := window.items(None)) is not None
    }
    headers = [view.header for view in views]
    known = Known(settings, headers, stream_ms, experiments, alerts, keyed, samples)
    blocks = list(_counters(known))
    for scope, found in windows.items():
        blocks += _shown(settings, catalogue, scope, found)
    return Readout(stream_ms, blocks, alerts)


def _windows(
    settings: Settings,
    catalogue: Catalogue,
    views: Sequence[View],
    at_ms: int,
    kept: KeptSums,
) -> dict[str, list[tuple[str, Window]]]:
    """Scope → label and window: the totals, and the windows."""
    numbering = Numbering(settings, views)
    kept.panes.begin(views, numbering.maps, numbering.size, catalogue.layout.size)
    items = None
    if catalogue.item_counts is not None:
        items = kept.items
        shown = dict(zip(settings.dimension_names, numbering.shown, strict=True))
        items.begin(catalogue.item_counts, views, shown)
    totals = Window(settings, catalogue, views, numbering, 0, None, at_ms, kept.panes)
    windows = {
        ring: Window(settings, catalogue, views, numbering, i, ring, at_ms, kept.panes, items)
        for i, ring in enumerate(rings_of(settings), 1)
    }
    longest = max(windows, key=lambda ring: ring.span_ms)
    with_items = [ring for ring in windows if ring.label in settings.item_windows]
    longest_of_items = max(with_items, key=lambda ring: ring.span_ms)
    for window in windows.values():
        window.longest = windows[longest]
        window.longest_of_items = windows[longest_of_items]
    return {
        "total": [("", totals)],
        "window": [(ring.label, window) for ring, window in windows.items()],
    }


def _shown(
    settings: Settings, catalogue: Catalogue, scope: str, windows: Sequence[tuple[str, Window]]
) -> Iterator[Block]:
    names = settings.dimension_names
    rolled: list[tuple[Rolled, list[Labels], int, bool]] = []
    for label, window in windows:
        for rollup in settings.rollups:
            sums = window.rolled_up(rollup)
            if sums.segments:
                first = {"window": label} if label else {}
                labels = [{**first, **_named(names, s)} for s in sums.segments]
                rolled.append((sums, labels, len(set(rollup)), settings.is_detailed(rollup)))
    for metric in catalogue.metrics:
        if metric.scope == scope:
            for sums, labels, dimensions, is_detailed in rolled:
                for series in metric.shown(sums, dimensions, is_detailed):
                    yield _block(metric, series, labels)


def _named(names: Sequence[str], segment: Sequence[str]) -> Labels:
    return dict(zip(names, segment, strict=True))


def _block(metric: Metric, series: Series, labels: list[Labels]) -> Block:
    present = series.present.nonzero()[0].tolist()
    values = series.values.tolist() if present else []
    name = PREFIX + metric.name + series.suffix
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
