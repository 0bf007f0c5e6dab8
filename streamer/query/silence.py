"""Segments of which nothing comes any more: they had events in the longest window, enough of them
to expect some in a shorter one, and that has none; or none of their impressions in the longest one
was clicked, though of those since the start enough were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import ReadingSet
from streamer.settings.durations import DAY_MS
from streamer.settings.labels import OTHER, UNKNOWN
from streamer.settings.model import Settings

LEAST_EXPECTED = 10
"""Events that the longest window lets one expect in a shorter one; with so many, none at all is no
chance."""
LEAST_EXPECTED_BY_HOUR = 100
"""The same in less than a day, for nights are quiet; of less than an hour nothing is said."""
_LEAST_MS = 3_600_000
_COUNTED = {"window_impressions": "impressions", "window_clicks": "clicks"}
_SINCE_START = "since the start"
"""In the place of a window."""
_TOTALS = {"impressions_total": "window_impressions", "clicks_total": "window_clicks"}
_Counts = Mapping[str, Mapping[str, float]]
"""Window → name of the series → events."""


class Silence(NamedTuple):
    """No events of a kind in a ``window``. ``dimension`` and ``value``: of what, empty of
    everything together; ``usual``: how many the longest window lets one expect."""

    what: str
    dimension: str
    value: str
    window: str
    usual: int

    @property
    def text(self) -> str:
        """
        >>> Silence("clicks", "surface", "women", "24h", 12).text
        'No clicks of surface women for at least 24h, in which about 12 are usual'
        """
        of = f" of {self.dimension} {self.value}" if self.dimension else ""
        return (
            f"No {self.what}{of} for at least {self.window}, in which about {self.usual:,} are "
            "usual"
        )


def silences(settings: Settings, result: ReadingSet) -> list[Silence]:
    """Of everything together, or else of values of single dimensions; clicks only where there are
    impressions."""
    lengths = settings.windows.lengths_ms
    windows = {label: lengths[label] for label in settings.windows.by_length}
    segments = _segments(settings, result)
    whole = list(_silent("", "", segments.get(("", ""), {}), windows))
    if whole:
        return whole
    return [
        found
        for (dimension, value), counts in segments.items()
        if value not in (OTHER, UNKNOWN)
        for found in _silent(dimension, value, counts, windows)
    ]


def _segments(
    settings: Settings, result: ReadingSet
) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    """(dimension, value) → what was counted of it."""
    names, found = settings.dimension_names, dict[tuple[str, str], dict[str, dict[str, float]]]()
    for block in result.blocks:
        name = block.name.removeprefix(PREFIX)
        name = _TOTALS.get(name, name)
        if name not in _COUNTED:
            continue
        for at in block.present:  # no readings are made: there may be a million
            labels = block.labels[at]
            own = [(n, labels[n]) for n in names if labels.get(n, ALL) != ALL]
            if len(own) <= 1:
                key = own[0] if own else ("", "")
                window = labels.get("window", _SINCE_START)
                found.setdefault(key, {}).setdefault(window, {})[name] = block.values[at]
    return found


def _silent(
    dimension: str, value: str, counts: _Counts, windows: Mapping[str, int]
) -> Iterator[Silence]:
    """The longest window without impressions, else that without clicks."""
    longest = list(windows)[-1]
    for name, what in _COUNTED.items():
        every = counts.get(longest, {}).get(name, 0)
        for window in reversed(list(windows)):
            usual = int(every * windows[window] / windows[longest])
            if window == longest:
                usual = _clicks_to_expect(counts, window) if what == "clicks" else 0
            is_day = windows[window] >= DAY_MS
            least = LEAST_EXPECTED if is_day else LEAST_EXPECTED_BY_HOUR
            is_known = windows[window] >= _LEAST_MS and usual >= least
            if is_known and not counts.get(window, {}).get(name, 0):
                yield Silence(what, dimension, value, window, usual)
                return


def _clicks_to_expect(counts: _Counts, window: str) -> int:
    """Of the impressions of a window, at the share that was clicked since the start."""
    shown, clicked = (counts.get(_SINCE_START, {}).get(name, 0) for name in _COUNTED)
    return int(counts.get(window, {}).get("window_impressions", 0) * clicked / max(1, shown))
