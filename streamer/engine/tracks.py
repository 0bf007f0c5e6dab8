"""Tracks: the sums of one metric over time that alerts compare. Every alert has two of them.

By groups of users: pane by pane for a week, and day by day for 400 days. A group is some bits of
the user's hash, so that all that a user did is in one group in every pane, and sums of groups vary
as users do.

By time: totals without groups for four weeks, which take a sixteenth of the memory. A chunk holds
16 consecutive panes: its statistics are those of a pane with groups, the place of the group being
the pane's number modulo 16.

A track is kept apart from everything else, so that others stay when one comes or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from streamer import limits
from streamer.alerting.groups import GROUPS
from streamer.batch import I64, U64
from streamer.engine.cells import Cells, Deltas, Ring
from streamer.engine.facts import Fact
from streamer.engine.labels import Labels
from streamer.engine.segments import Segments
from streamer.engine.trial_sums import Measure
from streamer.experiment_settings import DAY_MS

_GROUP_SHIFT, _GROUP_MASK = np.uint64(40), np.uint64(GROUPS - 1)
ABOVE, BELOW, HIGH = 0, GROUPS, 2 * GROUPS
"""The first of the statistics by group of users: numerators, denominators, and the high limbs of
numerators that have one."""
CHUNK = GROUPS
"""Panes of a chunk."""

PerUser = tuple[int, U64, I64, I64, I64]
"""Component, users, times, segments and amounts of what a fact adds."""


@dataclass(frozen=True)
class Track:
    """A metric by some dimensions, in panes of a part of its window; ``lag_ms``: how long it
    changes by feedback still to come. ``is_by_time``: totals of four weeks instead of groups."""

    measure: Measure
    window_ms: int
    dimensions: tuple[str, ...]
    lag_ms: int
    is_by_time: bool = False

    @property
    def pane_ms(self) -> int:
        return self.window_ms // limits.PANES_OF_ALERTS

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """By groups: panes for the window now, the one before, and the same on each past day; days.
        By time: chunks for the same on each day of the past weeks."""
        days = 7 * limits.BASELINE_WEEKS if self.is_by_time else limits.BASELINE_DAYS
        span_ms = days * DAY_MS + self.window_ms + self.lag_ms
        panes, name = span_ms // self.pane_ms + 2, self.measure.name
        if self.is_by_time:
            return (Ring(name, CHUNK * self.pane_ms, panes // CHUNK + 2),)
        return Ring(name, self.pane_ms, panes), Ring(name, DAY_MS, limits.REFERENCE_DAYS)

    @cached_property
    def shape(self) -> str:
        """What its sums depend on; they are stored under it."""
        kind = "weeks by time" if self.is_by_time else "days by group"
        return repr((self.measure.name, self.window_ms, self.dimensions, self.lag_ms, kind))

    def place_of(self, user: U64, event_ms: I64) -> I64:
        """Which of the 16 places of a cell is added to."""
        return event_ms // self.pane_ms % CHUNK if self.is_by_time else group_of(user)


class TrackFacts(Protocol):
    """What turns facts into amounts of users (the catalogue does)."""

    tracks: tuple[Track, ...]

    def per_user(self, fact: Fact) -> Iterable[PerUser]: ...


def group_of(user: U64) -> I64:
    """The group of each user."""
    return ((user >> _GROUP_SHIFT) & _GROUP_MASK).astype(np.int64)


class Kept:
    """One track of one partition. ``since_ms``: stream time from which on it is counted."""

    def __init__(self, track: Track, segments: Segments) -> None:
        self.track = track
        self.labels = Labels(track.dimensions, segments, limits.MAX_TRACK_LABELS)
        self.cells = Cells(track.rings)
        self.since_ms = 0
        self._deltas = Deltas(self.cells.unit_ms)

    def add(self, amounts: PerUser) -> None:
        """Take in what a fact adds."""
        component, user, event_ms, segment, amount = amounts
        at = self.track.place_of(user, event_ms)
        measure = self.track.measure
        for place, first in ((measure.above, ABOVE), (measure.below, BELOW), (measure.high, HIGH)):
            if place == component:
                self._deltas.add(event_ms, self.labels.of(segment), at + first, amount)

    def apply(self, stream_ms: int) -> None:
        """Bring what was taken in into the panes."""
        deltas, self._deltas = self._deltas, Deltas(self.cells.unit_ms)
        self.cells.apply(deltas, Deltas(1), stream_ms)


class Tracks:
    """The tracks of one partition."""

    def __init__(self, facts: TrackFacts, segments: Segments) -> None:
        self.facts = facts
        self.kept: Sequence[Kept] = [Kept(track, segments) for track in facts.tracks]

    def tell(self, fact: Fact) -> None:
        """Take in what a fact means to metrics that are tracked."""
        if self.kept:
            for amounts in self.facts.per_user(fact):
                for kept in self.kept:
                    kept.add(amounts)

    def apply(self, stream_ms: int) -> None:
        """Bring what was taken in into the panes."""
        for kept in self.kept:
            kept.apply(stream_ms)

    def fold(self) -> None:
        """Segments were folded together."""
        for kept in self.kept:
            kept.labels.fold()
