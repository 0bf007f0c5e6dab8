"""Chunks: offsets with and without gaps, and what is left of one after a seek into its middle."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streamer.chunk import Chunk


class Fetched(NamedTuple):
    offset: int
    timestamp: int
    value: bytes | None


def chunk(*offsets: int) -> Chunk:
    return Chunk("clicks", 3, 1, [Fetched(o, 10 * o, b"%d" % o) for o in offsets])


@pytest.mark.parametrize("offsets", [(5,), (5, 6, 7), (5, 9, 10), (0, 2)])
def test_columns_of_a_chunk(offsets: tuple[int, ...]) -> None:
    made = chunk(*offsets)
    assert len(made) == len(offsets)
    assert made.end_offset == offsets[-1] + 1
    assert made.offsets().tolist() == list(offsets)
    assert made.record_ms().tolist() == [10 * o for o in offsets]
    assert made.values() == [b"%d" % o for o in offsets]


def test_what_was_applied_before_is_left_out() -> None:
    made = chunk(5, 6, 9)
    assert made.without_before(5) is made
    rest = made.without_before(6)
    assert rest is not None
    assert rest.offsets().tolist() == [6, 9]
    assert (rest.topic, rest.partition, rest.epoch) == ("clicks", 3, 1)
    last = made.without_before(7)
    assert last is not None
    assert last.offsets().tolist() == [9]
    assert made.without_before(10) is None
