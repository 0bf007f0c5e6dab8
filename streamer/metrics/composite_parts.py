"""The parts of a composite: what each reads of the sums of a window, now or a day before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamer.encoding.arrays import Bools
from streamer.errors import SettingsError
from streamer.metrics.compared_metrics import BY_LABEL, DECLARED, SLATE_FAMILIES, ComparedMetrics
from streamer.metrics.day_before import Kept
from streamer.metrics.definition import Values
from streamer.metrics.intervals import ByGroup
from streamer.metrics.layout import Layout
from streamer.metrics.ratios import Ratio
from streamer.metrics.reads import Statistic
from streamer.metrics.slate_metrics import Column, SlateFamily
from streamer.metrics.sums import Summed
from streamer.settings.model import Settings
from streamer.settings.own_metrics import PEOPLE, Composite, CompositePart

OfPart = Summed | Statistic
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

    def reads(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        """What its value is made of."""
        ...

    def value(self, *read: Any) -> tuple[Values, Bools]:
        """Its value by segment, and where it has one."""
        ...

    def by_group(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        """What reads x and y by segment and group of users, of which it is Σx / Σy; nothing where
        they are not counted."""
        ...

    @property
    def units(self) -> int:
        """How many integers of x over those of y are 1."""
        ...


@dataclass(frozen=True)
class OfEvents:
    """A declared ratio."""

    ratio: Ratio

    @property
    def is_signed(self) -> bool:
        return self.ratio.above.is_signed

    @property
    def units(self) -> int:
        return self.ratio.units

    def horizon_ms(self, settings: Settings) -> int | None:
        name = self.ratio.horizon
        return None if name is None else int(getattr(settings.attribution, name))

    def reads(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        parts = (self.ratio.above, self.ratio.below)
        return tuple(Summed(part, horizon_ms, is_day_before) for part in parts)

    def value(self, *read: Any) -> tuple[Values, Bools]:
        found = self.ratio.of(*read)
        return found.values, found.present

    def by_group(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        parts = (self.ratio.above, self.ratio.below)
        return tuple(ByGroup(part, horizon_ms, is_day_before) for part in parts)


@dataclass(frozen=True)
class OfSlates:
    """A mean over slates. Its sums are not kept by group of users."""

    family: SlateFamily
    column: Column
    size: int
    """Place of the number of slates."""
    is_signed: bool = True
    units: int = 1

    def horizon_ms(self, settings: Settings) -> int | None:
        has_maturity = self.column.metric.population.has_maturity
        return settings.feedback_horizon_ms if has_maturity else None

    def reads(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        places = (self.column.at, self.column.moments.width), (self.size, 1)
        return tuple(self.family.columns(*at, horizon_ms, is_day_before) for at in places)

    def value(self, *read: Any) -> tuple[Values, Bools]:
        held, size = read
        mean: tuple[Values, Bools] = self.column.moments.mean(held, size[:, 0])
        return mean

    def by_group(self, horizon_ms: int | None, is_day_before: bool) -> tuple[OfPart, ...]:
        return ()


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
        if value in ratios and ratios[value].below.name != PEOPLE:
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
            reads = [*part.metric.reads(None, True), *part.metric.by_group(None, True)]
            statistics = [s for read in reads for s in read.parts(layout)]
            if any(statistic.name not in layout.width for statistic in statistics):
                name = composite.parts[place].metric
                raise SettingsError(
                    f"at composites[{i}].parts[{place}]: metric = {name!r}: its family is not in "
                    f"metrics.families = {list(settings.metrics.families)}: add it"
                )
            for each in statistics if part.is_against_day_before else ():
                yield each.name, *each.within.indices(layout.width[each.name])[:2]
