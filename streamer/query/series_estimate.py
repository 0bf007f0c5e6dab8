"""How many series settings lead to, before there is any data: an upper estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import series_of, shown_variants
from streamer.metrics.full_sums import FullSums
from streamer.metrics.rings import rings_of
from streamer.query.readings import readout
from streamer.settings.model import Settings

BESIDES = ("other", "unknown")
"""Values that a dimension may have beside its own."""


def expected_series(
    settings: Settings, seen: Sequence[set[str]] | None = None, catalogue: Catalogue | None = None
) -> int:
    """Series at most: dimensions with the values that the settings name, else max_values of them,
    and other and unknown; all positions; every window full; without experiments, alerts and what
    the processor reports of itself. ``seen``: for each dimension the values that
    were stored, which count where the settings name none."""
    catalogue = catalogue or Catalogue(settings)
    values = _values(settings, seen)
    scopes = [("total", None), *(("window", ring) for ring in rings_of(settings))]
    found = len(readout(settings, catalogue, []).readings)
    for rollup in settings.rollups:
        segments = prod(values[name] for name in set(rollup))
        for scope, ring in scopes:
            full = FullSums(settings, catalogue.layout, ring, rollup)
            of_rollup = len(set(rollup)), settings.is_detailed(rollup)
            found += segments * sum(
                1
                for metric in catalogue.metrics
                if metric.scope == scope
                for variant in shown_variants(metric, catalogue.variants[metric.name], *of_rollup)
                for _ in series_of(metric, variant, full.find)
            )
    return found


def _values(settings: Settings, seen: Sequence[set[str]] | None) -> Mapping[str, int]:
    """Dimension → how many values it may have. Those that only ratios name are not all."""
    found = {}
    for i, dimension in enumerate(settings.kept_dimensions):
        named = set(dimension.values)
        if named - set(settings.values_of_ratios.get(dimension.name, ())):
            n = len(named)
        elif seen is not None and seen[i]:
            n = len(named | seen[i] - set(BESIDES))
        else:
            n = dimension.max_values + len(named)
        found[dimension.name] = n + len(BESIDES)
    return found
