"""Bounded dimension values: the outcome does not depend on the order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config import Dimension
from streamer.decode import Interner
from streamer.engine.segments import OTHER, Segments

DIMENSIONS = (Dimension(name="variant", values=("A", "B"), max_values=3), Dimension(name="x"))
ROW = st.tuples(
    st.sampled_from(["A", "B", None, "unknown", *(f"v{i}" for i in range(9))]),
    st.sampled_from([None, "p", "q"]),
)
ROWS = st.lists(ROW, min_size=1, max_size=60)


def feed(segments: Segments, rows: Sequence[tuple[str | None, ...]], batch: int) -> np.ndarray:
    """The present segment of every row."""
    interner = Interner()
    found: list[int] = []
    for start in range(0, len(rows), batch):
        codes = [interner.add(row) for row in rows[start : start + batch]]
        local = np.array(codes, np.int32)
        numbers = segments.of(interner, local, local)
        moves = segments.take_moves()
        if moves is not None:
            found = [int(moves[i]) for i in found]
            numbers = moves[numbers]
        found += numbers.tolist()
    return np.array(found)


def expected(rows: Sequence[tuple[str | None, ...]]) -> tuple[list[tuple[str, ...]], set[str]]:
    """The segment of each row, and the values kept: the smallest hashes."""
    values = {v for v, _ in rows if v not in (None, "unknown", "A", "B")}
    kept = set(sorted(values, key=lambda v: xxhash.xxh3_64_intdigest(str(v).encode()))[:3])

    def shown(v: str | None) -> str:
        if v is None or v == "unknown":
            return "unknown"
        return v if v in {"A", "B"} | kept else "other"

    return [(shown(v), "unknown" if x is None else x) for v, x in rows], {str(v) for v in kept}


@given(ROWS, st.sampled_from([1, 4, 100]))
@settings(max_examples=150, deadline=None)
def test_the_smallest_hashes_are_kept(rows: Sequence[tuple[str | None, ...]], batch: int) -> None:
    segments = Segments(DIMENSIONS, 1000)
    numbers = feed(segments, rows, batch)
    texts = segments.texts()
    wanted, kept = expected(rows)
    assert [texts[i] for i in numbers.tolist()] == wanted
    assert set(segments.values[0].hashes) == kept
    capped = sum(v == "other" for v, _ in wanted)
    assert [v.capped for v in segments.values] == [capped, 0]
    # No two segments of one meaning are in use.
    assert len({texts[i] for i in numbers.tolist()}) == len(set(numbers.tolist()))


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_the_order_does_not_matter(rows: list[tuple[str | None, ...]], dice: object) -> None:
    shuffled = list(rows)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    results = []
    for log, batch in ((rows, 7), (shuffled, 3)):
        segments = Segments(DIMENSIONS, 1000)
        numbers = feed(segments, log, batch)
        texts = segments.texts()
        kept = [(v.kept, v.capped) for v in segments.values]
        results.append((Counter(texts[i] for i in numbers.tolist()), kept))
    assert results[0] == results[1]


@given(ROWS, ROWS)
@settings(max_examples=80, deadline=None)
def test_a_dump_goes_on_where_it_was(
    rows: list[tuple[str | None, ...]], more: list[tuple[str | None, ...]]
) -> None:
    old = Segments(DIMENSIONS, 1000)
    feed(old, rows, 5)
    loaded = Segments(DIMENSIONS, 1000)
    moves = loaded.load(old.dump())
    texts = old.texts()
    assert [loaded.texts()[i] for i in moves.tolist()] == texts
    results = []
    for segments in (old, loaded):
        numbers = feed(segments, more, 4)
        results.append([segments.texts()[i] for i in numbers.tolist()])
        assert [v.kept for v in segments.values] == [v.kept for v in old.values]
        assert [v.capped for v in segments.values] == [v.capped for v in old.values]
    assert results[0] == results[1]


def test_only_accepted_events_count() -> None:
    segments, interner = Segments(DIMENSIONS, 1000), Interner()
    rows = [("v1", None), ("v2", None), ("v1", None)]
    codes = np.array([interner.add(row) for row in rows], np.int32)
    numbers = segments.of(interner, codes, codes[:1])
    assert numbers.tolist() == [0, -1, 0]
    assert segments.values[0].kept == ["v1"]


def test_max_values_0_keeps_named_values_only() -> None:
    segments = Segments((Dimension(name="v", values=("A",), max_values=0),), 1000)
    feed(segments, [("A",), ("z",), (None,), ("z",)], 2)
    assert sorted(segments.texts()) == [("A",), ("other",), ("unknown",)]
    assert segments.values[0].capped == 2


def test_feedback_inherits_what_it_lacks() -> None:
    segments = Segments(DIMENSIONS, 1000)
    rows = [("A", "p"), (None, "q"), ("B", None), (None, None)]
    at = feed(segments, rows, 10)
    assert segments.is_complete(at).tolist() == [True, False, False, False]
    filled = segments.filled(at[[1, 2, 3, 0]], at[[0, 0, 0, 1]])
    texts = segments.texts()
    assert [texts[i] for i in filled.tolist()] == [("A", "q"), ("B", "p"), ("A", "p"), ("A", "p")]


def test_beyond_the_bound_of_segments_all_is_other() -> None:
    segments = Segments(DIMENSIONS, 2)
    numbers = feed(segments, [("A", "p"), ("A", "q"), ("B", "p"), ("B", "q"), ("A", "p")], 1)
    texts = segments.texts()
    other = ("other", "other")
    assert [texts[i] for i in numbers.tolist()] == [
        ("A", "p"),
        ("A", "q"),
        other,
        other,
        ("A", "p"),
    ]
    assert segments.overflowed > 0


def test_without_dimensions_there_is_one_segment() -> None:
    segments = Segments((), 10)
    assert feed(segments, [(), (), ()], 2).tolist() == [0, 0, 0]
    assert segments.texts() == [()]
    assert segments.is_complete(np.array([0, 0])).tolist() == [True, True]


@pytest.mark.parametrize("value", ["other", "unknown"])
def test_reserved_texts_have_codes_of_their_own(value: str) -> None:
    values = Segments(DIMENSIONS, 10).values[0]
    assert values.texts.index(value) <= OTHER
