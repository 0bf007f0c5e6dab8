"""Sources that give their lines only once: pipes, iterators, streams of batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from streamer.settings import limits
from streamer.sources.lines import STDIN


class LineSource(Protocol):
    """What is read as a file is: lists of lines."""

    path: str

    @property
    def is_live(self) -> bool:
        """Whether its lines are written while it is read."""

    def __iter__(self) -> Iterator[list[bytes]]:
        """Lists of lines, in their order."""


def is_read_once(source: object) -> bool:
    """Whether a path, a table or an iterable gives its events only once."""
    if isinstance(source, PeekedLines):
        return True
    if isinstance(source, str | Path):
        return str(source) == STDIN or not Path(source).is_file()
    return isinstance(source, Iterator)


class PeekedLines:
    """A source whose first lines are looked at before it is read. ``first``: these lines, at most
    ``limits.DISCOVERED_RECORDS`` and half of ``limits.DISCOVERED_BYTES``, up to whole lists, and
    those that were held besides."""

    total_bytes: int | None = None
    read_bytes = 0

    def __init__(self, source: LineSource) -> None:
        self.path, self.is_live = source.path, source.is_live
        self._rest, self._lists = iter(source), list[list[bytes]]()
        self._lines = self._bytes = 0
        self.hold(limits.DISCOVERED_BYTES // 2, limits.DISCOVERED_RECORDS)

    def hold(self, most_bytes: int, most_lines: int | None = None) -> bool:
        """Look at more lines, up to so many bytes; whether these are all."""
        while self._bytes < most_bytes and (most_lines is None or self._lines < most_lines):
            lines = next(self._rest, None)
            if lines is None:
                return True
            self._lists.append(lines)
            self._lines += len(lines)
            self._bytes += sum(map(len, lines))
        return False

    @property
    def first(self) -> list[bytes]:
        """The first lines, as long as reading has not begun."""
        return [line for lines in self._lists for line in lines]

    def __iter__(self) -> Iterator[list[bytes]]:
        while self._lists:
            yield self._lists.pop(0)
        yield from self._rest
