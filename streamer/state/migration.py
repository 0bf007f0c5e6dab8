"""Stored state of other settings → what it is under ours: places are mapped by what they are of.

Sums keep their values; what is new begins after everything that was counted. All that is mapped is
written again at the next commit.

    segments     a removed dimension: segments that differ in it are one; a new one: unknown
    rings, codes by length of window, by what a sum is of; what nothing wants any more is left out
    tables       segments, kinds of feedback, policies, custom metrics: by name
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer._core import STAT_BITS, TOTAL_RING
from streamer.encoding.arrays import I64
from streamer.encoding.packed import (
    SAMPLE_PLACE,
    item_code,
    pane_number,
    parts_of_item_code,
    ring_and_pane,
    segment_and_stat,
    segment_code,
)
from streamer.encoding.segments import UNKNOWN, Label
from streamer.metrics.item_counts import CLICKED
from streamer.state.codec import Columns
from streamer.state.contents import Beside, Contents, ItemsHeld
from streamer.state.panes import Pane

TABLES = ("impressions", "retained", "feedback", "sessions", "viewings", "user_items")
"""Those that hold anything of what settings name."""
_SEGMENTS = ("segment", "click_segment", "session_segment")
_GONE = -3
"""A kind of feedback that the settings had."""
_MISSING = np.iinfo(np.int64).min
_NO_WEIGHT = -1
_UNKNOWN = "unknown"
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
        self._dimensions = _places(old.contents.dimensions, new.contents.dimensions)
        tuples: dict[tuple[int, ...], int] = {}
        numbers = [
            tuples.setdefault(self._tuple(codes), len(tuples)) for codes in segments["tuples"]
        ]
        self._segments = np.array(numbers or [0], np.int64)
        nothing = {"texts": ["unknown", "other"], "events": [accepted, 0], "kept": []}
        self.segments = {
            "values": [
                nothing if at is None else segments["values"][at] for at in self._dimensions
            ],
            "tuples": list(tuples),
        }

    def _tuple(self, codes: Sequence[int]) -> tuple[int, ...]:
        return tuple(UNKNOWN if at is None else codes[at] for at in self._dimensions)

    def pane(self, number: int, pane: Pane) -> tuple[int, Pane] | None:
        """A pane of windows, totals or the day before, with its number; None where none of it is
        wanted any more."""
        ring, index = ring_and_pane(number)
        if ring not in self.rings:
            return None
        codes, values = pane
        segment, stat = segment_and_stat(codes)
        mapped = self._codes[stat]
        is_kept = mapped >= 0
        kept = segment_code(self._segments[segment[is_kept]], mapped[is_kept])
        return pane_number(self.rings[ring], index), (kept, values[is_kept])

    def table(self, name: str, columns: Columns) -> Columns:
        """A blob of one of ``TABLES``."""
        found = dict(columns)
        for column in _SEGMENTS:
            if column in found:
                found[column] = self._segments[found[column]].astype(found[column].dtype)
        if name in ("impressions", "retained"):
            self._put_policies(found)
            self._put_items(found)
        if name == "retained":
            self._put_final(found)
        if name == "feedback":
            self._put_feedback(found)
        if name == "user_items":
            self._put_times(found)
        return found

    def _put_policies(self, found: dict[str, Any]) -> None:
        old, new = self.old.contents.policies, self.new.contents.policies
        _put_columns(found, "weight_", _places(old, new), np.int32(_NO_WEIGHT))

    def _put_items(self, found: dict[str, Any]) -> None:
        if self.new.contents.keeps_items and "item" not in found:
            for name in ("item", "category"):
                found[name] = np.zeros(_rows(found), np.uint64)

    def _put_final(self, found: dict[str, Any]) -> None:
        """The final counts of each kind; those of conversions come last."""
        kinds = [[*held.contents.kinds, ""] for held in (self.old, self.new)]
        _put_columns(found, "final_", _places(*kinds), np.int32(0))

    def _put_feedback(self, found: dict[str, Any]) -> None:
        places = _places(self.new.contents.kinds, self.old.contents.kinds)
        mapped = np.array([_GONE if place is None else place for place in places], np.int16)
        kind = found["kind"]
        found["kind"] = np.where(kind < 0, kind, mapped[np.maximum(kind, 0)])
        custom = _places(self.old.contents.custom, self.new.contents.custom)
        _put_columns(found, "custom_", custom, np.int64(_MISSING))

    def _put_times(self, found: dict[str, Any]) -> None:
        """Times are units from 1, of impressions and then of each kind; 0: none."""
        kinds = [["", *held.contents.user_kinds] for held in (self.old, self.new)]
        _put_columns(found, "time_", _places(*kinds), np.int64(0))
        for name in [name for name in found if name.startswith("time_")]:
            unit = (found[name] - 1) * self.old.unit_ms // self.new.unit_ms
            found[name] = np.where(found[name] > 0, unit + 1, 0)


class ItemMigration:
    """Maps counts of items that were stored under other settings; ``labels``: theirs, by number."""

    def __init__(self, old: ItemsHeld, new: ItemsHeld, labels: Sequence[Label]) -> None:
        numbers: dict[tuple[str, ...], int] = {}
        mapped = [
            numbers.setdefault(tuple(label.get(n, _UNKNOWN) for n in new.dimensions), len(numbers))
            for label in labels
        ]
        self.labels = [list(values) for values in numbers]
        self._label = np.array(mapped or [0], np.int64)
        self._place = np.full(1 + SAMPLE_PLACE, -1, np.int64)
        self._place[: len(_OF_ITEMS)] = _OF_ITEMS
        if not new.has_lists:
            self._place[CLICKED] = -1
        for at, place in enumerate(_places(old.cutoffs, new.cutoffs)):
            parts = _OF_LISTS if new.has_lists else 1
            for part in range(parts if place is not None else 0):
                was = len(_OF_ITEMS) + part * len(old.cutoffs) + (place or 0)
                self._place[was] = len(_OF_ITEMS) + part * len(new.cutoffs) + at
        rings = _places(new.rings, old.rings)
        self._rings = {1 + i: 1 + place for i, place in enumerate(rings) if place is not None}

    def pane(self, number: int, pane: Pane) -> tuple[int, Pane] | None:
        """A pane with its number; None where no ring wants it."""
        ring, index = ring_and_pane(number)
        if ring not in self._rings:
            return None
        codes, values = pane
        item, label, place = parts_of_item_code(codes)
        mapped, is_sample = self._place[place], place == SAMPLE_PLACE
        is_kept = is_sample | (mapped >= 0)
        moved = item_code(item, self._label[np.where(is_sample, 0, label)], mapped)
        kept = np.where(is_sample, codes, moved)[is_kept]
        return pane_number(self._rings[ring], index), (kept, values[is_kept])


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


def _codes_after(old: Contents, new: Contents) -> I64:
    """By code of a statistic, as stored, its code now; -1: it is not wanted any more."""
    ours, mapped = new.codes(), np.full(1 << STAT_BITS, -1, np.int64)
    for name, code in old.codes().items():
        mapped[code] = ours.get(name, -1)
    return mapped


def _places(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """For each of the new ones its place among the old ones."""
    known = {name: place for place, name in enumerate(old)}
    return [known.get(name) for name in new]


def _put_columns(
    found: dict[str, Any], prefix: str, places: Sequence[int | None], missing: Any
) -> None:
    """Put columns that are numbered in another order; ``missing``: the values of new ones."""
    rows = _rows(found)
    old = {name: found.pop(name) for name in list(found) if name.startswith(prefix)}
    for i, place in enumerate(places):
        held = None if place is None else old.get(f"{prefix}{place}")
        column = np.full(rows, missing) if held is None else held
        found[f"{prefix}{i}"] = column


def _rows(columns: Mapping[str, Any]) -> int:
    return len(next(iter(columns.values())))
