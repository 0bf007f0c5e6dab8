"""A readout in words and tables."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from streamer.cli.terminal import (
    BAD,
    GOOD,
    MUTED,
    STRONG,
    WARNING,
    Grid,
    TextColumn,
    console_of,
    name_column,
    say,
)
from streamer.formatting import counted, p_value, share
from streamer.query.experiment_list import ReadoutList
from streamer.query.experiment_pairs import PairList
from streamer.query.exploration import Exploration
from streamer.query.notes import Severity
from streamer.query.readout import (
    ComparisonReading,
    MetricReading,
    Readout,
)
from streamer.query.shown_lift import lift_of

_PILLS = {"good": GOOD, "bad": BAD, "warn": WARNING}
_NOTES = {Severity.WARNING: WARNING, Severity.BAD: BAD}


def print_readout(readout: Readout) -> None:
    """Print it to stdout, what to do first."""
    console = console_of()
    if (advice := readout.recommendation) is not None:
        style = _PILLS.get(advice.pill.kind, STRONG)
        first = Text.assemble(f"{readout.name}: ", (advice.sentence, style))
        say(console, first.append(f". {advice.reason}"))
    say(console, f"{readout.name}: {readout.who}, {readout.when}")
    if readout.last is None:
        return
    say(console, f"Users: {readout.users_words}")
    for note in readout.notes:
        say(console, note.line, style=_NOTES.get(note.severity, ""))
    _print_metrics(console, readout)
    console.print()
    say(console, readout.method, style=MUTED)


def print_list(every: ReadoutList) -> None:
    """Print the list of experiments to stdout."""
    console = console_of()
    needs = ", ".join(f"{n} {word}" for word, n in every.needs.items() if n)
    say(console, f"{counted(len(every.experiments), 'experiment')}: {needs or 'none'}")
    if every.false_discovery_rate is not None:
        at = share(every.false_discovery_rate)
        say(console, f"Shipped are discoveries among all, at a rate of {at}.")
    for row in every.experiments:
        console.print()
        name = f"{row.name}{' (found)' if row.is_found else ''}"
        if row.advice is None or row.lift is None or row.split is None:
            say(console, f"{name} starts on {row.start}")
            continue
        style = _PILLS.get(row.advice.pill.kind, STRONG)
        say(console, Text.assemble(f"{name}: ", (row.advice.sentence, style)))
        split = "split broken" if row.split.is_wrong else "split as planned"
        days = "no day of data" if row.days is None else row.days.words
        lift = f"{row.metric}, {row.treatment}: {row.lift.text} ({row.lift.range})"
        say(console, " · ".join((lift, f"{row.users:,} users", days, split)), indent=2)


def print_pairs(every: PairList) -> None:
    """Print what is wrong between experiments to stdout."""
    console = console_of()
    say(console, every.words)
    for pair in every.pairs:
        if pair.problem:
            say(console, pair.problem, style=WARNING)


def print_exploration(exploration: Exploration) -> None:
    """Print whether the lift differs between the values, and the readout of each, to stdout."""
    console = console_of()
    say(console, f"{exploration.name}: {exploration.words}")
    for test in exploration.heterogeneity:
        say(console, test.sentence)
    method = ""
    for value, readout in exploration.values.items():
        console.print()
        say(console, f"{exploration.by} = {value}: users {readout.users_words}")
        _print_metrics(console, readout)
        method = readout.method
    if method:
        console.print()
        say(console, method, style=MUTED)


def _print_metrics(console: Console, readout: Readout) -> None:
    for metric in readout.metrics:
        role = f" ({metric.role})" if metric.role else ""
        console.print()
        say(console, f"{metric.name}{role}: {metric.rule}", style=STRONG)
        _table(metric).print(console)
        for comparison in metric.comparisons:
            style = _PILLS.get(comparison.pill.kind, "")
            verdict = (comparison.pill.words, style)
            words = Text.assemble(f"{comparison.arm}: ", verdict, f". {comparison.verdict.reason}")
            say(console, words)
            for each in comparison.statistics:
                say(console, f"{comparison.arm}: {each.title}: {each.text}")


def _table(metric: MetricReading) -> Grid:
    has_raw = any(its.lift.unadjusted is not None for its in metric.comparisons)
    headings = ["value", *(["unadjusted"] if has_raw else [])]
    headings += ["adjusted lift" if has_raw else "lift", "safe to check daily", "p"]
    table = Grid(name_column("arm"), *map(TextColumn, (*headings, "one look", "p")))
    lifts = {comparison.arm: comparison for comparison in metric.comparisons}
    for arm in metric.arms:
        cells = ["control"]
        if arm.name in lifts:
            cells = _lift(metric, lifts[arm.name], has_raw)
        table.add(arm.name, arm.text, *cells)
    return table


def _lift(metric: MetricReading, comparison: ComparisonReading, has_raw: bool) -> list[str]:
    lift, cells = comparison.lift, list[str]()
    if has_raw:
        cells.append("" if lift.unadjusted is None else lift.unadjusted.text)
    cells.append(lift.text)
    for inference in (comparison.shown.anytime, comparison.shown.fixed):
        cells.append(lift_of(comparison.shown, inference, lift.scale, metric.form).range)
        cells.append("" if inference is None else p_value(inference.p_adjusted))
    return cells
