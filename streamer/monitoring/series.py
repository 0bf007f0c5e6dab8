"""What streamer declares of its series, as a panel needs it: the description and Grafana's unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamer.metrics.catalogue import FAMILIES, PREFIX
from streamer.metrics.definition import Metric
from streamer.query import alert_gauges, experiment_gauges
from streamer.query.counters import COUNTERS, Counter
from streamer.server.processor import (
    Health,
    Standstill,
    keyed_metric,
    log_metrics,
    processor_metrics,
    unread_metric,
)
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader

NUMBER, PERCENT, SECONDS, YES_NO = "short", "percentunit", "s", "bool_yes_no"
_UNITS = {"ratio": PERCENT, "seconds": SECONDS, "epoch seconds": SECONDS, "0 or 1": YES_NO}


@dataclass(frozen=True)
class Declared:
    """A series of ``/metrics``; ``labels`` lacks the window and the dimensions."""

    name: str
    description: str
    unit: str = NUMBER
    labels: tuple[str, ...] = ()


def declared() -> dict[str, Declared]:
    """Every series by its name without ``streamer_``: the catalogue's and the processor's own."""
    every = (*_catalogue(), *_processor())
    return {found.name.removeprefix(PREFIX): found for found in every}


def _catalogue() -> Iterator[Declared]:
    every: list[Counter | Metric] = [*COUNTERS, *experiment_gauges.GAUGES, *alert_gauges.GAUGES]
    every += [metric for family in FAMILIES for metric in family.metrics]
    for each in every:
        text = f"{each.doc}\n\nFormula: {each.formula}. When empty: {each.empty}."
        unit = _UNITS.get(each.unit, NUMBER)
        yield Declared(PREFIX + each.name, text, unit, tuple(each.labels))


def _processor() -> Iterator[Declared]:
    families = [
        *processor_metrics(Reader(MemoryStore()), [], Health()),
        *log_metrics({}, Standstill()),
        keyed_metric(Settings(), {}),
        unread_metric(Settings(), {}),
    ]
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        unit = SECONDS if family.name.endswith("_seconds") else NUMBER
        yield Declared(name, family.documentation, unit)
    yield Declared(f"{PREFIX}readout_seconds", "Time the last readout took.", SECONDS)
