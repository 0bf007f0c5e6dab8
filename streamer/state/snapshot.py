"""What a reader knows of one partition: a whole commit, as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamer._core import Core
from streamer.encoding.arrays import I64
from streamer.encoding.segments import OTHER, Label, segment_texts
from streamer.state.counted_since import NEVER_CHANGED, CountedSince
from streamer.state.counters import Counts
from streamer.state.experiment_sums import ExperimentSums, FoundExperiment
from streamer.state.panes import Pane, split
from streamer.state.partition import PaneSeries, Partition
from streamer.state.topics import TopicState
from streamer.state.unit_rows import UnitRows

Panes = Mapping[int, Pane]
UserSums = dict[int, tuple[I64, I64]]
"""ring → keys (see ``engine.user_sums``) and values."""


@dataclass(frozen=True)
class Header:
    """All of a partition but its panes. ``kept``: for each dimension, unnamed values
    kept, with their hashes."""

    commit: int
    stream_ms: int
    topics: Mapping[str, TopicState]
    counters: Counts
    capped: tuple[int, ...]
    kept: tuple[tuple[tuple[str, int], ...], ...]
    segments: tuple[tuple[str, ...], ...]
    """By number; ``all`` for dimensions outside of their rollup."""
    rollups: tuple[int, ...] = ()
    """The rollup of each, by its place."""
    overflowed: Mapping[str, int] = field(default_factory=dict)
    """``Rollup.key`` → how often a segment beyond its bound was asked for."""
    users_behind_ms: int = 0
    """How far the sums over users are behind in stream time."""
    counted_since_ms: Mapping[str, int] = field(default_factory=dict)
    """From which stream time on what experiments need is counted; 0: always."""
    began: CountedSince = NEVER_CHANGED
    """Since when what panes hold is counted, where settings were changed."""
    day_before_since_ms: Mapping[str, int] = field(default_factory=dict)
    """``DayBefore.shapes`` → the stream time from which on the ring is counted; 0: always."""
    exposed_since_ms: Mapping[str, int] = field(default_factory=dict)
    """Name of an ``Exposure`` → when it exposed a user first."""
    values: tuple[tuple[str, ...], ...] = ()
    """For each dimension, the text of each code."""
    found_experiments: tuple[FoundExperiment, ...] = ()
    oldest_ms: int | None = None
    """The time of the oldest accepted event; None without any."""


@dataclass(frozen=True)
class SeriesView:
    """A metric that alerts watch, or counts of items, since ``since_ms``; its panes have numbers of
    labels."""

    since_ms: int
    labels: Sequence[Label]
    panes: Panes


@dataclass(frozen=True)
class View:
    """One partition as of one commit."""

    header: Header
    panes: Panes = field(default_factory=dict)
    users: UserSums = field(default_factory=dict)
    experiments: ExperimentSums = field(default_factory=ExperimentSums)
    series: Mapping[str, SeriesView] = field(default_factory=dict)
    """``AlertSeries.shape``, ``ItemCounts.shape`` → what is kept of it."""
    units: UnitRows | None = None
    """Where units of experiments are not users."""


def first_event_ms(views: Iterable[View]) -> int:
    """The time of the first event that was counted; 0 without any."""
    times = (view.header.oldest_ms for view in views)
    return min((ms for ms in times if ms is not None), default=0)


def header_of(partition: Partition, commit: int = 0) -> Header:
    """The header of a partition in memory."""
    state = partition.state()
    values, counted = partition.of_dimensions(state["dimensions"]["values"]), state["logs"]
    segments = state["dimensions"]["segments"]
    return Header(
        commit=commit,
        stream_ms=state["stream_ms"],
        topics={name: TopicState.of(log, counted[name]) for name, log in partition.logs.items()},
        counters=partition.core.counters(),
        capped=tuple(v["events"][OTHER] for v in values),
        kept=tuple(tuple(v["unnamed"]) for v in values),
        values=tuple(tuple(v["texts"]) for v in values),
        segments=tuple(
            segment_texts(segments, partition.rollup_places, [v["texts"] for v in values])
        ),
        rollups=tuple(rollup for rollup, _ in segments),
        overflowed=partition.overflowed(state),
        users_behind_ms=partition.users_behind_ms,
        counted_since_ms=partition.counted_since_ms,
        day_before_since_ms=partition.day_before_since_ms,
        began=partition.began,
        exposed_since_ms=partition.exposed_since_ms(state),
        found_experiments=tuple(partition.found_experiments(state)),
        oldest_ms=state["oldest_ms"],
    )


class _LivePanes(Mapping[int, Pane]):
    """The panes of windows and totals, each read from memory when it is asked for."""

    def __init__(self, core: Core) -> None:
        self._core, self._numbers = core, frozenset(core.live_panes(None))

    def __getitem__(self, number: int) -> Pane:
        if number not in self._numbers:
            raise KeyError(number)
        _, codes, values = self._core.dump_panes([number], None)
        return codes, values

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def view_of(partition: Partition, *, is_live: bool = False) -> View:
    """A partition in memory, as a reader would see it after a commit with all sums over users.
    ``is_live``: the panes are not copied, and are those of now only until more is applied."""
    partition.refresh_user_sums()
    rings = range(len(partition.settings.windows.lengths))
    users = {ring + 1: partition.core.user_sums(ring) for ring in rings}
    since = zip(partition.series, partition.series_since_ms, strict=True)
    series = {s.declared.shape: _series(s, since_ms) for s, since_ms in since}
    experiments = partition.experiment_sums
    units = partition.unit_rows if partition.catalogue.experiment_measures.by_unit else None
    panes = _LivePanes(partition.core) if is_live else panes_of(partition)
    return View(header_of(partition), panes, users, experiments, series, units)


def _series(series: PaneSeries, since_ms: int) -> SeriesView:
    return SeriesView(since_ms, series.labels, panes_of(series))


def panes_of(what: Partition | PaneSeries) -> dict[int, Pane]:
    """The panes of windows and totals, or of a series."""
    number = what.number if isinstance(what, PaneSeries) else None
    core = what.core
    pane, code, value = core.dump_panes(core.live_panes(number), number)
    return split({"pane": pane, "code": code, "value": value})
