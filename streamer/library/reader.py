"""What can be read of counted events: metrics, their history, experiments, and why a metric moved.
A counter in memory and the state in Redis are read by the same methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from typing import overload

from streamer.encoding.segments import ALL
from streamer.errors import UsageError
from streamer.library.experiment import ExperimentReport
from streamer.library.history import (
    ChangeSplit,
    HistoryRequest,
    MetricHistory,
    by_length,
    read_history,
    read_moved,
)
from streamer.library.selection import (
    MetricQuery,
    Names,
    Time,
    epoch_ms,
    query_of,
    time_of,
)
from streamer.library.table import Cell, Table
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.evaluated import SLATE_METRICS
from streamer.metrics.intervals import name_of
from streamer.metrics.rings import rings_of
from streamer.query.experiment_list import Readouts, listed, read_one, unknown_experiment
from streamer.query.experiments import StoredExperiment, require_user_unit, stored_experiments
from streamer.query.exploration import Exploration, explored, not_explored, values_joined
from streamer.query.readings import ReadingSet, readout
from streamer.settings.file_window import FILE
from streamer.settings.model import Settings
from streamer.state.acted import Acted
from streamer.state.snapshot import View, first_event_ms
from streamer.state.user_days import Days, RowsOfUsers, SumsByValue
from streamer.stats.distributions import interval_of_mean

_STDERR = "_stderr"
_WINDOW = "window"
_AFTER = ("value", "low", "high", "support", "start", "end")
Key = tuple[str, frozenset[tuple[str, str]]]
"""A metric's name without prefix, and its labels."""


@dataclass(frozen=True)
class CountedEvents:
    """Whole commits of all partitions. ``keyed``: topic → whether it is keyed by user; ``acted``:
    on any experiment."""

    views: Sequence[View]
    keyed: Mapping[str, bool]
    acted: Acted = field(default_factory=Acted)

    @property
    def stream_ms(self) -> int:
        """The latest event time; 0 without events."""
        return max((view.header.stream_ms for view in self.views), default=0)


@dataclass(frozen=True)
class _Read:
    """What was read last, and of what."""

    counted: CountedEvents
    now_ms: int | None
    readout: ReadingSet


class MetricReader(ABC):
    """Reads metrics, histories and experiments. ``settings``: those that events were counted by."""

    settings: Settings
    _last_readout: _Read | None = None

    @cached_property
    def _catalogue(self) -> Catalogue:
        return Catalogue(self.settings)

    @abstractmethod
    def _counted(self) -> CountedEvents:
        """What is counted now: the same object, as long as nothing was added."""

    @abstractmethod
    def _sums_of_days(self, rows: RowsOfUsers) -> SumsByValue:
        """Sums of an experiment over some days, from the rows of its users."""

    # Metrics -------------------------------------------------------------------------------------

    def metrics(
        self,
        name: str | None = None,
        *,
        by: Names = None,
        window: str | None = None,
        at: Time | None = None,
        **labels: object,
    ) -> Table:
        """Metrics of a window, a row each; without a name all of them.

        ``name``: as in the list of metrics; ``ctr`` and ``ndcg@10`` are enough. ``by``: dimensions,
        each of whose values gets a row; without any, all events together. ``window``: one of the
        settings, by default the longest, or ``"file"``, all that ``read`` counted, which is its
        default. ``at``: the end of the window, by default the latest event. A window that ended
        earlier is put together from whole panes, a 60th of a window each, of the longer windows: it
        ends up to a pane earlier. ``labels``: only rows with these, such as ``over="all"`` or
        ``k=10``.

        Columns: ``metric``, the dimensions and labels, ``value``, ``low`` and ``high`` (the ends of
        a 95 % interval; None where there is none), ``support`` (the count that the denominator is),
        ``start`` and ``end`` of what was read: a window begins where its oldest pane does.
        A metric without a value has no row. UsageError where there is no such metric, window,
        dimension or label, or where the settings do not keep sums by these dimensions.

        >>> import streamer
        >>> events = [
        ...     {"type": "impression", "user_id": "u", "item_id": "a", "ts": 1_760_000_000_000},
        ...     {"type": "click", "user_id": "u", "item_id": "a", "ts": 1_760_000_001_000},
        ... ]
        >>> streamer.read(events).metrics("ctr", window="1h")
        metric     value  low  high  support  start                end
        ctr_ratio      1                   1  2025-10-09 07:54:00  2025-10-09 08:53:21
        """
        query = query_of(self.settings, self._names, name, by, window, labels)
        query = query.by_its_labels(self.settings.dimension_names)
        self._require_sums(query)
        at_ms, counted = None if at is None else epoch_ms(at), self._counted()
        if at_ms is not None and at_ms < counted.stream_ms:
            return self._metrics_then(counted, query, at_ms)
        self._require_file(counted, query.window)
        found = self._readout(counted, at_ms)
        rows = list(self._rows(found, query))
        chosen = [row for row in rows if query.labels.items() <= _texts(row).items()]
        if rows and not chosen:
            raise UsageError(_without_rows(query, rows))
        return _table(query, chosen)

    def history(
        self,
        name: str,
        *,
        by: str | None = None,
        window: str | None = None,
        points: int | None = None,
        **labels: object,
    ) -> MetricHistory:
        """The values of a metric in each part of a window.

        A window is kept as 60 panes; a point is the metric of the events in one pane, or in
        neighbouring ones where fewer ``points`` are asked for. Otherwise as ``metrics``. Columns:
        ``time`` (where a point begins), the dimension and labels, ``value``, ``low``, ``high``,
        ``is_partial`` (whether the log begins or ends within the point).

        >>> import streamer
        >>> shown = {"type": "impression", "user_id": "u", "item_id": "a"}
        >>> log = streamer.read([{**shown, "ts": 1_760_000_000_000 + i} for i in range(3)])
        >>> log.history("window_impressions", window="1h")["value"][-1]
        3.0
        """
        query = query_of(self.settings, self._names, name, by, window, labels)
        counted = self._counted()
        self._require_file(counted, query.window)
        request = HistoryRequest(query) if points is None else HistoryRequest(query, points=points)
        return self._read_history(counted, request)

    def explain(
        self, name: str, *, by: str, window: str | None = None, at: Time | None = None
    ) -> ChangeSplit:
        """Why a metric moved between the window before and this one: how much of the change each
        value of a dimension gave, by traffic (mix) and by its own rate.

        ``name``: a metric that is one sum over another, such as ``ctr``. ``window``: by default the
        longest of which the window before is kept, too. UsageError where there is none.
        """
        query = query_of(self.settings, self._names, name, by, window, {})
        counted = self._counted()
        until_ms = counted.stream_ms + 1 if at is None else epoch_ms(at)
        windows = [query.window] if window else by_length(self.settings)
        views = counted.views
        return read_moved(self.settings, self._catalogue, views, query, windows, until_ms)

    @cached_property
    def _supports(self) -> Mapping[str, str]:
        metrics = self._catalogue.metrics
        names = {metric.name for metric in metrics}
        of_windows = (metric for metric in metrics if metric.scope == "window")
        return {metric.name: metric.support for metric in of_windows if metric.support in names}

    @cached_property
    def _labels(self) -> Mapping[str, Sequence[str]]:
        return {metric.name: metric.labels for metric in self._catalogue.metrics}

    @cached_property
    def _names(self) -> set[str]:
        return {metric.name for metric in self._catalogue.metrics}

    def _require_file(self, counted: CountedEvents, window: str) -> None:
        """UsageError where the window of a file has lost its beginning: more was added to it."""
        if window == FILE and counted.stream_ms:
            (ring,) = (ring for ring in rings_of(self.settings) if ring.label == FILE)
            if ring.oldest(counted.stream_ms) * ring.pane_ms > first_event_ms(counted.views):
                there = ", ".join(self.settings.windows.named_ms)
                raise UsageError(
                    f"window = 'file': so much was added that it is longer than what was read "
                    f"first: there are {there}"
                )

    def _require_sums(self, query: MetricQuery) -> None:
        """UsageError where sums are not kept by these dimensions."""
        rollup = query.by
        if any(set(rollup) == set(kept) for kept in self.settings.rollups):
            return
        names = ", ".join(f'"{name}"' for name in rollup)
        raise UsageError(
            f"sums are not kept by {' and '.join(rollup)}: add [{names}] to rollups in [metrics]"
        )

    def _readout(self, counted: CountedEvents, now_ms: int | None = None) -> ReadingSet:
        last = self._last_readout
        if last is not None and last.counted is counted and last.now_ms == now_ms:
            return last.readout
        views, keyed = counted.views, counted.keyed
        made = readout(self.settings, self._catalogue, views, now_ms, keyed=keyed)
        self._last_readout = _Read(counted, now_ms, made)
        return made

    def _rows(self, found: ReadingSet, query: MetricQuery) -> Iterator[dict[str, Cell]]:
        """The rows of a query."""
        index = {
            (reading.name.removeprefix(PREFIX), frozenset(reading.labels.items())): reading.value
            for reading in found.readings
        }
        ends = self._ends
        scopes = {metric.name: metric.scope for metric in self._catalogue.metrics}
        for (name, key), value in index.items():
            labels = dict(key)
            if scopes.get(name) is None or (query.name is None and name in ends):
                continue
            if query.name not in (None, name) or not self._fits(query, labels, scopes[name]):
                continue
            support = self._support(index, name, labels)
            low, high = self._interval(index, (name, key), value, support)
            hidden = {_WINDOW, *self._dimensions.difference(query.by)}
            is_total = scopes[name] == "total"
            start, end = found.spans.get("" if is_total else query.window, (None, None))
            yield {
                "metric": name,
                **{label: text for label, text in labels.items() if label not in hidden},
                "value": value,
                "low": low,
                "high": high,
                "support": support,
                "start": None if start is None else time_of(start),
                "end": None if end is None else time_of(end),
            }

    @cached_property
    def _dimensions(self) -> frozenset[str]:
        return frozenset(self.settings.dimension_names)

    @cached_property
    def _ends(self) -> set[str]:
        """Metrics that are ends of intervals of others, or their standard errors."""
        ends = {name_of(name, end) for name in self._names for end in ("lower", "upper")}
        return ends | {f"{name}{_STDERR}" for name in self._names}

    def _fits(self, query: MetricQuery, labels: Mapping[str, str], scope: str) -> bool:
        """Whether a reading is one that the query asks for."""
        if scope == "window" and labels[_WINDOW] != query.window:
            return False
        if scope == "total" and query.name is None:
            return False
        return all((labels[d] == ALL) != (d in query.by) for d in self.settings.dimension_names)

    def _support(
        self,
        index: Mapping[Key, int | float],
        name: str,
        labels: Mapping[str, str],
    ) -> int | float | None:
        count = self._supports.get(name)
        if count is None:
            return None
        shared = {_WINDOW, *self._dimensions, *self._labels[count]}
        return index.get((count, frozenset((k, v) for k, v in labels.items() if k in shared)))

    def _interval(
        self,
        index: Mapping[Key, int | float],
        key: Key,
        value: float,
        support: float | None,
    ) -> tuple[float | None, float | None]:
        """Both ends, as the metric has them, or from its standard error."""
        name, labels = key
        low, high = (index.get((name_of(name, end), labels)) for end in ("lower", "upper"))
        if low is not None or high is not None:  # of 0 the lower end is a rounding error above it
            return (
                None if low is None else min(low, value),
                None if high is None else max(high, value),
            )
        error, own = index.get((f"{name}{_STDERR}", labels)), SLATE_METRICS.get(name)
        if error is None or support is None or support < 2:
            return None, None
        k, metrics = dict(labels).get("k", ""), self.settings.metrics
        ends = (-inf, inf) if own is None else own.bounds(
            self.settings.gains, metrics.margin, int(k) if k.isdigit() else 0
        )  # fmt: skip
        return interval_of_mean(value, error, round(support) - 1, ends)

    def _metrics_then(self, counted: CountedEvents, query: MetricQuery, at_ms: int) -> Table:
        """The metrics of a window that ended before the latest event."""
        until = partial(HistoryRequest, until_ms=at_ms, points=1)
        found = self._read_history(counted, until(query))
        name = self._supports.get(query.name or "")
        if name is None:
            return found.as_metrics({})
        of_count = {*self._labels[name], *self._dimensions}
        labels = {label: value for label, value in query.labels.items() if label in of_count}
        counts = self._read_history(counted, until(replace(query, name=name, labels=labels)))
        return found.as_metrics(counts.latest())

    def _read_history(self, counted: CountedEvents, request: HistoryRequest) -> MetricHistory:
        return read_history(
            self.settings, self._catalogue, counted.views, request, counted.stream_ms
        )

    # Experiments ---------------------------------------------------------------------------------

    @overload
    def experiment(self, name: None = None) -> Table: ...

    @overload
    def experiment(self, name: str, *, by: Names = None) -> ExperimentReport: ...

    def experiment(self, name: str | None = None, *, by: Names = None) -> Table | ExperimentReport:
        """The readout of an experiment: what to do, and every comparison that says so.

        Without a name, a table of all of them, those of the settings and those that events name,
        the most urgent first; columns: ``experiment``, ``needs``. ``by``: dimensions of its setting
        ``explore``, each of which becomes a table of segments. UsageError where there is no such
        experiment, or it is not explored by that.
        """
        counted = self._counted()
        stored = self._stored(counted)
        if name is None:
            every = listed(self.settings, stored, Readouts())
            rows = [{"experiment": x.stored.experiment.name, "needs": x.needs} for x in every]
            return Table.of_rows(rows, ["experiment", "needs"])
        whole = _named(stored, name)
        found = read_one(self.settings, stored, name, Readouts())
        explorations: list[Exploration] = []
        for dimension in [by] if isinstance(by, str) else by or ():
            if wrong := not_explored(whole.experiment, dimension, self.settings.dimension_names):
                raise UsageError(f"by = {dimension!r}: {wrong}")
            require_user_unit(whole, "by")
            sums = self._sums_of_days(Days(whole.trial, whole.so_far, dimension))
            joined = values_joined(sums, self.settings, counted.views, dimension)
            explorations.append(explored(whole, dimension, joined, whole.so_far))
        return ExperimentReport(whole, found, explorations)

    def stored_experiment(self, name: str) -> StoredExperiment:
        """What is known of an experiment, with its sums: for ``streamer.plan``. UsageError where
        there is none of this name."""
        return _named(self._stored(self._counted()), name)

    def _stored(self, counted: CountedEvents) -> Mapping[str, StoredExperiment]:
        measures = self._catalogue.experiment_measures
        return stored_experiments(self.settings, measures, counted.views, acted=counted.acted)


def _named(stored: Mapping[str, StoredExperiment], name: str) -> StoredExperiment:
    """UsageError where there is none of this name."""
    if name not in stored:
        raise UsageError(unknown_experiment(name, stored))
    return stored[name]


def _texts(row: Mapping[str, Cell]) -> dict[str, str]:
    """The labels of a row."""
    return {name: value for name, value in row.items() if isinstance(value, str)}


def _without_rows(query: MetricQuery, rows: Sequence[Mapping[str, Cell]]) -> str:
    """Why labels choose nothing."""
    for name, value in query.labels.items():
        there = sorted({_texts(row)[name] for row in rows if name in _texts(row)})
        if value not in there:
            known = ", ".join(there) or "none"
            return f"no row has {name} = {value!r}: there are {known}"
    chosen = ", ".join(f"{name} = {value}" for name, value in query.labels.items())
    return f"no row has {chosen} together"


def _table(query: MetricQuery, rows: Sequence[Mapping[str, Cell]]) -> Table:
    """Rows under the columns that any of them has."""
    own = {name for row in rows for name in row} - {"metric", *_AFTER, *query.by}
    return Table.of_rows(rows, ["metric", *query.by, *sorted(own), *_AFTER])
