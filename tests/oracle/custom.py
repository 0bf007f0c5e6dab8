"""Custom metrics, value by value: what each event says, where it counts, and what is shown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from streamer.settings.model import Settings
from streamer.settings.own_metrics import Custom

from .acceptance import Acceptance
from .dimensions import Dims, Kept, Segment
from .joining import Joins, effective_dims
from .shape import Event
from .sink import QUANTILES, Sink
from .span import Span
from .users import Tally

MICROS = 10**6
SMALLEST = 1000
"""The least magnitude that quantiles tell from 0: 0.001."""
PARTS = {"custom_mean": "events", "custom_per_impression": "impressions", "custom_per_user": "1"}
"""Metric → its denominator."""


@dataclass(frozen=True)
class Value:
    """What one event, or one of its items, says to a metric."""

    event: Event
    dims: Dims
    custom: str
    micros: int


def said(custom: Custom, event: Event) -> list[int | None]:
    """What an event says, item by item where it shows items; it may be of another kind."""
    if event.topic != custom.kind:
        return []
    if custom.field is None:
        return [None if event.line else MICROS] * (len(event.shown) or 1)
    if event.topic == "impressions":
        if custom.field == "score":
            return [micros(shown.score) for shown in event.shown]
        whole = event.numbers.get(custom.field)
        return [micros(shown.numbers.get(custom.field, whole)) for shown in event.shown]
    if custom.field == "dwell_ms":
        return [micros(event.dwell_ms if not event.line else None)]
    return [micros(event.numbers.get(custom.field))]


def micros(value: float | None) -> int | None:
    return None if value is None else round(value * 1e6)


def values_of(verdict: Acceptance, joins: Joins, settings: Settings) -> Iterator[Value]:
    """Everything that counts, under its effective values of dimensions."""
    for custom in settings.custom:
        for event in verdict.events:
            dims = effective_dims(event, joins)
            named = dict(zip(settings.dimension_names, dims, strict=False))  # then units
            if all(named[dimension] in values for dimension, values in custom.where.items()):
                for found in said(custom, event):
                    if found is not None:
                        yield Value(event, dims, custom.name, found)


# Ratios of sums -------------------------------------------------------------------------------


def ratios(settings: Settings) -> dict[str, tuple[str, str]]:
    """Metric → its components: numerator and denominator."""
    found = {}
    for custom in settings.custom:
        for name, below in PARTS.items():
            bottom = f"custom events@{custom.name}" if below == "events" else below
            found[f"{name}@{custom.name}"] = (f"custom sum@{custom.name}", bottom)
    return found


def added(
    verdict: Acceptance, joins: Joins, settings: Settings
) -> Iterator[tuple[Value, str, int]]:
    """(value, component, amount) of what intervals, experiments and alerts need."""
    for value in values_of(verdict, joins, settings):
        yield value, f"custom events@{value.custom}", 1
        yield value, f"custom sum@{value.custom}", value.micros


# What is shown --------------------------------------------------------------------------------


@dataclass
class CustomReadings:
    """What is shown of a log's custom metrics."""

    verdict: Acceptance
    joins: Joins
    kept: Kept
    settings: Settings

    def read(self, out: Sink, span: Span, tallied: Mapping[Segment, Tally]) -> None:
        """All series of a window; ``tallied``: its users."""
        if not self.settings.custom:
            return
        impressions: Counter[Segment] = Counter()
        for event in self.verdict.events:
            if span.covers(event.event_ms):
                for segment in self.kept.segments(event.dims):
                    impressions[segment] += len(event.shown)
        found: dict[tuple[str, Segment], list[int]] = defaultdict(list)
        of_users: Counter[tuple[str, Segment]] = Counter()
        for value in values_of(self.verdict, self.joins, self.settings):
            if span.covers(value.event.event_ms):
                for segment in self.kept.segments(value.dims):
                    found[value.custom, segment].append(value.micros)
                    if value.event.person is not None:
                        of_users[value.custom, segment] += value.micros
        for custom in self.settings.custom:
            seen = {segment for name, segment in found if name == custom.name}
            for segment in seen | {*impressions} | {*tallied}:
                some = found.get((custom.name, segment), [])
                labels = {"window": span.label, "custom": custom.name, **dict(segment)}
                read_values(out, labels, some, custom.quantiles)
                total = Fraction(sum(some), MICROS)
                out.ratio("custom_per_impression", labels, total, impressions[segment])
                if segment in tallied:
                    of_them = Fraction(of_users[custom.name, segment], MICROS)
                    out.ratio("custom_per_user", labels, of_them, tallied[segment].users)


def read_values(out: Sink, labels: dict[str, str], some: list[int], has_quantiles: bool) -> None:
    out.support("window_custom_events", labels, len(some))
    total = Fraction(sum(some), MICROS)
    if some:
        out.put("window_custom_value", labels, float(total))
    out.ratio("custom_mean", labels, total, len(some))
    ranked = sorted(some)
    for text, q in QUANTILES.items() if some and has_quantiles else ():
        rank = max(1, -(-q.numerator * len(ranked) // q.denominator))
        value = shown_as(ranked[rank - 1])
        out.put("custom_quantile", {"quantile": text, **labels}, value / 1e6)


def shown_as(value: int) -> int:
    """A value as far as quantiles tell magnitudes apart."""
    return 0 if abs(value) < SMALLEST else value
