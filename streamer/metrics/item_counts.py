"""Counts of each item by window pane: declared once for the core, the store and readers.

A pane holds integers by item, label (values of a rollup) and place. Under the item 0 stand those of
no item: lists. The total has rows of its own only where it is the only rollup: else it is read as
the sum over all labels of another one, of which every event has one, so that a dimension of two
values takes two rows of an item, not three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer._core import ITEM_CATEGORY_BITS, ITEM_LABEL_BITS
from streamer.encoding.arrays import I64
from streamer.metrics.rings import Ring, rings_of
from streamer.settings import limits
from streamer.settings.model import Settings

SHOWN, CLICKED, CATEGORY = range(3)
"""Places: impressions, clicked ones, and impressions of a category (whose hash stands for the
item)."""
WEIGHT_UNIT = 1 << 28
"""Units of a list's length that is 1."""
FAMILIES = frozenset({"coverage", "diversity"})
"""Those that need items to be counted."""


@dataclass(frozen=True)
class ItemCounts:
    """What is counted of items, by rollup; ``dimensions``: of any of them; ``rollups``: first those
    of the fewest dimensions; ``cutoffs``: ascending; ``rings``: coarse ones, for items are many;
    ``has_pairs``: whether of pairs of items, too."""

    dimensions: tuple[str, ...]
    rollups: tuple[tuple[str, ...], ...]
    cutoffs: tuple[int, ...]
    rings: tuple[Ring, ...]
    has_pairs: bool = False

    @property
    def shape(self) -> str:
        """What the counts depend on; they are stored under it."""
        windows = tuple(ring.label for ring in self.rings)
        return repr(("items", self.rollups, self.cutoffs, windows))

    @property
    def max_labels(self) -> int:
        """Labels of each rollup; ``other`` may be one more."""
        share = (1 << ITEM_LABEL_BITS) // len(self.rollups) - 1
        return min(limits.MAX_ITEM_LABELS, share)

    @property
    def places(self) -> int:
        """How many counts an item has."""
        return 5 + 3 * len(self.cutoffs) + self.has_pairs

    @property
    def people(self) -> tuple[int, int]:
        """The places of people by their last impression of an item, and by their last feedback."""
        first = 3 + 3 * len(self.cutoffs)
        return first, first + 1

    @property
    def pairs(self) -> int:
        """The place under which it is said since when pairs are counted."""
        return self.places - 1

    def top(self, k: int) -> int:
        """The place of impressions at a position up to k; of a pair: of lists, cut off at k."""
        return 3 + self.cutoffs.index(k)

    def weight(self, k: int) -> int:
        """Of an item: its part of lists cut off at k; of all items: these lists."""
        return self.top(k) + len(self.cutoffs)

    def excess(self, k: int) -> int:
        """Of all items: by how much the squared lengths of lists are above 1."""
        return self.top(k) + 2 * len(self.cutoffs)


@dataclass(frozen=True)
class ItemPairs:
    """Pairs of items of a window: the first ``PAIR_ITEM_BITS`` of both hashes, with a row of counts
    each. ``sample_ratio``: share of the items whose pairs are here."""

    items: tuple[I64, I64]
    counts: I64
    sample_ratio: float


@dataclass(frozen=True)
class ItemTable:
    """Items of a window under some values of dimensions: ascending hashes, with a row of counts
    each. ``every``: the counts of no item; ``sample_ratio``: share of the items that are here;
    ``pairs``: all those of the window."""

    items: I64
    counts: I64
    every: I64
    sample_ratio: float = 1.0
    pairs: ItemPairs | None = None

    @property
    def is_held(self) -> bool:
        """Whether anything was shown: feedback to an item may come in another window."""
        return bool(self.every[SHOWN])

    @property
    def is_whole(self) -> bool:
        """Whether all items are here."""
        return self.sample_ratio == 1

    @property
    def category_ratio(self) -> float:
        """Share of the categories that are here: all, where one item in 64 is."""
        return min(1.0, self.sample_ratio * (1 << ITEM_CATEGORY_BITS))

    def of(self, place: int) -> I64:
        """One count of each item."""
        column: I64 = self.counts[:, place]
        return column

    def distinct(self, place: int) -> float:
        """How many items have a count that is not 0, scaled to all items."""
        return float(np.count_nonzero(self.of(place))) / self.sample_ratio

    def at(self, items: I64, place: int) -> I64:
        """A count of some items; 0 for those that are not here."""
        if not len(self.items):
            return np.zeros(len(items), np.int64)
        at = np.minimum(np.searchsorted(self.items, items), len(self.items) - 1)
        return np.where(self.items[at] == items, self.of(place)[at], 0)


def item_counts(settings: Settings) -> ItemCounts | None:
    """What is counted of items; None where no family needs it."""
    if not FAMILIES & set(settings.metrics.families):
        return None
    names, counted = settings.dimension_names, settings.item_windows
    shown = [rollup for rollup in settings.rollups if rollup and settings.has_items(rollup)]
    ordered = dict.fromkeys(tuple(n for n in names if n in rollup) for rollup in shown)
    rollups = tuple(sorted(ordered, key=len)) or ((),)
    dimensions = tuple(n for n in names if any(n in rollup for rollup in rollups))
    rings = tuple(ring.coarse for ring in rings_of(settings) if ring.label in counted)
    cutoffs, has_pairs = tuple(sorted(settings.metrics.k)), settings.items.pairs
    return ItemCounts(dimensions, rollups, cutoffs, rings, has_pairs)


def core_spec(settings: Settings) -> dict[str, Any] | None:
    """The core's spec of it."""
    counts, names = item_counts(settings), settings.dimension_names
    if counts is None:
        return None
    return {
        "rollups": [[names.index(name) for name in rollup] for rollup in counts.rollups],
        "rings": [{"pane_ms": ring.pane_ms, "panes": ring.panes} for ring in counts.rings],
        "cutoffs": counts.cutoffs,
        "has_pairs": counts.has_pairs,
        "labels": counts.max_labels,
        "limit": settings.limits.items,
    }
