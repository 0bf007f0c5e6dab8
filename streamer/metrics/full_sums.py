"""Sums in which every statistic has something: by them is seen what metrics show, before there is
any data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.item_counts import ItemTable, item_counts
from streamer.metrics.layout import Layout
from streamer.metrics.reads import Read
from streamer.metrics.rings import Ring
from streamer.settings.model import Settings

_LATE_MS = 10**13
"""A time at which every window is full."""


class FullSums:
    """One segment in which every statistic has something. Is the metrics' ``Sums``."""

    user_sample_ratio = 1.0

    def __init__(
        self, settings: Settings, layout: Layout, ring: Ring | None, rollup: Sequence[str]
    ) -> None:
        """``ring``: of the window; None: of the totals."""
        self.settings, self.layout, self._ring = settings, layout, ring
        self.is_total = not rollup
        self._dimensions = () if rollup else settings.dimension_names
        is_window = ring is not None and ring.label in settings.item_windows
        self._is_counted = is_window and settings.has_items(rollup)

    def find(self, read: Read) -> Any:
        """What a metric reads."""
        return read.of(self)

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        if horizon_ms is not None and not self._is_old(horizon_ms):
            return None
        width = self.layout.width[name]
        return np.ones(1 if width == 1 else (1, width), np.int64)[..., within]

    def overall(self, name: str) -> I64:
        return np.ones(self.layout.width[name], np.int64)

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

    def items(self, places: Sequence[int], horizon_ms: int | None) -> dict[int, ItemTable]:
        is_held = self._is_counted and (horizon_ms is None or self._is_old(horizon_ms))
        return {0: self.all_items} if is_held and self.all_items is not None else {}

    def users_of_longest(self, stat: int) -> I64:
        return self.users(stat)

    def users(self, stat: int) -> I64:
        return np.ones(1, np.int64)

    def _is_old(self, horizon_ms: int) -> bool:
        """Whether a pane is mature."""
        if self._ring is None:
            return False
        bound_ms = _LATE_MS - horizon_ms - self.settings.time.max_lateness_ms
        newest = bound_ms // self._ring.pane_ms - 1
        return newest >= self._ring.oldest(_LATE_MS)

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        if self._ring is None or self._ring.label not in self.settings.windows.day_before:
            return None
        return self.statistic(name, within, horizon_ms)

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        if horizon_ms is not None and not self._is_old(horizon_ms):
            return {}
        return {dimension: np.ones(2, np.int64) for dimension in self._dimensions}
