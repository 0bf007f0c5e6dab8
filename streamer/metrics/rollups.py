"""Rollups: dimensions by whose values sums are kept, and which sums each of them keeps.

The total keeps every sum. Another rollup keeps those that its series declare to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamer.metrics.definition import Metric, Variant, shown_variants
from streamer.metrics.layout import Layout, runs_of
from streamer.metrics.reads import ByValue, Part, Statistic, Users
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


CROSSED = " x "
"""Between the dimensions of a rollup's key."""


def key_of(dimensions: Sequence[str]) -> str:
    """``Rollup.key`` of dimensions in the order of the settings."""
    return CROSSED.join(dimensions) or "total"


def rollups_of(
    settings: Settings, layout: Layout, metrics: Sequence[tuple[Metric, Sequence[Variant]]]
) -> tuple[Rollup, ...]:
    """Those that the settings show, the total first, and each dimension alone where a metric of the
    total is made of its values. ``metrics``: all of the families with what they read, hidden ones
    included."""
    names, shown = settings.dimension_names, dict[tuple[str, ...], bool]()
    for rollup in settings.rollups:
        ordered = tuple(name for name in names if name in rollup)
        shown[ordered] = settings.is_detailed(rollup)
    shown.pop((), None)
    of_values = {
        code
        for part in _parts(layout, metrics, 0, is_detailed=True)
        if isinstance(part, ByValue)
        for code in Statistic(part.name).codes(layout)
    }
    everything = tuple(range(layout.size))
    found = [Rollup((), everything, has_users=True)]
    alone: dict[tuple[str, ...], bool] = {(name,): False for name in names} if of_values else {}
    for dimensions, is_detailed in {**alone, **shown}.items():
        codes, has_users = set(of_values if len(dimensions) == 1 else ()), False
        if dimensions in shown:
            parts = list(_parts(layout, metrics, len(dimensions), is_detailed))
            statistics = (part for part in parts if isinstance(part, Statistic))
            codes.update(code for each in statistics for code in each.codes(layout))
            has_users = any(isinstance(part, Users) for part in parts)
        found.append(Rollup(dimensions, tuple(sorted(codes)), has_users))
    return tuple(found)


def _parts(
    layout: Layout,
    metrics: Sequence[tuple[Metric, Sequence[Variant]]],
    dimensions: int,
    is_detailed: bool,
) -> Iterator[Part]:
    """What the series of a rollup of so many dimensions are made of."""
    for metric, variants in metrics:
        for variant in shown_variants(metric, variants, dimensions, is_detailed):
            yield from variant.parts(layout)
