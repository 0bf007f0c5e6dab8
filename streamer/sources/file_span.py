"""From when to when the events of files are: all of a file is a window of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from streamer.ingest.record import line_stamper
from streamer.settings.durations import DAY_MS
from streamer.settings.file_window import with_file_window
from streamer.settings.model import Settings
from streamer.sources.files import Readable, opened, source_of, topic_of
from streamer.sources.read_once import PeekedLines, is_read_once
from streamer.sources.sorted_lines import SortedLines

_HELD_BYTES = 1 << 26
"""Lines of a source that is read once, such as a pipe, which are held until their times are known;
of more the window is as long as any log."""
_ANY_LOG_MS = 100 * 365 * DAY_MS


def spanned(
    sources: Sequence[Readable], settings: Settings, *, as_is: bool = False
) -> tuple[list[Readable], Settings]:
    """The sources, and settings with a window that is all of them: the times of all lines are read
    first. Those that are not in order are sorted, unless they are to be read ``as_is``. SourceError
    where one cannot be read."""
    held, ends = with_times(sources, settings, as_is=as_is)
    return held, with_file_window(settings, *ends)


def with_times(
    sources: Sequence[Readable], settings: Settings, *, as_is: bool = False
) -> tuple[list[Readable], tuple[int, int]]:
    """The sources, in order unless ``as_is``, and the first and the last time of their events (ms).
    SourceError where one cannot be read."""
    held: list[Readable] = []
    for source in sources:
        is_open = isinstance(source, PeekedLines | SortedLines) or not is_read_once(source)
        held.append(source if is_open else PeekedLines(opened(source, settings)))
    now_ms = time.time_ns() // 1_000_000
    peeked = [source for source in held if isinstance(source, PeekedLines)]
    if not all(source.hold(_HELD_BYTES) for source in peeked):
        return held, (now_ms - _ANY_LOG_MS, now_ms)
    spans = [_Span(source, settings, now_ms, as_is=as_is) for source in held]
    ends = [end for span in spans for end in span.ends]
    return [span.in_order() for span in spans], (min(ends, default=0), max(ends, default=0))


def sorted_names(sources: Sequence[Readable]) -> list[str]:
    """The names of sources that are sorted."""
    return [source.path for source in sources if isinstance(source, SortedLines)]


class _Span:
    """The first and the last time of events that may count, of some lines after the others, and
    whether one of them would be late."""

    def __init__(self, source: Readable, settings: Settings, now_ms: int, *, as_is: bool) -> None:
        self._source, self._settings, self._as_is = source, settings, as_is
        self._is_late, self.ends = False, list[int]()
        of_file = next(iter(settings.sources), None)
        if isinstance(source, str | Path):
            of_file = source_of(source, settings)
        self._is_split = of_file is not None and of_file.each is not None
        lists: Iterable[list[bytes]]
        if isinstance(source, PeekedLines):
            self._path, lists = source.path, [source.first]
        else:
            file = opened(source, settings)
            self._path, lists = file.path, file
        stamper = line_stamper(settings, topic_of(self._path))
        latest_ms = now_ms + settings.time.max_skew_ms
        for some in lists:
            lines = stamper.split(some) if self._is_split else some
            _, clock_ms, times = stamper.stamp(lines, now_ms)
            counts = (times >= 0) & (times <= latest_ms)
            late = counts & (times < clock_ms - settings.time.max_lateness_ms)
            if late.any():
                self._is_late = True
            if as_is:
                counts &= ~late
            if counts.any():
                self.ends += [int(times[counts].min()), int(times[counts].max())]

    def in_order(self) -> Readable:
        """The source, sorted where one of its events would be late."""
        if not self._is_late or self._as_is or isinstance(self._source, SortedLines):
            return self._source
        file = opened(self._source, self._settings)
        stamper = partial(line_stamper, self._settings, topic_of(self._path))
        return SortedLines(file, stamper, self._is_split)
