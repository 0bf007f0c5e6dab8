"""Sums of values and of their squares, in columns of integers that add: for means and their errors.

A sum has one column, or two limbs where a value may be large. Squares have two limbs, or four where
a value may pass 2**31 units. Both are exact, so the error of a mean has no unit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.encoding.limbs import MOMENT_BITS, joined
from streamer.metrics.slates import UNIT

_SUM_BITS = 30
_LARGEST = 1 << 53
"""Largest value of all: its square has four limbs."""
_SINGLE = 1 << 33
"""Largest value whose sums have one column: 2**29 slates fit."""


@dataclass(frozen=True)
class Moments:
    """How one value is kept; ``largest``: the largest that it may be, in units of 1e-9."""

    largest: int

    def __post_init__(self) -> None:
        if self.largest > _LARGEST:
            raise ValueError(f"a value of {self.largest} units: sums of squares hold {_LARGEST}")

    @property
    def square_limbs(self) -> int:
        """Columns of a square."""
        return 2 if self.largest <= 1 << MOMENT_BITS else 4

    @property
    def is_single(self) -> bool:
        """Whether the sum of values fits one column; else it has two limbs."""
        return self.largest <= _SINGLE

    @property
    def width(self) -> int:
        """Number of columns: of the sum, and of squares."""
        return (1 if self.is_single else 2) + self.square_limbs

    def _total(self, sums: I64) -> list[int]:
        if self.is_single:
            return [int(x) for x in sums[:, 0]]
        return joined(sums[:, 0], sums[:, 1], _SUM_BITS)

    def _squares(self, sums: I64) -> list[int]:
        """Sums of squares; the highest limb comes first."""
        totals = [0] * len(sums)
        for limb in sums[:, -self.square_limbs :].T.tolist():
            totals = [(t << MOMENT_BITS) + x for t, x in zip(totals, limb, strict=True)]
        return totals

    def mean(self, sums: I64, count: I64) -> tuple[F64, Bools]:
        """Mean of ``count`` values whose columns add up to ``sums`` (rows, width); absent where
        there is none."""
        present = count > 0
        n = np.where(present, count, 1)
        if self.is_single:
            return sums[:, 0] / (UNIT * n), present
        total = zip(self._total(sums), n.tolist(), strict=True)
        return np.array([value / (UNIT * k) for value, k in total]), present

    def stderr(self, sums: I64, count: I64) -> tuple[F64, Bools]:
        """Standard error of the mean, from the sample's variance; absent below two values."""
        present = count > 1
        totals, squares = self._total(sums), self._squares(sums)
        result = np.zeros(len(count))
        for i in np.flatnonzero(present).tolist():
            n = int(count[i])
            spread = n * squares[i] - totals[i] * totals[i]
            # Below 0 it can only be after a bound of memory was hit; a scrape goes on.
            result[i] = sqrt(max(spread, 0) / (n * n * (n - 1))) / UNIT
        return result, present
