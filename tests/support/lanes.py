"""Two lanes of tests: the short one (``make test``) and everything (``make test-all``).

A test that the short lane leaves out has the mark ``long``; a test that does more in the long one
takes its sizes from ``sized``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")

IS_ALL = os.environ.get("STREAMER_TESTS") == "all"
long = pytest.mark.long


def sized(short: T, whole: T) -> T:
    """The size of a test in the short lane, or in the whole suite."""
    return whole if IS_ALL else short


def left_to_others(items: Iterable[pytest.Item], settings: Collection[str]) -> set[pytest.Item]:
    """Cases that the short lane leaves to other tests: of a test of many settings it runs two,
    which ones its name says. ``settings``: their names."""
    cases = defaultdict[str, dict[str, list[pytest.Item]]](lambda: defaultdict(list))
    for item in items:
        of = getattr(item, "callspec", None)
        names = [] if of is None else [x for x in map(str, of.params.values()) if x in settings]
        if names:
            cases[item.nodeid.partition("[")[0]][names[0]].append(item)
    left = set[pytest.Item]()
    for test, by_name in cases.items():
        names = list(by_name)
        first = crc32(test.encode()) % len(names)
        for name in [*names, *names][first + 2 : first + len(names)]:
            left.update(by_name[name])
    return left


def shortened(cases: list[T], kept: int = 1) -> list[object]:
    """Cases of a parametrized test, of which the short lane runs the first ones."""
    return [
        case
        if i < kept
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long)
        for i, case in enumerate(cases)
    ]
