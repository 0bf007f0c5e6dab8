"""The whole of one partition: apply batches of events, see what changed.

    accept → segments → impressions, feedback joins, sessions → facts → families → cells
                                                                      → users    → sums

Everything is a function of the logs: the order in which the topics' records come, the size of the
batches and restarts change nothing of what is stored in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from streamer.batch import I64, Batch
from streamer.config import Settings
from streamer.decode import Interner
from streamer.durations import pane_length_ms
from streamer.engine.acceptance import NEVER, TopicLog, Verdict
from streamer.engine.attribution import Attribution, Told
from streamer.engine.cells import Cells, Deltas, Ring
from streamer.engine.experiments import Experiments, UserFacts
from streamer.engine.facts import Fact, FeedbackFacts
from streamer.engine.layout import Layout
from streamer.engine.segments import Segments
from streamer.engine.sessions import Sessions
from streamer.engine.tracks import TrackFacts, Tracks
from streamer.engine.users import Users
from streamer.engine.viewings import Viewings
from streamer.events import KINDS


class Collector(Protocol):
    """What turns facts into statistics (the catalogue does, for all families at once)."""

    layout: Layout

    @property
    def experiment_facts(self) -> UserFacts: ...

    @property
    def alert_facts(self) -> TrackFacts: ...

    def collect(self, fact: Fact, deltas: Deltas) -> None: ...

    def settle(self, fact: Fact, totals: Deltas) -> None: ...


@dataclass
class Applied:
    """What the caller has to do after an apply: records for the dead-letter topic."""

    dead: list[tuple[str, int, str]] = field(default_factory=list)
    rows: int = 0


def rings_of(settings: Settings) -> tuple[Ring, ...]:
    """One ring for each window length."""
    return tuple(
        Ring(label, pane_length_ms(ms), ms // pane_length_ms(ms))
        for label, ms in settings.windows.lengths_ms.items()
    )


def users_of(settings: Settings, cells: Cells, segments: Segments) -> Users:
    """The empty table of users that the settings ask for."""
    names = settings.dimension_names
    rollups = {tuple(i for i, name in enumerate(names) if name in r) for r in settings.rollups}
    kinds = settings.user_feedback_kinds
    conversion = kinds.index("conversion") if "conversion" in kinds else None
    return Users(
        cells.rings,
        cells.unit_ms,
        sorted(rollups),
        len(kinds),
        conversion,
        settings.limits.user_items,
        segments,
        is_on="engagement" in settings.metrics.families,
    )


class Partition:
    """State of one partition number, over all four topics."""

    def __init__(self, settings: Settings, collector: Collector) -> None:
        self.settings, self.collector = settings, collector
        bounds, self.lateness_ms = settings.limits, settings.time.max_lateness_ms
        self.stream_ms = 0
        self.logs = {kind: TopicLog(kind, settings) for kind in KINDS}
        self.segments = Segments(settings.kept_dimensions, bounds.segments)
        self.attribution = Attribution(settings, self.segments, self.logs)
        self.impressions = self.attribution.impressions
        self.clicked = self.attribution.clicked
        self.feedback = self.attribution.feedback
        self.unattributed = self.attribution.unattributed
        gap_ms, late_ms = settings.attribution.session_gap_ms, self.lateness_ms
        self.sessions = Sessions(gap_ms, late_ms, bounds.open_sessions)
        self.viewings = Viewings(gap_ms, late_ms, bounds.open_sessions, self.segments)
        self.cells = Cells(rings_of(settings))
        self.users = users_of(settings, self.cells, self.segments)
        self.experiments = Experiments(collector.experiment_facts, bounds.user_days, self.segments)
        self.tracks = Tracks(collector.alert_facts, self.segments)
        self.join_gap = 0

    # Applying ----------------------------------------------------------------------------------

    def apply(
        self, batches: Mapping[str, Batch], interner: Interner, at_end: Sequence[str] = ()
    ) -> Applied:
        """Take in batches (offset order within a topic); ``at_end``: topics read to their end."""
        applied = Applied()
        deltas, totals, told = Deltas(self.cells.unit_ms), Deltas(1), Told()
        for batch, verdict, segment in self._judge(batches, interner, applied):
            self._advance(batch, verdict)
            if batch.kind == "impressions":
                self.attribution.show(batch, verdict, segment, told)
            elif batch.kind == "sessions":
                told.windowed += self.sessions.take(batch, verdict, segment)
                told.windowed += self.viewings.session(batch, verdict, segment)
            else:
                self.attribution.receive(batch, verdict, segment, told)
        self._borrow(at_end)
        self.attribution.join(told)
        self._tell(told, deltas, totals)
        self.cells.apply(deltas, totals, self.stream_ms)
        self.tracks.apply(self.stream_ms)
        self._expire()
        return applied

    def _judge(
        self, batches: Mapping[str, Batch], interner: Interner, applied: Applied
    ) -> list[tuple[Batch, Verdict, I64]]:
        """Accept or refuse every event, and number the segments of those accepted."""
        judged = []
        for kind in KINDS:
            batch = batches.get(kind)
            if batch is None or not len(batch.offset):
                continue
            verdict = self.logs[kind].accept(batch)
            applied.dead += [(kind, offset, reason) for offset, reason in verdict.dead]
            applied.rows += len(batch.offset)
            self.join_gap += verdict.below_borrowed
            accepted = batch.segment[verdict.accepted]
            judged.append((batch, verdict, self.segments.of(interner, batch.segment, accepted)))
        moves = self.segments.take_moves()
        if moves is None:
            return judged
        self._move_segments(moves)
        return [(b, v, np.where(s >= 0, moves[s], s)) for b, v, s in judged]

    def _move_segments(self, moves: I64) -> None:
        self.attribution.move_segments(moves)
        rows, viewed = self.sessions.rows, self.viewings.rows
        for column in (rows["segment"], viewed["click_segment"], viewed["session_segment"]):
            column[:] = moves[column]
        self.users.fold()
        self.experiments.fold()
        self.tracks.fold()
        self.cells.remap(moves)

    def _advance(self, batch: Batch, verdict: Verdict) -> None:
        seen = np.minimum(batch.event_ms, verdict.arrival_ms)[verdict.accepted]
        if len(seen):
            self.stream_ms = max(self.stream_ms, int(seen.max()))

    # Telling -----------------------------------------------------------------------------------

    def _tell(self, told: Told, deltas: Deltas, totals: Deltas) -> None:
        """Pass facts on: to the families for windows and totals, and to users and viewings."""
        for fact in told.windowed:
            self._count(fact, deltas)
            if isinstance(fact, FeedbackFacts):
                for dwell in self.viewings.feedback(fact):
                    self._count(dwell, deltas)
                self.users.move(fact)
        for settled in told.settled:
            # Totals have no positions of feedback: they may still be filled in.
            start = settled.event_ms * 0
            if isinstance(settled, FeedbackFacts):
                self.collector.settle(replace(settled, event_ms=start, position=start), totals)
                self.viewings.settle_feedback(settled)
                self.users.settle(settled)
            else:
                self.collector.settle(replace(settled, event_ms=start), totals)
                self.users.show(settled)
        for visit in self.sessions.take_settled(self.logs["sessions"].arrival_ms):
            self.collector.settle(replace(visit, event_ms=visit.event_ms * 0), totals)
        for viewing in self.viewings.take_settled(self.viewing_clock_ms()):
            self.collector.settle(replace(viewing, event_ms=viewing.event_ms * 0), totals)

    def _count(self, fact: Fact, deltas: Deltas) -> None:
        self.collector.collect(fact, deltas)
        self.experiments.tell(fact)
        self.tracks.tell(fact)

    def file_users(self) -> None:
        """Bring the sums over users up to date: everything else is so after each apply."""
        self.users.file(self.stream_ms, self.attribution.unsettled())
        self.experiments.file(self.exposures_final_ms())

    @property
    def is_unfiled(self) -> bool:
        """Whether something changed that the sums over users do not show yet."""
        return self.users.is_unfiled or self.experiments.is_unfiled

    @property
    def is_stale(self) -> bool:
        """Whether all is to be filed anew, as after an adoption."""
        return self.users.is_stale or self.experiments.is_stale

    @property
    def users_behind_ms(self) -> int:
        """How far, in stream time, the sums over users are behind everything else."""
        return max(1, self.stream_ms - self.users.filed_ms) if self.is_unfiled else 0

    def seal(self) -> None:
        """What changes from now on belongs to the next commit."""
        if self.users.must_file or self.experiments.must_file:
            self.file_users()
        self.users.seal(self.stream_ms)
        self.experiments.seal()
        self.sessions.seal()
        self.viewings.seal()

    # Clocks ------------------------------------------------------------------------------------

    def _borrow(self, at_end: Sequence[str]) -> None:
        """Let topics read to their end borrow their siblings' clocks (for joins and eviction)."""
        newest = max(log.arrival_ms for log in self.logs.values())
        for kind in at_end:
            siblings = [
                log.arrival_ms if other not in at_end else newest
                for other, log in self.logs.items()
                if other != kind
            ]
            lent = min(siblings, default=NEVER)
            if lent > NEVER:
                log = self.logs[kind]
                log.borrowed_ms = max(log.borrowed_ms, lent - self.settings.time.max_skew_ms)

    def _expire(self) -> None:
        self.attribution.expire()
        self.sessions.expire(self.logs["sessions"].arrival_ms)
        self.viewings.expire(self.viewing_clock_ms())
        self.users.absorb(self.stream_ms, is_due=False)
        self.experiments.absorb(is_due=False)
        if self.users.shrink(self.stream_ms) or self.experiments.shrink():
            self.file_users()

    def join_clock_ms(self) -> int:
        """The slowest clock of the topics that joins depend on."""
        return self.attribution.join_clock_ms()

    def viewing_clock_ms(self) -> int:
        """The slowest clock of the topics that tell of viewings, or move what was told."""
        return min(self.logs[kind].clock_ms for kind in ("impressions", "clicks", "sessions"))

    def exposures_final_ms(self) -> int:
        """No impression before this time can be accepted any more."""
        return self.logs["impressions"].clock_ms - self.lateness_ms

    # Adopting ------------------------------------------------------------------------------------

    def rejoin(self) -> None:
        """Compute again what follows from loaded rows and clocks; nothing is counted."""
        self.attribution.rejoin()
        self.sessions.settle(self.logs["sessions"].arrival_ms)
        self.viewings.settle(self.viewing_clock_ms())
        self.users.settle_load()

    # What a bound dropped ------------------------------------------------------------------------

    @property
    def evicted_early(self) -> dict[str, int]:
        """Rows of tables that left before their time, because a bound of memory was hit."""
        tables = ("impressions", "clicked", "feedback", "sessions", "viewings")
        return {name: int(getattr(self, name).evicted_early) for name in tables}

    @property
    def dropped_by_bounds(self) -> int:
        """Everything that left before its time."""
        ids = sum(log.ids.evicted_early for log in self.logs.values())
        by_users = (kept for kept in self.tracks.kept if not kept.track.is_by_time)
        labels = sum(kept.labels.overflowed for kept in by_users)
        return ids + sum(self.evicted_early.values()) + self.segments.overflowed + labels
