"""Chunks: of records with gaps between their offsets, and of raw batches."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streamer.kafka.chunk import Batches, Records, chunk_of
from streamer.kafka.raw_batches import RawBatches


class Fetched(NamedTuple):
    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@pytest.mark.parametrize("offsets", [(5,), (5, 6, 7), (5, 9, 10), (0, 2)])
def test_a_chunk_of_records(offsets: tuple[int, ...]) -> None:
    made = chunk_of("c", 3, 1, "clicks", [Fetched(o, 10 * o, b"%d" % o) for o in offsets])
    assert (made.topic, made.partition, made.epoch, made.log) == ("c", 3, 1, "clicks")
    assert (len(made), made.first_ms) == (len(offsets), 10 * offsets[0])
    assert made.end_offset == offsets[-1] + 1
    assert isinstance(made.content, Records)
    assert made.content.offset.tolist() == list(offsets)
    assert made.content.record_ms.tolist() == [10 * o for o in offsets]
    assert made.content.values == [b"%d" % o for o in offsets]


def test_a_chunk_of_raw_batches() -> None:
    made = chunk_of("c", 3, 1, "clicks", [RawBatches(b"data", [(7, 5)], 12, 50, 20)])
    assert (len(made), made.first_ms, made.end_offset, made.log) == (12, 50, 20, "clicks")
    assert made.content == Batches("clicks", b"data", [(7, 5)], 12)
