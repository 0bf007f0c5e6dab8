"""Rows of Arrow tables as lines, against an obvious slow recomputation with pyarrow and msgspec."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamer._core import TableRows
from streamer.errors import SourceError
from streamer.settings import limits
from streamer.sources.tables import lines_of_table
from tests.support.all_cases import hold_for_all

SEEDS = range(60)
EPOCH = datetime.datetime(1970, 1, 1)
UNITS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTEGERS = [*SIGNED, pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]
DECIMALS = [pa.decimal128(20, 3), pa.decimal128(5, -2), pa.decimal256(60, 40), pa.decimal32(9, 9)]
TIMES = [
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin")),
    *(pa.duration(unit) for unit in UNITS),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
]
SCALARS = [pa.null(), pa.bool_(), *INTEGERS, *FLOATS, *TEXTS, *BYTES, *DECIMALS, *TIMES]


def random_type(dice: Random, depth: int = 0) -> Any:
    """A type, nested at most twice."""
    if depth == 2 or dice.random() < 0.5:
        return dice.choice(SCALARS)
    inner = random_type(dice, depth + 1)
    fields = [(name, random_type(dice, depth + 1)) for name in ("a", 'b"é')]
    return dice.choice(
        [
            *(pa.list_(inner), pa.large_list(inner), pa.list_(inner, 2)),
            *(pa.list_view(inner), pa.large_list_view(inner)),
            *(pa.struct(fields), pa.map_(dice.choice([pa.string(), pa.int32()]), inner)),
        ]
    )


def random_value(kind: Any, dice: Random) -> Any:
    """A value as ``pyarrow.array`` takes it; one of ten is null."""
    if dice.random() < 0.1 or pa.types.is_null(kind):
        return None
    if pa.types.is_map(kind):
        keys = dice.sample(range(9), dice.randint(0, 3))
        texts = [key if pa.types.is_integer(kind.key_type) else f'k"{key}' for key in keys]
        return [(key, random_value(kind.item_type, dice)) for key in texts]
    if pa.types.is_struct(kind):
        return {field.name: random_value(field.type, dice) for field in kind}
    if hasattr(kind, "value_type"):
        n = kind.list_size if pa.types.is_fixed_size_list(kind) else dice.randint(0, 3)
        return [random_value(kind.value_type, dice) for _ in range(n)]
    if kind in TIMES:
        return random_time(kind, dice)
    if kind in DECIMALS:
        unscaled = dice.choice([0, -7, dice.randint(-(10**5) + 1, 10**5 - 1)])
        return Decimal(unscaled).scaleb(-kind.scale)
    return random_plain(kind, dice)


def random_plain(kind: Any, dice: Random) -> Any:
    if pa.types.is_boolean(kind):
        return dice.random() < 0.5
    if pa.types.is_integer(kind):
        low = 0 if kind in INTEGERS[4:] else -(2 ** (kind.bit_width - 1))
        return dice.choice([low, low + 2**kind.bit_width - 1, dice.randint(0, 100)])
    if pa.types.is_floating(kind):
        found = dice.choice([0.0, -0.0, 1.0, 0.1, -2.5, 1e4, math.nan, math.inf, dice.random()])
        return np.float16(found) if pa.types.is_float16(kind) else found
    if kind in TEXTS:
        return dice.choice(["", "plain", 'é"\\\n\x01\u2028😀', "a text that is longer than a view"])
    texts = [b"abc", b"\xff\xfe\x00", "é1".encode()]
    return dice.choice(texts if kind == pa.binary(3) else [*texts, b"", b"longer than a view \xff"])


def random_time(kind: Any, dice: Random) -> Any:
    """The number that a time is, as pyarrow reads it for the type."""
    if kind == pa.date32():
        return dice.randint(-30_000, 60_000)
    if kind == pa.date64():
        return dice.randint(-30_000, 60_000) * 86_400_000
    per_second = UNITS[kind.unit]
    seconds = 86_399 if pa.types.is_time(kind) else dice.choice([5, 86_400, 4 * 10**9])
    lowest = 0 if pa.types.is_time(kind) else -min(seconds, 2 * 10**9)
    at = dice.randint(lowest, seconds) * per_second
    return at if dice.random() < 0.3 else at + dice.randrange(per_second)


def slow(value: Any, kind: Any) -> Any:
    """What a value of an array is in JSON; numbers are decimals."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(k): slow(v, kind.item_type) for k, v in value}
    if pa.types.is_struct(kind):
        return {field.name: slow(value[field.name], field.type) for field in kind}
    if hasattr(kind, "value_type"):
        return [slow(each, kind.value_type) for each in value]
    if kind in TIMES:
        return slow_time(value, kind)
    if isinstance(value, float | np.floating):
        value = float(np.float32(value) if pa.types.is_float32(kind) else value)
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def slow_time(value: int, kind: Any) -> str:
    """The text of a time, given its number."""
    if pa.types.is_date(kind):
        days = value if kind == pa.date32() else value // 86_400_000
        return (EPOCH + datetime.timedelta(days)).date().isoformat()
    span = datetime.timedelta(microseconds=value * 10**6 // UNITS[kind.unit])
    if pa.types.is_time(kind):
        return (EPOCH + span).time().isoformat()
    if pa.types.is_timestamp(kind):
        return (EPOCH + span).isoformat() + ("Z" if kind.tz else "")
    sign, span = ("-", -span) if span < datetime.timedelta() else ("", span)
    seconds = f"{span.seconds}.{span.microseconds:06}".rstrip("0").rstrip(".")
    if seconds == "0":
        return f"{sign}P{span.days}D"
    return f"{sign}P{f'{span.days}D' if span.days else ''}T{seconds}S"


def array_of(values: list[Any], kind: Any) -> Any:
    """An array; times are numbers at any depth, which only plain arrays take."""
    return pa.array(values, plain(kind)).cast(kind) if kind in TIMES else built(values, kind)


def built(values: list[Any], kind: Any) -> Any:
    """A nested array, from arrays of what is in it."""
    mask = pa.array([value is None for value in values])
    if pa.types.is_struct(kind):
        columns = [
            array_of([None if v is None else v[field.name] for v in values], field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        pairs = [pair for value in values for pair in value or ()]
        keys = pa.array([k for k, _ in pairs], kind.key_type)
        items = array_of([v for _, v in pairs], kind.item_type)
        return pa.MapArray.from_arrays(offsets_of(values, pa.int32()), keys, items)
    if not hasattr(kind, "value_type"):
        return pa.array(values, kind)
    if pa.types.is_fixed_size_list(kind):
        inner = [x for value in values for x in value or [None] * kind.list_size]
        return pa.FixedSizeListArray.from_arrays(
            array_of(inner, kind.value_type), kind.list_size, mask=mask
        )
    inner = array_of([x for value in values for x in value or ()], kind.value_type)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(offsets_of(values, pa.int32()), inner)
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets_of(values, pa.int64()), inner)
    is_large = pa.types.is_large_list_view(kind)
    of, whole = (pa.LargeListViewArray, pa.int64()) if is_large else (pa.ListViewArray, pa.int32())
    sizes = pa.array([len(value or ()) for value in values], whole)
    offsets = offsets_of(values, whole).slice(0, len(values)).fill_null(0)
    return of.from_arrays(offsets, sizes, inner, mask=mask)


def offsets_of(values: list[Any], kind: Any) -> Any:
    """Where each list begins, null of those that are none."""
    offsets, at = [], 0
    for value in values:
        offsets.append(None if value is None else at)
        at += len(value or ())
    return pa.array([*offsets, at], kind)


def plain(kind: Any) -> Any:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def lines_of(table: Any) -> list[bytes]:
    return [line for lines in TableRows(table, limits.MAX_LINE_BYTES) for line in lines]


def read(line: bytes) -> Any:
    return json.loads(line, parse_float=Decimal, parse_int=Decimal)


def encoded(array: Any, dice: Random) -> Any:
    """The same values, at times as a dictionary or in runs."""
    if array.type not in (*INTEGERS, *TEXTS[:2], *BYTES[:2]):
        return array
    ends = pa.array(range(1, len(array) + 1), dice.choice(SIGNED[1:]))
    dictionary = array.dictionary_encode()
    keys = dictionary.indices.cast(dice.choice(INTEGERS))
    return dice.choice(
        [
            array,
            pa.DictionaryArray.from_arrays(keys, dictionary.dictionary),
            pa.RunEndEncodedArray.from_arrays(ends, array),
        ]
    )


def rows_are_recomputed(seed: int) -> None:
    dice = Random(seed)
    n = dice.randint(1, 40)
    types = [random_type(dice) for _ in range(8)]
    columns = [[random_value(kind, dice) for _ in range(n)] for kind in types]
    arrays = [encoded(array_of(c, kind), dice) for c, kind in zip(columns, types, strict=True)]
    names = [f"column {i}" for i in range(8)]
    table = pa.Table.from_arrays(arrays, names)
    cut = dice.randint(0, n)
    expected = [
        {
            name: slow(values[row], kind)
            for name, kind, values in zip(names, types, columns, strict=True)
            if values[row] is not None
        }
        for row in range(n)
    ]
    assert [read(line) for line in lines_of(table)] == expected
    assert [read(line) for line in lines_of(table.slice(cut))] == expected[cut:]
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert [read(line) for line in lines_of(parts)] == expected


def test_rows_are_those_of_a_slow_recomputation() -> None:
    hold_for_all(SEEDS, rows_are_recomputed, "seed {}".format)


def test_all_types_are_among_them() -> None:
    found: set[Any] = set()
    for seed in SEEDS:
        dice = Random(seed)
        dice.randint(1, 40)
        found |= {scalar for _ in range(8) for scalar in scalars_in(random_type(dice))}
    assert set(SCALARS) <= found


def scalars_in(kind: Any) -> Iterator[Any]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from scalars_in(field.type)
    elif pa.types.is_map(kind):
        yield from scalars_in(kind.item_type)
    elif hasattr(kind, "value_type"):
        yield from scalars_in(kind.value_type)
    else:
        yield kind


def test_times_that_no_calendar_of_python_has_are_written() -> None:
    table = pa.table({"at": pa.array([2**62, -(2**62)], pa.timestamp("s", "UTC"))})
    assert all(read(line)["at"].endswith("Z") for line in lines_of(table))
    assert len(lines_of(table)) == 2


def test_a_text_that_is_not_utf_8_is_base64() -> None:
    offsets = pa.py_buffer(np.array([0, 2], np.int32))
    text = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff\xfe"))
    assert lines_of(pa.table({"a": text})) == [b'{"a":"//4="}']


def test_lines_come_in_lists_of_bounded_size_and_are_cut() -> None:
    table = pa.table({"a": pa.array(["x" * 100]).take(pa.array([0] * 100_000))})
    sizes = [len(lines) for lines in TableRows(table, 50)]
    assert sum(sizes) == 100_000
    assert max(sizes) == 4096
    assert {len(line) for lines in TableRows(table, 50) for line in lines} == {50}
    long = pa.table({"a": ["x" * 300_000] * 9})
    assert [len(lines) for lines in TableRows(long, 10**6)] == [4, 4, 1]
    assert list(TableRows(table.slice(0, 0), 50)) == []


def test_what_cannot_be_read_says_so() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(SourceError, match=r"column 'u' has the type Union.*cast it.*; at table"):
        list(lines_of_table(pa.table({"u": union}), "table"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(SourceError, match="two columns are called 'a': rename one; at table"):
        list(lines_of_table(twice, "table"))
    with pytest.raises(TypeError, match="list is no table"):
        TableRows([], 1)
