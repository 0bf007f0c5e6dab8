"""``streamer metrics``: list the metrics: name, formula, unit, when absent."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer.errors import UsageError
from streamer.metrics.catalogue import FAMILIES, PREFIX
from streamer.metrics.definition import Metric
from streamer.query import alert_gauges, experiment_gauges
from streamer.query.counters import COUNTERS
from streamer.settings.nearest import nearest

_WIDTH = 160
"""Characters of a line, where stdout is no terminal."""


@dataclass(frozen=True)
class Entry:
    """One series of ``/metrics``. ``labels`` lacks what many share: window and dimensions."""

    name: str
    family: str
    kind: str
    scope: str
    labels: tuple[str, ...]
    formula: str
    unit: str
    empty: str
    source: str
    doc: str
    brief: str = ""
    """What of it every rollup shows; nothing: it is for detailed rollups."""


def entries() -> list[Entry]:
    """All that streamer can show, whatever the settings ask for."""
    counters = [
        Entry(
            *(PREFIX + c.name, c.family, c.kind, "total", c.labels),
            *(c.formula, c.unit, c.empty, "", c.doc),
        )
        for c in (*COUNTERS, *experiment_gauges.GAUGES, *alert_gauges.GAUGES)
    ]
    metrics = [
        Entry(
            *(PREFIX + m.name, family.name, m.kind, m.scope, m.labels),
            *(m.formula, m.unit, m.empty, m.source, m.doc, _brief(m)),
        )
        for family in FAMILIES
        for m in family.metrics
    ]
    return counters + metrics


def named(part: str) -> list[Entry]:
    """Entries whose name holds a text; UsageError where there are none."""
    every = entries()
    found = [entry for entry in every if part.casefold() in entry.name]
    if not found:
        names = [entry.name.removeprefix(PREFIX) for entry in every]
        words = dict.fromkeys(word for name in names for word in name.split("_"))
        close = nearest(part.casefold().removeprefix(PREFIX), [*names, *words])
        meant = f"did you mean {close!r}?" if close else "`streamer metrics` lists all"
        raise UsageError(f"no metric has {part!r} in its name: {meant}")
    return found


def _brief(metric: Metric) -> str:
    """What of a metric every rollup shows, in words."""
    if metric.brief is None:
        return ""
    only = ", ".join(f'{name}="{value}"' for name, value in metric.brief.labels.items())
    crossings = ", single dimensions only" if metric.brief.dimensions == 1 else ""
    return f"brief{f' ({only}{crossings})' if only or crossings else ''}"


def main(args: argparse.Namespace) -> int:
    """Print the catalogue, or what of it a name asks for."""
    chosen = entries() if args.name is None else named(args.name)
    if args.json:
        document = msgspec.json.encode([asdict(entry) for entry in chosen])
        sys.stdout.write(msgspec.json.format(document, indent=1).decode() + "\n")
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
