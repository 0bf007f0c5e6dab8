"""Raw bytes → JSON object, or the reason why not: before any field is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_RECORD_BYTES = 1_000_000
MAX_DEPTH = 64


class BrokenError(Exception):
    """The record is a reject; the argument is the reason."""


def broken(reason: str) -> NoReturn:
    raise BrokenError(reason)


def parse(raw: bytes | None) -> Object:
    """The JSON object of a record."""
    if raw is None:
        broken("ignored")
    if len(raw) > MAX_RECORD_BYTES:
        broken("too_large")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=Object,
            parse_int=Whole,
            parse_float=Decimals,
            parse_constant=lambda name: broken("json"),
        )
    except ValueError:
        broken("json")
    except RecursionError:
        broken("too_deep")
    if not isinstance(value, Object):
        broken("object")
    if b"\\u" in raw and any(is_no_text(part) for part, _ in parts(value)):  # UTF-8 has no such
        broken("json")
    return value


class Object(dict[str, Any]):
    """An object; of a name that is said more than once the last value counts."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class Whole(int):
    """An integer, with its text; Python refuses to read thousands of digits, and the bounds are
    below 2**54."""

    text: str

    def __new__(cls, text: str) -> Whole:
        made = super().__new__(cls, text if len(text) < 1000 else text[0] + "9" * 999)
        made.text = text
        return made


class Decimals(float):
    """Another number, with its text."""

    text: str

    def __new__(cls, text: str) -> Decimals:
        made = super().__new__(cls, text)
        made.text = text
        return made


def is_no_text(value: Any) -> bool:
    """True for a text with lone surrogates, which is no Unicode text."""
    return isinstance(value, str) and any(0xD800 <= ord(c) <= 0xDFFF for c in value)


def parts(value: Any) -> Iterator[tuple[Any, int]]:
    """A value and all that is in it, names too, each with its depth: a bare object has 1."""
    waiting = [(value, 1)]
    while waiting:
        part, level = waiting.pop()
        yield part, level
        if isinstance(part, Object):
            waiting += [(x, level + 1) for pair in part.pairs for x in pair]
        elif isinstance(part, list):
            waiting += [(x, level + 1) for x in part]


def depth(value: Any) -> int:
    """Nesting of objects and lists; a bare object is 1."""
    return max(level for part, level in parts(value) if isinstance(part, dict | list))
