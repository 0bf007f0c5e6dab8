"""Segments of which nothing comes any more."""

from __future__ import annotations

from streamer.query.readings import Reading, ReadingSet
from streamer.query.silence import silences
from streamer.settings.load import parse

SETTINGS = parse({"windows": {"lengths": ["5m", "1h", "24h", "7d"]}})


def readout(**counts: dict[str, tuple[int, int]]) -> ReadingSet:
    """surface → window → (impressions, clicks)."""
    found = []
    for surface, windows in counts.items():
        for window, pair in windows.items():
            labels = {"variant": "all", "surface": surface}
            form = "streamer_{}_total"
            if window != "total":
                labels["window"], form = window, "streamer_window_{}"
            for name, value in zip(("impressions", "clicks"), pair, strict=True):
                found.append(Reading(form.format(name), "gauge", "", labels, float(value)))
    return ReadingSet.of(1, found)


WELL = {"5m": (0, 0), "1h": (50, 5), "24h": (1000, 100), "7d": (7000, 700)}


def test_a_surface_without_clicks_is_named_with_the_longest_time() -> None:
    women = WELL | {"1h": (50, 0), "24h": (1000, 0)}
    found = silences(SETTINGS, readout(all=WELL, women=women, men=WELL))
    assert found == [("clicks", "surface", "women", "24h", 100)]


def test_without_impressions_clicks_are_not_named() -> None:
    gone = WELL | {"1h": (0, 0), "24h": (0, 0)}
    found = silences(SETTINGS, readout(all=WELL, women=gone))
    assert found == [("impressions", "surface", "women", "24h", 1000)]


def test_where_all_is_silent_nothing_else_is_named() -> None:
    gone = WELL | {"1h": (0, 0), "7d": (70_000, 7000)}
    found = silences(SETTINGS, readout(all=gone, women=gone))
    assert found == [("impressions", "", "", "1h", 416)]


def test_few_events_and_short_windows_are_no_silence() -> None:
    quiet = WELL | {"1h": (0, 0)}
    assert silences(SETTINGS, readout(all=quiet)) == []  # a quiet hour
    rare = {"5m": (0, 0), "1h": (2, 0), "24h": (50, 0), "7d": (350, 69)}
    assert silences(SETTINGS, readout(all=WELL, rare=rare, other=rare | {"7d": (350, 700)})) == []


def test_clicks_that_are_missing_longer_than_any_window_are_named() -> None:
    """The usual is what was clicked since the start: a surface that nobody ever clicked is none."""
    lost = WELL | {"1h": (50, 0), "24h": (1000, 0), "7d": (7000, 0), "total": (90_000, 8000)}
    found = silences(SETTINGS, readout(all=WELL, women=lost))
    assert found == [("clicks", "surface", "women", "7d", 622)]
    never = lost | {"total": (90_000, 9)}
    assert silences(SETTINGS, readout(all=WELL, women=never)) == []
