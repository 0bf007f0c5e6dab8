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

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64
from streamer.metrics.definition import Declarations, Family, Series, Sums
from streamer.metrics.item_counts import SHOWN, ItemTable, item_counts

metric = Declarations()
ALL = "all"
"""The label ``k`` of what is not cut off."""
_EMPTY = "absent without impressions"


def each(
    w: Sums, places: Sequence[int], value: Callable[[ItemTable], float | None], **labels: str
) -> Series:
    """A value of these counts of the items of each segment; absent where it is None."""
    return at_rows(w, w.items(places), value, **labels)


def at_rows(
    w: Sums, tables: Any, value: Callable[[ItemTable], float | None], **labels: str
) -> Series:
    """The same of given tables."""
    values: F64 = np.full(len(w.rows), np.nan)
    for row, table in tables.items():
        found = value(table)
        if found is not None:
            values[row] = found
    present = ~np.isnan(values)
    return Series(labels, np.where(present, values, 0.0), present)


def catalog_size(w: Sums) -> float:
    """How many items there are to show."""
    if w.settings.items.catalog_size:
        return float(w.settings.items.catalog_size)
    return w.all_items.distinct(SHOWN) if w.all_items is not None else 0.0


def _cutoffs(settings: Any) -> Iterator[tuple[str, int]]:
    """Label and place of the impressions that count."""
    declared = item_counts(settings)
    if declared is not None:
        yield from ((str(k), declared.top(k)) for k in declared.cutoffs)
        yield ALL, SHOWN


@metric(
    "catalog_coverage_ratio",
    formula="distinct items shown at a position up to k / items of the catalogue",
    unit="ratio",
    empty=_EMPTY,
    labels=("k",),
)
def catalog_coverage(w: Sums) -> Iterator[Series]:
    """Share of the catalogue that is shown. `k="all"` also counts impressions without a position.
    It is at most 1: if `window_items` is above `items.catalog_size`, that setting is too small."""
    size = catalog_size(w)
    for label, place in _cutoffs(w.settings):

        def share(table: ItemTable, place: int = place) -> float | None:
            return covered(table, place, size)

        with w.apart():
            yield each(w, [SHOWN, place], share, k=label)


def covered(table: ItemTable, place: int, size: float) -> float | None:
    """Share of a catalogue of ``size`` items that has a count at ``place``."""
    return min(1.0, table.distinct(place) / size) if size else None


@metric(
    "window_items",
    formula="distinct items with an impression",
    unit="items",
    empty=_EMPTY,
)
def window_items(w: Sums) -> Iterator[Series]:
    """Support of catalog_coverage_ratio and exposure_gini."""
    yield each(w, [SHOWN], lambda table: table.distinct(SHOWN))


FAMILY = Family("coverage", tuple(metric.series))
