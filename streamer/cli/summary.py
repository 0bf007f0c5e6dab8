"""The readable end of a replay: what was read, all of the file, and windows that are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest

from streamer.cli.read_table import print_read
from streamer.cli.terminal import WARNING, Grid, TextColumn, console_of, name_column, say
from streamer.encoding.segments import ALL
from streamer.formatting import counted, moment, span
from streamer.metrics.catalogue import PREFIX
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.alert_history import PastAlerts, PastFiring
from streamer.query.checks import CHECKS
from streamer.query.firing import Pipeline, firing_alerts
from streamer.query.readings import ReadingSet, SeriesBlock
from streamer.query.series_estimate import BESIDES
from streamer.query.silence import silences
from streamer.query.what_was_read import WhatWasRead
from streamer.settings.durations import DAY_MS, about
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
SUMMARISED = {"impressions_total", "clicks_total", *(metric for _, metric, _ in _COLUMNS)}
"""Metrics that a summary, and what it says of what was read, need."""
_MOST_FIRINGS = 10
"""Alerts of the past that are told."""
_MANY_OTHERS = 0.1
"""Share of impressions with values that are not kept, from which on it is said."""


def summarise(
    settings: Settings,
    windows: Sequence[str],
    result: ReadingSet,
    read: WhatWasRead,
    ratios: Mapping[str, ComparedRatio],
    past: PastAlerts,
) -> None:
    """Print tables to stdout, one for each of some windows, then what fell silent, and the alerts
    that would have fired, or fire at the end. ``ratios``: of the metrics that alerts watch."""
    console = console_of()
    if not result.stream_ms:
        say(console, "Nothing was counted.")
        print_read(console, settings, read)
        return
    say(console, f"Stream time {moment(result.stream_ms)}")
    print_read(console, settings, read)
    for window in windows:
        _window(window, result, settings).print(console)
    silent = silences(settings, result)
    firing = firing_alerts(result.watched, ratios, settings.dimension_names, Pipeline(), silent)
    for line in (
        *_others(widest(settings), result, settings),
        *(f"{each.text}." for each in silent),
        *_ended(past.ended()),
        *(
            f"At the end the alert {x.alert} fires: {x.headline}{f' ({x.size})' * bool(x.size)}."
            for x in firing
        ),
    ):
        say(console, line, style=WARNING)
    say(console, "--prom or --json print all series; `streamer metrics` explains them.")


def _ended(firings: Sequence[PastFiring]) -> Iterator[str]:
    """Alerts that would have fired and have ended, the longest ones."""
    for alert, segment, of, until_ms in firings[:_MOST_FIRINGS]:
        where = ", ".join(value for value in segment if value != ALL) or "all together"
        what = of.status if of.check == CHECKS[0].name else f"{of.check} {of.status}"
        begin_ms = of.from_ms + alert.for_ms
        times = f"{span(begin_ms, until_ms)} ({about(until_ms - begin_ms)})"
        yield f"The alert {alert.name} would have fired for {where}: {what}, {times}."
    if (more := len(firings) - _MOST_FIRINGS) > 0:
        yield f"Alerts would have fired {counted(more, 'more time')}, more briefly."


def _blocks(result: ReadingSet, name: str, window: str) -> Iterator[SeriesBlock]:
    """The series of a metric in a window, a block for each rollup: no reading is made of them, as
    there may be a million."""
    for block in result.blocks:
        is_named = block.name == PREFIX + name and block.present and not block.extra
        if is_named and block.labels[block.present[0]].get("window") == window:
            yield block


def _others(window: str, result: ReadingSet, settings: Settings) -> Iterator[str]:
    """Which dimensions have many impressions with values that are not kept, and what to do."""
    found: dict[tuple[str, ...], int | float] = {}
    for block in _blocks(result, "window_impressions", window):
        for i in block.present:
            of = block.labels[i]
            named = tuple(name for name in settings.dimension_names if of[name] != ALL)
            if all(of[name] == BESIDES[0] for name in named):
                found[named] = block.values[i]
    total = found.get((), 0)
    for dimension in settings.dimensions:
        others = found.get((dimension.name,), 0)
        if others >= _MANY_OTHERS * total > 0:
            kept = counted(dimension.max_values, "value")
            besides = " beside those in the settings" if dimension.values else ""
            yield (
                f"{others / total:.0%} of the impressions have {dimension.name}=other: only {kept} "
                f"of {dimension.name} are kept{besides}. Raise max_values, or name the values that "
                "matter."
            )


def summarised(settings: Settings) -> list[str]:
    """Windows: all of the file, the last day of a longer one, and of those that are named the
    longest and the shortest."""
    lengths, every = settings.windows.named_ms, settings.windows.lengths_ms
    named = sorted(lengths, key=lambda label: -lengths[label])
    first = widest(settings)
    is_named = first != FILE or tuple(lengths) != WindowSettings().lengths
    day = [label for label in named if lengths[label] == DAY_MS < every[first]]
    return list(dict.fromkeys((first, *day, *((named[0], named[-1]) if is_named else ()))))


def _window(window: str, result: ReadingSet, settings: Settings) -> Grid:
    names = [name_column(dimension) for dimension in settings.dimension_names]
    headings = [TextColumn(heading) for heading, _, _ in _COLUMNS]
    what = {FILE: "All of the file", "24h": "The last day"}.get(window, f"The last {window}")
    table = Grid(*names, *headings, title=f"{what}, {span(*result.spans[window])}")
    blocks = {
        (metric, id(block.labels)): block
        for _, metric, _ in _COLUMNS
        for block in _blocks(result, metric, window)
    }
    impressions = [block for (name, _), block in blocks.items() if name == _COLUMNS[0][1]]
    places = ((block, i) for block in impressions for i in block.present)
    shown = nsmallest(_MAX_ROWS, places, key=_by_impressions)
    for of, i in shown:
        cells = [of.labels[i][dimension] for dimension in settings.dimension_names]
        for _, metric, form in _COLUMNS:
            block = blocks.get((metric, id(of.labels)))
            is_there = block is not None and i in block.present
            cells.append(form.format(block.values[i]) if block and is_there else "")
        table.add(*cells)
    if more := sum(len(block.present) for block in impressions) - len(shown):
        table.caption = counted(more, "more segment")
    return table


def _by_impressions(place: tuple[SeriesBlock, int]) -> tuple[float, list[tuple[str, str]]]:
    block, i = place
    return -block.values[i], sorted(block.labels[i].items())
