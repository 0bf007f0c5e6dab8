"""Segments of all partitions, numbered together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamer.encoding.arrays import I64
from streamer.settings.model import Settings
from streamer.state.snapshot import View

ALL = "all"
OTHER = "other"
UNKNOWN = "unknown"

Segment = tuple[str, ...]


class SegmentIndex:
    """Segments of all partitions, numbered together; values beyond the bound are ``other``."""

    def __init__(self, settings: Settings, views: Sequence[View]) -> None:
        self.shown = values_shown(settings, views)
        self.segments: list[Segment] = []
        self._numbers: dict[Segment, int] = {}
        self._raw: dict[Segment, int] = {}
        self._groups: dict[tuple[bool, ...], dict[Segment, int]] = {}
        self.maps = [self._map(view.header.segments) for view in views]
        self.size = len(self.segments)
        """How many of the segments events have; those after them are groups with ``all``."""
        self.group_maps = [self._map(view.header.groups) for view in views]

    def groups_of(self, kept: Sequence[bool]) -> dict[Segment, int]:
        """The segment groups of a rollup that keeps these dimensions, and their numbers."""
        rollup = tuple(kept)
        if rollup not in self._groups:
            numbers = sorted({n for numbers in self.group_maps for n in numbers.tolist()})
            self._groups[rollup] = {
                self.segments[n]: n
                for n in numbers
                if all((v != ALL) == keep for v, keep in zip(self.segments[n], kept, strict=True))
            }
        return self._groups[rollup]

    def _map(self, segments: Sequence[Segment]) -> I64:
        numbers = []
        for texts in segments:
            number = self._raw.get(texts)
            if number is None:
                segment = tuple(
                    text if text in shown else OTHER
                    for text, shown in zip(texts, self.shown, strict=True)
                )
                number = self._raw[texts] = self._numbers.setdefault(segment, len(self.segments))
                if number == len(self.segments):
                    self.segments.append(segment)
            numbers.append(number)
        return np.array(numbers, np.int64)


def are_continued(old: Sequence[I64], new: Sequence[I64]) -> bool:
    """Whether the segments that each partition had still have the numbers that they had."""
    return len(old) == len(new) and all(
        np.array_equal(after[: len(before)], before) for before, after in zip(old, new, strict=True)
    )


def values_shown(settings: Settings, views: Sequence[View]) -> list[set[str]]:
    """Per dimension: the named values, and the smallest hashes of what the partitions keep."""
    shown = []
    for i, dimension in enumerate(settings.kept_dimensions):
        ranked = sorted({(h, text) for view in views for text, h in view.header.kept[i]})
        kept = [text for _, text in ranked[: dimension.max_values]]
        shown.append({*kept, *dimension.values, UNKNOWN, OTHER, ALL})
    return shown
