"""Growable columns: rows are appended, and leave from the front or by a mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from streamer.batch import Bools

_MIN_ROWS = 1024
Column = npt.NDArray[Any]


class Table:
    """Columns of equal length. Row numbers change in ``keep`` and ``drop_front`` only."""

    def __init__(self, **dtypes: Any) -> None:
        self._data: dict[str, Column] = {k: np.zeros(_MIN_ROWS, d) for k, d in dtypes.items()}
        self._start = 0
        self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, name: str) -> Column:
        """A view of one column; writing to it writes the table. Append makes old views stale."""
        return self._data[name][self._start : self._end]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._data)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._data.values())

    def append(self, columns: Mapping[str, Any], n: int) -> int:
        """Add ``n`` rows (arrays or single values by name); returns the first one's number."""
        self._reserve(n)
        end = self._end + n
        for name, data in self._data.items():
            data[self._end : end] = columns[name]
        first = self._end - self._start
        self._end = end
        return first

    def _reserve(self, n: int) -> None:
        capacity = len(next(iter(self._data.values())))
        if self._end + n <= capacity:
            return
        rows = len(self)
        capacity = max(capacity, (rows + n) * 3 // 2)  # a copy of all rows every half of them
        for name, data in self._data.items():
            grown = np.zeros(capacity, data.dtype)
            grown[:rows] = data[self._start : self._end]
            self._data[name] = grown
        self._start, self._end = 0, rows

    def drop_front(self, n: int) -> None:
        """Forget the first ``n`` rows; their memory is used again when the table next fills."""
        self._start += n

    def keep(self, mask: Bools) -> None:
        """Forget the rows where ``mask`` is false."""
        rows = int(np.count_nonzero(mask))
        capacity = max(_MIN_ROWS, rows * 3 // 2)
        for name, data in self._data.items():
            kept = np.zeros(capacity, data.dtype)
            kept[:rows] = data[self._start : self._end][mask]
            self._data[name] = kept
        self._start, self._end = 0, rows

    def take(self, start: int, stop: int) -> dict[str, Column]:
        """Copies of a range of rows, by column."""
        return {name: self[name][start:stop].copy() for name in self._data}
