"""Record batches handed out as Kafka sent them, by a hook into aiokafka's fetcher.

Where this release of aiokafka lacks what is hooked, or batches have an old format, records come as
its public ``ConsumerRecord``: slower, the same otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamer._core import scan_batches


@dataclass(frozen=True, slots=True)
class RawBatches:
    """All record batches that a fetch gave of one partition."""

    data: bytes
    aborted: Sequence[tuple[int, int]]
    """Aborted transactions: producer id, first offset."""
    records: int
    """How many there are, at most."""
    first_ms: int
    """Timestamp of the first."""
    next_offset: int
    """Where the next fetch begins."""


class DamagedBytes(bytes):
    """A record batch that is damaged for good: it is handed out to be declared lost."""


def raw_records(data: Any) -> Any:
    """Marks the consumer that gets ``RawBatches``; as a deserializer it changes nothing."""
    return data


def keep_batches_raw() -> bool:
    """Let consumers marked with ``raw_records`` get ``RawBatches`` instead of records.

    False where this release of aiokafka lacks the hooks: records then come one by one.
    """
    try:
        from aiokafka.consumer import fetcher
    except ImportError:
        return False
    if getattr(fetcher.PartitionRecords, "keeps_batches_raw", False):
        return True
    if not _has_hooks(fetcher):
        return False
    start, memory_records = fetcher.PartitionRecords.__init__, fetcher.MemoryRecords

    class KeptRecords:
        """aiokafka's reader of a fetched blob, which keeps the blob."""

        __slots__ = ("data", "has_next", "next_batch", "size_in_bytes")

        def __init__(self, data: bytes) -> None:
            self.data, reader = data, memory_records(bytes(data))
            self.has_next, self.next_batch = reader.has_next, reader.next_batch
            self.size_in_bytes = reader.size_in_bytes

    def init(
        self: Any, tp: Any, records: Any, aborted: Any, fetch_offset: int, *args: Any, **kwargs: Any
    ) -> None:
        start(self, tp, records, aborted, fetch_offset, *args, **kwargs)
        if self._key_deserializer is raw_records:
            try:
                scanned = scan_batches(records.data, fetch_offset)
            except ValueError:  # an old format, or damage: aiokafka reads it, or says what it is
                return
            next_offset, count, first_ms = scanned
            if isinstance(records.data, DamagedBytes):
                count = max(1, count)  # its header may deny it
            raw = RawBatches(bytes(records.data), aborted or (), count, first_ms, next_offset)
            self._records_iterator = _raw(self, raw)

    fetcher.MemoryRecords = KeptRecords
    fetcher.PartitionRecords.__init__ = init
    fetcher.PartitionRecords.keeps_batches_raw = True
    return True


def _has_hooks(fetcher: Any) -> bool:
    """Whether the fetcher makes its reader, and iterates over it, as the hook expects."""
    names = ("MemoryRecords", "PartitionRecords")
    if not all(hasattr(fetcher, name) for name in names):
        return False
    start = fetcher.PartitionRecords.__init__
    takes = ["self", "tp", "records", "aborted_transactions", "fetch_offset"]
    sets = {"_records_iterator", "_key_deserializer", "next_fetch_offset"}
    return list(inspect.signature(start).parameters)[:5] == takes and sets <= set(
        start.__code__.co_names
    )


def _raw(partition_records: Any, raw: RawBatches) -> Iterator[RawBatches]:
    """Everything in one; nothing where there are markers of transactions only."""
    partition_records.next_fetch_offset = raw.next_offset
    if raw.records:
        yield raw
