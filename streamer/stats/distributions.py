"""Tails and quantiles of the normal, Student's t and the chi-squared distribution.

To about eleven digits, in the tails too: what a p-value of 1e-200 says is that it is so small.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

_EPSILON = 1e-16
_TINY = 1e-300
_MANY_DF = 5000.0
"""From here on Hill's expansion is as exact as the continued fraction, and does not take longer the
more degrees of freedom there are."""
_LARGEST_T = 1e150
"""Its square is still a double."""
_NORMAL = NormalDist()


def normal_two_sided(z: float) -> float:
    """P(|Z| >= |z|) of a standard normal Z: erfc(|z| / √2).

    >>> round(normal_two_sided(1.959963984540054), 12)
    0.05
    """
    return erfc(abs(z) / sqrt(2.0))


def normal_quantile(upper: float) -> float:
    """z with P(Z >= z) = ``upper``, 0 < upper < 1 (Wichura 1988, algorithm AS 241)."""
    return -_NORMAL.inv_cdf(upper)


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|) of Student's t: I_x(df/2, 1/2) with x = df / (df + t²) (DLMF 8.17), and
    from 5000 degrees of freedom on by Hill (1970), algorithm 395 of the CACM.

    >>> round(t_two_sided(2.0, 1), 12)  # 1 - 2 arctan(2) / π
    0.295167235301
    """
    square = min(abs(t), _LARGEST_T) ** 2
    if df >= _MANY_DF:
        return normal_two_sided(_hill(df, square))
    return _beta_half(df / 2, square / df)


def interval_of_mean(
    value: float,
    stderr: float,
    df: int,
    bounds: tuple[float, float],
    alpha: float = 0.05,
) -> tuple[float, float]:
    """The interval of level 1 - ``alpha`` of a mean, by Student's t, within what is possible.

    ``bounds``: the least and the largest value that a part of the mean may have.

    >>> low, high = interval_of_mean(0.5, 0.2, 10, (0.0, 0.9))
    >>> round(low, 6), high
    (0.054372, 0.9)
    """
    reach, (least, most) = stderr * _quantile(alpha, df), bounds
    return max(least, value - reach), min(most, value + reach)


@lru_cache(maxsize=1024)
def _quantile(two_sided: float, df: int) -> float:
    return t_quantile(two_sided, df)


def t_quantile(two_sided: float, df: float) -> float:
    """t >= 0 with P(|T| >= t) = ``two_sided``, 0 < two_sided < 1.

    Newton's method on ln P as a function of ln t: concave, so that every step from the second on
    comes from the right and none goes beyond.

    >>> round(t_quantile(0.05, 10), 6)
    2.228139
    """
    t = max(normal_quantile(two_sided / 2), 1e-8)
    step, last = inf, inf
    # What is left at last is rounding: steps do not become smaller then.
    while abs(step) > 1e-9 or abs(step) < last / 2:
        last = abs(step)
        p = max(t_two_sided(t, df), _TINY)
        slope = -2 * t * _t_density(t, df) / p
        step = (log(two_sided) - log(p)) / slope
        t *= exp(step)
    return t


def chi2_upper(x: float, df: float) -> float:
    """P(X >= x) of chi-squared: Q(df/2, x/2), the regularised upper incomplete gamma function
    (DLMF 8.2), by its series below df/2 + 1 and by its continued fraction above.

    >>> round(chi2_upper(3.841458820694124, 1), 12)
    0.05
    """
    if x <= 0:
        return 1.0
    a, z = df / 2, x / 2
    front = exp(a * log(z) - z - lgamma(a))
    return 1.0 - front * _gamma_series(a, z) if z < a + 1 else front * _gamma_fraction(a, z)


def beta_cdf(a: float, b: float, x: float) -> float:
    """P(X <= x) of a beta distribution: I_x(a, b) (DLMF 8.17).

    >>> round(beta_cdf(2, 3, 0.4), 12)
    0.5248
    """
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1 - x) / b


def _hill(df: float, square: float) -> float:
    """The normal deviate with the tail that t² = ``square`` has."""
    a = df - 0.5
    b = 48 * a * a
    y = a * log1p(square / df)
    rest = (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)
    return ((rest + y + 3) / b + 1) * sqrt(y)


def _t_density(t: float, df: float) -> float:
    scale = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    return exp(scale - (df + 1) / 2 * log1p(t * t / df))


def _beta_half(a: float, odds: float) -> float:
    """I_x(a, 1/2) where (1 - x) / x = ``odds``, without 1 - x ever being taken from 1."""
    if odds == 0:
        return 1.0
    x, rest = 1 / (1 + odds), odds / (1 + odds)
    front = exp(lgamma(a + 0.5) - lgamma(a) - log(pi) / 2 - a * log1p(odds) + log(rest) / 2)
    if x < (a + 1) / (a + 2.5):
        return front * _beta_fraction(a, 0.5, x) / a
    return 1.0 - front * _beta_fraction(0.5, a, rest) / 0.5


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    value = d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    c = 1.0
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = 1.0
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            factor = c * d
            value *= factor
        if abs(factor - 1) < _EPSILON * 4:
            break
    return value


def _gamma_series(a: float, z: float) -> float:
    """Σ zⁱ / (a (a + 1) … (a + i)) (DLMF 8.7.1)."""
    term = total = 1 / a
    while term > total * _EPSILON:
        a += 1
        term *= z / a
        total += term
    return total


def _gamma_fraction(a: float, z: float) -> float:
    """Continued fraction of the upper incomplete gamma function (DLMF 8.9.2), by Lentz's method."""
    b = z + 1 - a
    d = 1 / _not_zero(b)
    c, value, factor, i = inf, d, inf, 0
    while abs(factor - 1) > _EPSILON * 4:
        i += 1
        term = -i * (i - a)
        b += 2
        d = 1 / _not_zero(term * d + b)
        c = _not_zero(b + term / c)
        factor = c * d
        value *= factor
    return value


def _not_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
