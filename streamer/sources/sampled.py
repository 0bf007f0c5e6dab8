"""Some records of files: the first ones, looked at on their way to the engine; and some that are
spread over the files, from which settings are guessed."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from streamer.errors import SourceError
from streamer.ingest.discovery.names import unnamed_columns
from streamer.ingest.discovery.presets import preset_of_rows
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.read_sample import ReadSample
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.sources.csv_rows import CsvFile, first_rows
from streamer.sources.files import TABLE, Readable, opened, topic_of
from streamer.sources.line_batch import NO_TOPIC, LineBatch
from streamer.sources.lines import STDIN
from streamer.sources.read_once import PeekedLines

_READ = 50_000
"""Lines of a file of which a sample is drawn."""


def looked_at(batches: Iterable[LineBatch], sample: ReadSample) -> Iterator[LineBatch]:
    """The same lines, the first of which are looked at on the way."""
    for lines in batches:
        for log, ms, raw in () if sample.is_full else lines:
            if log != NO_TOPIC:
                record = FoundRecord(raw, timestamp_ms=ms)
                sample.add(log, record, sample.decoder.decode_all(log, raw, timestamp_ms=ms))
        yield lines


def sample_files(
    paths: Sequence[Readable], settings: Settings, columns: tuple[str, ...] = ()
) -> list[SampledTopic]:
    """Some lines of each file or table; SourceError where one cannot be read."""
    found: dict[str, list[FoundRecord]] = {}
    columns_by_topic: dict[str, tuple[str, ...]] = {}
    for path in paths:
        most = limits.DISCOVERED_BYTES // len(paths)
        topic = _topic(path)
        known = columns_by_topic.setdefault(topic, columns or _columns_of(path, settings))
        lines = found.setdefault(topic, [])
        lines += (FoundRecord(line) for line in _bounded(_spread(path, settings, known), most))
    return [
        SampledTopic(topic, records, columns=columns_by_topic[topic])
        for topic, records in found.items()
    ]


def without(paths: Sequence[Any], topics: Container[str]) -> list[Any]:
    """Those files and tables that are not called like some topics."""
    return [path for path in paths if _topic(path) not in topics]


def _topic(path: Readable) -> str:
    if isinstance(path, PeekedLines):
        return topic_of(path.path)
    return topic_of(path) if isinstance(path, str | Path) else TABLE


def _columns_of(path: Readable, settings: Settings) -> tuple[str, ...]:
    """The columns of a table without a header row: as a preset knows them, else their numbers."""
    if not isinstance(path, str | Path) or path == STDIN or settings.sources:
        return ()
    file = opened(path, settings)
    if not isinstance(file, CsvFile):
        return ()
    try:
        next(iter(file), None)
        has_header = True
    except SourceError:
        has_header = False
    rows = first_rows(path)
    if columns := preset_of_rows(rows):
        return tuple(columns)
    return () if has_header or not rows else unnamed_columns(len(rows[0]))


def _all_over(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The first lines, and as many drawn from all others, in their order."""
    half = limits.DISCOVERED_RECORDS // 2
    yield from islice(lines, half)
    dice, drawn = random.Random(0), list[tuple[int, bytes]]()
    for place, line in enumerate(lines):
        if place < half:
            drawn.append((place, line))
        elif (at := dice.randrange(place + 1)) < half:
            drawn[at] = place, line
    yield from (line for _, line in sorted(drawn))


def _spread(path: Readable, settings: Settings, columns: Sequence[str]) -> Iterator[bytes]:
    """The first lines, and some of those behind them."""
    if isinstance(path, PeekedLines):
        return iter(path.first[: limits.DISCOVERED_RECORDS])
    is_table = not isinstance(path, str | Path)
    file = opened(path, settings) if is_table else opened(path, settings, columns)
    if isinstance(file, CsvFile):
        file.is_sample = not settings.sources
    lines = (line for batch in file for line in batch if line.strip())
    return _all_over(lines if is_table else islice(lines, _READ))


def _bounded(lines: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    held = 0
    for line in lines:
        held += len(line)
        if held > most_bytes:
            return
        yield line
