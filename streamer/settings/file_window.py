"""The window that is all of a file, beside those of the settings."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from math import gcd

from msgspec.structs import replace

from streamer.settings import limits
from streamer.settings.durations import DAY_MS, HOUR_MS, duration_ms, pane_length_ms
from streamer.settings.model import Settings, WindowSettings

FILE = "file"
"""Its label; no length is written so."""
_MINUTE_MS = 60_000
_PANES_MS = (
    *(1000 * n for n in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * n for n in (1, 2, 3, 4, 6, 8, 12)),
)
"""Lengths of its panes below a day, of which longer windows have whole numbers."""
_COVERED = limits.PANES_PER_WINDOW - limits.PANES_PER_WINDOW // limits.ITEM_PANES_PER_WINDOW
"""Panes that events may span at most: those of items are as long as several."""


class FileWindows(WindowSettings, frozen=True, kw_only=True):
    """[windows], and before them one of so many milliseconds that is all of a file."""

    file_ms: int

    @cached_property
    def lengths_ms(self) -> dict[str, int]:
        """Label → milliseconds."""
        return {FILE: self.file_ms, **self.named_ms}

    @property
    def named_ms(self) -> dict[str, int]:
        named = (label for label in self.lengths if label != FILE)
        return {label: duration_ms(label, "windows.lengths") for label in named}


class RetainedWindows(WindowSettings, frozen=True, kw_only=True):
    """[windows] in panes that begin and end where a window does at some step; they are kept for so
    long after it."""

    step_ms: int
    kept_ms: int

    def panes_of(self, label: str) -> tuple[int, int]:
        own_ms = pane_length_ms(self.lengths_ms[label])
        length_ms = self.lengths_ms[label] // own_ms * own_ms
        pane_ms = gcd(self.step_ms, own_ms if self.step_ms % own_ms else length_ms)
        return pane_ms, -(-(length_ms + self.kept_ms) // pane_ms)


def with_retained_windows(settings: Settings, step_ms: int, kept_ms: int) -> Settings:
    """Settings whose windows can be read at each step of the past, and that watch nothing."""
    settings = with_windows(settings, settings.windows.lengths)
    lengths, items = settings.windows.lengths, replace(settings.items, windows=())
    windows = RetainedWindows(lengths=lengths, step_ms=step_ms, kept_ms=kept_ms)
    return replace(settings, windows=windows, items=items, alerts=())


def with_file_window(settings: Settings, first_ms: int, last_ms: int) -> Settings:
    """Settings with a window over all events between two times: its panes cover them wherever panes
    begin, also five of them together, which items are counted by. The same settings where they have
    as many windows as there can be."""
    of = without_file_window(settings).windows
    if len(of.lengths) >= limits.MAX_WINDOWS:
        return settings
    least_ms = (last_ms - first_ms) // _COVERED + 1
    days_ms = -(-least_ms // DAY_MS) * DAY_MS
    pane_ms = next((each for each in _PANES_MS if each >= least_ms), days_ms)
    labels, file_ms = (FILE, *of.lengths), pane_ms * limits.PANES_PER_WINDOW
    windows = FileWindows(lengths=labels, day_before=of.day_before, file_ms=file_ms)
    return replace(settings, windows=windows)


def without_file_window(settings: Settings) -> Settings:
    """The settings as they are written."""
    of = settings.windows
    if not isinstance(of, FileWindows):
        return settings
    return replace(
        settings, windows=WindowSettings(lengths=of.lengths[1:], day_before=of.day_before)
    )


def with_windows(settings: Settings, labels: Collection[str]) -> Settings:
    """Settings that count in these windows alone."""

    def those(windows: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(label for label in windows if label in labels)

    of, items = settings.windows, settings.items
    windows = replace(of, lengths=those(of.lengths), day_before=those(of.day_before))
    if items.windows is not None:
        items = replace(items, windows=those(items.windows))
    return replace(settings, windows=windows, items=items)


def widest(settings: Settings) -> str:
    """The window of a file, else the longest one."""
    lengths = settings.windows.lengths_ms
    return FILE if FILE in lengths else max(lengths, key=lambda label: lengths[label])
