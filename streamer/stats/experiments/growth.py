"""How many users an experiment will have had: distinct users, of whom most come again.

Who comes on a later day was often there before, so that new users become fewer from day to day.
With users who come with probabilities of their own the distinct ones after d days follow

    U(d) = N d / (β + d)

(the accumulation curve of Clench 1979, in ecology; also what users with a geometric first day and
propensities from Beta(1, β) give, the shifted beta-geometric of Fader and Hardie 2007). It is a
straight line where β is large and everybody is new, and ends at N where all return. Fitted through
two points of the past; the errors seen are in docs/experiments_statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

MAX_DAYS = 3650
"""What takes longer is not in sight."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Distinct users after ``days``, and after ``earlier_days`` of them; days above 0, in order.

    >>> returning = Growth(earlier_days=3, earlier_users=3000, days=6, users=4500)
    >>> round(returning.users_at(12)), returning.days_to(5600), returning.days_to(9000)
    (6000, 4, None)
    >>> Growth(1, 1000, 2, 2000).days_to(5000)  # everybody is new
    3
    """

    earlier_days: float
    earlier_users: int
    days: float
    users: int

    def users_at(self, day: float) -> float:
        """Distinct users after so many days."""
        start, fall = self._fitted()
        return day / (start + fall * day)

    def days_to(self, needed: int) -> int | None:
        """Whole days from now to so many users; 0 if they are there, None if it takes more than
        MAX_DAYS."""
        if needed <= self.users:
            return 0
        more = self._more(needed)
        return None if more is None else max(0, ceil(more - 1e-9))

    def day_of(self, needed: int) -> int | None:
        """Whole days from the start to so many users, likewise.

        >>> Growth(1, 1000, 2, 2000).day_of(5000)
        5
        """
        more = self._more(needed)
        return None if more is None else max(1, ceil(more + self.days - 1e-9))

    def _more(self, needed: int) -> float | None:
        """Days from now to so many users, below 0 in the past; None beyond MAX_DAYS."""
        start, fall = self._fitted()
        if needed * fall >= 1:
            return None
        more = needed * start / (1 - needed * fall) - self.days
        return more if more <= MAX_DAYS else None

    def _fitted(self) -> tuple[float, float]:
        """β / N and 1 / N, for d / U(d) = β / N + d / N is a straight line."""
        now, then = self.days / self.users, self.earlier_days / max(1, self.earlier_users)
        fall = max(0.0, (now - then) / (self.days - self.earlier_days))
        return now - fall * self.days, fall
