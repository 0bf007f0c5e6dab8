"""Stored state of other settings → what it is under ours: places are mapped by what they are of.

Sums keep their values; what is new begins after everything that was counted. All that is mapped is
written again at the next commit.

    segments     by rollup: those of one that is not kept any more are left out, as are sums that
                 their rollup does not keep
    rings, codes by length of window, by what a sum is of; what nothing wants any more is left out
    tables       dimensions, kinds of feedback, policies, own sums: by name, in the core
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamer._core import STAT_BITS, TOTAL_RING
from streamer.encoding.arrays import I64
from streamer.encoding.packed import (
    PAIR_PLACE,
    PAIR_SAMPLE_PLACE,
    SAMPLE_PLACE,
    item_code,
    pane_number,
    parts_of_item_code,
    ring_and_pane,
    segment_and_stat,
    segment_code,
)
from streamer.encoding.segments import ALL, Label, rollup_of
from streamer.metrics.item_counts import CLICKED
from streamer.settings.labels import OTHER, UNKNOWN
from streamer.state.contents import Beside, Contents, ItemsHeld
from streamer.state.panes import Pane

_OF_ITEMS = range(3)
_OF_LISTS = 3
"""Places of counts of an item before those by cut-off (``ItemCounts``), and how many there are by
cut-off: the first is not of lists."""


@dataclass(frozen=True)
class Holding:
    """What a partition holds: by name, and how long the unit of users' times is (ms)."""

    contents: Contents
    beside: Beside
    unit_ms: int


class PaneMigration:
    """Maps what was stored under other settings. ``segments``: as ``Texts.with_events`` has them;
    ``accepted``: events, which a new dimension has no value of."""

    def __init__(
        self, old: Holding, new: Holding, segments: Mapping[str, Any], accepted: int
    ) -> None:
        self.old, self.new = old, new
        self.rings = rings_after(old, new)
        self._codes = _codes_after(old.contents, new.contents)
        self._dimensions = _places(old.contents.kept_fields, new.contents.kept_fields)
        rollups = _places([*new.contents.rollups], [*old.contents.rollups])
        mapped = [(rollups[was], codes) for was, codes in segments["segments"]]
        kept = [(rollup, codes) for rollup, codes in mapped if rollup is not None]
        is_kept = [rollup is not None for rollup, _ in mapped]
        self._segments = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
        self._rollup_of = np.array([rollup for rollup, _ in kept] or [0], np.int64)
        self._keeps = np.zeros((len(new.contents.rollups), 1 << STAT_BITS), bool)
        for keeps, spans in zip(self._keeps, new.contents.rollups.values(), strict=True):
            for first, stop in spans:
                keeps[first:stop] = True
        nothing = {"texts": ["unknown", "other"], "events": [accepted, 0], "kept": []}
        self.segments = {
            "values": [
                nothing if at is None else segments["values"][at] for at in self._dimensions
            ],
            "segments": kept,
        }

    def pane(self, number: int, pane: Pane) -> tuple[int, Pane] | None:
        """A pane of windows, totals or the day before, with its number; None where none of it is
        wanted any more."""
        ring, index = ring_and_pane(number)
        if ring not in self.rings:
            return None
        codes, values = pane
        segment, stat = segment_and_stat(codes)
        segment = self._segments[segment]
        found = []
        for after in self._codes:
            mapped = after[stat]
            is_kept = (mapped >= 0) & (segment >= 0)
            is_kept &= self._keeps[self._rollup_of[segment], mapped]
            found.append((segment_code(segment[is_kept], mapped[is_kept]), values[is_kept]))
        kept, sums = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return pane_number(self.rings[ring], index), (kept, sums)

    @cached_property
    def tables(self) -> str:
        """How the core maps rows of ``MIGRATED_TABLES``: JSON, places among what was stored."""
        old, new = self.old.contents, self.new.contents
        return json.dumps(
            {
                "dimensions": self._dimensions,
                "policies": _places(old.policies, new.policies),
                "amounts": _places(old.amounts, new.amounts),
                "conditions": _places(old.conditions, new.conditions),
                "kinds": _places(old.kinds, new.kinds),
                "kinds_now": _places(new.kinds, old.kinds),
                "user_kinds": _places(old.user_kinds, new.user_kinds),
                "units_ms": [self.old.unit_ms, self.new.unit_ms],
                "keeps_items": new.keeps_items,
            }
        )


class ItemMigration:
    """Maps counts of items that were stored under other settings; ``labels``: theirs, by number;
    ``most``: of a rollup, of ours. What was counted before a rollup began is ``unknown`` there, so
    that the total can be read from it."""

    def __init__(self, old: ItemsHeld, new: ItemsHeld, labels: Sequence[Label], most: int) -> None:
        self.labels: list[list[str]] = []
        self._labels = [
            self._numbers(rollup, old.rollups, new.dimensions, labels, most)
            for rollup in new.rollups
        ]
        """By rollup of ours, of each label of theirs the number of ours; -1: of another rollup."""
        self._place = np.full(1 + SAMPLE_PLACE, -1, np.int64)
        self._place[: len(_OF_ITEMS)] = _OF_ITEMS
        if not new.has_lists:
            self._place[CLICKED] = -1
        for at, place in enumerate(_places(old.cutoffs, new.cutoffs)):
            parts = _OF_LISTS if new.has_lists else 1
            for part in range(parts if place is not None else 0):
                was = len(_OF_ITEMS) + part * len(old.cutoffs) + (place or 0)
                self._place[was] = len(_OF_ITEMS) + part * len(new.cutoffs) + at
        if new.has_people:
            of_lists = (len(_OF_ITEMS) + _OF_LISTS * len(held.cutoffs) for held in (old, new))
            was, now = of_lists
            self._place[was : was + 2] = [now, now + 1]
        if new.has_pairs:
            of_items = self._place[:PAIR_PLACE]
            self._place[PAIR_PLACE:] = np.where(of_items < 0, -1, PAIR_PLACE + of_items)
        rings = _places(new.rings, old.rings)
        self._rings = {1 + i: 1 + place for i, place in enumerate(rings) if place is not None}

    def _numbers(
        self,
        rollup: tuple[str, ...],
        before: Sequence[tuple[str, ...]],
        names: Sequence[str],
        labels: Sequence[Label],
        most: int,
    ) -> I64:
        numbers: dict[tuple[str, ...], int] = {}
        other = tuple(OTHER if name in rollup else ALL for name in names)
        same = [of for of in before if {*of} == {*rollup}]  # in whatever order
        source, found = (*same, before[0])[0], np.full(1 + len(labels), -1)
        for at, label in enumerate(labels):
            if rollup_of(label) == source:
                known = label if same else dict.fromkeys(rollup, UNKNOWN)
                values = tuple(known[name] if name in rollup else ALL for name in names)
                if values not in numbers and len(numbers) >= most:
                    values = other
                found[at] = numbers.setdefault(values, len(self.labels) + len(numbers))
        self.labels += map(list, numbers)
        return found

    def pane(self, number: int, pane: Pane) -> tuple[int, Pane] | None:
        """A pane with its number; None where no ring wants it."""
        ring, index = ring_and_pane(number)
        if ring not in self._rings:
            return None
        codes, values = pane
        item, label, place = parts_of_item_code(codes)
        mapped, is_sample = self._place[place], place >= PAIR_SAMPLE_PLACE
        is_pair = ~is_sample & (place >= PAIR_PLACE)
        of_pairs = is_pair & (mapped >= 0)
        moved = [
            (codes[is_sample], values[is_sample]),
            ((codes - place + mapped)[of_pairs], values[of_pairs]),
        ]
        for numbers in self._labels:
            ours = numbers[np.where(is_sample | is_pair, -1, label)]
            is_kept = (ours >= 0) & (mapped >= 0)
            of_rollup = item_code(item[is_kept], ours[is_kept], mapped[is_kept])
            moved.append((of_rollup, values[is_kept]))
        kept, sums = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        return pane_number(self._rings[ring], index), (kept, sums)


def rings_after(old: Holding, new: Holding) -> dict[int, int]:
    """Number of a ring, as stored → its number now; what no ring is for is left out."""
    windows = _places(new.contents.windows, old.contents.windows)
    found = {1 + i: 1 + place for i, place in enumerate(windows) if place is not None}
    found[TOTAL_RING] = TOTAL_RING
    by_shape = {shape: number for number, shape in new.beside.day_before.items()}
    for number, shape in old.beside.day_before.items():
        if shape in by_shape:
            found[number] = by_shape[shape]
    return found


def _codes_after(old: Contents, new: Contents) -> list[I64]:
    """By code of a statistic, as stored, its codes now; -1: it is not wanted any more."""
    ours, after = new.codes(), [np.full(1 << STAT_BITS, -1, np.int64)]
    for name, code in old.codes().items():
        if name not in ours:
            continue
        if all(mapped[code] >= 0 for mapped in after):
            after.append(np.full(1 << STAT_BITS, -1, np.int64))
        next(mapped for mapped in after if mapped[code] < 0)[code] = ours[name]
    return after


def _places(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """For each of the new ones its place among the old ones."""
    known = {name: place for place, name in enumerate(old)}
    return [known.get(name) for name in new]
