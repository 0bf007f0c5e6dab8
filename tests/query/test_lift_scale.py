"""Scales of lifts: everything that has to be on them is, and their marks are round and distinct."""

from __future__ import annotations

import datetime
import re

from hypothesis import given
from hypothesis import strategies as st

from streamer.query.lift_scale import LiftScale, course
from streamer.query.scorecard import DailyLift
from streamer.query.shown_lift import ShownLift
from streamer.stats.experiments.verdict import Scale

numbers = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 6))
ROUND = re.compile(r"[+−][\d,]+(\.\d+)?%|0%")


@st.composite
def lifts(draw: st.DrawFn) -> ShownLift:
    value = draw(numbers)
    if draw(st.booleans()):
        return ShownLift(Scale.RELATIVE, "", "", "", value)
    low, high = sorted((draw(numbers), draw(numbers)))
    limit = draw(st.none() | st.sampled_from((-0.5, 0.02)))
    return ShownLift(Scale.RELATIVE, "", "", "", min(max(value, low), high), low, high, limit)


@given(st.lists(lifts(), max_size=8), st.lists(lifts(), max_size=2))
def test_a_scale_holds_what_it_has_to(some: list[ShownLift], whole: list[ShownLift]) -> None:
    scale = LiftScale.of([*some, *whole], whole)
    assert scale.low < 0 < scale.high or (not some and not whole)
    for lift in (*some, *whole):
        assert not lift.is_drawn or scale.low <= (lift.value or 0) <= scale.high
    for lift in whole:
        bar = scale.bar(lift)
        assert bar is None or not (bar.is_cut_low or bar.is_cut_high)
    for lift in some:
        if (bar := scale.bar(lift)) is None:
            assert lift.low is None
            continue
        assert 0 <= bar.left <= bar.dot + 0.01 <= bar.left + bar.width + 0.02
        assert bar.left + bar.width <= 100.51
        assert bar.is_cut_low == (lift.low is not None and lift.low < scale.low)


@given(st.lists(lifts(), max_size=8))
def test_marks_of_a_scale_are_round_distinct_and_have_0(some: list[ShownLift]) -> None:
    ticks = LiftScale.of(some).ticks()
    assert [tick.text for tick in ticks if tick.is_zero] == ["0%"]
    assert len({tick.text for tick in ticks}) == len(ticks) <= 6
    assert sorted(tick.at for tick in ticks) == [tick.at for tick in ticks]
    assert all(ROUND.fullmatch(tick.text) for tick in ticks)


def daily(*values: tuple[float, float | None, float | None]) -> list[DailyLift]:
    first = datetime.date(2026, 11, 2)
    return [
        DailyLift(
            first + datetime.timedelta(days=i), {}, ShownLift(Scale.RELATIVE, "", "", "", *of)
        )
        for i, of in enumerate(values)
    ]


def test_one_day_is_no_course() -> None:
    assert course(daily((0.1, None, None)), None) is None


def test_a_course_has_a_band_where_there_are_intervals() -> None:
    drawn = course(daily((0.5, None, None), (0.2, -0.1, 0.5), (0.1, 0.0, 0.2)), None)
    assert drawn is not None
    assert [len(text.split()) for text in (drawn.early, drawn.line, drawn.band)] == [2, 2, 4]
    assert [tick.text for tick in drawn.days] == ["2 Nov", "3 Nov", "4 Nov"]
    assert [tick.text for tick in drawn.ticks if tick.is_zero] == ["0%"]


@given(st.lists(st.tuples(numbers, st.none(), st.none()), min_size=2, max_size=90))
def test_every_course_stays_within_its_picture(values: list[tuple[float, None, None]]) -> None:
    drawn = course(daily(*values), "percent")
    assert drawn is not None
    heights = [float(pair.split(",")[1]) for pair in f"{drawn.early} {drawn.line}".split()]
    assert all(0 <= height <= drawn.height for height in heights)
    assert len(drawn.days) <= 8


def test_a_course_shows_the_whole_range_of_every_day() -> None:
    drawn = course(daily((0.5, -0.9, 4.0), (0.2, -0.1, 0.5), (0.1, 0.0, 0.2)), None)
    assert drawn is not None
    heights = [float(point.split(",")[1]) for point in drawn.band.split()]
    assert 0 < min(heights) < 20
    assert drawn.height - 20 < max(heights) < drawn.height


def test_a_course_of_zeros_is_flat() -> None:
    drawn = course(daily((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), None)
    assert drawn is not None
    assert len({pair.split(",")[1] for pair in drawn.line.split()}) == 1
