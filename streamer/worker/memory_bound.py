"""The bound of memory of a whole worker: beyond it nothing is fetched, so that nothing kills it.

What it holds stays exact, and its partitions can move to other workers.

The most memory that the rows of a partition take: by their bounds, at the bytes of a row.

Panes come on top: they take what is counted in them, not what is open.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.worker_report import SUPERVISED

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
    measures = catalogue.experiment_measures
    if measures.counted:
        sums = SUM_BYTES * len(measures.sums)
        rows = 2 * (row["user_days"] + sums) + row["exposures"]
        found["user_days"] = bounds.user_days * rows
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


class MemoryBound:
    """Whether this process takes more than it may."""

    def __init__(self, settings: Settings, text: ReadText = _text) -> None:
        self._text = text
        there = memory_bytes(text)
        workers = int(os.environ.get(SUPERVISED, "1"))
        share = None if there is None else int(there * limits.WORKER_MEMORY_SHARE / workers)
        own = settings.limits.worker_memory_mb
        self.most = share if own is None else own << 20
        """Bytes; None where nobody says."""
        self.is_full = False

    def look(self) -> None:
        """Bring ``is_full`` up to date. It ends somewhat below the bound."""
        if self.most is None or not (pages := self._text(_STATM).split()[1:2]):
            return
        taken = int(pages[0]) * os.sysconf("SC_PAGE_SIZE")
        low = int(self.most * limits.WORKER_MEMORY_LOW)
        self.is_full = taken > (low if self.is_full else self.most)
        if self.is_full:
            _give_back()

    @property
    def problem(self) -> str | None:
        """What is wrong, with what to do; None where nothing is."""
        if not self.is_full or self.most is None:
            return None
        return (
            f"it uses more than its {self.most >> 20} MB of memory (limits.worker_memory_mb), so "
            "it fetches nothing; start more workers, give it more memory, or lower [limits]"
        )


def _give_back() -> None:
    """Let the allocator give back what is free: of partitions that have moved away."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
