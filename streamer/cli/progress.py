"""A progress bar over files, on a terminal's stderr only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from streamer.sources.files import FileSource
from streamer.sources.live import LiveTraffic


@contextlib.contextmanager
def progress(what: str, source: FileSource | LiveTraffic) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with each batch: the number of its lines."""
    if not sys.stderr.isatty():
        yield lambda lines: None
        return
    total = source.total_bytes
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TextColumn("{task.fields[lines]:,} lines"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, lines=0)
        count = 0

        def show(lines: int) -> None:
            nonlocal count
            count += lines
            bar.update(task, completed=source.read_bytes if total else None, lines=count)

        yield show
