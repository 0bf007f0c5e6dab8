"""Sums over users by their definition: every user, every group and every first pane by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from streamer.metrics.rings import Ring
from streamer.metrics.users import (
    HITS,
    RATE_UNIT,
    USERS,
    positive_users,
    rate_squares,
    rate_sum,
)

Given = tuple[int, int, int, int, int]
"""User, item, segment, event_ms, column: 0 shown, 1 + kind of feedback."""
Key = tuple[int, int, tuple[int, ...], int]
"""Ring, pane, value codes of a group (-1: outside the rollup), statistic."""


@dataclass
class SlowUsers:
    """What users did; ``codes``: value codes of each segment."""

    rings: Sequence[Ring]
    rollups: Sequence[Sequence[int]]
    kinds: int
    codes: list[tuple[int, ...]]
    touched: list[Given] = field(default_factory=list)

    def sums(self, more: Iterable[Given], stream_ms: int, sample_bits: int) -> dict[Key, int]:
        """The sums with feedback that may still move, over a sample of the users."""
        found: dict[Key, int] = defaultdict(int)
        owned: dict[tuple[int, tuple[int, ...]], list[Given]] = defaultdict(list)
        for row in (*self.touched, *more):
            if row[0] >> (64 - sample_bits) == 0:
                for rollup in self.rollups:
                    codes = enumerate(self.codes[row[2]])
                    group = tuple(code if at in rollup else -1 for at, code in codes)
                    owned[row[0], group].append(row)
        for number, ring in enumerate(self.rings):
            oldest = ring.oldest(stream_ms)
            for (_, group), rows in owned.items():
                panes = sorted({row[3] // ring.pane_ms for row in rows})
                values = {pane: self.value(rows, pane * ring.pane_ms) for pane in panes}
                later: dict[int, int] = {}
                for pane in panes[::-1]:
                    if pane >= oldest:
                        for stat in values[pane]:
                            change = values[pane][stat] - later.get(stat, 0)
                            found[number, pane, group, stat] += change
                    later = values[pane]
        return {key: value for key, value in found.items() if value}

    def value(self, rows: list[Given], since_ms: int) -> dict[int, int]:
        """What a user adds to a group in a window that begins then."""
        items: dict[int, set[int]] = defaultdict(set)
        for _, item, _, event_ms, column in rows:
            if event_ms >= since_ms:
                items[column].add(item)
        seen = items[0]
        value = {USERS: int(bool(seen)), HITS: int(bool(seen and items[1]))}
        for kind in range(self.kinds):
            n, both = len(seen), len(seen & items[1 + kind])
            value[positive_users(kind)] = int(bool(both))
            rate = (2 * RATE_UNIT * both + n) // (2 * n) if n else 0
            value[rate_sum(kind)] = rate
            value[rate_squares(kind)] = (2 * rate * rate + RATE_UNIT) // (2 * RATE_UNIT)
        return value

    def rows(self, unit_ms: int) -> list[tuple[int, int, list[int]]]:
        """User, segment and last times (in units, from 1; 0: never) of each item."""
        last: dict[tuple[int, int, int], list[int]] = {}
        for user, item, segment, event_ms, column in self.touched:
            times = last.setdefault((user, item, segment), [0] * (1 + self.kinds))
            times[column] = max(times[column], event_ms // unit_ms + 1)
        return sorted((user, segment, times) for (user, _, segment), times in last.items())
