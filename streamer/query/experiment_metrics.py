"""The metrics of one experiment, compared as its settings want, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamer.metrics.per_user import UserRatio
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.stats.experiments import power, readout
from streamer.stats.experiments.composite import composite_sums
from streamer.stats.experiments.forecast import Forecast, Precision
from streamer.stats.experiments.growth import Growth
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.recommendation import Decision, Judged, Recommendation, recommend
from streamer.stats.experiments.sums import ArmSums, BeforeSums
from streamer.stats.experiments.trials import Trial

Sums = Sequence[Mapping[str, int]]
"""Of no arm, and of each, as ``trials.cumulated`` has them."""
EFFECTS = (0.01, 0.02, 0.05, 0.1)
"""Relative lifts for which the days until they would be found are forecast."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Whole days from now until a relative lift would be found with the plan's power, looking at
    any time; None: not in sight."""

    effect: float
    days: int | None


@dataclass(frozen=True, slots=True)
class Past:
    """An experiment at half of its time: how the users of all arms have grown since, and the sums
    as they were."""

    growth: Growth
    sums: Sums


@dataclass(frozen=True, slots=True)
class MetricReadout:
    """One metric of an experiment; ``role``: primary, guardrail or secondary; ``waits`` has an
    entry for each comparison. ``capped_at``: what a user counts for at most, in the metric's unit;
    None where nobody is capped by a quantile."""

    name: str
    role: str
    direction: str
    margin: float | None
    margin_absolute: float | None
    capped_at: float | None
    found: readout.Readout
    waits: Sequence[Sequence[Wait]]
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    """By arm, where they are known."""


def compared(
    experiment: Experiment,
    trial: Trial,
    ratios: Mapping[str, UserRatio],
    sums: Sums,
    past: Past | None,
) -> list[MetricReadout]:
    """Every metric: the primary one and each guardrail have alpha for themselves, the others share
    it. ``past``: what forecasts need, where it is known."""
    plan, found = plan_of(experiment), {}
    earlier = {}
    if past is not None:
        then = compared(experiment, trial, ratios, past.sums, None)
        earlier = {metric.name: metric.found for metric in then}
    alone = [(m,) for m in experiment.metrics if m not in experiment.secondary]
    for family in (*alone, experiment.secondary):
        judged = [
            (rule_of(experiment, metric), _by_arm(trial, ratios[metric.name], sums))
            for metric in family
        ]
        for metric, its in zip(family, readout.compare_family(plan, judged), strict=True):
            forecasts = {}
            if past is not None:
                forecasts = _forecasts(past.growth, earlier[metric.name], its)
            found[metric.name] = MetricReadout(
                name=metric.name,
                role=experiment.role_of(metric),
                direction=metric.direction,
                margin=metric.margin,
                margin_absolute=metric.margin_absolute,
                capped_at=_capped_at(metric, ratios[metric.name], sums[0]),
                found=its,
                waits=[
                    _waits(plan, its.arms[0].value, c, forecasts.get(c.arm))
                    for c in its.comparisons
                ],
                forecasts=forecasts,
            )
    return [found[metric.name] for metric in experiment.metrics]


def recommended(
    experiment: Experiment,
    metrics: Sequence[MetricReadout],
    *,
    is_over: bool,
) -> Recommendation:
    """What to do, by these metrics from the first day on."""
    judged = {
        metric.name: Judged(metric.name, rule_of(experiment, metric), its.found, its.forecasts)
        for metric, its in zip(experiment.metrics, metrics, strict=True)
    }
    return recommend(
        Decision(
            plan_of(experiment),
            judged[experiment.primary.name],
            [judged[metric.name] for metric in experiment.guardrails],
            experiment.min_lift,
            is_over,
        )
    )


def _by_arm(trial: Trial, ratio: UserRatio, sums: Sums) -> dict[str, ArmSums]:
    return {
        arm: arm_sums(trial, ratio, of_arm)
        for arm, of_arm in zip(trial.arms, sums[1:], strict=True)
    }


def _capped_at(metric: ExperimentMetric, ratio: UserRatio, sums: Mapping[str, int]) -> float | None:
    if metric.cap is None or metric.cap >= 1:
        return metric.cap
    units = sums.get(f"{metric.name} cap")
    return None if units is None else units / ratio.unit


def plan_of(experiment: Experiment) -> Plan:
    """The statistical plan that the settings ask for."""
    split = {arm: experiment.split[arm] for arm in experiment.arms}
    return Plan(
        experiment.control, split, experiment.alpha, experiment.expected_users, experiment.power
    )


def rule_of(experiment: Experiment, metric: ExperimentMetric) -> Rule:
    """How the settings want a metric to be judged."""
    return Rule(
        metric.direction == "higher", metric.margin, metric.margin_absolute, experiment.min_users
    )


def arm_sums(trial: Trial, ratio: UserRatio, sums: Mapping[str, int]) -> ArmSums:
    """The sums of one arm, as the statistics take them."""
    (measure,) = (measure for measure in trial.measures if measure.name == ratio.name)
    held = {moment: sums[f"{ratio.name} {moment}"] for moment in trial.moments_of(measure)}
    if ratio.parts:
        return composite_sums(sums["users"], held, ratio.factors, len(trial.covariates) > 0)
    main = {name: held.pop(name) for name in ("x", "xx", "y", "yy", "xy")}
    nonzero = held.pop("nz")
    before = BeforeSums(**held) if held else None
    return ArmSums(n=sums["users"], **main, nonzero=nonzero, x_scale=1 / ratio.unit, before=before)


def _forecasts(growth: Growth, then: readout.Readout, now: readout.Readout) -> dict[str, Forecast]:
    """By arm, where the lift has a standard error at both times."""
    found = {}
    for earlier, comparison in zip(then.comparisons, now.comparisons, strict=True):
        first, last = earlier.deciding.absolute.stderr, comparison.deciding.absolute.stderr
        if first and last:
            both = Precision(first, then.arms[0].value), Precision(last, now.arms[0].value)
            found[comparison.arm] = Forecast(growth, *both)
    return found


def _waits(
    plan: Plan, control: float | None, comparison: readout.Comparison, forecast: Forecast | None
) -> list[Wait]:
    """``control``: the value of the control."""
    lift = comparison.deciding.absolute
    if lift.anytime is None or forecast is None or not control or control < 0:
        return []
    by, users = power.anytime(lift.anytime.alpha, plan.rho2), comparison.users
    return [
        Wait(effect, forecast.days_until(effect * control, users, by, plan.power))
        for effect in EFFECTS
    ]
