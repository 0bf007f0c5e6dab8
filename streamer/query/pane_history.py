"""The course of a metric: its value in each part of a window, recomputed from stored panes.

A window of length W is kept as panes of W / 60. Neighbouring panes make a point; what a point shows
is the metric of the events in its panes alone, as a window of their length would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.encoding.packed import pane_number
from streamer.encoding.segments import ALL
from streamer.metrics import intervals
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import Metric, Variant, series_of
from streamer.metrics.layout import Layout
from streamer.metrics.reads import (
    AllItems,
    ByValue,
    OfItems,
    Overall,
    Part,
    Read,
    Statistic,
    Users,
)
from streamer.metrics.rings import Ring, rings_of
from streamer.metrics.rollups import Rollup
from streamer.query.panes import PaneReader
from streamer.query.segment_index import Segment, SegmentIndex
from streamer.query.since import Times
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.snapshot import View, first_event_ms

Labels = Mapping[str, str]
_SIZE = "impressions"
"""The statistic by which lines are chosen where there are too many: impressions."""


class NotByPaneError(Exception):
    """A metric needs what a pane does not hold: sums over users, counts of items."""


class NotKeptError(Exception):
    """Sums are not kept by these dimensions; the text is the line of settings that keeps them."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for. ``window``: its label; ``where``: dimension → value; ``split``: a
    dimension of which each value gets a line; ``labels``: beyond window and dimensions;
    ``points``: at most so many; ``from_ms`` and ``until_ms``: a part of what is kept."""

    metric: Metric
    window: str
    where: Labels = field(default_factory=dict)
    split: str | None = None
    labels: Labels = field(default_factory=dict)
    points: int = limits.HISTORY_POINTS
    from_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True)
class Line:
    """One series: None where there is no value. ``lower`` and ``upper``: ends of its 95 %
    intervals, empty where the metric has none."""

    labels: Labels
    values: list[float | None]
    lower: list[float | None]
    upper: list[float | None]


@dataclass(frozen=True)
class History:
    """Points of ``step_ms`` each, the first from ``starts_ms[0]`` on; the last may not be over.
    ``counted_since_ms``: points before are empty, for the metric was not counted yet (0: always).
    ``omitted``: lines beyond ``limits.HISTORY_LINES``, those with the fewest impressions."""

    step_ms: int
    starts_ms: list[int]
    lines: list[Line]
    counted_since_ms: int
    omitted: int


class PaneHistory:
    """The panes of one reader's commit, by which any metric's course is recomputed."""

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        views: Sequence[View],
        panes: PaneReader,
    ) -> None:
        """``panes``: what is kept from one commit to the next."""
        self.settings, self.catalogue = settings, catalogue
        self.numbering = SegmentIndex(settings, catalogue, views)
        self._panes = panes
        panes.begin(views, self.numbering.maps, self.numbering.rows)
        self._times = Times(catalogue, views)
        self._rings = {ring.label: (n, ring) for n, ring in enumerate(rings_of(settings), 1)}
        self._by_name = {metric.name: metric for metric in catalogue.metrics}
        self.oldest_ms = first_event_ms(views)

    def read(self, wanted: Wanted, at_ms: int) -> History:
        """The course up to a time. NotByPaneError where panes do not hold it, NotKeptError where
        they do not by these dimensions."""
        rollup = self._rollup(wanted)
        number, ring = self._rings[wanted.window]
        spans = _Spans.of(ring, wanted, at_ms)
        ends = [intervals.name_of(wanted.metric.name, end) for end in ("lower", "upper")]
        metrics = [wanted.metric, *(self._by_name[name] for name in ends if name in self._by_name)]
        parts = {metric.name: self._parts(metric, wanted.labels) for metric in metrics}
        read = {name: self._codes(each) for name, each in parts.items()}
        metrics = [metric for metric in metrics if read[metric.name] <= {*rollup.codes}]
        if wanted.metric not in metrics:
            raise NotKeptError(_line("detailed", rollup.dimensions))
        codes = self._size_codes.union(*(read[metric.name] for metric in metrics))
        columns = self._columns(number, spans, codes)
        rows, segments = self._rows(wanted, rollup)
        rows, segments, omitted = self._largest(rows, segments, columns)
        sums = _Sums(self, spans, columns, rows, len(segments), at_ms)
        found, *of_ends = [self._course(metric, sums, wanted.labels) for metric in metrics]
        beside = of_ends or [{}, {}]
        since, dimensions = self._times.of(number, wanted.window), rollup.dimensions
        times = [since.of(part, self.catalogue, dimensions) for part in parts[wanted.metric.name]]
        since_ms = max([since.of_rollup(dimensions), *times])
        hidden = spans.starts_ms < since_ms
        lines = [
            Line(
                {**self._named(segment), **dict(key)},
                *(_listed(each.get(key), row, hidden) for each in (found, *beside)),
            )
            for key in found
            for row, segment in enumerate(segments)
        ]
        kept = [line for line in lines if any(value is not None for value in line.values)]
        return History(spans.step_ms, spans.starts_ms.tolist(), kept, since_ms, omitted)

    def step_ms(self, wanted: Wanted) -> int:
        """Length of a point."""
        return _Spans.of(self._rings[wanted.window][1], wanted, 0).step_ms

    def kept_from_ms(self, wanted: Wanted, at_ms: int) -> int:
        """When the oldest pane of a window begins."""
        ring = self._rings[wanted.window][1]
        return ring.oldest(at_ms) * ring.pane_ms

    def values_of(self, dimension: str) -> list[str]:
        """The values of a dimension that events have."""
        place = self.settings.dimension_names.index(dimension)
        return sorted({segment[place] for segment in self.numbering.segments} - {ALL})

    def _rollup(self, wanted: Wanted) -> Rollup:
        """The rollup of the dimensions that are asked for."""
        kept = {*wanted.where, wanted.split}
        dimensions = tuple(name for name in self.settings.dimension_names if name in kept)
        for rollup in self.catalogue.rollups:
            if rollup.dimensions == dimensions:
                return rollup
        raise NotKeptError(_line("rollups", dimensions))

    def _rows(self, wanted: Wanted, rollup: Rollup) -> tuple[I64, list[Segment]]:
        """Segment of the numbering → row, -1 for none; and what the rows are."""
        names, found = self.settings.dimension_names, list[Segment]()
        rows = np.full(len(self.numbering.segments), -1, np.int64)
        for number in self.numbering.numbers_of(rollup.dimensions).tolist():
            segment = self.numbering.segments[number]
            own = dict(zip(names, segment, strict=True))
            if all(own[name] == value for name, value in wanted.where.items()):
                rows[number] = len(found)
                found.append(segment)
        return rows, found

    @cached_property
    def _size_codes(self) -> set[int]:
        layout = self.catalogue.layout
        size = layout.span(_SIZE) if _SIZE in layout.at else slice(0, 0)
        return {*range(size.start, size.stop)}

    def _variants(self, metric: Metric, labels: Labels) -> list[Variant]:
        """Those whose series may have the labels that are asked for."""
        every = metric.variants(self.catalogue)
        return [v for v in every if all(v.labels.get(name, x) == x for name, x in labels.items())]

    def _parts(self, metric: Metric, labels: Labels) -> list[Part]:
        """What a metric is made of. NotByPaneError where panes do not hold it."""
        variants, layout = self._variants(metric, labels), self.catalogue.layout
        parts = [part for variant in variants for part in variant.parts(layout)]
        for part in parts:
            if not isinstance(part, Statistic | Overall):
                raise NotByPaneError(f"{_IN_WORDS[type(part)]} only known for the whole window")
        return parts

    def _codes(self, parts: Sequence[Part]) -> set[int]:
        read = (Statistic(p.name) if isinstance(p, Overall) else p for p in parts)
        statistics = (part for part in read if isinstance(part, Statistic))
        return {code for each in statistics for code in each.codes(self.catalogue.layout)}

    def _course(
        self, metric: Metric, sums: _Sums, labels: Labels
    ) -> dict[_Key, np.ndarray[Any, Any]]:
        """Labels of a series → its values, (rows, points), NaN where there are none."""
        found: dict[_Key, np.ndarray[Any, Any]] = {}
        shape, variants = (len(sums.rows), sums.spans.points), self._variants(metric, labels)
        for point in range(sums.spans.points):
            sums.point = point
            with np.errstate(all="ignore"):
                for variant in variants:
                    for series in series_of(metric, variant, sums.find):
                        if labels.items() <= series.labels.items():
                            key = frozenset(series.labels.items())
                            values = found.setdefault(key, np.full(shape, np.nan))
                            shown = series.present
                            values[shown, point] = np.asarray(series.values)[shown]
        return found

    def _largest(
        self, rows: I64, segments: list[Segment], columns: _Columns
    ) -> tuple[I64, list[Segment], int]:
        """The rows with the most impressions, in that order, and how many are left out."""
        if len(segments) < 2 or _SIZE not in self.catalogue.layout.at:
            return rows, segments, 0
        span = self.catalogue.layout.span(_SIZE)
        here = (columns.stat >= span.start) & (columns.stat < span.stop)
        row, sizes = rows[columns.segment[here]], np.zeros(len(segments) + 1, np.int64)
        np.add.at(sizes, row, columns.value[here])  # the last one is of those in no row
        shown = int(np.count_nonzero(sizes[:-1]))
        chosen = np.argsort(-sizes[:-1], kind="stable")[: min(shown, limits.HISTORY_LINES)]
        places = np.full(len(segments) + 1, -1, np.int64)
        places[chosen] = np.arange(len(chosen))
        return places[rows], [segments[i] for i in chosen.tolist()], shown - len(chosen)

    @cached_property
    def is_total(self) -> I64:
        """By segment: 1 for the total."""
        found = np.zeros(len(self.numbering.segments), np.int64)
        found[self.numbering.numbers_of(())] = 1
        return found

    def _named(self, segment: Segment) -> Labels:
        return dict(zip(self.settings.dimension_names, segment, strict=True))

    def _columns(self, number: int, spans: _Spans, codes: set[int]) -> _Columns:
        """All sums of some statistics in the panes of a ring."""
        first, last = (pane_number(number, pane) for pane in (spans.first, spans.last))
        panes = self._panes.cells(number, frozenset(codes), range(first, last + 1))
        points = np.array([(pane - first) // spans.panes for pane in panes], np.int64)
        sizes = [len(values) for _, _, values in panes.values()]
        nothing = np.zeros(0, np.int64)
        found = zip(*panes.values(), strict=True) if panes else [[nothing]] * 3
        return _Columns(np.repeat(points, sizes), *(np.concatenate(each) for each in found))


@dataclass(frozen=True)
class _Columns:
    """Sums of panes."""

    point: I64
    segment: I64
    stat: I64
    value: I64


@dataclass(frozen=True)
class _Spans:
    """Points of so many panes each: panes from ``first`` to ``last``."""

    ring: Ring
    panes: int
    first: int
    last: int

    @staticmethod
    def of(ring: Ring, wanted: Wanted, at_ms: int) -> _Spans:
        """As many points as fit into the window, at most so many, from whole steps on; or into the
        part of it that is wanted, from its first pane on."""
        if wanted.from_ms is not None and wanted.until_ms is not None:
            first, last = (ms // ring.pane_ms for ms in (wanted.from_ms, wanted.until_ms - 1))
            panes = -(-(last - first + 1) // min(wanted.points, last - first + 1))
            return _Spans(ring, panes, first, last)
        panes = -(-ring.panes // min(wanted.points, ring.panes))
        first = -(-ring.oldest(at_ms) // panes) * panes
        return _Spans(ring, panes, first, at_ms // ring.pane_ms)

    @property
    def step_ms(self) -> int:
        """Length of a point."""
        return self.panes * self.ring.pane_ms

    @property
    def points(self) -> int:
        """How many there are."""
        return (self.last - self.first) // self.panes + 1

    @cached_property
    def starts_ms(self) -> I64:
        """When each begins."""
        return (self.first + self.panes * np.arange(self.points)) * self.ring.pane_ms

    def ends_ms(self, point: int) -> int:
        """When a point ends."""
        return int(self.starts_ms[point]) + self.step_ms


class _Sums:
    """The sums of one point after another: the metrics' ``Sums``, of what panes hold."""

    def __init__(
        self,
        of: PaneHistory,
        spans: _Spans,
        columns: _Columns,
        rows: I64,
        count: int,
        at_ms: int,
    ) -> None:
        """``rows``: segment → row, -1 for none; ``at_ms``: the time of reading."""
        self._of, self.spans, self._columns, self._at_ms = of, spans, columns, at_ms
        self._rows, self._count = rows, count
        self.point = 0
        self._read: dict[tuple[str, tuple[int, int]], I64] = {}
        self._read_overall: dict[str, I64] = {}

    def _span(self, name: str) -> slice:
        return self.layout.span(name)

    def _chosen(self, span: tuple[int, int], by_segment: I64) -> tuple[I64, I64, I64, I64]:
        """Of the sums of some codes the points, places, what their segment is, and values."""
        columns = self._columns
        here = np.flatnonzero((columns.stat >= span[0]) & (columns.stat < span[1]))
        place, of_segment = columns.stat[here] - span[0], by_segment[columns.segment[here]]
        return columns.point[here], place, of_segment, columns.value[here]

    def find(self, read: Read) -> Any:
        """What a metric reads."""
        return read.of(self)  # type: ignore[arg-type]  # of what panes do not hold nothing is asked

    def _by_row(self, name: str, within: slice) -> I64:
        """A statistic, or some of its integers, at the present point: (rows, width)."""
        first, width = self._span(name).start, self.layout.width[name]
        start, stop, _ = within.indices(width)
        span = first + start, first + stop
        if (name, span) not in self._read:
            point, place, row, value = self._chosen(span, self._rows)
            sums = np.zeros((self.spans.points, self._count, stop - start), np.int64)
            shown = row >= 0
            np.add.at(sums, (point[shown], row[shown], place[shown]), value[shown])
            self._read[name, span] = sums
        found: I64 = self._read[name, span][self.point]
        return found[:, 0] if width == 1 else found

    def overall(self, name: str) -> I64:
        if name not in self._read_overall:
            span = self._span(name)
            point, place, is_total, value = self._chosen((span.start, span.stop), self._of.is_total)
            whole = np.zeros((self.spans.points, span.stop - span.start), np.int64)
            np.add.at(whole, (point, place), np.where(is_total, value, 0))
            self._read_overall[name] = whole
        found: I64 = self._read_overall[name][self.point]
        return found[0] if found.shape[0] == 1 else found

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        late_ms = self._of.settings.time.max_lateness_ms
        ends_ms = self.spans.ends_ms(self.point)
        is_there = horizon_ms is None or ends_ms + horizon_ms + late_ms <= self._at_ms
        return self._by_row(name, within) if is_there else None

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        return None

    @property
    def rows(self) -> Sequence[Any]:
        return range(self._count)

    @property
    def user_sample_ratio(self) -> float:
        return 1.0

    @property
    def layout(self) -> Layout:
        return self._of.catalogue.layout


def _line(setting: str, dimensions: Sequence[str]) -> str:
    """
    >>> _line("rollups", ("variant", "surface"))
    'metrics.rollups += ["variant", "surface"]'
    """
    names = ", ".join(f'"{name}"' for name in dimensions)
    return f"metrics.{setting} += [{names}]"


_IN_WORDS: Mapping[type[Part], str] = {
    ByValue: "differences between all values of a dimension are",
    Users: "distinct users are",
    OfItems: "distinct items are",
    AllItems: "distinct items are",
}
_Key = frozenset[tuple[str, str]]


def _listed(values: np.ndarray[Any, Any] | None, row: int, hidden: Any) -> list[float | None]:
    if values is None:
        return []
    is_there = np.isfinite(values[row]) & ~hidden
    return [float(x) if there else None for x, there in zip(values[row], is_there, strict=True)]
