"""Drift of scores: the classes of every single score, and what shares they have on both days."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction

from streamer.metrics.score_sums import EDGES
from streamer.settings.model import Settings

from .dimensions import Kept, Segment
from .joining import Joins
from .sink import Sink
from .span import Span

LEAST = 1000
"""Scores on either side."""


def classes_of(then: list[int]) -> dict[int, int]:
    """Bin → the tenth that the middle of its scores fell in; 10 where all of them are below it."""
    found, ordered = {}, sorted(then)
    for number in range(len(EDGES) + 1):
        middle = Fraction(bisect_left(ordered, number) + bisect_right(ordered, number), 2)
        found[number] = math.floor(10 * middle / len(then))
    return found


def psi(now: list[int], then: list[int]) -> float:
    """Of the bins of all scores."""
    of = classes_of(then)
    shares = []
    for bins in (now, then):
        counted = Counter(of[b] for b in bins)
        shares.append([(counted[c] + 0.5) / (len(bins) + 5.5) for c in range(11)])
    return sum(((p - q) * math.log(p / q) for p, q in zip(*shares, strict=True)), 0.0)


@dataclass
class DriftReadings:
    """What is shown of a log's scores beside those of a day before."""

    joins: Joins
    kept: Kept
    settings: Settings

    def bins(self, span: Span) -> dict[Segment, list[int]]:
        """Segment → the bin of each score in the window."""
        found: dict[Segment, list[int]] = defaultdict(list)
        for row in self.joins.rows:
            if row.shown.score is not None and span.covers(row.event.event_ms):
                for segment in self.kept.segments(row.event.dims):
                    found[segment].append(bisect_right(EDGES, row.shown.score))
        return found

    def read(self, out: Sink, now: Span, then: Span, shown: set[Segment]) -> None:
        """``shown``: segments with anything now."""
        if "scores" not in self.settings.metrics.families:
            return
        bins = self.bins(now), self.bins(then)
        for segment in shown:
            labels = {"window": now.label, **dict(segment)}
            both = [of.get(segment, []) for of in bins]
            for name, some in zip(("drift", "drift_day_before"), both, strict=True):
                out.support(f"window_{name}_impressions", labels, len(some))
            if min(map(len, both)) >= LEAST:
                out.put("score_drift", labels, psi(*both))
