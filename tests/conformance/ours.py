"""What streamer says of slates: an engine is fed their log, and its readings are read.

A label with the name of the slate gives every slate readings of its own, means over one slate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamer.metrics import ranking, scoring
from streamer.metrics.slate_metrics import SlateMetric
from streamer.query.readings import Reading
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from tests.conformance.cases import GAINS, Case, log_of

UNIT = 10**9
MARGIN = 0.25
METRICS: dict[str, SlateMetric] = {
    metric.name: metric for metric in (*ranking.slate_metric.values, *scoring.slate_metric.values)
}


@dataclass(frozen=True, order=True)
class Value:
    """A value of a slate; ``k`` is 0 where it has no cut-off."""

    metric: str
    k: int = 0
    convention: str = ""


@dataclass
class Ours:
    """Readings of one case. ``units``: value → slate → units of 1e-9. ``mean`` and ``error``:
    (value, population) → mean over slates, and its standard error."""

    units: dict[Value, dict[str, int]] = field(default_factory=dict)
    mean: dict[tuple[Value, str], float] = field(default_factory=dict)
    error: dict[tuple[Value, str], float] = field(default_factory=dict)


def populations(metric: str) -> tuple[str, ...]:
    """Over which slates a metric is averaged; the first one holds all the others."""
    declared = METRICS[metric]
    return declared.over or (declared.population.name,)


def settings_of(case: Case) -> Settings:
    conventions = {m.name: list(m.conventions) for m in METRICS.values() if m.conventions}
    names = [slate.name for slate in case.slates]
    return parse(
        {
            "dimensions": [{"name": "slate", "values": names}],
            "windows": {"lengths": ["1h"]},
            "metrics": {
                "k": list(case.cutoffs),
                "feedback": dict(GAINS),
                "margin": MARGIN,
                "families": ["ranking", "scoring"],
                "conventions": conventions,
                "rollups": [[], ["slate"]],
                "detailed": [[], ["slate"]],
            },
        }
    )


def ours(case: Case) -> Ours:
    """Run the engine over the log of a case."""
    replay = Replay(settings_of(case))
    replay.feed(log_of(case.slates))
    replay.finish()
    found = Ours()
    for name, reading in _of_slates(replay.readout().readings):
        labels = reading.labels
        metric = name.removesuffix("_stderr")
        value = Value(metric, int(labels.get("k", 0)), labels.get("convention", ""))
        over = labels.get("over") or populations(metric)[0]
        if labels["slate"] == "all":
            means = found.mean if name == metric else found.error
            means[value, over] = float(reading.value)
        elif name == metric and over == populations(metric)[0]:
            units = round(reading.value * UNIT)
            found.units.setdefault(value, {})[labels["slate"]] = units
    return found


def _of_slates(readings: list[Reading]) -> Iterator[tuple[str, Reading]]:
    for reading in readings:
        name = reading.name.removeprefix("streamer_")
        is_shown = reading.labels.get("maturity", "provisional") == "provisional"
        if is_shown and name.removesuffix("_stderr") in METRICS:
            yield name, reading
