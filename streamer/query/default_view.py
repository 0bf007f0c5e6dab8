"""What a page opens on: the window and the split in which what fires is seen, else a day."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamer.encoding.segments import ALL
from streamer.query.firing import FiringAlert
from streamer.settings.durations import DAY_MS
from streamer.settings.file_window import FILE
from streamer.settings.model import Settings


class DefaultView(Struct, frozen=True):
    """A window, and dimensions to split by; none: whichever comes first."""

    window: str
    split: Sequence[str] = ()


def default_view(settings: Settings, firing: Sequence[FiringAlert]) -> DefaultView:
    """All of a file; else the shortest window that holds that of the first alert which fires; else
    the longest one up to a day."""
    lengths = settings.windows.lengths_ms
    named = settings.windows.by_length
    wanted_ms, split = DAY_MS, list[str]()
    if firing:
        alert = next(each for each in settings.alerts if each.name == firing[0].alert)
        wanted_ms = alert.window_ms
        split = [name for name, value in firing[0].segment.items() if value != ALL]
    longer = [label for label in named if lengths[label] >= wanted_ms]
    shorter = [label for label in named if lengths[label] <= wanted_ms]
    window = longer[0] if firing and longer else [*named[:1], *shorter][-1]
    return DefaultView(FILE if FILE in lengths else window, split)
