"""Sums in which every statistic has something: by them is seen what metrics show, and what they
read, before there is any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.definition import Noted
from streamer.metrics.item_counts import ItemTable, item_counts
from streamer.metrics.layout import Layout
from streamer.metrics.rings import Ring
from streamer.metrics.sums import part_of, read
from streamer.settings.model import Settings

_LATE_MS = 10**13
"""A time at which every window is full."""


class FullSums(Noted):
    """One segment in which every statistic has something. Is the metrics' ``Sums``."""

    user_sample_ratio = 1.0

    def __init__(
        self,
        settings: Settings,
        layout: Layout,
        composites: Mapping[str, Sequence[Any]],
        ring: Ring | None,
        rollup: Sequence[str],
    ) -> None:
        """``ring``: of the window; None: of the totals."""
        self.settings, self.layout, self._ring = settings, layout, ring
        self.composites = composites
        self._dimensions = () if rollup else settings.dimension_names
        is_window = ring is not None and ring.label in settings.item_windows
        self._is_counted = is_window and settings.has_items(rollup)
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
