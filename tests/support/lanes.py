"""Two lanes of tests: the short one (``make test``) and everything (``make test-all``).

A test that the short lane leaves out has the mark ``long``; a test that does more in the long one
takes its sizes from ``sized``.
"""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

IS_ALL = os.environ.get("STREAMER_TESTS") == "all"
long = pytest.mark.long


def sized(short: T, whole: T) -> T:
    """The size of a test in the short lane, or in the whole suite."""
    return whole if IS_ALL else short


def shortened(cases: list[T], kept: int = 1) -> list[object]:
    """Cases of a parametrized test, of which the short lane runs the first ones."""
    return [
        case
        if i < kept
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long)
        for i, case in enumerate(cases)
    ]
