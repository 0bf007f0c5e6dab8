"""Files as one log: each line of NDJSON, and each row of CSV, Parquet and tables in memory, which
becomes one, gets a topic and a record timestamp.

The rule (the same for ``replay`` and ``produce``): a line's record timestamp is the largest
``ts`` of an event so far that is not beyond the wall clock at the start, 0 before any; of a pipe,
whose lines are written while it is read, not beyond the clock when the line is read. A line that is
refused has the running value and moves no clock. Of a local time that comes twice the one nearest
to the running value before is taken. Several files are merged by record timestamp, the first-named
first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from streamer._core import LineStamper
from streamer.ingest.record import line_stamper
from streamer.settings.model import Settings
from streamer.settings.sources import Source, is_pattern
from streamer.sources.csv_rows import CsvFile, holds_rows, numeric_columns
from streamer.sources.line_batch import LineBatch, merged
from streamer.sources.lines import STDIN, LineFile
from streamer.sources.parquet_rows import ParquetFile
from streamer.sources.read_once import LineSource, PeekedLines
from streamer.sources.sorted_lines import SortedLines
from streamer.sources.tables import ArrowTable, MemoryTable

TABLE = "table"
"""What a table in memory is called."""
_ENDINGS = re.compile(r"(\.(gz|zst|csv|tsv|parquet|ndjson|jsonl|json|txt|log|dat|data|inter))+$")
_JSON = (".ndjson", ".jsonl", ".json")

Readable = str | Path | ArrowTable | Iterable[Mapping[str, Any]] | SortedLines | PeekedLines
"""What a source reads: files by their paths, tables, and rows as mappings; or what is open."""


def topic_of(path: str | Path) -> str:
    """What a topic is called that holds what a file does.

    >>> topic_of("logs/web events.csv.gz"), topic_of("-")
    ('web-events', 'stdin')
    """
    if str(path) == STDIN:
        return "stdin"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", _ENDINGS.sub("", Path(path).name))
    return name.strip("-.")[:200] or "events"


def opened(
    path: Readable, settings: Settings, columns: Sequence[str] = ()
) -> LineFile | MemoryTable | SortedLines | PeekedLines:
    """A file of the format that its name ends with: ``.csv``, ``.tsv`` (also ``.gz`` and ``.zst``),
    ``.parquet``; else a table where its columns are named or it begins with rows, or JSON; or a
    table in memory, called ``TABLE``. ``columns``: of a table without a header row; else those of
    its source. SourceError where it cannot be read."""
    if isinstance(path, SortedLines | PeekedLines):
        return path
    if not isinstance(path, str | Path):
        return MemoryTable(path, TABLE)
    if str(path).endswith(".parquet"):
        return ParquetFile(path)
    name = str(path).removesuffix(".gz").removesuffix(".zst")
    source = source_of(path, settings)
    columns = columns or (() if source is None else source.columns)
    is_named = name.endswith((".csv", ".tsv")) or (columns and not name.endswith(_JSON))
    if is_named or (path != STDIN and not name.endswith(_JSON) and holds_rows(path)):
        return CsvFile(path, numeric_columns(settings), columns)
    return LineFile(path, holds_lists=source is not None and (source.each or "").startswith("[]"))


def source_of(path: str | Path, settings: Settings) -> Source | None:
    """The source of a file: the one with a topic that is called like it, or the only one."""
    topic, sources = topic_of(path), settings.sources
    for source in sources:
        if any(re.match(t, topic) if is_pattern(t) else t == topic for t in source.topics):
            return source
    return sources[0] if len(sources) == 1 else None


class FileSource:
    """Lines of one or more files or tables in log order, in batches.

    ``clock`` gives epoch milliseconds. Lines that are no JSON object or have an unknown ``type``
    have the log ``NO_TOPIC``.
    """

    def __init__(
        self,
        paths: Sequence[Readable],
        settings: Settings,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        begin_ms: int = 0,
        stamper_of: Callable[[str], LineStamper] | None = None,
    ) -> None:
        """``begin_ms``: the record timestamp of the line before, where these go on with a log.
        ``stamper_of``: the stamper of a file by its topic, instead of a new one."""
        self.files = [opened(path, settings) for path in paths]
        self._begin_ms = begin_ms
        self._clock, self._start_ms = clock, clock()
        self._settings = settings
        self._stamper_of = stamper_of or partial(line_stamper, settings)

    @property
    def total_bytes(self) -> int | None:
        """Size of all files on disk; None where one is standard input, a pipe or a table."""
        sizes = [f.total_bytes for f in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def read_bytes(self) -> int:
        """Bytes read from disk so far; equals ``total_bytes`` at the end."""
        return sum(f.read_bytes for f in self.files)

    def __iter__(self) -> Iterator[LineBatch]:
        logs = list(map(self._stamped, self.files))
        yield from logs[0] if len(logs) == 1 else merged(logs)

    def _stamped(self, file: LineSource) -> Iterator[LineBatch]:
        names = tuple(self._settings.logs)
        stamper = self._stamper_of(topic_of(file.path))
        for raws in file:
            now_ms = self._clock() if file.is_live else self._start_ms
            logs, record_ms, _ = stamper.stamp(raws, now_ms, self._begin_ms)
            yield LineBatch(names, logs, record_ms, raws)
