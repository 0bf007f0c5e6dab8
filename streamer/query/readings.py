"""Readings: names, labels and values, as ``/metrics`` and the JSON API show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from streamer.ingest.keying import topics_not_by_user
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.definition import Metric, Series
from streamer.metrics.rings import Ring, rings_of
from streamer.query import alert_gauges, experiment_gauges
from streamer.query.alerts import Watched, watched
from streamer.query.counters import COUNTERS, Known
from streamer.query.exactness import Basis, Inexact, inexact
from streamer.query.experiments import stored_experiments
from streamer.query.item_sums import ItemSums
from streamer.query.numbering import Numbering
from streamer.query.pane_sums import PaneSums
from streamer.query.since import Key, Marks, Times, key_of, unlike
from streamer.query.windows import Rolled, Window
from streamer.settings.model import Settings
from streamer.state.snapshot import View

_SINCE = "counted_since_ms"


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
    counted_since_ms: int | None = None
    """Where the window is not full: what it holds is counted from then on."""

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


@dataclass(frozen=True)
class Readout:
    """All readings at one stream time, in catalogue order, those of a name together; ``watched``:
    what is said of every segment that an alert watches, of which some are readings, too;
    ``inexact``: what is not exact, and why."""

    stream_ms: int
    blocks: Sequence[Block]
    watched: Sequence[Watched] = ()
    inexact: Sequence[Inexact] = ()

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
                {
                    **{"name": r.name, "labels": r.labels, "value": r.value},
                    **({} if r.counted_since_ms is None else {_SINCE: r.counted_since_ms}),
                }
                for r in self.readings
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
    is_unread: bool = False,
) -> Readout:
    """Read all windows at stream time (or at ``now_ms``, which only a live reader gives).

    ``kept``: sums of the readout before, of the same reader; ``keyed``: kind → whether its topic is
    keyed by user; where one is not, metrics of users and experiments are left out;
    ``is_unread``: whether there are topics of which not all is read.
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
    sums = KeptSums() if kept is None else kept
    windows = _Windows(settings, catalogue, views, at_ms, sums)
    samples = {
        label: items.sample_ratio
        for label, window in (windows.whole.items() if stream_ms else ())
        if (items := window.items(None)) is not None
    }
    headers = [view.header for view in views]
    wrong = inexact(Basis(settings, headers, keyed, samples, is_unread))
    known = Known(settings, headers, stream_ms, experiments, alerts, samples, wrong)
    blocks = [*_counters(known), *_shown(settings, catalogue, windows)]
    return Readout(stream_ms, blocks, alerts, wrong)


@dataclass(frozen=True)
class _Part:
    """A window under a rollup; ``labels``: of its segments."""

    sums: Rolled
    labels: list[Labels]


@dataclass(frozen=True)
class _Level:
    """Some sums of a window count from ``since_ms`` on, and these metrics read any of them; the
    window where they are others, and its later part."""

    since_ms: int
    metrics: Set[str]
    marked: _Part
    later: _Part


@dataclass(frozen=True)
class _Shown:
    """What is shown of a window under a rollup. ``since_ms``: it is counted from then on only."""

    whole: _Part
    dimensions: int
    is_detailed: bool
    since_ms: int | None
    levels: Sequence[_Level]

    def blocks(self, metric: Metric) -> Iterator[Block]:
        """The series of a metric."""
        found = list(metric.shown(self.whole.sums, self.dimensions, self.is_detailed))
        later: dict[Key, int] = {}
        for at, level in enumerate(self.levels):
            if metric.name in level.metrics:
                shown = metric.shown(level.marked.sums, self.dimensions, self.is_detailed)
                later.update(dict.fromkeys(unlike(found, shown), at))
        for series in found:
            if key_of(series) not in later:
                yield _block(metric, series, self.whole.labels, self.since_ms)
        for at in sorted(set(later.values())):
            since_ms, part = self.levels[at].since_ms, self.levels[at].later
            for series in metric.shown(part.sums, self.dimensions, self.is_detailed):
                if later.get(key_of(series)) == at:
                    yield _block(metric, series, part.labels, since_ms)


@dataclass
class _Windows:
    """The windows of a readout, and what they are read from."""

    settings: Settings
    catalogue: Catalogue
    views: Sequence[View]
    at_ms: int
    kept: KeptSums

    def __post_init__(self) -> None:
        self.numbering = Numbering(self.settings, self.views)
        size = self.catalogue.layout.size
        self.kept.panes.begin(self.views, self.numbering.maps, self.numbering.size, size)
        self.items = None
        if self.catalogue.item_counts is not None:
            self.items = self.kept.items
            shown = dict(zip(self.settings.dimension_names, self.numbering.shown, strict=True))
            self.items.begin(self.catalogue.item_counts, self.views, shown)
        self.times = Times(self.catalogue, self.views)
        self.rings = rings_of(self.settings)
        self.whole = {
            ring.label: self._made(number, ring, 0, None)
            for number, ring in enumerate(self.rings, 1)
        }
        self._link(list(self.whole.values()), self.whole)
        self._marks = {
            ring.label: self.times.levels(number, ring.label, self.whole[ring.label].start_ms)
            for number, ring in enumerate(self.rings, 1)
        }
        self._levels: dict[int, tuple[dict[str, Window], dict[str, Window]]] = {}
        self._read: dict[str, dict[str, set[str]]] = {}

    def totals(self) -> Window:
        """What was counted since the state began."""
        return self._made(0, None, 0, None)

    def _made(self, number: int, ring: Ring | None, since_ms: int, marks: Marks | None) -> Window:
        items = self.items if ring else None
        made = (self.settings, self.catalogue, self.views, self.numbering, number, ring, self.at_ms)
        return Window(*made, self.kept.panes, items, since_ms, marks)

    def _all(self, since_ms: int, marks: Mapping[str, Marks]) -> dict[str, Window]:
        """Label → window, read again where it has marks."""
        windows = dict(self.whole)
        for number, ring in enumerate(self.rings, 1):
            if ring.label in marks:
                marked = None if since_ms else marks[ring.label]
                windows[ring.label] = self._made(number, ring, since_ms, marked)
        self._link([windows[label] for label in marks], windows)
        return windows

    def _link(self, some: Sequence[Window], windows: Mapping[str, Window]) -> None:
        spans = {ring.label: ring.span_ms for ring in self.rings}
        longest = windows[max(spans, key=lambda label: spans[label])]
        of_items = [label for label in spans if label in self.settings.item_windows]
        longest_of_items = windows[max(of_items, key=lambda label: spans[label])]
        for window in some:
            window.longest, window.longest_of_items = longest, longest_of_items

    def levels(self, label: str) -> list[tuple[int, Set[str], Window, Window]]:
        """Times within a window from which on some sums count: the metrics that read any of them,
        the window with others in their place, and its part since then."""
        found = []
        for ms, marks in sorted(self._marks[label].items()):
            if ms not in self._levels:
                at = {name: some[ms] for name, some in self._marks.items() if ms in some}
                self._levels[ms] = self._all(0, at), self._all(ms, at)
            marked, later = self._levels[ms]
            metrics = self._reading(label, marks.names(self.catalogue.layout))
            found.append((ms, metrics, marked[label], later[label]))
        return found

    def _reading(self, label: str, names: set[str]) -> Set[str]:
        """The metrics that read any of these statistics in a window."""
        if label not in self._read:
            self._read[label] = {}
            sums = Rolled(self.whole[label], ())
            for metric in self.catalogue.metrics if sums.segments else ():
                sums.memo, sums.read = {}, set()
                list(metric.series(sums) if metric.scope == "window" else ())
                self._read[label][metric.name] = sums.read
        return {name for name, read in self._read[label].items() if read & names}

    def since_ms(self, label: str) -> int | None:
        """From when on a window that is not full is counted."""
        since_ms = self.times.of_ring(1 + [ring.label for ring in self.rings].index(label))
        return since_ms if since_ms > self.whole[label].start_ms else None


def _shown(settings: Settings, catalogue: Catalogue, windows: _Windows) -> Iterator[Block]:
    since_start = windows.totals()
    totals = [_under(settings, since_start, "", rollup) for rollup in settings.rollups]
    every = [
        _under(settings, window, label, rollup, windows)
        for label, window in windows.whole.items()
        for rollup in settings.rollups
    ]
    for scope, found in (("total", totals), ("window", every)):
        for metric in catalogue.metrics:
            for shown in found if metric.scope == scope else ():
                if shown.whole.sums.segments:
                    yield from shown.blocks(metric)


def _under(
    settings: Settings,
    window: Window,
    label: str,
    rollup: tuple[str, ...],
    windows: _Windows | None = None,
) -> _Shown:
    def part(of: Window) -> _Part:
        sums, first = of.rolled_up(rollup), {"window": label} if label else {}
        names = settings.dimension_names
        return _Part(sums, [{**first, **_named(names, s)} for s in sums.segments])

    levels = [
        _Level(ms, metrics, part(marked), part(later))
        for ms, metrics, marked, later in (windows.levels(label) if windows else ())
    ]
    since_ms = windows.since_ms(label) if windows else None
    return _Shown(part(window), len(set(rollup)), settings.is_detailed(rollup), since_ms, levels)


def _named(names: Sequence[str], segment: Sequence[str]) -> Labels:
    return dict(zip(names, segment, strict=True))


def _block(metric: Metric, series: Series, labels: list[Labels], since_ms: int | None) -> Block:
    present = series.present.nonzero()[0].tolist()
    values = series.values.tolist() if present else []
    name = PREFIX + metric.name + series.suffix
    extra = dict(series.labels)
    return Block(name, metric.kind, metric.doc, labels, extra, values, present, since_ms)


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
