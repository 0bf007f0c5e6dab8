"""Since when what windows are made of counts, where it was added while state was kept.

A window shows a series once every sum that its formula reads is counted over the whole window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import CLICKED
from streamer.metrics.rollups import key_of
from streamer.metrics.users import positive_users, rate_squares, rate_sum, users_stats
from streamer.state.counted_since import CountedSince
from streamer.state.snapshot import View


@dataclass(frozen=True)
class Since:
    """Times (ms) from which on sums of a window count, in every partition; 0: always. ``codes``: of
    statistics, ``users``: of sums over users, ``items``: by place; ``whole_ms``: of all."""

    codes: I64
    users: I64
    items: I64
    whole_ms: int = 0
    rollups: Mapping[tuple[str, ...], I64] = field(default_factory=dict)
    """Of statistics in a rollup, by its dimensions, where some began later."""
    item_rollups: Mapping[str, int] = field(default_factory=dict)
    """Of counts of items, by ``Rollup.key``, where some began later."""

    def of_rollup(self, rollup: Sequence[str]) -> int:
        """Of all that a rollup shows."""
        times = self.rollups.get(tuple(rollup))
        return 0 if times is None else int(min(times[times >= 0], default=0))

    def of_codes(self, codes: slice, rollup: Sequence[str] = ()) -> int:
        """Of some statistics in a rollup."""
        times = self.rollups.get(tuple(rollup))
        of_rollup = 0 if times is None else int(times[codes].max(initial=0))
        return max(int(self.codes[codes].max(initial=0)), of_rollup)

    def of_items(self, places: Sequence[int], rollup: Sequence[str]) -> int:
        """Of counts of items under a rollup."""
        of_rollup = self.item_rollups.get(key_of(rollup), 0)
        return max(int(self.items[list(places)].max(initial=0)), of_rollup)


class Times:
    """Since when windows count, by what partitions stored of it."""

    def __init__(self, catalogue: Catalogue, views: Sequence[View]) -> None:
        self._catalogue = catalogue
        self._all = [view.header.began for view in views if view.header.began != CountedSince()]

    def of(self, number: int, label: str) -> Since:
        """Of the window with this number of its ring; 0: of the totals."""
        return Since(
            self.codes,
            self._users,
            self._items(label),
            max((began.rings.get(number, 0) for began in self._all), default=0),
            self._rollups,
            self._named("items.dimensions"),
        )

    @cached_property
    def codes(self) -> I64:
        """Of statistics."""
        found = np.zeros(self._catalogue.layout.size, np.int64)
        for began in self._all:
            for first, stop, ms in began.codes:
                found[first:stop] = np.maximum(found[first:stop], ms)
        return found

    @cached_property
    def _rollups(self) -> dict[tuple[str, ...], I64]:
        """Times of what each rollup keeps, -1 for all else."""
        found = {}
        for rollup in self._catalogue.rollups:
            spans = [span for began in self._all for span in began.rollups.get(rollup.key, [])]
            if spans:
                times = np.full(self._catalogue.layout.size, -1, np.int64)
                times[list(rollup.codes)] = 0
                for first, stop, ms in spans:
                    times[first:stop] = np.maximum(times[first:stop], ms)
                found[rollup.dimensions] = times
        return found

    def _named(self, setting: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for named in (each for began in self._all for each in began.named):
            if named.setting == setting:
                found[named.key] = max(found.get(named.key, 0), named.since_ms)
        return found

    @cached_property
    def _users(self) -> I64:
        kinds = self._catalogue.settings.user_feedback_kinds
        all_ms = max((began.users_ms for began in self._all), default=0)
        found = np.full(users_stats(len(kinds)), all_ms, np.int64)
        for kind, since_ms in self._named("metrics.feedback").items():
            for place in [i for i, name in enumerate(kinds) if name == kind]:
                for stat in (rate_sum(place), positive_users(place), rate_squares(place)):
                    found[stat] = max(found[stat], since_ms)
        return found

    def _items(self, label: str) -> I64:
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
