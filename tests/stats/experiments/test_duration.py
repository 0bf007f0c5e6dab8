"""Days that a plan asks for: of users who are new, and of the same ones who come again."""

from __future__ import annotations

import pytest

from streamer.stats.experiments.duration import Duration, Durations, HalfTime, durations
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.sizing import Goal, Needed, needed
from streamer.stats.experiments.sums import ArmSums


def users(n: int, x: int) -> ArmSums:
    """Of whom ``x`` do it once."""
    return ArmSums(n, x, x, n, n, x, x)


def counts(n: int, mean: float) -> ArmSums:
    """Of users whose counts are Poisson's."""
    x = round(n * mean)
    return ArmSums(n, x, round(n * (mean + mean**2)), n, n, x, x)


def both(found: Durations | None) -> tuple[Duration, Duration]:
    assert found is not None
    assert found.fixed is not None
    assert found.anytime is not None
    return found.fixed, found.anytime


@pytest.mark.parametrize("arms", [2, 3])
def test_where_everybody_is_new_it_is_by_the_number_of_users(arms: int) -> None:
    """1,000 come on each day, of whom a fifth does it."""
    goal = Goal(0.1, arms=arms)
    its = needed(users(2000, 400), goal)
    assert isinstance(its, Needed)
    half = HalfTime(Growth(2, 2000, 4, 4000), users(1000, 200))
    found = both(durations(users(2000, 400), half, goal))
    for day, asked in zip(found, (its.fixed, its.anytime), strict=True):
        assert asked is not None
        total = asked * arms / 2
        assert total <= day.users + 1 < total + 1003
        assert day.users == 1000 * day.days
        assert day.new_users == day.users - 4000
        assert day.information == pytest.approx(1, abs=1e-3)
        assert day.new_ratio == pytest.approx(1 - 4000 / day.users, abs=1e-3)
        assert day.returning_ratio == pytest.approx(0, abs=1e-3)


def test_the_same_users_who_return_tell_more_from_day_to_day() -> None:
    """Nobody new comes: all that is known more comes of those who return."""
    half = HalfTime(Growth(3, 2000, 6, 2000), counts(2000, 0.3))
    fixed, anytime = both(durations(counts(2000, 0.6), half, Goal(0.1)))
    for day, seen in ((fixed, 2.8016), (anytime, 3.04 + 0.8416)):
        asked = 4 * (seen / 0.1) ** 2 / 0.1 / 2000  # 0.1 of a day, with the variance of its mean
        assert 0.99 * asked <= day.days < 1.02 * asked + 1
        assert (day.users, day.new_users, day.new_ratio) == (2000, 0, 0.0)
        assert day.information == pytest.approx(day.days / 6, rel=0.02)
        assert day.returning_ratio == pytest.approx(1 - 1 / day.information)


def test_a_day_before_the_last_that_is_known() -> None:
    half = HalfTime(Growth(20, 20_000, 40, 40_000), users(10_000, 5000))
    fixed, _ = both(durations(users(20_000, 10_000), half, Goal(0.2)))
    assert fixed.days < 5
    assert fixed.users == 1000 * fixed.days
    assert (fixed.new_users, fixed.new_ratio) == (0, 0.0)


def test_users_who_count_have_to_be_there() -> None:
    """A doubling of one in a thousand is found soon, but no interval is given before 100 each."""
    half = HalfTime(Growth(2, 20_000, 4, 40_000), users(10_000, 10))
    fixed, anytime = both(durations(users(20_000, 20), half, Goal(0.9, 0.5)))
    assert fixed.days < 5
    assert anytime.days == 20


@pytest.mark.parametrize("then", [ArmSums(), users(1, 1), users(50, 0), users(50, 50)])
def test_half_time_has_to_say_something(then: ArmSums) -> None:
    half = HalfTime(Growth(1, then.n, 2, 1000), then)
    assert durations(users(1000, 500), half, Goal(0.1)) is None


def test_what_is_never_there() -> None:
    half = HalfTime(Growth(3, 1000, 6, 1000), users(1000, 100))
    assert durations(users(1000, 100), half, Goal(0.01)) == Durations(None, None)
