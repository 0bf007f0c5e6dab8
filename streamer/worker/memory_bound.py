"""The bound of memory of a worker, shared out to the tables of its partitions by the bytes of their
rows. Beyond it the largest tables let their oldest rows leave early; of users a sample stays. Panes
are not bounded so: they take what is counted in them, not what is open.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from streamer._core import Core
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.worker_report import SUPERVISED, WorkerReport

ROW_BYTES = {
    "event_ids": 30,
    "impressions": 85,
    "slates": 140,
    "retained": 175,
    "feedback": 410,
    "sessions": 175,
    "viewings": 285,
    "users": 120,
    "user_days": 140,
    "exposures": 200,
    "items": 190,
}
"""Most bytes of a row, tables that grow by doubling included: ``python -m benchmarks.rows``."""
SUM_BYTES = 8
"""Of each sum in a row of a user's day."""
BOUNDS = {
    "event_ids": "event_ids",
    "impressions": "open_impressions",
    "feedback": "open_feedback",
    "sessions": "open_sessions",
    "viewings": "open_sessions",
    "users": "user_items",
    "user_days": "user_days",
}
"""Table → the setting that bounds its rows; impressions with feedback have none of their own."""
_BESIDE = ("panes", "items", "units", "combinations", "weights", "own")
"""What takes memory beside those tables."""
_NO_BOUND = 1 << 62


def _user_day_bytes(catalogue: Catalogue) -> int:
    """Most bytes for each row of users' days that the bound allows."""
    sums = SUM_BYTES * len(catalogue.experiment_measures.sums)
    return 2 * (ROW_BYTES["user_days"] + sums) + ROW_BYTES["exposures"]


def partition_bytes(settings: Settings) -> dict[str, int]:
    """Bound of ``[limits]`` → bytes of the rows of one partition when it is reached."""
    bounds, catalogue = settings.limits, Catalogue(settings)
    row = ROW_BYTES
    found = {
        "event_ids": bounds.event_ids
        * row["event_ids"]
        * sum(1 + ("conversions" in log.kinds) for log in settings.logs.values()),
        "open_impressions": bounds.open_impressions
        * (row["impressions"] + row["slates"] + row["retained"]),
        "open_feedback": bounds.open_feedback * row["feedback"],
        "open_sessions": bounds.open_sessions * (row["sessions"] + row["viewings"]),
    }
    if catalogue.has_users and "engagement" in settings.metrics.families:
        found["user_items"] = bounds.user_items * row["users"]
    if catalogue.experiment_measures.counted:
        found["user_days"] = bounds.user_days * _user_day_bytes(catalogue)
    if catalogue.item_counts is not None:
        found["items"] = bounds.items * row["items"] * len(settings.item_windows)
    return found


def in_gigabytes(size: int) -> str:
    """Bytes as people read them.

    >>> in_gigabytes(4_190_000_000)
    '4.2 GB'
    """
    return f"{size / 1e9:.1f} GB"


_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_MEMINFO, _STATM = "/proc/meminfo", "/proc/self/statm"
ReadText = Callable[[str], str]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""


def memory_bytes(text: ReadText = _text) -> int | None:
    """What this process may take: the limit of its container, or the machine's memory; None where
    neither is known. ``text``: path → what it holds."""
    found = [int(limit) for path in _CGROUPS if (limit := text(path).strip()).isdigit()]
    lines = [line.split() for line in text(_MEMINFO).splitlines()]
    found += [int(words[1]) * 1024 for words in lines if words[:1] == ["MemTotal:"]]
    return min(found, default=None)


def level_of(sizes: Iterable[float], most: float) -> float:
    """The size to which the largest have to shrink for all together to take so much.

    >>> level_of([10, 50, 90], 100), level_of([10, 50], 100)
    (45.0, inf)
    """
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        level = most / (len(ordered) - place)
        if size > level:
            return level
        most -= size
    return math.inf


class _Table(NamedTuple):
    name: str
    rows: int
    row_bytes: float


class MemoryBound:
    """What this process may take, and the bounds of rows that follow from it."""

    def __init__(self, settings: Settings, text: ReadText = _text) -> None:
        self._text, self._bounds = text, settings.limits
        there = memory_bytes(text)
        workers = int(os.environ.get(SUPERVISED, "1"))
        share = None if there is None else int(there * limits.WORKER_MEMORY_SHARE / workers)
        own = settings.limits.worker_memory_mb
        self.most = share if own is None else own << 20
        """Bytes; None where nobody says."""
        left = max(0, (self.most or 0) - self._taken())
        self.of_rows = None if self.most is None else int(left * limits.WORKER_ROWS_SHARE)
        """Bytes for the rows of all partitions, and for what they are counted in."""
        self.is_full = False
        """Whether the process takes more: then little waits at a time."""
        self._row_bytes = {**ROW_BYTES, "user_days": _user_day_bytes(Catalogue(settings))}
        self._kept: dict[int, tuple[list[_Table], int]] = {}
        self._used: dict[int, dict[str, float]] = {}

    def _taken(self) -> int:
        """Resident memory; 0 where nobody says."""
        pages = self._text(_STATM).split()[1:2]
        return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0

    def look(self, numbers: Collection[int]) -> None:
        """Bring ``is_full`` up to date, and forget partitions that are not among ``numbers``."""
        self._kept = {number: kept for number, kept in self._kept.items() if number in numbers}
        self._used = {number: used for number, used in self._used.items() if number in numbers}
        was_full, self.is_full = self.is_full, self._taken() > (self.most or math.inf)
        if self.is_full and not was_full:
            _give_back()

    def tell(self, report: WorkerReport) -> None:
        """Say in a worker's report what is taken, and how full tables are."""
        report.memory_bytes, report.memory_limit_bytes = self._taken(), self.most or 0
        report.tables_used = {}
        for used in self._used.values():
            for name, share in used.items():
                report.tables_used[name] = max(share, report.tables_used.get(name, 0.0))

    def bound(self, number: int, core: Core) -> bool:
        """Set the bounds of a partition's tables; returns whether rows have to leave for them."""
        if self.of_rows is None:
            return False
        bounded, sizes = core.bounded(), core.sizes()
        rows = dict(bounded)
        members = max(1, rows["impressions"] + rows["retained"])
        slate_bytes = self._row_bytes["slates"] * rows["slates"] / members
        kept = []
        for name, count in bounded:
            if name != "slates":
                beside = slate_bytes if name in ("impressions", "retained") else 0
                kept.append(_Table(name, count, self._row_bytes[name] + beside))
        self._kept[number] = kept, sum(sizes[name] for name in _BESIDE)
        all_kept = self._kept.values()
        taken = (table.rows * table.row_bytes for tables, _ in all_kept for table in tables)
        level = level_of(taken, max(0, self.of_rows - sum(beside for _, beside in all_kept)))
        most: dict[str, int] = {}
        used = self._used[number] = {}
        for table in kept:
            setting = BOUNDS.get(table.name)
            own = _NO_BOUND if setting is None else getattr(self._bounds, setting)
            most[table.name] = int(min(own, level / table.row_bytes))
            if own != _NO_BOUND:
                used[table.name] = round(table.rows / own, 4)
        core.set_bounds(most)
        return any(table.rows > most[table.name] for table in kept)


def _give_back() -> None:
    """Let the allocator give back what is free: of partitions that have moved away."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
