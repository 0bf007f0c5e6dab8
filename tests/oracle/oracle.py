"""The oracle's entry: ``run`` a log, or the lines of a file made into one."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.settings.model import Settings

from .acceptance import accept
from .files import records_of_file, records_of_log
from .joining import join
from .readings import read
from .shape import KINDS, OracleResult, Record

__all__ = ["KINDS", "OracleResult", "Record", "records_of_file", "records_of_log", "run"]


def run(
    records: Iterable[Record],
    settings: Settings,
    *,
    dead_letters: list[tuple[Record, str]] | None = None,
    key: HashKey = FIXED_KEY,
) -> OracleResult:
    """Recompute everything; records of one (topic, partition) are in offset order.

    ``dead_letters``, if given, receives (record, reason) of each reject and late record.
    ``key``: that of the store, for what depends on hashes.
    """
    verdict = accept(records, settings, dead_letters, key)
    joins = join(verdict, settings)
    return OracleResult(
        readings=read(verdict, joins, settings),
        accepted=[e.address for e in verdict.events if not e.line],
        rejects=verdict.rejects,
        late=verdict.late,
        duplicates=verdict.duplicates,
        joined={
            address: None if row is None else (row.event.partition, row.event.offset, row.index)
            for address, row in joins.joined.items()
        },
        unsettled=joins.unsettled,
        stream_time_ms=verdict.stream_time_ms(),
    )
