"""How each table of a partition is stored: which rows, and when a blob of them may leave.

Rows have serial numbers that only grow, so that "since the last commit" is a range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamer.batch import I64
from streamer.engine import clicked, feedback
from streamer.engine.experiments import Experiments
from streamer.engine.intervals import IntervalTable
from streamer.engine.noted import NotedRows
from streamer.engine.partition import Partition
from streamer.engine.shown import Shown
from streamer.engine.user_items import UserItems, time_name
from streamer.events import KINDS
from streamer.experiment_settings import DAY_MS
from streamer.store.manifest import BlobRef

Columns = dict[str, np.ndarray[Any, Any]]


class StoredTable(Protocol):
    """One table, as the journal sees it."""

    def first_serial(self, partition: Partition) -> int:
        """A serial from which on rows may be in memory."""
        ...

    def next_serial(self, partition: Partition) -> int: ...

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        """What is stored of the rows [first, end) that are still in memory."""
        ...

    def latest(self, columns: Columns) -> tuple[int, int]:
        """Latest event time and arrival in the rows, milliseconds (0: does not matter)."""
        ...

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        """Whether nothing in a blob can matter any more."""
        ...

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        """Append stored rows; ``moves``: stored → present segment numbers."""
        ...

    def live(self, partition: Partition, firsts: list[int]) -> list[int] | None:
        """How many rows of each blob (they begin at these serials) no later one holds, too; None
        for tables whose rows do not change for long."""
        ...


class _Kept:
    """Rows that a later blob hardly ever holds again."""

    def live(self, partition: Partition, firsts: list[int]) -> list[int] | None:
        return None


class _EventIds(_Kept):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def first_serial(self, partition: Partition) -> int:
        return partition.logs[self.kind].ids.dropped

    def next_serial(self, partition: Partition) -> int:
        ids = partition.logs[self.kind].ids
        return ids.dropped + len(ids.log)

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        ids = partition.logs[self.kind].ids
        return ids.log.take(max(first - ids.dropped, 0), max(end - ids.dropped, 0))

    def latest(self, columns: Columns) -> tuple[int, int]:
        return 0, int(columns["arrival_ms"].max())

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        return end <= partition.logs[self.kind].ids.dropped

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        partition.logs[self.kind].ids.load(columns["key"], columns["arrival_ms"])


class _Impressions(_Kept):
    names = (
        *("item", "event_ms", "arrival_ms", "offset", "index", "position", "segment"),
        *("score", "probe"),
    )

    def first_serial(self, partition: Partition) -> int:
        return partition.impressions.dropped_rows

    def next_serial(self, partition: Partition) -> int:
        return partition.impressions.next_row

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        table = partition.impressions
        start = max(first - table.dropped_rows, 0)
        stop = max(end - table.dropped_rows, start)
        columns = {name: table.rows[name][start:stop].copy() for name in self.names}
        group = table.group_of(np.arange(start, stop))
        return columns | {
            n: table.groups[n][group] for n in ("user", "slate", "opened_ms", "before")
        }

    def latest(self, columns: Columns) -> tuple[int, int]:
        return int(columns["event_ms"].max()), int(columns["arrival_ms"].max())

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        return end <= partition.impressions.dropped_rows

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        columns["segment"] = moves[columns["segment"]]
        partition.impressions.load(Shown(**columns))


class _Joined(_Kept):
    """Tables whose rows carry their serial numbers, because rows leave from the middle."""

    def __init__(self, attribute: str, names: tuple[str, ...], segment: str) -> None:
        self.attribute, self.names, self.segment = attribute, names, segment

    def _table(self, partition: Partition) -> Any:
        return getattr(partition, self.attribute)

    def first_serial(self, partition: Partition) -> int:
        return 0

    def next_serial(self, partition: Partition) -> int:
        return int(self._table(partition).serial)

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        rows = self._table(partition).rows
        start, stop = np.searchsorted(rows["serial"], [first, end])
        return {name: rows[name][start:stop].copy() for name in self.names}

    def latest(self, columns: Columns) -> tuple[int, int]:
        return int(columns["event_ms"].max()), 0

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        return ref.latest_event_ms + partition.clicked.reach_ms < partition.join_clock_ms()

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        columns[self.segment] = moves[columns[self.segment]]
        n = len(columns[self.segment])
        if self.attribute == "clicked":
            partition.clicked.add(columns, n)
        else:
            partition.feedback.add(columns, n, partition.segments)


class _Intervals(_Kept):
    """Tables whose rows change: stored in versions, of which the newest counts."""

    def __init__(self, attribute: str, segments: tuple[str, ...]) -> None:
        self.attribute, self.segments = attribute, segments

    def _table(self, partition: Partition) -> IntervalTable:
        table: IntervalTable = getattr(partition, self.attribute)
        return table

    def first_serial(self, partition: Partition) -> int:
        return 0

    def next_serial(self, partition: Partition) -> int:
        return self._table(partition).epoch

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        return self._table(partition).versions(first, end)

    def latest(self, columns: Columns) -> tuple[int, int]:
        return int(columns["high_ms"].max()), 0

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        clock_ms = {
            "sessions": partition.logs["sessions"].arrival_ms,
            "viewings": partition.viewing_clock_ms(),
        }
        reach_ms = self._table(partition).reach_ms
        return ref.latest_event_ms + reach_ms < clock_ms[self.attribute]

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        for name in self.segments:
            columns[name] = moves[columns[name]]
        self._table(partition).load(columns)


class _Versions:
    """Rows that change: of each the versions since the blob before. Subclasses say whose."""

    def _rows(self, partition: Partition) -> NotedRows:
        raise NotImplementedError

    def live(self, partition: Partition, firsts: list[int]) -> list[int] | None:
        live: list[int] = self._rows(partition).live(np.array(firsts)).tolist()
        return live

    def first_serial(self, partition: Partition) -> int:
        return 0

    def next_serial(self, partition: Partition) -> int:
        return self._rows(partition).epoch

    def rows(self, partition: Partition, first: int, end: int) -> Columns:
        return self._rows(partition).versions(first, end)


class _UserItems(_Versions):
    """Last times: versions of a row merge by the largest. ``latest`` counts in their units."""

    def _rows(self, partition: Partition) -> UserItems:
        return partition.users.items

    def latest(self, columns: Columns) -> tuple[int, int]:
        units = max(int(c.max()) for n, c in columns.items() if n.startswith(time_name("")))
        return units - 1, 0

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        return ref.latest_event_ms < partition.users.oldest_unit(partition.stream_ms)

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        moved = moves[columns["segment"]]
        is_moved = moved != columns["segment"]
        partition.users.load(
            {**columns, "segment": moved, "is_moved": is_moved}, partition.stream_ms
        )


@dataclass(frozen=True)
class ExperimentTable(_Versions):
    """What experiments keep of users, as their ``attribute``: the newest version of a row counts.
    ``unit_ms``: milliseconds of one unit of the column ``time``."""

    attribute: str
    time: str
    unit_ms: int
    take: Callable[[Experiments, Columns], None]

    def _rows(self, partition: Partition) -> NotedRows:
        rows: NotedRows = getattr(partition.experiments, self.attribute)
        return rows

    def latest(self, columns: Columns) -> tuple[int, int]:
        return int(columns[self.time].max()) * self.unit_ms, 0

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        experiments = partition.experiments
        oldest_ms = experiments.oldest_day * DAY_MS
        if self.attribute == "pending":
            oldest_ms = max(oldest_ms, experiments.final_ms)
        return ref.latest_event_ms < oldest_ms

    def load(self, partition: Partition, columns: Columns, moves: I64) -> None:
        self.take(partition.experiments, columns)


EXPERIMENT_TABLES = {
    f"user_{table.attribute}": table
    for table in (
        ExperimentTable("exposures", "first_ms", 1, Experiments.load_exposures),
        ExperimentTable("days", "at", DAY_MS, Experiments.load_days),
        ExperimentTable("pending", "at", 1, Experiments.load_pending),
    )
}
"""Stored name → what readers look into, too: for ranges of days."""
TABLES: Mapping[str, StoredTable] = {
    **{f"ids_{kind}": _EventIds(kind) for kind in KINDS},
    "impressions": _Impressions(),
    "clicked": _Joined("clicked", (*clicked.EVIDENCE, "segment"), "segment"),
    "feedback": _Joined("feedback", feedback.EVIDENCE, "own_segment"),
    "sessions": _Intervals("sessions", ("segment",)),
    "viewings": _Intervals("viewings", ("click_segment", "session_segment")),
    "user_items": _UserItems(),
    **EXPERIMENT_TABLES,
}
