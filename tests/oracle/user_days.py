"""What every user did on every day, under every value of a dimension.

An experiment's metric divides one such component by another: clicks by impressions, the values of
slates by their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from streamer.settings.model import Settings

from . import items, off_policy, own_ratios, scores
from .acceptance import Acceptance
from .dimensions import Dims, Kept
from .dwell import dwells_of
from .joining import Joins, effective_dims
from .sessions import sessions_of
from .shape import Event
from .slate_readings import Measure, SlateReadings
from .slates import slates_of
from .users import kind_of

User = tuple[int, str]
"""(partition, person)."""


@dataclass(frozen=True)
class Fact:
    """Something that adds to a component, when and where it counts."""

    user: User
    event_ms: int
    dims: Dims
    component: str
    amount: int = 1


def facts_of(verdict: Acceptance, joins: Joins, kept: Kept, settings: Settings) -> Iterator[Fact]:
    """All of a log."""
    for event in verdict.events:
        dims = effective_dims(event, joins)
        for component, amount in counted(event, settings):
            yield Fact(user_of(event), event.event_ms, dims, component, amount)
    yield from attributed(joins)
    of_rows = chain(
        scores.added(joins, settings),
        off_policy.added(joins, settings),
        items.added(slates_of(joins, settings), settings),
    )
    for row, component, amount in of_rows:
        yield Fact(user_of(row.event), row.event.event_ms, row.event.dims, component, amount)
    for value, component, amount in own_ratios.added(verdict, joins, settings):
        yield Fact((value.partition, value.who), value.event_ms, value.dims, component, amount)
    yield from dwelt(verdict.events, joins, settings)
    yield from visited(verdict.events, settings)
    yield from shown_in_slates(joins, kept, settings)


def user_of(event: Event) -> User:
    return (event.partition, event.who)


def counted(event: Event, settings: Settings) -> Iterator[tuple[str, int]]:
    """What one event adds by its own time."""
    if event.topic == "impressions" and event.shown:
        yield "impressions", len(event.shown)
    elif event.topic == "impressions":
        yield "requests", 1
        yield "empty slates", 1
    if event.topic == "clicks" or (event.topic == "conversions" and not event.line):
        yield "outcomes", 1
    if event.topic == "clicks" and event.kind == "click":
        yield "clicks", 1
    if event.topic == "conversions":
        yield "conversions", event.orders * (not event.line)
        yield "value", event.value_micros
    kind = kind_of(event, settings)
    if event.topic == "conversions" and "conversion" in settings.metrics.feedback:
        yield "feedback.conversion", event.orders  # one less for what is given back
    elif kind is not None:
        yield f"feedback.{kind}", 1


def attributed(joins: Joins) -> Iterator[Fact]:
    """Impressions that were clicked, and that were bought from, too: by the impression's time."""
    for row in joins.rows:
        event = row.event
        for component, is_so in (("clicked", row.clicked), ("converted", row.converted)):
            if is_so:
                yield Fact(user_of(event), event.event_ms, event.dims, component)


def dwelt(events: list[Event], joins: Joins, settings: Settings) -> Iterator[Fact]:
    """The times on items that count, for whoever reported them."""
    for dwell in dwells_of(events, joins, settings):
        user = user_of(dwell.event)
        yield Fact(user, dwell.event_ms, dwell.dims, "viewings")
        yield Fact(user, dwell.event_ms, dwell.dims, "outcomes")
        yield Fact(user, dwell.event_ms, dwell.dims, "dwell", dwell.dwell_ms)


def visited(events: list[Event], settings: Settings) -> Iterator[Fact]:
    """Sessions, where they end."""
    for session in sessions_of(events, settings):
        at = (session.user, session.ended_ms, session.dims)
        yield Fact(*at, "sessions")
        yield Fact(*at, "bounces", int(session.views == 1))
        yield Fact(*at, "views", session.views)
        yield Fact(*at, "length", session.length_ms)


# Slates ---------------------------------------------------------------------------------------


def shown_in_slates(joins: Joins, kept: Kept, settings: Settings) -> Iterator[Fact]:
    """Slates of every population, and the sums of their values."""
    readings = SlateReadings(slates_of(joins, settings), kept, settings)
    for slate, by_population in readings.slates:
        event = slate.event
        at = (user_of(event), event.event_ms, event.dims)
        yield Fact(*at, "requests")
        yield Fact(*at, slates_in("all"))
        for population, values in by_population.items():
            yield Fact(*at, slates_in(population))
            for measure, value in zip(readings.measures[population], values, strict=True):
                yield Fact(*at, component_of(measure), millionths(value))


def slates_in(population: str) -> str:
    """The component that counts a population's slates."""
    return f"{population} slates"


def component_of(measure: Measure) -> str:
    """Its name, cut-off and convention: `mrr`, `ndcg_ratio@10`, `map_ratio@5.jurity`."""
    labels = dict(measure.labels)
    cutoff = f"@{labels['k']}" if "k" in labels else ""
    convention = f".{labels['convention']}" if "convention" in labels else ""
    return f"{measure.name}{cutoff}{convention}"


def millionths(value: int) -> int:
    """A value in units of 1e-9, rounded to 1e-6: halves go up.

    >>> millionths(1_499), millionths(1_500), millionths(-1_500)
    (1, 2, -1)
    """
    return (value + 500) // 1000


def measures_of(settings: Settings) -> dict[str, Measure]:
    """Component → the metric of slates that it is the sum of."""
    by_population = SlateReadings([], Kept([], settings), settings).measures
    return {component_of(m): m for measures in by_population.values() for m in measures}
