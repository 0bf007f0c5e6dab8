"""The bound of memory of a whole worker: beyond it nothing is fetched, so that nothing kills it.

What it holds stays exact, and its partitions can move to other workers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.worker_report import SUPERVISED

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
            f"it takes more than the {self.most >> 20} MB of memory that it may "
            "(limits.worker_memory_mb): nothing is fetched; start more workers, give it more "
            "memory, or lower [limits]"
        )


def _give_back() -> None:
    """Let the allocator give back what is free: of partitions that have moved away."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
