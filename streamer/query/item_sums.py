"""Counts of items over windows, of all partitions together, kept from readout to readout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamer._core import PAIR_ITEM_BITS, PLACE_BITS
from streamer.encoding.arrays import I64, Bools
from streamer.encoding.packed import (
    ITEM_BITS,
    MAX_READ_LABELS,
    PAIR_PLACE,
    PAIR_SAMPLE_PLACE,
    SAMPLE_PLACE,
    item_key,
    items_of_pair,
    pane_number,
    parts_of_item_code,
    parts_of_item_key,
    segment_code,
)
from streamer.encoding.segments import ALL, Label, rollup_of
from streamer.metrics.item_counts import ItemCounts, ItemPairs, ItemTable
from streamer.metrics.rings import Ring
from streamer.query.panes import PaneReader, are_same
from streamer.query.sum_rows import SumRows
from streamer.settings.labels import OTHER
from streamer.state.panes import Pane
from streamer.state.snapshot import SeriesView, View

_SPARE_SLOTS = 10_000
"""Slots of items that no window has any more: with more than so many, all are given out again."""

Values = tuple[str, ...]
"""The values of dimensions: of a label, those of any rollup by which items are counted."""


@dataclass
class _Slots:
    """Numbers of keys (item and label; ~ a pair), given out once: the keys ascending, the number of
    each."""

    keys: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def of(self, keys: I64) -> I64:
        """The numbers of keys."""
        wanted, place = np.unique(keys, return_inverse=True)
        new = np.setdiff1d(wanted, self.keys, assume_unique=True)
        if len(new):
            known = np.concatenate([self.keys, new])
            numbers = np.concatenate([self.numbers, len(self.keys) + np.arange(len(new))])
            order = np.argsort(known)
            self.keys, self.numbers = known[order], numbers[order]
        found: I64 = self.numbers[np.searchsorted(self.keys, wanted)][place]
        return found

    def in_order(self) -> I64:
        """The keys by their numbers."""
        keys = np.empty_like(self.keys)
        keys[self.numbers] = self.keys
        return keys


@dataclass(frozen=True)
class _Part:
    """The panes of one partition, with slots in place of items, and the sample bits of each: of
    items, and of pairs."""

    series: SeriesView
    labels: tuple[int, ...]
    panes: Mapping[int, Pane]
    bits: Mapping[int, tuple[int, int]]


_NOTHING = SeriesView(0, [], {})


class ItemSumCache:
    """Sums of counts of items over ranges of panes."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._sums, self._slots = PaneReader(), _Slots()
        self._parts: list[_Part] = []
        self._labels: dict[Values, int] = {}
        self._used = 0

    def begin(
        self, declared: ItemCounts, views: Sequence[View], shown: Mapping[str, set[str]]
    ) -> None:
        """Another readout. ``shown``: the values of each dimension that do not count as other."""
        has_many_labels = len(self._labels) > MAX_READ_LABELS // 2
        if has_many_labels or len(self._slots.keys) > 2 * self._used + _SPARE_SLOTS:
            self._forget()
        self._declared = declared
        old = {id(part.series): part for part in self._parts}
        found = [view.series.get(declared.shape, _NOTHING) for view in views]
        last = [*self._parts, *[None] * len(views)]
        self._parts = [
            self._part(series, self._numbers(series, shown), old.get(id(series)) or before)
            for series, before in zip(found, last, strict=False)
        ]
        slots = np.arange(len(self._slots.keys))
        rows = SumRows.equal(len(slots), declared.places)
        self._sums.begin(self._parts, [slots] * len(views), rows)
        self._keys = self._slots.in_order()

    def _numbers(self, series: SeriesView, shown: Mapping[str, set[str]]) -> tuple[int, ...]:
        """The number of each label of a partition."""
        names = self._declared.dimensions
        return tuple(
            self._number(tuple(label[n] if label[n] in shown[n] else OTHER for n in names))
            for label in series.labels
        )

    def _number(self, values: Values) -> int:
        """The number of a label; beyond the bound it is ``other`` in the dimensions of its rollup,
        of which the last numbers are."""
        most = MAX_READ_LABELS - len(self._declared.rollups)
        if values not in self._labels and len(self._labels) >= most:
            values = tuple(value if value == ALL else OTHER for value in values)
        return self._labels.setdefault(values, len(self._labels))

    def _part(self, series: SeriesView, labels: tuple[int, ...], old: _Part | None) -> _Part:
        if old is not None and old.series is series and old.labels == labels:
            return old
        is_same = old is not None and labels[: len(old.labels)] == old.labels
        panes, bits = {}, {}
        for number, (codes, values) in series.panes.items():
            known = old.series.panes.get(number) if old is not None and is_same else None
            if old is not None and known is not None and are_same(known, (codes, values)):
                panes[number], bits[number] = old.panes[number], old.bits[number]
            else:
                panes[number], bits[number] = self._pane(codes, values, labels)
        return _Part(series, labels, panes, bits)

    def _pane(
        self, codes: I64, values: I64, labels: tuple[int, ...]
    ) -> tuple[Pane, tuple[int, int]]:
        item, label, place = parts_of_item_code(codes)
        of_items, of_pairs = (
            int(values[place == sample].sum()) for sample in (SAMPLE_PLACE, PAIR_SAMPLE_PLACE)
        )
        is_count, is_pair = place < PAIR_SAMPLE_PLACE, place >= PAIR_PLACE
        own = np.array([*labels, 0], np.int64)[np.where(is_pair, -1, label)]
        keys = np.where(is_pair, ~(codes >> PLACE_BITS), item_key(item, own))
        slot = self._slots.of(keys[is_count])
        place = np.where(is_pair, place - PAIR_PLACE, place)[is_count]
        return (segment_code(slot, place), values[is_count]), (of_items, of_pairs)

    def ring(self, label: str) -> Ring | None:
        """The ring of a window; None where items are not counted for it."""
        return next((ring for ring in self._declared.rings if ring.label == label), None)

    def window(self, ring: Ring, oldest: int, newest: int, what: str) -> ItemWindow:
        """The items of a ring's panes from ``oldest`` to ``newest``; ``what``: of which panes."""
        number = self._declared.rings.index(ring) + 1
        first, last = pane_number(number, max(oldest, 0)), pane_number(number, newest)
        sums = self._sums.sum((number, what), first, last).reshape(-1, self._declared.places)
        of_panes = [b for part in self._parts for n, b in part.bits.items() if first <= n <= last]
        bits, of_pairs = np.max([(0, 0), *of_panes], axis=0).tolist()
        held = np.flatnonzero(sums.any(axis=1))
        self._used = max(self._used, len(held))
        pairs = self._pairs(sums, held[self._keys[held] < 0], max(bits, of_pairs))
        held = held[self._keys[held] >= 0]
        item, label = parts_of_item_key(self._keys[held])
        is_kept = _is_in_sample(item, ITEM_BITS, bits)
        labels = [dict(zip(self._declared.dimensions, v, strict=True)) for v in self._labels]
        counts, rollups = sums[held[is_kept]], self._declared.rollups
        return ItemWindow(
            *(item[is_kept], label[is_kept], counts, labels, rollups, 2.0**-bits, pairs)
        )

    def _pairs(self, sums: I64, held: I64, bits: int) -> ItemPairs | None:
        if not self._declared.has_pairs:
            return None
        one, other = items_of_pair(~self._keys[held])
        is_kept = _is_in_sample(other, PAIR_ITEM_BITS, bits)
        return ItemPairs((one[is_kept], other[is_kept]), sums[held[is_kept]], 2.0**-bits)


def _is_in_sample(item: I64, of: int, bits: int) -> Bools:
    """Which hashes of so many bits begin with enough zeros."""
    return item >> (of - bits) == 0 if bits else np.ones(len(item), bool)


@dataclass(frozen=True)
class ItemWindow:
    """Items of a window, each under the number of a label; ``labels``: by number; ``rollups``: by
    which they are counted."""

    items: I64
    label: I64
    counts: I64
    labels: Sequence[Label]
    rollups: Sequence[tuple[str, ...]]
    sample_ratio: float
    pairs: ItemPairs | None

    def by(self, rollup: tuple[str, ...]) -> dict[Values, ItemTable]:
        """The items under the values of a rollup; of the total those of the first one together."""
        groups: dict[Values, list[int]] = {}
        for number, label in enumerate(self.labels):
            if rollup_of(label) == (rollup or self.rollups[0]):
                groups.setdefault(tuple(label[name] for name in rollup), []).append(number)
        found = {values: self._table(numbers) for values, numbers in groups.items()}
        return {values: table for values, table in found.items() if table.is_held}

    def _table(self, labels: Sequence[int]) -> ItemTable:
        chosen = np.isin(self.label, labels) if len(self.labels) > len(labels) else slice(None)
        items, place = np.unique(self.items[chosen], return_inverse=True)
        counts = np.zeros((len(items), self.counts.shape[1]), np.int64)
        np.add.at(counts, place, self.counts[chosen])
        is_every = items == 0
        every = counts[is_every].sum(axis=0)
        counts = counts[~is_every]
        return ItemTable(items[~is_every], counts, every, self.sample_ratio, self.pairs)
