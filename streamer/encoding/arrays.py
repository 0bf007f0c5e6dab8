"""Types of arrays, and where equal neighbours begin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def runs_of(keys: I64) -> I64:
    """Starts of the runs of equal neighbours.

    >>> runs_of(np.array([3, 3, 1, 3])).tolist()
    [0, 2, 3]
    """
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))
