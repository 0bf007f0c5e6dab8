"""Lines as the record batches of Kafka, which are what a worker feeds to the core."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from itertools import islice

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streamer.kafka.chunk import Batches
from streamer.sources.synthetic import KindLine

_TS = re.compile(rb'"ts":(\d+)')


class RawLog:
    """Encodes lines; offsets go on, and record timestamps are the largest event time so far."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self._arrival_ms = 0

    def fetched(self, lines: Iterable[KindLine], each: int = 20_000) -> Iterator[list[Batches]]:
        """What fetches of so many lines give: a batch of each kind."""
        rest = iter(lines)
        while some := list(islice(rest, each)):
            yield self.batches(some)

    def batches(self, lines: Iterable[KindLine]) -> list[Batches]:
        """One batch of each kind."""
        rows: dict[str, list[tuple[int, bytes]]] = {}
        for kind, raw in lines:
            found = _TS.search(raw)
            if found:
                self._arrival_ms = max(self._arrival_ms, int(found[1]))
            rows.setdefault(kind, []).append((self._arrival_ms, raw))
        return [
            Batches(kind, self._encoded(kind, some), [], len(some)) for kind, some in rows.items()
        ]

    def _encoded(self, kind: str, rows: list[tuple[int, bytes]]) -> bytes:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        for offset, (ms, raw) in enumerate(rows):
            builder.append(offset, ms, None, raw, [])
        first = self._offsets.get(kind, 0)
        self._offsets[kind] = first + len(rows)
        return struct.pack(">q", first) + bytes(builder.build())[8:]
