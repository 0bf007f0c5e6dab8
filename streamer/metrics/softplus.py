"""softplus(x) = ln(1 + e**x), alike on every machine: a loss is taken back by what was put.

The functions of C libraries differ in their last bits; sums, products and quotients of IEEE
doubles do not.
"""

from __future__ import annotations

import numpy as np

from streamer.batch import F64

_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_PER_LN2 = 1.44269504088896338700
_NOTHING = 745.0
"""e**-745 is the least double above 0."""
_EXP = [1.0]
for _i in range(1, 15):
    _EXP.append(_EXP[-1] / _i)
_LOG = [1.0 / (2 * i + 1) for i in range(19)]


def softplus(x: F64) -> F64:
    """ln(1 + e**x) of finite numbers; relative error below 1e-14.

    >>> [round(float(y), 12) for y in softplus(np.array([-800.0, 0.0, 1.0, 800.0]))]
    [0.0, 0.69314718056, 1.313261687518, 800.0]
    """
    return np.maximum(x, 0.0) + _log_one_plus(_exp_minus(np.minimum(np.abs(x), _NOTHING)))


def _exp_minus(a: F64) -> F64:
    """e**-a of 0 <= a <= 745: by Taylor's series after taking out powers of two."""
    twos = np.floor(a * _PER_LN2 + 0.5)
    rest = (a - twos * _LN2_HIGH) - twos * _LN2_LOW
    return np.ldexp(_horner(-rest, _EXP), -twos.astype(np.int64))


def _log_one_plus(y: F64) -> F64:
    """ln(1 + y) of 0 <= y <= 1: twice the inverse hyperbolic tangent of y / (2 + y)."""
    z = y / (2.0 + y)
    return 2.0 * z * _horner(z * z, _LOG)


def _horner(x: F64, coefficients: list[float]) -> F64:
    value = np.full(len(x), coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
