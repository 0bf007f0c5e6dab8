"""How many series settings lead to, before there is any data: an upper estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import Noted, shown_series
from streamer.metrics.item_counts import ItemTable, item_counts
from streamer.metrics.rings import Ring, rings_of
from streamer.metrics.sums import part_of, read
from streamer.query.readings import readout
from streamer.settings.model import Settings

_LATE_MS = 10**13
"""A time at which every window is full."""
BESIDES = ("other", "unknown")
"""Values that a dimension may have beside its own."""
ASSUMED = (
    "dimensions with the values that the settings name, else max_values of them, and other and "
    "unknown; all positions; every window full; without experiments, alerts and what the "
    "processor reports of itself"
)
"""What the estimate rests on, in words."""


class _Full(Noted):
    """One segment in which every statistic has something. Is the metrics' ``Sums``."""

    user_sample_ratio = 1.0

    def __init__(
        self, settings: Settings, catalogue: Catalogue, ring: Ring | None, rollup: Sequence[str]
    ) -> None:
        self.settings, self.layout, self._ring = settings, catalogue.layout, ring
        self.composites = catalogue.composites
        self._dimensions = () if rollup else settings.dimension_names
        is_window = ring is not None and ring.label in settings.item_windows
        self._is_counted = is_window and set(rollup) <= set(settings.items.dimensions)
        self.memo: dict[str, Any] = {}

    def __call__(self, name: str) -> I64:
        width = self.layout.width[name]
        return np.ones(1 if width == 1 else (1, width), np.int64)

    def overall(self, name: str) -> I64:
        first: I64 = self(name)[0]
        return first

    @property
    def rows(self) -> Sequence[str]:
        return [""]

    @property
    def all_items(self) -> ItemTable | None:
        declared = item_counts(self.settings)
        if declared is None:
            return None
        counts = np.full((2, declared.places), 2, np.int64)
        return ItemTable(np.arange(2), counts, counts[0])

    def items(self, places: Sequence[int], horizon_ms: int | None = None) -> dict[int, ItemTable]:
        is_held = self._is_counted and (horizon_ms is None or self._is_old(horizon_ms))
        return {0: self.all_items} if is_held and self.all_items is not None else {}

    def users_of_longest(self, stat: int) -> I64:
        return self.users(stat)

    def users(self, stat: int) -> I64:
        return np.ones(1, np.int64)

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        return self(name) if self._is_old(horizon_ms) else None

    def _is_old(self, horizon_ms: int) -> bool:
        """Whether a pane is mature."""
        if self._ring is None:
            return False
        bound_ms = _LATE_MS - horizon_ms - self.settings.time.max_lateness_ms
        newest = bound_ms // self._ring.pane_ms - 1
        return newest >= self._ring.oldest(_LATE_MS)

    def part(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        return part_of(read(self, name, horizon_ms), within)

    def day_before(self, name: str, horizon_ms: int | None) -> I64 | None:
        if self._ring is None or self._ring.label not in self.settings.windows.day_before:
            return None
        return self(name) if horizon_ms is None else self.mature(name, horizon_ms)

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        if horizon_ms is not None and self.mature(name, horizon_ms) is None:
            return {}
        return {dimension: np.ones(2, np.int64) for dimension in self._dimensions}


def expected_series(
    settings: Settings, seen: Sequence[set[str]] | None = None, catalogue: Catalogue | None = None
) -> int:
    """Series at most, under what ``ASSUMED`` says. ``seen``: for each dimension the values that
    were stored, which count where the settings name none."""
    catalogue = catalogue or Catalogue(settings)
    values = _values(settings, seen)
    scopes = [("total", None), *(("window", ring) for ring in rings_of(settings))]
    found = len(readout(settings, catalogue, []).readings)
    for rollup in settings.rollups:
        segments = prod(values[name] for name in set(rollup))
        for scope, ring in scopes:
            full = _Full(settings, catalogue, ring, rollup)
            found += segments * sum(
                1
                for metric in catalogue.metrics
                if metric.scope == scope
                for _ in shown_series(metric, full, len(set(rollup)), settings.is_detailed(rollup))
            )
    return found


def _values(settings: Settings, seen: Sequence[set[str]] | None) -> Mapping[str, int]:
    """Dimension → how many values it may have. Those that only custom metrics name are not all."""
    found = {}
    for i, dimension in enumerate(settings.kept_dimensions):
        named = set(dimension.values)
        of_custom = {x for custom in settings.custom for x in custom.where.get(dimension.name, ())}
        if named - of_custom:
            n = len(named)
        elif seen is not None and seen[i]:
            n = len(named | seen[i] - set(BESIDES))
        else:
            n = dimension.max_values + len(named)
        found[dimension.name] = n + len(BESIDES)
    return found
