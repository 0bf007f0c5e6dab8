"""Segments of all partitions, numbered together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from streamer.encoding.arrays import I64, Bools
from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import Catalogue
from streamer.query.sum_rows import SumRows
from streamer.settings.labels import OTHER, UNKNOWN
from streamer.settings.model import Settings
from streamer.state.snapshot import View

Segment = tuple[str, ...]


class SegmentIndex:
    """Segments of all partitions, numbered together; values beyond the bound are ``other``.

    ``shown``: by dimension, the values that are not ``other``; ``maps``: by view, the number of
    each of its segments.
    """

    shown: Sequence[set[str]]
    maps: Sequence[I64]
    _folded: list[int]

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        views: Sequence[View],
        before: SegmentIndex | None = None,
    ) -> None:
        """``before``: that of an earlier commit of the same partitions, which is not used any more.
        Its numbers go on, unless most of its segments have left."""
        self._kept = [view.header.kept for view in views]
        self._texts = [view.header.segments for view in views]
        is_same = before is not None and are_identical(before._kept, self._kept)
        if before is not None and is_same:
            self.shown, self._folded = before.shown, before._folded
        else:
            self.shown = values_shown(settings, views)
            self._folded = self._with_folded_values()
        self.segments: list[Segment] = []
        self._numbers: dict[Segment, int] = {}
        self._raw: dict[Segment, int] = {}
        self._rollups: list[int] = []
        known: dict[int, I64] = {}
        if before is not None and before.shown == self.shown and not before.is_sparse:
            self.segments, self._rollups = before.segments, before._rollups
            self._numbers, self._raw = before._numbers, before._raw
            known = dict(zip(map(id, before._texts), before.maps, strict=True))
        self.maps = [
            known[id(header.segments)]
            if id(header.segments) in known
            else self._map(header.segments, header.rollups)
            for header in (view.header for view in views)
        ]
        self._places = {rollup.dimensions: i for i, rollup in enumerate(catalogue.rollups)}
        codes = [rollup.codes for rollup in catalogue.rollups]
        self.rows = SumRows.of_kinds(codes, self._rollups, catalogue.layout.size)
        """Where sums of statistics stand by segment."""

    @cached_property
    def is_mixed(self) -> Bools:
        """By segment: whether it has ``other`` of a dimension of which a partition keeps a value
        that readers count under that, so that it tells its users apart within it."""
        mixed = np.zeros(len(self.segments), bool)
        if self._folded:
            mixed[:] = [any(s[i] == OTHER for i in self._folded) for s in self.segments]
        return mixed

    def _with_folded_values(self) -> list[int]:
        """Places of dimensions of which a partition keeps a value that is not shown."""
        return [
            i
            for i, shown in enumerate(self.shown)
            if any(text not in shown for kept in self._kept for text, _ in kept[i])
        ]

    @property
    def is_sparse(self) -> bool:
        """Whether most of what is known here has left all partitions."""
        if len(self._raw) > 2 * sum(map(len, self.maps)):
            return True
        is_used = np.zeros(len(self.segments), bool)
        for numbers in self.maps:
            is_used[numbers] = True
        return 2 * int(np.count_nonzero(is_used)) < len(is_used)

    def place_of(self, rollup: Sequence[str]) -> int:
        """The place of a rollup among those of the catalogue."""
        return self._places[tuple(rollup)]

    def numbers_of(self, rollup: Sequence[str]) -> I64:
        """The segments of a rollup."""
        return np.flatnonzero(self.rows.kinds == self.place_of(rollup))

    def _map(self, segments: Sequence[Segment], rollups: Sequence[int]) -> I64:
        numbers = []
        for texts, rollup in zip(segments, rollups, strict=True):
            number = self._raw.get(texts)
            if number is None:
                segment = tuple(
                    text if text in shown else OTHER
                    for text, shown in zip(texts, self.shown, strict=True)
                )
                number = self._raw[texts] = self._numbers.setdefault(segment, len(self.segments))
                if number == len(self.segments):
                    self.segments.append(segment)
                    self._rollups.append(rollup)
            numbers.append(number)
        return np.array(numbers, np.int64)


def are_identical(old: Sequence[object], new: Sequence[object]) -> bool:
    """Whether these are the same objects."""
    return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))


def are_continued(old: Sequence[I64], new: Sequence[I64]) -> bool:
    """Whether the segments that each partition had still have the numbers that they had."""
    return len(old) == len(new) and all(
        after is before or np.array_equal(after[: len(before)], before)
        for before, after in zip(old, new, strict=True)
    )


def values_shown(settings: Settings, views: Sequence[View]) -> list[set[str]]:
    """Per dimension: the named values, and the smallest hashes of what the partitions keep."""
    shown = []
    for i, dimension in enumerate(settings.kept_dimensions):
        ranked = sorted({(h, text) for view in views for text, h in view.header.kept[i]})
        kept = [text for _, text in ranked[: dimension.max_values]]
        shown.append({*kept, *dimension.values, UNKNOWN, OTHER, ALL})
    return shown
