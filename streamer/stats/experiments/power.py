"""How small a lift could have been found, and how many users a given one takes.

With T = lift / stderr about normal with variance 1, a lift δ is found (on its own side) with
probability Φ(δ / stderr - c), where c is the critical value: z_(1 - α/2) of a single look at the
end, or that of the confidence sequence. So δ = (c + z_power) · stderr (Cohen 1988), and stderr²
falls as 1 / N while the split stays as it is. Whoever looks often finds it earlier: for the
sequence this is the power of the last look alone.
"""

from __future__ import annotations

from collections.abc import Callable

from streamer.stats.distributions import normal_quantile
from streamer.stats.experiments.anytime import critical

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
