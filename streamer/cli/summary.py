"""The readable end of a replay: what was read, and the longest and the shortest window."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.table import Table

from streamer.cli.read_table import console_of, print_read
from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Readout
from streamer.query.what_was_read import WhatWasRead
from streamer.settings.model import Settings

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
Labels = frozenset[tuple[str, str]]


def summarise(settings: Settings, result: Readout, read: WhatWasRead) -> None:
    """Print tables to stdout."""
    console = console_of()
    values = {
        (r.name.removeprefix(PREFIX), frozenset(r.labels.items())): r.value for r in result.readings
    }
    if not result.stream_ms:
        console.print("Nothing was counted.")
        print_read(console, settings, read)
        return
    moment = datetime.fromtimestamp(result.stream_ms / 1000, UTC).isoformat(" ", "milliseconds")
    console.print(f"Stream time {moment.replace('+00:00', ' UTC')}")
    print_read(console, settings, read)
    by_length = sorted(settings.windows.lengths, key=lambda x: settings.windows.lengths_ms[x])
    for window in dict.fromkeys((by_length[-1], by_length[0])):
        console.print(_window(window, values, settings))
    older = _older(by_length[-1], values, settings)
    if older:
        console.print(
            f"{older:,} impressions are older than {by_length[-1]}, and in no table: "
            "longer windows.lengths show them."
        )
    console.print("All series: --prom or --json. What they mean: streamer metrics.")


def _older(
    window: str, values: dict[tuple[str, Labels], int | float], settings: Settings
) -> int | float:
    """Impressions that were counted before a window begins."""
    total = frozenset((name, ALL) for name in settings.dimension_names)
    counted = values.get(("impressions_total", total), 0)
    return counted - values.get(("window_impressions", total | {("window", window)}), 0)


def _window(
    window: str, values: dict[tuple[str, Labels], int | float], settings: Settings
) -> Table:
    table = Table(
        title=f"The last {window}", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for name in settings.dimension_names:
        table.add_column(name)
    for heading, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    shown = [
        (value, labels)
        for (name, labels), value in values.items()
        if name == "window_impressions" and ("window", window) in labels
    ]
    shown.sort(key=lambda row: (-row[0], sorted(row[1])))
    for _, labels in shown[:_MAX_ROWS]:
        segment = dict(labels)
        cells = [segment[name] for name in settings.dimension_names]
        for _, metric, form in _COLUMNS:
            value = values.get((metric, labels))
            cells.append("" if value is None else form.format(value))
        table.add_row(*cells)
    if len(shown) > _MAX_ROWS:
        table.caption = f"{len(shown) - _MAX_ROWS} more segments"
    return table
