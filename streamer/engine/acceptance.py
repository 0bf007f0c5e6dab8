"""One topic-partition's log: its arrival clock, the rules of acceptance, and its counters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamer import limits
from streamer.batch import I64, U64, Batch, Bools
from streamer.config import Settings
from streamer.engine.index import KeyIndex
from streamer.engine.table import Table

NEVER = -(2**62)
"""The arrival clock of a topic that has no records."""


def is_first(keys: U64, arrival_ms: I64, known_ms: I64, horizon_ms: int) -> Bools:
    """Which rows are the first of their key, in log order.

    ``known_ms`` is the arrival of the first one known before (NEVER: none). A row within the
    horizon of its first is a copy; one beyond it is a new first. Copies do not prolong it.
    """
    first = arrival_ms - known_ms > horizon_ms
    ranked = np.sort(keys)
    if not (ranked[1:] == ranked[:-1]).any():
        return first
    order = np.argsort(keys, kind="stable")
    group = np.concatenate(([0], np.cumsum(ranked[1:] != ranked[:-1])))
    arrival, reference = arrival_ms[order], known_ms[order].copy()
    todo = np.arange(len(keys))
    chosen = np.zeros(len(keys), np.bool_)
    while len(todo):
        todo = todo[arrival[todo] - reference[todo] > horizon_ms]
        if not len(todo):
            break
        heads = todo[np.concatenate(([True], group[todo[1:]] != group[todo[:-1]]))]
        chosen[heads] = True
        latest = np.full(int(group[-1]) + 1, NEVER, np.int64)
        latest[group[heads]] = arrival[heads]
        todo = np.setdiff1d(todo, heads, assume_unique=True)
        reference[todo] = np.maximum(reference[todo], latest[group[todo]])
    result = np.empty(len(keys), np.bool_)
    result[order] = chosen
    return result


class SeenIds:
    """Event ids accepted within the horizon, with the arrival of the first."""

    def __init__(self, horizon_ms: int, limit: int) -> None:
        self.horizon_ms, self.limit = horizon_ms, limit
        self.log = Table(key=np.uint64, arrival_ms=np.int64)
        self.dropped = 0
        self.evicted_early = 0
        self._index = KeyIndex()
        self._base = 0

    @property
    def nbytes(self) -> int:
        return self.log.nbytes + self._index.nbytes

    def admit(self, keys: U64, arrival_ms: I64) -> Bools:
        """Which rows are no copies; those are remembered."""
        slots, _ = self._index.slots(keys)
        before = self._index.rows_at(slots)
        rows = before.astype(np.int64) - self._base
        held = rows >= 0
        known = np.full(len(keys), NEVER, np.int64)
        if held.any():
            known[held] = self.log["arrival_ms"][rows[held]]
        numbers = np.arange(len(keys))
        self._index.set_rows(slots, numbers)
        if (self._index.rows_at(slots) == numbers).all():  # no key stands twice
            first = arrival_ms - known > self.horizon_ms
        else:
            first = is_first(keys, arrival_ms, known, self.horizon_ms)
        self._index.set_rows(slots, before)
        self._append(keys[first], arrival_ms[first], slots[first])
        return first

    def _append(self, keys: U64, arrival_ms: I64, slots: I64) -> None:
        start = self.log.append({"key": keys, "arrival_ms": arrival_ms}, len(keys))
        at = np.arange(start, start + len(keys)) + self._base
        self._index.set_rows(slots, at)

    def load(self, keys: U64, arrival_ms: I64) -> None:
        if len(keys):
            self._append(keys, arrival_ms, self._index.slots(keys)[0])

    def expire(self, arrival_ms: int) -> None:
        """Forget ids whose copies would be new firsts, and the oldest beyond the bound."""
        arrivals = self.log["arrival_ms"]
        gone = int(np.searchsorted(arrivals, arrival_ms - self.horizon_ms, "left"))
        early = max(0, len(arrivals) - gone - self.limit)
        self.evicted_early += early
        gone += early
        if gone:
            self.log.drop_front(gone)
            self._base += gone
            self.dropped += gone
        if self._index.used > 2 * len(self.log) + 8192 or self._base > 1 << 30:
            self._base = 0
            self._index.rebuild(self.log["key"], np.arange(len(self.log)))


@dataclass
class TopicLog:
    """Where one topic of a partition stands."""

    kind: str
    settings: Settings
    first_offset: int = 0
    """Where reading began."""
    next_offset: int = 0
    arrival_ms: int = NEVER
    accepted: int = 0
    duplicates: int = 0
    late: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    borrowed_ms: int = NEVER
    lost: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """The last ranges of lost offsets, first and last."""
    restarts: int = 0
    ids: SeenIds = field(init=False)

    def __post_init__(self) -> None:
        time = self.settings.time
        self.ids = SeenIds(time.dedup_horizon_ms, self.settings.limits.event_ids)

    def lose(self, first: int, last: int) -> None:
        """Declare records lost that left the log before they were read; go on after them."""
        self.lost += last - first + 1
        self.gaps = [*self.gaps, (first, last)][-limits.MAX_GAPS :]
        self.next_offset = last + 1

    def restart(self, offset: int) -> None:
        """Go on at an earlier offset of a log that is not the one that was read."""
        self.restarts += 1
        self.next_offset = offset

    @property
    def events(self) -> int:
        return self.accepted + self.duplicates + self.late + sum(self.rejected.values())

    @property
    def clock_ms(self) -> int:
        """The join clock: arrival, or what an idle topic borrows from its siblings."""
        return max(self.arrival_ms, self.borrowed_ms)

    def accept(self, batch: Batch) -> Verdict:
        """Judge the events of a batch and move the clock."""
        arrivals = np.maximum.accumulate(np.maximum(batch.record_ms, self.arrival_ms))
        self.arrival_ms = int(arrivals[-1])
        self.next_offset = int(batch.offset[-1]) + 1
        arrival_ms = arrivals[batch.row]
        time = self.settings.time
        lag_ms = arrival_ms - batch.event_ms
        future = lag_ms < -time.max_skew_ms
        late = lag_ms > time.max_lateness_ms
        accepted = ~(future | late)
        with_id = np.flatnonzero(accepted & (batch.event_id != 0))
        if len(with_id):
            first = self.ids.admit(batch.event_id[with_id], arrival_ms[with_id])
            copies = with_id[~first]
            accepted[copies] = False
            self.duplicates += len(copies)
        self.ids.expire(self.arrival_ms)
        self.accepted += int(np.count_nonzero(accepted))
        self.late += int(np.count_nonzero(late))
        dead = list(zip(batch.offset[batch.reject_row].tolist(), batch.reject_reason, strict=True))
        dead += [(o, "future") for o in batch.offset[batch.row[future]].tolist()]
        for _, reason in dead:
            self.rejected[reason] = self.rejected.get(reason, 0) + 1
        dead += [(o, "late") for o in batch.offset[batch.row[late]].tolist()]
        below = int(np.count_nonzero(arrivals < self.borrowed_ms))
        return Verdict(accepted, arrival_ms, dead, below)


@dataclass
class Verdict:
    """What became of a batch: a mask over its events, their arrivals, and what is dead-lettered.

    ``below_borrowed`` counts records that appeared below a clock which the topic had borrowed.
    """

    accepted: Bools
    arrival_ms: I64
    dead: list[tuple[int, str]]
    below_borrowed: int
