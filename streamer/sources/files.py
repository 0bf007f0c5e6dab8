"""NDJSON files as one log: each line gets a topic and a record timestamp.

The rule (the same for ``replay`` and ``produce``): a line's record timestamp is the largest
``ts`` of an event so far that is not beyond the wall clock at the start, 0 before any. A line that
is refused has the running value and moves no clock. Several files are merged by record timestamp,
the first-named first.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from streamer.ingest.record import RecordJudge
from streamer.ingest.timestamps import epoch_ms, without_leap_seconds
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES, MOMENTS, Moment
from streamer.settings.model import Settings
from streamer.sources.lines import LineFile

NO_TOPIC = ""
"""Kind of a line that belongs to no topic: it cannot be read, or has no known ``type``."""
BATCH_LINES = 2000

Line = tuple[str, int, bytes]
"""(kind, record_ms, the line as it stands in the file, without its newline)."""


class FileSource:
    """Lines of one or more files in log order, in batches.

    ``now_ms`` is the wall clock at the start (epoch milliseconds). Lines that are no JSON object
    or have an unknown ``type`` have the kind ``NO_TOPIC``.
    """

    def __init__(
        self, paths: Sequence[str | Path], settings: Settings, *, now_ms: int | None = None
    ) -> None:
        self.files = [LineFile(path) for path in paths]
        self._now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self._header, self._judge = HeaderReader(settings), RecordJudge(settings)

    @property
    def total_bytes(self) -> int | None:
        """Size of all files on disk; None where one is standard input or a pipe."""
        sizes = [f.total_bytes for f in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def read_bytes(self) -> int:
        """Bytes read from disk so far; equals ``total_bytes`` at the end."""
        return sum(f.read_bytes for f in self.files)

    def __iter__(self) -> Iterator[list[Line]]:
        if len(self.files) == 1:
            yield from self._stamped(self.files[0])
            return
        logs = [(line for batch in self._stamped(f) for line in batch) for f in self.files]
        merged = heapq.merge(*logs, key=lambda line: line[1])
        while batch := list(islice(merged, BATCH_LINES)):
            yield batch

    def _stamped(self, file: LineFile) -> Iterator[list[Line]]:
        running_ms = 0
        now_ms = self._now_ms
        read, refusal = self._header.read, self._judge.refusal
        for lines in file:
            batch = []
            for raw in lines:
                kind, event_ms = read(raw)
                if running_ms < event_ms <= now_ms and kind and refusal(kind, raw) is None:
                    running_ms = event_ms
                batch.append((kind, running_ms, raw))
            yield batch


def _bounded(event_ms: int) -> int:
    """The time, or -1 where no event can have it."""
    return event_ms if 0 <= event_ms <= limits.MAX_EVENT_MS else -1


class HeaderReader:
    """Reads ``type`` and ``ts`` of a line, each if it can be read whatever else is wrong."""

    def __init__(self, settings: Settings) -> None:
        names = settings.events.fields

        fields = [("type", str), ("ts", Moment)]
        header = msgspec.defstruct("Header", fields, rename=names, gc=False)
        self._quick: msgspec.json.Decoder[Any] = msgspec.json.Decoder(header)
        self._ts = names.get("ts", "ts")
        self._type = names.get("type", "type")
        self._moments = frozenset(names.get(name, name) for name in MOMENTS)

    def read(self, raw: bytes) -> tuple[str, int]:
        """(kind, event_ms) of a line; -1 where no time can be read."""
        if len(raw) > limits.MAX_RECORD_BYTES:
            return NO_TOPIC, -1
        try:
            if not raw.isascii():
                raw.decode()
            header = self._quick.decode(raw)
            ts = header.ts
            kind = LINE_TYPES.get(header.type, NO_TOPIC)
            return kind, ts if type(ts) is int else _bounded(epoch_ms(ts))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._slowly(raw)

    def _slowly(self, raw: bytes) -> tuple[str, int]:
        """The same for a line with something wrong in it, or a leap second."""
        try:
            raw.decode()
            record = without_leap_seconds(raw, self._moments)
            fields = msgspec.json.decode(record, type=dict[str, msgspec.Raw])
            line_type = msgspec.json.decode(fields.get(self._type, b"null"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return NO_TOPIC, -1
        kind = LINE_TYPES.get(line_type, NO_TOPIC) if isinstance(line_type, str) else NO_TOPIC
        try:
            moment: Any = msgspec.json.decode(fields.get(self._ts, b"null"), type=Moment)
        except (msgspec.DecodeError, RecursionError):
            return kind, -1
        return kind, _bounded(epoch_ms(moment))
