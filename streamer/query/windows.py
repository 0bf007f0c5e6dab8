"""Windows: unions of panes, summed for each segment and rolled up.

The same window a day before, as far as it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from streamer._core import TOTAL_RING
from streamer.encoding.arrays import I64
from streamer.encoding.packed import first_user_key, pane_number, parts_of_user_key
from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.day_before import DayBefore, shift_of
from streamer.metrics.definition import Variant
from streamer.metrics.item_counts import ItemTable
from streamer.metrics.layout import Layout
from streamer.metrics.reads import AllItems, Part, Read, Statistic, Users
from streamer.metrics.rings import Ring
from streamer.metrics.users import USERS, users_stats
from streamer.query.item_sums import ItemSumCache, ItemWindow
from streamer.query.panes import PaneReader
from streamer.query.segment_index import Segment, SegmentIndex
from streamer.query.since import Since
from streamer.settings.labels import OTHER, UNKNOWN
from streamer.settings.model import Settings
from streamer.state.counters import added
from streamer.state.snapshot import View, first_event_ms


class PastWindow:
    """Sums of the window ``number`` a day before, of all segments as the numbering has them."""

    def __init__(
        self,
        kept: PaneReader,
        views: Sequence[View],
        rings: DayBefore,
        number: int,
        window: Ring,
    ) -> None:
        self._kept, self._number, self._window = kept, number, window
        shape = rings.shapes[number]
        since_ms = [view.header.day_before_since_ms.get(shape) for view in views]
        known = [since for since in since_ms if since is not None]
        oldest_ms = first_event_ms(views)
        self._since_ms = None
        if oldest_ms and len(known) == len(since_ms):
            self._since_ms = max(oldest_ms, *known)
        self.spans = rings.spans
        """Codes of what is kept."""

    def sums(self, oldest: int, newest: int) -> I64 | None:
        """Those of the panes a day before these, flat (``SumRows``), not to be written to; None
        where the log, or what is counted of it, began later than the first of these panes."""
        shift = shift_of(self._window)
        first, last = max(oldest - shift, 0), newest - shift
        if self._since_ms is None or first * self._window.pane_ms < self._since_ms:
            return None
        panes = pane_number(self._number, first), pane_number(self._number, last)
        return self._kept.sum((self._number, f"{newest - oldest} panes"), *panes)


def sum_users(
    views: Sequence[View], numbering: SegmentIndex, stats: int, ring: int, oldest: int
) -> I64:
    """Sums over users of a ring's panes from ``oldest`` on, without an end: (statistics, segments);
    scaled up where a partition holds a sample of its users."""
    segments = len(numbering.segments)
    flat = np.zeros(stats * segments, np.int64)
    for view, numbers in zip(views, numbering.maps, strict=True):
        if ring in view.users:
            key, value = view.users[ring]
            start = np.searchsorted(key, first_user_key(oldest))
            _, segment, stat = parts_of_user_key(key[start:])
            place = stat * segments + numbers[segment]
            np.add.at(flat, place, value[start:] << view.header.counters["sample_bits"])
    return flat.reshape(stats, segments)


class Window:
    """One window, or the totals: sums of every segment, by rollup."""

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        views: Sequence[View],
        numbering: SegmentIndex,
        number: int,
        ring: Ring | None,
        now_ms: int,
        kept: PaneReader,
        items: ItemSumCache | None,
        since: Since,
    ) -> None:
        self.since = since
        self.settings, self.layout, self.catalogue = settings, catalogue.layout, catalogue
        self.now_ms, self._kept = now_ms, kept
        self._views, self.numbering, self._ring, self._item_sums = views, numbering, ring, items
        self.longest: Window = self
        self.longest_of_items: Window = self
        self._number = number if ring else TOTAL_RING
        self._oldest = ring.oldest(now_ms) if ring else 0
        past = TOTAL_RING + number
        self.past = (
            PastWindow(kept, views, catalogue.day_before, past, ring)
            if ring and past in catalogue.day_before.rings
            else None
        )
        """The same window a day before, if that is kept."""
        self._mature: dict[int, I64 | None] = {}
        self._items: dict[int | None, ItemWindow | None] = {}
        self._rolled_up: dict[tuple[str, ...], Rolled] = {}

    @cached_property
    def sums(self) -> I64:
        """Flat (``SumRows``), not to be written to."""
        return self._sum(self.now_ms // self._ring.pane_ms if self._ring else 0, "all")

    def _sum(self, newest: int, what: str) -> I64:
        """Sums of panes up to ``newest``: flat, not to be written to."""
        first, last = (pane_number(self._number, p) for p in (max(self._oldest, 0), newest))
        if last < first:
            return np.zeros(self.numbering.rows.size, np.int64)
        return self._kept.sum((self._number, what), first, last)

    @property
    def start_ms(self) -> int:
        """When its oldest pane begins."""
        return self._oldest * self._ring.pane_ms if self._ring else 0

    @cached_property
    def _all_users(self) -> I64:
        """Sums over users: (statistics, segments), of values that readers fold together, too."""
        stats = users_stats(len(self.settings.user_feedback_kinds))
        if self._ring is None:
            return np.zeros((stats, len(self.numbering.segments)), np.int64)
        return sum_users(self._views, self.numbering, stats, self._number, self._oldest)

    @cached_property
    def users(self) -> I64:
        """Sums over users: (statistics, segments); 0 where nobody knows who is the same."""
        return np.where(self.numbering.is_mixed, 0, self._all_users)

    @property
    def has_mixed_users(self) -> bool:
        """Whether users of some segments are not known, as partitions keep other values."""
        return bool(self._all_users[:, self.numbering.is_mixed].any())

    @cached_property
    def user_sample_ratio(self) -> float:
        """Share of the users in the sums over users, in the partition with the smallest."""
        return float(2.0 ** -added("sample_bits", (view.header.counters for view in self._views)))

    @cached_property
    def overall(self) -> I64:
        """Sums of the total, by code of the statistic."""
        numbers, kind = self.numbering.numbers_of(()), self.numbering.place_of(())
        rows = self.numbering.rows.matrix(self.sums, numbers, kind)
        return rows.sum(axis=0) if len(rows) else np.zeros(self.layout.size, np.int64)

    def items(self, horizon_ms: int | None) -> ItemWindow | None:
        """Counts of items, over mature panes only where a horizon is given; None where they are not
        counted, or no pane is mature."""
        if horizon_ms not in self._items:
            self._items[horizon_ms] = self._item_window(horizon_ms)
        return self._items[horizon_ms]

    def _item_window(self, horizon_ms: int | None) -> ItemWindow | None:
        if self._item_sums is None or self._ring is None:
            return None
        ring = self._item_sums.ring(self._ring.label)
        newest = self._newest(ring, horizon_ms)
        if ring is None or newest is None:
            return None
        what = "all" if horizon_ms is None else f"mature {horizon_ms}"
        return self._item_sums.window(ring, ring.oldest(self.now_ms), newest, what)

    @cached_property
    def all_items(self) -> ItemTable | None:
        """All items of the window."""
        items = self.items(None)
        return items.by(()).get(()) if items is not None else None

    def mature(self, horizon_ms: int) -> I64 | None:
        """Sums over mature panes only, flat; None where the window has none that holds
        anything."""
        if horizon_ms not in self._mature:
            self._mature[horizon_ms] = self._mature_sum(horizon_ms)
        return self._mature[horizon_ms]

    def _newest(self, ring: Ring | None, horizon_ms: int | None) -> int | None:
        """The newest pane of a ring that is mature (None: the newest of all); None where none
        is."""
        if ring is None:
            return None
        if horizon_ms is None:
            return self.now_ms // ring.pane_ms
        bound_ms = self.now_ms - horizon_ms - self.settings.time.max_lateness_ms
        newest = bound_ms // ring.pane_ms - 1
        return newest if newest >= ring.oldest(self.now_ms) else None

    def day_before(self, horizon_ms: int | None) -> I64 | None:
        """Sums of the same window a day before, flat, not to be written to; None where that is not
        kept."""
        newest = self._newest(self._ring, horizon_ms)
        return self.past.sums(self._oldest, newest) if self.past and newest is not None else None

    def _mature_sum(self, horizon_ms: int) -> I64 | None:
        newest = self._newest(self._ring, horizon_ms)
        if newest is None:
            return None
        sums = self._sum(newest, f"mature {horizon_ms}")
        return sums if sums.any() else None

    def rolled_up(self, rollup: tuple[str, ...]) -> Rolled:
        """The window by the dimensions of ``rollup``; all others are ``all``."""
        if rollup not in self._rolled_up:
            self._rolled_up[rollup] = Rolled(self, rollup)
        return self._rolled_up[rollup]


class Rolled:
    """A window under one rollup: dimensions outside it are ``all``. Is the metrics' ``Sums``."""

    def __init__(self, window: Window, rollup: tuple[str, ...]) -> None:
        self.window, self._found = window, dict[Read, Any]()
        names = window.settings.dimension_names
        self._rollup = tuple(name for name in names if name in rollup)
        numbering = window.numbering
        numbers = numbering.numbers_of(self._rollup)
        self._kind = numbering.place_of(self._rollup)
        sums = numbering.rows.matrix(window.sums, numbers, self._kind)
        is_covered = "diversity" in window.settings.families
        users = (window.longest if is_covered else window).users[USERS]
        is_shown = sums.any(axis=1) | (users[numbers] != 0)
        self._numbers = numbers[is_shown]
        self.segments = [numbering.segments[number] for number in self._numbers.tolist()]
        self._items: dict[int | None, dict[Segment, ItemTable]]
        self._items = {None: self._items_by_segment(None)}
        known = set(self.segments)
        more = [segment for segment in self._items[None] if segment not in known]
        self.segments += more
        self._without = len(more)
        """Segments at the end that have items only, of the longest window."""
        self._rows = {segment: row for row, segment in enumerate(self.segments)}
        self._matrix = self._with_rest(sums[is_shown])
        self._columns = numbering.rows.columns[self._kind]
        self._mature: dict[int, I64 | None] = {}
        self._past: dict[int | None, I64 | None] = {}

    def find(self, read: Read) -> Any:
        """What a metric reads; once."""
        if read not in self._found:
            self._found[read] = read.of(self)
        return self._found[read]

    def since_ms(self, variant: Variant) -> int:
        """Since when a window has to begin in which all of a variant is counted; 0: always."""
        if self.window.since.is_always:
            return 0
        own_ms = self.window.since.of_rollup(self._rollup)
        return max([own_ms, *map(self._since_ms, variant.parts(self.layout))])

    def _since_ms(self, part: Part) -> int:
        window = self.window
        match part:
            case Users(is_of_longest=True):
                longer, rollup = window.longest, self._rollup
            case AllItems():
                longer, rollup = window.longest_of_items, ()
            case _:
                return window.since.of(part, window.catalogue, self._rollup)
        since = longer.since
        since_ms = max(since.of_rollup(rollup), since.of(part, window.catalogue, rollup))
        return since_ms and since_ms + window.start_ms - longer.start_ms

    def is_whole(self, since_ms: int) -> bool:
        """Whether what is counted since then is counted over the whole window."""
        return not since_ms or since_ms <= self.window.start_ms

    def _with_rest(self, matrix: I64) -> I64:
        """Rows of sums, and those of segments without any."""
        rest = np.zeros((self._without, matrix.shape[1]), np.int64)
        return np.concatenate([matrix, rest]) if self._without else matrix

    @property
    def settings(self) -> Settings:
        return self.window.settings

    @property
    def layout(self) -> Layout:
        return self.window.layout

    @property
    def user_sample_ratio(self) -> float:
        return self.window.user_sample_ratio

    def _pick(self, matrix: I64, name: str, within: slice = slice(None)) -> I64:
        """Some integers of a statistic. KeyError where the rollup does not keep them."""
        columns = self._columns[self.layout.span(name)][within]
        if (columns < 0).any():
            raise KeyError(f"sums by {self._rollup} have not all of {name!r}")
        picked = matrix[..., columns]
        return picked[..., 0] if self.window.layout.width[name] == 1 else picked

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        """Some integers of a statistic; None where no pane is mature."""
        matrix = self._matrix if horizon_ms is None else self._mature_matrix(horizon_ms)
        return None if matrix is None else self._pick(matrix, name, within)

    def overall(self, name: str) -> I64:
        """The statistic over all segments, whatever the rollup."""
        picked = self.window.overall[self.layout.span(name)]
        return picked[0] if self.window.layout.width[name] == 1 else picked

    def users(self, stat: int) -> I64:
        """A sum over users by segment, scaled to all users; 0 where it has none."""
        sums = self.window.users[stat, self._numbers]
        return np.concatenate([sums, np.zeros(self._without, np.int64)])

    def users_of_longest(self, stat: int) -> I64:
        """A sum over users of the longest window, of the same segments."""
        longest = self.window.longest.rolled_up(self._rollup)
        sums = dict(zip(longest.segments, longest.users(stat).tolist(), strict=True))
        return np.array([sums.get(segment, 0) for segment in self.segments], np.int64)

    @property
    def rows(self) -> Sequence[Segment]:
        """The segments."""
        return self.segments

    @property
    def is_total(self) -> bool:
        """Whether the one segment is that of everything."""
        return not self._rollup

    @property
    def all_items(self) -> ItemTable | None:
        """All items of the longest window; None where they are not counted."""
        return self.window.longest_of_items.all_items

    def items(self, places: Sequence[int], horizon_ms: int | None) -> dict[int, ItemTable]:
        """Row → the items of its segment; nothing where items are not counted by these dimensions,
        or no pane is mature."""
        if horizon_ms not in self._items:
            self._items[horizon_ms] = self._items_by_segment(horizon_ms)
        found = self._items[horizon_ms]
        return {self._rows[s]: table for s, table in found.items() if s in self._rows}

    def _items_by_segment(self, horizon_ms: int | None) -> dict[Segment, ItemTable]:
        is_counted = self.settings.has_items(self._rollup)
        items = self.window.items(horizon_ms) if is_counted else None
        if items is None:
            return {}
        found = {}
        for values, table in items.by(self._rollup).items():
            of = dict(zip(self._rollup, values, strict=True))
            found[tuple(of.get(name, ALL) for name in self.settings.dimension_names)] = table
        return found

    def _mature_matrix(self, horizon_ms: int) -> I64 | None:
        if horizon_ms not in self._mature:
            flat = self.window.mature(horizon_ms)
            self._mature[horizon_ms] = None if flat is None else self._rows_of(flat)
        return self._mature[horizon_ms]

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        """The statistic in the same window a day before; None where that is not kept."""
        if horizon_ms not in self._past:
            flat = self.window.day_before(horizon_ms)
            self._past[horizon_ms] = None if flat is None else self._rows_of(flat)
        past = self._past[horizon_ms]
        return None if past is None else self._pick(past, name, within)

    def _rows_of(self, flat: I64) -> I64:
        """Of other panes, by the segments that are shown."""
        rows = self.window.numbering.rows
        return self._with_rest(rows.matrix(flat, self._numbers, self._kind))

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        found = {}
        names = () if self._rollup else self.settings.dimension_names
        for place, dimension in enumerate(names):
            alone, read = self.window.rolled_up((dimension,)), Statistic(name, horizon_ms)
            sums = alone.find(read)
            if sums is not None and alone.is_whole(alone.since_ms(Variant({}, (read,)))):
                found[dimension] = sums[[s[place] not in (OTHER, UNKNOWN) for s in alone.segments]]
        return found
