"""Means over people from panes that add: what each user contributes, filed under last touches.

A user counts in a window as if it began at one of his last touches: let v(s) be his value over
what he last touched in pane s or later. Under pane s stands v(s) - v(s + 1), so that the sum of
the panes from s on is v(s), whatever s: a window is read from its first pane, without an end.
Of one user: n(s) items seen, p(s) of them with feedback of a kind, p(s) / n(s) the positive rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.chains import runs_of, spread
from streamer.engine.user_items import Times, Touched

RATE_UNIT = 10**9
"""Positive rates are integers of 1e-9, rounded once for a user and a first pane."""
USERS, HITS = 0, 1
"""Statistics: users with an impression; those who clicked, too."""
_CHUNK_ROWS = 1 << 17
_DENSE = 1 << 22
_INDEX_BITS = 20
_PANE_BITS = 22
_KEY_STAT_BITS, _KEY_GROUP_BITS = 8, 20
_NONE = np.zeros(0, np.int64)


def rate_sum(kind: int) -> int:
    """Statistic: sum of the positive rates of a feedback kind."""
    return 2 + 2 * kind


def positive_users(kind: int) -> int:
    """Statistic: users with an item seen and given feedback of the kind."""
    return 3 + 2 * kind


def users_stats(kinds: int) -> int:
    """How many statistics there are."""
    return 2 + 2 * kinds


def key_of(pane: I64, group: I64, stat: int) -> I64:
    """One integer of pane, segment group and statistic, in that order."""
    return (pane << _KEY_GROUP_BITS | group) << _KEY_STAT_BITS | stat


def first_key(pane: int) -> int:
    """The least key of a pane."""
    return max(pane, 0) << (_KEY_STAT_BITS + _KEY_GROUP_BITS)


def parts_of(key: I64) -> tuple[I64, I64, I64]:
    """(pane, group, statistic) of keys."""
    stat = key & ((1 << _KEY_STAT_BITS) - 1)
    group = (key >> _KEY_STAT_BITS) & ((1 << _KEY_GROUP_BITS) - 1)
    return key >> (_KEY_STAT_BITS + _KEY_GROUP_BITS), group, stat


@dataclass(frozen=True)
class Frame:
    """How times are read in one ring: ``units`` a pane, from ``base``; panes from ``oldest``."""

    units: int
    base: int
    oldest: int

    def panes(self, time: Times) -> I64:
        """Panes from the oldest one on; negative: too old, or never."""
        pane = (time.astype(np.int64) + self.base) // self.units - self.oldest
        return np.where(time > 0, pane, -1)


Sums = tuple[I64, I64]
"""Keys (see ``key_of``), each once and ascending, and their values."""
EMPTY: Sums = (_NONE, _NONE)


def added(parts: Sequence[Sums]) -> Sums:
    """The sum of several; what has become 0 is left out."""
    parts = [EMPTY, *parts]
    key = np.concatenate([k for k, _ in parts])
    value = np.concatenate([v for _, v in parts])
    if not len(key):
        return key, value
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order]
    starts = runs_of(key)
    total = np.add.reduceat(value, starts)
    return key[starts][total != 0], total[total != 0]


class Tally:
    """Sums of one ring: added up in place as long as the panes met are few."""

    def __init__(self, frame: Frame, groups: int, stats: int, sign: int) -> None:
        self.frame, self.sign = frame, sign
        self._shape = (groups, stats)
        self._dense = np.zeros(0, np.int64)
        self._sparse: list[Sums] = []

    def add(self, code: I64, stat: int, value: I64 | int) -> None:
        """Add the values of (owner, pane) codes: the user is left out, his group stays."""
        if not len(code):
            return
        pane = code & ((1 << _PANE_BITS) - 1)
        group = (code >> _PANE_BITS) & ((1 << _KEY_GROUP_BITS) - 1)
        values = np.broadcast_to(np.asarray(self.sign * value, np.int64), code.shape)
        groups, stats = self._shape
        size = (int(pane.max()) + 1) * groups * stats
        if size > _DENSE:
            self._sparse.append(added([(key_of(pane + self.frame.oldest, group, stat), values)]))
            return
        if size > len(self._dense):
            self._dense = np.append(self._dense, np.zeros(size - len(self._dense), np.int64))
        np.add.at(self._dense, (pane * groups + group) * stats + stat, values)

    def sums(self) -> Sums:
        """What was added."""
        groups, stats = self._shape
        place = np.flatnonzero(self._dense)
        pane, rest = np.divmod(place, groups * stats)
        group, stat = np.divmod(rest, stats)
        key = key_of(pane + self.frame.oldest, group, 0) | stat
        return added([(key, self._dense[place]), *self._sparse])


def chunks(rows: Touched) -> Iterator[Touched]:
    """Rows with a time, in parts that hold whole users, each in the order of users."""
    rows = rows.where(np.flatnonzero(np.maximum.reduce(rows.times)))
    bucket = (rows.user >> np.uint64(48)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=1 << 16))
    start = 0
    while start < len(order):
        stop = int(ends[np.searchsorted(ends, min(start + _CHUNK_ROWS, len(order)), "left")])
        part = order[start:stop]
        yield rows.where(part[_order_of(rows.user[part])])
        start = stop


def _order_of(user: U64) -> I64:
    """What sorts users: a packed sort, which is faster than one of rows."""
    if len(user) < 1 << _INDEX_BITS:
        low = np.uint64((1 << _INDEX_BITS) - 1)
        packed = np.sort((user & ~low) | np.arange(len(user), dtype=np.uint64))
        order = (packed & low).astype(np.int64)
        high = packed >> np.uint64(_INDEX_BITS)
        ranked = user[order]
        if not ((high[1:] == high[:-1]) & (ranked[1:] != ranked[:-1])).any():
            return order
    return np.argsort(user, kind="stable")


def contribute(rows: Touched, groups: Sequence[I64], tallies: Sequence[Tally]) -> None:
    """Add up what the users of one chunk contribute to each ring.

    ``groups``: for each rollup the segment group of every segment.
    """
    user = np.cumsum(np.concatenate(([False], rows.user[1:] != rows.user[:-1]))).astype(np.int64)
    owners = [user << _KEY_GROUP_BITS | group_of[rows.segment] for group_of in groups]
    ranked = np.sort(rows.pair)
    again = ranked[1:][ranked[1:] == ranked[:-1]]
    double = np.isin(rows.pair, again) if len(again) else np.zeros(len(rows), np.bool_)
    for tally in tallies:
        panes = [tally.frame.panes(time) for time in rows.times]
        held = np.flatnonzero(np.maximum.reduce(panes) >= 0)
        if not len(held):
            continue
        panes = [pane[held] for pane in panes]
        pair, is_double = rows.pair[held], double[held]
        for owner in owners:
            _of_rollup(owner[held], panes, pair, is_double, tally)


def _of_rollup(owner: I64, panes: list[I64], pair: U64, is_double: Bools, tally: Tally) -> None:
    """Contributions to the groups of one rollup. An item that a user met in several segments of
    a group is one there, with its last times."""
    if is_double.any():
        single, double = np.flatnonzero(~is_double), np.flatnonzero(is_double)
        double = double[np.lexsort((pair[double], owner[double]))]
        mine, pair = owner[double], pair[double]
        changes = (mine[1:] != mine[:-1]) | (pair[1:] != pair[:-1])
        starts = np.flatnonzero(np.concatenate(([True], changes)))
        panes = [np.append(p[single], np.maximum.reduceat(p[double], starts)) for p in panes]
        owner = np.append(owner[single], mine[starts])
    _of_owners(owner, panes, tally)


def _counted(code: I64) -> tuple[I64, I64]:
    """Distinct codes, ascending, and how often each is there. (They stand in the order of users:
    a stable sort takes a quarter of the time, or less, for what is almost sorted.)"""
    code = np.sort(code, kind="stable")
    starts = runs_of(code)
    return code[starts], np.diff(np.append(starts, len(code)))


def _lasts(code: I64) -> I64:
    """Of ascending (owner, pane) codes the last one of each owner."""
    owner = code >> _PANE_BITS
    return code[np.append(owner[1:] != owner[:-1], True)] if len(code) else code


def _of_owners(owner: I64, panes: list[I64], tally: Tally) -> None:
    """What owners (a user in a group) contribute to one ring."""
    shown = panes[0]
    in_time = shown >= 0
    seen, seen_counts = _counted(owner[in_time] << _PANE_BITS | shown[in_time])
    users = _lasts(seen)
    tally.add(users, USERS, 1)
    for kind, given in enumerate(panes[1:]):
        fed = np.flatnonzero(given >= 0)
        if not len(fed):
            continue
        mine, when = owner[fed], given[fed]
        if kind == 0:
            clickers = _lasts(_counted(mine << _PANE_BITS | when)[0])
            tally.add(_earlier(users, clickers), HITS, 1)
        both = np.minimum(when, shown[fed])
        liked, liked_counts = _counted((mine << _PANE_BITS | both)[both >= 0])
        tally.add(_lasts(liked), positive_users(kind), 1)
        at, value = _rates(seen, seen_counts, liked, liked_counts)
        tally.add(at, rate_sum(kind), value)


def _earlier(a: I64, b: I64) -> I64:
    """For owners that are in both (each once, ascending) the earlier of their two panes."""
    mine = a >> _PANE_BITS
    at = np.searchsorted(mine, b >> _PANE_BITS)
    b, at = b[at < len(a)], at[at < len(a)]
    same = mine[at] == b >> _PANE_BITS
    earlier: I64 = np.minimum(a[at[same]], b[same])
    return earlier


def _rates(seen: I64, seen_counts: I64, liked: I64, liked_counts: I64) -> Sums:
    """Positive rates by (owner, pane), as differences to that of the owner's next pane."""
    if not len(liked):
        return EMPTY
    owners = _lasts(liked) >> _PANE_BITS
    starts = np.searchsorted(seen, owners << _PANE_BITS)
    _, mine = spread(starts, np.searchsorted(seen, (owners + 1) << _PANE_BITS) - starts)
    seen, seen_counts = seen[mine], seen_counts[mine]
    at, _ = _counted(np.append(seen, liked))
    n, p = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    n[np.searchsorted(at, seen)] = seen_counts
    p[np.searchsorted(at, liked)] = liked_counts
    owner = at >> _PANE_BITS
    is_last = np.append(owner[1:] != owner[:-1], True)
    n, p = _from_here(n, is_last), _from_here(p, is_last)
    rate = (2 * RATE_UNIT * p + n) // (2 * n)
    later = np.where(is_last, 0, np.append(rate[1:], 0))
    return at, rate - later


def _from_here(count: I64, is_last: np.ndarray) -> I64:
    """Sums from each place to the last one of its owner."""
    total = np.cumsum(count)
    ends = np.flatnonzero(is_last)
    spans = np.diff(np.append(-1, ends))
    return np.repeat(total[ends], spans) - total + count
