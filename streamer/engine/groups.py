"""Segment groups: segments under one rollup, where the dimensions outside it are ``all``.

Statistics of users do not add over segments (a user may be in several), so each group has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamer import limits
from streamer.batch import I64
from streamer.engine.segments import Segments

ALL = -1
"""The code of a dimension outside the rollup."""


class Groups:
    """Numbers for the groups of all rollups; a rollup is the places of the dimensions it keeps."""

    def __init__(self, rollups: Sequence[Sequence[int]]) -> None:
        self.rollups = rollups
        self.tuples: list[tuple[int, ...]] = []
        """The value codes of each group."""
        self._numbers: dict[tuple[int, ...], int] = {}
        self._of: list[I64] = [np.zeros(0, np.int64) for _ in rollups]

    def of(self, segments: Segments) -> list[I64]:
        """For each rollup the group of every segment."""
        codes = segments.codes()
        for i, kept in enumerate(self.rollups):
            known = len(self._of[i])
            if known < len(codes):
                masked = np.full((len(codes) - known, codes.shape[1]), ALL, np.int64)
                masked[:, list(kept)] = codes[known:, list(kept)]
                fresh = [self._number(tuple(row)) for row in masked.tolist()]
                self._of[i] = np.append(self._of[i], np.array(fresh, np.int64))
        return self._of

    def columns(self) -> dict[str, I64]:
        """The groups as columns: a number, and the value code of each dimension."""
        codes = np.array(self.tuples, np.int64).reshape(len(self.tuples), -1)
        columns = {f"code_{i}": codes[:, i] for i in range(codes.shape[1])}
        return {"number": np.arange(len(self.tuples)), **columns}

    def _number(self, codes: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(codes, len(self.tuples))
        if number == len(self.tuples):
            self.tuples.append(codes)
        return number


def columns_of(tuples: Sequence[Sequence[int]]) -> dict[str, I64]:
    """Groups as columns: a number, and the value code of each dimension."""
    codes = np.array(tuples, np.int64).reshape(len(tuples), -1)
    return {"number": np.arange(len(tuples)), **{f"code_{i}": c for i, c in enumerate(codes.T)}}


def group_texts(
    tuples: Iterable[Sequence[int]], dump: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """The labels of groups; ``dump`` is that of the segments."""
    texts = [values["texts"] for values in dump["values"]]
    return tuple(
        tuple("all" if code == ALL else t[code] for t, code in zip(texts, codes, strict=True))
        for codes in tuples
    )


def tuples_of(columns: Mapping[str, I64]) -> list[tuple[int, ...]]:
    """What ``Groups.columns`` was made of."""
    codes = [column.tolist() for name, column in columns.items() if name != "number"]
    return list(zip(*codes, strict=True)) if codes else [()] * len(columns["number"])


assert limits.MAX_SEGMENTS * limits.MAX_ROLLUPS < 1 << 20
