"""When a lift will be found: its standard error, carried on from half time and from now.

What is known of a lift, 1 / stderr², is the number of users times what one user tells,

    1 / stderr²(t) = U(t) w(t).

Both are taken through what they were at half time and now. U is the curve of Growth. What one user
tells grows while the same users come back: with counts of rate λᵢ over t days the relative variance
of a user's sum is a + b / t, a = var(λ) / λ², b = 1 / λ, so that

    w(t) = t / (b + a t),    a, b ≥ 0,

a constant where everybody comes once. Standard errors are relative to the control's value where the
effect is: the value of a metric per user grows with time, too. The forecast is the first whole day
on which ``power`` is reached by one look; docs/experiments_statistics.md has measured it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from streamer.stats.experiments.growth import MAX_DAYS, Growth
from streamer.stats.experiments.power import Critical, detectable


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

    def shrunk(self, day: float, *, is_relative: bool) -> float:
        """The standard error on a day (from the start), as a multiple of the one of now."""
        growth = self.growth
        users = growth.users_at(day) / growth.users
        start, fall = self._of_a_user(is_relative)
        tells = day / (start + fall * day) * (start / growth.days + fall)
        return 1 / sqrt(users * tells)

    def day_of(self, is_enough: Callable[[float], bool]) -> int | None:
        """The first whole number of days from now on after which it is enough, by the day from the
        start; 0 if it is, None if it takes more than MAX_DAYS."""
        if is_enough(self.growth.days):
            return 0
        low, high = 0, 1
        while not is_enough(self.growth.days + high):
            low, high = high, 2 * high
            if low >= MAX_DAYS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            is_late = is_enough(self.growth.days + middle)
            low, high = (low, middle) if is_late else (middle, high)
        return high if high <= MAX_DAYS else None

    def days_until(
        self, effect: float, users: int, by: Critical, power: float, *, is_relative: bool = True
    ) -> int | None:
        """Whole days from now until a lift of ``effect`` (as it would be now) is found between two
        arms of ``users`` now; None where that is not in sight."""

        def finds(day: float) -> bool:
            stderr = self.latest.stderr * self.shrunk(day, is_relative=is_relative)
            grown = users * self.growth.users_at(day) / self.growth.users
            return detectable(stderr, round(grown), by, power) <= abs(effect)

        return self.day_of(finds) if effect else None

    def _of_a_user(self, is_relative: bool) -> tuple[float, float]:
        """b and a of one user, in units of what one tells now."""
        growth, then, now = self.growth, self.earlier.stderr, self.latest.stderr
        if is_relative and self.earlier.relative and self.latest.relative:
            then, now = self.earlier.relative, self.latest.relative
        before = (then / now) ** 2 * growth.earlier_users / growth.users  # 1 / w, of now's
        fall = (growth.days - growth.earlier_days * before) / (growth.days - growth.earlier_days)
        fall = min(1.0, max(0.0, fall))
        return (1 - fall) * growth.days, fall
