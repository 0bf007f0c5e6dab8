"""The metric of one arm, R = Σx / Σy, and how exact it is: the delta method over users.

Impressions of one user are alike, so that they cannot be counted as so many observations. Users are
independent; a user's part in R is, to first order, (x - R y) / ȳ (Deng, Knoblich and Lu 2018,
"Applying the delta method in metric analytics", arXiv 1803.06336, section 3). For two ratios
R = Σx / Σy and Q = Σu / Σv of the same n users

    cov(R, Q) = n / (n - 1) · Σ (x - R y)(u - Q v) / (Σy Σv),

and var(R) = cov(R, R). With y = 1 this is s² / n, the variance of a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streamer.stats.experiments.caps import Exact
from streamer.stats.experiments.sums import ArmSums


@dataclass(frozen=True, slots=True)
class ArmRatio:
    """R in units of x per unit of y, as the exact quotient, and var(R) where both are defined.

    ``reason`` says why one of them is None.
    """

    users: int
    value: Fraction | None
    variance: float | None
    reason: str = ""


def ratio(sums: ArmSums) -> ArmRatio:
    """R and var(R), computed in integers up to the one division at the end.

    >>> found = ratio(ArmSums.of([(1, 1), (2, 1), (6, 1)]))
    >>> found.value, found.variance  # the mean, and the variance 7 by 3 users
    (Fraction(3, 1), 2.3333333333333335)
    """
    if not sums.is_possible:
        return ArmRatio(sums.n, None, None, "no users can have these sums")
    if sums.n == 0:
        return ArmRatio(0, None, None, "there are no users")
    if sums.y <= 0:
        return ArmRatio(sums.n, None, None, "the metric's denominator is 0")
    value = Fraction(sums.x, sums.y)
    if sums.n < 2:
        return ArmRatio(sums.n, value, None, "a variance needs at least two users")
    products = (sums.xx, sums.xy, sums.xy, sums.yy)
    return ArmRatio(sums.n, value, covariance(sums.n, products, (sums.x, sums.y), (sums.x, sums.y)))


def covariance(
    n: int,
    products: tuple[Exact, Exact, Exact, Exact],
    first: tuple[Exact, Exact],
    second: tuple[Exact, Exact],
) -> float:
    """cov(R, Q) of R = Σx / Σy (``first``) and Q = Σu / Σv (``second``); ``products`` are Σxu, Σxv,
    Σyu and Σyv. The sums of the denominators are not 0, and n is at least 2."""
    (xu, xv, yu, yv), (x, y), (u, v) = products, first, second
    spread = xu * y * v - xv * y * u - yu * x * v + yv * x * u
    return float(Fraction(n * spread, (n - 1) * y * y * v * v))
