"""The metrics of one experiment, compared as its settings want, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.metrics.compared_metrics import ComparedRatio
from streamer.settings.durations import date_of
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.stats.experiments import readout, sizing, srm
from streamer.stats.experiments.caps import Exact, Largest
from streamer.stats.experiments.composite import composite_sums
from streamer.stats.experiments.forecast import Forecast, Growth, Precision, Sought
from streamer.stats.experiments.percentile import percentile_sums
from streamer.stats.experiments.periods import SplitSums, pooled
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.recommendation import (
    Decision,
    Judged,
)
from streamer.stats.experiments.sums import MOMENTS, ArmSums, BeforeSums
from streamer.stats.experiments.trials import AGES, CompiledExperiment, CumulatedSums, Measure

EFFECTS = (0.01, 0.02, 0.05, 0.1)
"""Relative lifts for which the days until they would be found are forecast."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Whole days from now until a relative lift would be found with the plan's power, looking at
    any time, whatever the lift is so far; None: not in sight."""

    effect: float
    days: int | None


@dataclass(frozen=True, slots=True)
class MidpointSums:
    """An experiment at half of its time: how the users of all arms have grown since, and the sums
    as they were."""

    growth: Growth
    sums: CumulatedSums


@dataclass(frozen=True, kw_only=True)
class MetricSums:
    """One metric of an experiment; ``role``: primary, guardrail or secondary. ``capped_at``: what a
    user counts for at most, in the metric's unit, or of a ratio in that of its denominator
    (``counted``); None where nobody counts for less than all. ``largest``: by arm the users with
    most of a ratio's denominator. ``form``: how its values are written; ``definition``: of one of
    ``[[ratios]]``, in words. ``denominator``: of a ratio or a mean over users, of all arms, users
    who are capped with their weight."""

    name: str
    role: str
    direction: str
    margin: float | None
    margin_absolute: float | None
    capped_at: float | None
    counted: str
    definition: str
    largest: Mapping[str, Largest]
    form: str
    denominator: int | None


@dataclass(frozen=True, kw_only=True)
class JudgedMetric(MetricSums):
    """The same compared; ``waits`` has an entry for each comparison; ``forecasts``: by arm, where
    they are known; ``ages``, ``periods``: of the primary metric the same by days since a user's
    first (``AGES``), and by periods of a ramp."""

    found: readout.MetricComparisons
    waits: Sequence[Sequence[Wait]]
    forecasts: Mapping[str, Forecast]
    ages: Mapping[str, readout.MetricComparisons]
    periods: Mapping[str, readout.MetricComparisons]


def compared(
    experiment: Experiment,
    trial: CompiledExperiment,
    ratios: Mapping[str, ComparedRatio],
    sums: CumulatedSums,
    past: MidpointSums | None,
    split: srm.Split,
    *,
    is_over: bool = False,
) -> list[JudgedMetric]:
    """Every metric: the primary one and each guardrail have alpha for themselves, the others share
    it. ``past``: what forecasts need, where it is known."""
    plan, found = plan_of(experiment, is_over=is_over), {}
    earlier = {}
    if past is not None:
        then = compared(experiment, trial, ratios, past.sums, None, split)
        earlier = {metric.name: metric.found for metric in then}
    alone = [(m,) for m in experiment.metrics if m not in experiment.secondary]
    for family in (*alone, experiment.secondary):
        judged = [
            (
                rule_of(experiment, metric, ratios[metric.name]),
                by_arm(trial, ratios[metric.name], sums),
            )
            for metric in family
        ]
        all_found = readout.compare_family(plan, judged, split)
        for metric, (_, arms), its in zip(family, judged, all_found, strict=True):
            forecasts = {}
            if past is not None:
                forecasts = _forecasts(past.growth, earlier[metric.name], its)
            ages, periods = _groups(experiment, plan, trial, ratios[metric.name], sums)
            found[metric.name] = JudgedMetric(
                name=metric.name,
                role=experiment.role_of(metric),
                direction=metric.direction,
                margin=metric.margin,
                margin_absolute=metric.margin_absolute,
                capped_at=_capped_at(metric, ratios[metric.name], sums),
                found=its,
                waits=[
                    _waits(plan, its.arms[0].value, c, forecasts.get(c.arm))
                    for c in its.comparisons
                ],
                forecasts=forecasts,
                counted=ratios[metric.name].counted,
                definition=ratios[metric.name].definition,
                form=ratios[metric.name].form,
                largest=_largest(trial, metric.name, sums),
                ages=ages,
                periods=periods,
                denominator=_denominator(ratios[metric.name], arms),
            )
    return [found[metric.name] for metric in experiment.metrics]


def without(
    experiment: Experiment,
    trial: CompiledExperiment,
    ratios: Mapping[str, ComparedRatio],
    sums: CumulatedSums,
    *,
    is_over: bool,
) -> dict[str, readout.MetricComparisons]:
    """The metrics that decide, by sums in which some days count less; no percentiles, for users
    move between buckets from day to day."""
    plan = plan_of(experiment, is_over=is_over)
    split = srm.split(dict.fromkeys(plan.split, 0), plan.shares)  # it is judged over all days
    found = {}
    for metric in (experiment.primary, *experiment.guardrails):
        ratio = ratios[metric.name]
        if ratio.percentile is None:
            judged = rule_of(experiment, metric, ratio), by_arm(trial, ratio, sums)
            (found[metric.name],) = readout.compare_family(plan, [judged], split)
    return found


def decision_of(
    experiment: Experiment,
    ratios: Mapping[str, ComparedRatio],
    metrics: Sequence[JudgedMetric],
    *,
    is_over: bool,
) -> Decision:
    """What is to be decided by these metrics, which count from the first day on."""
    rules = {m.name: rule_of(experiment, m, ratios[m.name]) for m in experiment.metrics}
    judged = {
        its.name: Judged(its.name, rules[its.name], its.found, its.forecasts) for its in metrics
    }
    primary = next(its for its in metrics if its.name == experiment.primary.name)
    return Decision(
        plan_of(experiment, is_over=is_over),
        judged[primary.name],
        [judged[metric.name] for metric in experiment.guardrails],
        experiment.min_lift,
        is_over,
        min_days=experiment.min_days,
        ages=[Judged(age, rules[primary.name], found) for age, found in primary.ages.items()],
    )


def by_arm(
    trial: CompiledExperiment, ratio: ComparedRatio, sums: CumulatedSums, age: str | None = None
) -> dict[str, ArmSums]:
    """The sums of a metric in each arm, as the statistics take them; of a ramp those of its periods
    as one."""
    if sums.periods:
        periods = [(shares, by_arm(trial, ratio, its, age)) for shares, its in sums.periods]
        return pooled([SplitSums(shares, its) for shares, its in periods])
    measure = next(m for m in trial.measures if (m.name, m.age) == (ratio.name, age))
    of_measure = sums.measures[measure.key]
    users = [counts["users"] for counts in sums.counts[1:]]
    if age is not None or measure.is_mature:
        users = list(sums.users_by_age[age or measure.key])
    if ratio.percentile is not None:
        both = zip(trial.arms, users, of_measure.users, strict=True)
        unit = 1 / ratio.unit
        return {arm: percentile_sums(n, its, ratio.percentile, unit) for arm, n, its in both}
    largest = of_measure.largest or [None] * len(users)
    return {
        arm: _arm_sums(trial, ratio, measure, n, held, its)
        for arm, n, held, its in zip(trial.arms, users, of_measure.arms, largest, strict=True)
    }


def _groups(
    experiment: Experiment,
    plan: Plan,
    trial: CompiledExperiment,
    ratio: ComparedRatio,
    sums: CumulatedSums,
) -> tuple[dict[str, readout.MetricComparisons], dict[str, readout.MetricComparisons]]:
    """The primary metric by days since a user's first, and by periods of a ramp, each with alpha
    for itself."""
    if ratio.name != experiment.primary.name:
        return {}, {}
    rule, ages = rule_of(experiment, experiment.primary, ratio), []
    if any(measure.age for measure in trial.measures):
        ages = [age for age in AGES if any(sums.users_by_age[age])]
    periods = zip(experiment.periods, sums.periods, strict=False)
    return (
        {age: readout.compare(plan, rule, by_arm(trial, ratio, sums, age)) for age in ages},
        {
            f"from {date_of(p.days.start)}": readout.compare(plan, rule, by_arm(trial, ratio, its))
            for p, (_, its) in periods
        },
    )


def _denominator(ratio: ComparedRatio, arms: Mapping[str, ArmSums]) -> int | None:
    if ratio.parts or ratio.percentile is not None:
        return None
    return sum(int(its.y) for its in arms.values())


def _largest(trial: CompiledExperiment, name: str, sums: CumulatedSums) -> dict[str, Largest]:
    found = zip(trial.arms, sums.measures[name].largest, strict=False)
    return {arm: its for arm, its in found if its is not None}


def _capped_at(metric: ExperimentMetric, ratio: ComparedRatio, sums: CumulatedSums) -> float | None:
    units = sums.measures[metric.name].capped_at
    if ratio.below is None and metric.cap is not None and metric.cap >= 1:
        return metric.cap
    return None if units is None else units / (ratio.unit if ratio.below is None else 1)


def plan_of(experiment: Experiment, *, is_over: bool) -> Plan:
    """The statistical plan that the settings ask for; ``is_over``: the last day is."""
    return Plan(
        experiment.control,
        {arm: experiment.shares[arm] for arm in experiment.arms},
        experiment.alpha,
        experiment.expected_users,
        experiment.power,
        experiment.decide == "at_end",
        is_over,
    )


def rule_of(experiment: Experiment, metric: ExperimentMetric, ratio: ComparedRatio) -> Rule:
    """How the settings want a metric to be judged."""
    return Rule(
        metric.direction == "higher",
        metric.margin,
        metric.margin_absolute,
        experiment.min_users,
        can_be_negative=ratio.is_signed,
        is_amount=not ratio.is_share,
        is_percentile=ratio.percentile is not None,
        is_ramp=len(experiment.periods) > 1,
        form=ratio.form,
    )


def _arm_sums(
    trial: CompiledExperiment,
    ratio: ComparedRatio,
    measure: Measure,
    users: int,
    moments: Mapping[str, Exact],
    largest: Largest | None,
) -> ArmSums:
    if ratio.parts:
        return composite_sums(users, moments, ratio.factors, len(trial.covariates) > 0)
    held = {name: moments[name] for name in trial.moments_of(measure)}
    x, xx, y, yy, xy = (held.pop(name) for name in MOMENTS)
    nonzero = int(held.pop("nz"))
    held.pop("ny", None)
    if ratio.below is None:  # users who did nothing at this age count, too
        y = yy = users
    before = BeforeSums(**held) if held else None
    scale = 1 / ratio.unit
    return ArmSums(users, x, xx, y, yy, xy, nonzero, scale, before, largest=largest)


def _forecasts(
    growth: Growth, then: readout.MetricComparisons, now: readout.MetricComparisons
) -> dict[str, Forecast]:
    """By arm, where the lift has a standard error at both times."""
    found = {}
    for earlier, comparison in zip(then.comparisons, now.comparisons, strict=True):
        first, last = earlier.absolute.stderr, comparison.absolute.stderr
        if first and last:
            both = Precision(first, then.arms[0].value), Precision(last, now.arms[0].value)
            found[comparison.arm] = Forecast(growth, *both)
    return found


def _waits(
    plan: Plan, control: float | None, comparison: readout.Comparison, forecast: Forecast | None
) -> list[Wait]:
    """``control``: the value of the control."""
    lift = comparison.absolute
    if lift.anytime is None or forecast is None or not control or control < 0:
        return []
    by, users = sizing.anytime(lift.anytime.alpha, plan.rho2), comparison.users
    return [
        Wait(effect, forecast.days_until(Sought(effect * control, users, by, plan.power)))
        for effect in EFFECTS
    ]
