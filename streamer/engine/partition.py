"""The whole of one partition: apply batches of events, see what changed.

    accept → segments → impressions → feedback joins → facts → families → cells

Everything is a function of the logs: the order in which the topics' records come, the size of the
batches and restarts change nothing of what is stored in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from streamer import limits
from streamer.batch import I64, Batch
from streamer.config import Settings
from streamer.decode import Interner
from streamer.durations import pane_length_ms
from streamer.engine import feedback as fb
from streamer.engine.acceptance import NEVER, TopicLog, Verdict
from streamer.engine.cells import Cells, Deltas, Ring
from streamer.engine.clicked import CLICKED, CONVERTED, Clicked
from streamer.engine.facts import (
    CONVERSION,
    Fact,
    FeedbackFacts,
    OutcomeFacts,
    ShownFacts,
)
from streamer.engine.feedback import Feedback
from streamer.engine.impressions import Impressions, Shown
from streamer.engine.index import mix
from streamer.engine.layout import Layout
from streamer.engine.segments import Segments
from streamer.events import KINDS

_OWN_SLATE = np.uint64(0xA0761D6478BD642F)
_NO_KEYS = np.zeros(0, np.uint64)


class Collector(Protocol):
    """What turns facts into statistics (the catalogue does, for all families at once)."""

    layout: Layout

    def collect(self, fact: Fact, deltas: Deltas) -> None: ...


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


class Partition:
    """State of one partition number, over all four topics."""

    def __init__(self, settings: Settings, collector: Collector) -> None:
        self.settings, self.collector = settings, collector
        time, join, bounds = settings.time, settings.attribution, settings.limits
        self.lateness_ms = time.max_lateness_ms
        self.stream_ms = 0
        self.logs = {kind: TopicLog(kind, settings) for kind in KINDS}
        self.segments = Segments(settings.dimensions, bounds.segments)
        reign_ms = join.click_ms + time.max_lateness_ms + time.max_skew_ms
        self.impressions = Impressions(reign_ms, join.click_ms, bounds.open_impressions)
        self.clicked = Clicked(join.conversion_ms)
        self.feedback = Feedback(bounds.open_feedback)
        self.cells = Cells(rings_of(settings))
        self.unattributed = {"clicks": 0, "conversions": 0}
        self.join_gap = 0
        self._compact_at = {"clicked": 4096, "feedback": 4096}

    # Applying ----------------------------------------------------------------------------------

    def apply(
        self, batches: Mapping[str, Batch], interner: Interner, at_end: Sequence[str] = ()
    ) -> Applied:
        """Take in batches (offset order within a topic); ``at_end``: topics read to their end."""
        applied = Applied()
        deltas, totals = Deltas(self.cells.unit_ms), Deltas(1)
        judged = self._judge(batches, interner, applied)
        slates, users = _NO_KEYS, _NO_KEYS
        fresh = np.zeros(0, np.int64)
        for batch, verdict, segment in judged:
            self._advance(batch, verdict)
            if batch.kind == "impressions":
                slates, users = self._show(batch, verdict, segment, deltas, totals)
            elif batch.kind != "sessions":
                rows = self._receive(batch, verdict, segment, deltas, totals)
                fresh = np.concatenate([fresh, rows])
        self._borrow(at_end)
        self._join(fresh, slates, users, deltas, totals)
        self.cells.apply(deltas, totals, self.stream_ms)
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
        for column in (
            self.impressions.rows["segment"],
            self.clicked.rows["segment"],
            self.feedback.rows["segment"],
            self.feedback.rows["own_segment"],
        ):
            column[:] = moves[column]
        self.cells.remap(moves)

    def _advance(self, batch: Batch, verdict: Verdict) -> None:
        seen = np.minimum(batch.event_ms, verdict.arrival_ms)[verdict.accepted]
        if len(seen):
            self.stream_ms = max(self.stream_ms, int(seen.max()))

    def _show(
        self, batch: Batch, verdict: Verdict, segment: I64, deltas: Deltas, totals: Deltas
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take in impressions; returns the slates and users that got new rows."""
        owner = batch.owner
        assert owner is not None
        shown = np.flatnonzero(verdict.accepted[owner])
        event = owner[shown]
        if not len(event):
            return _NO_KEYS, _NO_KEYS
        user, offset = batch.user[event], batch.offset[batch.row[event]]
        request = batch.request[event]
        slate = np.where(request != 0, mix(user, request), 0).astype(np.uint64)
        index = np.arange(len(event)) - np.searchsorted(event, event, "left")
        is_list = np.bincount(owner, minlength=len(batch.event_ms))[event] > 1
        own = is_list & (request == 0)
        if own.any():
            slate[own] = mix(user[own], offset[own].astype(np.uint64) ^ _OWN_SLATE)
        rows = Shown(
            user=user,
            slate=slate,
            item=batch.item[shown],
            event_ms=batch.event_ms[event],
            arrival_ms=verdict.arrival_ms[event],
            offset=offset,
            index=index,
            position=batch.position[shown],
            segment=segment[event],
        )
        fact = ShownFacts(rows.event_ms, rows.segment, rows.position)
        self.collector.collect(fact, deltas)
        self.collector.collect(ShownFacts(rows.event_ms * 0, rows.segment, rows.position), totals)
        return self.impressions.insert(rows)

    def _receive(
        self, batch: Batch, verdict: Verdict, segment: I64, deltas: Deltas, totals: Deltas
    ) -> I64:
        """Take in feedback; returns its rows. Kinds that are not configured count at once."""
        is_clicks = batch.kind == "clicks"
        event = np.flatnonzero(verdict.accepted)
        if not len(event):
            return event
        kind = batch.feedback[event] if is_clicks else np.full(len(event), CONVERSION)
        other = kind == -1
        if other.any():
            position, dwell_ms = batch.position[event], batch.dwell_ms[event]
            columns = (segment[event], position, kind, np.zeros_like(kind), dwell_ms)
            fact = FeedbackFacts(batch.event_ms[event], *columns, sign=1).where(other)
            self._count(fact, deltas)
            self._count_total(fact, totals)
            event, kind = event[~other], kind[~other]
        user, request = batch.user[event], batch.request[event]
        return self.feedback.add(
            {
                "topic": fb.CLICKS if is_clicks else fb.CONVERSIONS,
                "kind": np.maximum(kind, 0) if is_clicks else 0,
                "user": user,
                "slate": np.where(request != 0, mix(user, request), 0),
                "item": batch.item[event],
                "event_ms": batch.event_ms[event],
                "offset": batch.offset[batch.row[event]],
                "own_segment": segment[event],
                "own_position": batch.position[event] if is_clicks else 0,
                "value_micros": 0 if is_clicks else batch.value_micros[event],
                "dwell_ms": batch.dwell_ms[event] if is_clicks else -1,
            },
            len(event),
            self.segments,
        )

    # Joining -----------------------------------------------------------------------------------

    def _join(
        self, fresh: I64, slates: np.ndarray, users: np.ndarray, deltas: Deltas, totals: Deltas
    ) -> None:
        """Join new feedback, and what waited for new impressions; file what changed."""
        rows = self.feedback.rows
        touched = np.union1d(fresh, self.feedback.waiting_for(slates, users))
        before = rows["segment"][touched].copy(), rows["position"][touched].copy()
        is_new = np.isin(touched, fresh)
        clicks = touched[rows["topic"][touched] == fb.CLICKS]
        refs = self.feedback.join_impressions(clicks, self.impressions, self.clicked)
        closing = self.feedback.pending
        clock_ms = self.logs["impressions"].clock_ms
        final = self.feedback.finalise_clicks(clock_ms, self.lateness_ms, self.clicked)
        changed = np.union1d(refs, final)
        pairs = np.unique(self.clicked.rows["pair"][changed])
        conversions = np.union1d(
            touched[rows["topic"][touched] == fb.CONVERSIONS],
            self.feedback.waiting_for_pairs(pairs),
        )
        late = np.setdiff1d(conversions, touched)
        touched = np.concatenate([touched, late])
        before = tuple(
            np.concatenate([old, rows[name][late]])
            for old, name in zip(before, ("segment", "position"), strict=True)
        )  # type: ignore[assignment]
        is_new = np.concatenate([is_new, np.zeros(len(late), np.bool_)])
        met = self.feedback.join_clicked(conversions, self.clicked)
        self._file_outcomes(np.union1d(refs, met), deltas)
        self._refile(touched, is_new, before, deltas)
        clock_ms = min(clock_ms, self.logs["clicks"].clock_ms)
        self.feedback.finalise_conversions(clock_ms, self.lateness_ms, self.clicked)
        self._settle(touched, closing[rows["final"][closing]], totals)

    def _refile(
        self, row: I64, is_new: np.ndarray, before: tuple[I64, I64], deltas: Deltas
    ) -> None:
        """Count feedback under its effective segment and position, taking back what was counted."""
        rows = self.feedback.rows
        segment, position = self.feedback.effective(row, self.clicked, self.segments)
        moved = (segment != before[0]) | (position != before[1])
        back = moved & ~is_new
        if back.any():
            self._count(self._facts(row[back], before[0][back], before[1][back], -1), deltas)
        put = moved | is_new
        if put.any():
            rows["segment"][row], rows["position"][row] = segment, position
            self._count(self._facts(row[put], segment[put], position[put], 1), deltas)

    def _facts(self, row: I64, segment: I64, position: I64, sign: int) -> FeedbackFacts:
        rows = self.feedback.rows
        is_click = rows["topic"][row] == fb.CLICKS
        return FeedbackFacts(
            event_ms=rows["event_ms"][row],
            segment=segment.astype(np.int64),
            position=position.astype(np.int64),
            kind=np.where(is_click, rows["kind"][row].astype(np.int64), CONVERSION),
            value_micros=rows["value_micros"][row],
            dwell_ms=rows["dwell_ms"][row],
            sign=sign,
        )

    def _count(self, fact: FeedbackFacts, deltas: Deltas) -> None:
        self.collector.collect(fact, deltas)

    def _count_total(self, fact: FeedbackFacts, totals: Deltas) -> None:
        """Totals have no positions: those may still be filled in when the rest is settled."""
        start, none = fact.event_ms * 0, fact.position * 0
        columns = (fact.segment, none, fact.kind, fact.value_micros, fact.dwell_ms)
        self.collector.collect(FeedbackFacts(start, *columns, sign=1), totals)

    def _file_outcomes(self, ref: I64, deltas: Deltas) -> None:
        """File the impressions that became, or are no longer, clicked or converted."""
        rows = self.clicked.rows
        now = self.clicked.outcomes(ref)
        was = rows["filed"][ref].astype(np.int64)
        changed = np.flatnonzero(now != was)
        ref, now, was = ref[changed], now[changed], was[changed]
        rows["filed"][ref] = now
        if len(ref):
            fact = OutcomeFacts(
                event_ms=rows["event_ms"][ref],
                segment=rows["segment"][ref].astype(np.int64),
                clicked=(now & CLICKED) - (was & CLICKED),
                converted=(now & CONVERTED) // CONVERTED - (was & CONVERTED) // CONVERTED,
            )
            self.collector.collect(fact, deltas)

    def _settle(self, touched: I64, closed: I64, totals: Deltas) -> None:
        """Add what is settled now to the totals, and count the final misses."""
        rows = self.feedback.rows
        missed = closed[rows["dead"][closed]]
        for topic, name in ((fb.CLICKS, "clicks"), (fb.CONVERSIONS, "conversions")):
            self.unattributed[name] += int(np.count_nonzero(rows["topic"][missed] == topic))
        settled = self.feedback.take_settled(np.union1d(touched, closed))
        if len(settled):
            fact = self._facts(settled, rows["segment"][settled], rows["position"][settled], 1)
            self._count_total(fact, totals)

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
        clicks_ms = self.logs["clicks"].clock_ms
        impressions_ms = self.logs["impressions"].arrival_ms
        self.impressions.expire(clicks_ms, impressions_ms, self.lateness_ms)
        if len(self.clicked.rows) > self._compact_at["clicked"]:
            self._compact_clicked()
        if len(self.feedback.rows) > self._compact_at["feedback"]:
            self._compact_feedback()

    def join_clock_ms(self) -> int:
        """The slowest clock of the topics that joins depend on."""
        return min(self.logs[kind].clock_ms for kind in ("impressions", "clicks", "conversions"))

    def _compact_clicked(self) -> None:
        expired = self.clicked.expired(self.join_clock_ms(), self.lateness_ms)
        joined = self.feedback.rows["joined"]
        self.feedback.rows["dead"][(joined >= 0) & expired[joined]] = True
        moved = self.clicked.keep(~expired)
        for column in (joined, self.impressions.rows["clicked"]):
            column[:] = np.where(column >= 0, moved[column], -1)
        self._compact_at["clicked"] = max(4096, 2 * len(self.clicked.rows))

    def _compact_feedback(self) -> None:
        self._compact_clicked()
        keep = ~self.feedback.rows["dead"]
        beyond = int(np.count_nonzero(keep)) - self.feedback.limit
        if beyond > 0:
            oldest = np.flatnonzero(keep)[:beyond]
            keep[oldest] = False
            self.feedback.evicted_early += beyond
        self.feedback.keep(keep)
        self._compact_at["feedback"] = max(4096, 2 * len(self.feedback.rows))

    # Adopting ------------------------------------------------------------------------------------

    def rejoin(self) -> None:
        """Compute again what follows from loaded rows and clocks; nothing is counted."""
        rows, clicked = self.clicked.rows, self.clicked
        numbers = np.arange(len(rows))
        index = rows["index"].astype(np.int64)
        self.impressions.relink(rows["offset"], index, numbers)
        pending = self.feedback.pending
        topic = self.feedback.rows["topic"][pending]
        click_ms = self.settings.attribution.click_ms
        self.feedback.rejoin(pending[topic == fb.CLICKS], click_ms, clicked)
        clock_ms = self.logs["impressions"].clock_ms
        self.feedback.finalise_clicks(clock_ms, self.lateness_ms, clicked)
        self.feedback.join_clicked(pending[topic == fb.CONVERSIONS], clicked)
        clock_ms = min(clock_ms, self.logs["clicks"].clock_ms)
        self.feedback.finalise_conversions(clock_ms, self.lateness_ms, clicked)
        segment, position = self.feedback.effective(pending, clicked, self.segments)
        self.feedback.rows["segment"][pending] = segment
        self.feedback.rows["position"][pending] = position
        self.feedback.take_settled(pending)
        rows["filed"][:] = clicked.outcomes(numbers)

    # What a bound dropped ------------------------------------------------------------------------

    @property
    def dropped_by_bounds(self) -> int:
        """Rows that left before their time, because a bound of memory was hit."""
        ids = sum(log.ids.evicted_early for log in self.logs.values())
        tables = self.impressions.evicted_early + self.feedback.evicted_early
        return ids + tables + self.segments.overflowed


assert limits.PANES_PER_WINDOW > 0
