"""Rollups: dimensions by whose values sums are kept, and which sums each of them keeps.

The total keeps every sum. Another rollup keeps those that its series are made of, which follows
from what their formulas read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.definition import Metric, shown_series
from streamer.metrics.full_sums import FullSums
from streamer.metrics.layout import Layout, runs_of
from streamer.metrics.rings import rings_of
from streamer.settings.model import Settings


@dataclass(frozen=True)
class Rollup:
    """``dimensions``: in the order of the settings; ``codes``: of the statistics that it keeps,
    ascending; ``has_users``: whether sums over users are kept by it."""

    dimensions: tuple[str, ...]
    codes: tuple[int, ...]
    has_users: bool

    @property
    def key(self) -> str:
        """What it is known by in stored state: another key is another rollup.

        >>> Rollup(("variant", "surface"), (), False).key, Rollup((), (), True).key
        ('variant x surface', 'total')
        """
        return key_of(self.dimensions)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The codes as runs, [first, stop)."""
        return runs_of(self.codes)


def key_of(dimensions: Sequence[str]) -> str:
    """``Rollup.key`` of dimensions in the order of the settings."""
    return " x ".join(dimensions) or "total"


class _Reads(FullSums):
    """Notes what is read."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.codes: set[int] = set()
        self.of_values: set[int] = set()
        """What is read by value of each dimension alone."""
        self.reads_users = False

    def _note(self, name: str, within: slice = slice(None)) -> None:
        span = self.layout.span(name)
        self.codes.update(range(span.start, span.stop)[within])

    def __call__(self, name: str) -> I64:
        self._note(name)
        return super().__call__(name)

    def overall(self, name: str) -> I64:
        first: I64 = super().__call__(name)[0]
        return first

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        return self(name)

    def part(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        self._note(name, within)
        sums = super().__call__(name)
        return sums if sums.ndim == 1 else sums[:, within]

    def day_before(self, name: str, horizon_ms: int | None) -> I64 | None:
        return self(name)

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        span = self.layout.span(name)
        self.of_values.update(range(span.start, span.stop))
        return {dimension: np.ones(2, np.int64) for dimension in self.settings.dimension_names}

    def users(self, stat: int) -> I64:
        self.reads_users = True
        return super().users(stat)


def rollups_of(
    settings: Settings,
    layout: Layout,
    composites: Mapping[str, Sequence[Any]],
    metrics: Sequence[Metric],
) -> tuple[Rollup, ...]:
    """Those that the settings show, the total first, and each dimension alone where a metric of the
    total is made of its values. ``metrics``: all of the families, hidden ones included."""
    names, shown = settings.dimension_names, dict[tuple[str, ...], bool]()
    for rollup in settings.rollups:
        ordered = tuple(name for name in names if name in rollup)
        shown[ordered] = settings.is_detailed(rollup)
    of_total = _read(settings, layout, composites, metrics, (), is_detailed=True)
    everything = tuple(range(layout.size))
    shown.pop((), None)
    found = [Rollup((), everything, has_users=True)]
    alone: dict[tuple[str, ...], bool] = (
        {(name,): False for name in names} if of_total.of_values else {}
    )
    for dimensions, is_detailed in {**alone, **shown}.items():
        codes = set(of_total.of_values if len(dimensions) == 1 else ())
        has_users = False
        if dimensions in shown:
            reads = _read(settings, layout, composites, metrics, dimensions, is_detailed)
            codes |= reads.codes
            has_users = reads.reads_users
        found.append(Rollup(dimensions, tuple(sorted(codes)), has_users))
    return tuple(found)


def _read(
    settings: Settings,
    layout: Layout,
    composites: Mapping[str, Sequence[Any]],
    metrics: Sequence[Metric],
    dimensions: tuple[str, ...],
    is_detailed: bool,
) -> _Reads:
    """What the series of a rollup read."""
    longest = max(rings_of(settings), key=lambda ring: ring.span_ms)
    reads = _Reads(settings, layout, composites, longest, dimensions)
    for metric in metrics:
        reads.memo.clear()
        with np.errstate(all="ignore"):
            for _ in shown_series(metric, reads, len(dimensions), is_detailed):
                pass
    return reads
