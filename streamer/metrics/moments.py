"""Sums of values and of their squares, in columns of integers that add: for means and their errors.

A sum has one column, or two limbs where a value may be large; squares always have two. Values that
may pass 2**31 units are squared in coarser ones, whose sum then has a column, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from streamer.batch import F64, I64, Bools
from streamer.engine.integers import joined, split
from streamer.metrics.slates import UNIT

_ROOT_BITS, _SUM_BITS = 31, 30
_SINGLE = 1 << 33
"""Largest value whose sums have one column: 2**29 slates fit."""


@dataclass(frozen=True)
class Moments:
    """How one value is kept; ``largest``: the largest that it may be, in units of 1e-9."""

    largest: int

    @cached_property
    def coarser_bits(self) -> int:
        """By how many bits values are coarsened before they are squared."""
        bits = 0
        while _coarsened(self.largest, bits) > 1 << _ROOT_BITS:
            bits += 1
        return bits

    @property
    def is_single(self) -> bool:
        return self.largest <= _SINGLE

    @property
    def width(self) -> int:
        """Number of columns: of the sum, of coarsened values, of squares."""
        return (1 if self.is_single else 2) + (self.coarser_bits > 0) + 2

    def columns(self, value: I64) -> list[I64]:
        """What is added for values."""
        root: I64 = _coarsened(value, self.coarser_bits)
        square = root * root
        sums = [value] if self.is_single else split(value, _SUM_BITS)
        coarse = [root] if self.coarser_bits else []
        return [*sums, *coarse, *split(square, _ROOT_BITS)]

    def mean(self, sums: I64, count: I64) -> tuple[F64, Bools]:
        """Mean of ``count`` values whose columns add up to ``sums`` (rows, width); absent where
        there is none."""
        present = count > 0
        n = np.where(present, count, 1)
        if self.is_single:
            return sums[:, 0] / (UNIT * n), present
        total = zip(joined(sums[:, 0], sums[:, 1], _SUM_BITS), n.tolist(), strict=True)
        return np.array([value / (UNIT * k) for value, k in total]), present

    def stderr(self, sums: I64, count: I64) -> tuple[F64, Bools]:
        """Standard error of the mean, from the sample's variance; absent below two values."""
        present = count > 1
        roots = sums[:, -3].tolist()
        squares = joined(sums[:, -2], sums[:, -1], _ROOT_BITS)
        unit = (1 << self.coarser_bits) / UNIT
        result = np.zeros(len(count))
        for i in np.flatnonzero(present).tolist():
            n = int(count[i])
            spread = n * squares[i] - roots[i] * roots[i]
            # Below 0 it can only be after a bound of memory was hit; a scrape goes on.
            result[i] = sqrt(max(spread, 0) / (n * n * (n - 1))) * unit
        return result, present


def _coarsened(value: Any, bits: int) -> Any:
    return (value + (1 << bits - 1)) >> bits if bits else value
