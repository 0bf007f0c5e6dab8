"""How many users an experiment takes, before it starts: from what users of today do, and as if
each went on telling as much as today (duration.py has the days, and what returning users add).

With v = n var(R) the variance of one user's part in the metric (ratio.py), two arms of N / 2 users
each give the lift a variance of 4 v / N. ``users_needed`` says which N finds it. The interval
at any time is tuned to that N, as ``expected_users`` should be where no days are known; looking
before it costs nothing.

How small a lift could have been found, and how many users a given one takes.

With T = lift / stderr about normal with variance 1, a lift δ is found (on its own side) with
probability Φ(δ / stderr - c), where c is the critical value: z_(1 - α/2) of a single look at the
end, or that of the confidence sequence. So δ = (c + z_power) · stderr (Cohen 1988), and stderr²
falls as 1 / N while the split stays as it is. Whoever looks often finds it earlier: for the
sequence this is the power of the last look alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

from streamer.stats.distributions import normal_quantile
from streamer.stats.experiments.anytime import critical, rho_squared
from streamer.stats.experiments.plan import Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.support import ANYTIME_NONZERO

Critical = Callable[[float], float]
"""Critical value, in standard errors, by the number of users in both arms."""
MOST_USERS = 1 << 40
"""More users than there are people: what takes more is never found."""


def fixed(alpha: float) -> Critical:
    """That of one look, at a time set before."""
    value = normal_quantile(alpha / 2)
    return lambda users: value


def anytime(alpha: float, rho2: float) -> Critical:
    """That of the confidence sequence (anytime.py)."""
    return lambda users: critical(alpha, users, rho2)


def detectable(stderr: float, users: int, by: Critical, power: float = 0.8) -> float:
    """The least lift, in the unit of ``stderr``, that such sums find with probability ``power``.

    >>> round(detectable(1.0, 1000, fixed(0.05)), 4)  # the rule of thumb: 2.8 standard errors
    2.8016
    """
    return (by(users) + normal_quantile(1 - power)) * stderr


def users_needed(
    effect: float, stderr: float, users: int, by: Critical, power: float = 0.8
) -> int | None:
    """Least number of users in both arms that find a lift of ``effect``, split as these ``users``;
    None if it is beyond MOST_USERS.

    >>> users_needed(0.5, 1.0, 1000, fixed(0.05))
    31396
    """
    if not effect:
        return None

    def finds(n: int) -> bool:
        return detectable(stderr * (users / n) ** 0.5, n, by, power) <= abs(effect)

    high = 1
    while not finds(high):
        if high >= MOST_USERS:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Goal:
    """A relative lift that each of ``arms`` - 1 treatments is to be found with, if it has it."""

    lift: float
    power: float = 0.8
    alpha: float = 0.05
    arms: int = 2

    @property
    def level(self) -> float:
        """That of Holm's first step."""
        return self.alpha / (self.arms - 1)


@dataclass(frozen=True, slots=True)
class Needed:
    """Users of two arms that find a lift: at one look when they are there, and looking at any time,
    by then, at what one user tells today. None: more than there are people."""

    fixed: int | None
    anytime: int | None


def needed(users: ArmSums, goal: Goal) -> Needed | str:
    """What a lift of these users' metric takes; or why that cannot be said.

    >>> found = needed(ArmSums.of([(1, 1)] * 500 + [(0, 1)] * 500), Goal(lift=0.1))
    >>> found.fixed, found.anytime
    (3143, 6018)
    """
    if users.obstacle and users.nonzero >= ANYTIME_NONZERO:
        return users.obstacle  # which more users do not cure
    its = ratio(users)
    if its.value is None or its.variance is None:
        return its.reason
    if its.value <= 0:
        return "its value is not above 0, so there is no relative lift"
    if not its.variance > 0:
        return "all users have the same value"
    effect = goal.lift * float(its.value)
    stderr = sqrt(4 * its.variance)  # with as many users in both arms as there are now
    always = users_needed(effect, stderr, users.n, tuned(goal), goal.power)
    least = max(Rule().min_users, ceil(ANYTIME_NONZERO * users.n / max(1, users.nonzero)))
    return Needed(
        users_needed(effect, stderr, users.n, fixed(goal.level), goal.power),
        None if always is None else max(always, 2 * least),
    )


def tuned(goal: Goal) -> Critical:
    """That of an interval at any time which is tuned to the very number of users."""
    return lambda users: critical(goal.level, users, rho_squared(goal.alpha, users))
