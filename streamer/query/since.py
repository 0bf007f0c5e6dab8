"""Windows over what was added while state was kept: read from the time on since which it counts.

A window may cover panes in which a sum was not counted yet. A series that such a sum has part in is
read of the later panes only, all its sums alike, as a window is read at the first start; all other
series are read of the whole window. Which series those are is tried out: they come out otherwise
where the sum is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import Series
from streamer.metrics.item_counts import CLICKED
from streamer.metrics.layout import Layout
from streamer.metrics.user_sums import positive_users, rate_sum, users_stats
from streamer.state.began import Began
from streamer.state.snapshot import View

USERS_READ, ITEMS_READ = "users", "items"
"""What metrics read besides statistics."""


@dataclass(frozen=True)
class Marks:
    """Sums that count from one time on: codes of statistics, sums over users, places of counts of
    items."""

    codes: I64
    users: I64
    items: I64

    def names(self, layout: Layout) -> set[str]:
        """Statistics of which any part is marked; also ``USERS_READ`` and ``ITEMS_READ``."""
        is_marked = np.zeros(layout.size + 1, bool)
        is_marked[self.codes] = True
        found = {stat.name for stat in layout.stats if is_marked[layout.span(stat.name)].any()}
        beside = ((USERS_READ, self.users), (ITEMS_READ, self.items))
        return found | {name for name, marked in beside if len(marked)}

    def on(self, sums: I64) -> I64:
        """(Segments, statistics) with other sums there, wherever a segment has any."""
        return _marked(sums, self.codes)

    def on_users(self, sums: I64) -> I64:
        """(Statistics, groups), likewise."""
        return _marked(sums.T, self.users).T

    def on_items(self, counts: I64) -> I64:
        """(Items, places), likewise."""
        return _marked(counts, self.items)


def _marked(sums: I64, columns: I64) -> I64:
    found = sums.copy()
    held = np.flatnonzero(sums.any(axis=1))
    at = np.ix_(held, columns)
    found[at] = 3 * sums[at] + 7 + columns % 5
    return found


class Times:
    """Since when (ms) what windows are read from counts, in every partition; 0: always."""

    def __init__(self, catalogue: Catalogue, views: Sequence[View]) -> None:
        settings = catalogue.settings
        self._catalogue = catalogue
        self._all = [view.header.began for view in views if view.header.began != Began()]
        self.codes = np.zeros(catalogue.layout.size, np.int64)
        for began in self._all:
            for first, stop, ms in began.codes:
                self.codes[first:stop] = np.maximum(self.codes[first:stop], ms)
        kinds = settings.user_feedback_kinds
        self.users = np.full(users_stats(len(kinds)), self._latest("users_ms"), np.int64)
        for began in self._all:
            for named in began.named:
                if named.setting == "metrics.feedback" and named.key in kinds:
                    kind = kinds.index(named.key)
                    for stat in (rate_sum(kind), positive_users(kind)):
                        self.users[stat] = max(self.users[stat], named.since_ms)

    def _latest(self, name: str) -> int:
        return max((getattr(began, name) for began in self._all), default=0)

    def of_ring(self, number: int) -> int:
        """Of a window as a whole."""
        return max((began.rings.get(number, 0) for began in self._all), default=0)

    def _of_items(self, label: str) -> I64:
        """By place of a count of an item, in a window."""
        counts = self._catalogue.item_counts
        if counts is None:
            return np.zeros(0, np.int64)
        found = np.zeros(counts.places, np.int64)
        numbers = [n for n, ring in enumerate(counts.rings, 1) if ring.label == label]
        for items in [began.items for began in self._all]:
            for number in numbers:
                found = np.maximum(found, items.rings.get(number, 0))
            found[CLICKED] = max(found[CLICKED], items.clicked_ms)
            for k in counts.cutoffs:
                found[counts.top(k)] = max(found[counts.top(k)], items.cutoffs.get(k, 0))
                for place in (counts.weight(k), counts.excess(k)):
                    found[place] = max(found[place], items.lists.get(k, 0))
        return found

    def levels(self, number: int, label: str, start_ms: int) -> dict[int, Marks]:
        """Times within a window, and what counts from each on."""
        if not self._all:
            return {}
        start_ms = max(start_ms, self.of_ring(number))
        items = self._of_items(label)
        every = np.unique(np.concatenate([self.codes, self.users, items]))
        return {
            int(ms): Marks(
                *(np.flatnonzero(times == ms) for times in (self.codes, self.users, items))
            )
            for ms in every[every > start_ms]
        }


Key = tuple[frozenset[tuple[str, str]], str]


def unlike(found: Sequence[Series], shown: Iterator[Series]) -> set[Key]:
    """Which of a metric's series come out otherwise where marked sums are others."""
    with np.errstate(all="ignore"):
        marked = {key_of(series): series for series in shown}
    return {
        key_of(series)
        for series in found
        if (other := marked.get(key_of(series))) is None or not _is_equal(series, other)
    }


def key_of(series: Series) -> Key:
    """Labels and suffix of a series."""
    return frozenset(series.labels.items()), series.suffix


def _is_equal(a: Series, b: Series) -> bool:
    if not np.array_equal(a.present, b.present):
        return False
    return np.array_equal(np.asarray(a.values)[a.present], np.asarray(b.values)[b.present])
