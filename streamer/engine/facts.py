"""What the parts of the engine tell each other after an apply: columns of facts.

A metric family turns facts into amounts of its statistics; it never sees events or tables.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from streamer.batch import F64, I64, U64, Bools

CONVERSION = -2
"""The kind of a conversion; other kinds are indices, -1 for those that are not configured."""


class _Columns:
    """Rows of equal length; what is no array holds for all of them."""

    def where(self, mask: Bools | I64) -> Self:
        """Some of the rows."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        chosen = {n: c[mask] for n, c in columns.items() if isinstance(c, np.ndarray)}
        return replace(self, **chosen)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class ShownFacts(_Columns):
    """Shown items (repeats too), each once."""

    event_ms: I64
    segment: I64
    position: I64
    user: U64
    item: U64


@dataclass(frozen=True, slots=True)
class FeedbackFacts(_Columns):
    """Feedback under its effective segment and position; ``sign`` -1 takes an earlier fact back.

    ``kind``: index of the configured kind, -1 for others, CONVERSION for conversions. ``is_new``:
    told for the first time, not moved. ``slate`` is 0 without a request id; ``dwell_ms`` is -1
    where there is none. ``offset`` is that of the event in its topic.
    """

    event_ms: I64
    segment: I64
    position: I64
    kind: I64
    value_micros: I64
    user: U64
    slate: U64
    item: U64
    offset: I64
    dwell_ms: I64
    is_new: Bools
    sign: int


@dataclass(frozen=True, slots=True)
class OutcomeFacts(_Columns):
    """Impressions whose outcome changed: +1, 0 or -1 for clicked and for converted."""

    event_ms: I64
    segment: I64
    user: U64
    clicked: I64
    converted: I64


@dataclass(frozen=True, slots=True)
class DwellFacts(_Columns):
    """Times spent on items, each viewing once; ``sign`` -1 takes an earlier fact back."""

    event_ms: I64
    segment: I64
    user: U64
    dwell_ms: I64
    sign: int


@dataclass(frozen=True, slots=True)
class SessionFacts(_Columns):
    """Sessions under the time at which they end; ``sign`` -1 takes an earlier fact back."""

    event_ms: I64
    segment: I64
    user: U64
    length_ms: I64
    views: I64
    sign: int


@dataclass(frozen=True, slots=True)
class SlateFacts(_Columns):
    """Slates under the time and segment of their earliest members; ``sign`` -1 takes one back."""

    event_ms: I64
    segment: I64
    user: U64
    sign: int


@dataclass(frozen=True, slots=True)
class RankedFacts:
    """Slates with feedback or probes, and their members.

    One a slate: ``event_ms``, ``segment``, ``user``, the place ``start`` of its first member, and
    ``sign``: 1 or -1 where it takes an earlier fact back. One a member, in the order shown:
    ``grade`` (0, or an index into the gains from 1), ``is_clicked``, ``score`` (NaN: none) and
    ``probe`` (see ``streamer.probes``).
    """

    event_ms: I64
    segment: I64
    user: U64
    start: I64
    grade: I64
    is_clicked: Bools
    score: F64
    probe: I64
    sign: I64


Fact = (
    ShownFacts | FeedbackFacts | OutcomeFacts | DwellFacts | SessionFacts | SlateFacts | RankedFacts
)
