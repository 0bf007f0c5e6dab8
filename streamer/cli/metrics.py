"""``streamer metrics``: list the metrics: name, formula, unit, when absent."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer.cli.metric_page import page_of
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
        words = dict.fromkeys(word for name in names for word in name.split("_"))
        close = nearest(part.casefold().removeprefix(PREFIX), [*names, *words])
        meant = f"did you mean {close!r}?" if close else "`streamer metrics` lists all"
        raise UsageError(f"no metric has {part!r} in its name: {meant}")
    return matching


def _single(name: str | None, chosen: list[Entry]) -> Entry | None:
    """The metric that is meant: the only one, or the one that is called so, `_ratio` left out."""
    if name is None:
        return None
    called = name.casefold().removeprefix(PREFIX)
    exact = [e for e in chosen if e.name.removeprefix(PREFIX) in (called, f"{called}_ratio")]
    return exact[0] if exact else chosen[0] if len(chosen) == 1 else None


def main(args: argparse.Namespace) -> int:
    """Print the catalogue, or what of it a name asks for."""
    chosen = entries() if args.name is None else named(args.name)
    if args.json:
        document = msgspec.json.encode([asdict(entry) for entry in chosen])
        sys.stdout.write(msgspec.json.format(document, indent=1).decode() + "\n")
        return 0
    single = _single(args.name, chosen)
    if single is not None:
        sys.stdout.write(page_of(single, SOURCES))
        others = [entry.name.removeprefix(PREFIX) for entry in chosen if entry is not single]
        if others:
            sys.stdout.write(f"see also   {', '.join(others)}\n")
        return 0
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("name", overflow="fold", no_wrap=not console.is_terminal)
    for heading in ("formula", "unit", "when empty"):
        table.add_column(heading)
    family = ""
    for entry in chosen:
        if entry.family != family:
            family = entry.family
            table.add_section()
        labels = f"{{{','.join(entry.labels)}}}" if entry.labels else ""
        table.add_row(entry.name + labels, entry.formula, entry.unit, entry.empty)
    console.print(table, markup=False)
    console.print(
        "Metrics of a window have the label `window`; these and the totals have a label for each\n"
        "dimension, which is `all` in a rollup. More: docs/metrics.md."
    )
    return 0
