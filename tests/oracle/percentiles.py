"""Percentiles of what users have: read from their sorted values, one by one.

Between two neighbouring integers of at most two significant digits users are taken to be spread
evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

from streamer.stats.experiments.sums import ArmSums

REACH = 2
"""Standard errors of a share to each side, from which that of a percentile is taken."""


def two_digits(value: int) -> int:
    """The least integer of at most two significant digits that is as large; 0 for what is less."""
    power: int = 10 ** max(0, len(str(max(value, 0))) - 2)
    return -(-max(value, 0) // power) * power


def edge_below(edge: int) -> int:
    """The next smaller one."""
    power: int = 10 ** max(0, len(str(edge)) - 2)
    below = edge - power
    return below if power == 1 or below >= 10 * power else edge - power // 10


def value_at(values: Sequence[int], rank: Fraction) -> Fraction:
    """What so many of the sorted values do not exceed; 0 where there are none, or none above 0."""
    place = max(0, -(-rank.numerator // rank.denominator) - 1)
    if not values or rank <= 0 or values[place] <= 0:
        return Fraction(0)
    high = two_digits(values[place])
    low = edge_below(high)
    below = sum(value <= low for value in values)
    within = sum(low < value <= high for value in values)
    return low + (rank - below) * (high - low) / within


def read(values: Sequence[int], share: Fraction, x_scale: float) -> ArmSums:
    """An arm of users with such values, of a number of each of which the percentile is the mean."""
    n, values = len(values), sorted(values)
    rank = share * n
    zeros = sum(value <= 0 for value in values)
    beyond = int(min(n - rank, rank - zeros))
    if rank <= zeros:
        return ArmSums(n, y=n, yy=n, x_scale=x_scale, obstacle="few")
    error = sqrt(n * share * (1 - share))
    ends = [
        value_at(values, min(Fraction(n), max(Fraction(0), rank + Fraction(side * REACH * error))))
        for side in (-1, 1)
    ]
    q, stderr = value_at(values, rank), (ends[1] - ends[0]) / (2 * REACH)
    squares = n * q**2 + n * (n - 1) * stderr**2
    sides = sorted([ends[1] - q, q - ends[0]])
    obstacle = "few" if beyond < 100 or rank - zeros < 5 * error else ""
    if sides[1] > 3 * sides[0]:
        obstacle = obstacle or "gap"
    return ArmSums(n, n * q, squares, n, n, n * q, beyond, x_scale, obstacle=obstacle)
