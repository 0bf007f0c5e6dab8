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

from streamer.experiments import power, srm
from streamer.experiments.cuped import adjusted
from streamer.experiments.estimate import Estimate, estimates
from streamer.experiments.lift import Contrast, absolute, lift, relative
from streamer.experiments.plan import Plan, Rule
from streamer.experiments.ratio import ratio
from streamer.experiments.sums import ArmSums
from streamer.experiments.verdict import Evidence, Verdict, verdict

_CONTRASTS: tuple[Contrast, Contrast] = (absolute, relative)


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
    otherwise, and if the rule says so, it is what ``detectable`` and ``verdict`` speak of."""

    arm: str
    users: int
    absolute: Estimate
    relative: Estimate
    adjusted: AdjustedLifts | None
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
    """Compare all arms of the plan; one without sums has no users.

    Raises ValueError for an arm that the plan does not have, and for sums of different kinds.
    """
    every = _complete(plan, sums)
    arms = {name: _arm(name, its) for name, its in every.items()}
    split = srm.split({name: max(0, arm.users) for name, arm in arms.items()}, plan.shares)
    pairs = [(every[name], every[plan.control]) for name in plan.treatments]
    raw = zip(*(_raw(plan, contrast, pairs) for contrast in _CONTRASTS), strict=True)
    sharper = _adjusted(plan, pairs)
    comparisons = [
        _comparison(plan, rule, split, (arms[name], arms[plan.control]), its_raw, its_sharper)
        for name, its_raw, its_sharper in zip(plan.treatments, raw, sharper, strict=True)
    ]
    return Readout(plan.control, split, list(arms.values()), comparisons)


def _complete(plan: Plan, sums: Mapping[str, ArmSums]) -> dict[str, ArmSums]:
    """The sums of all arms of the plan, in its order."""
    if unknown := sorted(set(sums) - set(plan.split)):
        raise ValueError(f"sums of the arms {unknown}: the plan has {sorted(plan.split)}")
    if len(kinds := {s.kind for s in sums.values()}) > 1:
        raise ValueError(
            f"sums of {sorted(kinds)} (x_scale, y_scale, with a time before): those of one metric "
            "must be of one kind"
        )
    nobody = next((s - s for s in sums.values()), ArmSums())
    return {arm: sums.get(arm, nobody) for arm in plan.split}


def _arm(name: str, sums: ArmSums) -> Arm:
    its = ratio(sums)
    value = None if its.value is None else float(its.value) * sums.scale
    stderr = None if its.variance is None else sqrt(its.variance) * sums.scale
    return Arm(name, sums.n, value, stderr, its.reason)


Pairs = Sequence[tuple[ArmSums, ArmSums]]
"""Sums of each treatment, and of the control."""


def _users(pairs: Pairs) -> list[int]:
    return [treatment.n + control.n for treatment, control in pairs]


def _raw(plan: Plan, contrast: Contrast, pairs: Pairs) -> list[Estimate]:
    lifts = [lift(contrast, ratio(t), ratio(c), c.scale) for t, c in pairs]
    return estimates(plan, lifts, _users(pairs))


def _adjusted(plan: Plan, pairs: Pairs) -> Sequence[AdjustedLifts | None]:
    if any(control.before is None for _, control in pairs):
        return [None] * len(pairs)
    found = [[adjusted(contrast, t, c) for t, c in pairs] for contrast in _CONTRASTS]
    shown = [estimates(plan, [its.lift for its in one], _users(pairs)) for one in found]
    return [
        AdjustedLifts(a, r, its.explained, its.reason)
        for a, r, its in zip(*shown, found[0], strict=True)
    ]


def _comparison(
    plan: Plan,
    rule: Rule,
    split: srm.Split,
    arms: tuple[Arm, Arm],
    raw: tuple[Estimate, Estimate],
    sharper: AdjustedLifts | None,
) -> Comparison:
    treatment, control = arms
    absolute_lift, relative_lift = raw
    if sharper is not None and rule.adjust:
        absolute_lift, relative_lift = sharper.absolute, sharper.relative
    users = control.users + treatment.users
    least = _detectable(plan, absolute_lift, users, control.value)
    evidence = Evidence(
        treatment.name,
        (control.users, treatment.users),
        absolute_lift,
        relative_lift,
        least.absolute_anytime if relative_lift.anytime is None else least.relative_anytime,
    )
    its_verdict = verdict(plan, rule, split, evidence)
    return Comparison(treatment.name, users, *raw, sharper, least, its_verdict)


def _detectable(plan: Plan, found: Estimate, users: int, control: float | None) -> Detectable:
    """At the levels of the arm's intervals."""
    if found.stderr is None or found.fixed is None or found.anytime is None:
        return Detectable(None, None, None, None)
    by = power.fixed(found.fixed.alpha), power.anytime(found.anytime.alpha, plan.rho2)
    fixed, anytime = (power.detectable(found.stderr, users, c, plan.power) for c in by)
    if control is None or control <= 0:
        return Detectable(fixed, anytime, None, None)
    return Detectable(fixed, anytime, fixed / control, anytime / control)
