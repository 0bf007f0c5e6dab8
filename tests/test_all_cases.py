"""A law that is held for all cases of a list, and the bound of cases that a test may have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from pytest_timeout import PYTEST_FAILURE_MESSAGE

from tests.conftest import TOO_MANY, pytest_collection_modifyitems
from tests.support.all_cases import IN_FULL, LINES, MOST_CASES, hold_for_all, too_many_cases


def is_even(number: int) -> None:
    """It breaks in each way that a law may."""
    if number == 3:
        raise KeyError("three")
    if number == 5:
        pytest.fail("five\nis odd")
    if number == 7:
        with pytest.raises(ValueError, match="odd"):
            int("7")
    assert number % 2 == 0


def test_all_offenders_are_named_with_what_they_say() -> None:
    with pytest.raises(AssertionError) as caught:
        hold_for_all(range(10), is_even, lambda number: f"number {number}")
    head, *lines = str(caught.value).splitlines()
    assert head == "5 of 10 cases break the law:"
    assert sum(line.startswith("- number ") for line in lines) == 5
    text = "\n".join(lines)
    for part in (
        *("- number 1: test_all_cases.py:", "AssertionError: assert (1 % 2) == 0"),
        *("- number 3: ", "KeyError: 'three'", "- number 5: ", "Failed: five\n    is odd"),
        *("- number 7: ", "DID NOT RAISE", "- number 9: "),
    ):
        assert part in text
    assert isinstance(caught.value.__cause__, AssertionError)


def test_many_offenders_are_named_and_long_messages_are_cut() -> None:
    def law(number: int) -> None:
        raise ValueError("\n".join(["x" * 1000] * 100))

    with pytest.raises(AssertionError) as caught:
        hold_for_all(range(100), law, lambda number: f"<{number}>")
    text = str(caught.value)
    assert all(f"- <{number}>" in text for number in range(100))
    assert text.count("ValueError") == IN_FULL
    assert text.count("\n") == 100 + IN_FULL * (LINES - 1)
    assert len(text) < 1000 * IN_FULL * LINES / 2


def test_a_law_that_holds_says_nothing() -> None:
    hold_for_all(range(0, 10, 2), is_even, at_least=5)


@pytest.mark.parametrize(("numbers", "at_least"), [([], 1), ([2, 4], 3)])
def test_too_few_cases_fail(numbers: list[int], at_least: int) -> None:
    with pytest.raises(AssertionError, match=f"{len(numbers)} cases, where .* {at_least} or more"):
        hold_for_all(numbers, is_even, at_least=at_least)


def test_a_law_that_answers_instead_of_asserting_fails() -> None:
    with pytest.raises(AssertionError, match=r"2 of 2 .*\n.* a law asserts"):
        hold_for_all([1, 2], lambda number: number % 2 == 0)  # type: ignore[arg-type]


def test_a_time_out_ends_the_test_at_once() -> None:
    seen: list[int] = []

    def law(number: int) -> None:
        seen.append(number)
        assert number != 1
        if number == 3:
            pytest.fail(PYTEST_FAILURE_MESSAGE % 120)

    with pytest.raises(AssertionError, match=r"2 of 4 .*\n- 1: .*\n- 3: .*Timeout \(>120s\)"):
        hold_for_all(range(10), law)
    assert seen == [0, 1, 2, 3]


def test_no_test_of_this_run_has_too_many_cases(pytestconfig: pytest.Config) -> None:
    many = pytestconfig.stash[TOO_MANY]
    advice = "hold the law for all cases in one test: tests/support/all_cases.py"
    assert not many, f"{', '.join(many)}, where {MOST_CASES} is the most: {advice}"


def test_a_test_of_too_many_cases_is_noticed() -> None:
    names = [f"tests/test_x.py::test_y[{i}]" for i in range(MOST_CASES)]
    assert too_many_cases([*names, "tests/test_x.py::test_z"]) == []
    many = ["tests/test_x.py::test_y has 51 cases"]
    assert too_many_cases([*names, "tests/test_x.py::test_y[more]"]) == many


def test_all_that_is_collected_is_looked_at(request: pytest.FixtureRequest) -> None:
    """Also what the short lane leaves out afterwards."""
    items = [request.node] * (MOST_CASES + 1)
    config = SimpleNamespace(stash={}, option=request.config.option, hook=request.config.hook)
    pytest_collection_modifyitems(cast(pytest.Config, config), items)
    assert config.stash[TOO_MANY] == [f"{request.node.nodeid} has 51 cases"]
