"""The readable end of a replay: what was counted, and the longest and the shortest window."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Readout
from streamer.settings.labels import ALL
from streamer.settings.model import Settings

_MAX_ROWS = 20
"""Segments shown, those with the most impressions."""
_WIDTH = 120
"""Characters of a line, where stdout is no terminal."""
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

_COUNTS = ("events", "accepted", "duplicates", "late", "ignored")
"""What becomes of records, besides those that are rejected."""
Labels = frozenset[tuple[str, str]]


def summarise(settings: Settings, result: Readout) -> None:
    """Print tables to stdout."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    values = {
        (r.name.removeprefix(PREFIX), frozenset(r.labels.items())): r.value for r in result.readings
    }
    if not result.stream_ms:
        console.print("Nothing was counted.")
        console.print(_records(values, settings))
        return
    moment = datetime.fromtimestamp(result.stream_ms / 1000, UTC).isoformat(" ", "milliseconds")
    console.print(f"Stream time {moment.replace('+00:00', ' UTC')}")
    console.print(_records(values, settings))
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


def _records(values: dict[tuple[str, Labels], int | float], settings: Settings) -> Table:
    table = Table(title="Records", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("topic", *_COUNTS, "rejected"):
        table.add_column(heading, justify="left" if heading == "topic" else "right")
    for log in settings.logs:
        topic = ("topic", log)
        counts = [values.get((f"{name}_total", frozenset([topic])), 0) for name in _COUNTS]
        reasons = {
            dict(labels)["reason"]: value
            for (name, labels), value in values.items()
            if name == "rejected_total" and topic in labels
        }
        rejected = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items())) or "0"
        table.add_row(log, *(f"{n:,}" for n in counts), rejected)
    return table


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
