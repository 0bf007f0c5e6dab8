"""The verdict on one metric of one arm, in words for who decides.

It is read off the anytime-valid intervals, for people look whenever they like. The interval that is
shown and the sentence are those that decide: the relative interval and the absolute one are two
scales of one test (relative.py), and the relative one is shown wherever there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from streamer.stats.experiments.estimate import Estimate, Inference, Lifts
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.srm import Split


class Outcome(StrEnum):
    """What can be said of an arm."""

    BETTER = "better"
    WORSE = "worse"
    NO_HARM = "no harm beyond the margin"
    KEEP_RUNNING = "keep running"
    INVALID = "invalid: traffic split"


class Scale(StrEnum):
    """In which of its two scales a lift is shown: relative where that has an interval."""

    RELATIVE = "relative"
    ABSOLUTE = "absolute"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``scale`` is that of the interval that ``reason`` is about, and which is to be shown."""

    outcome: Outcome
    reason: str
    scale: Scale


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one treatment: users of control and treatment, the lifts that decide, the
    interval at any time of the contrast with the margin (``Rule.limit``; None without a margin),
    and the least lifts that these users could show, by scale."""

    arm: str
    users: tuple[int, int]
    lifts: Lifts
    guardrail: Inference | None
    detectable: dict[Scale, float | None]

    @property
    def scale(self) -> Scale:
        """Relative where there is an interval of it, or of neither."""
        relative, absolute = self.lifts.relative, self.lifts.absolute
        is_missing = relative.anytime is None and absolute.anytime is not None
        return Scale.ABSOLUTE if is_missing or relative.value is None else Scale.RELATIVE

    @property
    def shown(self) -> Estimate:
        """The lift in that scale."""
        is_relative = self.scale is Scale.RELATIVE
        return self.lifts.relative if is_relative else self.lifts.absolute


def verdict(plan: Plan, rule: Rule, split: Split, evidence: Evidence) -> Verdict:
    """No harm comes before worse: a loss below the margin is allowed."""
    outcome, reason = _judged(plan, rule, split, evidence)
    return Verdict(outcome, reason, evidence.scale)


def _judged(plan: Plan, rule: Rule, split: Split, evidence: Evidence) -> tuple[Outcome, str]:
    if split.is_wrong:
        return Outcome.INVALID, _split(split)
    if min(evidence.users) < rule.min_users:
        return Outcome.KEEP_RUNNING, _too_few(plan, rule, evidence)
    shown = evidence.shown.anytime
    if shown is None:
        reason = evidence.lifts.absolute.reason
        return Outcome.KEEP_RUNNING, f"There is no interval yet: {reason}."
    best, worst = _sided(rule, shown)
    if worst > 0:
        return Outcome.BETTER, _clear(plan, rule, evidence)
    if _is_harmless(rule, evidence):
        return Outcome.NO_HARM, _harmless(plan, rule, evidence)
    if best < 0:
        return Outcome.WORSE, _clear(plan, rule, evidence)
    return Outcome.KEEP_RUNNING, _open(plan, evidence)


def _sided(rule: Rule, inference: Inference) -> tuple[float, float]:
    """Best and worst end of an interval, as gains."""
    low, high = inference.low, inference.high
    return (high, low) if rule.higher_is_better else (-low, -high)


def _is_harmless(rule: Rule, evidence: Evidence) -> bool:
    """By the contrast with the margin. With several treatments its level may be another one than
    that of the lift: the lift's interval must not reach beyond the margin, either."""
    if evidence.guardrail is None or _sided(rule, evidence.guardrail)[1] <= 0:
        return False
    is_relative = rule.margin is not None
    lift = evidence.lifts.relative if is_relative else evidence.lifts.absolute
    margin = rule.margin if is_relative else rule.margin_absolute
    assert margin is not None
    return lift.anytime is None or _sided(rule, lift.anytime)[1] > -margin


# Words -----------------------------------------------------------------------------------------


def _split(split: Split) -> str:
    total = sum(split.users.values())
    shares = [
        f"{arm} has {count / total:.2%} of the users (planned {split.expected[arm]:.2%})"
        for arm, count in split.users.items()
    ]
    return (
        f"The split is not the planned one: {', '.join(shares)}. Something misassigns, loses or "
        "duplicates users of one arm, so the arms cannot be compared."
    )


def _too_few(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    control, treatment = evidence.users
    noun = "user" if control == 1 else "users"
    return (
        f"{plan.control} has {control:,} {noun} and {evidence.arm} has {treatment:,}: there is "
        f"no verdict below {rule.min_users:,} in each."
    )


def _clear(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    wanted = "" if rule.higher_is_better else " (lower is better)"
    what, write = _what(plan, evidence)
    value, interval = evidence.shown.value, evidence.shown.anytime
    assert value is not None
    assert interval is not None
    return (
        f"{what} is {write(value)}{wanted}, between {write(interval.low)} and "
        f"{write(interval.high)}. If {evidence.arm} made no difference, at most {plan.alpha:.1%} "
        f"of experiments would show this, however often you look.{_why_absolute(evidence)}"
    )


def _harmless(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    is_relative = rule.margin is not None
    shown = (evidence.lifts.relative if is_relative else evidence.lifts.absolute).anytime
    margin = rule.margin if is_relative else rule.margin_absolute
    assert margin is not None
    if shown is None:
        side = (
            f"at least {1 - margin:.2%}" if rule.higher_is_better else f"at most {1 + margin:.2%}"
        )
        return (
            f"{evidence.arm} has {side} of the value of {plan.control}: a loss of {margin:.2%} "
            f"is excluded.{_why_absolute(evidence)}"
        )
    write = "{:.2%}".format if is_relative else "{:.4g}".format
    loss = -_sided(rule, shown)[1]
    worst = f"at worst {write(loss)} worse than" if loss > 0 else "not worse than"
    return f"{evidence.arm} is {worst} {plan.control}; {write(margin)} is allowed."


def _open(plan: Plan, evidence: Evidence) -> str:
    what, write = _what(plan, evidence)
    interval, least = evidence.shown.anytime, evidence.detectable[evidence.scale]
    assert interval is not None
    text = f"{what} may be anything from {write(interval.low)} to {write(interval.high)}."
    if least is not None:
        text += (
            f" With this many users a difference of {write(least).lstrip('+')} is detected with a "
            f"probability of {plan.power:.0%}."
        )
    return text + _why_absolute(evidence)


def _what(plan: Plan, evidence: Evidence) -> tuple[str, Callable[[float], str]]:
    """What is shown, and how it is written."""
    if evidence.scale is Scale.RELATIVE:
        return f"The lift of {evidence.arm} over {plan.control}", "{:+.2%}".format
    return f"{evidence.arm} minus {plan.control}", "{:+.4g}".format


def _why_absolute(evidence: Evidence) -> str:
    if evidence.scale is Scale.RELATIVE:
        return ""
    return f" No percentage is given: {evidence.lifts.relative.reason}."
