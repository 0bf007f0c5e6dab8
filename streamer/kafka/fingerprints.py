"""Where to go on in a log that may have changed since it was read.

A *fingerprint* is a record that was applied: offset, timestamp, checksum. A partition keeps some of
each topic at exponentially spaced offsets, in its manifest. At every recovery the newest is
compared with what the log holds now::

    log:       start ────────────────────────── end
    fingerprints:    w1        w2     w3  w4 │
                                          next offset

    start > next            the records between are lost: declared, go on at the start
    newest fingerprint equal    go on; where the log ends before the next offset (a marker of a
                            transaction is gone), go on after the fingerprint, and declare it
    newest retained away    go on (as long as the next offset is in the log)
    newest differs, or the  the log was truncated or recreated: go on after the newest fingerprint
    log ends before it      that is equal, else at the start; declared
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError


class Fingerprint(msgspec.Struct, array_like=True, frozen=True):
    """A record that was applied: by it a recreated topic is told from the old one."""

    offset: int
    record_ms: int
    checksum: int


class RecordLookup(Protocol):
    """Looks into logs, whatever their consumer's position is."""

    async def bounds(
        self, tps: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Start and end of each log."""

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Fingerprint]:
        """The first record of each log at or after an offset; none where it ends before."""


@dataclass(frozen=True)
class Resumption:
    """Where to go on, and what is declared: records that are lost (first and last offset), or that
    the log is another one from the offset on."""

    offset: int
    lost: tuple[int, int] | None = None
    is_other_log: bool = False


@dataclass
class _Suspect:
    """A log whose retained fingerprints are being compared, the newest first."""

    start: int
    end: int
    next_offset: int
    left: list[Fingerprint]
    is_other_log: bool = False

    def compare(self, record: Fingerprint | None) -> Resumption | None:
        """What follows from the record found at the newest fingerprint; None: ask for the next one.

        A later record than asked for proves nothing: compaction may have removed the one.
        BrokerError where Kafka says that the log goes on, and gives no record: the new leader of a
        partition may do so for a while.
        """
        fingerprint = self.left.pop()
        if record is None and fingerprint.offset < self.end:
            raise BrokerError(
                f"Kafka returned no record at or after offset {fingerprint.offset}, though it says "
                f"that the log ends at {self.end}"
            )
        if record == fingerprint:
            self.is_other_log |= self.end < self.next_offset
            offset = fingerprint.offset + 1 if self.is_other_log else self.next_offset
            return Resumption(offset, is_other_log=self.is_other_log)
        self.is_other_log |= record is None or record.offset == fingerprint.offset
        if self.left:
            return None
        offset = self.start if self.is_other_log else self.next_offset
        return Resumption(offset, is_other_log=self.is_other_log)


def fingerprint_of(offset: int, record_ms: int, value: bytes | None) -> Fingerprint:
    """The fingerprint that a record is."""
    return Fingerprint(offset, record_ms, zlib.crc32(value or b""))


async def resume(
    records: RecordLookup,
    next_offsets: Mapping[TopicPartition, int],
    fingerprints: Mapping[TopicPartition, list[Fingerprint]],
) -> dict[TopicPartition, Resumption]:
    """Compare logs with their fingerprints (oldest first), and say where to go on in each."""
    bounds = await records.bounds(list(next_offsets))
    result: dict[TopicPartition, Resumption] = {}
    suspects: dict[TopicPartition, _Suspect] = {}
    for tp, offset in next_offsets.items():
        start, end = bounds[tp]
        retained = [w for w in fingerprints[tp] if w.offset >= start]
        if offset < start:
            result[tp] = Resumption(start, lost=(offset, start - 1))
        elif retained:
            suspects[tp] = _Suspect(start, end, offset, retained)
        elif end < offset:
            result[tp] = Resumption(start, is_other_log=True)
        else:
            result[tp] = Resumption(offset)
    while suspects:
        records_now = await records.records_at(
            {tp: s.left[-1].offset for tp, s in suspects.items()}
        )
        for tp, suspect in list(suspects.items()):
            resumption = suspect.compare(records_now.get(tp))
            if resumption is not None:
                result[tp] = resumption
                del suspects[tp]
    return result
