"""From when to when the events of files are: all of a file is a window of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from streamer.ingest.record import line_stamper
from streamer.settings.durations import DAY_MS
from streamer.settings.file_window import with_file_window
from streamer.settings.model import Settings
from streamer.sources.files import Readable, opened, topic_of
from streamer.sources.read_once import PeekedLines, is_read_once

_HELD_BYTES = 1 << 26
"""Lines of a source that is read once, such as a pipe, which are held until their times are known;
of more the window is as long as any log."""
_ANY_LOG_MS = 100 * 365 * DAY_MS


def spanned(sources: Sequence[Readable], settings: Settings) -> tuple[list[Readable], Settings]:
    """The sources, and settings with a window that is all of them: the times of all lines are read
    first. SourceError where one cannot be read."""
    held, ends = with_times(sources, settings)
    return held, with_file_window(settings, *ends)


def with_times(
    sources: Sequence[Readable], settings: Settings
) -> tuple[list[Readable], tuple[int, int]]:
    """The sources, and the first and the last time of their events (ms). SourceError where one
    cannot be read."""
    held: list[Readable] = []
    for source in sources:
        is_open = isinstance(source, PeekedLines) or not is_read_once(source)
        held.append(source if is_open else PeekedLines(opened(source, settings)))
    now_ms = time.time_ns() // 1_000_000
    peeked = [source for source in held if isinstance(source, PeekedLines)]
    if not all(source.hold(_HELD_BYTES) for source in peeked):
        return held, (now_ms - _ANY_LOG_MS, now_ms)
    ends = [end for source in held for end in _ends_of(source, settings, now_ms)]
    return held, (min(ends, default=0), max(ends, default=0))


def _ends_of(source: Readable, settings: Settings, now_ms: int) -> Iterable[int]:
    """The first and the last time of events that may count, of some lines after the others."""
    is_log = isinstance(source, str | PeekedLines) or hasattr(source, "__fspath__")
    lists: Iterable[list[bytes]]
    if isinstance(source, PeekedLines):
        path, lists = source.path, [source.first]
    else:
        file = opened(source, settings)
        path, lists = file.path, file
    stamper = line_stamper(settings, topic_of(path))
    latest_ms = now_ms + settings.time.max_skew_ms
    lateness_ms = settings.time.max_lateness_ms
    holds_several = any(each.each for each in settings.sources)
    for lines in lists:
        _, clock_ms, times = stamper.stamp(lines, now_ms)
        counts = (times >= 0) & (times <= latest_ms)
        if is_log:  # rows of tables are sorted where they are in no order
            counts &= times >= clock_ms - lateness_ms
        if counts.any():
            found = times[counts]
            # Of several events in a line the latest one's time is known.
            yield int(found.min()) - lateness_ms * holds_several
            yield int(found.max())
