"""Feedback that joins impressions: clicks-topic events of configured kinds, and conversions.

A row stays pending until its join is final (see ``finalise_clicks``). It is counted at once in the
windows, under its effective segment and position; when its join changes, what it had counted is
moved. What it adds to the totals is added once, when it is settled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.acceptance import NEVER
from streamer.engine.chains import Chains
from streamer.engine.clicked import NOT_YET, Clicked
from streamer.engine.impressions import Impressions
from streamer.engine.index import mix
from streamer.engine.segments import Segments
from streamer.engine.table import Table

CLICKS, CONVERSIONS = 0, 1
_BY_PAIR = np.uint64(0xD1B54A32D192ED03)
_BY_USER = np.uint64(0x2545F4914F6CDD1D)

EVIDENCE = (
    *("topic", "kind", "user", "slate", "item", "event_ms", "offset", "own_segment"),
    *("own_position", "value_micros", "dwell_ms"),
)
"""Columns that are stored; all others follow from the impressions and the clocks."""


class Feedback:
    """The feedback rows of one partition."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.rows = Table(
            topic=np.int8,
            kind=np.int8,
            user=np.uint64,
            slate=np.uint64,
            item=np.uint64,
            event_ms=np.int64,
            offset=np.int64,
            own_segment=np.int32,
            own_position=np.int32,
            value_micros=np.int64,
            dwell_ms=np.int64,
            joined=np.int32,
            segment=np.int32,
            position=np.int32,
            complete=np.bool_,
            settled=np.bool_,
            final=np.bool_,
            dead=np.bool_,
            serial=np.int64,
            next=np.int32,
        )
        self.serial = 0
        self.chains = Chains()
        self.pending: I64 = np.zeros(0, np.int64)
        self.evicted_early = 0

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.chains.index.nbytes

    def _keys(self, row: I64) -> U64:
        """What a row waits for: its slate, its user, or for conversions its (user, item)."""
        rows = self.rows
        user, slate = rows["user"][row], rows["slate"][row]
        key = np.where(slate != 0, slate, user ^ _BY_USER)
        pair = mix(user, rows["item"][row]) ^ _BY_PAIR
        return np.where(rows["topic"][row] == CONVERSIONS, pair, key)

    def add(self, columns: Mapping[str, Any], n: int, segments: Segments) -> I64:
        """Add rows, not joined yet; returns their numbers."""
        own = np.asarray(columns["own_segment"], np.int64)
        serial = np.arange(self.serial, self.serial + n)
        self.serial += n
        first = self.rows.append(
            {
                **columns,
                "joined": -1,
                "segment": own,
                "position": columns["own_position"],
                "complete": segments.is_complete(own),
                "settled": False,
                "final": False,
                "dead": False,
                "serial": serial,
                "next": -1,
            },
            n,
        )
        numbers = np.arange(first, first + n)
        self.chains.link(self._keys(numbers), numbers, self.rows["next"])
        self.pending = np.concatenate([self.pending, numbers])
        return numbers

    def waiting_for(self, slates: U64, users: U64) -> I64:
        """Pending clicks-topic rows that new impressions of these may concern."""
        return self._waiting(np.concatenate([slates, users ^ _BY_USER]))

    def waiting_for_pairs(self, pairs: U64) -> I64:
        """Pending conversions of these (user, item) pairs."""
        return self._waiting(pairs ^ _BY_PAIR)

    def _waiting(self, keys: U64) -> I64:
        if not len(self.pending) or not len(keys):
            return np.zeros(0, np.int64)
        _, row = self.chains.walk(keys, self.rows["next"])
        return np.unique(row[~self.rows["final"][row]])

    def join_impressions(self, row: I64, impressions: Impressions, clicked: Clicked) -> I64:
        """Join clicks-topic rows anew; returns the clicked rows whose feedback changed."""
        rows = self.rows
        found = impressions.newest(
            rows["user"][row], rows["slate"][row], rows["item"][row], rows["event_ms"][row]
        )
        return self._join(row, clicked.of(impressions, found), clicked)

    def rejoin(self, row: I64, horizon_ms: int, clicked: Clicked) -> None:
        """Join stored clicks-topic rows to the clicked rows that they had joined."""
        rows = self.rows
        found = clicked.newest(
            *(rows["user"][row], rows["slate"][row], rows["item"][row], rows["event_ms"][row]),
            feedback_within_ms=horizon_ms,
        )
        self._join(row, found, clicked)

    def _join(self, row: I64, new: I64, clicked: Clicked) -> I64:
        rows = self.rows
        old = rows["joined"][row].astype(np.int64)
        moved = np.flatnonzero(new != old)
        row, old, new = row[moved], old[moved], new[moved]
        rows["joined"][row] = new
        left, met, kind = old >= 0, new >= 0, rows["kind"][row].astype(np.int64)
        clicked.count(old[left], kind[left], -1)
        clicked.count(new[met], kind[met], 1)
        np.minimum.at(clicked.rows["first_ms"], new[met], rows["event_ms"][row[met]])
        if left.any():
            self._first_again(np.unique(old[left]), clicked)
        return np.unique(np.concatenate([old[left], new[met]]))

    def _first_again(self, refs: I64, clicked: Clicked) -> None:
        """Recompute the first feedback of clicked rows that some feedback has left."""
        rows, pending = self.rows, self.pending
        first = clicked.rows["first_ms"]
        first[refs] = clicked.rows["final_first_ms"][refs]
        here = pending[np.isin(rows["joined"][pending], refs)]
        here = here[rows["topic"][here] == CLICKS]
        np.minimum.at(first, rows["joined"][here], rows["event_ms"][here])

    def join_clicked(self, row: I64, clicked: Clicked) -> I64:
        """Join conversions anew; returns the clicked rows whose conversions changed."""
        rows = self.rows
        new = clicked.newest(
            rows["user"][row], rows["slate"][row], rows["item"][row], rows["event_ms"][row]
        )
        old = rows["joined"][row].astype(np.int64)
        moved = np.flatnonzero(new != old)
        row, old, new = row[moved], old[moved], new[moved]
        rows["joined"][row] = new
        left, met = old >= 0, new >= 0
        np.subtract.at(clicked.rows["conversions"], old[left], 1)
        np.add.at(clicked.rows["conversions"], new[met], 1)
        return np.unique(np.concatenate([old[left], new[met]]))

    def effective(self, row: I64, clicked: Clicked, segments: Segments) -> tuple[I64, I64]:
        """Segment and position under which rows count: their own, filled from the impression."""
        rows = self.rows
        segment = rows["own_segment"][row].astype(np.int64)
        position = rows["own_position"][row].astype(np.int64)
        joined = rows["joined"][row]
        fill = np.flatnonzero((joined >= 0) & ~rows["complete"][row])
        if len(fill):
            inherited = clicked.rows["segment"][joined[fill]].astype(np.int64)
            segment[fill] = segments.filled(segment[fill], inherited)
        fill = np.flatnonzero((joined >= 0) & (position == 0))
        position[fill] = clicked.rows["position"][joined[fill]]
        return segment, position

    def finalise_clicks(self, impressions_ms: int, lateness_ms: int, clicked: Clicked) -> I64:
        """Mark clicks-topic rows whose join cannot change any more; returns the clicked rows whose
        final feedback changed. Rows that joined nothing are dead from then on."""
        rows = self.rows
        waiting = self.pending[rows["topic"][self.pending] == CLICKS]
        by_request = (rows["slate"][waiting] != 0) & (rows["joined"][waiting] >= 0)
        passed = rows["event_ms"][waiting] < impressions_ms - lateness_ms
        done = waiting[by_request | passed]
        met = done[rows["joined"][done] >= 0]
        refs = rows["joined"][met]
        np.minimum.at(clicked.rows["final_first_ms"], refs, rows["event_ms"][met])
        self._close(done)
        return np.unique(refs)

    def finalise_conversions(self, clock_ms: int, lateness_ms: int, clicked: Clicked) -> None:
        """The same for conversions; ``clock_ms`` is the slower of impressions and clicks."""
        rows = self.rows
        waiting = self.pending[rows["topic"][self.pending] == CONVERSIONS]
        if not len(waiting):
            return
        joined, event_ms = rows["joined"][waiting], rows["event_ms"][waiting]
        first = np.full(len(waiting), NOT_YET, np.int64)
        first[joined >= 0] = clicked.rows["final_first_ms"][joined[joined >= 0]]
        sure = (rows["slate"][waiting] != 0) & (first <= event_ms)
        self._close(waiting[sure | (event_ms < clock_ms - lateness_ms)])

    def _close(self, row: I64) -> None:
        rows = self.rows
        rows["final"][row] = True
        rows["dead"][row] = rows["joined"][row] < 0
        self.pending = self.pending[~rows["final"][self.pending]]

    def take_settled(self, row: I64) -> I64:
        """Of the given rows those that are settled now and were not before."""
        rows = self.rows
        settled = rows["complete"][row] | rows["final"][row]
        fresh = row[settled & ~rows["settled"][row]]
        rows["settled"][fresh] = True
        return fresh

    def unsettled(self, topic: int) -> int:
        rows, pending = self.rows, self.pending
        return int(np.count_nonzero((rows["topic"][pending] == topic) & ~rows["settled"][pending]))

    def keep(self, mask: Bools) -> None:
        """Forget rows."""
        moved = np.cumsum(mask) - 1
        self.pending = moved[self.pending[mask[self.pending]]]
        self.rows.keep(mask)
        self.chains.rebuild(self._keys(np.arange(len(self.rows))), self.rows["next"])


assert NEVER < 0 < NOT_YET
