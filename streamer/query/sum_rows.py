"""Rows of sums in a flat array: a row for each segment, as wide as what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamer.encoding.arrays import I64


@dataclass(frozen=True, eq=False)
class SumRows:
    """``columns``: (kinds of rows, statistics) → place in a row, -1 where it is not kept;
    ``kinds``: of each row."""

    columns: I64
    kinds: I64

    @staticmethod
    def of_kinds(codes: Sequence[Sequence[int]], kinds: Sequence[int], size: int) -> SumRows:
        """Rows of several kinds, each of which keeps the statistics of these codes."""
        columns = np.full((len(codes), size), -1, np.int64)
        for kind, kept in enumerate(codes):
            columns[kind, np.array(kept, np.int64)] = np.arange(len(kept))
        return SumRows(columns, np.array(kinds, np.int64))

    @staticmethod
    def equal(rows: int, size: int) -> SumRows:
        """Rows that all have every one of so many statistics."""
        return SumRows(np.arange(size).reshape(1, -1), np.zeros(rows, np.int64))

    @cached_property
    def widths(self) -> I64:
        """By kind."""
        widths: I64 = np.count_nonzero(self.columns >= 0, axis=1)
        return widths

    @cached_property
    def starts(self) -> I64:
        """Where each row begins, and at last where the next one would."""
        return np.concatenate(([0], np.cumsum(self.widths[self.kinds])))

    @property
    def size(self) -> int:
        """Integers of all rows."""
        return int(self.starts[-1])

    def is_continued_by(self, other: SumRows) -> bool:
        """Whether the other one begins with these rows."""
        begins = other.kinds[: len(self.kinds)]
        return np.array_equal(self.columns, other.columns) and np.array_equal(self.kinds, begins)

    def places(self, rows: I64, stats: I64) -> I64:
        """Where sums stand. ValueError where one is not kept."""
        if len(self.columns) == 1:
            only: I64 = rows * self.columns.shape[1] + stats
            return only
        columns = self.columns[self.kinds[rows], stats]
        if columns.min(initial=0) < 0:
            raise ValueError("a pane has sums that its rollup does not keep")
        found: I64 = self.starts[rows] + columns
        return found

    def matrix(self, flat: I64, rows: I64, kind: int) -> I64:
        """Some rows of this kind, or none: (rows, what is kept of them)."""
        found: I64 = flat[self.starts[rows][:, None] + np.arange(self.widths[kind])]
        return found
