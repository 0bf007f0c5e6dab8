"""When a lift will be found: its standard error, carried on from half time and from now.

What is known of a lift, 1 / stderr², is the number of users times what one user tells,

    1 / stderr²(t) = U(t) w(t).

Both are taken through what they were at half time and now. U is the curve of Growth. What one user
tells grows while the same users come back: with counts of rate λᵢ over t days the relative variance
of a user's sum is a + b / t, a = var(λ) / λ², b = 1 / λ, so that

    w(t) = t / (b + a t),    a, b ≥ 0,

a constant where everybody comes once. Standard errors are relative to the control's value where the
effect is: the value of a metric per user grows with time, too.

The forecast is the first whole day on which ``power`` is reached by one look. With information I₁
now and I then, what comes is independent of what there is: I times the lift then is I₁ times the
lift of now, plus a normal with mean (I - I₁) δ and variance I - I₁ if the true lift is δ. So given
the lift of now it is found with that power where

    I₁ lift + (I - I₁) δ - z_power √(I - I₁) ≥ c √I,

the conditional power of Lan, Simon and Halperin 1982; with I₁ = 0 that of a plan.
docs/experiments_statistics.md has measured it.

How many users an experiment will have had: distinct users, of whom most come again.

Who comes on a later day was often there before, so that new users become fewer from day to day.
With users who come with probabilities of their own the distinct ones after d days follow

    U(d) = N d / (β + d)

(the accumulation curve of Clench 1979, in ecology; also what users with a geometric first day and
propensities from Beta(1, β) give, the shifted beta-geometric of Fader and Hardie 2007). It is a
straight line where β is large and everybody is new, and ends at N where all return. Fitted through
two points of the past; the errors seen are in docs/experiments_statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from streamer.stats.distributions import normal_quantile
from streamer.stats.experiments.sizing import Critical


@dataclass(frozen=True, slots=True)
class Growth:
    """Distinct users after ``days``, and after ``earlier_days`` of them; days above 0, in order.

    >>> round(Growth(earlier_days=3, earlier_users=3000, days=6, users=4500).users_at(12))
    6000
    >>> round(Growth(1, 1000, 2, 2000).users_at(5))  # everybody is new
    5000
    """

    earlier_days: float
    earlier_users: int
    days: float
    users: int

    def users_at(self, day: float) -> float:
        """Distinct users after so many days."""
        start, fall = self._fitted()
        return day / (start + fall * day)

    def _fitted(self) -> tuple[float, float]:
        """β / N and 1 / N, for d / U(d) = β / N + d / N is a straight line."""
        now, then = self.days / self.users, self.earlier_days / max(1, self.earlier_users)
        fall = max(0.0, (now - then) / (self.days - self.earlier_days))
        return now - fall * self.days, fall


MAX_DAYS = 3650
"""What takes longer is not in sight."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The standard error of a lift, and the control's value, in the unit of the metric."""

    stderr: float
    control: float | None = None

    @property
    def relative(self) -> float | None:
        """The standard error as a share of the control's value."""
        return self.stderr / self.control if self.control and self.control > 0 else None


@dataclass(frozen=True, slots=True)
class Sought:
    """A true lift that is waited for, above 0 and as it would be now, in the unit of the metric,
    between two arms of ``users`` now; with which power, by which critical value. ``so_far``: the
    lift as it is, above 0 on the side of ``effect``; None: by a plan, nothing is known of it.
    ``is_relative``: it keeps its share of the control's value, not its size."""

    effect: float
    users: float
    by: Critical
    power: float
    so_far: float | None = None
    is_relative: bool = True


@dataclass(frozen=True, slots=True)
class Forecast:
    """``growth``: of the users of all arms; the lift at its earlier time, and now.

    >>> returning = Forecast(Growth(3, 1000, 6, 1000), Precision(2.0), Precision(2.0 / 2**0.5))
    >>> round(returning.shrunk(12, is_relative=False), 3)  # the same users, twice the days
    0.707
    >>> new = Forecast(Growth(3, 500, 6, 1000), Precision(2.0), Precision(2.0 / 2**0.5))
    >>> round(new.shrunk(12, is_relative=False), 3)  # twice the users
    0.707
    """

    growth: Growth
    earlier: Precision
    latest: Precision

    def shrunk(self, day: float, *, is_relative: bool = True) -> float:
        """The standard error on a day (from the start), as a multiple of the one of now."""
        users = self.growth.users_at(day) / self.growth.users
        return 1 / sqrt(users * self.information(day, is_relative=is_relative))

    def information(self, day: float, *, is_relative: bool = True) -> float:
        """The information of one user by a day, as a multiple of now."""
        start, fall = self._of_a_user(is_relative)
        return day / (start + fall * day) * (start / self.growth.days + fall)

    def finds(self, lift: Sought, day: float) -> bool:
        """Whether it is found with its power by a look on a day (from the start)."""
        information = self.shrunk(day, is_relative=lift.is_relative) ** -2
        users = round(lift.users * self.growth.users_at(day) / self.growth.users)
        known = 0.0 if lift.so_far is None else 1.0
        more = max(0.0, information - known)
        sum_then = (known * (lift.so_far or 0.0) + more * lift.effect) / self.latest.stderr
        spread = normal_quantile(1 - lift.power) * sqrt(more)
        return sum_then - spread >= lift.by(users) * sqrt(information)

    def days_until(self, lift: Sought) -> int | None:
        """Whole days from now until it is found; 0 if it is, None where that is not in sight."""
        return first_day(lambda day: self.finds(lift, day), self.growth.days)

    def _of_a_user(self, is_relative: bool) -> tuple[float, float]:
        """b and a of one user, in units of what one tells now."""
        growth, then, now = self.growth, self.earlier.stderr, self.latest.stderr
        if is_relative and self.earlier.relative and self.latest.relative:
            then, now = self.earlier.relative, self.latest.relative
        before = (then / now) ** 2 * growth.earlier_users / growth.users  # 1 / w, of now's
        fall = (growth.days - growth.earlier_days * before) / (growth.days - growth.earlier_days)
        fall = min(1.0, max(0.0, fall))
        return (1 - fall) * growth.days, fall


def first_day(is_enough: Callable[[float], bool], after: float = 0.0) -> int | None:
    """The least whole number of days after ``after`` (from the start) by which it is enough; 0 if
    it is at once, None if it takes more than MAX_DAYS."""
    if is_enough(after):
        return 0
    low, high = 0, 1
    while not is_enough(after + high):
        low, high = high, 2 * high
        if low >= MAX_DAYS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(after + middle) else (middle, high)
    return high if high <= MAX_DAYS else None
