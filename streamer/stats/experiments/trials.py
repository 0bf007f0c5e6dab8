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

from streamer.encoding import limbs
from streamer.encoding.limbs import Columns
from streamer.stats.experiments.caps import EDGES, Cap, Quantile, buckets_of, folded
from streamer.stats.experiments.composite import BEFORE, NOW, names_of
from streamer.stats.experiments.exposures import Exposure

USERS = 0
"""Statistic: users of an arm."""
_COUNTS = ("users", "mixed", "early", "unexposed")
"""The first statistics. Of no arm (number 0): users that were seen in several, and outcomes before
the first exposure of their user and of users without one."""
_FIRST_MEASURE = len(_COUNTS)


@dataclass(frozen=True)
class Measure:
    """A ratio of two components; ``below`` None: of one to the number of users. ``high``: the high
    limb of what is above, if it has one. ``cap``: what is above counts up to it, for each user."""

    name: str
    above: int
    below: int | None
    high: int | None = None
    cap: Cap = None
    parts: tuple[Measure, ...] = ()
    """Of a composite its ratios, of which the first is this one; else nothing."""

    @property
    def buckets(self) -> int:
        """How many buckets of users' numerators its sums are kept by."""
        return buckets_of(self.cap)


@dataclass(frozen=True)
class Trial:
    """An experiment as it is counted: days since 1970-01-01, its arms (the control first),
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

    @property
    def before(self) -> Trial:
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
        whose numerator is not 0 (of a composite ``nz1``, …)."""
        names = self.vectors_of(measure)
        pairs = (a + b for i, a in enumerate(names) for b in names[i:])
        numbers = [str(i) for i in range(1, len(measure.parts) + 1)] or [""]
        return (*names, *pairs, *(f"nz{number}" for number in numbers))

    @cached_property
    def shape(self) -> str:
        """What keys of sums depend on: sums are stored under it, so that a reader with other
        settings does not take them for its own."""
        days, before = self.days, self.covariates
        spans = (days.start, days.stop, before.start, before.stop)
        measures = [
            (m.name, m.cap, m.buckets, *(part.name for part in m.parts)) for m in self.measures
        ]
        return repr((self.name, self.dimension, self.arms, spans, measures, self.exposure.name))

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
    total = limbs.summed(chosen, (len(trial.arms) + 1) * trial.stats)
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
    names = trial.moments_of(measure)
    size = len(names)
    found: list[dict[int, dict[str, int]]] = []
    users: Counter[int] = Counter()
    for start in range(first, len(total), trial.stats):
        buckets = {}
        for bucket in range(measure.buckets):
            sums = total[start + bucket * size : start + (bucket + 1) * size]
            if any(sums) or not bucket:
                buckets[bucket] = dict(zip(names, sums, strict=True))
                users[bucket] += buckets[bucket].get("y", 0)
        found.append(buckets)
    if not isinstance(measure.cap, Quantile):
        return [buckets[0] for buckets in found]
    last = measure.cap.bucket(users)
    result = [folded(buckets, last) for buckets in found]
    if max(users, default=0) > last:
        result[0]["cap"] = EDGES[last]
    return result
