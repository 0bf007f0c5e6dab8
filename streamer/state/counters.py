"""Counters that the core declares: what is said of each, and how partitions add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streamer._core import COUNTERS, LOG_COUNTERS

Counts = Mapping[str, int]
"""Those of a partition or of a log, by name."""


class CounterRow(NamedTuple):
    """A row of ``core/src/partition/counters.rs``. ``kind``: counter, gauge or, where no series
    shows it, hidden; ``over``: how partitions add up, sum or max."""

    name: str
    unit: str
    about: str
    kind: str
    formula: str
    over: str

    @property
    def series(self) -> str:
        """The name of its series, without prefix."""
        return self.name.partition(".")[0] + "_total" * (self.kind == "counter")

    @property
    def label(self) -> str:
        """Which of those of its series it is; "": the only one."""
        return self.name.partition(".")[2]


OF_PARTITION = [CounterRow(*row) for row in COUNTERS]
OF_LOG = [CounterRow(*row) for row in LOG_COUNTERS]
_LARGEST = {row.name for row in (*OF_LOG, *OF_PARTITION) if row.over == "max"}


def added(name: str, counts: Iterable[Counts]) -> int:
    """A counter over several partitions; where it was not stored it is 0.

    >>> added("accepted", [{"accepted": 2}, {"accepted": 3}, {}])
    5
    >>> added("sample_bits", [{"sample_bits": 2}, {"sample_bits": 3}])
    3
    """
    found = [each.get(name, 0) for each in counts]
    return max(found, default=0) if name in _LARGEST else sum(found)
