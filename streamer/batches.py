"""Record batches handed out whole, by a hook into aiokafka's fetcher.

Where this release of aiokafka lacks what is hooked, records come as its public ``ConsumerRecord``:
slower, the same otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def raw_records(data: Any) -> Any:
    """Marks the consumer whose record batches stay whole."""
    return data


class RecordRun:
    """The records of one batch, as aiokafka's C extension made them; stands for one record."""

    __slots__ = ("offset", "records")

    def __init__(self, records: list[Any]) -> None:
        self.records = records
        self.offset = records[-1].offset


class _WholeBatch:
    """A record batch that gives one ``RecordRun`` instead of its records one by one."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[RecordRun]:
        records = list(self._batch)
        if records:
            yield RecordRun(records)


class _WholeBatches:
    """The batches of a fetch answer, each whole."""

    __slots__ = ("_records",)

    def __init__(self, records: Any) -> None:
        self._records = records

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> _WholeBatch:
        return _WholeBatch(self._records.next_batch())


def keep_batches_whole() -> bool:
    """Let consumers marked with ``raw_records`` skip two Python calls and an object a record.

    False where this release of aiokafka lacks the hooks: records then come one by one.
    """
    try:
        from aiokafka.consumer.fetcher import PartitionRecords
    except ImportError:
        return False
    if getattr(PartitionRecords, "keeps_batches_whole", False):
        return True
    names = ("_records", "_unpack_records", "_consumer_record", "_key_deserializer")
    code = PartitionRecords.__init__.__code__.co_names
    if not all(hasattr(PartitionRecords, n) or n in code for n in names):
        return False
    start, record_of = PartitionRecords.__init__, PartitionRecords._consumer_record

    def init(self: Any, tp: Any, records: Any, *args: Any, **kwargs: Any) -> None:
        start(self, tp, records, *args, **kwargs)
        if self._key_deserializer is raw_records:
            self._records = _WholeBatches(records)

    def _consumer_record(self: Any, tp: Any, record: Any) -> Any:
        return record if type(record) is RecordRun else record_of(self, tp, record)

    PartitionRecords.__init__ = init
    PartitionRecords._consumer_record = _consumer_record
    PartitionRecords.keeps_batches_whole = True
    return True
