"""Tracks: one metric, kept pane by pane for a week, by groups of users: what alerts compare.

A group is some bits of the user's hash, so that all that a user did is in one group in every pane,
and sums of groups vary as users do. A track is kept apart from everything else, so that others
stay when one comes or goes.
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

PerUser = tuple[int, U64, I64, I64, I64]
"""Component, users, times, segments and amounts of what a fact adds."""


@dataclass(frozen=True)
class Track:
    """A metric by some dimensions, in panes of a part of its window; ``lag_ms``: how long it
    changes by feedback still to come."""

    measure: Measure
    window_ms: int
    dimensions: tuple[str, ...]
    lag_ms: int

    @cached_property
    def ring(self) -> Ring:
        """Panes for the window now, the one before, and the same on each past day."""
        pane_ms = self.window_ms // limits.PANES_OF_ALERTS
        span_ms = limits.BASELINE_DAYS * DAY_MS + self.window_ms + self.lag_ms
        return Ring(self.measure.name, pane_ms, span_ms // pane_ms + 2)

    @cached_property
    def shape(self) -> str:
        """What its sums depend on; they are stored under it."""
        return repr((self.measure.name, self.window_ms, self.dimensions, self.lag_ms))


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
        self.cells = Cells((track.ring,))
        self.since_ms = 0
        self._deltas = Deltas(self.cells.unit_ms)

    def add(self, amounts: PerUser) -> None:
        """Take in what a fact adds."""
        component, user, event_ms, segment, amount = amounts
        group = group_of(user)
        measure = self.track.measure
        for place, first in ((measure.above, ABOVE), (measure.below, BELOW), (measure.high, HIGH)):
            if place == component:
                self._deltas.add(event_ms, self.labels.of(segment), group + first, amount)

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
