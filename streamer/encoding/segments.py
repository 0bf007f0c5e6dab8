"""Segments and groups as they are stored: a code for the value of each dimension.

A segment is a combination of dimension values. A group is the segments under one rollup, where the
dimensions outside it are ``all``: statistics of users do not add over segments (a user may be in
several), so each group has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64

UNKNOWN = 0
"""The code of no value."""
OTHER = 1
"""The code that every dimension has for values beyond its bound."""
ALL = -1
"""The code of a dimension outside the rollup."""
Label = Mapping[str, str]
"""Dimension → value."""


def segment_texts(dimensions: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The values of each segment, as shown; ``dimensions``: see ``Core.dimensions``."""
    return _texts(dimensions["tuples"], dimensions)


def group_texts(
    tuples: Sequence[Sequence[int]], dimensions: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    """The labels of groups, likewise."""
    return tuple(_texts(tuples, dimensions))


def _texts(tuples: Sequence[Sequence[int]], dimensions: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """By columns: an exporter reads those of all partitions after each commit."""
    texts = [[*values["texts"], "all"] for values in dimensions["values"]]  # the last one is ALL
    if not texts or not tuples:
        return [()] * len(tuples)
    columns = zip(*tuples, strict=True)
    named = [map(t.__getitem__, codes) for t, codes in zip(texts, columns, strict=True)]
    return list(zip(*named, strict=True))


def columns_of(tuples: Sequence[Sequence[int]]) -> dict[str, I64]:
    """Groups as columns: a number, and the value code of each dimension."""
    codes = np.array(tuples, np.int64).reshape(len(tuples), -1)
    return {"number": np.arange(len(tuples)), **{f"code_{i}": c for i, c in enumerate(codes.T)}}


def tuples_of(columns: Mapping[str, I64]) -> list[tuple[int, ...]]:
    """What ``columns_of`` was made of."""
    codes = [column.tolist() for name, column in columns.items() if name != "number"]
    return list(zip(*codes, strict=True)) if codes else [()] * len(columns["number"])
