"""Coverage: how much of the catalogue is shown, and how evenly.

Items are counted one by one, by their hashes, over all partitions together: exact up to
``limits.items`` rows of a window in a partition. Beyond it a uniform sample of the items stays, as
``item_sample_ratio`` q says; with n items in it the relative standard error of a count of items is
sqrt((1 - q) / n). The catalogue has ``items.catalog_size`` items, or as many as the longest window
shows.

Two of four items of the catalogue are shown, both in the top 2:

    >>> from streamer.testing import value_of
    >>> shown = [{"item_id": item} for item in "aab"]
    >>> events = [{"type": "impression", "user_id": u, "items": shown} for u in "uv"]
    >>> settings = {"items": {"catalog_size": 4}, "metrics": {"k": [2]}}
    >>> value_of(events, "catalog_coverage_ratio", settings, k="2")
    0.25
    >>> value_of(events, "catalog_coverage_ratio", settings, k="all")
    0.5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64
from streamer.metrics.definition import Declarations, Declared, Family, Formula, Series, Variant
from streamer.metrics.item_counts import SHOWN, ItemTable, item_counts
from streamer.metrics.layout import Layout
from streamer.metrics.reads import AllItems, Given, OfItems, Read, Rows, Sums

metric = Declarations()
ALL = "all"
"""The label ``k`` of what is not cut off."""
_EMPTY = "absent without impressions"


Tables = Mapping[int, ItemTable]
"""Row → the items of its segment."""


def of_items(value: Callable[..., float | None]) -> Formula:
    """What makes a value of the items of each segment, and of what else is read; absent where it
    is None."""

    def series(rows: int, tables: Mapping[int, Any], *read: Any) -> Iterator[Series]:
        values: F64 = np.full(rows, np.nan)
        for row, table in tables.items():
            found = value(table, *read)
            if found is not None:
                values[row] = found
        present = ~np.isnan(values)
        yield Series({}, np.where(present, values, 0.0), present)

    return series


@dataclass(frozen=True)
class CatalogSize:
    """How many items there are to show."""

    def parts(self, layout: Layout) -> Iterator[AllItems]:
        yield AllItems()

    def of(self, sums: Sums) -> float | None:
        return None if sums.all_items is None else sums.all_items.distinct(SHOWN)


def catalog_size(settings: Any) -> Read:
    """What reads it, or the size that the settings say."""
    size = settings.items.catalog_size
    return Given(float(size)) if size else CatalogSize()


def _by_cutoff(of: Declared) -> Iterator[Variant]:
    """What reads the impressions that count for each cut-off."""
    declared, size = item_counts(of.settings), catalog_size(of.settings)
    if declared is not None:
        places = [(str(k), declared.top(k)) for k in declared.cutoffs]
        for label, place in (*places, (ALL, SHOWN)):
            yield Variant({"k": label}, (Rows(), OfItems((SHOWN, place)), size, Given(place)))


def covered(table: ItemTable, size: float, place: int) -> float | None:
    """Share of a catalogue of ``size`` items that has a count at ``place``."""
    return min(1.0, table.distinct(place) / size) if size else None


metric.row(
    *("catalog_coverage_ratio", "ratio"),
    "distinct items shown at a position up to k / items of the catalogue",
    'Share of the catalogue that is shown. `k="all"` also counts impressions without a position.'
    " It is at most 1: if `window_items` is above `items.catalog_size`, that setting is too small.",
    of_items(covered),
    empty=_EMPTY,
    labels=("k",),
    reads=_by_cutoff,
)
metric.row(
    *("window_items", "items", "distinct items with an impression"),
    "Support of catalog_coverage_ratio and exposure_gini.",
    of_items(lambda table: table.distinct(SHOWN)),
    empty=_EMPTY,
    reads=(Rows(), OfItems((SHOWN,))),
)

FAMILY = Family("coverage", tuple(metric.series))
