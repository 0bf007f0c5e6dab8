"""The readout of one metric of an experiment: every arm, every comparison with the control.

>>> users = {"A": [(1, 10), (0, 10)] * 400, "B": [(2, 10), (1, 10)] * 400}
>>> sums = {arm: ArmSums.of(those) for arm, those in users.items()}
>>> found = compare(Plan("A", {"A": 1, "B": 1}), Rule(), sums)
>>> found.arms[1].value, found.comparisons[0].absolute.value
(0.15, 0.1)
>>> print(found.comparisons[0].verdict.outcome)
better
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

from streamer.stats.experiments import sizing, srm, support
from streamer.stats.experiments.converters import Converters, converters
from streamer.stats.experiments.estimate import Estimate, Inference, Lifts, estimates, guardrails
from streamer.stats.experiments.lift import Adjusted, Pair, adjusted
from streamer.stats.experiments.percentile import nearest
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Detectable, Evidence, Scale, Verdict, verdict


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm by itself: its users, and the metric with its standard error. ``shown``: the value as
    it is shown, of a percentile in whole units; lifts are of ``value``, between two of them.

    What is not defined is None, and ``reason`` says why.
    """

    name: str
    users: int
    value: float | None
    stderr: float | None
    reason: str = ""
    shown: float | None = None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What the time before explains of the lifts (CUPED), as a share of the variance of the
    absolute one; None where nothing was adjusted, and ``reason`` says why. ``unadjusted``: the
    lifts with it."""

    explained: float | None
    reason: str
    unadjusted: Lifts


@dataclass(frozen=True, slots=True)
class Comparison:
    """One treatment against the control. The lifts are those that are judged: less what the time
    before explains, where there are sums of it (``adjustment``). ``interval``: the one that
    decides, of the lift that is shown.

    ``guardrail``, with a margin: R_t - (1 - margin) R_c, or R_t - R_c + margin of an absolute one,
    at any time, in the unit of the metric; above 0 a loss as large as the margin is excluded. Where
    lower is better the margin has the other sign, and the loss is excluded below 0.
    ``converters``: the users with a value, of metrics that cannot be negative; of ratios only where
    the treatment has none.
    """

    arm: str
    users: int
    absolute: Estimate
    relative: Estimate
    interval: Inference | None
    adjustment: Adjustment | None
    guardrail: Inference | None
    converters: Converters | None
    detectable: Detectable
    verdict: Verdict

    @property
    def is_lost(self) -> bool:
        """Whether nobody in the treatment has any of what is certain to be had."""
        who = self.converters
        return who is not None and not who.treatment and who.high is not None and who.high < 0

    @property
    def shown(self) -> Estimate:
        """The one that is shown beside the verdict."""
        return self.relative if self.verdict.scale is Scale.RELATIVE else self.absolute


@dataclass(frozen=True, slots=True)
class MetricComparisons:
    """One metric: the split of the users, all arms, all comparisons, in the order of the plan."""

    control: str
    split: srm.Split
    arms: list[Arm]
    comparisons: list[Comparison]


def compare(plan: Plan, rule: Rule, sums: Mapping[str, ArmSums]) -> MetricComparisons:
    """Compare all arms of the plan: their sums of one metric, which has alpha for itself."""
    (found,) = compare_family(plan, [(rule, sums)])
    return found


def compare_family(
    plan: Plan,
    metrics: Sequence[tuple[Rule, Mapping[str, ArmSums]]],
    split: srm.Split | None = None,
) -> list[MetricComparisons]:
    """Compare all arms by several metrics whose lifts share alpha: Holm over arms and metrics.
    Guardrails, by their margin, have it for themselves. ``split``: of the users over time; else
    that of those who are in the sums."""
    measured = [_measured(plan, rule, sums) for rule, sums in metrics]
    pairs = [pair for its in measured for pair in its.pairs]
    chosen = [pair for its in measured for pair in its.chosen]
    raw = estimates(plan, pairs)
    decides = estimates(plan, chosen) if any(its.adjusted for its in measured) else raw
    count = len(plan.treatments)
    return [
        _readout(plan, its, raw[i * count :], decides[i * count :], split)
        for i, its in enumerate(measured)
    ]


@dataclass(frozen=True, slots=True)
class _Measured:
    """One metric: a pair for each treatment, and what CUPED makes of it; nothing without sums of
    the time before."""

    rule: Rule
    arms: dict[str, Arm]
    pairs: list[Pair]
    converters: list[Converters | None]
    adjusted: list[Adjusted]

    @property
    def chosen(self) -> list[Pair]:
        """The pairs that decide."""
        return [its.pair for its in self.adjusted] or self.pairs


def _measured(plan: Plan, rule: Rule, sums: Mapping[str, ArmSums]) -> _Measured:
    arms = {name: _arm(rule, name, sums[name]) for name in plan.split}
    sums_of = [(sums[name], sums[plan.control]) for name in plan.treatments]
    pairs = [_pair(rule, *both) for both in sums_of]
    named = [(name, *both) for name, both in zip(plan.treatments, sums_of, strict=True)]
    who: list[Converters | None] = [None] * len(named)
    if not (rule.can_be_negative or rule.is_percentile or rule.is_ramp):
        who = converters(plan, named)
    if any(control.before is None for _, control in sums_of):
        return _Measured(rule, arms, pairs, who, [])
    made = [adjusted(pair, *both) for pair, both in zip(pairs, sums_of, strict=True)]
    return _Measured(rule, arms, pairs, who, made)


def _readout(
    plan: Plan,
    its: _Measured,
    raw: Sequence[Lifts],
    decides: Sequence[Lifts],
    split: srm.Split | None,
) -> MetricComparisons:
    """Of one metric; ``raw`` and ``decides`` begin with the lifts of its treatments."""
    arms = its.arms
    if split is None:
        split = srm.split({name: max(0, arm.users) for name, arm in arms.items()}, plan.shares)
    limits = _guardrails(plan, its.rule, its.chosen)
    comparisons = []
    for i, name in enumerate(plan.treatments):
        both = arms[name], arms[plan.control]
        who = its.converters[i]
        evidence = _evidence(plan, its.rule, both, decides[i], limits[i], who)
        least, its_verdict = evidence.least, verdict(plan, its.rule, split, evidence)
        users = sum(arm.users for arm in both)
        judged, adjustment = decides[i], None
        if its.adjusted:
            adjustment = Adjustment(its.adjusted[i].explained, its.adjusted[i].reason, raw[i])
        comparisons.append(
            Comparison(
                arm=name,
                users=users,
                absolute=judged.absolute,
                relative=judged.relative,
                interval=evidence.interval,
                adjustment=adjustment,
                guardrail=limits[i],
                converters=who,
                detectable=least,
                verdict=its_verdict,
            )
        )
    return MetricComparisons(plan.control, split, list(arms.values()), comparisons)


def _arm(rule: Rule, name: str, sums: ArmSums) -> Arm:
    its = ratio(sums)
    value = shown = None if its.value is None else float(its.value) * sums.x_scale
    if its.value is not None and rule.is_percentile:
        shown = nearest(its.value) * sums.x_scale
    stderr = None if its.variance is None else sqrt(its.variance) * sums.x_scale
    return Arm(name, sums.n, value, stderr, its.reason, shown)


def _pair(rule: Rule, treatment: ArmSums, control: ArmSums) -> Pair:
    return Pair(
        ratio(treatment),
        ratio(control),
        control.x_scale,
        no_interval=support.no_interval(treatment, control),
        no_anytime=support.no_anytime(treatment, control, rule.min_users),
        no_relative=support.no_relative(treatment, control),
        least=-inf if rule.can_be_negative else -1.0,
    )


def _guardrails(plan: Plan, rule: Rule, pairs: Sequence[Pair]) -> Sequence[Inference | None]:
    return guardrails(plan, pairs, *rule.limit) if rule.is_guardrail else [None] * len(pairs)


def _evidence(
    plan: Plan,
    rule: Rule,
    arms: tuple[Arm, Arm],
    lifts: Lifts,
    guardrail: Inference | None,
    who: Converters | None,
) -> Evidence:
    treatment, control = arms
    both = (control.users, treatment.users)
    least = _detectable(plan, lifts.absolute, sum(both), control.value)
    of = treatment.name, both, lifts, guardrail, least, plan, who, control.value
    return Evidence(*of, rule.form)


def _detectable(plan: Plan, found: Estimate, users: int, control: float | None) -> Detectable:
    """At the level of the arm's interval."""
    if found.stderr is None or found.anytime is None:
        return Detectable(None, None)
    by = sizing.anytime(found.anytime.alpha, plan.rho2)
    least = sizing.detectable(found.stderr, users, by, plan.power)
    return Detectable(least, least / control if control is not None and control > 0 else None)
