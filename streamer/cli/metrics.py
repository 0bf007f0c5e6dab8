"""``streamer metrics``: list the metrics: name, formula, unit, when absent."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from streamer.cli.metric_page import BESIDE, page_of
from streamer.cli.terminal import (
    Grid,
    console_of,
    name_column,
    print_document,
    print_json,
    say,
    say_beside,
    text_column,
)
from streamer.errors import UsageError
from streamer.metrics.catalogue import PREFIX
from streamer.server.series import Entry, entries
from streamer.settings.names import nearest

SOURCES = {
    "P": "recommender-evaluation primer",
    "G": "Gorse, evaluation page",
    "J": "Jurity, metric page",
    "L": "learning-to-rank notes",
    "H": "He et al., predicting clicks on ads, 2014",
    "D": "Dudík et al., doubly robust policy evaluation, 2011",
    "C": "Siddiqi, credit risk scorecards, 2006",
    "S": "Swaminathan and Joachims, self-normalized estimator, 2015",
}
"""Letter → where a formula is from."""
_WIDTH = 160
"""Characters of a line, where stdout is no terminal."""


def named(part: str) -> list[Entry]:
    """Entries whose name holds a text; UsageError where there are none."""
    every = entries()
    matching = [entry for entry in every if part.casefold() in entry.name]
    if not matching:
        names = [entry.name.removeprefix(PREFIX) for entry in every]
        words = dict.fromkeys(word for each in names for word in each.split("_"))
        close = nearest(part.casefold().removeprefix(PREFIX), [*names, *words])
        meant = f"did you mean {close!r}?" if close else "`streamer metrics` lists all"
        raise UsageError(f"no metric has {part!r} in its name: {meant}")
    return matching


def _single(given: str | None, chosen: list[Entry]) -> Entry | None:
    """The metric that is meant: the only one, or the one that is called so, `_ratio` left out."""
    if given is None:
        return None
    called = given.casefold().removeprefix(PREFIX)
    exact = [e for e in chosen if e.name.removeprefix(PREFIX) in (called, f"{called}_ratio")]
    return exact[0] if exact else chosen[0] if len(chosen) == 1 else None


def _print_page(entry: Entry, others: Sequence[str]) -> None:
    """Print one metric, and names of ``others``."""
    text = page_of(entry, SOURCES)
    if others:
        text += f"{'see also':<{BESIDE}}{', '.join(others)}\n"
    console = console_of()
    if not console.is_terminal:
        print_document(text)
        return
    for line in text.splitlines():
        head = BESIDE if line[:BESIDE].endswith("  ") else len(line) - len(line.lstrip())
        say_beside(console, Text(line[:head]), line[head:])


def main(args: argparse.Namespace) -> int:
    """Print the catalogue, or what of it a name asks for."""
    chosen = entries() if args.name is None else named(args.name)
    if args.json:
        print_json([asdict(entry) for entry in chosen])
        return 0
    single = _single(args.name, chosen)
    if single is not None:
        others = [entry.name.removeprefix(PREFIX) for entry in chosen if entry is not single]
        _print_page(single, others)
        return 0
    console = console_of(width=_WIDTH)
    table = Grid(
        name_column("name"), text_column("formula"), text_column("unit"), text_column("when empty")
    )
    family = ""
    for entry in chosen:
        if entry.family != family:
            family = entry.family
            table.add_section()
        labels = f"{{{','.join(entry.labels)}}}" if entry.labels else ""
        table.add(entry.name + labels, entry.formula, entry.unit, entry.empty)
    table.print(console)
    say(
        console,
        "Metrics of a window have the label `window`; these and the totals have a label for each "
        "dimension, which is `all` in a rollup. More: docs/metrics.md.",
    )
    return 0
