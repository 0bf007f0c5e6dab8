"""Experiments: for each metric, arm and day the sums over users that everything is computed from.

A user belongs to the arm that he saw: by an impression of it, a field of any event, or an event of
exposures. Who saw several is mixed, and left out altogether. All that a user does from the first
exposure on counts, or only what carries the arm's value.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any, NamedTuple

from streamer.settings.durations import DAY_MS
from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings

from . import own_ratios
from .acceptance import Acceptance, accept
from .arms import Saw, saw_of
from .dimensions import Kept
from .experiment_metrics import ONE, SHARES, parts_of, ratio_of, without_percentile
from .joining import Joins, join
from .percentiles import two_digits
from .shape import Event, Record, is_person
from .units import Units
from .user_days import Fact, User, facts_of, user_of

MICROS = 1_000_000
UNITS = {"dwell": 1000}
"""Component → how many of it are one of the metric."""


@dataclass(frozen=True)
class ArmTruth:
    """Sums over the users of an arm: ``n`` of 1, ``xy`` of x · y, and so on.

    The metric is x / y; u and v are what x and y were before the experiment (0 without covariates).
    """

    n: int = 0
    x: int = 0
    xx: int = 0
    y: int = 0
    yy: int = 0
    xy: int = 0
    u: int = 0
    uu: int = 0
    v: int = 0
    vv: int = 0
    uv: int = 0
    xu: int = 0
    xv: int = 0
    yu: int = 0
    yv: int = 0
    nz: int = 0
    """Users whose x is not 0."""
    ny: int = 0
    """Of ratios whose denominator is not the user: users whose y is not 0."""
    edges: Any = ()
    """Of percentiles: how many users have an x up to each integer of at most two significant
    digits, sorted pairs of the integer and the number of users."""
    values: Any = field(default=(), compare=False)
    """Of percentiles: every x, sorted."""


@dataclass
class ExperimentTruth:
    """``sums``: by experiment, metric, arm and day; ``mixed`` users, and outcomes that count
    towards no arm (before the exposure of their user, and of users without one): by experiment and
    day.

    ``moments``: of composites by experiment, metric, arm and day the sums of values and products of
    two, as `x1y2`; x and y are numbered as the parts are, `nz1` users whose x1 is not 0.

    ``active``: days of users with an impression or an outcome that counts, so far.

    Every day is there, from an experiment's start to its end or to the day of stream time.
    """

    sums: dict[tuple[str, str, str, int], ArmTruth] = field(default_factory=dict)
    moments: dict[tuple[str, str, str, int], dict[str, int]] = field(default_factory=dict)
    mixed: dict[tuple[str, int], int] = field(default_factory=dict)
    began: dict[tuple[str, int], Counter[str]] = field(default_factory=dict, compare=False)
    outside: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    active: dict[tuple[str, int], int] = field(default_factory=dict)


def truth_of(records: Iterable[Record], settings: Settings) -> ExperimentTruth:
    """The sums of a log; records of one (topic, partition) are in offset order."""
    verdict = accept(records, settings)
    return experiment_truth(verdict, join(verdict, settings), settings)


def experiment_truth(verdict: Acceptance, joins: Joins, settings: Settings) -> ExperimentTruth:
    """The sums of every experiment as they are at the end of each of its days."""
    out = ExperimentTruth()
    stream_ms = verdict.stream_time_ms()
    if stream_ms is None:
        return out
    kept = Kept(verdict.events, settings, verdict.key)
    facts = list(facts_of(verdict, joins, kept, settings))
    did: dict[str, dict[User, list[Did]]] = {}
    for experiment in settings.experiments:
        own = experiment.dimension
        if own not in did:
            did[own] = did_by_user(facts, own, kept, settings)
        its = did[own]
        if experiment.unit_field is not None:
            its = did_by_unit(facts, experiment, kept, settings)
        trial = Trial(experiment, verdict.events, its, kept, settings)
        for day in experiment.days:
            if day <= stream_ms // DAY_MS:
                so_far = range(experiment.days.start, day + 1)
                out.mixed[experiment.name, day] = trial.mixed_by(day)
                out.began[experiment.name, day] = trial.began_by(day)
                out.outside[experiment.name, day] = trial.outside(so_far)
                out.active[experiment.name, day] = trial.active(so_far)
                for (metric, arm), sums in trial.sums(so_far).items():
                    out.sums[experiment.name, metric, arm, day] = sums
                for (metric, arm), moments in trial.moments(so_far).items():
                    out.moments[experiment.name, metric, arm, day] = moments
    return out


def range_truth(
    verdict: Acceptance,
    joins: Joins,
    settings: Settings,
    name: str,
    first_day: int,
    last_day: int,
) -> dict[tuple[str, str], ArmTruth]:
    """(metric, arm) → sums of only some days of the experiment ``name``, both ends included.

    Who is mixed does not depend on these days, nor do the days of the covariates. Nothing if
    nothing was accepted.
    """
    days = range(first_day, last_day + 1)
    trial = trial_of(verdict, joins, settings, name, days)
    return {} if trial is None else trial.sums(days)


def apart_truth(
    verdict: Acceptance, joins: Joins, settings: Settings, name: str, days: range, by: str
) -> dict[str, dict[tuple[str, str], ArmTruth]]:
    """The same for each value of the dimension ``by``."""
    trial = trial_of(verdict, joins, settings, name, days)
    apart = {} if trial is None else trial.apart(settings.dimension_names.index(by))
    return {value: its.sums(days) for value, its in apart.items()}


def trial_of(
    verdict: Acceptance, joins: Joins, settings: Settings, name: str, days: range
) -> Trial | None:
    """An experiment with these days among its own; None if nothing was accepted."""
    if not verdict.events:
        return None
    experiment = next(e for e in settings.experiments if e.name == name)
    assert set(days) <= set(experiment.days), (days, experiment.days)
    kept = Kept(verdict.events, settings, verdict.key)
    facts = facts_of(verdict, joins, kept, settings)
    did = did_by_user(facts, experiment.dimension, kept, settings)
    return Trial(experiment, verdict.events, did, kept, settings)


class Did(NamedTuple):
    """Something that a user did, under a value of the dimension."""

    event_ms: int
    value: str
    component: str
    amount: int
    values: tuple[str, ...]
    """Of all dimensions."""

    @property
    def day(self) -> int:
        return self.event_ms // DAY_MS


def did_by_user(
    facts: Iterable[Fact], dimension: str, kept: Kept, settings: Settings
) -> dict[User, list[Did]]:
    """What every user did, under the values of a dimension; without one under none."""
    at = settings.dimension_names.index(dimension) if dimension else None
    found: dict[User, list[Did]] = defaultdict(list)
    for fact in facts:
        values = kept.shown(fact.dims)
        value = "" if at is None else values[at]
        if is_person(fact.user[1]):
            did = Did(fact.event_ms, value, fact.component, fact.amount, values)
            found[fact.user].append(did)
    return dict(found)


def did_by_unit(
    facts: Iterable[Fact], experiment: Experiment, kept: Kept, settings: Settings
) -> dict[User, list[Did]]:
    """What happened in every unit of an experiment whose unit is not the user."""
    found: dict[User, list[Did]] = defaultdict(list)
    units = Units(experiment, kept, settings)
    for fact in facts:
        unit = units.of(fact.dims, fact.event_ms)
        if unit is not None:
            did = Did(unit.at_ms, "", fact.component, fact.amount, ())
            found[unit.user].append(did)
    return dict(found)


class Trial:
    """One experiment, and what its users did."""

    def __init__(
        self,
        experiment: Experiment,
        events: list[Event],
        did: dict[User, list[Did]],
        kept: Kept,
        settings: Settings,
    ) -> None:
        self.experiment, self.did, self.settings = experiment, did, settings
        own = experiment.dimension
        dimension = settings.dimension_names.index(own) if own else None
        self.saw: dict[User, list[Saw]] = defaultdict(list)
        every = list(saw_of(events, experiment, settings))
        for event in (e for e in events if e.topic == "impressions"):
            if dimension is not None and (arm := kept.shown(event.dims)[dimension]) in self.arms:
                every.append(Saw(event.event_ms, arm, "dimension", event))
        if experiment.unit_field is None:
            for saw in every:
                if saw.event.person is not None:
                    self.saw[user_of(saw.event)].append(saw)
        else:
            self.saw |= Units(experiment, kept, settings).saw(events, every)
        self.counted: dict[User, list[Did]] = {}
        self.outcomes = {
            user: [one for one in its if one.component == "outcomes"] for user, its in did.items()
        }
        self.first = {
            user: min(times)
            for user, saw in self.saw.items()
            if (times := [s.event_ms for s in saw if s.event_ms // DAY_MS in experiment.days])
        }
        names = [metric.name for metric in experiment.metrics]
        mixed = [name for name in names if name.startswith("composite@")]
        self.ratios = {name: ratio_of(name, settings) for name in names if name not in mixed}
        self.composites = {
            name: [ratio_of(part, settings) for part, _ in parts_of(name, settings)]
            for name in mixed
        }
        self.caps = {m.name: m.cap for m in experiment.metrics}
        free = [m for m in experiment.metrics if m.margin is None and m.margin_absolute is None]
        named = [m for m in experiment.metrics if m.primary]
        self.primary = (named or free or list(experiment.metrics))[0].name
        self.members: dict[str, list[User]] = defaultdict(list)
        self.mixed: list[User] = []
        for user in self.saw:
            arms = self.arms_of(user, experiment.days)
            if len(arms) == 1:
                self.members[arms[0]].append(user)
            elif arms:
                self.mixed.append(user)

    @property
    def arms(self) -> tuple[str, ...]:
        return self.experiment.arms

    def arms_of(self, user: User, days: range) -> list[str]:
        """The arms that the user saw on these days."""
        seen = {saw.arm for saw in self.saw.get(user, ()) if saw.event_ms // DAY_MS in days}
        return [arm for arm in self.arms if arm in seen]

    def apart(self, dimension: int) -> dict[str, Trial]:
        """Value of a dimension → the experiment with only the users who began in it."""
        found: dict[str, Trial] = {}
        for arm, users in self.members.items():
            for user in users:
                value = self.began_in(user, arm, dimension)
                if value not in found:
                    found[value] = copy(self)
                    found[value].members = defaultdict(list)
                found[value].members[arm].append(user)
        return found

    def began_in(self, user: User, arm: str, dimension: int) -> str:
        """The value of most impressions that count on the day of the first exposure, of equals the
        first; `unknown` where none counts."""
        first_ms = self.first_ms(user)
        assert first_ms is not None
        shown: Counter[str] = Counter()
        for did in self.did.get(user, ()):
            is_shown = did.component == "impressions" and did.day == first_ms // DAY_MS
            if is_shown and self.counts(did, user, arm):
                shown[did.values[dimension]] += did.amount
        return min(shown, key=lambda value: (-shown[value], value.encode()), default="unknown")

    def mixed_by(self, day: int) -> int:
        """How many of the mixed users saw any arm by the end of a day."""
        so_far = range(self.experiment.days.start, day + 1)
        return sum(bool(self.arms_of(user, so_far)) for user in self.mixed)

    def began_by(self, day: int) -> Counter[str]:
        """Of the mixed users by the end of a day how many saw each arm first; of two at once the
        one that is listed first."""
        found: Counter[str] = Counter()
        for user in self.mixed:
            days = self.experiment.days
            saw = [s for s in self.saw[user] if s.event_ms // DAY_MS in days]
            first = min(saw, key=lambda s: (s.event_ms, self.arms.index(s.arm)))
            found[first.arm] += first.event_ms // DAY_MS <= day
        return found

    def first_ms(self, user: User) -> int | None:
        """When the user was first exposed."""
        return self.first.get(user)

    def outside(self, days: range) -> tuple[int, int]:
        """Outcomes on these days that do not count to the arm of their user, and of users without
        an arm."""
        early = unexposed = 0
        for user in self.did.keys() - set(self.mixed):
            arm = next(iter(self.arms_of(user, self.experiment.days)), None)
            for did in self.outcomes[user]:
                if did.day in days:
                    if arm is None:
                        unexposed += did.amount
                    elif not self.counts(did, user, arm):
                        early += did.amount
        return early, unexposed

    def active(self, days: range) -> int:
        """Days of users of an arm with an impression or an outcome that counts."""
        found = {
            (user, did.day)
            for arm, users in self.members.items()
            for user in users
            for did in self.did.get(user, ())
            if did.component in ("impressions", "outcomes") and did.amount
            if did.day in days and self.counts(did, user, arm)
        }
        return len(found)

    def sums(self, days: range) -> dict[tuple[str, str], ArmTruth]:
        """(metric, arm) → sums over the users who were exposed to the arm by the end of these days,
        or had an impression of it on them."""
        members = {
            arm: [user for user in self.members[arm] if self.is_in(user, days)]
            for arm in self.experiment.arms
        }
        out: dict[tuple[str, str], ArmTruth] = {}
        for metric, ratio in self.ratios.items():
            for name, age in self.ages_of(metric).items():
                points = {
                    arm: [self.point(user, ratio, arm, days, age) for user in users]
                    for arm, users in members.items()
                }
                self.cap(metric, points)
                out |= {(name, arm): self.summed(metric, its) for arm, its in points.items()}
        return out

    def summed(self, metric: str, points: list[dict[str, Any]]) -> ArmTruth:
        """The sums over some users, and of a percentile their values."""
        found = summed(points, self.ratios[metric][1] != ONE)
        if without_percentile(metric)[1] is None:
            return found
        values = tuple(sorted(point["x"] for point in points))
        edges = Counter(two_digits(value) for value in values)
        return replace(found, values=values, edges=tuple(sorted(edges.items())))

    def ages_of(self, metric: str) -> dict[str, range]:
        """What is added up of a metric: all, and of the primary one the days since a user's first,
        as 0."""
        found = {metric: range(10**6)}
        if metric == self.primary and not self.experiment.switchback:
            spans = (range(1), range(1, 3), range(3, 7), range(7, 10**6))
            names = ("first day", "days 2-3", "days 4-7", "later")
            found |= {f"{metric} {name}": span for name, span in zip(names, spans, strict=True)}
        return found

    def cap(self, metric: str, points: dict[str, list[dict[str, Any]]]) -> None:
        """Cap every x, or weigh the users of a ratio, as the settings of the metric want it."""
        above, below = self.ratios[metric]
        cap = self.caps[metric]
        if below != ONE:
            weigh([p for its in points.values() for p in its], 0.99 if cap is None else cap)
        elif metric in SHARES:
            for point in (p for its in points.values() for p in its):
                point["x"] = int(point["x"] > 0)
        elif cap:
            unit = MICROS if above == "value" else UNITS.get(above, 1)
            if above.startswith("own "):
                unit = own_ratios.unit_of(self.settings, above.split()[1])
            capped(points, cap, unit)

    def before(self, last_day: int) -> dict[str, ArmTruth]:
        """Metric → sums over everybody on the days of the covariates up to a day, whatever the
        value of the dimension: of each user with an impression, from its day on."""
        days = range(self.experiment.covariates.start, last_day + 1)
        later: list[list[Did]] = []
        for did in self.did.values():
            shown = [d.day for d in did if d.component == "impressions" and d.day in days]
            if shown:
                later.append([d for d in did if min(shown) <= d.day <= last_day])
        out: dict[str, ArmTruth] = {}
        for metric, (above, below) in self.ratios.items():
            for name, age in self.ages_of(metric).items():
                points: list[dict[str, Any]] = []
                for did in later:
                    first = min(d.day for d in did)
                    its = [d for d in did if d.day - first in age]
                    x, y = amount(its, above), amount(its, below)
                    points.append({"n": 1, "x": x, "y": y, "u": 0, "v": 0})
                self.cap(metric, {"": points})
                out[name] = self.summed(metric, points)
        return out

    def moments(self, days: range) -> dict[tuple[str, str], dict[str, int]]:
        """(metric, arm) → sums of a composite, and `n` users."""
        out: dict[tuple[str, str], dict[str, int]] = {}
        for metric, ratios in self.composites.items():
            for arm in self.experiment.arms:
                users = [user for user in self.members[arm] if self.is_in(user, days)]
                points = [[self.point(user, r, arm, days) for r in ratios] for user in users]
                numbers = range(1, len(ratios) + 1)
                sides = ("xy", "uv") if self.experiment.covariates else ("xy",)
                names = [f"{letter}{i}" for side in sides for i in numbers for letter in side]
                held = [{n: point[int(n[1]) - 1][n[0]] for n in names} for point in points]
                found = {name: sum(its[name] for its in held) for name in names}
                for a, b in combinations_with_replacement(names, 2):
                    found[a + b] = sum(its[a] * its[b] for its in held)
                for i in numbers:
                    found[f"nz{i}"] = sum(its[f"x{i}"] != 0 for its in held)
                out[metric, arm] = found | {"n": len(users)}
        return out

    def is_in(self, user: User, days: range) -> bool:
        """Whether a user of an arm is compared on these days: once exposed, or with an impression
        that is attributed to the arm."""
        if self.experiment.outcomes == "attributed":
            (arm,) = self.arms_of(user, self.experiment.days)
            its = [did for did in self.did.get(user, ()) if did.component == "impressions"]
            return any(did.day in days and did.value == arm for did in its)
        first_ms = self.first_ms(user)
        return first_ms is not None and first_ms // DAY_MS < days.stop

    def point(
        self,
        user: User,
        ratio: tuple[str, str],
        arm: str,
        days: range,
        age: range = range(10**6),
    ) -> dict[str, Any]:
        """x, y, u and v of one user, of some days since his exposure, or his first that is
        attributed; before the experiment all counts."""
        all_of_user = self.did.get(user, [])
        its = self.counted_of(user, arm)
        first = (self.first_ms(user) or 0) // DAY_MS
        if self.experiment.outcomes == "attributed":
            first = min((did.day for did in its), default=0)
        counted = [did for did in its if did.day in days and did.day - first in age]
        x, y = (amount(counted, component) for component in ratio)
        u = v = 0
        if before := self.experiment.covariates:
            then = [did for did in all_of_user if did.day in before]
            u, v = (amount(then, component) for component in ratio)
        return {"n": 1, "x": x, "y": y, "u": u, "v": v}

    def counted_of(self, user: User, arm: str) -> list[Did]:
        """All that a user of the arm did that counts to it."""
        if user not in self.counted:
            its = (did for did in self.did.get(user, ()) if did.day in self.experiment.days)
            self.counted[user] = [did for did in its if self.counts(did, user, arm)]
        return self.counted[user]

    def counts(self, did: Did, user: User, arm: str) -> bool:
        """Whether something that a user of the arm did counts to it."""
        if self.experiment.outcomes == "attributed":
            return did.value == arm
        first_ms = self.first_ms(user)
        return first_ms is not None and did.event_ms >= first_ms


def amount(did: list[Did], component: str) -> int:
    """How much of a component it is."""
    if component in ("active days", "return days"):
        days = len({d.day for d in did if d.component == "impressions"})
        return days if component == "active days" else max(0, days - 1)
    return 1 if component == ONE else sum(d.amount for d in did if d.component == component)


def capped(points: dict[str, list[dict[str, Any]]], cap: float, unit: int) -> None:
    """Let every x be the cap at most, and as much below 0: an amount, or from a quantile over the
    users of all arms who have any."""
    users = [point for its in points.values() for point in its]
    if cap >= 1:
        most = round(cap * unit)
    else:
        values = sorted(point["x"] for point in users if point["x"] > 0)
        rank = math.ceil(Fraction(str(cap)) * len(values))
        if not values:
            return
        most = two_digits(values[rank - 1])
    for point in users:
        point["x"] = max(-most, min(point["x"], most))


def weigh(users: list[dict[str, Any]], cap: float) -> None:
    """Let users whose y is beyond the cap, an amount or a quantile over users who have any, count
    with less weight: as much less as the steps of the cap and of their y are apart."""
    ys = sorted(user["y"] for user in users if user["y"] > 0)
    if not cap or not ys:
        return
    most = cap if cap >= 1 else ys[math.ceil(Fraction(str(cap)) * len(ys)) - 1]
    last = step_of(round(most))
    for user in users:
        if (own := step_of(user["y"])) > last:
            weight = Fraction(last, own)
            user["x"], user["y"] = user["x"] * weight, user["y"] * weight


def step_of(value: int) -> int:
    """The least of 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100, 130, … that is as large."""
    steps = [round(10 ** (1 + k / 10)) for k in range(10)]
    return next(int(m * 10**e) for e in range(40) for m in steps if m * 10**e >= value)


def summed(points: list[dict[str, Any]], is_ratio: bool = False) -> ArmTruth:
    """Each sum adds up the products of the letters of its name."""
    totals: Counter[str] = Counter()
    for point in points:
        totals["nz"] += point["x"] != 0
        totals["ny"] += is_ratio and point["y"] != 0
        for sum_of in fields(ArmTruth):
            if sum_of.name not in ("nz", "ny", "edges", "values"):
                totals[sum_of.name] += prod(point[letter] for letter in sum_of.name)
    return ArmTruth(**totals)
