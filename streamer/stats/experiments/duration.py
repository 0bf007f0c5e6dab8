"""How many days an experiment takes, before it starts: from what users did on some days of today.

The days of the experiment are taken to be like those: on its day d there are U(d) users, each of
whom tells w(d) (forecast.py), both carried on from half time and the end of the days that are
known. In arms of equal size the lift has, as in sizing.py, a variance of 4 v / N, with N users in
the two arms that are compared. The interval at any time is tuned to the users of the day on which
it finds the lift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from streamer.stats.experiments.forecast import Forecast, Growth, Precision, Sought, first_day
from streamer.stats.experiments.plan import Rule
from streamer.stats.experiments.ratio import ArmRatio, ratio
from streamer.stats.experiments.sizing import Goal, fixed, tuned
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.support import ANYTIME_NONZERO


@dataclass(frozen=True, slots=True)
class HalfTime:
    """``growth``: of all users since half of the days that are known; ``users``: the sums of those
    who are learned from, as they were then."""

    growth: Growth
    users: ArmSums


@dataclass(frozen=True, slots=True)
class Duration:
    """The whole days after which a lift is found. ``users``: in all arms by then; ``new_users``:
    how many more than there are now; ``information``: that of one of them, as a multiple of now."""

    days: int
    users: int
    new_users: int
    information: float

    @property
    def new_ratio(self) -> float:
        """Share of what is known by then that new users tell, each as much as one does now."""
        return self.new_users / (self.users * self.information)

    @property
    def returning_ratio(self) -> float:
        """Share of it that users tell by coming again after today."""
        return max(0.0, 1 - 1 / self.information)


@dataclass(frozen=True, slots=True)
class Durations:
    """At one look, and looking at any time; None: not in sight."""

    fixed: Duration | None
    anytime: Duration | None


def durations(users: ArmSums, half: HalfTime, goal: Goal) -> Durations | None:
    """The days that a lift of these users' metric takes, where ``sizing.needed`` has a number; None
    where nothing can be said of half time.

    >>> half, now = ArmSums.of([(1, 1), (0, 1)] * 250), ArmSums.of([(1, 1), (0, 1)] * 500)
    >>> found = durations(now, HalfTime(Growth(2, 500, 4, 1000), half), Goal(lift=0.1))
    >>> found.fixed.days, found.fixed.users  # everybody is new, and 3,143 users find it
    (13, 3250)
    >>> found.anytime.days, found.anytime.new_users  # 6,018
    (25, 5250)
    """
    then, now = ratio(half.users), ratio(users)
    if not (then.value and then.variance and now.value and now.variance):
        return None
    growth, share = half.growth, 2 / goal.arms
    forecast = Forecast(
        growth,
        _precision(then, share * growth.earlier_users),
        _precision(now, share * growth.users),
    )
    nonzero = Growth(growth.earlier_days, half.users.nonzero, growth.days, max(1, users.nonzero))
    effect, compared = goal.lift * float(now.value), share * growth.users
    once = Sought(effect, compared, fixed(goal.level), goal.power)
    always = Sought(effect, compared, tuned(goal), goal.power)

    def is_shown(day: float) -> bool:
        """Whether there is an interval at any time."""
        have_some = compared / users.n * nonzero.users_at(day)
        return (
            share * growth.users_at(day) >= 2 * Rule().min_users
            and have_some >= 2 * ANYTIME_NONZERO
        )

    def first(is_enough: Callable[[float], bool]) -> Duration | None:
        days = first_day(lambda day: day > 0 and is_enough(day))
        if days is None:
            return None
        by_then = round(growth.users_at(days))
        return Duration(days, by_then, max(0, by_then - growth.users), forecast.information(days))

    return Durations(
        first(lambda day: forecast.finds(once, day)),
        first(lambda day: is_shown(day) and forecast.finds(always, day)),
    )


def _precision(its: ArmRatio, compared: float) -> Precision:
    """Of a lift between two arms of equal size."""
    assert its.value is not None
    assert its.variance is not None
    return Precision(sqrt(4 * its.variance * its.users / compared), float(its.value))
