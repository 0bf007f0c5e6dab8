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
