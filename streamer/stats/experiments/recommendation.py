"""One recommendation for an experiment, from its primary metric, its guardrails and its split.

An arm is

- *harmful* where the primary metric or a guardrail is worse,
- *without effect* where the primary metric's interval excludes a gain of ``min_lift``,
- *to be shipped* where the primary metric is better, and every guardrail better or of no harm,
- *open* otherwise; the first rule that applies holds.

The recommendation is to ship the best arm that is to be shipped, otherwise to go on while an arm is
open, otherwise to stop.

Its errors are those of the verdicts, which hold at every look. Shipping takes all claims at once:
an arm that is not better is shipped with probability alpha at most, and so is one that harms a
guardrail by its margin or more (Berger 1982, intersection-union tests: no correction over the
guardrails is needed). Over several arms Holm corrects each metric, so that whichever of the shipped
ones is picked, it is one that could be shipped by itself. Stopping for want of an effect needs the
intervals of all arms to exclude ``min_lift``, that of the arm which has such a lift among them:
probability alpha at most. Stopping for harm is the union of the claims of harm: without any, alpha
/ 2 at most for each metric that can make it. docs/experiments_statistics.md has measured these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from streamer.formatting import counted
from streamer.stats.experiments.forecast import Forecast
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.power import anytime
from streamer.stats.experiments.readout import Comparison, Readout
from streamer.stats.experiments.verdict import Outcome


class Action(StrEnum):
    """What to do with an experiment."""

    SHIP = "ship"
    STOP_HARM = "stop: harm"
    STOP_NO_EFFECT = "stop: no effect worth shipping"
    KEEP_RUNNING = "keep running"
    UNDECIDED = "ended without a decision"
    DO_NOT_TRUST = "do not trust: split"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``arm``: the one to ship, or that does harm where there is one treatment. ``days``: about as
    many more at the traffic so far; None where that is not known, or there is nothing to wait for.
    """

    action: Action
    arm: str | None
    reason: str
    days: int | None = None

    @property
    def words(self) -> str:
        """In a few words.

        >>> Recommendation(Action.SHIP, "B", "").words
        'ship B'
        >>> Recommendation(Action.KEEP_RUNNING, None, "", 9).words
        "keep running, about 9 days more at today's traffic"
        """
        if self.action is Action.SHIP:
            return f"{self.action} {self.arm}"
        if self.days is None:
            return str(self.action)
        return f"{self.action}, about {counted(self.days, 'day')} more at today's traffic"


@dataclass(frozen=True, slots=True)
class Judged:
    """One metric of an experiment; ``forecasts``: by arm, where they are known."""

    name: str
    rule: Rule
    found: Readout
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What an experiment is decided by. ``is_over``: no more days will come."""

    plan: Plan
    primary: Judged
    guardrails: Sequence[Judged]
    min_lift: float | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _Arm:
    """A treatment, as the primary metric and the guardrails find it."""

    name: str
    primary: Comparison
    guardrails: Sequence[tuple[Judged, Comparison]]

    @property
    def open_guardrails(self) -> list[tuple[Judged, Comparison]]:
        """Those by which a harm beyond the margin is not excluded."""
        harmless = (Outcome.BETTER, Outcome.NO_HARM)
        return [(j, c) for j, c in self.guardrails if c.verdict.outcome not in harmless]


def recommend(decision: Decision) -> Recommendation:
    """The recommendation at this look."""
    primary = decision.primary
    if primary.found.split.is_wrong:
        reason = primary.found.comparisons[0].verdict.reason
        return Recommendation(Action.DO_NOT_TRUST, None, reason)
    sorted_in: dict[Action, list[_Arm]] = {action: [] for action in Action}
    for i, comparison in enumerate(primary.found.comparisons):
        others = [(each, each.found.comparisons[i]) for each in decision.guardrails]
        arm = _Arm(comparison.arm, comparison, others)
        sorted_in[_state(decision, arm)].append(arm)
    harmful, idle = sorted_in[Action.STOP_HARM], sorted_in[Action.STOP_NO_EFFECT]
    to_ship, still_open = sorted_in[Action.SHIP], sorted_in[Action.KEEP_RUNNING]
    if to_ship:
        best = max(to_ship, key=lambda arm: _gain(primary.rule, arm))
        return Recommendation(Action.SHIP, best.name, _shipped(decision, best, still_open))
    if still_open:
        return _waiting(decision, still_open, harmful)
    reason = _sentences(
        *(_harm(decision, arm) for arm in harmful), *(_idle(decision, arm) for arm in idle)
    )
    if idle:
        return Recommendation(Action.STOP_NO_EFFECT, None, reason)
    return Recommendation(Action.STOP_HARM, harmful[0].name if len(harmful) == 1 else None, reason)


def _state(decision: Decision, arm: _Arm) -> Action:
    primary = arm.primary.verdict.outcome
    if Outcome.WORSE in (primary, *(c.verdict.outcome for _, c in arm.guardrails)):
        return Action.STOP_HARM
    if _is_idle(decision, arm):
        return Action.STOP_NO_EFFECT
    is_ready = primary is Outcome.BETTER and not arm.open_guardrails
    return Action.SHIP if is_ready else Action.KEEP_RUNNING


def _is_idle(decision: Decision, arm: _Arm) -> bool:
    interval = arm.primary.deciding.relative.anytime
    is_judged = min(each.users for each in decision.primary.found.arms) >= (
        decision.primary.rule.min_users
    )
    if decision.min_lift is None or interval is None or not is_judged:
        return False
    most = interval.high if decision.primary.rule.higher_is_better else -interval.low
    return most < decision.min_lift


def _gain(rule: Rule, arm: _Arm) -> float:
    """The lift by the primary metric as a gain, in its own unit: the control is the same."""
    value = arm.primary.deciding.absolute.value or 0.0
    return value if rule.higher_is_better else -value


# How long ---------------------------------------------------------------------------------------


def _waiting(
    decision: Decision, still_open: Sequence[_Arm], harmful: Sequence[_Arm]
) -> Recommendation:
    """For the open arm that is furthest ahead."""
    arm = max(still_open, key=lambda arm: _gain(decision.primary.rule, arm))
    why = [_undecided(decision, arm), *(_harm(decision, each) for each in harmful)]
    if decision.is_over:
        return Recommendation(Action.UNDECIDED, None, _sentences(*why, "Its last day is over."))
    days, what = _days(decision, arm)
    return Recommendation(Action.KEEP_RUNNING, None, _sentences(*why, what), days)


def _days(decision: Decision, arm: _Arm) -> tuple[int | None, str]:
    """Whole days until everything that is open would be decided, and what that means."""
    if arm.name not in decision.primary.forecasts:
        return None, ""
    waits: list[int | None] = []
    said = []
    if arm.primary.verdict.outcome is not Outcome.BETTER:
        effect, if_so = _hoped(decision, arm)
        waits.append(_until(decision, decision.primary, arm.primary, effect))
        said.append(if_so)
    for judged, comparison in arm.open_guardrails:
        margin = judged.rule.tolerated(judged.found.arms[0].value)
        waits.append(_until(decision, judged, comparison, margin))
        said.append(f"{judged.name} is not changed")
    if None in waits:
        return None, f"No end is in sight if {' and '.join(said)}."
    # What would have been found by now with the power of the plan may be found any day.
    days = max(1, *(wait or 0 for wait in waits))
    power = f"{decision.plan.power:.0%}"
    return days, (
        f"It is decided in about {counted(days, 'day')} with a probability of {power}, if "
        f"{' and '.join(said)}."
    )


def _hoped(decision: Decision, arm: _Arm) -> tuple[float | None, str]:
    """The absolute lift that is waited for, and how it is said."""
    name, control = decision.primary.name, decision.primary.found.arms[0].value
    if decision.min_lift is None:
        return arm.primary.deciding.absolute.value, f"the lift of {name} stays what it is"
    effect = None if control is None else decision.min_lift * control
    return effect, f"the lift of {name} is {decision.min_lift:.2%}"


def _until(
    decision: Decision, judged: Judged, comparison: Comparison, effect: float | None
) -> int | None:
    lift, forecast = comparison.deciding.absolute, judged.forecasts.get(comparison.arm)
    if lift.anytime is None or effect is None or forecast is None:
        return None
    by = anytime(lift.anytime.alpha, decision.plan.rho2)
    is_relative = judged.rule.margin_absolute is None
    power = decision.plan.power
    return forecast.days_until(effect, comparison.users, by, power, is_relative=is_relative)


# Words -----------------------------------------------------------------------------------------


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _shipped(decision: Decision, best: _Arm, still_open: Sequence[_Arm]) -> str:
    names = [judged.name for judged, _ in best.guardrails]
    held = f"No guardrail is harmed beyond its margin ({', '.join(names)})." if names else ""
    more = [arm.name for arm in still_open]
    rest = f"Not decided yet: {', '.join(more)}." if more else ""
    return _sentences(_about(decision.primary.name, best.primary), held, rest)


def _about(name: str, comparison: Comparison) -> str:
    return f"{name}: {comparison.verdict.reason}"


def _harm(decision: Decision, arm: _Arm) -> str:
    """What is worse in an arm."""
    every = [(decision.primary, arm.primary), *arm.guardrails]
    worse = [(judged, c) for judged, c in every if c.verdict.outcome is Outcome.WORSE]
    names = " and ".join(judged.name for judged, _ in worse)
    judged, comparison = worse[0]
    return f"{arm.name} does harm by {names}. {_about(judged.name, comparison)}"


def _idle(decision: Decision, arm: _Arm) -> str:
    interval, least = arm.primary.deciding.relative.anytime, decision.min_lift
    assert interval is not None
    assert least is not None
    return (
        f"{decision.primary.name}: the lift of {arm.name} over {decision.plan.control} is between "
        f"{interval.low:+.2%} and {interval.high:+.2%}, so that a gain of {least:.2%} (min_lift) "
        "is excluded."
    )


def _undecided(decision: Decision, arm: _Arm) -> str:
    """What is still open of an arm."""
    if arm.primary.verdict.outcome is not Outcome.BETTER:
        return _about(decision.primary.name, arm.primary)
    names = [judged.name for judged, _ in arm.open_guardrails]
    return (
        f"{arm.name} is better by {decision.primary.name}, but harm beyond the margin is not "
        f"excluded: {', '.join(names)}."
    )
