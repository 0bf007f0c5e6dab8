"""Files as commands read them: through the engine, with a progress bar on a terminal's stderr, and
what was refused is said."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from streamer.cli.rejection_report import RejectionReport
from streamer.cli.terminal import note
from streamer.ingest.read_sample import ReadSample
from streamer.query.what_was_read import missing_arms
from streamer.settings.model import Settings
from streamer.sources.file_span import sorted_names
from streamer.sources.files import FileSource, Readable
from streamer.sources.line_batch import LineBatch
from streamer.sources.replay import Dead, Replay
from streamer.sources.sampled import looked_at
from streamer.sources.synthetic import LiveTraffic


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


def say_sorted(files: Sequence[Readable]) -> None:
    """Say which files were not in order."""
    for name in sorted_names(files):
        note(f"{name} is not in the order of time: it is sorted (replay --as-is keeps its order)")


def feed(replay: Replay, source: FileSource, batches: Iterable[LineBatch] | None = None) -> None:
    """Read files to their end; ``batches``: what is made of their lines, where it is not they."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    with progress("replay", source) as show:
        for lines in source if batches is None else batches:
            replay.feed(lines)
            show(len(lines))
    replay.finish()


def replayed(
    settings: Settings,
    files: Sequence[Readable],
    change: Callable[[FileSource, Settings], Iterable[LineBatch]] | None = None,
) -> tuple[Replay, int]:
    """The engine after these files, and an exit code: 1 where most of their lines are no events.
    What was refused is said on stderr, and which experiments have no arm. ``change``: what makes
    other lines of theirs."""
    source, refused = FileSource(files, settings), RejectionReport(settings)

    def on_dead(dead: Dead) -> None:
        refused.add(dead.topic, dead.value, dead.reason, dead.beside)

    names = [file.path for file in source.files]
    replay, sample = Replay(settings, on_dead=on_dead), ReadSample(settings)
    own = change(source, settings) if change else looked_at(source, sample)
    feed(replay, source, own)
    for missing in () if change else missing_arms(settings, sample):
        note(str(missing))
    return replay, refused.report(replay.lines, replay.accepted, is_strict=False, files=names)
