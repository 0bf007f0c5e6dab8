"""What a reader knows of one partition: a whole commit, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamer.batch import I64
from streamer.engine.partition import Partition
from streamer.events import KINDS

Panes = dict[int, tuple[I64, I64]]
"""(ring << 32 | pane) → codes (segment << 14 | statistic) and values."""


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


@dataclass(frozen=True)
class View:
    """One partition as of one commit."""

    header: Header
    panes: Panes = field(default_factory=dict)


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
    values = partition.segments.values
    return Header(
        commit=commit,
        stream_ms=partition.stream_ms,
        topics={kind: topics[kind] for kind in KINDS},
        unattributed=dict(partition.unattributed),
        unsettled={
            "clicks": partition.feedback.unsettled(0),
            "conversions": partition.feedback.unsettled(1),
        },
        join_gap=partition.join_gap,
        dropped=partition.dropped_by_bounds,
        capped=tuple(v.capped for v in values),
        kept=tuple(tuple(sorted(v.hashes)) for v in values),
        segments=tuple(partition.segments.texts()),
    )


def view_of(partition: Partition) -> View:
    """A partition in memory, as a reader would see it after a commit."""
    return View(header_of(partition), partition.cells.dump(partition.cells.live_panes()))
