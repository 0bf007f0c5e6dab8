"""The history of a metric, and why it moved: read from panes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamer.encoding.segments import ALL
from streamer.errors import UsageError
from streamer.formatting import printable, span
from streamer.library.selection import MetricQuery, time_of
from streamer.library.table import Cell, Table
from streamer.metrics.catalogue import Catalogue, form_of
from streamer.metrics.definition import Metric, Series, Values
from streamer.metrics.ratios import NAMED, Ratio
from streamer.metrics.rings import rings_of
from streamer.metrics.sums import Summed
from streamer.query.pane_history import (
    History,
    Line,
    NotByPaneError,
    NotKeptError,
    PaneHistory,
    Wanted,
)
from streamer.query.panes import PaneReader
from streamer.query.why import change_parts, sentences
from streamer.settings import limits
from streamer.settings.durations import short
from streamer.settings.model import Settings
from streamer.state.snapshot import View, first_event_ms
from streamer.stats.alerting.explain import Explanation, explain


@dataclass(frozen=True)
class HistoryRequest:
    """A metric's history, of at most so many points. ``until_ms``: instead of the whole window,
    one window that ends then."""

    query: MetricQuery
    points: int = limits.HISTORY_POINTS
    until_ms: int | None = None


class MetricHistory(Table):
    """The values of a metric over time, a row for each point of each line."""

    def __init__(
        self,
        metric: Metric,
        window: str,
        by: Sequence[str],
        history: History,
        times_ms: tuple[int, int],
    ) -> None:
        """``times_ms``: of the first and the last event."""
        self.metric, self.window = metric.name, window
        self._by, self._history = tuple(by), history
        labels = sorted({name for line in history.lines for name in _own(line.labels, by)})
        rows = list(_rows(history, by, partial_points(history, times_ms)))
        names = [*by, *(name for name in labels if name not in by)]
        columns = ("time", *names, "value", "low", "high", "is_partial")
        super().__init__({n: [row.get(n) for row in rows] for n in columns})

    def latest(self) -> dict[frozenset[tuple[str, str]], float | None]:
        """Labels → the value of the last point."""
        return {
            frozenset(_own(line.labels, self._by).items()): line.values[-1]
            for line in self._history.lines
            if line.values
        }

    def as_metrics(self, counts: Mapping[frozenset[tuple[str, str]], float | None]) -> Table:
        """The last point of each line, as rows of metrics, with ``start`` and ``end`` of what they
        cover. ``counts``: by some of the labels, what the denominator is."""
        rows = [row for row in self if row["value"] is not None]
        names = [name for name in self.columns if name not in ("time", "is_partial")]

        def support(row: Mapping[str, Cell]) -> float | None:
            return next((n for of, n in counts.items() if of <= {*row.items()}), None)

        end = time_of(self._history.starts_ms[-1] + self._history.step_ms)
        return Table(
            {
                "metric": [self.metric] * len(rows),
                **{name: [row[name] for row in rows] for name in names},
                "support": [support(row) for row in rows],
                "start": [row["time"] for row in rows],
                "end": [end] * len(rows),
            }
        )


def partial_points(history: History, times_ms: tuple[int, int]) -> list[bool]:
    """Of each point, whether the log begins or ends within it. ``times_ms``: of its first and its
    last event."""
    first, last = times_ms
    ends = ((start, start + history.step_ms) for start in history.starts_ms)
    return [start < first or last < end - 1 for start, end in ends]


def _rows(
    history: History, by: Sequence[str], partial: Sequence[bool]
) -> Iterator[dict[str, Cell]]:
    for line in history.lines:
        labels = _own(line.labels, by)
        ends = [each or [None] * len(line.values) for each in (line.lower, line.upper)]
        points = zip(history.starts_ms, line.values, *ends, partial, strict=True)
        for start_ms, value, low, high, is_partial in points:
            ends_of = {"low": low, "high": high, "is_partial": is_partial}
            yield {"time": time_of(start_ms), **labels, "value": value, **ends_of}


def _own(labels: Mapping[str, str], by: Sequence[str]) -> dict[str, str]:
    """The labels of a line that tell it from others."""
    return {name: value for name, value in labels.items() if value != ALL or name in by}


def read_history(
    settings: Settings,
    catalogue: Catalogue,
    views: Sequence[View],
    request: HistoryRequest,
    stream_ms: int,
) -> MetricHistory:
    """The history up to the latest event. UsageError where panes do not hold it."""
    query = request.query
    metric = _windowed(catalogue, query)
    if len(query.by) > 1:
        raise UsageError(
            f"by = {', '.join(query.by)}: one dimension at a time; choose the others by value"
        )
    wanted = _wanted(settings, metric, query, request.points)
    if not stream_ms:  # no event was counted
        return MetricHistory(metric, query.window, query.by, History(0, [], [], 0, 0), (0, 0))
    panes = PaneHistory(settings, catalogue, views, PaneReader())
    if request.until_ms is not None:
        ending = _ending(settings, panes, wanted, (request.until_ms, stream_ms))
        if ending is None:
            raise UsageError(_not_kept(settings, panes, wanted, request.until_ms, stream_ms))
        wanted = ending[0]
    found = _without_beginning(_read(panes, wanted, stream_ms))
    times_ms = first_event_ms(views), stream_ms
    return MetricHistory(metric, query.window, query.by, found, times_ms)


def _without_beginning(history: History) -> History:
    """Without the points before the first that has a value."""
    points = zip(*(line.values for line in history.lines), strict=True)
    first = next((i for i, some in enumerate(points) if any(v is not None for v in some)), 0)
    lines = [
        Line(line.labels, *(each[first:] for each in (line.values, line.lower, line.upper)))
        for line in history.lines
    ]
    return replace(history, starts_ms=history.starts_ms[first:], lines=lines)


def _windowed(catalogue: Catalogue, query: MetricQuery) -> Metric:
    metrics = {m.name: m for m in catalogue.metrics}
    if query.name is None:
        raise UsageError("at is earlier than the latest event: name one metric")
    metric = metrics[query.name]
    if metric.scope != "window":
        raise UsageError(f"{metric.name} counts since the state began: it has no history")
    return metric


def _wanted(settings: Settings, metric: Metric, query: MetricQuery, points: int) -> Wanted:
    if not 0 < points <= limits.HISTORY_POINTS:
        raise UsageError(f"points = {points}: from 1 to {limits.HISTORY_POINTS}")
    of_dimensions = {k: v for k, v in query.labels.items() if k in settings.dimension_names}
    others = {k: v for k, v in query.labels.items() if k not in of_dimensions}
    split = query.by[0] if query.by else None
    return Wanted(metric, query.window, of_dimensions, split, others, points)


def _ending(
    settings: Settings,
    panes: PaneHistory,
    wanted: Wanted,
    times_ms: tuple[int, int],
    count: int = 1,
) -> list[Wanted] | None:
    """So many windows, one before the other, of which the first ends at a time. They are of whole
    panes: of the shortest that are still kept and that a window has a whole number of; several, of
    which the times are told, else of others. An end within a pane is that of the pane before, but
    of the latest pane its own. None where none are kept. ``times_ms``: the end, and the latest
    event."""
    until_ms, stream_ms = times_ms
    length_ms = settings.windows.lengths_ms[wanted.window]
    rings = sorted(rings_of(settings), key=lambda r: (length_ms % r.pane_ms != 0, r.pane_ms))
    for ring in (ring for ring in rings if ring.pane_ms <= length_ms):
        if length_ms % ring.pane_ms and count == 1:
            break
        end_ms = until_ms // ring.pane_ms * ring.pane_ms
        if until_ms > stream_ms:
            end_ms = -(-until_ms // ring.pane_ms) * ring.pane_ms
        each_ms = max(1, round(length_ms / ring.pane_ms)) * ring.pane_ms
        found = [
            replace(wanted, window=ring.label, from_ms=end - each_ms, until_ms=end, points=1)
            for end in range(end_ms, end_ms - count * each_ms, -each_ms)
        ]
        if end_ms - count * each_ms >= panes.kept_from_ms(found[0], stream_ms):
            return found
    return None


def _not_kept(
    settings: Settings, panes: PaneHistory, wanted: Wanted, until_ms: int, stream_ms: int
) -> str:
    """Why there is no window that ends at a time, and which there are."""
    others = (replace(wanted, window=label) for label in settings.windows.named_ms)
    times_ms = until_ms, stream_ms
    there = [each.window for each in others if _ending(settings, panes, each, times_ms)]
    return (
        f"at = {time_of(until_ms).isoformat()}: the window {wanted.window} that ends then is not "
        f"kept in whole panes: ask for {' or '.join(there) or 'a later one'}; the latest event is "
        f"of {time_of(stream_ms).isoformat()}"
    )


def _read(panes: PaneHistory, wanted: Wanted, at_ms: int) -> History:
    try:
        return panes.read(wanted, at_ms)
    except NotByPaneError as error:
        raise UsageError(f"{wanted.metric.name} has no history: {error}") from None
    except NotKeptError as error:
        raise UsageError(f"sums of {wanted.metric.name} are not kept so: set {error}") from None


# Why a metric moved ------------------------------------------------------------------------------


_MOVED = {
    "share_before": "share_then",
    "share": "share_now",
    "before": "rate_then",
    "now": "rate_now",
    "mix": "mix",
    "rate": "rate",
}
"""Column → what a part of a change calls it."""


class ChangeSplit(Table):
    """The change of a metric, split by the values of a dimension: those that gave most of it first.

    Columns: the dimension; ``share_before`` and ``share``, of the denominator; ``before`` and
    ``now``, its own rate; ``mix`` and ``rate``, what it gave to the change by its share of the
    traffic and by its own rate. ``before`` and ``now`` of the object are of all events.
    """

    def __init__(
        self,
        metric: Metric,
        windows: Sequence[Wanted],
        by: str,
        explanation: Explanation,
        unit: float,
    ) -> None:
        """``windows``: the present one, and the one before."""
        parts = change_parts(explanation, unit)
        self.metric, self.explanation = metric.name, explanation
        now, before = windows
        self.compared = f"{_span(now)} compared with {_span(before)}"
        """The times of both windows, in words."""
        self.before, self.now = parts.then, parts.now
        self.sentences = list(sentences(explanation, form_of(metric), unit, "", None))
        """Where the change comes from, in words."""
        names = {by: "segment", **_MOVED}
        columns = {new: [getattr(part, at) for part in parts.segments] for new, at in names.items()}
        super().__init__(columns)

    def __repr__(self) -> str:
        return "\n".join([self.compared, *map(printable, self.sentences), super().__repr__()])


def _span(window: Wanted) -> str:
    return span(window.from_ms or 0, window.until_ms or 0)


def read_moved(
    settings: Settings,
    catalogue: Catalogue,
    views: Sequence[View],
    query: MetricQuery,
    windows: Sequence[str],
    until_ms: int,
) -> ChangeSplit:
    """The change from the window before to the one that ends at a time: the first of ``windows`` of
    which both are kept. UsageError where there is none, or the metric is no ratio of two sums."""
    if len(query.by) != 1:
        raise UsageError("by: name one dimension, by whose values the change is split")
    metric, declared = _windowed(catalogue, query), NAMED.get(query.name or "")
    if not isinstance(declared, Ratio):
        raise UsageError(
            f"{metric.name} is no ratio of two sums: only such metrics are split, for example "
            "ctr_ratio"
        )
    stream_ms = max((v.header.stream_ms for v in views), default=0)
    if not stream_ms:
        raise UsageError("no event was counted, so nothing has moved")
    panes, parts = PaneHistory(settings, catalogue, views, PaneReader()), _parts(metric, declared)
    for window in windows:
        wanted = _wanted(settings, parts, replace(query, window=window), 1)
        both = _ending(settings, panes, wanted, (until_ms, stream_ms), count=2)
        if both is not None:
            sums = [_sums(_read(panes, each, stream_ms), query.by[0]) for each in both]
            return ChangeSplit(metric, both, query.by[0], explain(*sums), 1.0 / declared.units)
    kept = short(max(settings.windows.lengths_ms.values()))
    raise UsageError(
        f"the window before {windows[-1]} is not kept: name a window of at most half of {kept}, "
        "the longest one"
    )


def by_length(settings: Settings) -> list[str]:
    """The windows, the longest first."""
    lengths = settings.windows.lengths_ms
    return sorted(lengths, key=lambda label: -lengths[label])


def _parts(metric: Metric, of: Ratio) -> Metric:
    """A metric whose series are the numerator and the denominator, as integers."""

    def series(above: Values, below: Values) -> Iterator[Series]:
        for name, values in (("above", above), ("below", below)):
            yield Series({"part": name}, values, np.ones(len(values), bool))

    return replace(metric, series=series, reads=(Summed(of.above), Summed(of.below)))


def _sums(history: History, by: str) -> dict[str, tuple[int, int]]:
    """(numerator, denominator) by segment, at the only point."""
    found: dict[str, dict[str, int]] = {}
    for line in history.lines:
        of = found.setdefault(line.labels[by], {})
        of[line.labels["part"]] = round(line.values[0] or 0)
    return {name: (of.get("above", 0), of.get("below", 0)) for name, of in found.items()}
