"""Sessions: events of one (user, session id), each less than the gap after the one before.

A session ends where its last event is an ``end``, else the gap after it: it is filed under that
time, which may lie ahead, and filed anew when an event re-opens it or joins it with another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer.batch import I64, Batch
from streamer.engine.acceptance import Verdict
from streamer.engine.facts import SessionFacts
from streamer.engine.index import mix
from streamer.engine.intervals import Columns, IntervalTable
from streamer.events import ACTIONS

VIEW, END = ACTIONS.index("view"), ACTIONS.index("end")


class Sessions(IntervalTable):
    """The sessions of one partition that events can still join.

    ``segment`` is that of the first event (of equal times the lowest offset), ``is_end`` says
    whether an ``end`` is among the events of the last moment.
    """

    def __init__(self, gap_ms: int, lateness_ms: int, limit: int) -> None:
        super().__init__(
            gap_ms,
            gap_ms + lateness_ms,
            limit,
            user=np.uint64,
            offset=np.int64,
            segment=np.int32,
            views=np.int64,
            is_end=np.bool_,
        )

    def take(self, batch: Batch, verdict: Verdict, segment: I64) -> list[SessionFacts]:
        """Take in the accepted events of a batch."""
        event = np.flatnonzero(verdict.accepted)
        if not len(event):
            return []
        action = batch.action[event]
        change = self.merge(
            {
                "key": mix(batch.user[event], batch.session[event]),
                "user": batch.user[event],
                "low_ms": batch.event_ms[event],
                "high_ms": batch.event_ms[event],
                "offset": batch.offset[batch.row[event]],
                "segment": segment[event].astype(np.int32),
                "views": (action == VIEW).astype(np.int64),
                "is_end": action == END,
            }
        )
        return [self._facts(change.before, -1), self._facts(change.after, 1)]

    def take_settled(self, clock_ms: int) -> list[SessionFacts]:
        """The sessions that no event can join any more, each once."""
        return [self._facts(self.settled(clock_ms), 1)]

    def reduce(self, columns: Columns, starts: I64) -> dict[str, Any]:
        ends = np.append(starts[1:], len(columns["key"]))
        union = np.repeat(np.arange(len(starts)), ends - starts)
        order = np.lexsort((columns["offset"], columns["low_ms"], union))
        first = order[starts]
        last_ms = np.maximum.reduceat(columns["high_ms"], starts)
        ended = columns["is_end"] & (columns["high_ms"] == last_ms[union])
        return {
            "user": columns["user"][first],
            "offset": columns["offset"][first],
            "segment": columns["segment"][first],
            "views": np.add.reduceat(columns["views"], starts),
            "is_end": np.logical_or.reduceat(ended, starts),
        }

    def _facts(self, rows: Columns, sign: int) -> SessionFacts:
        wait_ms = np.where(rows["is_end"], 0, self.gap_ms)
        return SessionFacts(
            event_ms=rows["high_ms"] + wait_ms,
            segment=rows["segment"].astype(np.int64),
            user=rows["user"],
            length_ms=rows["high_ms"] - rows["low_ms"],
            views=rows["views"],
            sign=sign,
        )
