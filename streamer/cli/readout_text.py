"""The document of a readout in words and tables."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from streamer import formatting
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
    text_column,
)
from streamer.formatting import counted
from streamer.query.experiment_list import interval_words
from streamer.query.readout_document import Document, heading_of, lines_of, users_of_arms
from streamer.stats.experiments.recommendation import DISTRUST, Action
from streamer.stats.experiments.verdict import Outcome

_ADVICE = {
    Action.SHIP: GOOD,
    Action.STOP_HARM: BAD,
    **dict.fromkeys(DISTRUST, BAD),
    Action.STOP_NO_EFFECT: WARNING,
    Action.UNDECIDED: WARNING,
}
_OUTCOMES = {
    Outcome.BETTER: GOOD,
    Outcome.NO_HARM: GOOD,
    Outcome.WORSE: BAD,
    Outcome.HARM: BAD,
    Outcome.INVALID: BAD,
    Outcome.WORSE_WITHIN: WARNING,
}


def print_readout(readout: Document) -> None:
    """Print it to stdout, what to do first."""
    console = console_of()
    lines = heading_of(readout)
    if (advice := readout["recommendation"]) is not None:
        style = _ADVICE.get(advice["action"], STRONG)
        first = Text.assemble(f"{readout['name']}: ", (advice["words"], style))
        say(console, first.append(f". {advice['reason']}"))
        lines = lines[:-1]
    for line in lines:
        say(console, line, style=WARNING if line.startswith("Warning: ") else "")
    if readout["last"] is None:
        return
    _print_metrics(console, readout)
    console.print()
    say(console, f"{readout['method']}", style=MUTED)


def print_list(every: Document) -> None:
    """Print the list of experiments to stdout."""
    console = console_of()
    needs = ", ".join(f"{n} {word}" for word, n in every["needs"].items() if n)
    say(console, f"{counted(len(every['experiments']), 'experiment')}: {needs or 'none'}")
    if (rate := every["false_discovery_rate"]) is not None:
        at = formatting.share(rate)
        say(console, f"Shipped are discoveries among all, at a rate of {at}.")
    headings = ("lift", "interval at any time", "users", "days", "split")
    table = Grid(
        *(name_column("experiment"), text_column("advice"), name_column("metric")),
        *map(TextColumn, headings),
    )
    for row in every["experiments"]:
        name = f"{row['name']}{' (found)' if row['is_found'] else ''}"
        if "advice" not in row:
            table.add(name, f"starts on {row['start']}")
            continue
        split = Text("wrong", BAD) if row["is_split_wrong"] else "as planned"
        table.add(
            *(name, row["advice"], f"{row['metric']}, {row['treatment']}", *interval_words(row)),
            *(f"{row['users']:,}", str(row["days"] or 0), split),
        )
    table.print(console)


def print_pairs(every: Document) -> None:
    """Print what is wrong between experiments to stdout."""
    console = console_of()
    say(console, every["words"])
    for pair in every["pairs"]:
        if pair["problem"]:
            say(console, pair["problem"], style=WARNING)


def print_exploration(exploration: Document) -> None:
    """Print whether the lift differs between the values, and the readout of each, to stdout."""
    console = console_of()
    say(console, f"{exploration['name']}: {exploration['words']}")
    for test in exploration["heterogeneity"]:
        say(console, test["sentence"])
    method = ""
    for value, readout in exploration["values"].items():
        console.print()
        say(console, f"{exploration['by']} = {value}: users {users_of_arms(readout)}")
        _print_metrics(console, readout)
        method = readout["method"]
    if method:
        console.print()
        say(console, f"{method}", style=MUTED)


def _print_metrics(console: Console, readout: Document) -> None:
    for metric in readout["metrics"]:
        console.print()
        say(console, f"{metric['rule']}", style=STRONG)
        _table(metric).print(console)
        outcomes = {c["arm"]: c["verdict"]["outcome"] for c in metric["comparisons"]}
        for line in lines_of(metric):
            arm, _, sentence = line.partition(": ")
            outcome = outcomes.get(arm, "")
            is_verdict = bool(outcome) and sentence.startswith(outcome)
            style = _OUTCOMES.get(outcome, "") if is_verdict else ""
            words = Text(line)
            words.stylize(style, len(arm) + 2, len(arm) + 2 + len(outcome))
            say(console, words)


def _table(metric: Document) -> Grid:
    has_raw = any(its["unadjusted"] is not None for its in metric["comparisons"])
    headings = ["value", *(["unadjusted"] if has_raw else [])]
    headings += ["adjusted lift" if has_raw else "lift", "interval at any time", "p"]
    table = Grid(name_column("arm"), *map(TextColumn, (*headings, "single look", "p")))
    lifts = {comparison["arm"]: comparison for comparison in metric["comparisons"]}
    for arm in metric["arms"]:
        value = _value(arm["value"], metric["form"])
        table.add(arm["name"], value, *_lift(lifts.get(arm["name"]), has_raw))
    return table


def _value(value: float | None, form: str) -> str:
    """A value in the unit of its metric.

    >>> _value(0.0040432, "percent"), _value(12.5, "seconds"), _value(None, "number")
    ('0.4043%', '12.5 s', 'no data')
    """
    if value is None:
        return "no data"
    if form == "percent":
        return f"{100 * value:.4g}%"
    return f"{value:.5g} s" if form == "seconds" else f"{value:.5g}"


def _lift(comparison: Document | None, has_raw: bool) -> list[str]:
    if comparison is None:
        return ["control"]
    scale = comparison["verdict"]["scale"]
    lift = (comparison["adjusted"] or comparison)[scale]
    write = formatting.lift if scale == "relative" else formatting.signed
    raw = comparison[scale]["value"]
    cells = ["not defined" if raw is None else write(raw)] if has_raw else []
    cells.append("not defined" if lift["value"] is None else write(lift["value"]))
    for inference in (lift["anytime"], lift["fixed"]):
        if inference is None:
            cells += ["not defined", ""]
        else:
            interval = f"{write(inference['low'])} to {write(inference['high'])}"
            cells += [interval, formatting.p_value(inference["p_adjusted"])]
    return cells
