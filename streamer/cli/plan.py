"""``streamer plan``: what an experiment takes, from its users before the start, or from those of
another one or of files."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import msgspec

from streamer.cli.files import replayed
from streamer.cli.readout import experiment_of, read_sums
from streamer.cli.terminal import console_of, say
from streamer.errors import StreamerError, UsageError
from streamer.formatting import counted, share
from streamer.ingest.record import of_texts
from streamer.query.experiment_plans import PlanBasis, basis_of, before_start
from streamer.query.experiments import StoredExperiment, began, require_user_unit, sampled
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.limits import MAX_ARMS
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.all_users_experiment import NAME, lines_of, over_all_users
from streamer.state.user_days import DaysBefore
from streamer.stats.experiments.duration import Duration, durations
from streamer.stats.experiments.sizing import Goal, needed


def main(args: argparse.Namespace) -> int:
    """Print users and days; UsageError where there is nothing to take the variance from."""
    if not 2 <= args.arms <= MAX_ARMS:
        raise UsageError(f"--arms {args.arms}: 2 to {MAX_ARMS}, with the control")
    if args.power is not None and args.power < 0.5:
        raise UsageError(f"--power {args.power:g}: at least 0.5")
    goal = Goal(args.lift, args.power or 0.8, args.alpha or 0.05, args.arms)
    basis, whose, code = _basis(load(args.config, os.environ), args)
    if basis is None:
        raise StreamerError(
            f"nothing is known of {whose}: no impression was counted; give files with impressions, "
            "or start the workers with these settings and wait"
        )
    plan = _plan(args.metric, basis, whose, goal)
    if args.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode() + "\n")
    else:
        say(console_of(), _text(plan))
    return code


def _basis(settings: Settings, args: argparse.Namespace) -> tuple[PlanBasis | None, str, int]:
    """What the plan is made from, whose it is, and an exit code."""
    if args.experiment is not None:
        return _of_experiment(settings, args)
    if not args.file:
        raise UsageError(
            "plan needs users to learn from: --experiment NAME, or --file FILE with events"
        )
    everybody = over_all_users(of_texts(settings), args.metric)
    replay, code = replayed(everybody, args.file, lines_of)
    return basis_of(replay.experiments()[NAME], args.metric), "all users of the files", code


def _of_experiment(
    settings: Settings, args: argparse.Namespace
) -> tuple[PlanBasis | None, str, int]:
    """From the control of an experiment, or before its start from everybody."""
    experiment = experiment_of(settings, args.experiment)
    names = [metric.name for metric in experiment.metrics]
    if args.metric not in names:
        raise UsageError(
            f"no metric {args.metric!r} in experiment {args.experiment!r}; it has "
            f"{', '.join(names)}"
        )
    stored, sums, code = read_sums(settings, experiment.name, _days_before, args.file)
    whose = f"the users of {experiment.control}, the control of {experiment.name}"
    if sums is not None:
        stored = before_start(stored, sums.get("", []))
        days = counted(len(stored.trial.days), "day")
        whose = f"all users of the {days} before {experiment.name} starts"
    return basis_of(stored, args.metric), whose, code


def _days_before(stored: StoredExperiment) -> DaysBefore | None:
    """None where the experiment has started; UsageError where nothing can be known before."""
    if stored.last_day is not None:
        return None
    experiment, before = stored.experiment, before_start(stored)
    if before.last_day is not None:
        require_user_unit(stored, "a plan by days before the start")
        return DaysBefore(stored.trial)
    when = stored.starts_later
    otherwise = "wait for the start, or give events by --file without --experiment"
    if not before.trial.days:
        raise UsageError(
            f"{when} and has covariate_days = 0, so nobody is counted before it: set "
            f"covariate_days and restart the workers, {otherwise}"
        )
    last = date_of(stored.stream_ms // DAY_MS)
    so_far = f"there are events up to {last}" if stored.stream_ms else "there are no events yet"
    raise UsageError(
        f"{when} and its {counted(experiment.covariate_days, 'covariate day')} begin on "
        f"{date_of(before.trial.days.start)}; {so_far}: wait until then, set more covariate_days "
        "and restart the workers, or give events by --file without --experiment"
    )


def _plan(metric: str, basis: PlanBasis, whose: str, goal: Goal) -> dict[str, Any]:
    """All figures; StreamerError where these users do not allow any."""
    need = needed(basis.users, goal)
    if isinstance(need, str):
        raise StreamerError(f"no plan by {metric} of {whose}: {need}")
    users, days = basis.users, None
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
        "value": users.x / users.y * users.x_scale,
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


def _text(plan: dict[str, Any]) -> str:
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
    return "\n".join(lines)


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
