"""Which impression each feedback belongs to, and what is counted for it: joins, and their changes.

What is taken in is told as facts: at once for the windows, which may be corrected (a fact taken
back and told anew), and once it is settled for the totals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streamer.batch import I64, U64, Batch
from streamer.config import Settings
from streamer.engine import feedback as fb
from streamer.engine.acceptance import NEVER, TopicLog, Verdict
from streamer.engine.clicked import CLICKED, CONVERTED, Clicked
from streamer.engine.facts import CONVERSION, Fact, FeedbackFacts, OutcomeFacts, ShownFacts
from streamer.engine.feedback import Feedback
from streamer.engine.impressions import Impressions
from streamer.engine.index import mix
from streamer.engine.segments import Segments
from streamer.engine.shown import Shown
from streamer.engine.slates import Slates

_OWN_SLATE = np.uint64(0xA0761D6478BD642F)
_OF_SLATES = {"ranking", "scoring"}
"""The families that need slates."""
_NO_KEYS = np.zeros(0, np.uint64)
_NO_ROWS = np.zeros(0, np.int64)


@dataclass
class Told:
    """Facts of one apply: for the windows, and what is settled now and final for the totals."""

    windowed: list[Fact] = field(default_factory=list)
    settled: list[ShownFacts | FeedbackFacts] = field(default_factory=list)


class Attribution:
    """The impressions of one partition and the feedback that joins them."""

    def __init__(
        self, settings: Settings, segments: Segments, logs: Mapping[str, TopicLog]
    ) -> None:
        time, join, bounds = settings.time, settings.attribution, settings.limits
        self.click_ms, self.lateness_ms = join.click_ms, time.max_lateness_ms
        self.segments, self.logs = segments, logs
        reign_ms = join.click_ms + time.max_lateness_ms + time.max_skew_ms
        self.impressions = Impressions(reign_ms, join.click_ms, bounds.open_impressions)
        self.clicked = clicked_of(settings)
        self.slates = Slates(
            self.impressions,
            self.clicked,
            is_on=not _OF_SLATES.isdisjoint(settings.metrics.families),
            keeps_members=self.clicked.grades[-1] > 0,
        )
        self.feedback = Feedback(bounds.open_feedback)
        self.unattributed = {"clicks": 0, "conversions": 0}
        self._compact_at = {"clicked": 4096, "feedback": 4096}
        self._slates, self._users = _NO_KEYS, _NO_KEYS
        self._fresh = _NO_ROWS
        self._first_new = 0

    # Taking in -----------------------------------------------------------------------------------

    def show(self, batch: Batch, verdict: Verdict, segment: I64, told: Told) -> None:
        """Take in impressions."""
        owner = batch.owner
        assert owner is not None
        shown = np.flatnonzero(verdict.accepted[owner])
        event = owner[shown]
        if not len(event):
            return
        user, offset = batch.user[event], batch.offset[batch.row[event]]
        request = batch.request[event]
        slate = slate_of(user, request)
        index = np.arange(len(event)) - np.searchsorted(event, event, "left")
        own = batch.is_list[event] & (request == 0)
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
            score=batch.score[shown] if self.slates.is_on else np.full(len(event), np.nan),
            probe=batch.probe[shown] if self.slates.is_on else np.zeros(len(event), np.int64),
            opened_ms=np.full(len(event), NEVER),
            before=np.zeros(len(event), np.int64),
        )
        fact = ShownFacts(rows.event_ms, rows.segment, rows.position, rows.user, rows.item)
        told.windowed.append(fact)
        told.settled.append(fact)
        self._first_new = self.impressions.next_row
        self._slates, self._users = self.impressions.insert(rows)

    def receive(self, batch: Batch, verdict: Verdict, segment: I64, told: Told) -> None:
        """Take in feedback. Kinds that are not configured are told at once and join nothing."""
        is_clicks = batch.kind == "clicks"
        event = np.flatnonzero(verdict.accepted)
        if not len(event):
            return
        user, request = batch.user[event], batch.request[event]
        zero = np.zeros(len(event), np.int64)
        fact = FeedbackFacts(
            event_ms=batch.event_ms[event],
            segment=segment[event],
            position=batch.position[event] if is_clicks else zero,
            kind=batch.feedback[event] if is_clicks else zero + CONVERSION,
            value_micros=zero if is_clicks else batch.value_micros[event],
            user=user,
            slate=slate_of(user, request),
            item=batch.item[event],
            offset=batch.offset[batch.row[event]],
            dwell_ms=batch.dwell_ms[event] if is_clicks else zero - 1,
            is_new=zero == 0,
            sign=1,
        )
        other = fact.kind == -1
        if other.any():
            told.windowed.append(fact.where(other))
            told.settled.append(fact.where(other))
            fact = fact.where(~other)
        rows = self.feedback.add(
            {
                "topic": fb.CLICKS if is_clicks else fb.CONVERSIONS,
                "kind": np.maximum(fact.kind, 0),
                **{n: getattr(fact, n) for n in ("user", "slate", "item", "event_ms", "offset")},
                "own_segment": fact.segment,
                "own_position": fact.position,
                "value_micros": fact.value_micros,
                "dwell_ms": fact.dwell_ms,
            },
            len(fact.event_ms),
            self.segments,
        )
        self._fresh = np.concatenate([self._fresh, rows])

    # Joining -------------------------------------------------------------------------------------

    def join(self, told: Told) -> None:
        """Join what is new, and what waited for it; tell what changed."""
        rows, fresh = self.feedback.rows, self._fresh
        slates, first_new = self._slates, self._first_new
        touched = np.union1d(fresh, self.feedback.waiting_for(slates, self._users))
        self._fresh, self._slates, self._users = _NO_ROWS, _NO_KEYS, _NO_KEYS
        self._first_new = self.impressions.next_row
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
        self._tell_outcomes(np.union1d(refs, met), slates, first_new, told)
        self._tell(touched, is_new, before, told)
        clock_ms = min(clock_ms, self.logs["clicks"].clock_ms)
        self.feedback.finalise_conversions(clock_ms, self.lateness_ms, self.clicked)
        self._settle(touched, closing[rows["final"][closing]], told)

    def _tell(self, row: I64, is_new: np.ndarray, before: tuple[I64, I64], told: Told) -> None:
        """Tell feedback under its effective segment and position; take back what was told."""
        rows = self.feedback.rows
        segment, position = self.feedback.effective(row, self.clicked, self.segments)
        moved = (segment != before[0]) | (position != before[1])
        back = moved & ~is_new
        if back.any():
            facts = self._facts(row[back], before[0][back], before[1][back], is_new[back], -1)
            told.windowed.append(facts)
        put = moved | is_new
        if put.any():
            rows["segment"][row], rows["position"][row] = segment, position
            facts = self._facts(row[put], segment[put], position[put], is_new[put], 1)
            told.windowed.append(facts)

    def _facts(
        self, row: I64, segment: I64, position: I64, is_new: np.ndarray, sign: int
    ) -> FeedbackFacts:
        rows = self.feedback.rows
        is_click = rows["topic"][row] == fb.CLICKS
        names = ("event_ms", "value_micros", "user", "slate", "item", "offset", "dwell_ms")
        return FeedbackFacts(
            **{name: rows[name][row] for name in names},
            segment=segment.astype(np.int64),
            position=position.astype(np.int64),
            kind=np.where(is_click, rows["kind"][row].astype(np.int64), CONVERSION),
            is_new=is_new,
            sign=sign,
        )

    def _tell_outcomes(self, ref: I64, slates: U64, first_new: int, told: Told) -> None:
        """Tell which impressions became, or are no longer, clicked or converted, and the slates
        that have other members (rows from ``first_new`` on are new) or other grades."""
        rows = self.clicked.rows
        self.slates.keep(slates, ref)
        now = self.clicked.outcomes(ref)
        was = rows["filed"][ref].astype(np.int64)
        changed = np.flatnonzero(now != was)
        ref, now, was = ref[changed], now[changed], was[changed]
        told.windowed += self.slates.tell(slates, first_new, ref, now)
        rows["filed"][ref] = now
        bits = CLICKED | CONVERTED
        moved = (now & bits) != (was & bits)
        ref, now, was = ref[moved], now[moved], was[moved]
        if len(ref):
            fact = OutcomeFacts(
                event_ms=rows["event_ms"][ref],
                segment=rows["segment"][ref].astype(np.int64),
                user=rows["user"][ref],
                clicked=(now & CLICKED) - (was & CLICKED),
                converted=(now & CONVERTED) // CONVERTED - (was & CONVERTED) // CONVERTED,
            )
            told.windowed.append(fact)

    def _settle(self, touched: I64, closed: I64, told: Told) -> None:
        """Tell what is settled now, and count the final misses."""
        rows = self.feedback.rows
        missed = closed[rows["dead"][closed]]
        for topic, name in ((fb.CLICKS, "clicks"), (fb.CONVERSIONS, "conversions")):
            self.unattributed[name] += int(np.count_nonzero(rows["topic"][missed] == topic))
        settled = self.feedback.take_settled(np.union1d(touched, closed))
        if len(settled):
            told.settled.append(self._as_told(settled))

    def _as_told(self, row: I64) -> FeedbackFacts:
        rows = self.feedback.rows
        is_new = np.ones(len(row), np.bool_)
        return self._facts(row, rows["segment"][row], rows["position"][row], is_new, 1)

    def unsettled(self) -> FeedbackFacts:
        """The feedback that the windows count and that may still move, as it was told last."""
        pending = self.feedback.pending
        return self._as_told(pending[~self.feedback.rows["settled"][pending]])

    def unsettled_counts(self) -> dict[str, int]:
        """How much of it there is, by topic."""
        topics = {"clicks": fb.CLICKS, "conversions": fb.CONVERSIONS}
        return {name: self.feedback.unsettled(topic) for name, topic in topics.items()}

    # Leaving -------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Forget what nothing can join any more."""
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
        expired = self.clicked.expired(self.join_clock_ms())
        joined = self.feedback.rows["joined"]
        held = np.flatnonzero(joined >= 0)
        self.feedback.rows["dead"][held[expired[joined[held]]]] = True
        moved = self.clicked.keep(~expired)
        for column in (joined, self.impressions.rows["clicked"]):
            held = np.flatnonzero(column >= 0)
            column[held] = moved[column[held]]
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

    def move_segments(self, moves: I64) -> None:
        """Segments were folded together: ``moves`` is old → new."""
        for column in (
            self.impressions.rows["segment"],
            self.clicked.rows["segment"],
            self.feedback.rows["segment"],
            self.feedback.rows["own_segment"],
        ):
            column[:] = moves[column]

    # Adopting ------------------------------------------------------------------------------------

    def rejoin(self) -> None:
        """Compute again what follows from loaded rows and clocks; nothing is told."""
        rows, clicked = self.clicked.rows, self.clicked
        numbers = np.arange(len(rows))
        index = rows["index"].astype(np.int64)
        self.impressions.relink(rows["offset"], index, numbers)
        self._first_new = self.impressions.next_row
        pending = self.feedback.pending
        topic = self.feedback.rows["topic"][pending]
        self.feedback.rejoin(pending[topic == fb.CLICKS], self.click_ms, clicked)
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


def clicked_of(settings: Settings) -> Clicked:
    """The empty table of clicked impressions that the settings ask for.

    Rows stay until no conversion can join them, and until no member of their slate can get feedback
    that would be compared with theirs.
    """
    join, time = settings.attribution, settings.time
    gains, feedback = settings.gains, settings.metrics.feedback
    grades = [
        gains.index(gain) + 1 if (gain := feedback.get(kind, 0)) > 0 else 0
        for kind in (*settings.feedback_kinds, "conversion")
    ]
    late_ms = time.max_lateness_ms
    opening_ms = late_ms + join.click_ms + late_ms + 2 * time.max_skew_ms
    graded_ms = opening_ms + settings.feedback_horizon_ms + late_ms
    reach_ms = max(join.conversion_ms + late_ms, graded_ms)
    return Clicked(join.conversion_ms, reach_ms, grades, settings.limits.open_impressions)


def slate_of(user: U64, request: U64) -> U64:
    """The slate of each row: its user's request; 0 where there is no request."""
    return np.where(request != 0, mix(user, request), 0).astype(np.uint64)
