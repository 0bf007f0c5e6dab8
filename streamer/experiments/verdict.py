"""The verdict on one metric of one arm, in words for who decides.

It is read off the anytime-valid intervals, for people look whenever they like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from streamer.experiments.estimate import Estimate
from streamer.experiments.plan import Plan, Rule
from streamer.experiments.srm import Split

SPLIT_ALPHA = 0.001
"""p of the sequential test below which the split is wrong: one honest experiment in a thousand is
ever called so. A broken split is found by thousands of users, whatever the level."""


class Outcome(StrEnum):
    """What can be said of an arm."""

    BETTER = "better"
    WORSE = "worse"
    NO_HARM = "no harm beyond the margin"
    KEEP_RUNNING = "keep running"
    INVALID = "invalid: traffic split"


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one treatment: users of control and treatment, the lift that decides, and
    the least relative (if there is none: absolute) lift that these users could show."""

    arm: str
    users: tuple[int, int]
    absolute: Estimate
    relative: Estimate
    detectable: float | None


def verdict(plan: Plan, rule: Rule, split: Split, evidence: Evidence) -> Verdict:
    """Better or worse by the interval of the absolute lift, which is defined for every control; no
    harm by that of the relative one, which comes before worse: a loss below the margin is allowed.
    """
    if split.p_value < SPLIT_ALPHA:
        return Verdict(Outcome.INVALID, _split(split))
    if min(evidence.users) < rule.min_users:
        return Verdict(Outcome.KEEP_RUNNING, _too_few(plan, rule, evidence))
    found = evidence.absolute.anytime
    if found is None:
        return Verdict(
            Outcome.KEEP_RUNNING, f"There is no interval yet: {evidence.absolute.reason}."
        )
    best, worst = _sided(rule, found.low, found.high)
    if worst > 0:
        return Verdict(Outcome.BETTER, _clear(plan, rule, evidence))
    loss = _largest_loss(rule, evidence.relative)
    if rule.margin is not None and loss is not None and loss < rule.margin:
        return Verdict(Outcome.NO_HARM, _harmless(plan, rule.margin, loss, evidence))
    if best < 0:
        return Verdict(Outcome.WORSE, _clear(plan, rule, evidence))
    return Verdict(Outcome.KEEP_RUNNING, _open(plan, evidence))


def _sided(rule: Rule, low: float, high: float) -> tuple[float, float]:
    """Best and worst end of an interval, as gains."""
    return (high, low) if rule.higher_is_better else (-low, -high)


def _largest_loss(rule: Rule, relative: Estimate) -> float | None:
    """The relative loss at the worst end, below 0 for a gain."""
    if relative.anytime is None:
        return None
    _, worst = _sided(rule, relative.anytime.low, relative.anytime.high)
    return -worst


def _split(split: Split) -> str:
    total = sum(split.users.values())
    shares = [
        f"{arm} has {count / total:.2%} of the users (planned {split.expected[arm]:.2%})"
        for arm, count in split.users.items()
    ]
    return (
        f"The split is not the planned one: {', '.join(shares)}. Something assigns, loses or "
        "doubles users of one arm, so the arms cannot be compared."
    )


def _too_few(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    control, treatment = evidence.users
    return (
        f"{plan.control} has {control:,} users and {evidence.arm} has {treatment:,}: nothing is "
        f"said below {rule.min_users:,} in each."
    )


def _clear(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    wanted = "" if rule.higher_is_better else " (lower is better)"
    shown, write = _shown(evidence)
    assert shown.value is not None
    return (
        f"The lift of {evidence.arm} over {plan.control} is {write(shown.value)}{wanted}. If there "
        f"were none, at most {plan.alpha:.1%} of experiments would ever look like this, however "
        "often somebody looks."
    )


def _harmless(plan: Plan, margin: float, loss: float, evidence: Evidence) -> str:
    worst = f"at worst {loss:.2%} worse than" if loss > 0 else "not worse than"
    return f"{evidence.arm} is {worst} {plan.control}; {margin:.2%} is allowed."


def _open(plan: Plan, evidence: Evidence) -> str:
    shown, write = _shown(evidence)
    assert shown.anytime is not None
    low, high = write(shown.anytime.low), write(shown.anytime.high)
    text = f"The lift of {evidence.arm} over {plan.control} may be anything from {low} to {high}."
    if evidence.detectable is not None:
        least = write(evidence.detectable).lstrip("+")
        text += (
            f" These users would show a difference of {least} with a chance of {plan.power:.0%}."
        )
    return text


def _shown(evidence: Evidence) -> tuple[Estimate, Callable[[float], str]]:
    """The relative lift, or the absolute one where it is not defined, and how it is written."""
    if evidence.relative.anytime is not None:
        return evidence.relative, "{:+.2%}".format
    return evidence.absolute, "{:+.4g}".format
