"""Where a partition continues in its logs, and which records are declared lost."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from aiokafka.structs import TopicPartition

from streamer.kafka.fingerprints import RecordLookup, resume
from streamer.state.journal import Journal
from streamer.state.partition import Partition, TopicLog

logger = logging.getLogger("streamer")
NOT_BEGUN = -1
"""The first offset of a log that could not be read since the state began."""
_NOT_THERE = "records {} to {} are lost: Kafka has deleted them"


async def find_start(
    records: RecordLookup,
    logs: Mapping[TopicPartition, str],
    partition: Partition,
    known: Mapping[str, int],
) -> None:
    """Start a partition whose state was lost at the beginning of its logs, and declare lost what
    these no longer hold. ``known``: log → first offset ever read; 0 where that is not known."""
    for tp, (start, _) in (await records.bounds(list(logs))).items():
        log, first = partition.logs[logs[tp]], known.get(logs[tp], 0)
        log.first_offset, log.next_offset = min(first, start), start
        if start > first:
            logger.error("%s/%d: %s", tp.topic, tp.partition, _NOT_THERE.format(first, start - 1))
            log.lose(first, start - 1)


async def find_place(
    records: RecordLookup,
    logs: Mapping[TopicPartition, str],
    partition: Partition,
    journal: Journal,
) -> bool:
    """Set the next offsets of a loaded partition; True if records were declared lost or a log was
    found truncated or recreated.

    What was never committed begins at the start of its log.
    """
    is_new = journal.commit_number == 0
    new = [tp for tp, name in logs.items() if is_new or _has_not_begun(partition.logs[name])]
    for tp, (start, _) in (await records.bounds(new)).items() if new else ():
        log = partition.logs[logs[tp]]
        log.first_offset = log.next_offset = start
        log.is_new = False
    known = {tp: name for tp, name in logs.items() if tp not in new}
    if not known:
        return False
    found = await resume(
        records,
        {tp: partition.logs[name].next_offset for tp, name in known.items()},
        {tp: journal.fingerprints[name] for tp, name in known.items()},
    )
    for tp, place in found.items():
        log, where = partition.logs[logs[tp]], f"{tp.topic}/{tp.partition}"
        if place.lost is not None:
            logger.error("%s: records %d to %d were lost before they were read", where, *place.lost)
            log.lose(*place.lost)
        elif place.is_other_log:
            said = "%s: truncated or recreated since it was read up to %d: reading again from %d"
            logger.error(said, where, log.next_offset, place.offset)
            log.restart(place.offset)
            journal.forget_fingerprints(logs[tp], place.offset)
    return any(place.lost or place.is_other_log for place in found.values())


def _has_not_begun(log: TopicLog) -> bool:
    return log.is_new or log.first_offset == NOT_BEGUN


def leave_out(partition: Partition, names: Iterable[str]) -> None:
    """Logs that cannot be read now: one that was never read begins at its start later."""
    for name in names:
        if _has_not_begun(partition.logs[name]):
            partition.logs[name].first_offset = NOT_BEGUN
