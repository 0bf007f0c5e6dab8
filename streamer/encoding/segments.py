"""Segments as they are stored: a rollup, and a code for the value of each of its dimensions.

A segment is shown with a value for every dimension: those outside of its rollup are ``all``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

UNKNOWN = 0
"""The code of no value."""
OTHER = 1
"""The code that every dimension has for values beyond its bound."""
ALL = "all"
"""What stands for all values of a dimension."""
Label = Mapping[str, str]
"""Dimension → value."""


def rollup_of(label: Label) -> tuple[str, ...]:
    """The dimensions of a label: in those outside of its rollup it is ``all``."""
    return tuple(name for name, value in label.items() if value != ALL)


Segment = tuple[int, Sequence[int]]
"""Place of the rollup, and a code for each of its dimensions."""


def segment_texts(
    segments: Sequence[Segment], rollups: Sequence[Sequence[int]], texts: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """The values of each segment, as shown; ``rollups``: places of the dimensions of each;
    ``texts``: of each dimension, by code."""
    everything = [ALL] * len(texts)
    found = []
    for rollup, codes in segments:
        text = everything.copy()
        for place, code in zip(rollups[rollup], codes, strict=True):
            text[place] = texts[place][code]
        found.append(tuple(text))
    return found
