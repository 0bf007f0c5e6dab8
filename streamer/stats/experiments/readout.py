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
from math import sqrt

from streamer.stats.experiments import power, srm, support
from streamer.stats.experiments.cuped import Adjusted, adjusted
from streamer.stats.experiments.estimate import Estimate, Inference, Lifts, estimates, guardrails
from streamer.stats.experiments.lift import Pair
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Evidence, Scale, Verdict, verdict


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm by itself: its users, and the metric with its standard error.

    What is not defined is None, and ``reason`` says why.
    """

    name: str
    users: int
    value: float | None
    stderr: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AdjustedLifts:
    """Both lifts less what the time before explains (CUPED), and the share of the variance that it
    explains of the absolute one; None where nothing was adjusted, and ``reason`` says why."""

    absolute: Estimate
    relative: Estimate
    explained: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Detectable:
    """The least lifts that these users would show with the power of the plan, at a single look and
    by the interval that holds at every look; the relative ones as shares of the control's value."""

    absolute_fixed: float | None
    absolute_anytime: float | None
    relative_fixed: float | None
    relative_anytime: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One treatment against the control. ``adjusted`` is None without sums of the time before;
    otherwise it is what ``guardrail``, ``detectable`` and ``verdict``
    speak of.

    ``guardrail``, with a margin: R_t - (1 - margin) R_c at any time, in the unit of the metric;
    above 0 a loss as large as the margin is excluded. Where lower is better it is
    R_t - (1 + margin) R_c, and excluded below 0.
    """

    arm: str
    users: int
    absolute: Estimate
    relative: Estimate
    adjusted: AdjustedLifts | None
    guardrail: Inference | None
    detectable: Detectable
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Readout:
    """One metric: the split of the users, all arms, all comparisons, in the order of the plan."""

    control: str
    split: srm.Split
    arms: list[Arm]
    comparisons: list[Comparison]


def compare(plan: Plan, rule: Rule, sums: Mapping[str, ArmSums]) -> Readout:
    """Compare all arms of the plan: their sums of one metric."""
    arms = {name: _arm(name, sums[name]) for name in plan.split}
    split = srm.split({name: max(0, arm.users) for name, arm in arms.items()}, plan.shares)
    sums_of = [(sums[name], sums[plan.control]) for name in plan.treatments]
    pairs = [_pair(rule, *both) for both in sums_of]
    raw, sharper = estimates(plan, pairs), _adjusted(plan, pairs, sums_of)
    decides = [its.lifts for its in sharper] or raw
    chosen = [its.made.pair for its in sharper] or pairs
    limits = _guardrails(plan, rule, chosen)
    comparisons = []
    for i, name in enumerate(plan.treatments):
        its_arms = arms[name], arms[plan.control]
        least, its_verdict = _judged(plan, rule, split, its_arms, decides[i], limits[i])
        users = sum(arm.users for arm in its_arms)
        adjustment = sharper[i].shown if sharper else None
        lifts = raw[i].absolute, raw[i].relative
        comparisons.append(
            Comparison(name, users, *lifts, adjustment, limits[i], least, its_verdict)
        )
    return Readout(plan.control, split, list(arms.values()), comparisons)


def _arm(name: str, sums: ArmSums) -> Arm:
    its = ratio(sums)
    value = None if its.value is None else float(its.value) * sums.x_scale
    stderr = None if its.variance is None else sqrt(its.variance) * sums.x_scale
    return Arm(name, sums.n, value, stderr, its.reason)


def _pair(rule: Rule, treatment: ArmSums, control: ArmSums) -> Pair:
    return Pair(
        ratio(treatment),
        ratio(control),
        control.x_scale,
        no_interval=support.no_interval(treatment, control),
        no_anytime=support.no_anytime(treatment, control, rule.min_users),
        no_relative=support.no_relative(treatment, control),
    )


@dataclass(frozen=True, slots=True)
class _Sharper:
    """A pair with its time before, and its lifts."""

    made: Adjusted
    lifts: Lifts

    @property
    def shown(self) -> AdjustedLifts:
        """The adjusted lifts as a readout shows them."""
        lifts, made = self.lifts, self.made
        return AdjustedLifts(lifts.absolute, lifts.relative, made.explained, made.reason)


def _adjusted(
    plan: Plan, pairs: Sequence[Pair], sums_of: Sequence[tuple[ArmSums, ArmSums]]
) -> list[_Sharper]:
    """Of all treatments; none without sums of the time before."""
    if any(control.before is None for _, control in sums_of):
        return []
    made = [adjusted(pair, *both) for pair, both in zip(pairs, sums_of, strict=True)]
    lifts = estimates(plan, [its.pair for its in made])
    return [_Sharper(*both) for both in zip(made, lifts, strict=True)]


def _guardrails(plan: Plan, rule: Rule, pairs: Sequence[Pair]) -> Sequence[Inference | None]:
    if rule.margin is None:
        return [None] * len(pairs)
    weight = 1 - rule.margin if rule.higher_is_better else 1 + rule.margin
    return guardrails(plan, pairs, weight)


def _judged(
    plan: Plan,
    rule: Rule,
    split: srm.Split,
    arms: tuple[Arm, Arm],
    lifts: Lifts,
    guardrail: Inference | None,
) -> tuple[Detectable, Verdict]:
    treatment, control = arms
    both = (control.users, treatment.users)
    least = _detectable(plan, lifts.absolute, sum(both), control.value)
    by_scale = {Scale.RELATIVE: least.relative_anytime, Scale.ABSOLUTE: least.absolute_anytime}
    evidence = Evidence(treatment.name, both, lifts, guardrail, by_scale)
    return least, verdict(plan, rule, split, evidence)


def _detectable(plan: Plan, found: Estimate, users: int, control: float | None) -> Detectable:
    """At the levels of the arm's intervals."""
    if found.stderr is None or found.fixed is None or found.anytime is None:
        return Detectable(None, None, None, None)
    by = power.fixed(found.fixed.alpha), power.anytime(found.anytime.alpha, plan.rho2)
    fixed, anytime = (power.detectable(found.stderr, users, c, plan.power) for c in by)
    if control is None or control <= 0:
        return Detectable(fixed, anytime, None, None)
    return Detectable(fixed, anytime, fixed / control, anytime / control)
