"""A change split into mix and rate: exact, whatever the segments are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.query.why import change_parts
from streamer.stats.alerting.explain import explain

Side = dict[str, tuple[int, int]]
sides = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(-(2**60), 2**60), st.integers(0, 2**60))
)


def total(side: Side) -> Fraction | None:
    y = sum(y for _, y in side.values())
    return Fraction(sum(x for x, _ in side.values()), y) if y else None


@given(sides, sides)
def test_parts_add_up_to_the_change_exactly(now: Side, then: Side) -> None:
    found = explain(now, then)
    assert (found.value_now, found.value_then) == (total(now), total(then))
    if found.value_now is None or found.value_then is None:
        assert (found.change, found.parts) == (None, ())
        return
    assert found.mix + found.rate == found.change == found.value_now - found.value_then
    assert sorted(part.segment for part in found.parts) == sorted({*now, *then})
    largest = [max(abs(part.mix), abs(part.rate)) for part in found.parts]
    assert largest == sorted(largest, reverse=True)


@given(sides, sides)
def test_there_and_back_is_nothing(now: Side, then: Side) -> None:
    there, back = explain(now, then), explain(then, now)
    moved = {part.segment: (part.mix, part.rate) for part in there.parts}
    assert {part.segment: (-part.mix, -part.rate) for part in back.parts} == moved


@given(sides, st.integers(1, 1000))
def test_traffic_that_grows_everywhere_alike_explains_nothing(then: Side, times: int) -> None:
    now = {segment: (x * times, y * times) for segment, (x, y) in then.items()}
    assert all(part.mix == part.rate == 0 for part in explain(now, then).parts)


def test_a_fall_by_traffic_alone_is_all_mix() -> None:
    then = {"home": (1000, 10_000), "feed": (100, 10_000)}
    now = {"home": (500, 5_000), "feed": (400, 40_000)}
    found = explain(now, then)
    assert found.change == found.mix == Fraction(-7, 200)
    assert found.rate == 0
    assert all(part.mix < 0 for part in found.parts)


def test_a_fall_of_one_segment_is_all_its_rate() -> None:
    then = {"home": (1000, 10_000), "feed": (100, 10_000)}
    now = {"home": (500, 10_000), "feed": (100, 10_000)}
    first, second = explain(now, then).parts
    assert (first.segment, first.rate) == ("home", Fraction(-1, 40))
    assert first.mix == second.mix == second.rate == 0


def test_simpson_s_paradox() -> None:
    """Every segment becomes better and the whole becomes worse."""
    then = {"home": (800, 10_000), "feed": (20, 1_000)}
    now = {"home": (90, 1_000), "feed": (250, 10_000)}
    found = explain(now, then)
    assert found.change is not None
    assert found.change < 0
    assert found.mix < 0 < found.rate
    for part in found.parts:
        assert part.rate_now is not None
        assert part.rate_then is not None
        assert part.rate_now > part.rate_then
        assert part.rate > 0


def test_a_segment_of_one_side_is_mix() -> None:
    found = explain({"old": (50, 1000), "new": (10, 1000)}, {"old": (50, 1000)})
    parts = {part.segment: part for part in found.parts}
    assert parts["new"].rate_then is None
    assert parts["new"].rate == found.rate == 0
    assert found.change == found.mix == Fraction(-1, 50)


def test_what_is_counted_without_traffic_is_rate() -> None:
    found = explain({"a": (10, 100), "late": (5, 0)}, {"a": (10, 100)})
    assert {part.segment: part.rate for part in found.parts} == {"late": Fraction(5, 100), "a": 0}
    assert found.mix == 0


def test_its_parts_are_in_units_of_the_metric() -> None:
    then, now = {"home": (800, 10_000)}, {"home": (90, 1_000), "feed": (0, 1_000)}
    found = change_parts(explain(now, then), 10.0)
    assert found.change == pytest.approx(10 * (90 / 2000 - 0.08))
    assert found.mix + found.rate == pytest.approx(found.change)
    (home,) = (part for part in found.segments if part.segment == "home")
    assert (home.share_then, home.share_now) == (1.0, 0.5)
    assert home.rate_then == pytest.approx(0.8)
    nothing = change_parts(explain({}, then), 1.0)
    assert (nothing.now, nothing.change, nothing.segments) == (None, None, [])


def test_traffic_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="y of 'home' is -1: must not be below 0"):
        explain({"home": (0, -1)}, {})
