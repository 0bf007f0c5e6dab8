"""Values without their tails, so that a day with an incident changes little (Tukey and McLaughlin
1963): of n, the k = n / 14 at each end, one at least from four values on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trimmed:
    """``kept`` are the places of the values between the tails, ``mean`` is theirs. ``squares`` is
    the sum of squares of all values about their mean where those of the tails count as the next
    ones, divided by (1 - 2 k / n)²; ``changed`` is 2 k."""

    kept: tuple[int, ...]
    mean: float
    squares: float
    changed: int


def trimmed(values: Sequence[float]) -> Trimmed:
    """Values without their tails.

    >>> trimmed([5, 90, 4, 6, 5, 4, 6])
    Trimmed(kept=(0, 3, 4, 5, 6), mean=5.2, squares=9.52, changed=2)
    """
    order, n = sorted(range(len(values)), key=lambda i: values[i]), len(values)
    k = max(1, n // 14) if n >= 4 else 0
    kept = order[k : n - k]
    inner = [values[i] for i in kept]
    every = [inner[0]] * k + inner + [inner[-1]] * k
    middle = sum(every) / n
    squares = sum((value - middle) ** 2 for value in every)
    return Trimmed(
        tuple(sorted(kept)), sum(inner) / len(inner), squares / (1 - 2 * k / n) ** 2, 2 * k
    )
