"""The sums of an alert's two series over all partitions: windows and days by groups of users, and
totals of windows of the past four weeks.

Panes added up over time: the sums of any window are the difference of two rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.encoding.limbs import VALUE_BITS, joined
from streamer.encoding.packed import pane_number, ring_and_pane
from streamer.encoding.segments import ALL, Label
from streamer.metrics.alert_series import (
    ABOVE,
    BELOW,
    BELOW_HIGH,
    CHUNK,
    HIGH,
    PANES,
    PARTS,
    STATS,
    AlertSeries,
)
from streamer.query.panes import PaneReader
from streamer.query.segment_index import Segment, values_shown
from streamer.query.sum_rows import SumRows
from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.settings.labels import OTHER
from streamer.settings.model import Settings
from streamer.state.snapshot import SeriesView, View
from streamer.stats.alerting.explain import Explanation, explain
from streamer.stats.alerting.past import Totals
from streamer.stats.random_groups import GroupSums


@dataclass(frozen=True)
class PrefixSums:
    """Sums of the panes from ``first`` on up to each: (panes + 1, statistics). They may wrap around
    64 bits; a difference that fits is right."""

    first: int
    sums: I64

    def between(self, first: int, last: int) -> I64:
        """The sums of the panes from ``first`` to ``last``."""
        end = len(self.sums) - 1
        start, stop = (min(max(pane - self.first, 0), end) for pane in (first, last + 1))
        found: I64 = self.sums[stop] - self.sums[start]
        return found

    def by_panes(self) -> PrefixSums:
        """Where these are sums of chunks: sums up to each pane of them, (panes + 1, sides)."""
        chunks = np.diff(self.sums, axis=0).reshape(-1, PARTS, CHUNK)
        return PrefixSums(self.first * CHUNK, _added_up(chunks.swapaxes(1, 2).reshape(-1, PARTS)))


def cumulated(
    reader: PaneReader, named: Sequence[Segment], segments: Sequence[Segment], panes: range
) -> list[PrefixSums]:
    """Sums of all partitions in some panes of the first ring, for each segment. ``named``: what
    the numbers of the reader are."""
    sums = np.zeros((len(segments), len(panes), STATS), np.int64)
    numbers = [pane_number(PANES, pane) for pane in panes]
    pane, label, stat, value = reader.by_pane(numbers)
    place = pane * STATS + stat
    for number, segment in enumerate(segments):
        is_in = np.array([segment in (of, (ALL,) * len(of)) for of in named], bool)[label]
        np.add.at(sums[number].reshape(-1), place[is_in], value[is_in])
    return [PrefixSums(panes.start, _added_up(each)) for each in sums]


def _added_up(sums: I64) -> I64:
    """(panes, statistics) → (panes + 1, statistics): of the panes before each."""
    return np.concatenate([np.zeros((1, sums.shape[1]), np.int64), np.cumsum(sums, axis=0)])


_DAYS = 2
"""The ring of days, after that of panes (or chunks)."""
Sums = Mapping[Segment, I64]
"""Statistics of the finest segments, as the core has them; of composites a row for each part."""
RawTotals = tuple[int, ...]
"""Σx and Σy, of composites those of each part."""


class WindowPanes(Protocol):
    """Windows of an alert's metric, be it a ratio or a composite of some."""

    @property
    def series(self) -> AlertSeries:
        """How it is kept; of composites that of the first part."""
        ...

    @property
    def since_ms(self) -> int:
        """From when on every partition counts the metric."""
        ...

    @property
    def first_day(self) -> int | None:
        """The first day that was counted as a whole; None if there is none."""
        ...

    def window(self, last: int) -> Sums:
        """The window whose last pane is ``last``."""
        ...

    def totals(self, last: int) -> Mapping[Segment, RawTotals]:
        """Totals of the window whose last pane is ``last``, within four weeks."""
        ...

    def grouped(self, window: Sums, segment: Segment) -> GroupSums:
        """The sums of one segment, or of all where it is everything."""
        ...

    def total_of(self, window: Mapping[Segment, RawTotals], segment: Segment) -> Totals:
        """The totals of one segment, or of all where it is everything."""
        ...


class Panes(WindowPanes, Protocol):
    """All that is stored of an alert's metric."""

    @property
    def shown(self) -> Mapping[str, set[str]]:
        """Dimension → the values that readers see."""
        ...

    @property
    def has_lost_days(self) -> bool:
        """Whether days before the first one may have been counted, and are not kept any more."""
        ...

    def day(self, day: int) -> Sums:
        """The sums of one UTC day; ``day``: days from 1970."""
        ...

    def of_segments(self, segments: Sequence[Segment]) -> Mapping[Segment, WindowPanes]:
        """Windows of some segments, made for reading hundreds of them."""
        ...

    def explained(self, now: Mapping[str, RawTotals], then: Mapping[str, RawTotals]) -> Explanation:
        """The change between totals by segment, split by segment."""
        ...


class _OfRatio:
    """How windows of a ratio are read."""

    def grouped(self, window: Sums, segment: Segment) -> GroupSums:
        """The sums of one segment, or of all where it is everything."""
        chosen = chosen_of(window, segment)
        return group_sums(np.sum(chosen, axis=0)) if chosen else GroupSums()

    def total_of(self, window: Mapping[Segment, RawTotals], segment: Segment) -> Totals:
        """The totals of one segment, or of all where it is everything."""
        chosen = chosen_of(window, segment)
        x, y = (sum(part) for part in zip((0, 0), *chosen, strict=True))
        return x, max(0, y)


class AlertPanes(_OfRatio):
    """What is stored of one alert's metric: ``series`` by groups of users, ``weeks`` by time."""

    def __init__(
        self, settings: Settings, series: AlertSeries, weeks: AlertSeries, views: Sequence[View]
    ) -> None:
        self.series = series
        self._rings = series.rings[0], weeks.rings[0]
        self._views = _held(views, series)
        self.shown = dict(zip(settings.dimension_names, values_shown(settings, views), strict=True))
        self.stream_ms = max((view.header.stream_ms for view in views), default=0)
        self._groups, self._segments = self._reader(self._views)
        self._weeks, self._segments_of_weeks = self._reader(_held(views, weeks))

    def _reader(self, views: Sequence[SeriesView]) -> tuple[PaneReader, list[Segment]]:
        """Of the panes of a series, and the segments that it numbers."""
        numbers: dict[Segment, int] = {}
        maps = [
            np.array(
                [numbers.setdefault(self._segment(label), len(numbers)) for label in view.labels],
                np.int64,
            )
            for view in views
        ]
        reader = PaneReader()
        reader.begin(views, maps, SumRows.equal(len(numbers), STATS))
        return reader, list(numbers)

    @cached_property
    def since_ms(self) -> int:
        """From when on every partition counts the metric."""
        return max((view.since_ms for view in self._views), default=0)

    @cached_property
    def oldest_day(self) -> int | None:
        """The first day, from 1970, of which anything is kept; None if there is none."""
        held = [
            ring_and_pane(number)
            for view in self._views
            for number, (codes, _) in view.panes.items()
            if len(codes)
        ]
        return min((pane for ring, pane in held if ring == _DAYS), default=None)

    @cached_property
    def has_lost_days(self) -> bool:
        """Whether days before the first one may have been counted, and are not kept any more:
        traffic may have paused for less than four weeks at the time that is leaving."""
        oldest = self.oldest_day
        left = self.series.rings[1].oldest(self.stream_ms)
        return oldest is not None and oldest < left + 7 * limits.BASELINE_WEEKS

    @cached_property
    def first_day(self) -> int | None:
        """The first day that was counted as a whole: the day on which the first events were is
        not; None if there is none."""
        if self.oldest_day is None:
            return None
        return max(self.oldest_day + (not self.has_lost_days), -(-self.since_ms // DAY_MS))

    def window(self, last: int) -> Sums:
        """The window whose last pane is ``last``."""
        return self._sums(PANES, range(last - limits.PANES_OF_ALERTS + 1, last + 1))

    def day(self, day: int) -> Sums:
        """The sums of one UTC day; ``day``: days from 1970."""
        return self._sums(_DAYS, range(day, day + 1))

    def totals(self, last: int) -> Mapping[Segment, Totals]:
        """Σx and Σy of the window whose last pane is ``last``, within four weeks."""
        first = last - limits.PANES_OF_ALERTS + 1
        sums = np.zeros((len(self._segments_of_weeks), PARTS), np.int64)
        for chunk in range(first // CHUNK, last // CHUNK + 1):
            slots = slice(max(0, first - chunk * CHUNK), last + 1 - chunk * CHUNK)
            sums += self._chunk(chunk)[:, :, slots].sum(axis=2)
        held = np.flatnonzero(sums.any(axis=1)).tolist()
        return {self._segments_of_weeks[place]: _totals(sums[place]) for place in held}

    def by_pane(self, segment: Segment, panes: range) -> tuple[F64, F64]:
        """Σx and Σy in each of some neighbouring panes."""
        everything = all(value == ALL for value in segment)
        at = [i for i, each in enumerate(self._segments_of_weeks) if everything or each == segment]
        chunks = range(panes.start // CHUNK, -(-panes.stop // CHUNK))
        sums = [self._chunk(chunk)[at].sum(axis=0) for chunk in chunks]
        first = panes.start - chunks.start * CHUNK
        own = np.concatenate(sums, axis=1)[:, first : first + len(panes)]
        x, y, high, below_high = own.astype(np.float64)
        scale = float(1 << VALUE_BITS)
        return x + scale * high, y + scale * below_high

    @cached_property
    def _chunks(self) -> dict[int, I64]:
        return {}

    def _chunk(self, chunk: int) -> I64:
        """(segments, sides, panes) of a chunk."""
        if chunk not in self._chunks:
            number = pane_number(PANES, chunk)
            self._chunks[chunk] = self._weeks.sum_once(number, number).reshape(-1, PARTS, CHUNK)
        return self._chunks[chunk]

    def _segment(self, label: Label) -> Segment:
        """Values as readers see them, of all dimensions."""
        return tuple(
            ALL if name not in label else label[name] if label[name] in shown else OTHER
            for name, shown in self.shown.items()
        )

    def of_segments(self, segments: Sequence[Segment]) -> Mapping[Segment, SegmentPanes]:
        """Windows of some segments, made for reading hundreds of them."""
        by_group, by_time = (
            range(ring.oldest(self.stream_ms), self.stream_ms // ring.pane_ms + 2)
            for ring in self._rings
        )
        groups = cumulated(self._groups, self._segments, segments, by_group)
        weeks = cumulated(self._weeks, self._segments_of_weeks, segments, by_time)
        return {
            segment: SegmentPanes(self, segment, its, its_weeks.by_panes())
            for segment, its, its_weeks in zip(segments, groups, weeks, strict=True)
        }

    def explained(self, now: Mapping[str, RawTotals], then: Mapping[str, RawTotals]) -> Explanation:
        """The change between totals by segment, split by segment."""
        sides = [{name: (x, y) for name, (x, y) in side.items()} for side in (now, then)]
        return explain(*sides)

    def _sums(self, ring: int, panes: range) -> Sums:
        first, last = (pane_number(ring, pane) for pane in (max(panes.start, 0), panes.stop - 1))
        sums = self._groups.sum_once(first, last).reshape(-1, STATS)
        return {self._segments[i]: sums[i] for i in np.flatnonzero(sums.any(axis=1)).tolist()}


class SegmentPanes(_OfRatio):
    """Windows of one segment of an alert's metric, each the difference of two sums."""

    def __init__(
        self, of: AlertPanes, segment: Segment, groups: PrefixSums, weeks: PrefixSums
    ) -> None:
        self.series, self.since_ms, self.first_day = of.series, of.since_ms, of.first_day
        self._segment, self._groups, self._weeks = segment, groups, weeks

    def window(self, last: int) -> Sums:
        """The window whose last pane is ``last``."""
        sums = self._groups.between(last - limits.PANES_OF_ALERTS + 1, last)
        return {self._segment: sums} if sums.any() else {}

    def totals(self, last: int) -> Mapping[Segment, Totals]:
        """Σx and Σy of the window whose last pane is ``last``, within four weeks."""
        sums = self._weeks.between(last - limits.PANES_OF_ALERTS + 1, last)
        return {self._segment: _totals(sums)} if sums.any() else {}


def _totals(sums: I64) -> Totals:
    """Σx and Σy of the sides of a chunk."""
    x, y, high, below_high = sums.tolist()
    return (high << VALUE_BITS) + x, (below_high << VALUE_BITS) + y


def _held(views: Sequence[View], series: AlertSeries) -> list[SeriesView]:
    return [view.series[series.shape] for view in views if series.shape in view.series]


_T = TypeVar("_T")


def chosen_of(window: Mapping[Segment, _T], segment: Segment) -> list[_T]:
    """What a window has of one segment, or of all where it is everything."""
    if all(value == ALL for value in segment):
        return list(window.values())
    return [window[segment]] if segment in window else []


def group_sums(sums: I64) -> GroupSums:
    """Statistics as numerators and denominators by group."""
    return GroupSums(tuple(above(sums)), tuple(max(0, y) for y in below(sums)))


def above(sums: I64) -> list[int]:
    """The numerators by group."""
    return joined(sums[HIGH:BELOW_HIGH], sums[ABOVE:BELOW])


def below(sums: I64) -> list[int]:
    """The denominators by group."""
    return joined(sums[BELOW_HIGH:], sums[BELOW:HIGH])
