"""Which dimension values are shown under their own name."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.settings.model import Dimension, Settings

from .hashing import digest
from .shape import Event

Dims = tuple[str | None, ...]
Segment = frozenset[tuple[str, str]]


class Kept:
    """The kept values of each dimension: all in all, and of each partition."""

    def __init__(self, events: list[Event], settings: Settings, key: HashKey = FIXED_KEY) -> None:
        self.settings, self.key = settings, key
        self.known: dict[Dims, set[Segment]] = {}
        self.known_groups: dict[tuple[int, Dims], set[Segment]] = {}
        carried: dict[tuple[int, int], set[str]] = defaultdict(set)
        for event in events:
            for i, value in enumerate(event.dims):
                if value is not None:
                    carried[i, event.partition].add(value)
        units = (Dimension(name=name, max_values=10**9) for name in settings.unit_fields)
        fields = (*settings.kept_dimensions, *units)
        self.by_partition = {
            (i, partition): kept_of(values, fields[i], key)
            for (i, partition), values in carried.items()
        }
        self.overall = [
            kept_of(set().union(*(v for (j, _), v in self.by_partition.items() if j == i)), d, key)
            for i, d in enumerate(fields)
        ]

    def shown(self, dims: Dims) -> tuple[str, ...]:
        """Each value as readers see it: itself, ``other`` or ``unknown``."""
        return tuple(
            "unknown" if value is None else value if value in self.overall[i] else "other"
            for i, value in enumerate(dims)
        )

    def segments(self, dims: Dims) -> set[Segment]:
        """The labels of every rollup that the values count in."""
        if dims not in self.known:
            self.known[dims] = self.make_segments(dims)
        return self.known[dims]

    def make_segments(self, dims: Dims) -> set[Segment]:
        return self.rolled_up(self.shown(dims))

    def rolled_up(self, values: tuple[str, ...]) -> set[Segment]:
        named = dict(zip(self.settings.dimension_names, values, strict=False))  # then units
        return {
            frozenset((name, named[name] if name in rollup else "all") for name in named)
            for rollup in self.settings.rollups
        }

    def groups(self, partition: int, dims: Dims) -> set[Segment]:
        """As ``segments``, by what the partition alone keeps: within these users are told apart."""
        key = (partition, dims)
        if key not in self.known_groups:
            values = tuple(
                "unknown" if v is None else v if v in self.by_partition[i, partition] else "other"
                for i, v in enumerate(dims)
            )
            self.known_groups[key] = self.rolled_up(values)
        return self.known_groups[key]

    def folded(self, group: Segment) -> Segment:
        """The segment in which readers see a partition's group."""
        always = {"all", "other", "unknown"}
        number = {name: i for i, name in enumerate(self.settings.dimension_names)}
        return frozenset(
            (name, value if value in always | self.overall[number[name]] else "other")
            for name, value in group
        )

    @cached_property
    def folded_dimensions(self) -> set[str]:
        """Those of which a partition keeps a value that the union of all does not."""
        return {
            self.settings.dimension_names[i]
            for (i, _), values in self.by_partition.items()
            if i < len(self.settings.dimension_names) and not values <= self.overall[i]
        }

    def is_mixed(self, segment: Segment) -> bool:
        """Whether partitions tell users apart within it that readers do not."""
        return any((name, "other") in segment for name in self.folded_dimensions)

    def capped(self, event: Event, i: int) -> bool:
        """The event carries a value of dimension i that its partition does not keep."""
        value = event.dims[i]
        return value is not None and value not in self.by_partition[i, event.partition]


def kept_of(values: set[str], dimension: Dimension, key: HashKey) -> set[str]:
    """The named ones, and of the others the ``max_values`` with the smallest hashes."""
    named = set(dimension.values)
    others = sorted(values - named, key=lambda value: digest(value, key))
    return named | set(others[: dimension.max_values])
