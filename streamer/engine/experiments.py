"""Experiments: arms compared by sums over users, which follow every event of a user.

Events add to the user's day; now and then ``file`` computes what the users that changed contribute
now and contributed when they were last filed, and adds the difference to each experiment's sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from streamer.batch import U64, Bools
from streamer.engine.facts import Fact
from streamer.engine.index import in_sample
from streamer.engine.labels import Label, Labels
from streamer.engine.segments import Segments
from streamer.engine.tracks import PerUser
from streamer.engine.trial_sums import Sums, Trial, add, contribute
from streamer.engine.user_days import Amounts, Days, UserDays
from streamer.experiment_settings import DAY_MS

_ABSORB_ROWS = 200_000
_COMPACT_ROWS = 1 << 18
_CHUNK_ROWS = 1 << 18
_FLAG_BITS = 20
_FLAG_MASK = np.uint64((1 << _FLAG_BITS) - 1)

Scope = tuple[int, int, int]
"""First day and end of what is wanted of an arm, and since when (ms) it is counted."""


def all_since(since: Mapping[str, int], scopes: Mapping[str, Scope]) -> dict[str, int]:
    """Component or arm → the stream time (ms) from which on it is counted; 0: always."""
    return {**since, **{name: since_ms for name, (_, _, since_ms) in scopes.items()}}


class UserFacts(Protocol):
    """What turns facts into amounts of users (the catalogue does)."""

    trials: tuple[Trial, ...]
    components: tuple[str, ...]

    def per_user(self, fact: Fact) -> Iterable[PerUser]: ...


class Experiments:
    """The experiments of one partition.

    ``since``: of each component the stream time (ms) from which on it is counted; 0: always.
    ``scopes``: of each arm (``dimension=value``) the days that are wanted, as first and end, and
    the same time.
    """

    def __init__(self, facts: UserFacts, limit: int, segments: Segments) -> None:
        self.facts, self.limit = facts, limit
        self.trials = facts.trials
        self.is_on = bool(self.trials)
        self.labels = Labels([trial.dimension for trial in self.trials], segments)
        self.since = dict.fromkeys(facts.components, 0)
        self.scopes: dict[str, Scope] = {}
        for trial in self.trials:
            first = trial.first_day
            for arm in trial.arms:
                name = f"{trial.dimension}={arm}"
                known = self.scopes.get(name, (first, trial.days.stop, 0))
                self.scopes[name] = (min(known[0], first), max(known[1], trial.days.stop), 0)
        self.days = UserDays(self._stored_names())
        self.sums: list[Sums] = [{} for _ in self.trials]
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
        first = min((first for first, _, _ in self.scopes.values()), default=0)
        end = max((end for _, end, _ in self.scopes.values()), default=first)
        self._wanted = range(first, end)

    def _stored_names(self) -> list[str]:
        """Sums begun at different times are told apart: what was dropped once does not return."""
        return [f"{name} since {ms}" for name, ms in self.since.items()]

    @property
    def nbytes(self) -> int:
        waiting = sum(a.user.nbytes + a.day.nbytes + a.amount.nbytes for a in self._touches)
        return self.days.nbytes + waiting

    @property
    def is_unfiled(self) -> bool:
        """Whether something changed that the sums do not show yet."""
        return self.is_stale or self._waiting > 0 or self.days.has_noted

    # Taking in -----------------------------------------------------------------------------------

    def tell(self, fact: Fact) -> None:
        """Take in what a fact means to users."""
        if not self.is_on:
            return
        for component, user, event_ms, segment, amount in self.facts.per_user(fact):
            day = event_ms // DAY_MS
            wanted = (day >= self._wanted.start) & (day < self._wanted.stop)
            if not wanted.all():
                user, day, segment = user[wanted], day[wanted], segment[wanted]
                amount = amount[wanted]
            if len(user):
                label = self.labels.of(segment)
                self._touches.append(Amounts(component, user, day, label, amount))
                self._waiting += len(user)

    def absorb(self, is_due: bool = True) -> None:
        """Bring what was taken in into the table (if it is much, or ``is_due``)."""
        if self._waiting and (is_due or self._waiting >= _ABSORB_ROWS):
            touches, self._touches, self._waiting = self._touches, [], 0
            self.days.add([amounts.where(self._in_sample(amounts.user)) for amounts in touches])

    def fold(self) -> None:
        """Segments were folded together: values may be no arm any more."""
        self.labels.fold()
        self.is_stale = self.is_on

    def _in_sample(self, user: U64) -> Bools:
        return in_sample(user, self.sample_bits)

    # Filing --------------------------------------------------------------------------------------

    def file(self) -> None:
        """Bring the sums up to date."""
        if not self.is_unfiled:
            return
        self.absorb()
        self.shrink()
        row, values = self.days.take_noted()
        user = self.days.rows["user"]
        flags = np.zeros(1 << _FLAG_BITS, np.bool_)
        flags[user[row] & _FLAG_MASK] = True
        mine = np.flatnonzero(flags[user & _FLAG_MASK])
        if self.is_stale or 2 * len(mine) > len(user):
            self.sums = [{} for _ in self.trials]
            self._contribute(self.days.days(np.arange(len(user))), 1)
            self._changed.update(range(len(self.trials)))
            self.is_stale = self.must_file = False
            return
        now = self.days.days(mine)
        before = Days(now.user, now.day, now.label, [column.copy() for column in now.amounts])
        at = np.searchsorted(mine, row)
        for column, old in zip(before.amounts, values, strict=True):
            column[at] = old
        self._contribute(before, -1)
        self._contribute(now, 1)

    def _contribute(self, rows: Days, sign: int) -> None:
        arms = [self.labels.index_of(t.dimension, t.arms) for t in self.trials]
        for part in _chunks(rows):
            for i, (trial, arm_of) in enumerate(zip(self.trials, arms, strict=True)):
                change: Sums = {}
                contribute(trial, part, arm_of, change, sign)
                for key, value in change.items():
                    add(self.sums[i], key, value)
                if change:
                    self._changed.add(i)

    def of_range(self, trial: Trial, within: range) -> Sums:
        """The sums of an experiment over some of its days, from the rows."""
        sums: Sums = {}
        arm_of = self.labels.index_of(trial.dimension, trial.arms)
        for part in _chunks(self.days.days(np.arange(len(self.days)))):
            contribute(trial, part, arm_of, sums, within=within)
        return sums

    def shrink(self) -> bool:
        """Beyond the bound keep half of the users. Returns whether users were left out: all is to
        be filed anew then, at once."""
        if len(self.days) <= self._compact_at:
            return False
        while len(self.days) > self.limit:
            self.sample_bits += 1
            self.days.keep(self._in_sample(self.days.rows["user"]))
            self.is_stale = self.must_file = True
        self._compact_at = min(2 * len(self.days) + _COMPACT_ROWS, self.limit)
        return self.must_file

    # Stored form ---------------------------------------------------------------------------------

    @property
    def oldest_day(self) -> int:
        """The first day that an experiment wants to know of; without one none is."""
        return self._wanted.start if self.is_on else 1 << 31

    def seal(self) -> None:
        """Take in what waits; changes from now on belong to another epoch."""
        self.absorb()
        self.days.seal()

    def take_changed(self) -> set[int]:
        """The experiments whose sums changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    @property
    def counted_since_ms(self) -> dict[str, int]:
        """Component or arm → the stream time from which on it is counted; 0: always."""
        return all_since(self.since, self.scopes)

    def restore(
        self,
        labels: Sequence[Label],
        since: Mapping[str, int],
        scopes: Mapping[str, Scope],
        stream_ms: int,
    ) -> None:
        """Before rows are loaded: what is stored beside them. Components that were not counted
        before are from now on."""
        if not self.is_on:
            self.sample_bits = 0
        self.labels.load(labels)
        for name in self.since:
            self.since[name] = since.get(name, stream_ms)
        for name, (first, end, _) in self.scopes.items():
            known = scopes.get(name)
            is_whole = known is not None and first >= known[0]
            if known is not None and end > known[1]:  # what came after its end was not counted
                is_whole = is_whole and stream_ms // DAY_MS < known[1]
            self.scopes[name] = (first, end, known[2] if known and is_whole else stream_ms)
        self.days = UserDays(self._stored_names())
        self.is_stale = self.must_file = self.is_on

    def load(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        """Take over stored rows. The sums are computed from them when they are filed first."""
        day, user = columns["day"], columns["user"]
        wanted = (day >= self._wanted.start) & (day < self._wanted.stop) & self._in_sample(user)
        self.days.load({name: column[wanted] for name, column in columns.items()})


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
