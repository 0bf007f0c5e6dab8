"""One test that holds a law for every case of a list, where one test a case would be thousands."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

MOST_CASES = 50
"""As many may a parametrized test have."""
TESTS = str(Path(__file__).parents[1])
TIMED_OUT = "from pytest-timeout"
"""A failure with these words ends the whole test, whichever case it interrupts."""
IN_FULL, LINES, WIDTH = 20, 8, 300
"""Offenders whose messages are shown, lines of a message, and characters of a line."""


def hold_for_all(
    cases: Iterable[T],
    law: Callable[[T], None],
    name: Callable[[T], str] = str,
    at_least: int = 1,
) -> None:
    """A law holds for every case; the failure names each case that breaks it, and why."""
    __tracebackhide__ = True
    count = 0
    broken: list[tuple[str, BaseException]] = []
    for case in cases:
        count += 1
        try:
            answer: object = law(case)  # type: ignore[func-returns-value]
            assert answer is None, "a law asserts, and returns nothing"
        except (Exception, pytest.fail.Exception) as error:
            broken.append((cut(name(case)), error))
            if TIMED_OUT in str(error):
                break
    if broken:
        raise AssertionError(report(broken, count)) from broken[0][1]
    assert count >= at_least, f"{count} cases, where there are to be {at_least} or more"


def report(broken: list[tuple[str, BaseException]], count: int) -> str:
    """All offenders by name, the first ones with what they say."""
    lines = [f"{len(broken)} of {count} cases break the law:"]
    lines += [f"- {name}: {reason(error)}" for name, error in broken[:IN_FULL]]
    lines += [f"- {name}" for name, _ in broken[IN_FULL:]]
    return "\n".join(lines)


def reason(error: BaseException) -> str:
    """Where a test raised it, its kind, and the first lines of its message."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(TESTS)]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    first, *more = str(error).splitlines()[:LINES] or [""]
    return "\n    ".join([f"{place}{type(error).__name__}: {cut(first)}", *map(cut, more)])


def cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}…"


def too_many_cases(tests: Iterable[str]) -> list[str]:
    """Functions with more cases than they may have; ``tests`` are names as pytest gives them."""
    cases = Counter(test.partition("[")[0] for test in tests)
    return [f"{name} has {n} cases" for name, n in cases.items() if n > MOST_CASES]
