"""Lines as columns: what they are one by one, and several sources as one."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain
from random import Random

import numpy as np

from streamer.sources.line_batch import NO_TOPIC, Line, LineBatch, merged
from tests.support.all_cases import hold_for_all

NAMES = ("impressions", "clicks")
LINES: list[Line] = [("clicks", 5, b"a"), (NO_TOPIC, 5, b""), ("impressions", 7, b"c")]


def test_lines_are_columns() -> None:
    batch = LineBatch.of(LINES, NAMES)
    assert batch.logs.tolist() == [1, -1, 0]
    assert list(batch) == LINES
    assert list(batch[1:]) == LINES[1:]
    record_ms, raws = batch.at(np.array([2, 0]))
    assert (record_ms.tolist(), raws) == ([7, 5], [b"c", b"a"])
    assert list(LineBatch.of([], NAMES)) == []


def random_source(dice: Random, name: int) -> list[LineBatch]:
    """Batches, some of them empty, of lines whose times are often the same."""
    times = sorted(dice.choices(range(30), k=dice.randint(0, 60)))
    lines: list[Line] = [
        (dice.choice((*NAMES, NO_TOPIC)), ms, b"%d %d" % (name, i)) for i, ms in enumerate(times)
    ]
    batches = []
    while lines:
        end = dice.randint(0, 9)
        batches.append(LineBatch.of(lines[:end], NAMES))
        lines = lines[end:]
    return batches


def random_sources_are_merged(seed: int) -> None:
    dice = Random(seed)
    sources = [random_source(dice, name) for name in range(dice.randint(1, 4))]
    lines = [chain.from_iterable(source) for source in sources]
    expected = list(heapq.merge(*lines, key=lambda line: line[1]))
    assert list(chain.from_iterable(merged(sources))) == expected


def test_sources_are_merged_by_time_the_first_named_first() -> None:
    hold_for_all(range(100), random_sources_are_merged, "seed {}".format)


def test_no_source_is_read_further_than_it_has_to_be() -> None:
    def source(until: int) -> Iterator[LineBatch]:
        for ms in range(until):
            read.append((until, ms))
            yield LineBatch.of([("clicks", ms, b"")], NAMES)

    read: list[tuple[int, int]] = []
    batches = merged([source(10**9), source(10**9 + 1)])
    next(batches)
    assert len(read) == 2
