"""The one list of metric families, and what a setting of families computes."""

from __future__ import annotations

from streamer.config import Settings
from streamer.engine.cells import Deltas
from streamer.engine.facts import Fact
from streamer.engine.layout import Layout, merge
from streamer.metrics import engagement, ranking, scoring, traffic
from streamer.metrics.declare import Family, Metric

FAMILIES: tuple[Family, ...] = (
    traffic.FAMILY,
    engagement.FAMILY,
    ranking.FAMILY,
    scoring.FAMILY,
)
PREFIX = "streamer_"


class Catalogue:
    """The families that the settings ask for: the engine's collector, and the readout's list."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        wanted = settings.metrics.families
        self.families = tuple(f for f in FAMILIES if f.name in wanted)
        self.layout: Layout = merge([f.stats(settings) for f in self.families])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(m for f in self.families for m in f.metrics)

    def collect(self, fact: Fact, deltas: Deltas) -> None:
        """Let every family add what the fact means to it."""
        for family in self.families:
            family.collect(self.settings, fact, self.layout, deltas)
