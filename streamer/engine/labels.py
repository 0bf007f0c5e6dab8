"""Labels: values of some dimensions, numbered for good.

Numbers of segments change when values are folded into ``other``; those of labels do not, so that
rows can be stored under them for long. A label keeps the value that it was made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamer import limits
from streamer.batch import I64
from streamer.engine.segments import Segments

Label = Mapping[str, str]
"""Dimension → value."""


class Labels:
    """The labels of one partition, of segments under the dimensions ``names``; beyond ``limit``
    all values of further ones are ``other``."""

    def __init__(
        self, names: Sequence[str], segments: Segments, limit: int = limits.MAX_SEGMENTS
    ) -> None:
        self.segments, self.limit = segments, limit
        places = {values.dimension.name: i for i, values in enumerate(segments.values)}
        self.names = [name for name in places if name in names]
        self._places = [places[name] for name in self.names]
        self.known: list[Label] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._of = np.zeros(0, np.int64)

    @property
    def overflowed(self) -> int:
        """Whether (1) there were more than the bound."""
        return int(len(self.known) > self.limit)

    def of(self, segment: I64) -> I64:
        """The label of each segment."""
        codes = self.segments.codes()
        if len(self._of) < len(codes):
            fresh = codes[len(self._of) :, self._places].tolist()
            self._of = np.append(self._of, np.array([self._label(c) for c in fresh], np.int64))
        return self._of[segment]

    def _label(self, codes: Sequence[int]) -> int:
        texts = [
            self.segments.values[place].texts[code]
            for place, code in zip(self._places, codes, strict=True)
        ]
        label = dict(zip(self.names, texts, strict=True))
        is_known = tuple(sorted(label.items())) in self._numbers
        if len(self.known) >= self.limit and not is_known:
            label = dict.fromkeys(self.names, "other")
        return self._number(label)

    def _number(self, label: Label) -> int:
        number = self._numbers.setdefault(tuple(sorted(label.items())), len(self.known))
        if number == len(self.known):
            self.known.append(label)
        return number

    def fold(self) -> None:
        """Segments were folded together: they may have other labels now."""
        self._of = self._of[:0]

    def load(self, known: Iterable[Label]) -> None:
        """Take over labels under the numbers that they have."""
        for label in known:
            self._number(label)

    def index_of(self, dimension: str, values: Sequence[str]) -> I64:
        """For each label the place of its value of the dimension among ``values``, from 1; 0: it
        has none of them, or one that was folded away since."""
        at = [v.dimension.name for v in self.segments.values].index(dimension)
        shown = self.segments.values[at].codes
        numbers = {value: i for i, value in enumerate(values, 1) if value in shown}
        return np.array([numbers.get(x.get(dimension, ""), 0) for x in self.known], np.int64)
