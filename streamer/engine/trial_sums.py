"""Sums over users from which arms are compared: what each user contributes to an experiment.

Let C(d) be a user's sums from the first day to day d. Under day d stand the differences of C, of
its squares and of its products between d and his day before, so that the sum of the days up to d
is that over users of C(d), C(d)², …: a square of what was clicked on two days, not two squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamer import limits
from streamer.batch import I64, Bools
from streamer.engine import integers
from streamer.engine.chains import runs_of
from streamer.engine.integers import Columns
from streamer.engine.user_days import Days

USERS, MIXED = 0, 1
"""Statistics: users of an arm; of no arm (number 0): users that were seen in several."""
SHOWN = 0
"""The component that counts impressions: with one of them a user is in the experiment."""
_FIRST_MEASURE = 2
_LIMB_BITS = 20
_SAFE = 1 << 62


@dataclass(frozen=True)
class Measure:
    """A ratio of two components; ``below`` None: of one to the number of users. ``high``: the high
    limb of what is above, if it has one."""

    name: str
    above: int
    below: int | None
    high: int | None = None

    def above_of(self, parts: Sequence[I64]) -> I64:
        """The numerators of rows whose components these are: Python's integers where they could
        pass 64 bits."""
        low = parts[self.above]
        if self.high is None or not (high := parts[self.high]).any():
            return low
        if int(np.abs(high).max()) < _SAFE >> limits.LIMB_BITS + 1:
            return low + (high << limits.LIMB_BITS)
        return np.array(integers.joined(high, low), object)

    def below_of(self, parts: Sequence[I64]) -> I64:
        """The denominators."""
        return np.ones_like(parts[SHOWN]) if self.below is None else parts[self.below]


@dataclass(frozen=True)
class Trial:
    """An experiment as the engine sees it: days since 1970-01-01, its arms (the control first),
    its measures. Without ``covariates`` (days) there are none."""

    name: str
    dimension: str
    arms: tuple[str, ...]
    days: range
    covariates: range
    measures: tuple[Measure, ...]

    @property
    def first_day(self) -> int:
        """The first day that is wanted: of the covariates, or of the experiment."""
        return min(self.covariates.start, self.days.start) if self.covariates else self.days.start

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """Names of the values that a measure has of each user: numerator, denominator, and the
        same of the days before."""
        return ("x", "y", "u", "v") if len(self.covariates) else ("x", "y")

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """Names of the sums of a measure: of values, then of products of two."""
        names = self.vectors
        pairs = (a + b for i, a in enumerate(names) for b in names[i:])
        return (*names, *pairs)

    @cached_property
    def shape(self) -> str:
        """What keys of sums depend on: sums are stored under it, so that a reader with other
        settings does not take them for its own."""
        days, before = self.days, self.covariates
        spans = (days.start, days.stop, before.start, before.stop)
        return repr((self.name, self.dimension, self.arms, spans, [m.name for m in self.measures]))

    @property
    def stats(self) -> int:
        """How many statistics an arm has on a day."""
        return _FIRST_MEASURE + len(self.measures) * len(self.moments)

    def stat(self, measure: int, moment: str) -> int:
        """The number of a statistic."""
        return _FIRST_MEASURE + measure * len(self.moments) + self.moments.index(moment)

    def key(self, arm: int, day: int, stat: int) -> int:
        """One integer of arm (0: none, 1: the control, …), day and statistic."""
        return (arm * len(self.days) + day - self.days.start) * self.stats + stat


Sums = dict[int, int]
"""Keys (see ``Trial.key``) and exact sums, none of them 0."""


def add(sums: Sums, key: int, value: int) -> None:
    """Add to one sum; what becomes 0 is left out."""
    total = sums.get(key, 0) + value
    if total:
        sums[key] = total
    else:
        sums.pop(key, None)


def products(a: I64, b: I64, starts: I64) -> list[int]:
    """Exact sums of a·b of each run, however large.

    >>> products(np.array([1 << 40, 3]), np.array([1 << 41, -1]), np.array([0])) == [2**81 - 3]
    True
    """
    most_a, most_b = int(np.abs(a).max()), int(np.abs(b).max())
    if most_a * most_b * len(a) < _SAFE:
        return np.add.reduceat(a * b, starts).tolist()  # type: ignore[no-any-return]
    if most_a < most_b:
        a, b = b, a
    high = products(a >> _LIMB_BITS, b, starts)
    low = products(a & ((1 << _LIMB_BITS) - 1), b, starts)
    return [(h << _LIMB_BITS) + x for h, x in zip(high, low, strict=True)]


@dataclass(frozen=True)
class _Cumulated:
    """Rows of users of one arm, by (user, day): sums up to the day, and up to his day before; with
    neither where he was not in yet."""

    arm: I64
    day: I64
    is_in: Bools
    was_in: Bools
    up_to: list[I64]
    before: list[I64]
    covariate: list[I64]


def contribute(
    trial: Trial, rows: Days, arm_of: I64, sums: Sums, sign: int = 1, within: range | None = None
) -> None:
    """Add what users contribute. ``rows``: all of theirs, in the order of (user, day); ``arm_of``:
    the arm of each label, 0 for none; ``within``: the only days that count, except that users seen
    in several arms on any day are left out."""
    arm = arm_of[rows.label]
    in_days = (rows.day >= trial.days.start) & (rows.day < trial.days.stop)
    member = _members(trial, rows.where(in_days), arm[in_days], sums, sign)
    if member is None:
        return
    chosen, arm = member
    if within is not None:
        inside = (chosen.day >= within.start) & (chosen.day < within.stop)
        chosen, arm = chosen.where(inside), arm[inside]
        if not len(chosen):
            return
    told = _cumulated(trial, rows, chosen, arm)
    _add(trial, told, sums, sign)


def _members(trial: Trial, rows: Days, arm: I64, sums: Sums, sign: int) -> tuple[Days, I64] | None:
    """The rows of users of one arm under that arm, and it; users of several are counted."""
    is_shown = (rows.amounts[SHOWN] > 0) & (arm > 0)
    if not is_shown.any():
        return None
    starts = runs_of(rows.user)
    user = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    last = np.maximum.reduceat(np.where(is_shown, arm, 0), starts)
    first = np.minimum.reduceat(np.where(is_shown, arm, len(trial.arms) + 1), starts)
    is_mixed = first < last
    if is_mixed.any():
        at = np.flatnonzero(is_shown & is_mixed[user])
        for day in rows.day[at[runs_of(user[at])]].tolist():
            add(sums, trial.key(0, day, MIXED), sign)
    mine = (arm > 0) & (arm == last[user]) & ~is_mixed[user]
    return (rows.where(mine), arm[mine]) if mine.any() else None


def _cumulated(trial: Trial, every: Days, rows: Days, arm: I64) -> _Cumulated:
    place = _places(rows.user, rows.day)
    starts = np.flatnonzero(place)
    rows_of_day = [np.add.reduceat(column, starts) for column in rows.amounts]
    user, day, arm = rows.user[starts], rows.day[starts], arm[starts]
    heads = runs_of(user)
    spans = np.diff(np.append(heads, len(user)))
    now, before = [], []
    for amount in rows_of_day:
        total = np.cumsum(amount)
        total -= np.repeat((total - amount)[heads], spans)
        now.append(total)
        before.append(total - amount)
    is_in, was_in = now[SHOWN] > 0, before[SHOWN] > 0
    covariate: list[I64] = []
    if len(trial.covariates):
        covariate = [np.repeat(c, spans) for c in _covariates(trial, every, user[heads])]
    return _Cumulated(arm, day, is_in, was_in, now, before, covariate)


def _places(user: I64 | np.ndarray, day: I64) -> Bools:
    """Where a new (user, day) begins."""
    begins = np.ones(len(user), np.bool_)
    begins[1:] = (user[1:] != user[:-1]) | (day[1:] != day[:-1])
    return begins


def _covariates(trial: Trial, rows: Days, user: np.ndarray) -> list[I64]:
    """Sums of the days before, of users in the order of the rows."""
    before = (rows.day >= trial.covariates.start) & (rows.day < trial.covariates.stop)
    rows = rows.where(before)
    heads = runs_of(rows.user)
    by_user = np.argsort(user)
    at = np.searchsorted(user[by_user], rows.user[heads])
    at = np.minimum(at, len(user) - 1)
    held = user[by_user][at] == rows.user[heads] if len(heads) else np.zeros(0, np.bool_)
    result = []
    for amount in rows.amounts:
        column = np.zeros(len(user), np.int64)
        if len(heads):
            column[by_user[at[held]]] = np.add.reduceat(amount, heads)[held]
        result.append(column)
    return result


def _add(trial: Trial, told: _Cumulated, sums: Sums, sign: int) -> None:
    """File the differences between now and before under (arm, day)."""
    code = told.arm * len(trial.days) + told.day - trial.days.start
    order = np.argsort(code, kind="stable")
    starts = runs_of(code[order])
    base = (code[order][starts] * trial.stats).tolist()
    is_in, was_in = told.is_in[order], told.was_in[order]

    def file(stat: int, now: list[int], before: list[int]) -> None:
        for key, a, b in zip(base, now, before, strict=True):
            if a != b:
                add(sums, key + stat, sign * (a - b))

    every = np.ones(len(order), np.int64)
    ones = [is_in.astype(np.int64), was_in.astype(np.int64)]
    users = [np.add.reduceat(one, starts).tolist() for one in ones]
    file(USERS, users[0], users[1])
    for number, measure in enumerate(trial.measures):
        now, before = (
            [
                value[order] * one
                for parts in (amounts, told.covariate)[: len(trial.vectors) // 2]
                for value in (measure.above_of(parts), measure.below_of(parts))
            ]
            for amounts, one in zip((told.up_to, told.before), ones, strict=True)
        )
        stat = trial.stat(number, "x")
        for a, b in zip(now, before, strict=True):
            file(stat, products(a, every, starts), products(b, every, starts))
            stat += 1
        for i in range(len(now)):
            for j in range(i, len(now)):
                file(stat, products(now[i], now[j], starts), products(before[i], before[j], starts))
                stat += 1


def cumulated(trial: Trial, parts: Sequence[Columns], day: int) -> list[dict[str, int]]:
    """For no arm (users seen in several), and then for each arm, the sums up to a day: ``users``,
    ``mixed``, and names of measure and moment with a space between. ``parts``: sums as columns."""
    names = ["users", "mixed"]
    names += [f"{measure.name} {moment}" for measure in trial.measures for moment in trial.moments]
    last, chosen = day - trial.days.start, []
    for found in parts:
        place, stat = np.divmod(found["key"], trial.stats)
        arm, at = np.divmod(place, len(trial.days))
        rows = np.flatnonzero(at <= last)
        chosen.append((found, rows, (arm * trial.stats + stat)[rows]))
    total = integers.summed(chosen, (len(trial.arms) + 1) * trial.stats)
    starts = range(0, len(total), trial.stats)
    return [dict(zip(names, total[i : i + trial.stats], strict=True)) for i in starts]
