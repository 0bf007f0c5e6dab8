"""Impressions with attributed feedback: kept on, because conversions may still join them.

Where conversions are graded, the other members of their slates are kept, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamer import limits
from streamer.batch import I64, U64, Bools
from streamer.engine.acceptance import NEVER
from streamer.engine.chains import Chains
from streamer.engine.impressions import Impressions
from streamer.engine.index import mix
from streamer.engine.table import Table

NOT_YET = 2**62
"""The time of the first feedback of an impression that has none."""
CLICKED, CONVERTED = 1, 2
"""Bits of ``filed``: which outcomes of an impression are counted; above them stands its grade."""
GRADE_SHIFT = 2

EVIDENCE = (
    *("user", "slate", "item", "event_ms", "arrival_ms", "offset", "index", "position"),
    *("score", "probe", "opened_ms"),
)
"""Columns that are stored; all others follow from the feedback."""


class Clicked:
    """Rows of impressions that feedback joined, found by (user, item) and by slate.

    ``grades``: of each kind of feedback, conversions last, the grade that it gives: an index into
    the gains, ascending, from 1; 0 for none. ``reach_ms``: how long after their time rows stay.
    ``limit``: number of rows beyond which no more members are kept that have no feedback.
    """

    def __init__(self, horizon_ms: int, reach_ms: int, grades: Sequence[int], limit: int) -> None:
        self.horizon_ms, self.reach_ms, self.grades = horizon_ms, reach_ms, grades
        self.limit, self.evicted_early = limit, 0
        self.kinds = tuple(f"kind_{i}" for i in range(len(grades) - 1))
        self.rows = Table(
            user=np.uint64,
            slate=np.uint64,
            item=np.uint64,
            pair=np.uint64,
            event_ms=np.int64,
            arrival_ms=np.int64,
            offset=np.int64,
            index=np.int32,
            position=np.int32,
            segment=np.int32,
            score=np.float64,
            probe=np.int16,
            opened_ms=np.int64,
            first_ms=np.int64,
            final_first_ms=np.int64,
            **dict.fromkeys(self.kinds, np.int32),
            conversions=np.int32,
            filed=np.int8,
            serial=np.int64,
            next=np.int32,
            slate_next=np.int32,
        )
        self.chains = Chains()
        self.by_slate = Chains()
        self.serial = 0

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.chains.index.nbytes + self.by_slate.index.nbytes

    def of(self, impressions: Impressions, row: I64) -> I64:
        """The clicked rows of impression rows (-1 stays -1), made where there were none."""
        result = np.full(len(row), -1, np.int64)
        hit = np.flatnonzero(row >= 0)
        if not len(hit):
            return result
        clicked = impressions.rows["clicked"]
        fresh = np.unique(row[hit][clicked[row[hit]] < 0])
        if len(fresh):
            group = impressions.group_of(fresh)
            of_group = ("user", "slate", "opened_ms")
            of_row = [name for name in (*EVIDENCE, "segment") if name not in of_group]
            columns = {name: impressions.rows[name][fresh] for name in of_row}
            columns |= {name: impressions.groups[name][group] for name in of_group}
            is_beyond = impressions.groups["before"][group] >= limits.MAX_ITEMS
            columns["opened_ms"][is_beyond] = NEVER
            clicked[fresh] = self.add(columns, len(fresh))
        result[hit] = clicked[row[hit]]
        return result

    def add(self, columns: dict[str, np.ndarray], n: int) -> I64:
        """Add rows without feedback; returns their numbers."""
        pair = mix(columns["user"], columns["item"])
        unset = {"first_ms": NOT_YET, "final_first_ms": NOT_YET, "conversions": 0}
        unset |= dict.fromkeys(self.kinds, 0)
        serial = np.arange(self.serial, self.serial + n)
        self.serial += n
        links = {"pair": pair, "filed": 0, "serial": serial, "next": -1, "slate_next": -1}
        first = self.rows.append({**columns, **unset, **links}, n)
        numbers = np.arange(first, first + n)
        self.chains.link(pair, numbers, self.rows["next"])
        self._link_slates(numbers)
        return numbers

    def _link_slates(self, row: I64) -> None:
        row = row[self.rows["opened_ms"][row] > NEVER]
        self.by_slate.link(self.rows["slate"][row], row, self.rows["slate_next"])

    def count(self, row: I64, kind: I64, amount: int) -> None:
        """Add feedback of the given kinds to rows, or (-1) take it away; rows may repeat."""
        for i, name in enumerate(self.kinds):
            of_kind = row[kind == i]
            if len(of_kind):
                np.add.at(self.rows[name], of_kind, amount)

    def newest(
        self, user: U64, slate: U64, item: U64, event_ms: I64, feedback_within_ms: int | None = None
    ) -> I64:
        """The newest row that each conversion may join, or -1.

        With ``feedback_within_ms``: the one that clicks-topic feedback joins within that time; a
        row that has any is always here, so this finds a stored join again.
        """
        rows = self.rows
        query, row = self.chains.walk(mix(user, item), rows["next"])
        lag_ms = event_ms[query] - rows["event_ms"][row]
        horizon_ms = self.horizon_ms if feedback_within_ms is None else feedback_within_ms
        fits = (lag_ms >= 0) & (lag_ms <= horizon_ms) & (rows["item"][row] == item[query])
        if feedback_within_ms is None:
            fits &= rows["first_ms"][row] <= event_ms[query]
        fits &= (slate[query] == 0) | (rows["slate"][row] == slate[query])
        query, row = query[fits], row[fits]
        order = np.lexsort((rows["index"][row], rows["offset"][row], rows["event_ms"][row], query))
        result = np.full(len(user), -1, np.int64)
        result[query[order]] = row[order]
        return result

    def outcomes(self, row: I64) -> I64:
        """What each impression counts as now: bits CLICKED and CONVERTED, and its grade."""
        clicked = self.rows[self.kinds[0]][row] > 0
        converted = clicked & (self.rows["conversions"][row] > 0)
        grade = np.zeros(len(row), np.int64)
        for name, given in zip((*self.kinds, "conversions"), self.grades, strict=True):
            if given:
                np.maximum(grade, np.where(self.rows[name][row] > 0, given, 0), out=grade)
        bits = clicked * np.int64(CLICKED) + converted * np.int64(CONVERTED)
        return bits + (grade << GRADE_SHIFT)

    def of_slates(self, slates: U64) -> tuple[I64, I64]:
        """(query, row) of every row that is a member of a slate of these keys."""
        query, row = self.by_slate.walk(slates, self.rows["slate_next"])
        belongs = self.rows["opened_ms"][row] > NEVER
        return query[belongs], row[belongs]

    def admits(self, members: int) -> bool:
        """Whether so many more members without feedback fit the bound."""
        return len(self.rows) + members <= self.limit

    def close(self, slates: U64, dropped: int) -> None:
        """Let rows of these slates be none of their members: the others could not be kept."""
        self.evicted_early += dropped
        _, row = self.of_slates(slates)
        self.rows["opened_ms"][row] = NEVER

    def expired(self, clock_ms: int) -> Bools:
        """Rows that nothing can join, leave or compare with any more, by the slowest join clock."""
        return self.rows["event_ms"] + self.reach_ms < clock_ms

    def keep(self, mask: Bools) -> I64:
        """Forget rows; returns old → new numbers (-1: gone)."""
        moved = np.where(mask, np.cumsum(mask) - 1, -1)
        self.rows.keep(mask)
        self.chains.rebuild(self.rows["pair"], self.rows["next"])
        self.by_slate = Chains()
        self.rows["slate_next"][:] = -1
        self._link_slates(np.arange(len(self.rows)))
        return moved
