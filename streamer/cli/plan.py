"""``streamer plan``: what an experiment takes, from its users before the start, or from those of
another one or of files."""

from __future__ import annotations

import argparse
import os

from streamer.cli.files import replayed
from streamer.cli.readout import experiment_of, read_sums
from streamer.cli.terminal import console_of, print_json, say
from streamer.errors import StreamerError, UsageError
from streamer.formatting import counted
from streamer.ingest.record import of_texts
from streamer.query.experiment_plans import (
    PlanBasis,
    basis_of,
    before_start,
    plan_lines,
    plan_of,
    require_goal,
)
from streamer.query.experiments import StoredExperiment, require_user_unit
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.all_users_experiment import NAME, lines_of, over_all_users
from streamer.state.user_days import DaysBefore
from streamer.stats.experiments.sizing import Goal


def main(args: argparse.Namespace) -> int:
    """Print users and days; UsageError where there is nothing to take the variance from."""
    goal = Goal(args.lift, args.power or 0.8, args.alpha or 0.05, args.arms)
    require_goal(goal, "--")
    basis, whose, code = _basis(load(args.config, os.environ), args)
    if basis is None:
        raise StreamerError(
            f"nothing is known of {whose}: no impression was counted; give files with impressions, "
            "or start the workers with these settings and wait"
        )
    plan = plan_of(args.metric, basis, whose, goal)
    if args.json:
        print_json(plan)
    else:
        for line in plan_lines(plan):
            say(console_of(), line)
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
