"""Viewings: what feedback and sessions tell of the time spent on one item of one request.

Both may tell of the same viewing, and more than once: the longest time told counts, once. A report
covers its time, up to the session gap (at most the dwell) before it, and the dwell after it;
reports less than the gap apart are of one viewing. Reports without a request count by themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer.batch import I64, U64, Batch
from streamer.engine.acceptance import Verdict
from streamer.engine.attribution import slate_of
from streamer.engine.facts import DwellFacts, FeedbackFacts
from streamer.engine.index import mix
from streamer.engine.intervals import Change, Columns, IntervalTable
from streamer.engine.segments import Segments
from streamer.events import ACTIONS

DWELL = ACTIONS.index("dwell")
_SOURCES = ("click", "session")
_TOLD = ("event_ms", "segment", "user", "dwell_ms")
_BEST = {"dwell_ms": np.int64, "event_ms": np.int64, "offset": np.int64, "segment": np.int32}


class Viewings(IntervalTable):
    """The viewings of one partition that reports can still join.

    Of each source the longest report is kept (``…_dwell_ms`` -1: none; of equal ones the earliest).
    The longer of the two counts, a click's if they are equal; where it does not say a dimension
    the other one's counts.
    """

    def __init__(self, gap_ms: int, lateness_ms: int, limit: int, segments: Segments) -> None:
        summary = {f"{s}_{n}": d for s in _SOURCES for n, d in _BEST.items()}
        super().__init__(gap_ms, 2 * gap_ms + lateness_ms, limit, user=np.uint64, **summary)
        self.segments = segments
        self._alone: list[DwellFacts] = []
        """Reports without a request since the last ``take_settled``: nothing can join them."""

    def feedback(self, fact: FeedbackFacts) -> list[DwellFacts]:
        """Take in what feedback tells."""
        has_dwell = fact.dwell_ms >= 0
        if not has_dwell.any():
            return []
        fact = fact.where(has_dwell)
        alone = fact.slate == 0
        single = fact.where(alone)
        told = [
            DwellFacts(single.event_ms, single.segment, single.user, single.dwell_ms, fact.sign)
        ]
        if fact.sign < 0:
            return told  # in a request: moved when it is told anew
        fresh, moved = fact.where(~alone & fact.is_new), fact.where(~alone & ~fact.is_new)
        if len(fresh.slate):
            told += self._report("click", _columns(fresh), mix(fresh.slate, fresh.item))
        if len(moved.slate):
            told += self._move(moved)
        return told

    def session(self, batch: Batch, verdict: Verdict, segment: I64) -> list[DwellFacts]:
        """Take in what session events tell: those that are dwells, of an item, with a time."""
        wanted = verdict.accepted & (batch.action == DWELL) & (batch.dwell_ms >= 0)
        event = np.flatnonzero(wanted & (batch.item != 0))
        if not len(event):
            return []
        slate = slate_of(batch.user[event], batch.request[event])
        columns = {
            "user": batch.user[event],
            "dwell_ms": batch.dwell_ms[event],
            "event_ms": batch.event_ms[event],
            "offset": batch.offset[batch.row[event]],
            "segment": segment[event],
        }
        alone = slate == 0
        single = {name: column[alone] for name, column in columns.items()}
        told = [DwellFacts(**{n: single[n] for n in _TOLD}, sign=1)]
        self._alone += told
        if not alone.all():
            columns = {name: column[~alone] for name, column in columns.items()}
            told += self._report("session", columns, mix(slate, batch.item[event])[~alone])
        return told

    def settle_feedback(self, fact: FeedbackFacts) -> None:
        """Feedback is settled: what it tells without a request is a viewing of its own."""
        fact = fact.where((fact.dwell_ms >= 0) & (fact.slate == 0))
        self._alone.append(
            DwellFacts(fact.event_ms, fact.segment, fact.user, fact.dwell_ms, fact.sign)
        )

    def take_settled(self, clock_ms: int) -> list[DwellFacts]:
        """The viewings that no report can join any more, each once."""
        alone, self._alone = self._alone, []
        return [*alone, self._facts(self.settled(clock_ms), 1)]

    def _report(self, source: str, report: Columns, key: U64) -> list[DwellFacts]:
        before_ms = np.minimum(report["dwell_ms"], self.gap_ms)
        none = {"dwell_ms": -1, "event_ms": 0, "offset": 0, "segment": 0}
        parts = {
            f"{s}_{name}": report[name].astype(dtype)
            if s == source
            else np.full(len(key), none[name], dtype)
            for s in _SOURCES
            for name, dtype in _BEST.items()
        }
        parts["key"], parts["user"] = key, report["user"]
        parts["low_ms"] = report["event_ms"] - before_ms
        parts["high_ms"] = report["event_ms"] + report["dwell_ms"]
        return self._told(self.merge(parts))

    def _move(self, fact: FeedbackFacts) -> list[DwellFacts]:
        """Feedback has got another segment: it matters where it is the longest of the clicks."""
        query, row = self.chains.walk(mix(fact.slate, fact.item), self.rows["next"])
        rows = self.rows
        held = rows["alive"][row] & (rows["click_dwell_ms"][row] >= 0)
        held &= rows["click_offset"][row] == fact.offset[query]
        query, row = query[held], row[held]
        return self._told(self.change(row, click_segment=fact.segment[query]))

    def reduce(self, columns: Columns, starts: I64) -> dict[str, Any]:
        counts = np.diff(np.append(starts, len(columns["key"])))
        union = np.repeat(np.arange(len(starts)), counts)
        reduced = {"user": columns["user"][starts]}
        for source in _SOURCES:
            dwell_ms, event_ms = columns[f"{source}_dwell_ms"], columns[f"{source}_event_ms"]
            order = np.lexsort((columns[f"{source}_offset"], event_ms, -dwell_ms, union))
            for name in _BEST:
                reduced[f"{source}_{name}"] = columns[f"{source}_{name}"][order[starts]]
        return reduced

    def _told(self, change: Change) -> list[DwellFacts]:
        return [self._facts(change.before, -1), self._facts(change.after, 1)]

    def _facts(self, rows: Columns, sign: int) -> DwellFacts:
        by_click = rows["click_dwell_ms"] >= rows["session_dwell_ms"]
        both = (rows["click_dwell_ms"] >= 0) & (rows["session_dwell_ms"] >= 0)
        best = {
            name: np.where(by_click, rows[f"click_{name}"], rows[f"session_{name}"])
            for name in ("event_ms", "dwell_ms", "segment")
        }
        segment = best["segment"].astype(np.int64)
        other = np.where(by_click, rows["session_segment"], rows["click_segment"])
        if both.any():
            segment[both] = self.segments.filled(segment[both], other[both].astype(np.int64))
        return DwellFacts(best["event_ms"], segment, rows["user"], best["dwell_ms"], sign)


def _columns(fact: FeedbackFacts) -> Columns:
    return {name: getattr(fact, name) for name in ("user", *_BEST)}
