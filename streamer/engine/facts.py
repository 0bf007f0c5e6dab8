"""What the engine tells the metric families after an apply: columns of facts.

A family turns facts into amounts of its statistics; it never sees events or tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamer.batch import I64


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """Shown items (repeats too), each once."""

    event_ms: I64
    segment: I64
    position: I64


@dataclass(frozen=True, slots=True)
class FeedbackFacts:
    """Feedback under its effective segment and position; ``sign`` -1 takes an earlier fact back.

    ``kind``: index of the configured kind, -1 for others, -2 for conversions.
    """

    event_ms: I64
    segment: I64
    position: I64
    kind: I64
    value_micros: I64
    dwell_ms: I64
    sign: int

    def where(self, mask: np.ndarray) -> FeedbackFacts:
        return FeedbackFacts(
            self.event_ms[mask],
            self.segment[mask],
            self.position[mask],
            self.kind[mask],
            self.value_micros[mask],
            self.dwell_ms[mask],
            self.sign,
        )


@dataclass(frozen=True, slots=True)
class OutcomeFacts:
    """Impressions whose outcome changed: +1, 0 or -1 for clicked and for converted."""

    event_ms: I64
    segment: I64
    clicked: I64
    converted: I64


CONVERSION = -2
Fact = ShownFacts | FeedbackFacts | OutcomeFacts
