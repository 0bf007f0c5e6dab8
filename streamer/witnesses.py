"""Where to go on in a log that may have changed since it was read.

A *witness* is a record that was applied: offset, timestamp, checksum. A partition keeps some of
each topic at exponentially spaced offsets, in its manifest. At every adoption the newest is
compared with what the log holds now::

    log:       start ────────────────────────── end
    witnesses:    w1        w2     w3  w4 │
                                          next offset

    start > next            the records between are lost: declared, go on at the start
    newest witness equal    go on; where the log ends before the next offset (a marker of a
                            transaction is gone), go on after the witness, and declare it
    newest retained away    go on (as long as the next offset is in the log)
    newest differs, or the  the log was cut or made anew: go on after the newest witness
    log ends before it      that is equal, else at the start; declared
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.partition import Partition
from streamer.store.journal import Journal
from streamer.store.manifest import Witness

logger = logging.getLogger("streamer")
_NOT_THERE = "records {} to {} are lost: Kafka has deleted them"


class Records(Protocol):
    """Looks into logs, whatever their consumer's position is."""

    async def bounds(
        self, tps: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Start and end of each log."""
        ...

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Witness]:
        """The first record of each log at or after an offset; none where it ends before."""
        ...


@dataclass(frozen=True)
class Resumption:
    """Where to go on, and what is declared: records that are lost (first and last offset), or that
    the log is another one from the offset on."""

    offset: int
    lost: tuple[int, int] | None = None
    is_other_log: bool = False


@dataclass
class _Suspect:
    """A log whose retained witnesses are being compared, the newest first."""

    start: int
    end: int
    next_offset: int
    left: list[Witness]
    is_other_log: bool = False

    def compare(self, found: Witness | None) -> Resumption | None:
        """What follows from the record found at the newest witness; None: ask for the next one.

        A later record than asked for proves nothing: compaction may have removed the one.
        BrokerError where Kafka says that the log goes on, and gives no record: the new leader of a
        partition may do so for a while.
        """
        witness = self.left.pop()
        if found is None and witness.offset < self.end:
            raise BrokerError(
                f"Kafka gives no record from offset {witness.offset} on, of a log that, it says, "
                f"ends at {self.end}"
            )
        if found == witness:
            self.is_other_log |= self.end < self.next_offset
            offset = witness.offset + 1 if self.is_other_log else self.next_offset
            return Resumption(offset, is_other_log=self.is_other_log)
        self.is_other_log |= found is None or found.offset == witness.offset
        if self.left:
            return None
        offset = self.start if self.is_other_log else self.next_offset
        return Resumption(offset, is_other_log=self.is_other_log)


def witness_of(offset: int, record_ms: int, value: bytes | None) -> Witness:
    """The witness that a record is."""
    return Witness(offset, record_ms, zlib.crc32(value or b""))


async def resume(
    records: Records,
    next_offsets: Mapping[TopicPartition, int],
    witnesses: Mapping[TopicPartition, list[Witness]],
) -> dict[TopicPartition, Resumption]:
    """Compare logs with their witnesses (oldest first), and say where to go on in each."""
    bounds = await records.bounds(list(next_offsets))
    result: dict[TopicPartition, Resumption] = {}
    suspects: dict[TopicPartition, _Suspect] = {}
    for tp, offset in next_offsets.items():
        start, end = bounds[tp]
        retained = [w for w in witnesses[tp] if w.offset >= start]
        if offset < start:
            result[tp] = Resumption(start, lost=(offset, start - 1))
        elif retained:
            suspects[tp] = _Suspect(start, end, offset, retained)
        elif end < offset:
            result[tp] = Resumption(start, is_other_log=True)
        else:
            result[tp] = Resumption(offset)
    while suspects:
        found = await records.records_at({tp: s.left[-1].offset for tp, s in suspects.items()})
        for tp, suspect in list(suspects.items()):
            resumption = suspect.compare(found.get(tp))
            if resumption is not None:
                result[tp] = resumption
                del suspects[tp]
    return result


async def find_start(
    records: Records,
    kinds: Mapping[TopicPartition, str],
    partition: Partition,
    known: Mapping[str, int],
) -> None:
    """Let a partition whose state was lost begin at the start of its logs, and declare what these
    no longer hold. ``known``: kind → where reading had begun; 0 where that is not known."""
    for tp, (start, _) in (await records.bounds(list(kinds))).items():
        log, first = partition.logs[kinds[tp]], known.get(kinds[tp], 0)
        log.first_offset, log.next_offset = min(first, start), start
        if start > first:
            logger.error("%s/%d: %s", tp.topic, tp.partition, _NOT_THERE.format(first, start - 1))
            log.lose(first, start - 1)


async def find_place(
    records: Records,
    kinds: Mapping[TopicPartition, str],
    partition: Partition,
    journal: Journal,
) -> bool:
    """Set where a loaded partition goes on in its logs; True where something had to be declared.

    What was never committed begins at the start of each log.
    """
    if journal.commit_number == 0:
        for tp, (start, _) in (await records.bounds(list(kinds))).items():
            log = partition.logs[kinds[tp]]
            log.first_offset = log.next_offset = start
        return False
    found = await resume(
        records,
        {tp: partition.logs[kind].next_offset for tp, kind in kinds.items()},
        {tp: journal.witnesses[kind] for tp, kind in kinds.items()},
    )
    for tp, place in found.items():
        log, where = partition.logs[kinds[tp]], f"{tp.topic}/{tp.partition}"
        if place.lost is not None:
            logger.error("%s: records %d to %d were lost before they were read", where, *place.lost)
            log.lose(*place.lost)
        elif place.is_other_log:
            said = "%s: not the log that was read up to %d: read again from %d"
            logger.error(said, where, log.next_offset, place.offset)
            log.restart(place.offset)
            journal.forget_witnesses(kinds[tp], place.offset)
    return any(place.lost or place.is_other_log for place in found.values())
