"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, overload

from streamer.ingest.keying import topics_not_by_user
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.definition import (
    DIMENSIONS,
    DeclaredSeries,
    Family,
    Metric,
    Sample,
    Series,
    series_of,
    shown_variants,
)
from streamer.metrics.rings import Ring, rings_of
from streamer.query import alert_gauges, counters, experiment_gauges
from streamer.query.checks import AlertVerdict, watched
from streamer.query.counters import CounterInputs
from streamer.query.exactness import ExactnessInputs, Inexact, inexact
from streamer.query.experiment_list import Readouts
from streamer.query.experiments import JudgedExperiment, stored_experiments
from streamer.query.item_sums import ItemSumCache
from streamer.query.panes import PaneReader
from streamer.query.segment_index import Segment, SegmentIndex
from streamer.query.since import Times
from streamer.query.unit_sums import UnitReadings
from streamer.query.windows import Rolled, Window
from streamer.settings.file_window import FILE
from streamer.settings.model import Settings
from streamer.state.snapshot import View, first_event_ms

SAMPLED = (counters.FAMILY, experiment_gauges.FAMILY, alert_gauges.FAMILY)
"""Families of series beside those of windows and totals."""
_SINCE = "counted_since_ms"
_Inputs = TypeVar("_Inputs")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value. ``kind`` is counter, gauge or histogram; ``name`` has the prefix, and of a
    histogram the suffix."""

    name: str
    kind: str
    doc: str
    labels: dict[str, str]
    value: int | float
    counted_since_ms: int | None = None

    def document(self) -> dict[str, object]:
        """As ``/api/readings`` shows it."""
        since = {} if self.counted_since_ms is None else {_SINCE: self.counted_since_ms}
        return {"name": self.name, "labels": self.labels, "value": self.value, **since}


def family_of(name: str, kind: str) -> str:
    """What HELP and TYPE call a series.

    >>> family_of("streamer_dwell_seconds_sum", "histogram"), family_of("a_sum", "gauge")
    ('streamer_dwell_seconds', 'a_sum')
    """
    return name.rpartition("_")[0] if kind == "histogram" else name


Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class SeriesBlock:
    """Readings of one name whose labels differ in the segment only: ``values[i]`` has
    ``labels[i]`` and ``extra``, for each i of ``present``."""

    name: str
    kind: str
    doc: str
    labels: Sequence[Labels]
    extra: Labels
    values: Sequence[int | float]
    present: Sequence[int]
    counted_since_ms: int | None = None
    """Of totals: since when all that it is made of counts, where that was added later."""

    @property
    def family(self) -> str:
        """Its name in HELP and TYPE: of a histogram without ``_bucket``, ``_sum`` or ``_count``."""
        return family_of(self.name, self.kind)

    def readings(self) -> Iterator[Reading]:
        """One reading for each segment that is present."""
        for i in self.present:
            labels = {**self.labels[i], **self.extra}
            yield Reading(
                self.name, self.kind, self.doc, labels, self.values[i], self.counted_since_ms
            )


class _LabelRows(Sequence[Labels]):
    """Labels of segments, made when they are asked for: those of a million series would not fit."""

    def __init__(self, first: Labels, names: Sequence[str], segments: Sequence[Segment]) -> None:
        self._first, self._names, self._segments = first, names, segments

    def __len__(self) -> int:
        return len(self._segments)

    @overload
    def __getitem__(self, at: int) -> Labels: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Labels]: ...
    def __getitem__(self, at: int | slice) -> Labels | Sequence[Labels]:
        if isinstance(at, slice):
            return _LabelRows(self._first, self._names, self._segments[at])
        return {**self._first, **dict(zip(self._names, self._segments[at], strict=True))}


@dataclass(frozen=True)
class ReadingSet:
    """All readings at one stream time, in catalogue order, those of a name together; ``watched``:
    what is said of every segment that an alert watches, of which some are readings, too;
    ``inexact``: what is not exact, and why."""

    stream_ms: int
    blocks: Sequence[SeriesBlock]
    watched: Sequence[AlertVerdict] = ()
    inexact: Sequence[Inexact] = ()
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Window → when its oldest pane begins, of a file its first event; and when it ends (ms)."""

    @staticmethod
    def of(stream_ms: int, readings: Sequence[Reading]) -> ReadingSet:
        """Of single readings."""
        blocks = [
            SeriesBlock(r.name, r.kind, r.doc, [r.labels], {}, [r.value], [0]) for r in readings
        ]
        return ReadingSet(stream_ms, blocks)

    @cached_property
    def readings(self) -> list[Reading]:
        """All blocks as single readings."""
        return [reading for block in self.blocks for reading in block.readings()]

    def as_json(self) -> dict[str, object]:
        """The document of ``/api/readings``."""
        readings = [reading.document() for block in self.blocks for reading in block.readings()]
        return {"stream_time_ms": self.stream_ms, "readings": readings}

    def json_parts(self) -> Iterator[str]:
        """The text of that document, by block: of a million readings it does not fit."""
        before = f'{{"stream_time_ms": {self.stream_ms}, "readings": ['
        for block in self.blocks:
            if block.present:
                yield before + ", ".join(json.dumps(r.document()) for r in block.readings())
                before = ", "
        yield "]}\n" if before == ", " else f"{before}]}}\n"


@dataclass
class ReadoutCache:
    """Sums of the readout before, of the same reader."""

    panes: PaneReader = field(default_factory=PaneReader)
    items: ItemSumCache = field(default_factory=ItemSumCache)
    experiments: Readouts = field(default_factory=Readouts)
    units: UnitReadings = field(default_factory=UnitReadings)
    numbering: SegmentIndex | None = None


def readout(
    settings: Settings,
    catalogue: Catalogue,
    views: Sequence[View],
    now_ms: int | None = None,
    kept: ReadoutCache | None = None,
    keyed: Mapping[str, bool] = MappingProxyType({}),
    is_unread: bool = False,
    of_windows: Collection[str] | None = None,
) -> ReadingSet:
    """Read all windows at stream time (or at ``now_ms``, which only a live reader gives).

    ``kept``: sums of the readout before, of the same reader; ``keyed``: kind → whether its topic is
    keyed by user; where one is not, metrics of users and experiments are left out;
    ``is_unread``: whether there are topics of which not all is read; ``of_windows``: those that are
    shown, where that are not all.
    """
    if topics_not_by_user(settings, keyed):
        catalogue = catalogue.without_users()
    stream_ms = max((v.header.stream_ms for v in views), default=0)
    at_ms = stream_ms if now_ms is None else max(now_ms, stream_ms)
    sums = ReadoutCache() if kept is None else kept
    experiments: list[JudgedExperiment] = []
    if catalogue.has_users:
        measures = catalogue.experiment_measures
        stored = stored_experiments(settings, measures, views, sums.units)
        experiments += sums.experiments.of(settings, stored).values()
    alerts = watched(settings, catalogue.alert_measures, views, at_ms)
    windows = _Windows(settings, catalogue, views, at_ms, sums)
    samples = {
        label: items.sample_ratio
        for label, window in (windows.whole.items() if stream_ms else ())
        if (items := window.items(None)) is not None
    }
    headers = [view.header for view in views]
    is_mixed = catalogue.has_users and any(w.has_mixed_users for w in windows.whole.values())
    wrong = inexact(ExactnessInputs(settings, headers, keyed, samples, is_mixed, is_unread))
    known = CounterInputs(settings, headers, stream_ms, experiments, alerts, samples, wrong)
    sampled = (b for family in SAMPLED for b in sampled_blocks(settings, family, known))
    blocks = [*sampled, *_shown(settings, catalogue, windows, of_windows)]
    oldest_ms = first_event_ms(views)
    spans = {
        label: (oldest_ms if label == FILE else window.start_ms, at_ms)
        for label, window in (windows.whole.items() if stream_ms else ())
    }
    return ReadingSet(stream_ms, blocks, alerts, wrong, spans)


@dataclass(frozen=True)
class ShownSums:
    """What is shown of a window, or of the totals, under a rollup; ``labels``: of its segments."""

    sums: Rolled
    labels: Sequence[Labels]
    dimensions: int
    is_detailed: bool

    def blocks(self, metric: Metric) -> Iterator[SeriesBlock]:
        """The series of a metric: in a window those that are counted over all of it."""
        is_total, sums = metric.scope == "total", self.sums
        variants = sums.window.catalogue.variants[metric.name]
        for variant in shown_variants(metric, variants, self.dimensions, self.is_detailed):
            since_ms = sums.since_ms(variant)
            if is_total or sums.is_whole(since_ms):
                for series in series_of(metric, variant, sums.find):
                    yield _block(metric, series, self.labels, (is_total and since_ms) or None)


@dataclass
class _Windows:
    """The windows of a readout, and what they are read from."""

    settings: Settings
    catalogue: Catalogue
    views: Sequence[View]
    at_ms: int
    kept: ReadoutCache

    def __post_init__(self) -> None:
        before, self.kept.numbering = self.kept.numbering, None
        self.numbering = SegmentIndex(self.settings, self.catalogue, self.views, before)
        self.kept.numbering = self.numbering
        self.kept.panes.begin(self.views, self.numbering.maps, self.numbering.rows)
        self.items = None
        if self.catalogue.item_counts is not None:
            self.items = self.kept.items
            shown = dict(zip(self.settings.dimension_names, self.numbering.shown, strict=True))
            self.items.begin(self.catalogue.item_counts, self.views, shown)
        self._times = Times(self.catalogue, self.views)
        rings = rings_of(self.settings)
        self.whole = {ring.label: self._made(number, ring) for number, ring in enumerate(rings, 1)}
        named = self.settings.windows.named_ms
        of_items = [label for label in named if label in self.settings.item_windows]
        for label in named:  # to that of a file nothing is compared but itself
            window = self.whole[label]
            window.longest = self.whole[max(named, key=lambda each: named[each])]
            longest = max(of_items, key=lambda each: named[each], default=label)
            window.longest_of_items = self.whole[longest]

    def totals(self) -> Window:
        """What was counted since the state began."""
        return self._made(0, None)

    def _made(self, number: int, ring: Ring | None) -> Window:
        items, since = (
            self.items if ring else None,
            self._times.of(number, ring.label if ring else ""),
        )
        made = (self.settings, self.catalogue, self.views, self.numbering, number, ring, self.at_ms)
        return Window(*made, self.kept.panes, items, since)


def _shown(
    settings: Settings, catalogue: Catalogue, windows: _Windows, labels: Collection[str] | None
) -> Iterator[SeriesBlock]:
    since_start = windows.totals()
    totals = [shown_under(settings, since_start, "", rollup) for rollup in settings.rollups]
    every = [
        shown_under(settings, window, label, rollup)
        for label, window in windows.whole.items()
        if labels is None or label in labels
        for rollup in settings.rollups
    ]
    for scope, found in (("total", totals), ("window", every)):
        for metric in catalogue.metrics:
            for shown in found if metric.scope == scope else ():
                if shown.sums.segments:
                    yield from shown.blocks(metric)


def shown_under(
    settings: Settings, window: Window, label: str, rollup: tuple[str, ...]
) -> ShownSums:
    """What is shown of a window under a rollup; ``label``: its own, "" of the totals."""
    sums, first = window.rolled_up(rollup), {"window": label} if label else {}
    names = settings.dimension_names
    labels = _LabelRows(first, names, sums.segments)
    return ShownSums(sums, labels, len(set(rollup)), settings.is_detailed(rollup))


def _block(
    metric: Metric, series: Series, labels: Sequence[Labels], since_ms: int | None
) -> SeriesBlock:
    present = series.present.nonzero()[0].tolist()
    values = series.values.tolist() if present else []
    name = PREFIX + metric.name + series.suffix
    extra = dict(series.labels)
    return SeriesBlock(name, metric.kind, metric.doc, labels, extra, values, present, since_ms)


def sampled_blocks(
    settings: Settings, family: Family[Callable[[_Inputs], Iterator[Sample]]], inputs: _Inputs
) -> Iterator[SeriesBlock]:
    """The series of a family that are no function of sums, one block for each sample."""
    for declared in family.metrics:
        names = _label_names(settings, declared)
        for labels, value, *suffix in declared.series(inputs):
            named = dict(zip(names, labels, strict=not suffix))
            name = PREFIX + declared.name + "".join(suffix)
            yield SeriesBlock(name, declared.kind, declared.doc, [named], {}, [value], [0])


def _label_names(settings: Settings, declared: DeclaredSeries[Any]) -> list[str]:
    return [
        name
        for label in declared.labels
        for name in (settings.dimension_names if label == DIMENSIONS else (label,))
    ]
