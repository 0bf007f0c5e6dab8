"""A metric R = Σx / Σy of one window, and how exact it is: the method of random groups.

Every user is in one of 16 groups, by a hash, with all that the user ever does: what hangs together
is never in two groups, and groups are independent. A group's part in R is d = x - R y, summed over
its users; of k groups that somebody is in

    var(R) = k / (k - 1) · Σ d² / (Σy)²

with k - 1 degrees of freedom (Wolter 2007, "Introduction to Variance Estimation", chapter 2, for
the linearised ratio). Groups without users are left out: where users are few a group is hardly more
than one user, and counting empty ones too would promise too much
(``benchmarks.studies.group_coverage``). In expectation it is the delta method over users
(``experiments.ratio``) without a table of users, and of any number of panes: sums of groups are
added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from operator import or_
from typing import Any

import numpy as np

from streamer._core import USER_GROUPS
from streamer.encoding.arrays import F64, I64
from streamer.stats.distributions import t_quantile

GROUPS = USER_GROUPS
"""Four bits of a user's hash: what fewer groups lose in degrees of freedom widens every interval,
and more groups cost memory in every pane."""
_NOTHING = (0,) * GROUPS


@dataclass(frozen=True, slots=True)
class Estimates:
    """R of each row, its variance, and how many groups somebody is in."""

    value: F64
    variance: F64
    occupied: I64


def _variance(squares: Any, n: Any, k: Any) -> Any:
    """var(R) of Σ (n d)², n = Σy and k occupied groups, at least 2: of numbers, or of arrays."""
    return k * squares / ((k - 1) * n**4)


def estimates(x: F64, y: F64) -> Estimates:
    """R and var(R) from sums by group, (rows, groups). Where Σy is 0, or one group alone is
    occupied, the numbers of a row mean nothing.

    >>> found = estimates(np.array([[1.0, 2, 6]]), np.array([[1.0, 1, 1]]))  # a mean: 7 by 3 groups
    >>> found.value[0], round(found.variance[0], 4)
    (np.float64(3.0), np.float64(2.3333))
    """
    n, total = y.sum(axis=1), x.sum(axis=1)
    n = np.where(n > 0, n, 1)
    occupied = np.count_nonzero((x != 0) | (y != 0), axis=1)
    residuals = x * n[:, None] - total[:, None] * y
    squares = (residuals * residuals).sum(axis=1)
    return Estimates(total / n, _variance(squares, n, np.maximum(occupied, 2)), occupied)


@dataclass(frozen=True, slots=True)
class GroupSums:
    """Σx and Σy of each group of users, as integers. ValueError if there are not 16 of each, or if
    a y is below 0.

    >>> a = GroupSums.of([(0, 1, 10), (3, 0, 20)])  # group, clicks, impressions
    >>> a + GroupSums.of([(3, 2, 5)]) == GroupSums.of([(3, 2, 25), (0, 1, 10)])
    True
    >>> a.value
    Fraction(1, 30)
    """

    x: tuple[int, ...] = _NOTHING
    y: tuple[int, ...] = _NOTHING

    def __post_init__(self) -> None:
        if len(self.x) != GROUPS or len(self.y) != GROUPS:
            raise ValueError(
                f"x has {len(self.x)} groups and y has {len(self.y)}: both must have {GROUPS}"
            )
        if min(self.y) < 0:
            raise ValueError(f"y has the sum {min(self.y)}: must not be below 0")

    @staticmethod
    def of(parts: Iterable[tuple[int, int, int]]) -> GroupSums:
        """Sums of parts given as (group, x, y)."""
        x, y = list(_NOTHING), list(_NOTHING)
        for group, its_x, its_y in parts:
            x[group] += its_x
            y[group] += its_y
        return GroupSums(tuple(x), tuple(y))

    def __add__(self, other: GroupSums) -> GroupSums:
        return GroupSums(
            tuple(a + b for a, b in zip(self.x, other.x, strict=True)),
            tuple(a + b for a, b in zip(self.y, other.y, strict=True)),
        )

    @property
    def support(self) -> int:
        """Σy."""
        return sum(self.y)

    @property
    def occupied(self) -> int:
        """Groups that somebody is in."""
        return sum(map(bool, map(or_, self.x, self.y)))

    @property
    def value(self) -> Fraction | None:
        """R, or None if Σy is 0."""
        support = self.support
        return Fraction(sum(self.x), support) if support else None

    @property
    def variance(self) -> float | None:
        """var(R), in integers up to the one division at the end; None without Σy, or where a single
        group says nothing about how users differ.

        >>> GroupSums.of([(0, 1, 1), (1, 2, 1), (5, 6, 1)]).variance  # a mean: 7 by 3 groups
        2.3333333333333335
        """
        n, k, total = self.support, self.occupied, sum(self.x)
        if not n or k < 2:
            return None
        residuals = (x * n - total * y for x, y in zip(self.x, self.y, strict=True))
        return float(_variance(sum(d * d for d in residuals), n, k))

    def interval(self, level: float, unit: float = 1.0) -> tuple[float, float] | None:
        """R within t · √var(R), in units of x worth ``unit``; each end holds with probability
        ``level``.

        None without a variance and where it is 0: that no group differs is no certainty. An end may
        be below 0 even if the metric cannot.

        >>> low, high = GroupSums.of([(0, 1, 1), (1, 2, 1), (5, 6, 1)]).interval(0.95)
        >>> round(low, 3), round(high, 3)
        (-1.46, 7.46)
        """
        value, variance = self.value, self.variance
        if value is None or not variance:
            return None
        reach = critical(level, self.occupied - 1) * sqrt(variance)
        return (float(value) - reach) * unit, (float(value) + reach) * unit


@lru_cache(maxsize=1024)
def critical(level: float, df: int) -> float:
    """t that Student's t stays below with probability ``level``, above one half.

    >>> round(critical(0.95, 15), 4)
    1.7531
    """
    return t_quantile(2 * (1 - level), df)
