"""Shown items that feedback can still join: rows, in groups of one slate from one apply.

Rows stand in log order of their groups. They leave from the front, when no feedback that could
join them can be accepted any more, judged by the arrival clocks alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.acceptance import NEVER, is_first
from streamer.engine.chains import runs_of, spread
from streamer.engine.index import KeyIndex, mix
from streamer.engine.table import Table

_NO_SLATE = np.uint64(0x5851F42D4C957F2D)
_SCAN = 4096
_INDEX_BITS = 10
_REBASE = 1 << 30


@dataclass(slots=True)
class Shown:
    """Columns of newly shown items, in (offset, index) order; ``slate`` 0: has none."""

    user: U64
    slate: U64
    item: U64
    event_ms: I64
    arrival_ms: I64
    offset: I64
    index: I64
    position: I64
    segment: I64

    def __len__(self) -> int:
        return len(self.item)

    def where(self, mask: Bools | I64) -> Shown:
        return Shown(*(getattr(self, name)[mask] for name in self.__slots__))


class Impressions:
    """The joinable rows of one partition."""

    def __init__(self, reign_ms: int, horizon_ms: int, limit: int) -> None:
        self.reign_ms, self.horizon_ms, self.limit = reign_ms, horizon_ms, limit
        self.rows = Table(
            item=np.uint64,
            event_ms=np.int64,
            arrival_ms=np.int64,
            offset=np.int64,
            index=np.int32,
            position=np.int32,
            segment=np.int32,
            clicked=np.int32,
        )
        self.groups = Table(
            user=np.uint64,
            slate=np.uint64,
            first=np.int64,
            count=np.int32,
            arrival_ms=np.int64,
            latest_ms=np.int64,
            user_next=np.int32,
            slate_next=np.int32,
        )
        self.by_slate = KeyIndex()
        self.by_user = KeyIndex()
        self.dropped_rows = 0
        self._dropped_groups = 0
        self.evicted_early = 0

    @property
    def nbytes(self) -> int:
        tables = self.rows.nbytes + self.groups.nbytes
        return tables + self.by_slate.nbytes + self.by_user.nbytes

    def insert(self, shown: Shown) -> tuple[U64, U64]:
        """Add shown items (repeats are left out); returns the slates and users of new groups."""
        if not len(shown):
            return shown.slate, shown.user
        shown = shown.where(~self._repeats(shown))
        key = np.where(shown.slate == 0, shown.user ^ _NO_SLATE, shown.slate)
        starts = runs_of(key)
        heads = key[starts]
        ranked = np.sort(heads)
        if (ranked[1:] == ranked[:-1]).any():
            order = np.argsort(key, kind="stable")
            shown, key = shown.where(order), key[order]
            starts = runs_of(key)
        return self._append(shown, key[starts], starts)

    def load(self, shown: Shown) -> None:
        """Append stored rows, whose ``slate`` is that of their group."""
        starts = runs_of(shown.slate)
        self._append(shown, shown.slate[starts], starts)

    def _append(self, shown: Shown, slates: U64, starts: I64) -> tuple[U64, U64]:
        if not len(starts):
            return slates, shown.user
        counts = np.diff(np.append(starts, len(shown)))
        columns = {name: getattr(shown, name) for name in self.rows.names if name != "clicked"}
        first = self.rows.append({**columns, "clicked": -1}, len(shown)) + self.dropped_rows
        users = shown.user[starts]
        group = self.groups.append(
            {
                "user": users,
                "slate": slates,
                "first": starts + first,
                "count": counts,
                "arrival_ms": np.maximum.reduceat(shown.arrival_ms, starts),
                "latest_ms": np.maximum.reduceat(shown.event_ms, starts),
                "user_next": -1,
                "slate_next": -1,
            },
            len(starts),
        )
        numbers = np.arange(group, group + len(starts))
        self._link(self.by_slate, slates, numbers, "slate_next")
        self._link(self.by_user, users, numbers, "user_next")
        return slates, users

    def _link(self, index: KeyIndex, keys: U64, groups: I64, next_name: str) -> None:
        slots, _ = index.slots(keys)
        absolute = groups + self._dropped_groups
        ranked = np.sort(slots)
        if (ranked[1:] == ranked[:-1]).any():
            order = np.argsort(slots, kind="stable")
            slots, groups, absolute = slots[order], groups[order], absolute[order]
            again = np.concatenate(([False], slots[1:] == slots[:-1]))
            before = np.where(again, np.roll(absolute, 1), index.rows_at(slots))
        else:
            before = index.rows_at(slots)
        self.groups[next_name][groups] = before
        index.set_rows(slots, absolute)

    def _repeats(self, shown: Shown) -> Bools:
        """Items shown before in the same slate, within the reign of the first showing."""
        pair = mix(shown.slate, shown.item)
        pair[shown.slate == 0] = 0
        known = np.full(len(shown), NEVER, np.int64)
        starts = runs_of(shown.slate)
        slates = shown.slate[starts]
        query, row = self._cells(self.by_slate, slates, "slate_next", slates != 0)
        if len(row):
            before = mix(slates[query], self.rows["item"][row])
            arrival = self.rows["arrival_ms"][row]
            order = np.lexsort((arrival, before))
            before, arrival = before[order], arrival[order]
            at = np.searchsorted(before, pair, "right") - 1
            held = (at >= 0) & (before[at] == pair)
            known[held] = arrival[at[held]]
        else:
            ranked = np.sort(pair[pair != 0])
            if not (ranked[1:] == ranked[:-1]).any():
                return np.zeros(len(shown), np.bool_)
        repeats = np.zeros(len(shown), np.bool_)
        slated = np.flatnonzero(shown.slate)
        firsts = is_first(pair[slated], shown.arrival_ms[slated], known[slated], self.reign_ms)
        repeats[slated[~firsts]] = True
        return repeats

    def _cells(
        self, index: KeyIndex, keys: U64, next_name: str, wanted: Bools | None = None
    ) -> tuple[I64, I64]:
        """(query, row) of every row in the groups chained under the keys."""
        groups = index.find(keys).astype(np.int64) - self._dropped_groups
        queries = np.arange(len(keys))
        if wanted is not None:
            groups, queries = groups[wanted], queries[wanted]
        next_group = self.groups[next_name]
        found: list[tuple[I64, I64]] = []
        while True:
            live = groups >= 0
            if not live.all():
                queries, groups = queries[live], groups[live]
            if not len(groups):
                break
            found.append((queries, groups))
            groups = next_group[groups].astype(np.int64) - self._dropped_groups
        if not found:
            none = np.zeros(0, np.int64)
            return none, none
        query = np.concatenate([q for q, _ in found])
        group = np.concatenate([g for _, g in found])
        firsts = self.groups["first"][group] - self.dropped_rows
        which, row = spread(firsts, self.groups["count"][group].astype(np.int64))
        return query[which], row

    def newest(self, user: U64, slate: U64, item: U64, event_ms: I64) -> I64:
        """The newest row of each feedback within the horizon before it, or -1.

        With a slate: of that slate; without (0): of all that the user was shown.
        """
        result = np.full(len(user), -1, np.int64)
        for by_slate in (True, False):
            asked = np.flatnonzero((slate != 0) == by_slate)
            if not len(asked):
                continue
            index, name = (self.by_slate, "slate") if by_slate else (self.by_user, "user")
            keys = slate[asked] if by_slate else user[asked]
            held = np.unique(keys)
            owner, row = self._cells(index, held, f"{name}_next")
            mine = mix(held[owner], self.rows["item"][row])
            wanted = mix(keys, item[asked])
            result[asked] = self._newest_before(mine, row, wanted, event_ms[asked])
        return result

    def _newest_before(self, mine: U64, row: I64, wanted: U64, event_ms: I64) -> I64:
        """Of rows with keys ``mine`` the newest at or before each asked (key, time), or -1.

        Rows and questions are sorted together, so that a user who was shown an item very often
        costs no more than his rows.
        """
        n, m = len(row), len(wanted)
        rows, none = self.rows, np.zeros(m, np.int64)
        order = np.lexsort(
            (
                np.concatenate([rows["index"][row], none]),
                np.concatenate([rows["offset"][row], none]),
                np.concatenate([np.zeros(n, np.int8), np.ones(m, np.int8)]),
                np.concatenate([rows["event_ms"][row], event_ms]),
                np.concatenate([mine, wanted]),
            )
        )
        place = np.where(order < n, np.arange(n + m), -1)
        before = np.maximum.accumulate(place)
        asked = order >= n
        question, before = order[asked] - n, before[asked]
        found = np.full(m, -1, np.int64)
        found[question[before >= 0]] = row[order[before[before >= 0]]]
        hit = found >= 0
        keys = np.zeros(m, np.uint64)
        keys[question[before >= 0]] = mine[order[before[before >= 0]]]
        fits = hit & (keys == wanted)
        lag_ms = event_ms - rows["event_ms"][np.where(fits, found, 0)] if n else event_ms
        return np.where(fits & (lag_ms <= self.horizon_ms), found, -1)

    def group_of(self, row: I64) -> I64:
        """The group of each row."""
        return np.searchsorted(self.groups["first"], row + self.dropped_rows, "right") - 1

    def relink(self, offset: I64, index: I64, clicked: I64) -> None:
        """Point rows that are among the given (offset, index) to their clicked rows."""
        wanted = offset << _INDEX_BITS | index
        order = np.argsort(wanted)
        wanted, clicked = wanted[order], clicked[order]
        have = self.rows["offset"] << _INDEX_BITS | self.rows["index"].astype(np.int64)
        at = np.searchsorted(wanted, have)
        at[at == len(wanted)] = 0
        if len(wanted):
            hit = wanted[at] == have
            self.rows["clicked"][hit] = clicked[at[hit]]

    def expire(self, clicks_ms: int, impressions_ms: int, lateness_ms: int) -> None:
        """Forget the rows that no feedback can join any more, and the oldest beyond the bound."""
        reach_ms = self.horizon_ms + lateness_ms
        while len(self.groups):
            latest = self.groups["latest_ms"][:_SCAN]
            gone = latest + reach_ms < clicks_ms
            gone &= self.groups["arrival_ms"][:_SCAN] + self.reign_ms < impressions_ms
            keep = np.flatnonzero(~gone)
            n = int(keep[0]) if len(keep) else len(gone)
            self._drop(n)
            if n < _SCAN:
                break
        while len(self.rows) > self.limit and len(self.groups):
            self.evicted_early += int(self.groups["count"][0])
            self._drop(1)
        if self.by_user.used > 2 * len(self.groups) + 8192 or self._dropped_groups > _REBASE:
            self._rebase()

    def _drop(self, groups: int) -> None:
        if groups:
            rows = int(self.groups["count"][:groups].sum())
            self.groups.drop_front(groups)
            self._dropped_groups += groups
            self.rows.drop_front(rows)
            self.dropped_rows += rows

    def _rebase(self) -> None:
        """Number the groups from 0 again and forget keys without groups."""
        for name in ("user_next", "slate_next"):
            column = self.groups[name]
            column[:] = np.maximum(column.astype(np.int64) - self._dropped_groups, -1)
        self._dropped_groups = 0
        numbers = np.arange(len(self.groups))
        self.by_slate.rebuild(self.groups["slate"].copy(), numbers)
        self.by_user.rebuild(self.groups["user"].copy(), numbers)
