"""Slates: what one request showed one user, in order, and what it was worth to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from streamer.settings.model import Settings

from .joining import Joins, window_of_slates_ms
from .shape import Event, Row

MAX_MEMBERS = 1000
"""Later items of the same slate are impressions, and nothing more."""


@dataclass(frozen=True)
class Member:
    """One shown item of a slate."""

    row: Row
    grade: float

    @property
    def item_id(self) -> str:
        return self.row.shown.item_id

    @property
    def is_compared_as(self) -> str | None:
        """What stands for it in lists beside the slate: nothing where its impression has an id."""
        return self.item_id if self.row.shown.impression_id is None else None

    @property
    def is_relevant(self) -> bool:
        return self.grade > 0


@dataclass(frozen=True)
class Slate:
    """``members`` in the order that they were shown in: rank 1 first."""

    members: tuple[Member, ...]

    @cached_property
    def event(self) -> Event:
        """The event of the earliest member: its time and dimensions are the slate's."""
        return self.earliest.event

    @property
    def earliest(self) -> Row:
        """The earliest member's row."""
        return min((m.row for m in self.members), key=lambda row: row.newness)

    @cached_property
    def grades(self) -> tuple[float, ...]:
        return tuple(m.grade for m in self.members)

    @cached_property
    def events(self) -> list[Event]:
        """Of each member its event, in the order of the members' ages."""
        return [row.event for row in sorted((m.row for m in self.members), key=lambda r: r.newness)]

    @cached_property
    def held_out(self) -> str | None:
        """The item that stood among sampled ones, by the earliest member that says so."""
        return next((e.held_out for e in self.events if e.held_out is not None), None)

    @cached_property
    def reference(self) -> tuple[str, ...]:
        """What brute force gives, each item at its first place, by the earliest member likewise."""
        listed = next((e.reference for e in self.events if e.reference), ())
        return tuple(item for i, item in enumerate(listed) if item not in listed[:i])

    @property
    def held_out_rank(self) -> int | None:
        wanted = self.held_out
        members = enumerate(self.members, 1) if wanted is not None else ()
        return next((i for i, m in members if m.is_compared_as == wanted), None)


def slates_of(joins: Joins, settings: Settings) -> list[Slate]:
    """All slates of a log, as everything in it makes them."""
    gains = settings.metrics.feedback
    return [
        Slate(tuple(Member(row, grade(row, gains)) for row in sorted(rows, key=shown_order)))
        for rows in instances(joins, settings)
    ]


def instances(joins: Joins, settings: Settings) -> list[list[Row]]:
    """The rows of each slate, in log order.

    A request is one slate for as long as an item that it showed can only be repeated; what it shows
    later is another slate.
    """
    found: list[list[Row]] = []
    newest: dict[tuple[int, str, str | int], list[Row]] = {}
    for key, row in rows_of_requests(joins):
        rows = newest.get(key)
        arrival_ms = row.event.arrival_ms
        if rows is None or arrival_ms - rows[0].event.arrival_ms > window_of_slates_ms(settings):
            rows = newest[key] = []
            found.append(rows)
        if len(rows) < MAX_MEMBERS:
            rows.append(row)
    return found


def rows_of_requests(joins: Joins) -> Iterator[tuple[tuple[int, str, str | int], Row]]:
    """Rows that are of a slate, with what tells slates apart: a list without a request is one."""
    for row in joins.rows:
        event = row.event
        if row.repeat:
            continue
        if event.request_id is not None:
            yield (event.partition, event.joins_as, event.request_id), row
        elif event.is_list:
            yield (event.partition, event.joins_as, event.offset), row


def shown_order(row: Row) -> tuple[bool, int, tuple[int, int, int]]:
    """By position, those without one last; then by time and by place in the log."""
    position = row.shown.position
    return (position is None, position or 0, row.newness)


def grade(row: Row, gains: dict[str, float]) -> float:
    """The largest gain of what was attributed to an item; without any it is 0."""
    kinds = {event.kind for event in row.feedback}
    if row.is_ordered:
        kinds.add("conversion")
    return max((gains.get(kind, 0.0) for kind in kinds), default=0.0)
