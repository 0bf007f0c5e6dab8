"""Every metric reads what it declares to read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamer.encoding.arrays import I64
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import Metric, Variant
from streamer.metrics.full_sums import FullSums
from streamer.metrics.item_counts import ItemTable
from streamer.metrics.reads import (
    AllItems,
    ByValue,
    OfItems,
    Overall,
    Part,
    Statistic,
    Users,
)
from streamer.metrics.rings import rings_of
from tests.metrics.counted import SETTINGS

CATALOGUE = Catalogue(SETTINGS)


class Recorded(FullSums):
    """Keeps what is read of it."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, CATALOGUE.layout, rings_of(SETTINGS)[0], ())
        self.found: set[tuple[Any, ...]] = set()

    def _codes(self, name: str, within: slice) -> range:
        span = self.layout.span(name)
        return range(span.start, span.stop)[within]

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        self.found.add((Statistic, self._codes(name, within), horizon_ms, False))
        return super().statistic(name, within, None)

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        self.found.add((Statistic, self._codes(name, within), horizon_ms, True))
        return super().statistic(name, within, None)

    def overall(self, name: str) -> I64:
        self.found.add((Overall, name))
        return super().overall(name)

    def users(self, stat: int) -> I64:
        self.found.add((Users, stat, False))
        return super().users(stat)

    def users_of_longest(self, stat: int) -> I64:
        self.found.add((Users, stat, True))
        return super().users(stat)

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        self.found.add((ByValue, name, horizon_ms))
        return super().by_value(name, None)

    def items(self, places: Sequence[int], horizon_ms: int | None) -> dict[int, ItemTable]:
        self.found.add((OfItems, tuple(places), horizon_ms))
        table = super().all_items
        return {} if table is None else {0: table}

    @property
    def all_items(self) -> ItemTable | None:
        self.found.add((AllItems,))
        return super().all_items


def declared(part: Part) -> tuple[Any, ...]:
    """As it is recorded."""
    match part:
        case Statistic():
            codes = part.codes(CATALOGUE.layout)
            return Statistic, codes, part.horizon_ms, part.is_day_before
        case Overall(name):
            return Overall, name
        case Users(stat, is_of_longest):
            return Users, stat, is_of_longest
        case ByValue(name, horizon_ms):
            return ByValue, name, horizon_ms
        case OfItems(places, horizon_ms):
            return OfItems, places, horizon_ms
        case AllItems():
            return (AllItems,)


def variants() -> Iterator[tuple[Metric, Variant]]:
    for family in CATALOGUE.families:
        for metric in family.metrics:
            for variant in CATALOGUE.variants[metric.name]:
                yield metric, variant


def wrong(metrics: Sequence[tuple[Metric, Variant]]) -> Mapping[str, Any]:
    """Metrics that read other sums than they declare, and both."""
    found = {}
    for metric, variant in metrics:
        sums = Recorded()
        read = [each.of(sums) for each in variant.reads]
        parts = {declared(p) for each in variant.reads for p in each.parts(CATALOGUE.layout)}
        if sums.found != parts or any(each is None for each in read):
            found[f"{metric.name} {dict(variant.labels)}"] = (sums.found, parts)
    return found


def test_what_is_read_is_what_is_declared() -> None:
    every = list(variants())
    assert len(every) > 300
    found = wrong(every)
    # Means over slates are not counted by group, so that a composite of them has no interval.
    assert {name for name in found if "lists" not in name} == set(), found
    assert {name.partition(" ")[0] for name in found} <= {"composite_lower", "composite_upper"}
