"""Lines of a source in the order of event times: a table has none of its own, and files are often
grouped by user, so that clicks behind all impressions would be late."""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import BinaryIO

import numpy as np

from streamer._core import LineStamper
from streamer.sources.read_once import LineSource

_ROWS = 1000
_HELD_BYTES = 1 << 28
"""Lines that are sorted in memory; of more, runs are written to disk and merged."""
_Timed = tuple[int, bytes]


class SortedLines:
    """A source as a log in the order of event times. A line without a time keeps its place behind
    the line before. ``is_split``: records hold events of several times, each of which becomes a
    line."""

    total_bytes: int | None = None
    read_bytes = 0
    is_live = False
    """Its lines were there before it is read."""

    def __init__(
        self,
        source: LineSource,
        stamper_of: Callable[[], LineStamper],
        is_split: bool = False,
        held_bytes: int = _HELD_BYTES,
    ) -> None:
        """``stamper_of``: what reads the times of a line."""
        self.path = source.path
        self._source, self._stamper_of, self._is_split = source, stamper_of, is_split
        self._held_bytes = held_bytes

    def __iter__(self) -> Iterator[list[bytes]]:
        with ExitStack() as files:
            runs = list(self._runs(files))
            merged = (line for _, line in heapq.merge(*runs, key=lambda timed: timed[0]))
            while lines := list(islice(merged, _ROWS)):
                yield lines

    def _runs(self, files: ExitStack) -> Iterator[Iterator[_Timed] | list[_Timed]]:
        """Sorted runs of lines with their times: the last in memory, those before on disk."""
        held, size = list[_Timed](), 0
        for at_ms, line in self._timed():
            held.append((at_ms, line))
            size += len(line)
            if size > self._held_bytes:
                held.sort(key=lambda timed: timed[0])
                yield _read(_written(held, files))
                held, size = [], 0
        held.sort(key=lambda timed: timed[0])
        yield held

    def _timed(self) -> Iterator[_Timed]:
        stamper, now_ms, last_ms = self._stamper_of(), time.time_ns() // 1_000_000, 0
        for some in self._source:
            lines = stamper.split(some) if self._is_split else some
            at_ms = stamper.stamp(lines, now_ms)[2]
            known = np.maximum.accumulate(np.where(at_ms >= 0, np.arange(len(at_ms)) + 1, 0))
            for at, line in zip(
                np.concatenate([[last_ms], at_ms])[known].tolist(), lines, strict=True
            ):
                last_ms = at
                yield at, line


def _written(held: Sequence[_Timed], files: ExitStack) -> BinaryIO:
    file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
    for at_ms, line in held:
        file.write(b"%d\t%b\n" % (at_ms, line.replace(b"\n", b" ")))
    file.seek(0)
    return file


def _read(file: BinaryIO) -> Iterator[_Timed]:
    for row in file:
        at_ms, _, line = row.rstrip(b"\n").partition(b"\t")
        yield int(at_ms), line
