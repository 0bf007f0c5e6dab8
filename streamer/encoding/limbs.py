"""Integers beyond 64 bits: in two limbs, or as columns of limbs of 40 bits, the highest with the
sign. Either can be added up by the million before they are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64

VALUE_BITS = 32
"""Bits of the low limb of a sum of money."""
MOMENT_BITS = 31
"""Bits of the low limb of a sum of a slate's values, or of their products."""
COLUMN_BITS = 40
"""Bits of each limb in columns of limbs."""
_MASK = (1 << COLUMN_BITS) - 1
Columns = Mapping[str, np.ndarray[Any, Any]]


def joined(high: I64, low: I64, bits: int = VALUE_BITS) -> list[int]:
    """What two limbs stand for, exactly; the low ones are not below 0.

    >>> joined(np.array([-1, 2]), np.array([2**32 - 5, 7]))
    [-5, 8589934599]
    """
    return [(h << bits) + x for h, x in zip(high.tolist(), low.tolist(), strict=True)]


def columns(values: Mapping[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    """``key`` and limbs of a dict, the keys ascending and within 64 bits."""
    keys = sorted(values)
    rest = [values[key] for key in keys]
    limbs = {"key": np.array(keys, np.int64)}
    for i in count():
        is_last = all(-_MASK <= value <= _MASK for value in rest)
        limb = rest if is_last else [value & _MASK for value in rest]
        limbs[f"limb_{i}"] = np.array(limb, np.int64)
        if is_last:
            break
        rest = [value >> COLUMN_BITS for value in rest]
    return limbs


def summed(
    parts: list[tuple[Columns, np.ndarray[Any, Any], np.ndarray[Any, Any]]], n: int
) -> list[int]:
    """Sums of chosen rows of several columns: (columns, rows, place of each below ``n``).

    >>> a, b = columns({1: 2**200, 5: -7}), columns({5: 1})
    >>> rows = np.array([0, 1])
    >>> summed([(a, rows, rows), (b, rows[:1], rows[:1])], 2) == [2**200 + 1, -7]
    True
    """
    total = [0] * n
    limbs = max((len(columns_of_part) - 1 for columns_of_part, _, _ in parts), default=0)
    for i in range(limbs):
        flat = np.zeros(n, np.int64)
        for columns_of_part, rows, target in parts:
            if f"limb_{i}" in columns_of_part:
                np.add.at(flat, target, columns_of_part[f"limb_{i}"][rows])
        total = [x + (y << i * COLUMN_BITS) for x, y in zip(total, flat.tolist(), strict=True)]
    return total


def merged(parts: Sequence[Columns]) -> Columns:
    """The sums of several by key.

    >>> merged([columns({1: 5, 3: 2**80}), columns({3: 1})])["key"].tolist()
    [1, 3]
    """
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *(part["key"] for part in parts)]))
    chosen = [
        (part, np.arange(len(part["key"])), np.searchsorted(keys, part["key"])) for part in parts
    ]
    return columns(dict(zip(keys.tolist(), summed(chosen, len(keys)), strict=True)))
