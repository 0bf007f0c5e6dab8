"""What is shown of experiments: the package's own statistics, of the oracle's sums.

The statistics are held against other libraries elsewhere; here it is what goes into them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.settings.model import Settings
from streamer.stats.experiments.composite import composite_sums
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import (
    Comparison,
    MetricComparisons,
    compare,
    compare_family,
)
from streamer.stats.experiments.recommendation import (
    Decision,
    Judged,
    Recommendation,
    Reweighing,
    first_decision,
    recommend,
)
from streamer.stats.experiments.srm import leaning, split
from streamer.stats.experiments.sums import ArmSums, BeforeSums

from . import off_policy, own_ratios, percentiles, scores
from .acceptance import Acceptance
from .experiment_metrics import ONE, SHARES, parts_of, ratio_of, without_percentile
from .experiments import ArmTruth, ExperimentTruth, experiment_truth
from .joining import Joins
from .sink import Sink

RELATIVE = ("experiment_lift_ratio", "experiment_lower_ratio", "experiment_upper_ratio")
DIFFERENCE = (
    *("experiment_difference", "experiment_difference_lower"),
    "experiment_difference_upper",
)
SCORES = ("calibration_ratio", "log_loss", "mse", "mae", "classifier_")
EVENTS = (
    "zero_results_ratio",
    *("ctr", "cvr", "clicks_per_user", "conversions_per_user", "positive_rate_ratio"),
    *("bounce_rate_ratio", "views_per_session", "sessions_per_user", "active_days_per_user"),
    *("user_hit_ratio", "user_conversion_ratio", "user_return_ratio"),
)
"""Metrics whose numerators are events; the others' are milliseconds or millionths."""


def read_experiments(out: Sink, verdict: Acceptance, joins: Joins, settings: Settings) -> None:
    """The gauges of every experiment that has begun."""
    stream_ms = verdict.stream_time_ms()
    if stream_ms is None or not settings.experiments:
        return
    truth = experiment_truth(verdict, joins, settings)
    for experiment in settings.experiments:
        today = stream_ms // DAY_MS
        day = min(today, experiment.days.stop - 1)
        if day >= experiment.days.start:
            read_one(out, experiment, truth, day, settings, is_over=today > day)


def read_one(
    out: Sink,
    experiment: Experiment,
    truth: ExperimentTruth,
    day: int,
    settings: Settings,
    *,
    is_over: bool,
) -> None:
    name = {"experiment": experiment.name}
    out.put("experiment_users_in_several_arms", name, truth.mixed[experiment.name, day])
    early, unexposed = truth.outside[experiment.name, day]
    out.put("experiment_outside_outcomes", {**name, "reason": "before_exposure"}, early)
    out.put("experiment_outside_outcomes", {**name, "reason": "unexposed"}, unexposed)
    out.put("experiment_user_sample_ratio", name, 1.0)
    metrics = list(compared(truth, experiment, day, settings, is_over=is_over))
    advised = decided(truth, experiment, day, settings, is_over=is_over)
    advice = {"recommendation": str(advised.action), "arm": advised.arm or ""}
    out.put("experiment_recommendation", {**name, **advice}, 1)
    for number, (metric, found) in enumerate(metrics):
        if number == 0:
            for arm in found.arms:
                out.put("experiment_users", {**name, "arm": arm.name}, arm.users)
            for interval, p in (
                ("fixed", found.split.p_value_fixed),
                ("anytime", found.split.p_value),
            ):
                out.put("experiment_srm_pvalue", {**name, "interval": interval}, p)
        read_metric(out, {**name, "metric": metric.name}, found)


def compared(
    truth: ExperimentTruth,
    experiment: Experiment,
    day: int,
    settings: Settings,
    *,
    is_over: bool,
) -> Iterator[tuple[ExperimentMetric, MetricComparisons]]:
    """Every metric: the primary one and each guardrail for itself, the others together."""
    metrics, has_before = experiment.metrics, bool(experiment.covariates)
    free, primary = [m for m in metrics if m.margin is None], primary_of(metrics)
    plan = plan_of(experiment, is_over=is_over)
    judged = {
        m.name: (
            rule_of(m, settings),
            {
                arm: sums_of(truth, (experiment.name, m.name, arm, day), settings, has_before)
                for arm in experiment.arms
            },
        )
        for m in metrics
    }
    others = [m.name for m in free if m != primary]
    users = users_at(truth, experiment, day, settings)
    history = [
        (date_of(d), tuple(users_at(truth, experiment, d, settings).values()))
        for d in active_days(truth, experiment, day - 1)
    ]
    its = split(users, plan.shares, history, is_over=is_over)
    together = compare_family(plan, [judged[name] for name in others], its)
    found = dict(zip(others, together, strict=True))
    for m in metrics:
        if m.name not in found:
            (found[m.name],) = compare_family(plan, [judged[m.name]], its)
        yield m, found[m.name]


def users_at(
    truth: ExperimentTruth, experiment: Experiment, day: int, settings: Settings
) -> dict[str, int]:
    """Users of each arm up to the end of a day."""
    name, has_before = experiment.metrics[0].name, bool(experiment.covariates)
    keys = ((arm, (experiment.name, name, arm, day)) for arm in experiment.arms)
    return {arm: sums_of(truth, key, settings, has_before).n for arm, key in keys}


def active_days(truth: ExperimentTruth, experiment: Experiment, last: int) -> list[int]:
    """The days up to a last one on which a user did something."""
    days = [day for day in experiment.days if day <= last]
    active = [truth.active[experiment.name, day] for day in days]
    came = zip(days, pairwise([0, *active]), strict=True)
    return [day for day, (before, now) in came if now > before]


def primary_of(metrics: Sequence[ExperimentMetric]) -> ExperimentMetric:
    """The one that is named, else the first without a margin."""
    free = [m for m in metrics if m.margin is None]
    return ([m for m in metrics if m.primary] or free or list(metrics))[0]


def plan_of(experiment: Experiment, *, is_over: bool) -> Plan:
    return Plan(
        experiment.control,
        {arm: experiment.shares[arm] for arm in experiment.arms},
        experiment.alpha,
        experiment.expected_users,
        at_end=experiment.decide == "at_end",
        is_over=is_over,
    )


SIGNED = ("kendall_tau", "spearman_rho", "margin_loss", "doubly_robust", "composite")


def rule_of(metric: ExperimentMetric, settings: Settings) -> Rule:
    base, _, name = without_percentile(metric.name)[0].partition("@")
    is_own = base == "ratio" and own_ratios.may_be_below_0(settings, name)
    return Rule(
        metric.direction == "higher",
        metric.margin,
        metric.margin_absolute,
        can_be_negative=is_own or metric.name.startswith(SIGNED),
        is_amount=metric.name not in SHARES,
        is_percentile=without_percentile(metric.name)[1] is not None,
    )


def decided(
    truth: ExperimentTruth, experiment: Experiment, day: int, settings: Settings, *, is_over: bool
) -> Recommendation:
    """What to do, by the looks at the end of earlier days and that of now; how fast users come only
    says how long to wait."""
    today = day + is_over
    looks = []
    for earlier in experiment.days:
        before = truth.active.get((experiment.name, earlier - 1), 0)
        if earlier < day and truth.active[experiment.name, earlier] > before:
            found = advised(truth, experiment, earlier, settings, day, is_over=False)
            looks.append((date_of(earlier), found))
        if earlier >= day:
            break
    return first_decision(looks, advised(truth, experiment, day, settings, today, is_over=is_over))


def advised(
    truth: ExperimentTruth,
    experiment: Experiment,
    day: int,
    settings: Settings,
    today: int,
    *,
    is_over: bool,
) -> Recommendation:
    """At the end of a day, or of what there is of it."""
    found = list(compared(truth, experiment, day, settings, is_over=is_over))
    judged = {m.name: Judged(m.name, rule_of(m, settings), its) for m, its in found}
    primary = primary_of(experiment.metrics)
    guardrails = [m for m in experiment.metrics if has_margin(m) and m != primary]
    users = sum(arm.users for arm in found[0][1].arms)
    mixed = truth.mixed[experiment.name, day]
    days = active_days(truth, experiment, min(day, today - 1))
    is_weekend = {date_of(d).weekday() >= 5 for d in days}
    missing = "" if len(is_weekend) == 2 else "weekdays" if True in is_weekend else "weekend days"
    left = None
    if experiment.whole_weeks and days:
        ended = min(day + 1, today) - days[0]
        left = 0 if day < today and ended % 7 == 0 else 7 - ended % 7
    return recommend(
        Decision(
            plan_of(experiment, is_over=is_over),
            judged[primary.name],
            [judged[m.name] for m in guardrails],
            experiment.min_lift,
            is_over,
            len(days),
            experiment.min_days,
            mixed / (mixed + users) if mixed + users else 0.0,
            list(by_age(truth, experiment, primary, day, settings, is_over=is_over)),
            list(without_days(truth, experiment, day, settings, is_over=is_over)),
            left,
            missing if experiment.whole_weeks else "",
            leaning=leaning(truth.began[experiment.name, day], experiment.shares),
        )
    )


def without_days(
    truth: ExperimentTruth, experiment: Experiment, day: int, settings: Settings, *, is_over: bool
) -> Iterator[Reweighing]:
    """The metrics that decide, without what was done on each day in turn; who came then stays."""
    plan, has_before = plan_of(experiment, is_over=is_over), bool(experiment.covariates)
    primary = primary_of(experiment.metrics)
    deciding = [m for m in experiment.metrics if m == primary or has_margin(m)]
    users = dict.fromkeys(plan.split, 0)
    for gone in active_days(truth, experiment, day):
        found = {}
        for m in deciding:
            if without_percentile(m.name)[1] is not None or m.name.startswith("composite@"):
                continue
            arms = {}
            for arm in experiment.arms:
                now, then, before = (
                    truth.sums.get((experiment.name, m.name, arm, d), ArmTruth())
                    for d in (day, gone, gone - 1)
                )
                did = ["x", "xx", "xu", "xv"]
                if not ratio_of_users(m.name, settings):
                    did += ["y", "yy", "xy", "yu", "yv"]
                less = {n: getattr(now, n) - getattr(then, n) + getattr(before, n) for n in did}
                if ratio_of_users(m.name, settings):
                    less["xy"] = less["x"]
                arms[arm] = as_sums(m.name, replace(now, **less), settings, has_before)
            judged = rule_of(m, settings), arms
            (found[m.name],) = compare_family(plan, [judged], split(users, plan.shares))
        yield Reweighing(f"without {date_of(gone)}", found, date_of(gone))


def by_age(
    truth: ExperimentTruth,
    experiment: Experiment,
    primary: ExperimentMetric,
    day: int,
    settings: Settings,
    *,
    is_over: bool,
) -> Iterator[Judged]:
    """The primary metric by days since a user's first."""
    if primary.name.startswith("composite@"):
        return
    for age, start in (("first day", 0), ("days 2-3", 1), ("days 4-7", 3), ("later", 7)):
        arms = {}
        for arm in experiment.arms:
            key = experiment.name, primary.name, arm, day - start
            users = truth.sums[key].n if key in truth.sums else 0
            its = truth.sums[experiment.name, f"{primary.name} {age}", arm, day]
            its = replace(its, n=users)
            if ratio_of_users(primary.name, settings):
                its = replace(its, y=users, yy=users)
            arms[arm] = as_sums(primary.name, its, settings, bool(experiment.covariates))
        if any(sums.n for sums in arms.values()):
            yield Judged(
                age,
                rule_of(primary, settings),
                compare(plan_of(experiment, is_over=is_over), rule_of(primary, settings), arms),
            )


def ratio_of_users(metric: str, settings: Settings) -> bool:
    """Whether it is a mean over users."""
    return ratio_of(metric, settings)[1] == ONE


def has_margin(metric: ExperimentMetric) -> bool:
    return metric.margin is not None or metric.margin_absolute is not None


def sums_of(
    truth: ExperimentTruth, key: tuple[str, str, str, int], settings: Settings, has_before: bool
) -> ArmSums:
    """What is known of an arm; of composites the package's own sums, of the oracle's products."""
    if key not in truth.moments:
        return as_sums(key[1], truth.sums[key], settings, has_before)
    moments = truth.moments[key]
    factors = [Fraction(c) / unit_of(part, settings) for part, c in parts_of(key[1], settings)]
    return composite_sums(moments["n"], moments, factors, has_before)


def as_sums(metric: str, sums: ArmTruth, settings: Settings, has_before: bool) -> ArmSums:
    metric, share = without_percentile(metric)
    if share is not None:
        nothing = (0,) * (sums.n - len(sums.values))  # of users who did nothing at an age
        return percentiles.read((*sums.values, *nothing), share, 1 / unit_of(metric, settings))
    before = BeforeSums(
        **{n: getattr(sums, n) for n in ("u", "v", "uu", "uv", "vv", "xu", "xv", "yu", "yv")}
    )
    return ArmSums(
        **{n: getattr(sums, n) for n in ("n", "x", "xx", "y", "yy", "xy")},
        nonzero=sums.nz,
        x_scale=1 / unit_of(metric, settings),
        before=before if has_before else None,
    )


def unit_of(metric: str, settings: Settings) -> int:
    """How many units of a numerator are 1."""
    if metric in ("dwell_mean_seconds", "dwell_seconds_per_user", "session_length_mean_seconds"):
        return 1000
    if metric.startswith(SCORES):
        return scores.unit_of(metric)
    if metric.partition("@")[0] in off_policy.PARTS:
        return off_policy.unit_of(metric)
    if metric.startswith("ratio@"):
        return own_ratios.unit_of(settings, without_percentile(metric)[0].partition("@")[2])
    return 1 if metric.startswith(EVENTS) else 1_000_000


def read_metric(out: Sink, labels: dict[str, str], found: MetricComparisons) -> None:
    for arm in found.arms:
        if arm.shown is not None:
            out.put("experiment_value", {**labels, "arm": arm.name}, arm.shown)
    for comparison in found.comparisons:
        read_comparison(out, {**labels, "arm": comparison.arm}, comparison)


def read_comparison(out: Sink, labels: dict[str, str], comparison: Comparison) -> None:
    outcome = str(comparison.verdict.outcome)
    out.put("experiment_verdict", {**labels, "verdict": outcome}, 1)
    for names, lift in ((RELATIVE, comparison.relative), (DIFFERENCE, comparison.absolute)):
        for interval, inference in (("fixed", lift.fixed), ("anytime", lift.anytime)):
            if inference is not None and lift.value is not None:
                of = {**labels, "interval": interval}
                for name, value in zip(
                    names, (lift.value, inference.low, inference.high), strict=True
                ):
                    out.put(name, of, value)
                if names is DIFFERENCE:
                    out.put("experiment_pvalue", of, inference.p_adjusted)
