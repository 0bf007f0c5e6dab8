"""The tables of a partition as they are stored: which rows, and when a blob of them may leave.

Rows of logs have numbers, others the epoch in which they last changed, so that "since the last
commit" is a range. The core holds the rows; here stands only what blobs of them mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.settings.event_fields import KINDS
from streamer.settings.experiments import DAY_MS
from streamer.state.manifest import BlobRef
from streamer.state.partition import Partition

Columns = dict[str, np.ndarray[Any, Any]]


def _most(name: str, unit_ms: int = 1) -> Callable[[Columns], int]:
    return lambda columns: int(columns[name].max()) * unit_ms


def _last_unit(columns: Columns) -> int:
    """The last time of users, in units of the finest pane."""
    return max(int(c.max()) for name, c in columns.items() if name.startswith("time_")) - 1


@dataclass(frozen=True)
class Table:
    """``latest``: the latest time of columns, by which a blob of them leaves; None: by number."""

    name: str
    latest: Callable[[Columns], int] | None

    def latest_ms(self, columns: Columns) -> int:
        """The latest time in columns, in epoch milliseconds; 0 for tables by number."""
        return self.latest(columns) if self.latest is not None else 0

    def is_gone(self, partition: Partition, ref: BlobRef, end: int) -> bool:
        """Whether nothing in a blob can matter any more; ``end``: the number after its last."""
        horizon_ms = partition.core.horizon_ms(self.name)
        if horizon_ms is None:
            return end <= partition.core.serials(self.name)[0]
        return ref.latest_event_ms < horizon_ms


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        *(Table(f"ids_{kind}", None) for kind in KINDS),
        Table("impressions", None),
        Table("retained", _most("event_ms")),
        Table("feedback", _most("event_ms")),
        Table("sessions", _most("high_ms")),
        Table("viewings", _most("high_ms")),
        Table("user_items", _last_unit),
        Table("user_exposures", _most("first_ms")),
        Table("user_days", _most("at", DAY_MS)),
        Table("user_pending", _most("at")),
    )
}
"""In the order in which they are loaded: feedback after the impressions that it joins."""
EXPERIMENT_TABLES = ("user_exposures", "user_days", "user_pending")
"""What readers look into, too: for ranges of days."""
