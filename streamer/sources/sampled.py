"""Some lines of files, as if each were a topic of its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.sources.files import opened, topic_of

_EVERY = 50
"""Of the lines behind the first half of a sample each so many-th is in it."""


def sample_files(paths: Sequence[str], settings: Settings) -> list[SampledTopic]:
    """Some lines of each file; SourceError where one cannot be read."""
    found: dict[str, list[FoundRecord]] = {}
    for path in paths:
        most = limits.DISCOVERED_BYTES // len(paths)
        lines = found.setdefault(topic_of(path), [])
        lines += (FoundRecord(line) for line in _bounded(_spread(path, settings), most))
    return [SampledTopic(topic, records) for topic, records in found.items()]


def _spread(path: str, settings: Settings) -> Iterator[bytes]:
    """The first lines, and some of those behind them."""
    half, number = limits.DISCOVERED_RECORDS // 2, 0
    for lines in opened(path, settings):
        for line in lines:
            if not line.strip():
                continue
            if number < half or (number - half) % _EVERY == 0:
                yield line
            number += 1
            if number >= half + half * _EVERY:
                return


def _bounded(lines: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    held = 0
    for line in lines:
        held += len(line)
        if held > most_bytes:
            return
        yield line
