"""Segments: combinations of dimension values, numbered; values bounded by their hashes.

Of the values that the settings do not name, each dimension keeps those with the smallest hashes
(so the outcome does not depend on the order of arrival); all others are ``other``.
A value that is pushed out is folded into ``other`` together with everything filed under it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamer import limits
from streamer.batch import I32, I64, Bools, hash_texts
from streamer.config import Dimension
from streamer.decode import Interner

UNKNOWN, OTHER = 0, 1
"""Codes that every dimension has: no value given, and values beyond the bound."""


@dataclass
class Values:
    """The values of one dimension: text → code, with each code's hash and events."""

    dimension: Dimension
    texts: list[str] = field(default_factory=lambda: ["unknown", "other"])
    events: list[int] = field(default_factory=lambda: [0, 0])
    codes: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> tuple[int, str | None]:
        """The code of a value, and the value that it pushed out, if any."""
        if text == "":
            return UNKNOWN, None
        if text in self.codes:
            return self.codes[text], None
        if text in self.dimension.values:
            return self._add(text), None
        digest = int(hash_texts([[text]])[0][0])
        gone = None
        if len(self.hashes) >= self.dimension.max_values:
            if not self.hashes or self.hashes[self.last] <= digest:
                return OTHER, None
            gone = self.last
            del self.hashes[gone]
        self.hashes[text] = digest
        return self._add(text), gone

    @property
    def last(self) -> str:
        """Of the values that the settings do not name the one to be pushed out first."""
        return max(self.hashes, key=lambda text: self.hashes[text])

    def _add(self, text: str) -> int:
        self.codes[text] = len(self.texts)
        self.texts.append(text)
        self.events.append(0)
        return self.codes[text]

    @property
    def kept(self) -> list[str]:
        return sorted(self.codes)

    @property
    def capped(self) -> int:
        """Accepted events that carried a value which is not kept."""
        return self.events[OTHER]


def segment_texts(dump: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The values of each segment of a dump, as shown."""
    texts = [values["texts"] for values in dump["values"]]
    return [
        tuple(t[code] for t, code in zip(texts, codes, strict=True)) for codes in dump["tuples"]
    ]


class Segments:
    """The segments of one partition. ``remapped`` is set when values were folded."""

    def __init__(self, dimensions: Sequence[Dimension], limit: int) -> None:
        self.values = [Values(d) for d in dimensions]
        self.limit = limit
        self.overflowed = 0
        self._numbers: dict[tuple[int, ...], int] = {}
        self._tuples: list[tuple[int, ...]] = []
        self._codes: I64 = np.zeros((0, len(dimensions)), np.int64)
        self._interner: Interner | None = None
        self._known: I64 = np.zeros(0, np.int64)
        self._moved = False

    def __len__(self) -> int:
        return len(self._tuples)

    def of(self, interner: Interner, local: I32, accepted_events: I32) -> I64:
        """Segments of the interner's codes; the accepted events' values are counted."""
        if interner is not self._interner:
            self._interner, self._known = interner, np.full(len(interner.tuples), -1, np.int64)
        elif len(self._known) < len(interner.tuples):
            more = np.full(len(interner.tuples) - len(self._known), -1, np.int64)
            self._known = np.concatenate([self._known, more])
        counts = np.bincount(accepted_events, minlength=len(interner.tuples))
        for code in np.flatnonzero(counts).tolist():
            self._register(code, interner.tuples[code], int(counts[code]))
        return self._known[local]

    def _register(self, local: int, texts: tuple[str, ...], events: int) -> None:
        codes = []
        for values, text in zip(self.values, texts, strict=True):
            code, gone = values.code(text)
            values.events[code] += events
            codes.append(code)
            if gone is not None:
                self._fold(values, gone)
        if self._known[local] < 0:
            self._known[local] = self._number(tuple(codes))

    def _fold(self, values: Values, gone: str) -> None:
        """Put a value that was pushed out under ``other``, in every segment that has it."""
        code = values.codes.pop(gone)
        values.events[OTHER] += values.events[code]
        values.events[code] = 0
        values.texts[code] = values.texts[OTHER]
        at = self.values.index(values)
        for i, old in enumerate(self._tuples):
            if old[at] == code:
                self._tuples[i] = (*old[:at], OTHER, *old[at + 1 :])
        self._moved = True

    def _number(self, codes: tuple[int, ...]) -> int:
        number = self._numbers.get(codes)
        if number is None:
            if len(self._tuples) >= self.limit:
                self.overflowed += 1
                codes = (OTHER,) * len(codes)
                if codes in self._numbers:
                    return self._numbers[codes]
            number = self._numbers[codes] = len(self._tuples)
            self._tuples.append(codes)
        return number

    def take_moves(self) -> I64 | None:
        """Old → new segment numbers since the last call, or None where nothing was folded."""
        if not self._moved:
            return None
        self._moved = False
        self._numbers = {}
        moves = []
        for i, codes in enumerate(self._tuples):
            moves.append(self._numbers.setdefault(codes, i))
        self._known = np.full(len(self._known), -1, np.int64)
        self._codes = self._codes[:0]
        return np.array(moves, np.int64)

    def codes(self) -> I64:
        """Value codes of each segment, (segments, dimensions)."""
        if len(self._codes) != len(self._tuples):
            self._codes = np.array(self._tuples, np.int64).reshape(
                len(self._tuples), len(self.values)
            )
        return self._codes

    def is_complete(self, segment: I64) -> Bools:
        """Whether every dimension has a value."""
        complete: Bools = (self.codes()[segment] != UNKNOWN).all(axis=1)
        return complete

    def filled(self, own: I64, inherited: I64) -> I64:
        """Segments with the unknown values of ``own`` taken from ``inherited``."""
        codes = self.codes()
        mine = codes[own]
        rows = np.where(mine == UNKNOWN, codes[inherited], mine)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        numbers = [self._number(tuple(row)) for row in distinct.tolist()]
        return np.array(numbers, np.int64)[inverse.reshape(-1)]

    def texts(self) -> list[tuple[str, ...]]:
        """The values of each segment, as shown."""
        return segment_texts(self.dump())

    # Stored form -----------------------------------------------------------------------------

    def dump(self) -> dict[str, object]:
        return {
            "values": [{"texts": v.texts, "events": v.events, "kept": v.kept} for v in self.values],
            "tuples": self._tuples,
            "overflowed": self.overflowed,
        }

    def load(self, data: dict[str, object]) -> I64:
        """Take over a dump; returns old → canonical segment numbers."""
        for values, stored in zip(self.values, data["values"], strict=True):  # type: ignore[call-overload]
            values.texts, values.events = list(stored["texts"]), list(stored["events"])
            kept = set(stored["kept"])
            values.codes = {t: i for i, t in enumerate(values.texts) if i > OTHER and t in kept}
            unnamed = sorted(kept - set(values.dimension.values))
            digests = hash_texts([unnamed])[0].tolist() if unnamed else []
            values.hashes = dict(zip(unnamed, digests, strict=True))
        self._tuples = [tuple(t) for t in data["tuples"]]  # type: ignore[attr-defined]
        self.overflowed = int(data["overflowed"])  # type: ignore[call-overload]
        for values in self.values:  # those that the settings named then, and do not now
            while len(values.hashes) > values.dimension.max_values:
                gone = values.last
                del values.hashes[gone]
                self._fold(values, gone)
        self._moved = True
        moves = self.take_moves()
        assert moves is not None
        return moves


assert limits.MAX_DIMENSION_VALUES < 1 << 31
