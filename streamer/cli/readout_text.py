"""The document of a readout in words and tables."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer import formatting
from streamer.query.experiment_list import interval_words
from streamer.query.readout_document import Document, heading_of, lines_of, users_of_arms

WIDTH = 120
"""Characters of a line, where stdout is no terminal."""


def print_readout(readout: Document) -> None:
    """Print it to stdout."""
    console = _console()
    for line in heading_of(readout):
        console.print(line, markup=False)
    if readout["last"] is None:
        return
    _print_metrics(console, readout)
    console.print(f"\n{readout['method']}", markup=False)


def print_list(every: Document) -> None:
    """Print the list of experiments to stdout."""
    console = _console()
    needs = ", ".join(f"{n} {word}" for word, n in every["needs"].items() if n)
    console.print(f"{len(every['experiments'])} experiments: {needs or 'none'}", markup=False)
    if (rate := every["false_discovery_rate"]) is not None:
        at = formatting.share(rate)
        console.print(f"Shipped are discoveries among all, at a rate of {at}.", markup=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("experiment", "advice", "metric"):
        table.add_column(heading, overflow="fold")
    for heading in ("lift", "interval at any time", "users", "days", "split"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in every["experiments"]:
        name = f"{row['name']}{' (found)' if row['is_found'] else ''}"
        if "advice" not in row:
            table.add_row(name, f"starts on {row['start']}", *[""] * 6)
            continue
        split = "wrong" if row["is_split_wrong"] else "as planned"
        table.add_row(
            *(name, row["advice"], f"{row['metric']}, {row['treatment']}", *interval_words(row)),
            *(f"{row['users']:,}", str(row["days"] or 0), split),
        )
    console.print(table)


def print_pairs(every: Document) -> None:
    """Print what is wrong between experiments to stdout."""
    console = _console()
    console.print(every["words"], markup=False)
    for pair in every["pairs"]:
        if pair["problem"]:
            console.print(pair["problem"], markup=False)


def print_exploration(exploration: Document) -> None:
    """Print whether the lift differs between the values, and the readout of each, to stdout."""
    console = _console()
    console.print(f"{exploration['name']}: {exploration['words']}", markup=False)
    for test in exploration["heterogeneity"]:
        console.print(test["sentence"], markup=False)
    method = ""
    for value, readout in exploration["values"].items():
        console.print(
            f"\n{exploration['by']} = {value}: users {users_of_arms(readout)}", markup=False
        )
        _print_metrics(console, readout)
        method = readout["method"]
    if method:
        console.print(f"\n{method}", markup=False)


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def _print_metrics(console: Console, readout: Document) -> None:
    for metric in readout["metrics"]:
        console.print(_table(metric))
        for line in lines_of(metric):
            console.print(line, markup=False)


def _table(metric: Document) -> Table:
    table = Table(box=SIMPLE_HEAD, title=metric["rule"], title_justify="left", padding=(0, 1, 0, 0))
    has_raw = any(_is_adjusted(comparison) for comparison in metric["comparisons"])
    headings = ["arm", "value", *(["unadjusted"] if has_raw else [])]
    headings += ["adjusted lift" if has_raw else "lift", "interval at any time", "p"]
    for heading in (*headings, "single look", "p"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    lifts = {comparison["arm"]: comparison for comparison in metric["comparisons"]}
    for arm in metric["arms"]:
        value = arm["value"]
        text = "no data" if value is None else formatting.value_text(metric["form"], value)
        table.add_row(arm["name"], text, *_lift(lifts.get(arm["name"]), has_raw))
    return table


def _is_adjusted(comparison: Document) -> bool:
    adjusted = comparison["adjusted"]
    return adjusted is not None and adjusted["explained"] is not None


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
