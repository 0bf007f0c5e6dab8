"""Experiments: arms compared by sums over users, which follow every event of a user.

Events add to the user's day, or where it is open whether they count (``exposures``) to their time;
now and then ``file`` computes what the users that changed contribute now and contributed when they
were last filed, and adds the difference to each experiment's sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.exposures import Exposure, Exposures, code_of, part_of, wanted_days
from streamer.engine.facts import Fact
from streamer.engine.index import in_sample
from streamer.engine.labels import Label, Labels
from streamer.engine.noted import Column
from streamer.engine.segments import Segments
from streamer.engine.tracks import PerUser
from streamer.engine.trial_sums import SHOWN, Sums, Trial, add, contribute
from streamer.engine.user_days import Amounts, Days, UserDays, joined
from streamer.experiment_settings import DAY_MS

_ABSORB_ROWS = 200_000
_COMPACT_ROWS = 1 << 18
_CHUNK_ROWS = 1 << 18
_SETTLE_MS = 60_000
_FLAG_BITS = 20
_FLAG_MASK = np.uint64((1 << _FLAG_BITS) - 1)

Scope = tuple[int, int, int, int]
"""First day and end of what is wanted of an exposure, since when (ms) all of it is counted, and
when it was first counted (rows from before an interruption are others)."""


def all_since(since: Mapping[str, int], scopes: Mapping[str, Scope]) -> dict[str, int]:
    """Component or exposure → the stream time (ms) from which on it is counted; 0: always."""
    return {**since, **{name: since_ms for name, (_, _, since_ms, _) in scopes.items()}}


class UserFacts(Protocol):
    """What turns facts into amounts of users (the catalogue does)."""

    trials: tuple[Trial, ...]
    components: tuple[str, ...]

    def per_user(self, fact: Fact) -> Iterable[PerUser]: ...


class Experiments:
    """The experiments of one partition.

    ``since``: of each component the stream time (ms) from which on it is counted; 0: always.
    ``scopes``: of each exposure the days that are wanted, as first and end, and the same time.
    """

    def __init__(self, facts: UserFacts, limit: int, segments: Segments) -> None:
        self.facts, self.limit = facts, limit
        self.trials = facts.trials
        self.is_on = bool(self.trials)
        self.labels = Labels([trial.dimension for trial in self.trials], segments)
        self.wanted = wanted_days(self.trials)
        self.since = dict.fromkeys(facts.components, 0)
        self.scopes: dict[str, Scope] = {
            e.name: (d.start, d.stop, 0, 0) for e, d in self.wanted.items()
        }
        days = self.wanted.values()
        self._every_day = range(
            min((d.start for d in days), default=0), max((d.stop for d in days), default=0)
        )
        self._begin()
        self.sums: list[Sums] = [{} for _ in self.trials]
        self.final_ms = 0
        """No impression before this time could come any more when rows were last settled."""
        self.sample_bits = 0
        """Users whose hash begins with so many zeros are kept: all at 0."""
        self.must_file = False
        """Whether the sums are not those of the rows, which has to be made good at once."""
        self.is_stale = False
        """Whether all is to be filed anew."""
        self._touches: list[Amounts] = []
        self._waiting = 0
        self._changed: set[int] = set()
        self._compact_at = min(_COMPACT_ROWS, limit)

    def _begin(self) -> None:
        """Empty tables. Sums begun at different times are told apart: what was dropped once does
        not return."""
        names = [f"{name} since {since_ms}" for name, since_ms in self.since.items()]
        self.codes = {e: e.code(self.scopes[e.name][3]) for e in self.wanted}
        self.days, self.pending = UserDays(names), UserDays(names)
        self.exposures = Exposures()

    @property
    def _tables(self) -> tuple[UserDays, UserDays, Exposures]:
        return self.days, self.pending, self.exposures

    @property
    def nbytes(self) -> int:
        waiting = sum(a.user.nbytes + a.at.nbytes + a.amount.nbytes for a in self._touches)
        return sum(table.nbytes for table in self._tables) + waiting

    @property
    def is_unfiled(self) -> bool:
        """Whether something changed that the sums do not show yet."""
        return self.is_stale or self._waiting > 0 or any(t.has_noted for t in self._tables)

    # Taking in -----------------------------------------------------------------------------------

    def tell(self, fact: Fact) -> None:
        """Take in what a fact means to users."""
        if not self.is_on:
            return
        for component, user, event_ms, segment, amount in self.facts.per_user(fact):
            wanted = _within(event_ms // DAY_MS, self._every_day)
            if not wanted.all():
                user, event_ms, segment = user[wanted], event_ms[wanted], segment[wanted]
                amount = amount[wanted]
            if len(user):
                label, part = self.labels.of(segment), np.zeros(len(user), np.int64)
                self._touches.append(Amounts(component, user, event_ms, label, part, amount))
                self._waiting += len(user)

    def absorb(self, is_due: bool = True) -> None:
        """Bring what was taken in into the tables (if it is much, or ``is_due``)."""
        if self._waiting and (is_due or self._waiting >= _ABSORB_ROWS):
            touches, self._touches, self._waiting = self._touches, [], 0
            touches = [t.where(self._in_sample(t.user)) for t in touches]
            for exposure, wanted in self.wanted.items():
                inside = [t.where(_within(t.at // DAY_MS, wanted)) for t in touches]
                if not exposure.is_attributed:
                    self._expose(exposure, inside)
                self._take(exposure, inside)

    def _expose(self, exposure: Exposure, touches: Iterable[Amounts]) -> None:
        arm = self.labels.index_of(exposure.dimension, exposure.arms)
        for touch in touches:
            if touch.component == SHOWN:
                is_shown = (arm[touch.label] > 0) & (touch.at >= exposure.first_day * DAY_MS)
                shown = touch.where(is_shown & (touch.amount > 0))
                self.exposures.see(shown.user, self.codes[exposure], shown.at)

    def _take(self, exposure: Exposure, touches: Iterable[Amounts]) -> None:
        """Add to days where it is known for good whether it counts, else to times."""
        known, open_ = [], []
        final_ms, code = max(self.final_ms, exposure.first_day * DAY_MS), self.codes[exposure]
        for touch in touches:
            is_exposed = np.full(len(touch.user), exposure.is_attributed)
            if not exposure.is_attributed:
                codes = np.full(len(touch.user), code)
                is_exposed = touch.at >= self.exposures.of(touch.user, codes)
            is_known = is_exposed | (touch.at < final_ms)
            taken = replace(touch, part=part_of(code, is_exposed))
            known.append(taken.where(is_known).by_day())
            open_.append(taken.where(~is_known))
        self.days.add(known)
        self.pending.add(open_)

    def _settle(self, final_ms: int) -> None:
        """Bring to days what is known for good now: no impression before this time (ms) can come
        any more. Stored rows by time leave by the same clock. The sums stay as they are."""
        self.final_ms = final_ms
        rows = self.pending.all_rows()
        is_final = rows.day < final_ms
        if is_final.any():
            rows = self._dated(rows.where(is_final))
            columns = (rows.user, rows.day, rows.label, rows.part)
            self.days.add(
                [
                    Amounts(i, *columns, amount).where(amount != 0)
                    for i, amount in enumerate(rows.amounts)
                ]
            )
            self.days.take_noted()
            self.pending.keep(~is_final)

    def fold(self) -> None:
        """Segments were folded together: values may be no arm any more."""
        self.labels.fold()
        self.is_stale = self.is_on

    def _in_sample(self, user: U64) -> Bools:
        return in_sample(user, self.sample_bits)

    # Filing --------------------------------------------------------------------------------------

    def file(self, final_ms: int = 0) -> None:
        """Bring the sums up to date; ``final_ms``: no impression before it can come any more."""
        if self.is_unfiled:
            self.absorb()
            self.shrink()
            self._file()
        if final_ms >= self.final_ms + _SETTLE_MS:
            self._settle(final_ms)

    def _file(self) -> None:
        noted = [table.take_noted() for table in self._tables]
        flags = np.zeros(1 << _FLAG_BITS, np.bool_)
        for table, (row, _) in zip(self._tables, noted, strict=True):
            flags[table.rows["user"][row] & _FLAG_MASK] = True
        mine = [np.flatnonzero(flags[t.rows["user"] & _FLAG_MASK]) for t in self._tables]
        if self.is_stale or 2 * len(mine[0]) > len(self.days):
            self.sums = [{} for _ in self.trials]
            self._contribute(self.rows(), 1)
            self._changed.update(range(len(self.trials)))
            self.is_stale = self.must_file = False
            return
        days, pending = self.days.days(mine[0]), self.pending.days(mine[1])
        now = joined(days, self._dated(pending))
        days, pending = (
            _as_noted(rows, np.searchsorted(at, row), values)
            for rows, at, (row, values) in zip((days, pending), mine, noted[:2], strict=False)
        )
        with self.exposures.as_noted(*noted[2]):
            before = joined(days, self._dated(pending))
        self._contribute(before, -1)
        self._contribute(now, 1)

    def rows(self) -> Days:
        """What all users did, by day."""
        return joined(self.days.all_rows(), self._dated(self.pending.all_rows()))

    def _dated(self, pending: Days) -> Days:
        """Rows by time under their days, as things are known now."""
        is_exposed = pending.day >= self.exposures.of(pending.user, code_of(pending.part))
        return replace(pending, day=pending.day // DAY_MS, part=pending.part + is_exposed)

    def _contribute(self, rows: Days, sign: int) -> None:
        arms = [self.labels.index_of(t.dimension, t.arms) for t in self.trials]
        for chunk in _chunks(rows):
            code = code_of(chunk.part)
            for i, (trial, arm_of) in enumerate(zip(self.trials, arms, strict=True)):
                change: Sums = {}
                its = chunk.where(code == self.codes[trial.exposure])
                contribute(trial, its, arm_of, change, sign)
                for key, value in change.items():
                    add(self.sums[i], key, value)
                if change:
                    self._changed.add(i)

    def of_range(self, trial: Trial, within: range) -> Sums:
        """The sums of an experiment over some of its days, from the rows."""
        sums: Sums = {}
        arm_of = self.labels.index_of(trial.dimension, trial.arms)
        for chunk in _chunks(self.rows()):
            its = chunk.where(code_of(chunk.part) == self.codes[trial.exposure])
            contribute(trial, its, arm_of, sums, within=within)
        return sums

    def shrink(self) -> bool:
        """Beyond the bound keep half of the users. Returns whether users were left out: all is to
        be filed anew then, at once."""
        if self._held <= self._compact_at:
            return False
        while self._held > self.limit:
            self.keep_sample(self.sample_bits + 1)
            self.is_stale = self.must_file = True
        self._compact_at = min(2 * self._held + _COMPACT_ROWS, self.limit)
        return self.must_file

    def keep_sample(self, bits: int) -> None:
        """Keep the users whose hash begins with so many zeros."""
        self.sample_bits = bits
        for table in self._tables:
            table.keep(self._in_sample(table.rows["user"]))

    @property
    def _held(self) -> int:
        return max(len(self.days), len(self.pending))

    # Stored form ---------------------------------------------------------------------------------

    @property
    def oldest_day(self) -> int:
        """The first day that an experiment wants to know of; without one none is."""
        return min((first for first, *_ in self.scopes.values()), default=1 << 31)

    def seal(self) -> None:
        """Take in what waits; changes from now on belong to another epoch."""
        self.absorb()
        for table in self._tables:
            table.seal()

    def take_changed(self) -> set[int]:
        """The experiments whose sums changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    @property
    def counted_since_ms(self) -> dict[str, int]:
        """Component or exposure → the stream time from which on it is counted; 0: always."""
        return all_since(self.since, self.scopes)

    def restore(
        self,
        labels: Sequence[Label],
        since: Mapping[str, int],
        scopes: Mapping[str, Scope],
        stream_ms: int,
        final_ms: int,
    ) -> None:
        """Before rows are loaded: what is stored beside them. What was not counted before is from
        now on."""
        if not self.is_on:
            self.sample_bits = 0
        self.labels.load(labels)
        for name in self.since:
            self.since[name] = since.get(name, stream_ms)
        for name, (first, end, *_) in self.scopes.items():
            known = scopes.get(name)
            if known is None:
                self.scopes[name] = (first, end, stream_ms, stream_ms)
                continue
            is_whole = first >= known[0]
            if end > known[1]:  # what came after its end was not counted
                is_whole = is_whole and stream_ms // DAY_MS < known[1]
            self.scopes[name] = (first, end, known[2] if is_whole else stream_ms, known[3])
        self._begin()
        self.final_ms = final_ms
        self.is_stale = self.must_file = self.is_on

    def load_days(self, columns: dict[str, Column]) -> None:
        """Take over stored rows. The sums are computed from them when they are filed first."""
        self._load(self.days, columns, columns["at"], code_of(columns["part"]))

    def load_pending(self, columns: dict[str, Column]) -> None:
        """The same of rows by time, those that were not settled."""
        is_open = columns["at"] >= self.final_ms
        columns = {name: column[is_open] for name, column in columns.items()}
        self._load(self.pending, columns, columns["at"] // DAY_MS, code_of(columns["part"]))

    def load_exposures(self, columns: dict[str, Column]) -> None:
        """The same of first exposures."""
        self._load(self.exposures, columns, columns["first_ms"] // DAY_MS, columns["code"])

    def _load(
        self, table: UserDays | Exposures, columns: dict[str, Column], day: I64, code: I64
    ) -> None:
        wanted = np.zeros(len(day), np.bool_)
        for exposure, days in self.wanted.items():
            wanted |= (code == self.codes[exposure]) & _within(day, days)
        wanted &= self._in_sample(columns["user"])
        table.load({name: column[wanted] for name, column in columns.items()})


def _as_noted(rows: Days, place: I64, values: Sequence[Column]) -> Days:
    """Copies of rows, where some are as they were when their values were noted."""
    amounts = [column.copy() for column in rows.amounts]
    for column, old in zip(amounts, values, strict=True):
        column[place] = old
    return replace(rows, amounts=amounts)


def _within(day: I64, wanted: range) -> Bools:
    return (day >= wanted.start) & (day < wanted.stop)


def _chunks(rows: Days) -> Iterator[Days]:
    """Rows in the order of (user, day), in parts that hold whole users."""
    order = np.lexsort((rows.day, rows.user))
    user = rows.user[order]
    start = 0
    while start < len(user):
        stop = min(start + _CHUNK_ROWS, len(user))
        if stop < len(user):
            stop = int(np.searchsorted(user, user[stop - 1], "right"))
        yield rows.where(order[start:stop])
        start = stop
