"""Sums over users from which arms are compared: what each user contributes to an experiment.

Let C(d) be a user's sums from the first day to day d. Under day d stand the differences of C, of
its squares and of its products between d and his day before, so that the sum of the days up to d
is that over users of C(d), C(d)², …: a square of what was clicked on two days, not two squares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from streamer import limits
from streamer.batch import I64, Bools
from streamer.engine import integers
from streamer.engine.caps import EDGES, Cap, Quantile, bucket_of, buckets_of, folded
from streamer.engine.chains import runs_of
from streamer.engine.exposures import Exposure, is_exposed
from streamer.engine.integers import Columns
from streamer.engine.user_days import Days

USERS, MIXED, EARLY, UNEXPOSED = 0, 1, 2, 3
"""Statistics: users of an arm; of no arm (number 0): users that were seen in several, and outcomes
before the first exposure of their user and of users without one."""
SHOWN, OUTCOMES = 0, 1
"""The components that count impressions, with one of which a user is in the experiment, and
feedback, conversions and viewings (if there is an experiment that counts by exposure)."""
_COUNTS = ("users", "mixed", "early", "unexposed")
_FIRST_MEASURE = len(_COUNTS)
_LIMB_BITS = 20
_SAFE = 1 << 62


@dataclass(frozen=True)
class Measure:
    """A ratio of two components; ``below`` None: of one to the number of users. ``high``: the high
    limb of what is above, if it has one. ``cap``: what is above counts up to it, for each user."""

    name: str
    above: int
    below: int | None
    high: int | None = None
    cap: Cap = None

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

    @property
    def buckets(self) -> int:
        """How many buckets of users' numerators its sums are kept by."""
        return buckets_of(self.cap)

    def capped(self, above: I64, stat: I64, moments: int) -> tuple[I64, I64]:
        """Numerators up to the cap, and the first statistic of each."""
        if isinstance(self.cap, Quantile):
            return above, stat + moments * bucket_of(above)
        return (above if self.cap is None else np.minimum(above, self.cap)), stat


@dataclass(frozen=True)
class Trial:
    """An experiment as the engine sees it: days since 1970-01-01, its arms (the control first),
    its measures. Without ``covariates`` (days) there are none. ``exposure``: from when on all that
    a user does counts towards the arm, or that events count towards the arm that is theirs."""

    name: str
    dimension: str
    arms: tuple[str, ...]
    days: range
    covariates: range
    measures: tuple[Measure, ...]
    exposure: Exposure

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
        """Names of the sums of a measure: of values, of products of two, and ``nz``, the users
        whose numerator is not 0."""
        names = self.vectors
        pairs = (a + b for i, a in enumerate(names) for b in names[i:])
        return (*names, *pairs, "nz")

    @cached_property
    def shape(self) -> str:
        """What keys of sums depend on: sums are stored under it, so that a reader with other
        settings does not take them for its own."""
        days, before = self.days, self.covariates
        spans = (days.start, days.stop, before.start, before.stop)
        measures = [(m.name, m.cap) for m in self.measures]
        return repr((self.name, self.dimension, self.arms, spans, measures, self.exposure.name))

    @cached_property
    def firsts(self) -> list[int]:
        """The first statistic of each measure; those with a quantile have as many again for each
        bucket of values."""
        firsts, first = [], _FIRST_MEASURE
        for measure in self.measures:
            firsts.append(first)
            first += len(self.moments) * measure.buckets
        return [*firsts, first]

    @property
    def stats(self) -> int:
        """How many statistics an arm has on a day."""
        return self.firsts[-1]

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
    """Add what users contribute. ``rows``: all of theirs under the trial's exposure, in the order
    of (user, day); ``arm_of``: the arm of each label, 0 for none; ``within``: the only days that
    count, except that who was exposed before is in, and who was in several arms on any day is not.
    """
    arm = arm_of[rows.label]
    in_days = (rows.day >= trial.days.start) & (rows.day < trial.days.stop)
    within = trial.days if within is None else within
    member = _members(trial, rows.where(in_days), arm[in_days], sums, sign, within)
    if member is None:
        return
    chosen, arm = member
    inside = chosen.day < within.stop
    if trial.exposure.is_attributed:
        inside &= chosen.day >= within.start
    chosen, arm = _from(within.start, chosen.where(inside)), arm[inside]
    if len(chosen):
        _add(trial, _cumulated(trial, rows, chosen, arm), sums, sign)


def _from(day: int, rows: Days) -> Days:
    """What was before a day is nothing on it: all that is left is that the user was exposed."""
    is_early = rows.day < day
    if not is_early.any():
        return rows
    amounts = [np.where(is_early, 0, amount) for amount in rows.amounts]
    return replace(rows, day=np.maximum(rows.day, day), amounts=amounts)


def _members(
    trial: Trial, rows: Days, arm: I64, sums: Sums, sign: int, within: range
) -> tuple[Days, I64] | None:
    """The rows that count of users of one arm, and it; users of several, and outcomes that count to
    no arm, are counted."""
    if not len(rows):
        return None
    is_shown = (rows.amounts[SHOWN] > 0) & (arm > 0)
    starts = runs_of(rows.user)
    user = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    last = np.maximum.reduceat(np.where(is_shown, arm, 0), starts)
    first = np.minimum.reduceat(np.where(is_shown, arm, len(trial.arms) + 1), starts)
    is_mixed = first < last
    if is_mixed.any():
        at = np.flatnonzero(is_shown & is_mixed[user])
        for day in rows.day[at[runs_of(user[at])]].tolist():
            add(sums, trial.key(0, day, MIXED), sign)
    if trial.exposure.is_attributed:
        mine = (arm > 0) & (arm == last[user]) & ~is_mixed[user]
        return (rows.where(mine), arm[mine]) if mine.any() else None
    counts = is_exposed(rows.part) & (last > 0)[user]
    outside = ~is_mixed[user] & ~counts
    outside &= (rows.day >= within.start) & (rows.day < within.stop)
    _outside(trial, rows.where(outside), last[user][outside], sums, sign)
    mine = counts & ~is_mixed[user]
    return (rows.where(mine), last[user][mine]) if mine.any() else None


def _outside(trial: Trial, rows: Days, arm: I64, sums: Sums, sign: int) -> None:
    """Count the outcomes of rows that count towards no arm, of users of these arms (0: of none)."""
    outcomes = rows.amounts[OUTCOMES]
    at = np.flatnonzero(outcomes)
    for day, of_arm, number in zip(
        rows.day[at].tolist(), arm[at].tolist(), outcomes[at].tolist(), strict=True
    ):
        add(sums, trial.key(0, day, EARLY if of_arm else UNEXPOSED), sign * number)


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
    if not trial.exposure.is_attributed:  # all rows are of after the exposure
        is_in, was_in = np.ones_like(is_in), np.ones_like(is_in)
        was_in[heads] = False
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


def _add(trial: Trial, found: _Cumulated, sums: Sums, sign: int) -> None:
    """Add the differences between now and before under (arm, day)."""
    place = found.arm * len(trial.days) + found.day - trial.days.start
    for amounts, is_in, its_sign in (
        (found.up_to, found.is_in, sign),
        (found.before, found.was_in, -sign),
    ):
        rows = np.flatnonzero(is_in)
        if not len(rows):
            continue
        order = rows[np.argsort(place[rows], kind="stable")]
        now = [amount[order] for amount in amounts]
        then = [amount[order] for amount in found.covariate]
        base = place[order] * trial.stats
        every = np.ones(len(order), np.int64)
        _put(sums, base + USERS, [(every, every)], its_sign)
        for number, measure in enumerate(trial.measures):
            columns = [
                column
                for parts in (now, then)[: len(trial.vectors) // 2]
                for column in (measure.above_of(parts), measure.below_of(parts))
            ]
            stat = base + trial.firsts[number]
            columns[0], stat = measure.capped(columns[0], stat, len(trial.moments))
            _put(sums, stat, _moments(columns), its_sign)


def _moments(columns: Sequence[I64]) -> list[tuple[I64, I64]]:
    """Of each sum of a measure the two factors of what rows add to it."""
    every = np.ones(len(columns[0]), np.int64)
    values = [(column, every) for column in columns]
    pairs = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
    return [*values, *pairs, ((columns[0] != 0).astype(np.int64), every)]


def _put(sums: Sums, key: I64, factors: Sequence[tuple[I64, I64]], sign: int) -> None:
    """Add products of rows under their keys, those of the i-th factors under the key + i."""
    order = np.argsort(key, kind="stable")
    starts = runs_of(key[order])
    keys = key[order][starts].tolist()
    for i, (a, b) in enumerate(factors):
        for at, value in zip(keys, products(a[order], b[order], starts), strict=True):
            if value:
                add(sums, at + i, sign * value)


def cumulated(trial: Trial, parts: Sequence[Columns], day: int) -> list[dict[str, int]]:
    """For no arm (users seen in several, outcomes that count to none), and then for each arm, the
    sums up to a day: ``users``, ``mixed``, ``early``, ``unexposed``, and names of measure and
    moment with a space between. ``parts``: sums as columns. Under no arm ``… cap`` is the amount
    that a quantile is at, in units of the numerator, if it caps anything."""
    last, chosen = day - trial.days.start, []
    for found in parts:
        place, stat = np.divmod(found["key"], trial.stats)
        arm, at = np.divmod(place, len(trial.days))
        rows = np.flatnonzero(at <= last)
        chosen.append((found, rows, (arm * trial.stats + stat)[rows]))
    total = integers.summed(chosen, (len(trial.arms) + 1) * trial.stats)
    starts = range(0, len(total), trial.stats)
    by_arm = [dict(zip(_COUNTS, total[i : i + _FIRST_MEASURE], strict=True)) for i in starts]
    for measure, first in zip(trial.measures, trial.firsts, strict=False):
        for arm_sums, its in zip(by_arm, _of_measure(trial, measure, total, first), strict=True):
            arm_sums |= {f"{measure.name} {name}": value for name, value in its.items()}
    return by_arm


def _of_measure(
    trial: Trial, measure: Measure, total: Sequence[int], first: int
) -> list[dict[str, int]]:
    """The sums of a measure in no arm and in each."""
    names, size = trial.moments, len(trial.moments)
    found: list[dict[int, dict[str, int]]] = []
    users: Counter[int] = Counter()
    for start in range(first, len(total), trial.stats):
        buckets = {}
        for bucket in range(measure.buckets):
            sums = total[start + bucket * size : start + (bucket + 1) * size]
            if any(sums) or not bucket:
                buckets[bucket] = dict(zip(names, sums, strict=True))
                users[bucket] += buckets[bucket]["y"]
        found.append(buckets)
    if not isinstance(measure.cap, Quantile):
        return [buckets[0] for buckets in found]
    last = measure.cap.bucket(users)
    result = [folded(buckets, last) for buckets in found]
    if max(users, default=0) > last:
        result[0]["cap"] = int(EDGES[last])
    return result
