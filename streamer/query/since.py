"""Since when what windows are made of counts, where it was added while state was kept.

A window shows a series once all that it reads is counted over the whole window; in a dimension that
was added, once all impressions that its feedback may join came after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import CLICKED, SHOWN
from streamer.metrics.layout import Layout
from streamer.metrics.reads import AllItems, ByValue, OfItems, Overall, Part, Statistic, Users
from streamer.metrics.rollups import key_of
from streamer.metrics.sums import (
    OTHER_FEEDBACK,
    asks_impressions,
    filtered_by,
    is_of_conversions,
    joined_within_ms,
)
from streamer.metrics.users import (
    positive_users,
    rate_squares,
    rate_sum,
    users_stats,
    users_sum,
)
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
    dimensions: Mapping[str, int] = field(default_factory=dict)
    """Of those that were added."""
    kinds_ms: int = 0
    """Of the newest kind of feedback: with more kinds more conversions join."""
    is_always: bool = False
    """Whether all of this was counted always."""

    def of_rollup(self, rollup: Sequence[str]) -> int:
        """Of all that a rollup shows."""
        times = self.rollups.get(tuple(rollup))
        return max(self.whole_ms, 0 if times is None else int(min(times[times >= 0], default=0)))

    def of(self, part: Part, catalogue: Catalogue, rollup: Sequence[str]) -> int:
        """Of what a metric reads in a rollup; of statistics by value in that of their dimension."""
        match part:
            case Statistic(is_always=True) | ByValue():
                return 0
            case Statistic():
                found = self._of_codes(part, catalogue.layout, rollup)
                waits_for = part.sum_name or part.name
                if waits_for == OTHER_FEEDBACK or is_of_conversions(waits_for):
                    found = max(found, self.kinds_ms)
            case Overall(name):
                return self._of_codes(Statistic(name), catalogue.layout, ())
            case Users(stat):
                found, waits_for = int(self.users[stat]), users_sum(stat, catalogue.settings)
            case OfItems(places):
                found, waits_for = int(self.items[list(places)].max(initial=0)), ""
                found = max(found, self.item_rollups.get(key_of(rollup), 0))
            case AllItems():
                return int(self.items[[SHOWN]].max(initial=0))
        if asks_impressions(waits_for, catalogue.settings):
            begun_ms = max(found, self.kinds_ms)
            found = begun_ms and begun_ms + joined_within_ms(waits_for, catalogue.settings)
        dimensions = {*rollup, *filtered_by(waits_for, catalogue.settings)}
        added = [self.dimensions.get(name, 0) for name in dimensions]
        added_ms = max([*added, self.kinds_ms]) if added else 0
        wait_ms = joined_within_ms(waits_for, catalogue.settings) if added_ms else 0
        return max(found, added_ms + wait_ms if wait_ms else 0)

    def _of_codes(self, read: Statistic, layout: Layout, rollup: Sequence[str]) -> int:
        codes, times = read.codes(layout), self.rollups.get(tuple(rollup))
        at = slice(codes.start, codes.stop)
        of_rollup = 0 if times is None else int(times[at].max(initial=0))
        return max(int(self.codes[at].max(initial=0)), of_rollup)


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
            self._named("dimensions"),
            max(self._named("metrics.feedback").values(), default=0),
            is_always=not self._all,
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
            for place in counts.people:
                found[place] = max(found[place], items.people_ms)
            if counts.has_pairs:
                found[counts.pairs] = max(found[counts.pairs], items.pairs_ms)
            for k in counts.cutoffs:
                found[counts.top(k)] = max(found[counts.top(k)], items.cutoffs.get(k, 0))
                for place in (counts.weight(k), counts.excess(k)):
                    found[place] = max(found[place], items.lists.get(k, 0))
        return found
