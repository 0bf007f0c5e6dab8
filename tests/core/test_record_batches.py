"""Record batches: the core reads of a fetched blob what aiokafka's fetcher reads of it."""

from __future__ import annotations

import gzip
import random
import struct
from dataclasses import dataclass
from typing import Any

import cramjam
import pytest
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from streamer._core import read_batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08
ATTRIBUTES, CRC, LAST_OFFSET_DELTA, MAX_TIMESTAMP, HEADER = 21, 17, 23, 35, 61
NOW = 1_700_000_000_000
Value = bytes | None


@dataclass(frozen=True)
class Batch:
    """What is built into one batch; the first of ``offsets`` is the base offset."""

    offsets: list[int]
    values: list[Value]
    codec: int = 0
    attributes: int = 0
    producer: int = -1
    trailing_gap: int = 0
    key: Value = b"key"

    def build(self) -> bytes:
        """The batch as a broker stores it."""
        builder = DefaultRecordBatchBuilder(
            2, self.codec, bool(self.attributes & TRANSACTIONAL), self.producer, 0, 0, 1 << 30
        )
        headers: list[Any] = [("name", b"x"), ("empty", None)] if len(self.offsets) % 2 else []
        base = self.offsets[0]
        for i, (offset, value) in enumerate(zip(self.offsets, self.values, strict=True)):
            builder.append(offset - base, NOW + 7 * i - 50 * (i % 3), self.key, value, headers)
        return stored(bytes(builder.build()), base, self.attributes, self.trailing_gap)

    @property
    def next_offset(self) -> int:
        return self.offsets[-1] + self.trailing_gap + 1


def stored(raw: bytes, base_offset: int, attributes: int = 0, trailing_gap: int = 0) -> bytes:
    """What a broker changes: base offset, attributes, the last offset after compaction."""
    batch = bytearray(raw)
    struct.pack_into(">q", batch, 0, base_offset)
    (old,) = struct.unpack_from(">h", batch, ATTRIBUTES)
    struct.pack_into(">h", batch, ATTRIBUTES, old | attributes)
    (last,) = struct.unpack_from(">i", batch, LAST_OFFSET_DELTA)
    struct.pack_into(">i", batch, LAST_OFFSET_DELTA, last + trailing_gap)
    if attributes & LOG_APPEND_TIME:
        struct.pack_into(">q", batch, MAX_TIMESTAMP, NOW + 99_999)
    struct.pack_into(">I", batch, CRC, calc_crc32c(bytes(batch[ATTRIBUTES:])))
    return bytes(batch)


def marker(offset: int, producer: int, kind: int) -> Batch:
    """The end of a transaction; kind 0: aborted, 1: committed."""
    key = struct.pack(">HH", 0, kind)
    return Batch([offset], [b"\0" * 6], 0, TRANSACTIONAL | CONTROL, producer, key=key)


def by_aiokafka(
    blob: bytes, next_offset: int, aborted: list[tuple[int, int]], is_read_committed: bool
) -> tuple[int, list[tuple[int, int, Value]]]:
    records = PartitionRecords(
        TopicPartition("t", 0),
        MemoryRecords(blob),
        aborted,
        next_offset,
        None,
        None,
        True,
        READ_COMMITTED if is_read_committed else READ_UNCOMMITTED,
    )
    found = [(r.offset, r.timestamp, r.value) for r in records]
    return records.next_fetch_offset, found


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Batch], list[tuple[int, int]]]:
    """Batches in offset order: compressed or not, with gaps, of transactions, with markers; and the
    aborted transactions that a broker would list."""
    texts = st.none() | st.binary(max_size=30) | st.just(b'{"user_id":"u"}' * 60)
    offset = draw(st.integers(0, 2**40))
    batches: list[Batch] = []
    begun: dict[int, int] = {}
    aborted = []
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.integers(0, 3))
        producer = draw(st.sampled_from((-1, 7, 8)))
        if producer in begun and draw(st.booleans()):
            kind = draw(st.integers(0, 1))
            if kind == 0:
                aborted.append((producer, begun[producer]))
            del begun[producer]
            batches.append(marker(offset, producer, kind))
        else:
            gaps = draw(st.lists(st.sampled_from((1, 1, 1, 2, 9)), min_size=1, max_size=8))
            offsets = [offset + sum(gaps[:i]) for i in range(len(gaps))]
            values = [draw(texts) for _ in offsets]
            attributes = draw(st.sampled_from((0, LOG_APPEND_TIME)))
            if producer >= 0:
                attributes |= TRANSACTIONAL
                begun.setdefault(producer, offset)
            codec = draw(st.sampled_from(list(CODECS.values())))
            gap = draw(st.sampled_from((0, 0, 4)))
            batches.append(Batch(offsets, values, codec, attributes, producer, gap))
        offset = batches[-1].next_offset
    return batches, aborted + [(p, first) for p, first in begun.items() if draw(st.booleans())]


@given(logs(), st.data(), st.booleans())
def test_the_same_records_and_the_same_next_offset(
    log: tuple[list[Batch], list[tuple[int, int]]], data: st.DataObject, is_read_committed: bool
) -> None:
    batches, aborted = log
    blob = b"".join(b.build() for b in batches)
    # A fetch is answered from the batch on that holds the offset, or the next there is.
    start = data.draw(st.integers(max(0, batches[0].offsets[0] - 2), batches[0].next_offset - 1))
    cut = data.draw(st.just(len(blob)) | st.integers(0, len(blob)))
    expected = by_aiokafka(blob[:cut], start, list(aborted), is_read_committed)
    for check_crcs in (True, False):
        next_offset, records, skipped = read_batches(
            blob[:cut], start, check_crcs, aborted, is_read_committed
        )
        assert skipped == []
        assert (next_offset, records) == expected


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_large_batches_of_every_codec(codec: int) -> None:
    dice = random.Random(codec)
    values: list[Value] = [dice.randbytes(150).hex().encode() for _ in range(3000)]
    values[7], values[8] = None, b""
    blob = Batch(list(range(5, 3005)), values, codec).build()
    assert read_batches(blob, 0, True, []) == (3005, by_aiokafka(blob, 0, [], True)[1], [])


def test_other_framings_of_the_codecs() -> None:
    """Snappy without xerial's frame, gzip of two members, lz4 with linked blocks and checksums."""
    plain = Batch(list(range(40)), [b"some text " * 300] * 40).build()
    body = plain[HEADER:]
    lz4 = cramjam.lz4.Compressor(level=4, content_checksum=True, block_linked=True)
    lz4.compress(body)
    bodies = {
        2: bytes(cramjam.snappy.compress_raw(body)),
        1: gzip.compress(body[:999]) + gzip.compress(body[999:]),
        3: bytes(lz4.finish()),
        4: bytes(cramjam.zstd.compress(body, level=19)),
    }
    for codec, compressed in bodies.items():
        header = bytearray(plain[:HEADER])
        struct.pack_into(">i", header, 8, len(compressed) + HEADER - 12)
        blob = stored(bytes(header) + compressed, 0, codec)
        assert read_batches(blob, 0, True, []) == (40, by_aiokafka(blob, 0, [], True)[1], [])


@pytest.mark.parametrize("check_crcs", [True, False])
def test_damaged_bytes_are_skipped_and_never_panic(check_crcs: bool) -> None:
    """With checksums only whole batches are read, each as it was written."""
    dice = random.Random(3)
    texts: list[Value] = [b"0123456789" * 20, b"x", None, b'{"ts":1}' * 30]
    batches = [
        Batch([10 * i + j for j in range(4)], texts, codec, TRANSACTIONAL * (i % 2), 7 * (i % 2))
        for i, codec in enumerate((*CODECS.values(), *CODECS.values()))
    ]
    built = [b.build() for b in batches]
    blob = b"".join(built)
    written = {offset: (t, v) for offset, t, v in by_aiokafka(blob, 0, [], True)[1]}
    damaged_blobs = 0
    for _ in range(3000):
        damaged = bytearray(blob)
        for _ in range(dice.choice((1, 1, 3))):
            at = dice.randrange(len(damaged))
            if dice.random() < 0.8:
                damaged[at] ^= 1 << dice.randrange(8)
            else:
                del damaged[at : at + dice.randrange(1, 30)]
        try:
            next_offset, records, skipped = read_batches(bytes(damaged), 0, check_crcs, [])
        except ValueError:
            continue
        assert next_offset >= 0
        damaged_blobs += bool(skipped)
        assert all(first <= end for first, end, _ in skipped)
        if check_crcs and records and next_offset <= batches[-1].next_offset:
            # Base offsets and lengths have no checksum: whole batches may move.
            assert {v for *_, v in records} <= {v for _, v in written.values()}
    assert damaged_blobs > 1000


def test_the_ranges_that_are_lost() -> None:
    def batch(first: int) -> bytes:
        return Batch([first, first + 1], [b"a", b"b"]).build()

    bad = bytearray(batch(2))
    bad[-1] ^= 1
    blob = batch(0) + bytes(bad) + batch(4)
    next_offset, records, skipped = read_batches(blob, 0, True, [])
    assert (next_offset, [r[0] for r in records], skipped) == (6, [0, 1, 4, 5], [(2, 4, "crc")])
    large = Batch(list(range(100)), [b"x" * 100_000] * 100, CODECS["zstd"]).build()
    assert len(large) < 10_000
    assert read_batches(large, 3, True, [], True, 1_000_000) == (100, [], [(3, 100, "too_large")])


def test_older_formats_are_refused_by_name() -> None:
    old = bytearray(Batch([0], [b"a"]).build())
    old[16] = 1
    with pytest.raises(ValueError, match="format 1"):
        read_batches(bytes(old), 0, True, [])
