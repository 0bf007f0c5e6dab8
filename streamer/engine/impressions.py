"""Shown items that feedback can still join: rows, in groups of one slate from one apply.

Rows stand in log order of their groups. They leave from the front, when no feedback that could
join them can be accepted any more, judged by the arrival clocks alone: all groups of a slate after
its latest row.
"""

from __future__ import annotations

import numpy as np

from streamer import limits
from streamer.batch import I64, U64, Bools
from streamer.engine.acceptance import NEVER
from streamer.engine.chains import first_least, runs_of, spread
from streamer.engine.index import KeyIndex, mix
from streamer.engine.shown import Shown, reopened, rows_before
from streamer.engine.table import Table

_NO_SLATE = np.uint64(0x5851F42D4C957F2D)
_SCAN = 4096
_INDEX_BITS = 10
_REBASE = 1 << 30


def is_slate(slate: U64, user: U64) -> Bools:
    """Whether keys of groups are those of slates, and not of all that a user saw without one."""
    found: Bools = slate != user ^ _NO_SLATE
    return found


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
            score=np.float64,
            probe=np.int16,
        )
        self.groups = Table(
            user=np.uint64,
            slate=np.uint64,
            first=np.int64,
            count=np.int32,
            arrival_ms=np.int64,
            latest_ms=np.int64,
            opened_ms=np.int64,
            before=np.int32,
            least_ms=np.int64,
            segment=np.int32,
            is_probed=np.bool_,
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
        """Add shown items (repeats are left out); returns slates and users that have new rows."""
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
        self._open(shown, key, starts)
        return self._append(shown, key)

    def load(self, shown: Shown) -> None:
        """Append stored rows, whose ``slate``, ``opened_ms`` and ``before`` are their group's."""
        self._append(shown, shown.slate)

    def _newest_group(self, keys: U64) -> tuple[I64, Bools]:
        """The newest group of each slate, and whether there is any."""
        group = self.by_slate.find(keys).astype(np.int64) - self._dropped_groups
        return np.maximum(group, 0), group >= 0

    def _open(self, shown: Shown, key: U64, starts: I64) -> None:
        """Set when the slate of each row was opened, and how many rows its earlier groups have;
        rows of a key stand together."""
        group, known = self._newest_group(key[starts])
        opened_ms, held_ms = shown.arrival_ms[starts].copy(), self.groups["opened_ms"]
        if known.any():
            known &= opened_ms - held_ms[group] <= self.reign_ms
            opened_ms[known] = held_ms[group[known]]
        shown.opened_ms = reopened(opened_ms, starts, shown.arrival_ms, self.reign_ms)
        shown.opened_ms[shown.slate == 0] = NEVER
        starts = np.union1d(starts, np.flatnonzero(np.diff(shown.opened_ms)) + 1)
        group, known = self._newest_group(key[starts])
        before, opened_ms = np.zeros(len(starts), np.int64), shown.opened_ms[starts]
        if known.any():
            known &= (held_ms[group] == opened_ms) & (opened_ms > NEVER)
            held = self.groups["before"][group] + self.groups["count"][group]
            before[known] = held[known]
        shown.before = rows_before(before, starts, len(key))
        shown.before[shown.slate == 0] = 0

    def _append(self, shown: Shown, key: U64) -> tuple[U64, U64]:
        if not len(key):
            return key, shown.user
        is_start = np.ones(len(key), np.bool_)
        is_start[1:] = (key[1:] != key[:-1]) | (np.diff(shown.opened_ms) != 0)
        is_start[1:] |= np.diff(shown.before) != 0
        starts = np.flatnonzero(is_start)
        slates, before = key[starts], shown.before[starts]
        counts = np.diff(np.append(starts, len(shown)))
        least = first_least(shown.event_ms, starts)
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
                "opened_ms": shown.opened_ms[starts],
                "before": before,
                "least_ms": shown.event_ms[least],
                "segment": shown.segment[least],
                "is_probed": np.maximum.reduceat(shown.probe, starts) > 0,
                "user_next": -1,
                "slate_next": -1,
            },
            len(starts),
        )
        numbers = np.arange(group, group + len(starts))
        self._link(self.by_slate, slates, numbers, "slate_next")
        self._link(self.by_user, users, numbers, "user_next")
        self._prolong(slates[before > 0])
        return slates[shown.opened_ms[starts] > NEVER], users

    def _prolong(self, slates: U64) -> None:
        """Let all groups of a slate stay as long as its latest row."""
        if len(slates):
            query, group = self.members(np.unique(slates))
            opened_ms, latest_ms = self.groups["opened_ms"], self.groups["latest_ms"]
            order = np.lexsort((opened_ms[group], query))
            query, group = query[order], group[order]
            is_start = np.ones(len(group), np.bool_)
            is_start[1:] = (query[1:] != query[:-1]) | (np.diff(opened_ms[group]) != 0)
            starts = np.flatnonzero(is_start)
            longest_ms = np.maximum.reduceat(latest_ms[group], starts)
            latest_ms[group] = longest_ms[np.cumsum(is_start) - 1]

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
        """Items that their slate shows already. Later slates of a request id show them anew."""
        repeats = np.zeros(len(shown), np.bool_)
        slated = np.flatnonzero(shown.slate)
        if not len(slated):
            return repeats
        of_slate = slated[np.argsort(shown.slate[slated], kind="stable")]
        slate = shown.slate[of_slate]
        starts = runs_of(slate)
        group, known = self._newest_group(slate[starts])
        opened_ms, held_ms = shown.arrival_ms[of_slate[starts]].copy(), self.groups["opened_ms"]
        if known.any():
            known &= opened_ms - held_ms[group] <= self.reign_ms
            opened_ms[known] = held_ms[group[known]]
        opened_ms = reopened(opened_ms, starts, shown.arrival_ms[of_slate], self.reign_ms)
        pair = mix(mix(slate, shown.item[of_slate]), opened_ms.view(np.uint64))
        query, row = self._cells(self.by_slate, slate[starts], "slate_next")
        if len(row):
            opened = self.groups["opened_ms"][self.group_of(row)].view(np.uint64)
            held = mix(mix(slate[starts][query], self.rows["item"][row]), opened)
            repeats[of_slate[np.isin(pair, held)]] = True
        order = np.argsort(pair, kind="stable")
        again = np.flatnonzero(pair[order][1:] == pair[order][:-1]) + 1
        repeats[of_slate[order[again]]] = True
        return repeats

    def _cells(
        self, index: KeyIndex, keys: U64, next_name: str, wanted: Bools | None = None
    ) -> tuple[I64, I64]:
        """(query, row) of every row in the groups chained under the keys."""
        query, group = self._chained(index, keys, next_name, wanted)
        which, row = self.rows_of(group)
        return query[which], row

    def rows_of(self, group: I64) -> tuple[I64, I64]:
        """(index into ``group``, row) of every row in the groups."""
        firsts = self.groups["first"][group] - self.dropped_rows
        return spread(firsts, self.groups["count"][group].astype(np.int64))

    def members(self, slates: U64) -> tuple[I64, I64]:
        """(query, group) of every group whose rows belong to slates of these keys."""
        query, group = self._chained(self.by_slate, slates, "slate_next")
        belongs = self.groups["opened_ms"][group] > NEVER
        belongs &= self.groups["before"][group] < limits.MAX_ITEMS
        return query[belongs], group[belongs]

    def _chained(
        self, index: KeyIndex, keys: U64, next_name: str, wanted: Bools | None = None
    ) -> tuple[I64, I64]:
        """(query, group) of the groups chained under the keys."""
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
        return np.concatenate([q for q, _ in found]), np.concatenate([g for _, g in found])

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

    @property
    def next_row(self) -> int:
        """The number that the next row gets; rows are numbered from the first one ever shown."""
        return self.dropped_rows + len(self.rows)

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
        """Forget the rows that no feedback can join any more, and the oldest beyond the bound.

        Feedback of a slate's last member may leave it for a later impression, too: until both
        clocks have passed its slate is compared as a whole.
        """
        reach_ms = self.horizon_ms + lateness_ms
        clicks_ms = min(clicks_ms, impressions_ms)
        while len(self.groups):
            latest = self.groups["latest_ms"][:_SCAN]
            gone = latest + reach_ms < clicks_ms
            gone &= self.groups["arrival_ms"][:_SCAN] + self.reign_ms < impressions_ms
            keep = np.flatnonzero(~gone)
            n = int(keep[0]) if len(keep) else len(gone)
            self._drop(n)
            if n < _SCAN:
                break
        if len(self.rows) > self.limit:
            self._evict(len(self.rows) - self.limit)
        used = max(self.by_user.used, self.by_slate.used)
        if used > 2 * len(self.groups) + 8192 or self._dropped_groups > _REBASE:
            self._rebase()

    def _evict(self, rows: int) -> None:
        """Drop so many of the oldest rows, or some more; what is left of their slates closes."""
        held = np.cumsum(self.groups["count"])
        n = int(np.searchsorted(held, rows)) + 1
        slates = np.unique(self.groups["slate"][:n])
        self.evicted_early += int(held[n - 1])
        self._drop(n)
        _, group = self._chained(self.by_slate, slates, "slate_next")
        self.groups["opened_ms"][group] = NEVER

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
