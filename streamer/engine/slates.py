"""Slates: what one request showed a user, in order, and how its members are graded.

A slate is counted in the pane and segment of its earliest member. It is told again when a member
comes or a grade changes: taken back as it was, and put as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.chains import first_least, runs_of
from streamer.engine.clicked import CLICKED, CONVERTED, GRADE_SHIFT, Clicked
from streamer.engine.facts import Fact, RankedFacts, SlateFacts
from streamer.engine.impressions import Impressions, is_slate

_LAST = np.int64(2**31)
"""Where a member without a position stands."""
_COLUMNS = ("position", "event_ms", "offset", "index", "segment", "score", "probe")


@dataclass(slots=True)
class _Members:
    """Members of slates in the order shown. ``slate``: 0, 1, …; ``was`` and ``graded``: as
    ``filed``, without the outcome of conversions, which no metric of slates looks at."""

    slate: I64
    columns: dict[str, Any]
    was: I64
    graded: I64
    is_new: Bools

    def where(self, mask: Bools) -> _Members:
        columns = {name: column[mask] for name, column in self.columns.items()}
        was, graded, is_new = self.was[mask], self.graded[mask], self.is_new[mask]
        return _Members(self.slate[mask], columns, was, graded, is_new)


@dataclass(frozen=True, slots=True)
class _Change:
    """Rows from number ``first_new`` on are new; clicked rows ``ref``, ascending, have these
    outcomes, which are not in ``filed`` yet."""

    first_new: int
    ref: I64
    outcome: I64

    def outcomes(self, row: I64, filed: I64) -> I64:
        """Outcomes of clicked rows that were ``filed`` so."""
        if not len(self.ref):
            return filed
        at = np.minimum(np.searchsorted(self.ref, row), len(self.ref) - 1)
        return np.where(self.ref[at] == row, self.outcome[at], filed)


class Slates:
    """The slates of one partition, seen through its impressions.

    ``is_on``: whether anybody wants to know. ``keeps_members``: whether slates with feedback are
    graded when their impressions are gone already.
    """

    def __init__(
        self, impressions: Impressions, clicked: Clicked, is_on: bool, keeps_members: bool
    ) -> None:
        self.impressions, self.clicked = impressions, clicked
        self.is_on, self.keeps_members = is_on, is_on and keeps_members

    def tell(self, fresh: U64, first_new: int, ref: I64, outcome: I64) -> list[Fact]:
        """What changed: ``fresh`` slates have rows from number ``first_new`` on, and clicked rows
        ``ref`` (ascending) have these outcomes; ``filed`` still says what was told."""
        facts: list[Fact] = []
        if not self.is_on:
            return facts
        if len(fresh):
            fresh = np.unique(fresh)
            facts += self._counted(fresh, first_new)
        rows = self.clicked.rows
        changed = (rows["filed"][ref] ^ outcome) & ~CONVERTED != 0
        changed &= is_slate(rows["slate"][ref], rows["user"][ref])
        keys = np.union1d(rows["slate"][ref[changed]], self._ranked_before(fresh))
        if len(keys):
            facts += self._ranked(keys, _Change(first_new, ref, outcome))
        return facts

    # Counting ------------------------------------------------------------------------------------

    def _counted(self, fresh: U64, first_new: int) -> list[Fact]:
        """Slates that are new, or have a new earliest member."""
        groups = self.impressions.groups
        query, group = self.impressions.members(fresh)
        if not len(group):
            return []
        slate, order = _numbered(query, groups["opened_ms"][group], group)
        group = group[order]
        least_ms, segment = groups["least_ms"][group], groups["segment"][group].astype(np.int64)
        user = groups["user"][group]
        is_old = groups["first"][group] < first_new
        starts = runs_of(slate)
        after = first_least(least_ms, starts)
        if not is_old.any():
            return [SlateFacts(least_ms[after], segment[after], user[after], 1)]
        old = np.flatnonzero(is_old)
        before = np.full(len(starts), -1)
        old_starts = runs_of(slate[old])
        before[slate[old[old_starts]]] = old[first_least(least_ms[old], old_starts)]
        is_put = before != after
        taken = before[is_put & (before >= 0)]
        put = after[is_put]
        return [
            SlateFacts(least_ms[put], segment[put], user[put], 1),
            SlateFacts(least_ms[taken], segment[taken], user[taken], -1),
        ]

    # Ranking -------------------------------------------------------------------------------------

    def _ranked_before(self, fresh: U64) -> U64:
        """Those of the slates that were told with their members, or now have probes."""
        if not len(fresh):
            return fresh
        query, group = self.impressions.members(fresh)
        probed = query[self.impressions.groups["is_probed"][group]]
        query, row = self.clicked.of_slates(fresh)
        graded = query[self.clicked.rows["filed"][row] & ~CONVERTED != 0]
        found: U64 = fresh[np.union1d(probed, graded)]
        return found

    def _ranked(self, keys: U64, change: _Change) -> list[Fact]:
        members = self._members(keys, change)
        if not len(members.slate):
            return []
        is_moved = members.is_new | (members.was != members.graded)
        touched = np.zeros(int(members.slate[-1]) + 1, np.bool_)
        touched[members.slate[is_moved]] = True
        members = members.where(touched[members.slate])
        old = members.where(~members.is_new)
        facts = [_fact(old, old.was, -1), _fact(members, members.graded, 1)]
        return [_together(*facts)] if any(len(fact.start) for fact in facts) else []

    def _members(self, keys: U64, change: _Change) -> _Members:
        """All members of the slates of these keys."""
        impressions, clicked = self.impressions, self.clicked.rows
        query, group = impressions.members(keys)
        which, row = impressions.rows_of(group)
        query, ref = query[which], impressions.rows["clicked"][row].astype(np.int64)
        columns = {name: impressions.rows[name][row] for name in _COLUMNS}
        columns |= {name: impressions.groups[name][group[which]] for name in ("opened_ms", "user")}
        is_new = row + impressions.dropped_rows >= change.first_new
        if self.keeps_members:
            mine, kept = self.clicked.of_slates(keys)
            is_gone = ~np.isin(kept, ref)
            mine, kept = mine[is_gone], kept[is_gone]
            query, ref = np.concatenate([query, mine]), np.concatenate([ref, kept])
            columns = {n: np.concatenate([c, clicked[n][kept]]) for n, c in columns.items()}
            is_new = np.concatenate([is_new, np.zeros(len(kept), np.bool_)])
        columns["position"] = np.where(columns["position"] > 0, columns["position"], _LAST)
        slate, order = _numbered(
            query, columns["opened_ms"], *(columns[name] for name in _COLUMNS[:4])
        )
        held = ref >= 0
        was, graded = np.zeros(len(ref), np.int64), np.zeros(len(ref), np.int64)
        filed = clicked["filed"][ref[held]].astype(np.int64)
        was[held] = filed & ~CONVERTED
        graded[held] = change.outcomes(ref[held], filed) & ~CONVERTED
        columns = {name: column[order] for name, column in columns.items()}
        return _Members(slate, columns, was[order], graded[order], is_new[order])

    def keep(self, fresh: U64, ref: I64) -> None:
        """Keep the members of slates with feedback, whatever its gain, as long as conversions may
        grade them; ``fresh`` slates have new members, clicked rows ``ref`` new feedback."""
        if self.keeps_members:
            slate, user = self.clicked.rows["slate"][ref], self.clicked.rows["user"][ref]
            keys = np.union1d(fresh, slate[is_slate(slate, user)])
            query, _ = self.clicked.of_slates(keys)
            query, group = self.impressions.members(keys[np.unique(query)])
            which, row = self.impressions.rows_of(group)
            is_other = self.impressions.rows["clicked"][row] < 0
            if not self.clicked.admits(int(np.count_nonzero(is_other))):
                # They are graded while their impressions are here, and not any more after that.
                slates = self.impressions.groups["slate"][group[which[is_other]]]
                self.clicked.close(np.unique(slates), int(np.count_nonzero(is_other)))
                return
            self.clicked.of(self.impressions, row)


def _numbered(query: I64, opened_ms: I64, *then_by: I64) -> tuple[I64, I64]:
    """Numbers 0, 1, … of the slates (query, opened), and the order in which they stand."""
    order = np.lexsort((*then_by[::-1], opened_ms, query))
    query, opened_ms = query[order], opened_ms[order]
    is_start = np.zeros(len(order), np.int64)
    is_start[1:] = (query[1:] != query[:-1]) | (opened_ms[1:] != opened_ms[:-1])
    return np.cumsum(is_start), order


def _fact(members: _Members, filed: I64, sign: int) -> RankedFacts:
    """Those of the slates that have feedback or probes."""
    shows = (filed != 0) | (members.columns["probe"] > 0)
    slates = np.zeros(int(members.slate[-1]) + 1 if len(shows) else 0, np.bool_)
    slates[members.slate[shows]] = True
    chosen = slates[members.slate]
    slate, filed = members.slate[chosen], filed[chosen]
    columns = {name: column[chosen] for name, column in members.columns.items()}
    start = runs_of(slate)
    by_time = np.lexsort((columns["index"], columns["offset"], columns["event_ms"], slate))
    earliest = by_time[start]
    return RankedFacts(
        event_ms=columns["event_ms"][earliest],
        segment=columns["segment"][earliest].astype(np.int64),
        user=columns["user"][earliest],
        start=start,
        grade=filed >> GRADE_SHIFT,
        is_clicked=filed & CLICKED > 0,
        score=columns["score"],
        probe=columns["probe"].astype(np.int64),
        sign=np.full(len(start), sign),
    )


def _together(a: RankedFacts, b: RankedFacts) -> RankedFacts:
    columns = {
        name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in RankedFacts.__slots__
    }
    columns["start"][len(a.start) :] += len(a.grade)
    return RankedFacts(**columns)
