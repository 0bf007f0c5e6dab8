"""The readout of an experiment in words and tables."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer.formatting import counted
from streamer.query.experiment_metrics import MetricReadout
from streamer.query.experiments import ExperimentReadout, StoredExperiment
from streamer.query.exploration import Exploration
from streamer.settings.experiments import Experiment
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.srm import Split
from streamer.stats.experiments.verdict import Scale

WIDTH = 120
"""Characters of a line, where stdout is no terminal."""


def print_readout(stored: StoredExperiment, readout: ExperimentReadout) -> None:
    """Print it to stdout."""
    console = _console()
    for line in _heading(stored, readout):
        console.print(line, markup=False)
    if readout.last is None:
        return
    if readout.recommendation is not None:
        advice = readout.recommendation
        console.print(f"Recommendation: {advice.words}. {advice.reason}", markup=False)
    _print_metrics(console, stored.experiment, readout)
    if readout.metrics:
        console.print(f"\n{_legend(stored.experiment.alpha)}", markup=False)


def print_exploration(stored: StoredExperiment, exploration: Exploration) -> None:
    """Print whether the lift differs between the values, and the readout of each, to stdout."""
    console = _console()
    values = counted(len(exploration.values), "value")
    console.print(
        f"{stored.experiment.name} by {exploration.by}: to explore, not to decide by. {values} "
        f"share alpha = {stored.experiment.alpha:g}; a user is in the value that most of his "
        "first day's impressions had.",
        markup=False,
    )
    for sentence in exploration.sentences.values():
        console.print(sentence, markup=False)
    for value, readout in exploration.values.items():
        users = ", ".join(f"{arm} {n:,}" for arm, n in readout.users.items())
        console.print(f"\n{exploration.by} = {value}: users {users}", markup=False)
        _print_metrics(console, readout.experiment, readout)
    if exploration.values:
        console.print(f"\n{_legend(exploration.alpha)}", markup=False)


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def _print_metrics(console: Console, experiment: Experiment, readout: ExperimentReadout) -> None:
    for metric in readout.metrics:
        console.print(_table(metric))
        for comparison in metric.found.comparisons:
            verdict = comparison.verdict
            console.print(f"{comparison.arm}: {verdict.outcome}. {verdict.reason}", markup=False)
        for line in _notes(experiment, metric):
            console.print(line, markup=False)


def _legend(alpha: float) -> str:
    return (
        f"The interval at any time holds at level {1 - alpha:.4g} however often you look, the one "
        "at a single look\nonly at an end date set in advance. Lifts in percent are relative "
        "to the control."
    )


def _heading(stored: StoredExperiment, readout: ExperimentReadout) -> list[str]:
    experiment = stored.experiment
    against = ", ".join(arm for arm in stored.trial.arms if arm != experiment.control)
    lines = [f"{experiment.name}: {against} against {experiment.control} ({experiment.dimension})"]
    if readout.last is None:
        return [*lines, f"It has not started yet: its first day is {readout.first}."]
    users = ", ".join(f"{arm} {users:,}" for arm, users in readout.users.items())
    lines.append(f"{readout.first} to {readout.last}: users {users}")
    lines += readout.notes
    lines.append(_split(readout.metrics[0].found.split))
    return [*lines, *(f"Warning: {warning}" for warning in readout.warnings)]


def _split(split: Split) -> str:
    total = sum(split.users.values())
    shares = ", ".join(
        f"{arm} {'no users' if not total else f'{users / total:.2%}'} "
        f"(planned {split.expected[arm]:.2%})"
        for arm, users in split.users.items()
    )
    verdict = f"Users are {'NOT ' if split.is_wrong else ''}split as planned"
    return (
        f"{verdict}: {shares}; p = {split.p_value:.3g} at any time, {split.p_value_fixed:.3g} at a "
        "single look (Pearson)."
    )


def _table(metric: MetricReadout) -> Table:
    better = f"{metric.role}, {metric.direction} is better"
    margin = "" if metric.margin is None else f", harm up to {metric.margin:.3g} is tolerated"
    if metric.margin_absolute is not None:
        margin = f", harm up to {metric.margin_absolute:.6g} (absolute) is tolerated"
    title = f"{metric.name} ({better}{margin})"
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0))
    has_raw = any(_explained(c) is not None for c in metric.found.comparisons)
    headings = ["arm", "value", *(["unadjusted"] if has_raw else [])]
    headings += ["adjusted lift" if has_raw else "lift", "interval at any time", "p"]
    for heading in (*headings, "single look", "p"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    lifts = {c.arm: c for c in metric.found.comparisons}
    for arm in metric.found.arms:
        value = "no data" if arm.value is None else f"{arm.value:.5g}"
        table.add_row(arm.name, value, *_lift(lifts.get(arm.name), has_raw))
    return table


def _explained(comparison: Comparison) -> float | None:
    return None if comparison.adjusted is None else comparison.adjusted.explained


def _lift(comparison: Comparison | None, has_raw: bool) -> list[str]:
    if comparison is None:
        return ["control"]
    lift, scale = comparison.shown, comparison.verdict.scale
    write = "{:+.2%}".format if scale is Scale.RELATIVE else "{:+.4g}".format
    raw = getattr(comparison, scale).value
    cells = ["not defined" if raw is None else write(raw)] if has_raw else []
    cells.append("not defined" if lift.value is None else write(lift.value))
    for inference in (lift.anytime, lift.fixed):
        if inference is None:
            cells += ["not defined", ""]
        else:
            interval = f"{write(inference.low)} to {write(inference.high)}"
            cells += [interval, f"{inference.p_adjusted:.3g}"]
    return cells


def _notes(experiment: Experiment, metric: MetricReadout) -> list[str]:
    """What was adjusted, and how long it would take, of every treatment."""
    lines = []
    for comparison, waits in zip(metric.found.comparisons, metric.waits, strict=True):
        if comparison.adjusted is not None:
            explained, why = _explained(comparison), comparison.adjusted.reason
            before = counted(experiment.covariate_days, "day")
            lines.append(
                f"{comparison.arm}: not adjusted (CUPED): {why}."
                if explained is None
                else f"{comparison.arm}: lift and intervals are adjusted (CUPED): what users did "
                f"in the {before} before the start explains {explained:.1%} of the variance."
            )
        if waits:
            effects = "; ".join(f"{wait.effect:.0%}: {_wait(wait.days)}" for wait in waits)
            lines.append(f"{comparison.arm}: days until a lift would be detected: {effects}.")
    return lines


def _wait(days: int | None) -> str:
    if days is None:
        return "not in sight"
    return f"{days:,} more" if days else "already"
