"""What a reader knows of one partition: a whole commit, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamer.batch import I64
from streamer.engine import integers
from streamer.engine.groups import group_texts
from streamer.engine.labels import Label
from streamer.engine.partition import Partition
from streamer.engine.segments import segment_texts
from streamer.engine.tracks import Kept
from streamer.events import KINDS

Panes = dict[int, tuple[I64, I64]]
"""(ring << 32 | pane) → codes (segment << 14 | statistic) and values."""


UserSums = dict[int, tuple[I64, I64]]
"""ring → keys (see ``engine.user_sums``) and values."""


@dataclass(frozen=True)
class TopicCounts:
    """Counters of one topic of a partition, and where its log stands."""

    next_offset: int
    arrival_ms: int
    accepted: int
    duplicates: int
    late: int
    rejected: Mapping[str, int]
    lost: int = 0
    restarts: int = 0


@dataclass(frozen=True)
class Header:
    """All of a partition but its panes. ``kept``: for each dimension, unnamed values kept."""

    commit: int
    stream_ms: int
    topics: Mapping[str, TopicCounts]
    unattributed: Mapping[str, int]
    unsettled: Mapping[str, int]
    join_gap: int
    dropped: int
    capped: tuple[int, ...]
    kept: tuple[tuple[str, ...], ...]
    segments: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, ...], ...] = ()
    """Segment groups of the sums over users: ``all`` outside of their rollup."""
    sample_bits: int = 0
    """Users in the sums are one in 2**sample_bits."""
    users_behind_ms: int = 0
    """How far the sums over users are behind in stream time."""
    counted_since_ms: Mapping[str, int] = field(default_factory=dict)
    """From which stream time on what experiments need is counted; 0: always."""
    day_sample_bits: int = 0
    """Users in the sums of experiments are one in 2**day_sample_bits."""


@dataclass(frozen=True)
class TrackView:
    """A metric that alerts watch, since ``since_ms``; its panes have numbers of labels."""

    since_ms: int
    labels: Sequence[Label]
    panes: Panes


@dataclass(frozen=True)
class View:
    """One partition as of one commit."""

    header: Header
    panes: Panes = field(default_factory=dict)
    users: UserSums = field(default_factory=dict)
    experiments: Mapping[str, integers.Columns] = field(default_factory=dict)
    """``Trial.shape`` → its sums, as columns."""
    tracks: Mapping[str, TrackView] = field(default_factory=dict)
    """``Track.shape`` → what is kept of it."""


def header_of(partition: Partition, commit: int = 0) -> Header:
    """The header of a partition in memory."""
    topics = {
        kind: TopicCounts(
            log.next_offset,
            log.arrival_ms,
            log.accepted,
            log.duplicates,
            log.late,
            dict(log.rejected),
            log.lost,
            log.restarts,
        )
        for kind, log in partition.logs.items()
    }
    values, segments = partition.segments.values, partition.segments.dump()
    return Header(
        commit=commit,
        stream_ms=partition.stream_ms,
        topics={kind: topics[kind] for kind in KINDS},
        unattributed=dict(partition.unattributed),
        unsettled=partition.attribution.unsettled_counts(),
        join_gap=partition.join_gap,
        dropped=partition.dropped_by_bounds,
        capped=tuple(v.capped for v in values),
        kept=tuple(tuple(sorted(v.hashes)) for v in values),
        segments=tuple(segment_texts(segments)),
        groups=group_texts(partition.users.groups.tuples, segments),
        sample_bits=partition.users.sample_bits,
        users_behind_ms=partition.users_behind_ms,
        counted_since_ms=partition.experiments.counted_since_ms,
        day_sample_bits=partition.experiments.sample_bits,
    )


def view_of(partition: Partition) -> View:
    """A partition in memory, as a reader would see it after a commit that filed the users."""
    partition.file_users()
    panes = partition.cells.dump(partition.cells.live_panes())
    users = dict(enumerate(partition.users.sums, 1))
    trials, sums = partition.experiments.trials, partition.experiments.sums
    experiments = {trial.shape: integers.columns(s) for trial, s in zip(trials, sums, strict=True)}
    tracks = {kept.track.shape: _track(kept) for kept in partition.tracks.kept}
    return View(header_of(partition), panes, users, experiments, tracks)


def _track(kept: Kept) -> TrackView:
    panes = kept.cells.dump(kept.cells.live_panes())
    return TrackView(kept.since_ms, list(kept.labels.known), panes)
