"""One recommendation for an experiment, from its primary metric, its guardrails and its split.

An arm is

- *harmful* where the primary metric is worse, or a guardrail is harmed beyond its margin,
- *without effect* where the primary metric's interval excludes a gain of ``min_lift``,
- *to be shipped* where the primary metric is better, and every guardrail better or of no harm,
  unless the lift has faded: users are worse off at the last age (days since their first) of which
  there is an interval, not better off after their first day, or unlike then (``UNLIKE``) and not
  certain to be better off at the last age,
- *open* otherwise; the first rule that applies holds.

A gain or a harm has to hold without each day that is odd (days.py), and with weekdays and weekends
as 5 : 2; a harm before ``min_days`` without each day at all, once there are both: one bad day of
logging, or a start on a Thursday, decides nothing. Nor does a harm that is smaller after users'
first day. Only where nobody in an arm has any of what the control's users have is that a harm at
once, by the exact test.

The recommendation is to ship the best arm that is to be shipped, otherwise to go on while an arm is
open, otherwise to stop. To ship and to stop for want of an effect wait for ``min_days`` and the end
of a week; harm does not. Nothing is trusted where the split is wrong, or many users were seen in
several arms.

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

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil, fsum, hypot

from streamer.formatting import change, counted, percent, share
from streamer.stats.experiments.days import WEEK, is_odd
from streamer.stats.experiments.forecast import Forecast, Sought
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, MetricComparisons
from streamer.stats.experiments.sizing import anytime
from streamer.stats.experiments.verdict import Outcome, Scale


class Action(StrEnum):
    """What to do with an experiment."""

    SHIP = "ship"
    WAIT = "wait"
    STOP_HARM = "stop: harm"
    STOP_NO_EFFECT = "stop: no effect worth shipping"
    KEEP_RUNNING = "keep running"
    UNDECIDED = "ended without a decision"
    DO_NOT_USE = "do not use: broken split"
    DO_NOT_USE_ARMS = "do not use: users in several arms"
    CHANGED = "do not use: the effect changed"
    MEASURE = "holdout"


DECISIONS = (Action.SHIP, Action.STOP_HARM, Action.STOP_NO_EFFECT)
"""What ends an experiment. The first one counts: later looks may fall back behind it by chance."""
DISTRUST = (Action.DO_NOT_USE, Action.DO_NOT_USE_ARMS, Action.CHANGED)
"""What says that nothing is to be believed."""
UNLIKE = 2.0
"""Standard errors between the lifts of users' first day and of later ones from which on they are
said to differ."""
MAX_IN_SEVERAL_ARMS = 0.05
"""Share of users seen in several arms above which nothing is trusted."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``arm``: the one to ship, or that does harm where there is one treatment. ``days``: as many
    more, about so many at the traffic so far; None where that is not known, or there is nothing to
    wait for. ``since``: the day of the first decision, which counts; None if this is none.
    ``ranges``: the lift of the primary metric by arm at this look, low and high, in its unit, by
    the interval that holds at every look.
    """

    action: Action
    arm: str | None
    reason: str
    days: int | None = None
    since: datetime.date | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """In a few words.

        >>> Recommendation(Action.SHIP, "B", "").words
        'ship B'
        >>> Recommendation(Action.KEEP_RUNNING, None, "", 9).words
        "keep running, about 9 days more at today's traffic"
        """
        if self.action in DECISIONS:
            arm = f" {self.arm}" if self.action is Action.SHIP else ""
            return f"{self.action}{arm}" + (f", since {self.since}" if self.since else "")
        if self.days is None:
            return str(self.action)
        if self.action is Action.WAIT:
            return f"{self.action}: {counted(self.days, 'more day')}"
        return f"{self.action}, about {counted(self.days, 'day')} more at today's traffic"


@dataclass(frozen=True, slots=True)
class Judged:
    """One metric of an experiment; ``forecasts``: by arm, where they are known."""

    name: str
    rule: Rule
    found: MetricComparisons
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reweighing:
    """The metrics that decide, by name, where some days count otherwise; ``words``: how;
    ``left_out``: the day that does not count."""

    words: str
    metrics: Mapping[str, MetricComparisons]
    left_out: datetime.date | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What an experiment is decided by. ``is_over``: no more days will come. ``days``: whole days
    with users so far. ``several_arms``: share of users seen in several arms. ``ages``: the primary
    metric by days since a user's first, in order. ``readings``: what a gain or a harm has to hold
    in, too; ``week_left``: days until whole weeks are over, None where weeks do not matter, and
    ``unseen``: weekdays or weekends, where no such day is over; ``delay_left``: by metric, days
    until outcomes have had the time to come; ``leaning``: as ``srm.leaning``."""

    plan: Plan
    primary: Judged
    guardrails: Sequence[Judged]
    min_lift: float | None = None
    is_over: bool = False
    days: int = 1
    min_days: int = 1
    several_arms: float = 0.0
    ages: Sequence[Judged] = ()
    readings: Sequence[Reweighing] = ()
    week_left: int | None = None
    unseen: str = ""
    delay_left: Mapping[str, int] = field(default_factory=dict)
    leaning: str = ""

    @property
    def days_left(self) -> int:
        """Days until a decision may be taken; 0 after the last day, when no more come."""
        return self.weekly(0 if self.is_over else max(0, self.min_days - self.days))

    def weekly(self, days: int) -> int:
        """So many days, or more until whole weeks are over."""
        if self.week_left is None or self.plan.is_final:
            return days
        return self.week_left + WEEK * max(0, ceil((days - self.week_left) / WEEK))


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
    known = {c.arm: c.absolute.anytime for c in decision.primary.found.comparisons}
    ranges = {arm: (its.low, its.high) for arm, its in known.items() if its is not None}
    return replace(_recommended(decision), ranges=ranges)


def _recommended(decision: Decision) -> Recommendation:
    primary = decision.primary
    if primary.found.split.is_wrong:
        reason = primary.found.comparisons[0].verdict.reason
        return Recommendation(Action.DO_NOT_USE, None, reason)
    if decision.several_arms > MAX_IN_SEVERAL_ARMS or decision.leaning:
        return Recommendation(Action.DO_NOT_USE_ARMS, None, _several(decision))
    sorted_in: dict[Action, list[_Arm]] = {action: [] for action in Action}
    for i, comparison in enumerate(primary.found.comparisons):
        others = [(each, each.found.comparisons[i]) for each in decision.guardrails]
        arm = _Arm(comparison.arm, comparison, others)
        sorted_in[_state(decision, arm)].append(arm)
    harmful, idle = sorted_in[Action.STOP_HARM], sorted_in[Action.STOP_NO_EFFECT]
    to_ship, still_open = sorted_in[Action.SHIP], sorted_in[Action.KEEP_RUNNING]
    if to_ship:
        best = max(to_ship, key=lambda arm: _gain(primary.rule, arm.primary))
        return _decided(decision, Action.SHIP, best.name, _shipped(decision, best, still_open))
    if still_open:
        return _waiting(decision, still_open, harmful)
    reason = _sentences(
        *(_harm(decision, arm) for arm in harmful), *(_idle(decision, arm) for arm in idle)
    )
    if idle:
        return _decided(decision, Action.STOP_NO_EFFECT, None, reason)
    return Recommendation(Action.STOP_HARM, harmful[0].name if len(harmful) == 1 else None, reason)


def _decided(decision: Decision, action: Action, arm: str | None, reason: str) -> Recommendation:
    """A decision, or that it waits for whole days."""
    left = decision.days_left
    if not left:
        return Recommendation(action, arm, reason)
    if decision.is_over:
        why = "The last day is over within a week, and only whole weeks decide (whole_weeks)."
        return Recommendation(Action.UNDECIDED, None, _sentences(reason, why))
    if decision.days < decision.min_days:
        so_far = counted(decision.days, "whole day")
        why = f"Weekdays differ: {so_far} had users, and {decision.min_days} (min_days) are needed."
    else:
        why = "Weekdays differ: only whole weeks decide (whole_weeks)."
    return Recommendation(Action.WAIT, arm, _sentences(reason, why), left)


def first_decision(
    looks: Iterable[tuple[datetime.date, Recommendation]], today: Recommendation
) -> Recommendation:
    """The recommendation that counts, of those at the end of earlier days, in order, and ``today``:
    the first decision, whose errors hold however often one looks. A later doubt of the data, or a
    harm that was found after a decision to ship, is said instead.

    A decision is withdrawn, and none but harm follows it, where a later range of its arm is
    disjoint from the one that decided: both hold at every look, so the effect is not what it was.
    """
    decided: tuple[datetime.date, Recommendation] | None = None
    changed = ""
    for date, found in looks:
        if decided is None:
            decided = (date, found) if found.action in DECISIONS else None
        elif not changed and found.action not in DISTRUST and _is_withdrawn(decided[1], found):
            changed = f"the end of {date}"
    if decided is None or today.action in DISTRUST:
        return today
    date, found = decided
    is_same = (today.action, today.arm) == (found.action, found.arm)
    if not is_same and _is_withdrawn(found, today):
        changed = changed or "now"
    if changed and today.action is not Action.STOP_HARM:
        return _withdrawn(decided, changed, today)
    if today.action is Action.STOP_HARM and not is_same:
        return replace(today, reason=f"{today.reason} The decision on {date} was: {found.words}.")
    reason = (
        f"{found.reason} This was decided at the end of {date}, and the first decision counts. "
        f"Today's look says: {today.words}. {today.reason}"
    )
    return replace(found, reason=reason, since=date)


def _is_withdrawn(decided: Recommendation, later: Recommendation) -> bool:
    arms = [decided.arm] if decided.arm else [*decided.ranges]
    both = [
        (decided.ranges[a], later.ranges[a])
        for a in arms
        if a in decided.ranges.keys() & later.ranges.keys()
    ]
    return any(now[1] < then[0] or now[0] > then[1] for then, now in both)


def _withdrawn(
    decided: tuple[datetime.date, Recommendation], when: str, today: Recommendation
) -> Recommendation:
    date, found = decided
    reason = (
        f"By {when} the effect has changed: its range lies wholly outside the one that decided "
        f"({found.words}, at the end of {date}). Today's look says: {today.words}. {today.reason}"
    )
    return replace(today, action=Action.CHANGED, arm=None, reason=reason, days=None)


def _state(decision: Decision, arm: _Arm) -> Action:
    if harms := _harms(decision, arm):
        is_firm = any(not _doubt(decision, arm, *each) for each in harms)
        return Action.STOP_HARM if is_firm else Action.KEEP_RUNNING
    if _is_idle(decision, arm):
        return Action.STOP_NO_EFFECT
    is_ready = arm.primary.verdict.outcome is Outcome.BETTER and not arm.open_guardrails
    is_ready = is_ready and not _faded(decision, arm)
    is_ready = is_ready and not _doubt(decision, arm, decision.primary, arm.primary)
    return Action.SHIP if is_ready else Action.KEEP_RUNNING


def _harms(decision: Decision, arm: _Arm) -> list[tuple[Judged, Comparison]]:
    """The metrics that are worse."""
    every = [(decision.primary, arm.primary), *arm.guardrails]
    return [
        (judged, c)
        for judged, c in every
        if c.verdict.outcome is (Outcome.HARM if judged.rule.is_guardrail else Outcome.WORSE)
    ]


def _doubt(decision: Decision, arm: _Arm, judged: Judged, comparison: Comparison) -> str:
    """What speaks against a gain or a harm, in words; empty where nothing does."""
    outcome = comparison.verdict.outcome
    is_harm = outcome is not Outcome.BETTER
    if is_harm and (left := decision.delay_left.get(judged.name, 0)) > 0:
        yet = "nobody has any yet, and " if comparison.is_lost else ""
        return f"{yet}outcomes may take {counted(left, 'more day')}"
    if is_harm and comparison.is_lost:
        return ""
    if is_harm and decision.unseen:
        return f"there are no {decision.unseen} yet"
    for reading in decision.readings:
        if judged.name not in reading.metrics:
            continue
        (its,) = (c for c in reading.metrics[judged.name].comparisons if c.arm == arm.name)
        if its.verdict.outcome is outcome:
            continue
        is_asked = reading.left_out is None or (is_harm and decision.days < decision.min_days)
        if is_asked or is_odd(comparison.absolute, its.absolute, len(decision.readings)):
            return f"{reading.words} it is {_lift(judged, its)}"
    if is_harm and judged is decision.primary:
        ages, sign = _ages(decision, arm), 1 if judged.rule.higher_is_better else -1
        if ages is not None and ages.are_unlike and sign * ages.late[0] > sign * ages.early[0]:
            write = Scale.ABSOLUTE.writer(judged.rule.form)
            return f"after users' first day it is {write(ages.late[0])}"
    return ""


def _lift(judged: Judged, comparison: Comparison) -> str:
    """A lift with its range."""
    write, interval = comparison.verdict.scale.writer(judged.rule.form), comparison.interval
    if comparison.shown.value is None or interval is None:
        return "not known yet"
    low, high = write(interval.low), write(interval.high)
    return f"{write(comparison.shown.value)} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class _Ages:
    """The last age after the first day with an interval (None: none has one), and the lifts of
    users' first day and of all later ones, each with its standard error."""

    last: tuple[str, Comparison] | None
    early: tuple[float, float]
    late: tuple[float, float]

    @property
    def are_unlike(self) -> bool:
        """Whether late differs from early."""
        (early, a), (late, b) = self.early, self.late
        return abs(late - early) > UNLIKE * hypot(a, b)


def _ages(decision: Decision, arm: _Arm) -> _Ages | None:
    """None where there is nothing early or nothing late."""
    last, known = None, []
    for number, age in enumerate(decision.ages):
        comparison = next(c for c in age.found.comparisons if c.arm == arm.name)
        lift = comparison.absolute
        if lift.value is not None and lift.stderr:
            known.append((number, lift.value, lift.stderr**-2))
        if number and lift.anytime is not None:
            last = age.name, comparison
    pooled = []
    for its in ([k for k in known if not k[0]], [k for k in known if k[0]]):
        if not its:
            return None
        weight = fsum(w for _, _, w in its)
        pooled.append((fsum(value * w for _, value, w in its) / weight, weight**-0.5))
    return _Ages(last, *pooled)


def _faded(decision: Decision, arm: _Arm) -> str:
    """That users who are used to it gain less, in words: they are worse off at the last age, not
    better off after their first day, or unlike then and not certain to be better off. Else
    empty."""
    ages = _ages(decision, arm)
    if ages is None:
        return ""
    if ages.last is not None:
        name, last = ages.last
        outcome = last.verdict.outcome
        if outcome is Outcome.WORSE or (ages.are_unlike and outcome is not Outcome.BETTER):
            return f"{name} since their exposure: {_lift(decision.primary, last)}"
    late = ages.late[0] if decision.primary.rule.higher_is_better else -ages.late[0]
    if late <= 0 or (ages.are_unlike and ages.last is None):
        write = Scale.ABSOLUTE.writer(decision.primary.rule.form)
        return f"after the first day: {write(ages.late[0])}"
    return ""


def _is_idle(decision: Decision, arm: _Arm) -> bool:
    interval = arm.primary.relative.deciding(decision.plan)
    is_judged = min(each.users for each in decision.primary.found.arms) >= (
        decision.primary.rule.min_users
    )
    is_early = decision.plan.at_end and not decision.plan.is_over
    if decision.min_lift is None or interval is None or not is_judged or is_early:
        return False
    most = interval.high if decision.primary.rule.higher_is_better else -interval.low
    return most < decision.min_lift


def _gain(rule: Rule, comparison: Comparison) -> float:
    """The lift as a gain, in the metric's own unit: the control is the same for all arms."""
    value = comparison.absolute.value or 0.0
    return value if rule.higher_is_better else -value


# How long ---------------------------------------------------------------------------------------


def _waiting(
    decision: Decision, still_open: Sequence[_Arm], harmful: Sequence[_Arm]
) -> Recommendation:
    """For the open arm that is furthest ahead."""
    arm = max(still_open, key=lambda arm: _gain(decision.primary.rule, arm.primary))
    why = [_undecided(decision, arm), *(_harm(decision, each) for each in harmful)]
    if decision.is_over:
        return Recommendation(Action.UNDECIDED, None, _sentences(*why, "The last day is over."))
    days, what = _days(decision, arm)
    return Recommendation(Action.KEEP_RUNNING, None, _sentences(*why, what), days)


def _days(decision: Decision, arm: _Arm) -> tuple[int | None, str]:
    """Whole days until everything that is open would be decided, and what that means."""
    if decision.plan.at_end or _harms(decision, arm):
        return None, ""
    if arm.name not in decision.primary.forecasts:
        return None, ""
    waits: list[int | None] = []
    said = []
    if arm.primary.verdict.outcome is not Outcome.BETTER:
        effect, so_far, if_so = _hoped(decision, arm)
        waits.append(_until(decision, decision.primary, arm.primary, effect, so_far))
        said.append(if_so)
    for judged, comparison in arm.open_guardrails:
        margin = judged.rule.tolerated(judged.found.arms[0].value) or 0.0
        so_far = margin + _gain(judged.rule, comparison)
        waits.append(_until(decision, judged, comparison, margin, so_far))
        said.append(f"{judged.name} does not change")
    judged_by = (arm.primary, *(comparison for _, comparison in arm.open_guardrails))
    if not waits or any(each.absolute.anytime is None for each in judged_by):
        return None, ""  # without a range it is not traffic that is short
    if None in waits:
        why = f"At this rate the test will not reach a decision if {' and '.join(said)}"
        return None, f"{why}: increase traffic or stop."
    days = decision.weekly(max(1, decision.days_left, *(wait or 0 for wait in waits)))
    power = share(decision.plan.power)
    return days, (
        f"The test reaches a decision in about {counted(days, 'day')} with a probability of "
        f"{power} if {' and '.join(said)}."
    )


def _hoped(decision: Decision, arm: _Arm) -> tuple[float, float, str]:
    """The absolute lift that is waited for, what there is of it, and how it is said."""
    primary, so_far = decision.primary, _gain(decision.primary.rule, arm.primary)
    if decision.min_lift is None:
        return abs(so_far), abs(so_far), f"the change of {primary.name} stays as it is"
    effect = decision.min_lift * (primary.found.arms[0].value or 0.0)
    return effect, so_far, f"{primary.name} truly changes by {share(decision.min_lift)}"


def _until(
    decision: Decision, judged: Judged, comparison: Comparison, effect: float, so_far: float
) -> int | None:
    lift, forecast = comparison.absolute, judged.forecasts.get(comparison.arm)
    if lift.anytime is None or forecast is None or effect <= 0:
        return None
    by, power = anytime(lift.anytime.alpha, decision.plan.rho2), decision.plan.power
    is_relative = judged.rule.margin_absolute is None
    return forecast.days_until(
        Sought(effect, comparison.users, by, power, so_far, is_relative=is_relative)
    )


# Words -----------------------------------------------------------------------------------------


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _shipped(decision: Decision, best: _Arm, still_open: Sequence[_Arm]) -> str:
    names = [judged.name for judged, _ in best.guardrails]
    held = f"No guardrail is worse than tolerated ({', '.join(names)})." if names else ""
    more = [arm.name for arm in still_open]
    rest = f"Still open: {', '.join(more)}." if more else ""
    return _sentences(_about(decision.primary.name, best.primary), held, rest)


def _about(name: str, comparison: Comparison) -> str:
    return f"{name}: {comparison.verdict.reason}"


def _harm(decision: Decision, arm: _Arm) -> str:
    """What is worse in an arm."""
    worse = _harms(decision, arm)
    names = " and ".join(judged.name for judged, _ in worse)
    judged, comparison = worse[0]
    return f"{arm.name} harms {names}. {_about(judged.name, comparison)}"


def _idle(decision: Decision, arm: _Arm) -> str:
    interval, least = arm.primary.relative.deciding(decision.plan), decision.min_lift
    assert interval is not None
    assert least is not None
    return (
        f"{decision.primary.name}: {arm.name} differs from {decision.plan.control} by "
        f"{change(interval.low)} to {change(interval.high)}, so a gain of {share(least)} "
        "(min_lift) is ruled out."
    )


def _undecided(decision: Decision, arm: _Arm) -> str:
    """What is still open of an arm."""
    if harms := _harms(decision, arm):
        (judged, comparison), *_ = harms
        doubt = _doubt(decision, arm, judged, comparison)
        return f"{arm.name} has a worse {judged.name} so far, but {doubt}: this is no decision yet."
    if arm.primary.verdict.outcome is not Outcome.BETTER:
        return _about(decision.primary.name, arm.primary)
    if not arm.open_guardrails and (faded := _faded(decision, arm)):
        return (
            f"{arm.name} has a better {decision.primary.name} so far, but not for users who are "
            f"used to it ({faded}): the novelty wears off."
        )
    if not arm.open_guardrails:
        doubt = _doubt(decision, arm, decision.primary, arm.primary)
        return (
            f"{arm.name} has a better {decision.primary.name} so far, but {doubt}: this is no "
            "decision yet."
        )
    names = [
        f"{judged.name} ({c.verdict.outcome})"
        if c.verdict.outcome is Outcome.WORSE_WITHIN
        else judged.name
        for judged, c in arm.open_guardrails
    ]
    return (
        f"{arm.name} has a better {decision.primary.name}, but these guardrails may still be worse "
        f"than tolerated: {', '.join(names)}."
    )


def _several(decision: Decision) -> str:
    most = f"{percent(decision.several_arms)} of the users were seen in several arms"
    if decision.leaning:
        why = f"{decision.leaning}: what they saw makes users change arms"
    else:
        why = f"at most {share(MAX_IN_SEVERAL_ARMS)} may be"
    return (
        f"{most}, and {why}. The remaining users are not those who were assigned. Find out why "
        "users change arms."
    )
