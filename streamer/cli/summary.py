"""The readable end of a replay: what was read, all of the file, and windows that are named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from streamer.cli.read_table import print_read
from streamer.cli.terminal import WARNING, Grid, TextColumn, console_of, name_column, say
from streamer.encoding.segments import ALL
from streamer.formatting import counted
from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Readout
from streamer.query.series_estimate import BESIDES
from streamer.query.what_was_read import WhatWasRead
from streamer.settings.file_window import FILE, widest
from streamer.settings.model import Settings, WindowSettings

_MAX_ROWS = 20
"""Segments shown, those with the most impressions."""
_COLUMNS = (
    ("impressions", "window_impressions", "{:,}"),
    ("clicks", "window_clicks", "{:,}"),
    ("CTR", "ctr_ratio", "{:.3%}"),
    ("conversions", "window_conversions", "{:,}"),
    ("CVR", "cvr_ratio", "{:.2%}"),
    ("value\nper click", "conversion_value_per_click", "{:,.2f}"),
    ("mean\ndwell", "dwell_mean_seconds", "{:.1f} s"),
    ("users", "window_users", "{:,}"),
    ("user hit\nratio", "user_hit_ratio", "{:.2%}"),
)
"""Heading, metric, and how its value is written."""
_MANY_OTHERS = 0.1
"""Share of impressions with values that are not kept, from which on it is said."""
Labels = frozenset[tuple[str, str]]


def summarise(settings: Settings, result: Readout, read: WhatWasRead) -> None:
    """Print tables to stdout."""
    console = console_of()
    values = {
        (r.name.removeprefix(PREFIX), frozenset(r.labels.items())): r.value for r in result.readings
    }
    if not result.stream_ms:
        say(console, "Nothing was counted.")
        print_read(console, settings, read)
        return
    moment = datetime.fromtimestamp(result.stream_ms / 1000, UTC).isoformat(" ", "milliseconds")
    say(console, f"Stream time {moment.replace('+00:00', ' UTC')}")
    print_read(console, settings, read)
    for window in _tables(settings):
        _window(window, values, settings, _title(window, result)).print(console)
    for line in _others(widest(settings), values, settings):
        say(console, line, style=WARNING)
    say(console, "--prom or --json print all series; `streamer metrics` explains them.")


def _others(
    window: str, values: dict[tuple[str, Labels], int | float], settings: Settings
) -> Iterator[str]:
    """Which dimensions have many impressions with values that are not kept, and what to do."""
    whole = {**dict.fromkeys(settings.dimension_names, ALL), "window": window}
    total = values.get(("window_impressions", frozenset(whole.items())), 0)
    for dimension in settings.dimensions:
        labels = frozenset({**whole, dimension.name: BESIDES[0]}.items())
        others = values.get(("window_impressions", labels), 0)
        if others >= _MANY_OTHERS * total > 0:
            kept = counted(dimension.max_values, "value")
            besides = " beside those in the settings" if dimension.values else ""
            yield (
                f"{others / total:.0%} of the impressions have {dimension.name}=other: only {kept} "
                f"of {dimension.name} are kept{besides}. Raise max_values, or name the values that "
                "matter."
            )


def _tables(settings: Settings) -> list[str]:
    """All of the file, and of windows that are named the longest and the shortest."""
    lengths = settings.windows.named_ms
    named = sorted(lengths, key=lambda label: -lengths[label])
    first = widest(settings)
    is_named = first != FILE or tuple(lengths) != WindowSettings().lengths
    return list(dict.fromkeys((first, *((named[0], named[-1]) if is_named else ()))))


def _title(window: str, result: Readout) -> str:
    start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in result.spans[window])
    what = "All of the file" if window == FILE else f"The last {window}"
    return f"{what}, {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"


def _window(
    window: str, values: dict[tuple[str, Labels], int | float], settings: Settings, title: str
) -> Grid:
    names = [name_column(dimension) for dimension in settings.dimension_names]
    headings = [TextColumn(heading) for heading, _, _ in _COLUMNS]
    table = Grid(*names, *headings, title=title)
    shown = [
        (value, labels)
        for (name, labels), value in values.items()
        if name == "window_impressions" and ("window", window) in labels
    ]
    shown.sort(key=lambda row: (-row[0], sorted(row[1])))
    for _, labels in shown[:_MAX_ROWS]:
        segment = dict(labels)
        cells = [segment[dimension] for dimension in settings.dimension_names]
        for _, metric, form in _COLUMNS:
            value = values.get((metric, labels))
            cells.append("" if value is None else form.format(value))
        table.add(*cells)
    if len(shown) > _MAX_ROWS:
        table.caption = counted(len(shown) - _MAX_ROWS, "more segment")
    return table
