"""JSON whose values are not one a line: each value is a line, whatever the blocks are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from streamer.settings import limits
from streamer.sources.lines import split_values


def cut(text: bytes, dice: Random) -> Iterator[bytes]:
    while text:
        n = dice.randint(1, 9)
        yield text[:n]
        text = text[n:]


def values_of(text: bytes, seed: int) -> list[bytes]:
    return [line for lines in split_values(cut(text, Random(seed))) for line in lines]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("indent", [None, 2])
def test_values_are_those_that_json_reads(seed: int, indent: int | None) -> None:
    values = [{"a": 'x"]}\\', "é": [1, {"b": None}]}, [[1], 2], 12, -1.5e3, "t\n,", True, {}, 7]
    array = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    apart = b"\n".join(json.dumps(v, indent=indent).encode() for v in values)
    for text in (array, array + b"\n", b" \n" + array, apart, apart + b"\n\n"):
        assert [json.loads(line) for line in values_of(text, seed)] == values
        assert not any(b"\n" in line for line in values_of(text, seed))


@pytest.mark.parametrize("seed", range(5))
def test_arrays_may_follow_each_other(seed: int) -> None:
    text = b'[{"a": 1}, [2]]\n[[3], {"b": 4}] [ ]\n\n[5]'
    found = [json.loads(line) for line in values_of(text, seed)]
    assert found == [{"a": 1}, [2], [3], {"b": 4}, 5]


def test_after_what_is_no_value_lines_are_those_of_the_text() -> None:
    text = b'[{"a": 1},\n{"b" 2},\n{"c": 3}\n'
    assert values_of(text, 1) == [b'{"a": 1}', b'{"b" 2},', b'{"c": 3}']
    assert values_of(b'[{"a": "\xff"}, {"b": 1', 1) == [b'{"a": "\xff"}', b'{"b": 1']
    assert values_of(b"[]", 1) == values_of(b" [ ]\n", 1) == values_of(b"", 1) == []


def test_a_value_that_has_no_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 20)
    text = b'[{"a": 1}, {"long": "' + b"x" * 100 + b'\n{"b": 2}\n'
    found = values_of(text, 2)
    assert found[0] == b'{"a": 1}'
    assert all(len(line) <= 20 for line in found)
    assert found[-1] == b'{"b": 2}'
