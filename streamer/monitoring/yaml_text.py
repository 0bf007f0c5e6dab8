"""YAML of mappings, lists and scalars, as Prometheus and Grafana read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

NOTE = "# Written by streamer; do not edit.\n"
_PLAIN = re.compile(r"[A-Za-z_/][\w/.-]*|\d+(?:ms|[smhd])")
"""Words, paths and durations."""
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
"""Texts that YAML 1.1 takes for something else."""


def document(value: Mapping[str, object]) -> str:
    r"""The text of a file.

    >>> print(document({"a": [{"b": "1", "for": "10m"}, {"c": True, "d": {}}]}), end="")
    # Written by streamer; do not edit.
    a:
      - b: "1"
        for: 10m
      - c: true
        d: {}
    """
    return NOTE + "".join(f"{line}\n" for line in _lines(value))


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{_scalar(str(key))}:", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for inner in value:
            first, *rest = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, inner: object) -> Iterator[str]:
    if inner and isinstance(inner, Mapping | list | tuple):
        yield key
        yield from (f"  {line}" for line in _lines(inner))
    else:
        yield f"{key} {_scalar(inner)}"


def _scalar(value: object) -> str:
    """One that YAML reads as what it is: JSON, or a text without quotes where that is plain."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)
