"""Experiments: for each metric, arm and day the sums over users that everything is computed from.

A user belongs to the arm that he saw. Who saw several is mixed, and left out altogether.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from math import prod

from streamer.config import Settings
from streamer.experiment_settings import DAY_MS, Experiment

from .acceptance import Acceptance, accept
from .dimensions import Kept
from .joining import Joins, join
from .shape import Record
from .user_days import (
    Did,
    Fact,
    User,
    UserDays,
    facts_of,
    measures_of,
    slates_in,
    user_days,
)

ONE = "1"
"""The denominator of metrics per user."""
RATIOS = {
    "ctr_ratio": ("clicks", "impressions"),
    "ctr_attributed_ratio": ("clicked", "impressions"),
    "cvr_ratio": ("conversions", "clicks"),
    "cvr_attributed_ratio": ("converted", "clicked"),
    "clicks_per_user": ("clicks", ONE),
    "conversion_value_per_user": ("value", ONE),
    "conversion_value_per_click": ("value", "clicks"),
    "conversion_value_per_impression": ("value", "impressions"),
    "dwell_mean_seconds": ("dwell", "viewings"),
}
"""Metric → (numerator, denominator); those with options are not here."""


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


@dataclass
class ExperimentTruth:
    """``sums``: by experiment, metric, arm and day; ``mixed`` users: by experiment and day.

    Every day is there, from an experiment's start to its end or to the day of stream time.
    """

    sums: dict[tuple[str, str, str, int], ArmTruth] = field(default_factory=dict)
    mixed: dict[tuple[str, int], int] = field(default_factory=dict)


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
    kept = Kept(verdict.events, settings)
    facts = list(facts_of(verdict, joins, kept, settings))
    for experiment in settings.experiments:
        trial = Trial(experiment, facts, kept, settings)
        for day in experiment.days:
            if day <= stream_ms // DAY_MS:
                so_far = range(experiment.days.start, day + 1)
                out.mixed[experiment.name, day] = trial.mixed_by(day)
                for (metric, arm), sums in trial.sums(so_far).items():
                    out.sums[experiment.name, metric, arm, day] = sums
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
    if not verdict.events:
        return {}
    experiment = next(e for e in settings.experiments if e.name == name)
    days = range(first_day, last_day + 1)
    assert set(days) <= set(experiment.days), (days, experiment.days)
    kept = Kept(verdict.events, settings)
    facts = list(facts_of(verdict, joins, kept, settings))
    return Trial(experiment, facts, kept, settings).sums(days)


class Trial:
    """One experiment, and what its users did."""

    def __init__(
        self, experiment: Experiment, facts: list[Fact], kept: Kept, settings: Settings
    ) -> None:
        self.experiment = experiment
        dimension = settings.dimension_names.index(experiment.dimension)
        self.did: UserDays = user_days(facts, kept, dimension)
        self.ratios = {m.name: ratio_of(m.name, settings) for m in experiment.metrics}
        self.members: dict[str, list[User]] = defaultdict(list)
        self.mixed: list[User] = []
        for user in self.did:
            arms = self.arms_of(user, experiment.days)
            if len(arms) == 1:
                self.members[arms[0]].append(user)
            elif arms:
                self.mixed.append(user)

    def arms_of(self, user: User, days: range) -> list[str]:
        """The arms of which the user had an impression on these days."""
        did = self.did[user]
        return [arm for arm in self.experiment.arms if amount(did, "impressions", days, arm)]

    def mixed_by(self, day: int) -> int:
        """How many of the mixed users had an impression of any arm by the end of a day."""
        so_far = range(self.experiment.days.start, day + 1)
        return sum(bool(self.arms_of(user, so_far)) for user in self.mixed)

    def sums(self, days: range) -> dict[tuple[str, str], ArmTruth]:
        """(metric, arm) → sums over the users who had an impression of the arm on these days."""
        out = {}
        for arm in self.experiment.arms:
            users = [user for user in self.members[arm] if self.arms_of(user, days)]
            for metric, ratio in self.ratios.items():
                points = [self.point(self.did[user], ratio, arm, days) for user in users]
                out[metric, arm] = summed(points)
        return out

    def point(self, did: Did, ratio: tuple[str, str], arm: str, days: range) -> dict[str, int]:
        """x, y, u and v of one user; before the experiment all values of the dimension count."""
        top, bottom = ratio
        x, y = amount(did, top, days, arm), amount(did, bottom, days, arm)
        u = v = 0
        before = self.experiment.covariates
        if before:
            u, v = amount(did, top, before), amount(did, bottom, before)
        return {"n": 1, "x": x, "y": y, "u": u, "v": v}


def amount(did: Did, component: str, days: range, value: str | None = None) -> int:
    """What a user did of a component on these days, under one value of the dimension or any."""
    if component == ONE:
        return 1
    return sum(
        components[component]
        for (day, under), components in did.items()
        if day in days and value in (None, under)
    )


def summed(points: list[dict[str, int]]) -> ArmTruth:
    """Each sum adds up the products of the letters of its name."""
    totals: Counter[str] = Counter()
    for point in points:
        for sum_of in fields(ArmTruth):
            totals[sum_of.name] += prod(point[letter] for letter in sum_of.name)
    return ArmTruth(**totals)


# Names of metrics -----------------------------------------------------------------------------


def ratio_of(metric: str, settings: Settings) -> tuple[str, str]:
    """(numerator, denominator) of a metric of the settings: `base[@k][.option…]`.

    ValueError if the settings have no such metric.
    """
    if metric in RATIOS:
        return RATIOS[metric]
    base, _, kind = metric.partition(".")
    if base == "positive_rate_ratio":
        return f"feedback.{kind or 'click'}", "impressions"
    return slate_ratio_of(metric, settings)


def slate_ratio_of(metric: str, settings: Settings) -> tuple[str, str]:
    """Means over slates: of all of them where there is such a mean, else of the population."""
    base, *options = metric.split(".")
    component = ".".join([base, *(o for o in options if o not in ("all", "engaged"))])
    measure = measures_of(settings).get(component)
    if measure is None:
        raise ValueError(f"metric {metric!r}: no {component!r} under these settings")
    populations = ["all"] if measure.over_all else []
    populations.append(measure.population)
    chosen = [o for o in options if o in ("all", "engaged")] or populations[:1]
    if len(chosen) > 1 or chosen[0] not in populations:
        raise ValueError(f"metric {metric!r}: over {chosen}; there are {populations}")
    return component, slates_in(chosen[0])
