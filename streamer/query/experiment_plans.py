"""What the users of today say of an experiment that has not begun: their metric, their number."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from msgspec import Struct

from streamer.encoding.limbs import Columns
from streamer.errors import StreamerError, UsageError
from streamer.formatting import counted, share
from streamer.query.experiment_metrics import by_arm
from streamer.query.experiments import StoredExperiment, began, sampled, users_of
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.experiments import percentile_of
from streamer.settings.limits import MAX_ARMS
from streamer.stats.experiments.duration import Duration, HalfTime, durations
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.percentile import nearest
from streamer.stats.experiments.sizing import Goal, needed
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.trials import cumulated


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """Sums of a metric over the users of a control arm, the days that they were seen on, and how
    it was at half of them, with the users of all arms; None below two days. ``counted_since_ms``:
    where something is counted only since then."""

    users: ArmSums
    first: datetime.date
    last: datetime.date
    half: HalfTime | None
    user_sample_ratio: float
    counted_since_ms: int | None


def before_start(stored: StoredExperiment, parts: Sequence[Columns] = ()) -> StoredExperiment:
    """The days of its covariates as an experiment of their own, in whose control everybody is.
    ``parts``: the sums of ``DaysBefore`` in every partition."""
    return replace(stored, trial=stored.trial.before, parts=parts)


def basis_of(stored: StoredExperiment, metric: str) -> PlanBasis | None:
    """What is stored of a metric of an experiment; None before the first user came."""
    last, first = stored.last_day, next(iter(stored.days_with_users), None)
    if last is None or first is None:
        return None
    end = min(stored.stream_ms / DAY_MS, float(stored.trial.days.stop))
    return PlanBasis(
        _users(stored, metric, last),
        date_of(first),
        date_of(last),
        _half_time(stored, metric, range(first, last + 1), end - first),
        stored.user_sample_ratio,
        stored.counted_since_ms,
    )


def _users(stored: StoredExperiment, metric: str, day: int) -> ArmSums:
    """Those of the control, up to the end of a day."""
    sums = cumulated(stored.trial, stored.parts, day)
    return by_arm(stored.trial, stored.ratios[metric], sums)[stored.trial.arms[0]]


def _half_time(stored: StoredExperiment, metric: str, seen: range, days: float) -> HalfTime | None:
    """``days``: from the first of those seen until now."""
    half = int(days) // 2
    if not half:
        return None
    day = seen[half - 1]
    then, now = (users_of(stored.trial, stored.parts, each) for each in (day, seen[-1]))
    return HalfTime(Growth(half, then, days, now), _users(stored, metric, day)) if now else None


# The plan ----------------------------------------------------------------------------------------


def require_goal(goal: Goal, prefix: str = "") -> None:
    """UsageError for what no plan can be made of. ``prefix``: of the names of options."""
    if goal.arms not in range(2, MAX_ARMS + 1):
        raise UsageError(f"{prefix}arms {goal.arms}: 2 to {MAX_ARMS}, with the control")
    if not 0.5 <= goal.power < 1:
        raise UsageError(f"{prefix}power {goal.power:g}: from 0.5 to below 1")
    if not 0 < goal.alpha < 1:
        raise UsageError(f"{prefix}alpha {goal.alpha:g}: between 0 and 1")
    if not 0 < goal.lift < inf:
        raise UsageError(f"{prefix}lift {goal.lift:g}: above 0; 0.02 is a lift of 2%")


class LookForecast(Struct, frozen=True):
    """Who there is by then, in all arms, and of whom what is known then comes."""

    users: int
    new_users: int
    new_information_ratio: float
    information_by_user: float
    returning_information_ratio: float


class NeededUsers(Struct, frozen=True):
    """Users of all arms as they are today, and days; None: not with any number, or not known."""

    users: int | None
    days: int | None
    forecast: LookForecast | None


class NeededByLook(Struct, frozen=True):
    """At a single look, and with looks at any time."""

    fixed: NeededUsers
    anytime: NeededUsers


class SizePlan(Struct, frozen=True, kw_only=True):
    """What finds a lift, by the ``users`` of ``of`` from ``first`` to ``last``; ``value``: their
    metric. Its JSON is that of ``streamer plan --json``."""

    metric: str
    lift: float
    power: float
    alpha: float
    arms: int
    of: str
    first: datetime.date
    last: datetime.date
    users: int
    value: float
    needed: NeededByLook
    expected_users: int | None
    days_known: bool
    user_sample_ratio: float
    counted_since_ms: int | None


def plan_of(metric: str, basis: PlanBasis, whose: str, goal: Goal) -> SizePlan:
    """All figures; StreamerError where these users do not allow any."""
    need = needed(basis.users, goal)
    if isinstance(need, str):
        raise StreamerError(f"no plan by {metric} of {whose}: {need}")
    users, days = basis.users, None
    value = Fraction(users.x) / users.y
    shown = value if percentile_of(metric) is None else nearest(value)
    if basis.half is not None:
        days = durations(users, basis.half, goal)
    fixed, anytime = (None, None) if days is None else (days.fixed, days.anytime)
    expected = need.anytime if anytime is None else round(anytime.users * 2 / goal.arms)
    return SizePlan(
        metric=metric,
        lift=goal.lift,
        power=goal.power,
        alpha=goal.alpha,
        arms=goal.arms,
        of=whose,
        first=basis.first,
        last=basis.last,
        users=users.n,
        value=float(shown) * users.x_scale,
        needed=NeededByLook(
            _needed(need.fixed, fixed, goal.arms), _needed(need.anytime, anytime, goal.arms)
        ),
        expected_users=expected,
        days_known=days is not None,
        user_sample_ratio=basis.user_sample_ratio,
        counted_since_ms=basis.counted_since_ms,
    )


def _needed(compared: int | None, duration: Duration | None, arms: int) -> NeededUsers:
    """``compared``: users of two arms."""
    users = None if compared is None else -(-compared * arms // 2)
    if duration is None:
        return NeededUsers(users, None, None)
    forecast = LookForecast(
        duration.users,
        duration.new_users,
        duration.new_ratio,
        duration.information,
        duration.returning_ratio,
    )
    return NeededUsers(users, duration.days, forecast)


def plan_lines(plan: SizePlan) -> list[str]:
    """The plan in sentences."""
    lines = [
        f"{plan.metric} of {plan.of}, {plan.first} to {plan.last}: {plan.value:.5g}, "
        f"{counted(plan.users, 'user')}",
        f"A lift of {share(plan.lift)} is found with a probability of {share(plan.power)} "
        f"(alpha {plan.alpha:g}, {plan.arms} arms of equal size):",
        f"  at a single look  {_said(plan, plan.needed.fixed)}",
        f"  at any time       {_said(plan, plan.needed.anytime)}",
    ]
    lines += _of_whom(plan)
    if plan.expected_users is not None:
        lines.append(f"For looks at any time set expected_users = {plan.expected_users}.")
    if not plan.days_known:
        lines.append(
            "A forecast of days needs events of two days, with some of what the metric counts in "
            "the first half."
        )
    if plan.user_sample_ratio < 1:
        lines.append(f"{sampled(plan.user_sample_ratio)}, and so are the needed ones.")
    if plan.counted_since_ms is not None:
        lines.append(f"{began(plan.counted_since_ms)}.")
    lines.append("Days are at the traffic of these events. CUPED needs fewer users.")
    return lines


def _said(plan: SizePlan, look: NeededUsers) -> str:
    if look.forecast is not None and look.days is not None:
        today = "more" if look.users is None else f"{look.users:,}"
        users = counted(look.forecast.users, "user")
        return f"{counted(look.days, 'day')}, {users} ({today} if each brought no more than today)"
    if look.users is None:
        return "no number of users is enough"
    return counted(look.users, "user") + (", beyond the forecast" if plan.days_known else "")


def _of_whom(plan: SizePlan) -> list[str]:
    """How many users of the forecast are new, and how much those tell who return."""
    both = (plan.needed.anytime, plan.needed.fixed)
    look = next((each for each in both if each.forecast is not None), None)
    if look is None or look.forecast is None or look.days is None:
        return []
    of, information = look.forecast, look.forecast.information_by_user
    who = f"On day {look.days} there are {counted(of.users, 'user')}"
    if of.new_users:
        most = f"{of.new_information_ratio:.0%}"
        who += f": {of.users - of.new_users:,} of today's and {of.new_users:,} new, "
        who += f"who bring {most} of the information"
    else:
        who += ", none of them new"
    if f"{information:.1f}" == "1.0":
        return [f"{who}. Users who return add nothing."]
    if information < 1:
        return [f"{who}. Each brings {information:.1f} times as much as in these events."]
    returning = f"{of.returning_information_ratio:.0%}"
    return [
        f"{who}. Each brings {information:.1f} times as much as now by returning: {returning} of "
        "it."
    ]
