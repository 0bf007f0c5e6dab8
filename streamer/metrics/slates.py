"""The unit of values of slates, and the tables that the core makes them of.

A value is an integer of units of 1e-9, rounded half up once; the tables that it is made of have 20
bits more. So a slate gives the same value on every machine and in every batch, and what was added
is retracted exactly.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.settings import limits

UNIT = 10**9
"""Units of a value that is 1."""
TABLE_BITS = 20


def _reciprocals() -> I64:
    top = UNIT << TABLE_BITS
    return np.array([0] + [(2 * top + i) // (2 * i) for i in range(1, limits.MAX_ITEMS + 1)])


def _discounts() -> I64:
    with decimal.localcontext() as context:
        context.prec = 50
        top = decimal.Decimal(UNIT << TABLE_BITS) * decimal.Decimal(2).ln()
        logs = (decimal.Decimal(i + 1).ln() for i in range(1, limits.MAX_ITEMS + 1))
        return np.array([0] + [int((top / log).to_integral_value()) for log in logs], np.int64)


RECIPROCAL = _reciprocals()
"""1 / i of rank i, in units of a table."""


@lru_cache(maxsize=64)
def exponential(gain: float) -> float:
    """2**gain - 1, rounded once: powers of C libraries differ in their last bits."""
    with decimal.localcontext() as context:
        context.prec = 50
        return float(decimal.Decimal(2) ** decimal.Decimal(gain) - 1)


DISCOUNT = _discounts()
"""1 / log2(i + 1) of rank i, in units of a table."""


def core_tables(gains: Sequence[float], margin: float) -> dict[str, Any]:
    """The numbers that the core makes values of, which it does not compute itself."""
    return {
        "gains": list(gains),
        "exponential_gains": [exponential(gain) for gain in gains],
        "margin": margin,
        "reciprocal": RECIPROCAL.tolist(),
        "discount": DISCOUNT.tolist(),
    }
