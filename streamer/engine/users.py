"""Users: what people saw and did, kept so that means over people can be read for any window.

Events raise the last times of their (user, item, segment); now and then ``file`` computes what the
users that changed contribute now and contributed when they were last filed, and adds the
difference. Feedback that may still move to another segment is kept apart until it is settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamer.batch import I64, U64, Bools
from streamer.engine.cells import Ring
from streamer.engine.facts import CONVERSION, FeedbackFacts, ShownFacts
from streamer.engine.groups import Groups
from streamer.engine.index import in_sample, mix
from streamer.engine.segments import Segments
from streamer.engine.user_items import Touched, UserItems, joined, time_name
from streamer.engine.user_sums import (
    EMPTY,
    Frame,
    Sums,
    Tally,
    added,
    chunks,
    contribute,
    first_key,
    users_stats,
)

_ABSORB_ROWS = 200_000
_COMPACT_ROWS = 1 << 18
_FLAG_BITS = 20
_FLAG_MASK = np.uint64((1 << _FLAG_BITS) - 1)


class Users:
    """The users of one partition. ``kinds``: the kinds of feedback, the conversions' last."""

    def __init__(
        self,
        rings: Sequence[Ring],
        unit_ms: int,
        rollups: Sequence[Sequence[int]],
        kinds: int,
        conversion: int | None,
        limit: int,
        segments: Segments,
        is_on: bool = True,
    ) -> None:
        self.is_on = is_on
        self.rings, self.unit_ms, self.limit = rings, unit_ms, limit
        self.kinds, self.conversion, self.segments = kinds, conversion, segments
        self.items = UserItems(1 + kinds)
        self.groups = Groups(rollups)
        self.sums: list[Sums] = [EMPTY for _ in rings]
        self.sample_bits = 0
        """Users whose hash begins with so many zeros are kept: all at 0."""
        self.filed_ms = 0
        """Stream time at which the sums were last up to date."""
        self.must_file = False
        """Whether the sums are not those of the rows, which has to be made good at once."""
        self.is_stale = False
        """Whether all is to be filed anew."""
        self._touches: list[tuple[U64, U64, I64, I64, I64]] = []
        self._waiting = 0
        self._restless = np.zeros(1 << _FLAG_BITS, np.bool_)
        self._is_restless = False
        self._unsettled = self._none()
        self._changed: set[int] = set()
        self._moved: list[tuple[U64, I64]] = []
        self._compact_at = min(_COMPACT_ROWS, limit)

    @property
    def nbytes(self) -> int:
        sums = sum(key.nbytes + value.nbytes for key, value in self.sums)
        return self.items.nbytes + sums + sum(c.nbytes for t in self._touches for c in t)

    @property
    def is_unfiled(self) -> bool:
        """Whether something changed that the sums do not show yet."""
        return self.is_stale or self._is_restless or self._waiting > 0 or self.items.has_noted

    # Taking in -----------------------------------------------------------------------------------

    def show(self, fact: ShownFacts) -> None:
        """Take in impressions."""
        self._put(fact.user, fact.item, fact.segment, fact.event_ms, np.zeros_like(fact.segment))

    def settle(self, fact: FeedbackFacts) -> None:
        """Take in feedback that will not move any more."""
        column = self._column(fact)
        known = column > 0
        fact = fact.where(known)
        self._put(fact.user, fact.item, fact.segment, fact.event_ms, column[known])

    def move(self, fact: FeedbackFacts) -> None:
        """Feedback is new or has moved: its users are filed anew."""
        if self.is_on:
            self._restless[fact.user & _FLAG_MASK] = True
            self._is_restless = True

    def _column(self, fact: FeedbackFacts) -> I64:
        """The time column of each feedback; 0: of a kind that does not count."""
        conversion = -1 if self.conversion is None else self.conversion
        return 1 + np.where(fact.kind == CONVERSION, conversion, fact.kind)

    def _put(self, user: U64, item: U64, segment: I64, event_ms: I64, column: I64) -> None:
        if len(user) and self.is_on:
            self._touches.append((user, item, segment, event_ms // self.unit_ms, column))
            self._waiting += len(user)

    def absorb(self, stream_ms: int, is_due: bool = True) -> None:
        """Bring what was taken in into the table (if it is much, or ``is_due``)."""
        if not self._waiting or not (is_due or self._waiting >= _ABSORB_ROWS):
            return
        touches, self._touches, self._waiting = self._touches, [], 0
        self.filed_ms = self.filed_ms or stream_ms
        user, item, segment, unit, column = map(np.concatenate, zip(*touches, strict=True))
        self._touch(stream_ms, user, mix(user, item), segment, unit, column)

    def _touch(
        self, stream_ms: int, user: U64, pair: U64, segment: I64, unit: I64, column: I64
    ) -> None:
        oldest = self._rebase(stream_ms)
        wanted = (unit >= oldest) & self._in_sample(user)
        if not wanted.all():
            user, pair, segment = user[wanted], pair[wanted], segment[wanted]
            unit, column = unit[wanted], column[wanted]
        self.items.touch(user, pair, segment, column, unit)

    def _rebase(self, stream_ms: int) -> int:
        """Make room for times up to now; returns the first unit that counts."""
        oldest = self.oldest_unit(stream_ms)
        shift = self.items.rebase(oldest)
        if shift:
            for time in self._unsettled.times:
                time[:] = np.maximum(time - shift, 0)
        return oldest

    def _in_sample(self, user: U64) -> Bools:
        return in_sample(user, self.sample_bits)

    def oldest_unit(self, stream_ms: int) -> int:
        """The first unit that any window still covers."""
        return max(0, min(r.oldest(stream_ms) * (r.pane_ms // self.unit_ms) for r in self.rings))

    # Filing --------------------------------------------------------------------------------------

    def file(self, stream_ms: int, unsettled: FeedbackFacts) -> None:
        """Bring the sums up to date. ``unsettled``: feedback that the windows count and that may
        still move."""
        self.filed_ms = stream_ms
        if not self.is_unfiled:
            return
        self.absorb(stream_ms)
        self.shrink(stream_ms)
        loose = self._loose(stream_ms, unsettled)
        if self.is_stale:
            self._file_all(stream_ms, loose)
        else:
            self._file_changed(stream_ms, loose)
        self._unsettled = loose

    def _file_all(self, stream_ms: int, loose: Touched) -> None:
        self.items.take_noted()
        self.sums, self.groups = [EMPTY for _ in self.rings], Groups(self.groups.rollups)
        self._changed.update(range(len(self.rings)))
        self._add(joined([self.items.touched(slice(None)), loose]), stream_ms, 1)
        self._restless[:] = False
        self.is_stale = self.must_file = self._is_restless = False

    def _file_changed(self, stream_ms: int, loose: Touched) -> None:
        noted, times = self.items.take_noted()
        if not len(noted) and not self._is_restless:
            return
        flags, user = self._restless, self.items.rows["user"]
        flags[user[noted] & _FLAG_MASK] = True
        row = np.flatnonzero(flags[user & _FLAG_MASK])
        if 2 * len(row) > len(user):
            self._file_all(stream_ms, loose)  # is less to do than before and now of most of them
            return
        now = self.items.touched(row)
        before = replace(now, times=[time.copy() for time in now.times])
        at = np.searchsorted(row, noted)
        for column, old in zip(before.times, times, strict=True):
            column[at] = old
        for rows, apart, sign in ((before, self._unsettled, -1), (now, loose, 1)):
            mine = apart.where(flags[apart.user & _FLAG_MASK])
            self._add(joined([rows, mine]), stream_ms, sign)
        flags[:] = False
        self._is_restless = False

    def _none(self) -> Touched:
        none = np.zeros(0, np.int64)
        keys = none.astype(np.uint64)
        return Touched(keys, keys, none, [none] * (1 + self.kinds))

    def _loose(self, stream_ms: int, fact: FeedbackFacts) -> Touched:
        """Unsettled feedback as rows with one time each."""
        oldest, column = self._rebase(stream_ms), self._column(fact)
        unit = fact.event_ms // self.unit_ms
        known = (column > 0) & self._in_sample(fact.user) & (unit >= oldest)
        fact, column, unit = fact.where(known), column[known], unit[known] - self.items.base
        times: list[Any] = [np.where(column == i, unit, 0) for i in range(1 + self.kinds)]
        return Touched(fact.user, mix(fact.user, fact.item), fact.segment, times)

    def _add(self, rows: Touched, stream_ms: int, sign: int) -> None:
        """Add what the users of these rows contribute; forget the panes that are too old."""
        groups = self.groups.of(self.segments)
        tallies = [
            Tally(
                Frame(ring.pane_ms // self.unit_ms, self.items.base, ring.oldest(stream_ms)),
                *(len(self.groups.tuples), users_stats(self.kinds), sign),
            )
            for ring in self.rings
        ]
        for chunk in chunks(rows):
            contribute(chunk, groups, tallies)
        for i, tally in enumerate(tallies):
            change = tally.sums()
            if len(change[0]):
                key, value = self.sums[i]
                held = key >= first_key(tally.frame.oldest)
                self.sums[i] = added([(key[held], value[held]), change])
                self._changed.add(i)

    def shrink(self, stream_ms: int) -> bool:
        """Forget rows that no window covers; beyond the bound keep half of the users. Returns
        whether users were left out: all is to be filed anew then, at once."""
        if len(self.items) <= self._compact_at:
            return False
        held = self.items.latest_unit() >= self.oldest_unit(stream_ms)
        if np.count_nonzero(held) < 0.75 * len(held) or len(held) > self.limit:
            self.items.keep(held)
        while len(self.items) > self.limit:
            self.sample_bits += 1
            self.items.keep(self._in_sample(self.items.rows["user"]))
            self.is_stale = self.must_file = True
        self._compact_at = min(2 * len(self.items) + _COMPACT_ROWS, self.limit)
        return self.must_file

    def fold(self) -> None:
        """Segments were folded together: all is to be filed anew, as they stand now."""
        self.is_stale = True

    # Stored form ---------------------------------------------------------------------------------

    def seal(self, stream_ms: int) -> None:
        """Take in what waits; changes from now on belong to another epoch."""
        self.absorb(stream_ms)
        self.items.seal()

    def take_changed(self) -> set[int]:
        """The rings whose sums changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def settle_load(self) -> None:
        """All is loaded. Rows of segments that were folded together meanwhile became one, which no
        blob holds: they are written anew."""
        for pair, segment in self._moved:
            self.items.renew_pairs(pair, segment)
        self._moved = []

    def load(self, columns: Mapping[str, Any], stream_ms: int) -> None:
        """Take over stored rows. The sums are computed from them when they are filed first."""
        for column in range(1 + self.kinds):
            unit = columns[time_name(column)]
            at = np.flatnonzero(unit)
            user, pair, segment = (columns[n][at] for n in ("user", "pair", "segment"))
            which = np.full(len(at), column)
            segment = segment.astype(np.int64)
            self._touch(stream_ms, user, pair, segment, unit[at] - 1, which)
            moved = columns["is_moved"][at]
            self._moved.append((pair[moved], segment[moved]))
        self.items.seal()
        self.is_stale = self.must_file = True
