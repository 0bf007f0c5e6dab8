"""Sums of values and of their squares, as the core keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.metrics.moments import Moments


def columns_of(moments: Moments, values: Iterable[int]) -> list[int]:
    """The sum of the values, in two limbs if it may be large, and the limbs of their squares, the
    highest first."""
    added = [0] * moments.width
    for value in values:
        total = [value] if moments.is_single else [value >> 30, value & (1 << 30) - 1]
        square, top = value * value, moments.square_limbs - 1
        limbs = [square >> 31 * top, *(square >> 31 * i & (1 << 31) - 1 for i in range(top)[::-1])]
        added = [a + b for a, b in zip(added, [*total, *limbs], strict=True)]
    return added
