"""Impressions with attributed feedback: kept on, because conversions may still join them."""

from __future__ import annotations

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.chains import Chains
from streamer.engine.impressions import Impressions
from streamer.engine.index import mix
from streamer.engine.table import Table

NOT_YET = 2**62
"""The time of the first feedback of an impression that has none."""
CLICKED, CONVERTED = 1, 2
"""Bits of ``filed``: which outcomes of an impression are counted."""

EVIDENCE = ("user", "slate", "item", "event_ms", "arrival_ms", "offset", "index", "position")
"""Columns that are stored; all others follow from the feedback."""


class Clicked:
    """Rows of impressions that feedback joined, found by (user, item)."""

    def __init__(self, horizon_ms: int) -> None:
        self.horizon_ms = horizon_ms
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
            first_ms=np.int64,
            final_first_ms=np.int64,
            clicks=np.int32,
            conversions=np.int32,
            filed=np.int8,
            serial=np.int64,
            next=np.int32,
        )
        self.chains = Chains()
        self.serial = 0

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.chains.index.nbytes

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
            columns = {n: impressions.rows[n][fresh] for n in (*EVIDENCE[2:], "segment")}
            columns["user"] = impressions.groups["user"][group]
            columns["slate"] = impressions.groups["slate"][group]
            clicked[fresh] = self.add(columns, len(fresh))
        result[hit] = clicked[row[hit]]
        return result

    def add(self, columns: dict[str, np.ndarray], n: int) -> I64:
        """Add rows without feedback; returns their numbers."""
        pair = mix(columns["user"], columns["item"])
        unset = {"first_ms": NOT_YET, "final_first_ms": NOT_YET, "clicks": 0, "conversions": 0}
        serial = np.arange(self.serial, self.serial + n)
        self.serial += n
        links = {"pair": pair, "filed": 0, "serial": serial, "next": -1}
        first = self.rows.append({**columns, **unset, **links}, n)
        numbers = np.arange(first, first + n)
        self.chains.link(pair, numbers, self.rows["next"])
        return numbers

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
        """What each impression counts as now: bits CLICKED and CONVERTED."""
        clicked = self.rows["clicks"][row] > 0
        converted = clicked & (self.rows["conversions"][row] > 0)
        return clicked * np.int64(CLICKED) + converted * np.int64(CONVERTED)

    def expired(self, clock_ms: int, lateness_ms: int) -> Bools:
        """Rows that nothing can join or leave any more, by the slowest join clock."""
        return self.rows["event_ms"] + (self.horizon_ms + lateness_ms) < clock_ms

    def keep(self, mask: Bools) -> I64:
        """Forget rows; returns old → new numbers (-1: gone)."""
        moved = np.where(mask, np.cumsum(mask) - 1, -1)
        self.rows.keep(mask)
        self.chains.rebuild(self.rows["pair"], self.rows["next"])
        return moved
