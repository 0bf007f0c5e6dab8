"""The verdict on one metric of one arm, in words for who decides.

It is read off the anytime-valid intervals, for people look whenever they like; where there is none
yet, off the exact test of who has any value (converters.py). The interval that is
shown and the sentence are those that decide: the relative interval and the absolute one are two
scales of one test (relative.py), and the relative one is shown wherever there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from streamer import formatting
from streamer.formatting import change, difference, percent, share
from streamer.stats.experiments.converters import SHARE_OF_ALPHA, Converters
from streamer.stats.experiments.estimate import Estimate, Inference, Lifts
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.srm import Split


class Outcome(StrEnum):
    """What can be said of an arm."""

    BETTER = "better"
    WORSE = "worse"
    HARM = "harmed"
    WORSE_WITHIN = "worse, perhaps tolerated"
    NO_HARM = "not harmed"
    TOO_EARLY = "too early"
    BROKEN_SPLIT = "broken split"


class Scale(StrEnum):
    """In which of its two scales a lift is shown: relative where that has an interval."""

    RELATIVE = "relative"
    ABSOLUTE = "absolute"

    def writer(self, form: str) -> Callable[[float], str]:
        """How lifts are written in it; ``form``: that of the metric's values."""
        return change if self is Scale.RELATIVE else lambda value: difference(form, value)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``scale`` is that of the interval that ``reason`` is about, and which is to be shown."""

    outcome: Outcome
    reason: str
    scale: Scale


@dataclass(frozen=True, slots=True)
class Detectable:
    """The least lift that these users would show with the power of the plan, by the interval that
    holds at every look; the relative one as a share of the control's value."""

    absolute: float | None
    relative: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one treatment: users of control and treatment, the lifts that decide, the
    interval at any time of the contrast with the margin (``Rule.limit``; None without a margin),
    the least lifts that these users could show, who has any value, the control's value, and how
    values are written."""

    arm: str
    users: tuple[int, int]
    lifts: Lifts
    guardrail: Inference | None
    least: Detectable
    plan: Plan
    converters: Converters | None = None
    control: float | None = None
    form: str = "number"

    @property
    def scale(self) -> Scale:
        """Relative where there is an interval of it, or of neither."""
        relative, absolute = self.lifts.relative, self.lifts.absolute
        is_missing = (
            relative.deciding(self.plan) is None and absolute.deciding(self.plan) is not None
        )
        return Scale.ABSOLUTE if is_missing or relative.value is None else Scale.RELATIVE

    @property
    def interval(self) -> Inference | None:
        """The interval that decides, of the lift that is shown."""
        return self.shown.deciding(self.plan)

    @property
    def shown(self) -> Estimate:
        """The lift in that scale."""
        is_relative = self.scale is Scale.RELATIVE
        return self.lifts.relative if is_relative else self.lifts.absolute


def verdict(plan: Plan, rule: Rule, split: Split, evidence: Evidence) -> Verdict:
    """By the interval at any time; where there is none, by who has any value."""
    outcome, reason = _judged(plan, rule, split, evidence)
    return Verdict(outcome, reason, evidence.scale)


def _judged(plan: Plan, rule: Rule, split: Split, evidence: Evidence) -> tuple[Outcome, str]:
    if split.is_wrong:
        return Outcome.BROKEN_SPLIT, split.sentence
    is_early = plan.at_end and not plan.is_over
    is_small = min(evidence.users) < rule.min_users
    shown = None if is_small else evidence.interval
    if shown is None:
        waits = _too_few(plan, rule, evidence) if is_small else _no_interval(evidence)
        outcome = _by_converters(rule, evidence)
        if outcome is not None and not (is_early and outcome is Outcome.BETTER):
            return outcome, f"{_who(plan, evidence)} {waits}"
        return Outcome.TOO_EARLY, waits
    best, worst = _sided(rule, shown)
    if is_early and (best >= 0 or _is_harmless(rule, evidence)):
        text = _open(plan, evidence)
        return Outcome.TOO_EARLY, f"{text} The one look at the end decides."
    if worst > 0:
        return Outcome.BETTER, _clear(plan, rule, evidence)
    if _is_harmless(rule, evidence):
        return Outcome.NO_HARM, _harmless(plan, rule, evidence)
    if best >= 0:
        return Outcome.TOO_EARLY, _open(plan, evidence)
    if not rule.is_guardrail:
        return Outcome.WORSE, _clear(plan, rule, evidence)
    outcome = Outcome.HARM if _is_harmful(rule, evidence) else Outcome.WORSE_WITHIN
    return outcome, _clear(plan, rule, evidence)


def _by_converters(rule: Rule, evidence: Evidence) -> Outcome | None:
    """What is said by who has any value; None where that is nothing. Of amounts only what the lift
    says, too."""
    who, value = evidence.converters, evidence.lifts.absolute.value
    if who is None:
        return None
    rises, falls = who.low > 0, who.high is not None and who.high < 0
    if not rises and not falls:
        return None
    if rule.is_amount and (value is None or (value > 0) != rises):
        return None
    if rises == rule.higher_is_better:
        return Outcome.BETTER
    if not rule.is_guardrail:
        return Outcome.WORSE
    loss = who.low if rises else -(who.high or 0.0)
    return Outcome.HARM if _is_beyond(rule, loss, evidence.control) else Outcome.WORSE_WITHIN


def _is_beyond(rule: Rule, loss: float, control: float | None) -> bool:
    """Whether a relative loss is beyond the margin; an absolute margin is one of the control's
    value."""
    if rule.margin is not None:
        return loss > rule.margin
    assert rule.margin_absolute is not None
    return control is not None and control > 0 and loss * control > rule.margin_absolute


def _is_harmful(rule: Rule, evidence: Evidence) -> bool:
    """Whether the whole interval of the contrast with the margin is a harm, and that of the lift
    is beyond the margin, whose level may be another one with several treatments."""
    if evidence.guardrail is None or _sided(rule, evidence.guardrail)[0] >= 0:
        return False
    lift, margin = _with_margin(rule, evidence)
    return lift is None or _sided(rule, lift)[0] < -margin


def _sided(rule: Rule, inference: Inference) -> tuple[float, float]:
    """Best and worst end of an interval, as gains."""
    low, high = inference.low, inference.high
    return (high, low) if rule.higher_is_better else (-low, -high)


def _is_harmless(rule: Rule, evidence: Evidence) -> bool:
    """By the contrast with the margin. With several treatments its level may be another one than
    that of the lift: the lift's interval must not reach beyond the margin, either."""
    if evidence.guardrail is None or _sided(rule, evidence.guardrail)[1] <= 0:
        return False
    lift, margin = _with_margin(rule, evidence)
    return lift is None or _sided(rule, lift)[1] > -margin


def _with_margin(rule: Rule, evidence: Evidence) -> tuple[Inference | None, float]:
    """The lift's interval in the scale of the margin, and the margin."""
    is_relative = rule.margin is not None
    lift = evidence.lifts.relative if is_relative else evidence.lifts.absolute
    margin = rule.margin if is_relative else rule.margin_absolute
    assert margin is not None
    return lift.deciding(evidence.plan), margin


# Words -----------------------------------------------------------------------------------------


def _too_few(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    control, treatment = evidence.users
    noun = "user" if control == 1 else "users"
    return (
        f"Too early: {plan.control} has {control:,} {noun} and {evidence.arm} has {treatment:,}; "
        f"a range needs {rule.min_users:,} in each arm."
    )


def _no_interval(evidence: Evidence) -> str:
    return f"There is no range yet: {evidence.lifts.absolute.reason}."


def _who(plan: Plan, evidence: Evidence) -> str:
    """Who has any value."""
    who = evidence.converters
    assert who is not None
    fewer = "More" if who.low > 0 else "Fewer"
    control, treatment = evidence.users
    high = "no bound" if who.high is None else change(who.high)
    return (
        f"{fewer} users of {evidence.arm} have a value other than 0: {who.treatment:,} of "
        f"{treatment:,}, compared with {who.control:,} of {control:,} in {plan.control}; their "
        f"share changed by {change(who.low)} to {high}. {_by_chance(SHARE_OF_ALPHA * plan.alpha)}"
        ", however often you look (exact test)."
    )


def _by_chance(alpha: float) -> str:
    return f"Chance alone would show this in at most {share(alpha)} of experiments"


def _clear(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    wanted = "" if rule.higher_is_better else "; lower is better"
    value, interval = evidence.shown.value, evidence.interval
    assert value is not None
    assert interval is not None
    write = evidence.scale.writer(evidence.form)
    return (
        f"{evidence.arm} is {_side(evidence, value)} than {plan.control} (range: "
        f"{write(interval.low)} to {write(interval.high)}{wanted}). {_by_chance(plan.alpha)}"
        f"{_when(plan)}.{_why_absolute(evidence)}"
    )


def _when(plan: Plan) -> str:
    return ", judged once at the end" if plan.is_final else ", however often you look"


def _harmless(plan: Plan, rule: Rule, evidence: Evidence) -> str:
    is_relative = rule.margin is not None
    shown, margin = _with_margin(rule, evidence)
    if shown is None:
        is_higher = rule.higher_is_better
        side = f"at least {share(1 - margin)}" if is_higher else f"at most {share(1 + margin)}"
        return (
            f"{evidence.arm} has {side} of the value of {plan.control}, so a loss of "
            f"{share(margin)} is ruled out.{_why_absolute(evidence)}"
        )
    loss = -_sided(rule, shown)[1]
    size = percent(loss) if is_relative else difference(rule.form, loss).lstrip("+")
    worst = f"at worst {size} worse than" if loss > 0 else "not worse than"
    tolerated = share(margin) if is_relative else formatting.margin(rule.form, margin)
    return f"{evidence.arm} is {worst} {plan.control}; {tolerated} is tolerated."


def _open(plan: Plan, evidence: Evidence) -> str:
    interval, is_relative = evidence.interval, evidence.scale is Scale.RELATIVE
    least = evidence.least.relative if is_relative else evidence.least.absolute
    assert interval is not None
    low, high = _side(evidence, interval.low), _side(evidence, interval.high)
    text = f"{evidence.arm} could be anything from {low} to {high} than {plan.control}."
    if least is not None:
        size = evidence.scale.writer(evidence.form)(least).lstrip("+")
        text += (
            f" With {sum(evidence.users):,} users, a difference of {size} is found with a "
            f"probability of {share(plan.power)}."
        )
    return text + _why_absolute(evidence)


def _side(evidence: Evidence, value: float) -> str:
    """How much lower or higher than the control, in the scale that is shown."""
    size = evidence.scale.writer(evidence.form)(abs(value)).lstrip("+")
    return f"{size} {'lower' if value < 0 else 'higher'}"


def _why_absolute(evidence: Evidence) -> str:
    if evidence.scale is Scale.RELATIVE:
        return ""
    return f" No percentage is shown: {evidence.lifts.relative.reason}."
