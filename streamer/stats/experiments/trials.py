"""Sums over users from which arms are compared: what each user contributes to an experiment.

Let C(d) be a user's sums from the first day to day d. Under day d stand the differences of C, of
its squares and of its products between d and his day before, so that the sum of the days up to d
is that over users of C(d), C(d)², …: a square of what was clicked on two days, not two squares.

Since when each user is exposed to an experiment: later outcomes count towards the arm.

Whether an event counts is known for good once its user was exposed no later than it, or once no
impression that early can be accepted any more. Until then it is kept by its own time.

Since when what experiments need is counted, through changes of the settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b

import numpy as np

from streamer.encoding import limbs
from streamer.encoding.limbs import Columns
from streamer.settings.durations import DAY_MS
from streamer.stats.experiments.caps import (
    BUCKETS,
    DENOMINATOR_EDGES,
    EDGES,
    Cap,
    Denominator,
    Exact,
    Largest,
    Quantile,
    edge_of,
    folded,
    largest,
    weighted,
)
from streamer.stats.experiments.composite import BEFORE, NOW, names_of


@dataclass(frozen=True)
class Slots:
    """Slots of time of an experiment, the first from ``start_ms`` on, and their arms over and over:
    of some values, and of all others. ``washout_ms``: from its beginning, so much of a slot counts
    for nothing."""

    experiment: str
    start_ms: int
    length_ms: int
    washout_ms: int
    schedule: tuple[tuple[str, tuple[str, ...]], ...]
    others: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """What is put into arms in place of users: an id in a field of events, or a slot of time of
    one. ``field`` empty: everything is one id."""

    field: str
    slots: Slots | None = None

    @cached_property
    def name(self) -> str:
        """Under which it is stored what is counted, and since when."""
        return f"unit {self.field!r} {self.slots or ''}".strip()

    def code(self, since_ms: int) -> int:
        """As ``Exposure.code``."""
        return _code(self.name, since_ms)


def _code(name: str, since_ms: int) -> int:
    since = f"{name} since {since_ms}".encode()
    return int.from_bytes(blake2b(since, digest_size=8).digest()) >> 2


@dataclass(frozen=True)
class Exposure:
    """What exposes a user: an impression under one of these values of a dimension, an event of any
    kind whose value at one of ``paths`` says one of them, or an event of exposures; on this day
    (since 1970-01-01) or later. ``key``: what events of exposures call the experiment, and values
    that say the arms of several; ``arms``: sorted. ``is_attributed``: every event counts whenever
    it was, to the arm that is its own."""

    key: str
    arms: tuple[str, ...]
    first_day: int
    dimension: str = ""
    paths: tuple[str, ...] = ()
    is_attributed: bool = False
    unit: Unit | None = None
    """None: the user."""

    @cached_property
    def name(self) -> str:
        """Under which it is stored what is counted, and since when."""
        how = "attributed" if self.is_attributed else "exposed"
        by = self.dimension or " or ".join(self.paths)
        who = "" if self.unit is None else f", {self.unit.name}"
        return f"{how} {self.key} by {by}={'|'.join(self.arms)} from {self.first_day}{who}"

    def code(self, since_ms: int) -> int:
        """A number below 2**62 for the rows that are counted since then: those counted before, with
        a gap, are others."""
        return _code(self.name, since_ms)


AGES: dict[str, tuple[int, int]] = {
    "first day": (0, 1),
    "days 2-3": (1, 3),
    "days 4-7": (3, 7),
    "later": (7, 1 << 20),
}
"""Days since a user's first day that counts (0), by which the primary metric is read apart: name →
[from, to)."""


def median_age(amounts: Mapping[str, float]) -> int:
    """The last day, from 0, of the age up to which half of the amounts by age come; two weeks at
    most.

    >>> median_age({"first day": 8.0, "days 2-3": 7.0}), median_age({"days 2-3": 9, "later": 3})
    (0, 2)
    """
    so_far, half = 0.0, sum(amounts.values()) / 2
    for age, amount in amounts.items():
        so_far += amount
        if so_far >= half > 0:
            return min(AGES[age][1], 14) - 1
    return 0


UNEXPOSED = 3
"""Statistic, of no arm: outcomes of users who saw none, of which other parts may be negative."""
ACTIVE = 4
"""Statistic: users of an arm with an impression or an outcome on a day."""
_COUNTS = ("users", "mixed", "early", "unexposed", "active")
"""The first statistics. Of no arm (number 0): users that were seen in several, and outcomes before
the first exposure of their user and of users without one. Of an arm ``mixed`` are those of these
users who saw it first."""
_FIRST_MEASURE = len(_COUNTS)


@dataclass(frozen=True)
class Measure:
    """A ratio of two sums; ``below`` None: of one to the number of users. ``high``,
    ``below_high``: the high limbs of what is above and below, if it has them. ``cap``: what is
    above counts up to it, for each user. ``percentile``: the share of users at which what is above
    is read, in place of the mean."""

    name: str
    above: int
    below: int | None
    high: int | None = None
    cap: Cap = None
    parts: tuple[Measure, ...] = ()
    """Of a composite its ratios, of which the first is this one; else nothing."""
    age: str | None = None
    """Of which age of users it is alone (``AGES``); else of all."""
    within: int | None = None
    """Days since a user's first that count; else all. ``is_mature``: users count once they have had
    them."""
    is_mature: bool = False
    percentile: Fraction | None = None
    below_high: int | None = None

    @property
    def key(self) -> str:
        """What its sums are called: one name for each measure of an experiment."""
        return self.name if self.age is None else f"{self.name} {self.age}"

    @property
    def buckets(self) -> int:
        """How many buckets of users its sums are kept by: of denominators or numerators."""
        if isinstance(self.cap, Denominator):
            return len(DENOMINATOR_EDGES) + 1
        is_read = self.percentile is not None or isinstance(self.cap, Quantile)
        return BUCKETS if is_read else 1


@dataclass(frozen=True)
class CompiledExperiment:
    """An experiment as it is counted: days since 1970-01-01, its arms (the control first),
    its measures. Without ``covariates`` (days) there are none. ``exposure``: from when on all that
    a user does counts towards the arm, or that events count towards the arm that is theirs."""

    name: str
    arms: tuple[str, ...]
    days: range
    covariates: range
    measures: tuple[Measure, ...]
    exposure: Exposure

    @property
    def unit(self) -> Unit | None:
        """What is put into arms; None: users."""
        return self.exposure.unit

    @property
    def first_day(self) -> int:
        """The first day that is wanted: of the covariates, or of the experiment."""
        return min(self.covariates.start, self.days.start) if self.covariates else self.days.start

    @property
    def before(self) -> CompiledExperiment:
        """The days of the covariates as an experiment of their own, without covariates."""
        return replace(self, days=self.covariates, covariates=range(0))

    def vectors_of(self, measure: Measure) -> list[str]:
        """Names of the values that a measure has of each user: numerator, denominator, and the
        same of the days before; of a composite those of all its parts."""
        letters = (NOW, BEFORE) if len(self.covariates) else (NOW,)
        if not measure.parts:
            return [name for each in letters for name in each]
        return [name for each in letters for name in names_of(len(measure.parts), each)]

    def moments_of(self, measure: Measure) -> tuple[str, ...]:
        """Names of the sums of a measure: of values, of products of two, and ``nz``, the users
        whose numerator is not 0 (of a composite ``nz1``, …); kept by denominators also ``ny``,
        those whose denominator is not 0."""
        names = self.vectors_of(measure)
        pairs = (a + b for i, a in enumerate(names) for b in names[i:])
        numbers = [str(i) for i in range(1, len(measure.parts) + 1)] or [""]
        counted = ("ny",) if isinstance(measure.cap, Denominator) else ()
        return (*names, *pairs, *(f"nz{number}" for number in numbers), *counted)

    @cached_property
    def shape(self) -> str:
        """What keys of sums depend on: sums are stored under it, so that a reader with other
        settings does not take them for its own."""
        days, before = self.days, self.covariates
        spans = (days.start, days.stop, before.start, before.stop)
        measures = [
            (
                m.key,
                "denominators" if isinstance(m.cap, Denominator) else m.cap,
                m.buckets,
                m.within,
                m.is_mature,
                *(part.name for part in m.parts),
            )
            for m in self.measures
        ]
        return repr((self.name, self.arms, spans, measures, self.exposure.name))

    @cached_property
    def starts(self) -> dict[str, int]:
        """Ages, and keys of mature measures → days since a user's first at which they begin."""
        ages = {age: start for age, (start, _) in AGES.items()}
        has_ages = any(measure.age for measure in self.measures)
        mature = {m.key: (m.within or 1) - 1 for m in self.measures if m.is_mature}
        return (ages if has_ages else {}) | mature

    @cached_property
    def degrees(self) -> list[int]:
        """How many amounts of the days themselves each statistic is a product of: 2 of Σx²."""
        found = [0] * _FIRST_MEASURE
        for measure in self.measures:
            names = self.moments_of(measure)
            found += [_degree(name) for name in names] * measure.buckets
        return found

    @cached_property
    def firsts(self) -> list[int]:
        """The first statistic of each measure; those with a quantile have as many again for each
        bucket of values."""
        firsts, first = [], _FIRST_MEASURE
        for measure in self.measures:
            firsts.append(first)
            first += len(self.moments_of(measure)) * measure.buckets
        return [*firsts, first]

    @property
    def stats(self) -> int:
        """How many statistics an arm has on a day."""
        return self.firsts[-1]


def _degree(name: str) -> int:
    """
    >>> _degree("xx"), _degree("xu"), _degree("x1y2"), _degree("nz1"), _degree("ny")
    (2, 1, 2, 1, 0)
    """
    return sum(letter in "xy" for letter in name) if name[0] != "n" else int(name[1] == "z")


DayWeights = Mapping[int, int | Fraction]
"""Day → how much what was done on it counts; 1 of days that are not in it. Users count alike."""
ALIKE: DayWeights = {}


def of_arms(trial: CompiledExperiment, parts: Sequence[Columns], day: int) -> list[dict[str, int]]:
    """For no arm and then for each the first statistics up to a day: ``users``, ``mixed``,
    ``early``, ``unexposed``, and ``active``, days of users with an impression or an outcome."""
    return [_counts(sums) for sums in _totals(trial, parts, day, ALIKE, _FIRST_MEASURE)]


def _counts(sums: Sequence[Exact]) -> dict[str, int]:
    return {name: int(count) for name, count in zip(_COUNTS, sums, strict=False)}


def users_by_day(
    trial: CompiledExperiment, parts: Sequence[Columns], days: Sequence[int]
) -> list[tuple[int, ...]]:
    """Users of each arm up to the ends of days, which ascend, of those who came on one of them."""
    ends, arms, chosen = np.array(days, np.int64) - trial.days.start, len(trial.arms), []
    for found in parts:
        place, stat = np.divmod(found["key"], trial.stats)
        arm, at = np.divmod(place, len(trial.days))
        end = np.searchsorted(ends, at)
        rows = np.flatnonzero((stat == 0) & (arm > 0) & np.isin(at, ends))
        chosen.append((found, rows, (end * arms + arm - 1)[rows]))
    came = np.array(limbs.summed(chosen, len(ends) * arms), np.int64).reshape(len(ends), arms)
    return [tuple(counts) for counts in came.cumsum(axis=0).tolist()]


@dataclass(frozen=True)
class MeasureSums:
    """The sums of a measure of each arm, by names of moments. ``capped_at``: what a user counts for
    at most, in units of the numerator, or of a ratio's denominator; None where nobody counts for
    less than all. ``largest``: of each arm, where sums are kept by denominators. ``users``: of a
    percentile, those of each arm by bucket."""

    arms: Sequence[dict[str, Exact]]
    capped_at: int | None = None
    largest: Sequence[Largest | None] = ()
    users: Sequence[Mapping[int, int]] = ()


@dataclass(frozen=True)
class CumulatedSums:
    """What an experiment comes to up to a day. ``counts``: of no arm, and of each;
    ``users_by_age``: age, or key of a mature measure → of each arm the users who have reached it;
    ``measures``: by key;
    ``periods``: of a ramp the same of each period that has begun, with its planned shares."""

    counts: Sequence[Mapping[str, int]]
    users_by_age: Mapping[str, Sequence[int]]
    measures: Mapping[str, MeasureSums]
    periods: Sequence[tuple[Mapping[str, float], CumulatedSums]] = ()


def cumulated(
    trial: CompiledExperiment, parts: Sequence[Columns], day: int, weights: DayWeights = ALIKE
) -> CumulatedSums:
    """The sums up to a day. ``parts``: those of every partition, as columns."""
    rows = _totals(trial, parts, day, weights, trial.stats)
    return CumulatedSums(
        [_counts(sums) for sums in rows],
        {
            age: [sums["users"] for sums in of_arms(trial, parts, day - start)[1:]]
            for age, start in trial.starts.items()
        },
        {
            measure.key: _of_measure(trial, measure, [sums[first:] for sums in rows[1:]])
            for measure, first in zip(trial.measures, trial.firsts, strict=False)
        },
    )


def _totals(
    trial: CompiledExperiment,
    parts: Sequence[Columns],
    day: int,
    weights: DayWeights,
    wanted: int,
) -> list[list[Exact]]:
    """Of no arm, and of each: the first ``wanted`` of its statistics, added up to a day."""
    last, size = day - trial.days.start, (len(trial.arms) + 1) * wanted
    listed, by_weight = np.array([*weights], np.int64) - trial.days.start, [*weights.values()]
    total: list[Exact] = [0] * size
    for weight in {1, *by_weight}:
        is_of = np.array([each == weight for each in by_weight], bool)
        chosen, days = [], listed[~is_of if weight == 1 else is_of]
        for found in parts:
            place, stat = np.divmod(found["key"], trial.stats)
            arm, at = np.divmod(place, len(trial.days))
            is_in = (at <= last) & (stat < wanted)
            if weights:
                is_in &= np.isin(at, days, invert=weight == 1)
            rows = np.flatnonzero(is_in)
            chosen.append((found, rows, (arm * wanted + stat)[rows]))
        powers = [1, weight, weight * weight]
        degrees = trial.degrees[:wanted] * (len(trial.arms) + 1)
        sums = zip(total, limbs.summed(chosen, size), degrees, strict=True)
        total = [a + b * powers[degree] if b else a for a, b, degree in sums]
    return [total[i : i + wanted] for i in range(0, size, wanted)]


def _of_measure(
    trial: CompiledExperiment, measure: Measure, rows: Sequence[Sequence[Exact]]
) -> MeasureSums:
    """The sums of a measure from its statistics in each arm, which ``rows`` begin with."""
    names = trial.moments_of(measure)
    size = len(names)
    found: list[dict[int, dict[str, Exact]]] = []
    users: Counter[int] = Counter()
    counted = "ny" if isinstance(measure.cap, Denominator) else "y"
    for row in rows:
        buckets = {}
        for bucket in range(measure.buckets):
            sums = row[bucket * size : (bucket + 1) * size]
            if any(sums) or not bucket:
                buckets[bucket] = dict(zip(names, sums, strict=True))
                users[bucket] += int(buckets[bucket].get(counted, 0))
        found.append(buckets)
    if measure.percentile is not None:
        by_arm = [{bucket: int(its["y"]) for bucket, its in buckets.items()} for buckets in found]
        return MeasureSums([folded(buckets, len(EDGES)) for buckets in found], users=by_arm)
    if not isinstance(measure.cap, Quantile | Denominator):
        return MeasureSums([dict(buckets[0]) for buckets in found])
    last = measure.cap.bucket(users)
    is_capped = max((bucket for bucket, n in users.items() if n), default=0) > last
    capped_at = edge_of(measure.cap, last) if is_capped else None
    if isinstance(measure.cap, Quantile):
        return MeasureSums([folded(buckets, last) for buckets in found], capped_at)
    shares = [largest(buckets) for buckets in found]
    return MeasureSums([weighted(buckets, last) for buckets in found], capped_at, shares)


Scope = tuple[int, int, int, int]
"""First day and end of what is wanted of an exposure, since when (ms) all of it is counted, and
when it was first counted (rows from before an interruption are others)."""


def all_since(since: Mapping[str, int], scopes: Mapping[str, Scope]) -> dict[str, int]:
    """Component or exposure → the stream time (ms) from which on it is counted; 0: always."""
    return {**since, **{name: since_ms for name, (_, _, since_ms, _) in scopes.items()}}


def wanted_days(trials: Sequence[CompiledExperiment]) -> dict[Exposure, range]:
    """What exposes users → the days that are wanted."""
    wanted: dict[Exposure, range] = {}
    for trial in trials:
        first, end = trial.first_day, trial.days.stop
        known = wanted.get(trial.exposure, range(first, end))
        wanted[trial.exposure] = range(min(known.start, first), max(known.stop, end))
    return wanted


def wanted_units(trials: Sequence[CompiledExperiment]) -> dict[Unit, range]:
    """Units that are not users → the days that are wanted."""
    wanted: dict[Unit, range] = {}
    for exposure, days in wanted_days(trials).items():
        if exposure.unit is not None:
            known = wanted.get(exposure.unit, days)
            first, stop = min(known.start, days.start), max(known.stop, days.stop)
            wanted[exposure.unit] = range(first, stop)
    return wanted


def all_wanted(trials: Sequence[CompiledExperiment]) -> list[tuple[Exposure | Unit, range]]:
    """Whatever is counted since a time of its own → the days that are wanted."""
    return [*wanted_days(trials).items(), *wanted_units(trials).items()]


def scopes_after(
    trials: Sequence[CompiledExperiment],
    known: Mapping[str, Scope],
    stream_ms: int,
    found: Mapping[str, int] | None = None,
) -> dict[str, Scope]:
    """What is counted of exposures from this stream time on, where this was counted before.
    ``found``: key → first day of experiments that were counted without being declared."""
    days_found = found or {}
    scopes: dict[str, Scope] = {}
    for what, days in all_wanted(trials):
        first, end, before = days.start, days.stop, known.get(what.name)
        if before is None:
            since_ms = stream_ms
            if isinstance(what, Exposure) and not what.is_attributed and what.unit is None:
                since_ms = days_found[what.key] * DAY_MS if what.key in days_found else stream_ms
            scopes[what.name] = (first, end, since_ms, stream_ms)
            continue
        is_whole = first >= before[0]
        if end > before[1]:  # what came after its end was not counted
            is_whole = is_whole and stream_ms // DAY_MS < before[1]
        since_ms = before[2] if is_whole else stream_ms
        scopes[what.name] = (first, end, since_ms, before[3])
    return scopes
