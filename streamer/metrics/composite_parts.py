"""The parts of a composite: what each reads of the sums of a window, now or a day before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.errors import SettingsError
from streamer.metrics.compared_metrics import BY_LABEL, DECLARED, SLATE_FAMILIES, ComparedMetrics
from streamer.metrics.day_before import Kept
from streamer.metrics.definition import Series, Values
from streamer.metrics.intervals import sum_by_group
from streamer.metrics.layout import Layout
from streamer.metrics.ratios import Ratio
from streamer.metrics.slate_metrics import Column, SlateFamily
from streamer.metrics.sums import part_of
from streamer.settings.model import Settings
from streamer.settings.own_metrics import Composite, CompositePart

Read = Callable[[str], I64 | None]
"""A statistic by segment: of a window or of the day before it; None where that is not there."""
_RATIOS = {each.name: each for each in DECLARED}


class PartMetric(Protocol):
    """A metric that may be a part."""

    @property
    def is_signed(self) -> bool:
        """Whether it may be below 0."""
        ...

    def horizon_ms(self, settings: Settings) -> int | None:
        """After which time it is mature; None: it does not wait for feedback."""
        ...

    def value(self, read: Read) -> tuple[Values, Bools] | None:
        """Its value by segment, and where it has one; None where nothing is there."""
        ...

    def by_group(self, read: Read, layout: Layout) -> tuple[F64, F64] | None:
        """x and y by segment and group of users, of which it is Σx / Σy; None where they are not
        counted."""
        ...

    def kept(self, layout: Layout) -> Iterator[Kept]:
        """The statistics that it reads."""
        ...


@dataclass(frozen=True)
class OfEvents:
    """A declared ratio."""

    ratio: Ratio

    @property
    def is_signed(self) -> bool:
        return self.ratio.above.is_signed

    def horizon_ms(self, settings: Settings) -> int | None:
        name = self.ratio.horizon
        return None if name is None else int(getattr(settings.attribution, name))

    def value(self, read: Read) -> tuple[Values, Bools] | None:
        above, below = self.ratio.above.read(read), self.ratio.below.read(read)
        if above is None or below is None:
            return None
        found: Series = self.ratio.of(above, below)
        return found.values, found.present

    def by_group(self, read: Read, layout: Layout) -> tuple[F64, F64] | None:
        above, below = self.ratio.above, self.ratio.below
        x, y = (
            sum_by_group(of, lambda stat, within: part_of(read(stat), within), layout)
            for of in (above, below)
        )
        return None if x is None or y is None else (x / self.ratio.units, y.astype(np.float64))

    def kept(self, layout: Layout) -> Iterator[Kept]:
        for name in (*self.ratio.above.names, *self.ratio.below.names):
            yield name, 0, layout.width.get(name, 0)
            if name in layout.by_group:
                stat, groups = layout.by_group[name]
                yield stat, groups.start, groups.stop


@dataclass(frozen=True)
class OfSlates:
    """A mean over slates. Its sums are not kept by group of users."""

    family: SlateFamily
    column: Column
    size: int
    """Place of the number of slates."""
    is_signed: bool = True

    def horizon_ms(self, settings: Settings) -> int | None:
        has_maturity = self.column.metric.population.has_maturity
        return settings.feedback_horizon_ms if has_maturity else None

    def value(self, read: Read) -> tuple[Values, Bools] | None:
        sums, column = read(self.family.name), self.column
        if sums is None:
            return None
        held = sums[:, column.at : column.at + column.moments.width]
        mean: tuple[Values, Bools] = column.moments.mean(held, sums[:, self.size])
        return mean

    def by_group(self, read: Read, layout: Layout) -> tuple[F64, F64] | None:
        return None

    def kept(self, layout: Layout) -> Iterator[Kept]:
        first, width = self.column.at, self.column.moments.width
        yield self.family.name, self.size, self.size + 1
        yield self.family.name, first, first + width


@dataclass(frozen=True)
class WeightedPart:
    """``factor``: what its value, or that over the day before's, is multiplied by."""

    metric: PartMetric
    factor: float
    is_against_day_before: bool


Parts = Mapping[str, Sequence[WeightedPart]]
"""Composite → its parts."""


def parts_of(settings: Settings) -> Parts:
    """The parts of all composites. SettingsError where one is no metric, or its family is off."""
    return {
        composite.name: _parts_of(settings, composite, f"at composites[{i}]")
        for i, composite in enumerate(settings.composites)
    }


def _parts_of(settings: Settings, composite: Composite, at: str) -> list[WeightedPart]:
    return [
        WeightedPart(
            _metric(settings, part, f"{at}.parts[{i}]"),
            share / (part.target or 1.0),
            part.against == "day_before",
        )
        for i, (part, share) in enumerate(zip(composite.parts, composite.shares, strict=True))
    ]


def _metric(settings: Settings, part: CompositePart, at: str) -> PartMetric:
    base, _, value = part.metric.partition("@")
    if part.metric in _RATIOS:
        return OfEvents(_RATIOS[part.metric])
    if base in BY_LABEL:
        ratios = {
            labels[BY_LABEL[base].label]: r for labels, r in BY_LABEL[base].variants(settings)
        }
        if value in ratios:
            return OfEvents(ratios[value])
    measures = ComparedMetrics(settings, [(part.metric, at)])
    ratio = measures.ratios[part.metric]
    slates = measures.slate_sums.get(ratio.above)
    if slates is None or ratio.below is None:
        raise SettingsError(
            f"{at}: metric = {part.metric!r}: by users, and windows have no such ratio; use one "
            "over events or slates"
        )
    for family in SLATE_FAMILIES.values():
        plan = family.plan(settings)
        for column in plan.columns:
            if (column.metric, column.k, column.convention) == (
                *(slates.metric, slates.k, slates.convention),
            ):
                return OfSlates(
                    family, column, plan.populations[ratio.below.removeprefix("slates@")]
                )
    raise SettingsError(
        f"{at}: metric = {part.metric!r}: name the convention in metrics.conventions, too"
    )


def kept(parts: Parts, settings: Settings, layout: Layout) -> Iterator[Kept]:
    """What composites read of the day before. SettingsError where the family of a part is off."""
    for i, composite in enumerate(settings.composites):
        for place, part in enumerate(parts[composite.name]):
            found = list(part.metric.kept(layout))
            if any(stat not in layout.width for stat, _, _ in found):
                name = composite.parts[place].metric
                raise SettingsError(
                    f"at composites[{i}].parts[{place}]: metric = {name!r}: its family is not in "
                    f"metrics.families = {list(settings.metrics.families)}: add it"
                )
            if part.is_against_day_before:
                yield from found
