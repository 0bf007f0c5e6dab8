"""``streamer history``: the metrics of windows at each step of the past, for other stores."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamer.cli.files import feed, say_sorted
from streamer.cli.rejection_report import RejectionReport
from streamer.cli.series_files import SeriesSpool, write_openmetrics, write_parquet
from streamer.cli.terminal import print_line, waiting
from streamer.errors import StreamerError, UsageError
from streamer.formatting import span
from streamer.ingest.hash_key import HashKey
from streamer.ingest.record import of_texts
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.query.past_windows import PastWindows
from streamer.settings.durations import DAY_MS, HOUR_MS, duration_ms, short
from streamer.settings.file_window import with_retained_windows
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.sources.file_span import with_times
from streamer.sources.files import FileSource
from streamer.sources.line_batch import by_part
from streamer.sources.replay import Replay
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.snapshot import View

_SECOND_MS = 1000
_APPLIED_MS = 6 * HOUR_MS
"""Of the log at a time: until it is written what is older is kept."""


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced. UsageError without pyarrow."""
    settings = load(args.config, os.environ)
    step_ms = duration_ms(args.step, "--step")
    if args.parquet and importlib.util.find_spec("pyarrow") is None:
        raise UsageError("--parquet needs pyarrow: pip install pyarrow")
    if step_ms % _SECOND_MS:
        raise UsageError(f"--step {args.step}: whole seconds, like 5m")
    path, code = args.parquet or args.openmetrics, 0
    with _spooled(path, args.label) as spool:
        ends = range(args.begin or 0, 1 << 62 if args.end is None else args.end)
        steps = _Steps(_catalogue(settings, args.metric), spool, step_ms, ends)
        if args.files:
            code = steps.write_replayed(of_texts(settings), args.files, args.hash_key)
        else:
            with waiting("reading the state in Redis"):
                views = asyncio.run(_stored(settings))
            steps.write(PastWindows(settings, steps.catalogue, views))
        if not spool.times_ms:
            raise UsageError("no window of these times is kept: ask for later ones, or name FILE")
        with waiting(f"writing {path}"):
            (write_parquet if args.parquet else write_openmetrics)(path, spool)
    times = span(spool.times_ms[0], spool.times_ms[-1])
    print_line(f"Written: {path}, {times}, every {short(step_ms)}")
    return code


def _catalogue(settings: Settings, names: Sequence[str] | None) -> Catalogue:
    """Of the metrics that panes hold those that are named, or all; UsageError for others."""
    catalogue = Catalogue(settings)
    every = {metric.name for metric in catalogue.of_panes().metrics}
    chosen = {name.removeprefix(PREFIX) for name in names or every}
    for name in sorted(chosen - every):
        close = nearest(name, sorted(every))
        meant = f"did you mean {close!r}?" if close else "`streamer metrics` lists what there is"
        raise UsageError(f"--metric {name}: no metric of windows that panes hold; {meant}")
    return catalogue.only(chosen).of_panes()


async def _stored(settings: Settings) -> list[View]:
    store = RedisStore(settings.redis)
    try:
        reader = Reader(store, contents_of(settings, Catalogue(settings)))
        await reader.refresh()
        return reader.views
    finally:
        await store.close()


@contextlib.contextmanager
def _spooled(path: str, labels: Sequence[tuple[str, str]]) -> Iterator[SeriesSpool]:
    """Gives room for series beside the file that they are written to; StreamerError where there is
    none."""
    try:
        with tempfile.TemporaryFile(dir=Path(path).parent) as file:
            yield SeriesSpool(file, labels)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StreamerError(f"cannot write the history: {reason}; at {path}") from error


class _Steps:
    """Writes the windows of one step after the other; ``ends``: between which times."""

    def __init__(self, catalogue: Catalogue, spool: SeriesSpool, step_ms: int, ends: range) -> None:
        self.catalogue, self._spool, self._step_ms, self._ends = catalogue, spool, step_ms, ends
        self._done_ms = 0

    def write(self, windows: PastWindows, until_ms: int | None = None) -> None:
        """Write the steps that are not written yet, up to a time."""
        for end_ms in windows.ends(self._step_ms, until_ms):
            if end_ms > self._done_ms:
                self._done_ms = end_ms
                if end_ms in self._ends:
                    self._spool.add(end_ms, windows.blocks(end_ms))

    def write_replayed(self, settings: Settings, names: Sequence[str], key: HashKey) -> int:
        """Write those of files while they are counted; returns an exit code."""
        with waiting("reading the times"):
            files, _ = with_times(names, settings)
        say_sorted(files)
        joins, late_ms = settings.attribution, settings.time.max_lateness_ms
        reach_ms = max(DAY_MS, joins.click_ms, joins.conversion_ms) + late_ms
        kept_ms = reach_ms + _APPLIED_MS + self._step_ms
        retained = with_retained_windows(settings, self._step_ms, kept_ms)
        self.catalogue = _catalogue(retained, [m.name for m in self.catalogue.metrics])

        source, refused = FileSource(files, retained), RejectionReport(retained)
        replay = Replay(
            retained, 1, lambda of: refused.add(of.topic, of.value, of.reason, of.beside), key
        )

        def before(ms: int) -> None:
            """Write all that this part of the log cannot change."""
            replay.apply_all()
            self._write_of(replay, ms - reach_ms)

        feed(replay, source, by_part(source, _APPLIED_MS, before))
        self._write_of(replay)
        read = [file.path for file in source.files]
        return refused.report(replay.lines, replay.accepted, is_strict=False, files=read)

    def _write_of(self, replay: Replay, until_ms: int | None = None) -> None:
        windows = PastWindows(replay.settings, self.catalogue, replay.views())
        self.write(windows, until_ms)
