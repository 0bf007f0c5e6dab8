"""What the users of today say of an experiment that has not begun: their metric, their number."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

import msgspec

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


def plan_document(metric: str, basis: PlanBasis, whose: str, goal: Goal) -> dict[str, Any]:
    """All figures; StreamerError where these users do not allow any."""
    need = needed(basis.users, goal)
    if isinstance(need, str):
        raise StreamerError(f"no plan by {metric} of {whose}: {need}")
    users, days = basis.users, None
    value = Fraction(users.x) / users.y
    shown = value if percentile_of(metric) is None else nearest(value)
    if basis.half is not None:
        days = durations(users, basis.half, goal)
    looks, expected = {}, need.anytime
    for look, compared in (("fixed", need.fixed), ("anytime", need.anytime)):
        duration = None if days is None else getattr(days, look)
        looks[look] = {
            "users": None if compared is None else -(-compared * goal.arms // 2),
            "days": None if duration is None else duration.days,
            "forecast": None if duration is None else _forecast(duration),
        }
    if days is not None and days.anytime is not None:
        expected = round(days.anytime.users * 2 / goal.arms)
    return {
        "metric": metric,
        **msgspec.to_builtins(goal),
        "of": whose,
        "first": basis.first.isoformat(),
        "last": basis.last.isoformat(),
        "users": users.n,
        "value": float(shown) * users.x_scale,
        "needed": looks,
        "expected_users": expected,
        "days_known": days is not None,
        "user_sample_ratio": basis.user_sample_ratio,
        "counted_since_ms": basis.counted_since_ms,
    }


def _forecast(duration: Duration) -> dict[str, Any]:
    """Who there is by then, in all arms, and of whom what is known then comes."""
    return {
        "users": duration.users,
        "new_users": duration.new_users,
        "new_information_ratio": duration.new_ratio,
        "information_by_user": duration.information,
        "returning_information_ratio": duration.returning_ratio,
    }


def plan_lines(plan: dict[str, Any]) -> list[str]:
    lines = [
        f"{plan['metric']} of {plan['of']}, {plan['first']} to {plan['last']}: "
        f"{plan['value']:.5g}, {counted(plan['users'], 'user')}",
        f"A lift of {share(plan['lift'])} is found with a probability of {share(plan['power'])} "
        f"(alpha {plan['alpha']:g}, {plan['arms']} arms of equal size):",
        f"  at a single look  {_said(plan, 'fixed')}",
        f"  at any time       {_said(plan, 'anytime')}",
    ]
    lines += _of_whom(plan)
    if plan["expected_users"] is not None:
        lines.append(f"For looks at any time set expected_users = {plan['expected_users']}.")
    if not plan["days_known"]:
        lines.append(
            "A forecast of days needs events of two days, with some of what the metric counts in "
            "the first half."
        )
    if plan["user_sample_ratio"] < 1:
        lines.append(f"{sampled(plan['user_sample_ratio'])}, and so are the needed ones.")
    if plan["counted_since_ms"] is not None:
        lines.append(f"{began(plan['counted_since_ms'])}.")
    lines.append("Days are at the traffic of these events. CUPED needs fewer users.")
    return lines


def _said(plan: dict[str, Any], look: str) -> str:
    duration = plan["needed"][look]
    if duration["days"] is not None:
        today = "more" if duration["users"] is None else f"{duration['users']:,}"
        days = counted(duration["days"], "day")
        users = counted(duration["forecast"]["users"], "user")
        return f"{days}, {users} ({today} if each brought no more than today)"
    if duration["users"] is None:
        return "not with any number of users"
    return counted(duration["users"], "user") + (", not in sight" if plan["days_known"] else "")


def _of_whom(plan: dict[str, Any]) -> list[str]:
    """How many users of the forecast are new, and how much those tell who return."""
    needed = plan["needed"]
    look = needed["anytime"] if needed["anytime"]["days"] is not None else needed["fixed"]
    if look["days"] is None:
        return []
    forecast = look["forecast"]
    users, new, information = (
        forecast["users"],
        forecast["new_users"],
        forecast["information_by_user"],
    )
    who = f"On day {look['days']} there are {counted(users, 'user')}"
    if new:
        most = f"{forecast['new_information_ratio']:.0%}"
        who += f": {users - new:,} of now and {new:,} new, who bring {most} of the information"
    else:
        who += ", none of them new"
    if f"{information:.1f}" == "1.0":
        return [f"{who}. Users who return add nothing."]
    if information < 1:
        return [f"{who}. Each brings {information:.1f} times as much as in these events."]
    returning = f"{forecast['returning_information_ratio']:.0%}"
    return [
        f"{who}. Each brings {information:.1f} times as much as now by returning: {returning} of "
        "it."
    ]
