"""Rows, repeats, joins and finality: a function of the set of accepted events."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from streamer.settings.model import Settings

from .acceptance import Acceptance
from .shape import Address, Event, Row, joined_by

RowIndex = dict[tuple[int, str, str], list[Row]]


@dataclass
class Joins:
    """Every shown item, and for every feedback and conversion the row it joined."""

    rows: list[Row]
    joined: dict[Address, Row | None] = field(default_factory=dict)
    final: set[Address] = field(default_factory=set)
    unsettled: list[Address] = field(default_factory=list)


def join(verdict: Acceptance, settings: Settings) -> Joins:
    """Feedback first, then the conversions that build on it, then what can no longer change."""
    out = Joins(make_rows(verdict.events, settings))
    index: RowIndex = defaultdict(list)
    for row in out.rows:
        if not row.repeat:
            who = "" if row.shown.impression_id else row.event.joins_as
            index[row.event.partition, who, row.shown.key].append(row)
    for rows in index.values():
        rows.sort(key=event_time)
    feedback = [e for e in verdict.events if is_feedback(e, settings)]
    for event in feedback:
        target = newest(candidates(event, index, settings.attribution.click_ms))
        out.joined[event.address] = target
        if target is not None:
            target.feedback.append(event)
    conversions = [e for e in verdict.events if e.topic == "conversions"]
    for event in conversions:
        rows = candidates(event, index, settings.attribution.conversion_ms)
        target = newest([r for r in rows if any(f.event_ms <= joins_ms(event) for f in r.feedback)])
        out.joined[event.address] = target
        if target is not None:
            target.conversions.append(event)
    for event in feedback + conversions:
        if is_final(event, out, verdict, settings):
            out.final.add(event.address)
        elif None in event.dims:
            out.unsettled.append(event.address)
    return out


def is_feedback(event: Event, settings: Settings) -> bool:
    """An event of the clicks topic whose kind is configured (`conversion` is another topic)."""
    kinds = {"click", *settings.metrics.feedback} - {"conversion"}
    return event.topic == "clicks" and event.kind in kinds


def make_rows(events: list[Event], settings: Settings) -> list[Row]:
    """All shown items in offset order, repeats marked: those that their slate shows already."""
    window_ms = window_of_slates_ms(settings)
    opened: dict[tuple[int, str, str], int] = {}
    shown_in: dict[tuple[int, str, str], set[str]] = {}
    rows = []
    for event in sorted((e for e in events if e.topic == "impressions"), key=lambda e: e.offset):
        items: set[str] = set()
        if event.request_id is not None:
            key = (event.partition, event.joins_as, event.request_id)
            if key not in opened or event.arrival_ms - opened[key] > window_ms:
                opened[key], shown_in[key] = event.arrival_ms, set()
            items = shown_in[key]
        for i, shown in enumerate(event.shown):
            rows.append(Row(event, i, shown, repeat=shown.key in items))
            items.add(shown.key)
    return rows


def window_of_slates_ms(settings: Settings) -> int:
    """How long, by the arrival clock, a request id belongs to the slate that it opened."""
    times = settings.time
    return settings.attribution.click_ms + times.max_lateness_ms + times.max_skew_ms


def candidates(event: Event, index: RowIndex, horizon_ms: int) -> list[Row]:
    """Rows of the same user, or id of joins, and item (and request, if named) within the horizon
    before it; or of its impression."""
    of, request, order = event, event.joined_request, event.order
    if event.is_refund:
        if order is None:
            return []
        if event.impression_id is None:
            request = order.joined_request
            if event.item_id is None:
                of = order
            elif request and order.joins_as != event.joins_as:
                return []
    who = of.joins_as if of.impression_id is None else ""
    rows = index.get((event.partition, who, joined_by(of.item_id, of.impression_id)), [])
    start = bisect_left(rows, event.event_ms - horizon_ms, key=event_time)
    end = bisect_right(rows, joins_ms(event), key=event_time)
    return [r for r in rows[start:end] if request in (None, r.event.request_id)]


def joins_ms(event: Event) -> int:
    """When it joins: a refund when its order did."""
    return event.event_ms if event.order is None else min(event.event_ms, event.order.event_ms)


def event_time(row: Row) -> int:
    return row.event.event_ms


def newest(rows: list[Row]) -> Row | None:
    return max(rows, key=lambda row: row.newness, default=None)


def effective_dims(event: Event, joins: Joins) -> tuple[str | None, ...]:
    """Own values; feedback takes what is missing from the row it joined."""
    row = joins.joined.get(event.address)
    if row is None:
        return event.dims
    return tuple(row.event.dims[i] if own is None else own for i, own in enumerate(event.dims))


def is_final(event: Event, joins: Joins, verdict: Acceptance, settings: Settings) -> bool:
    """No record that may still come can change what the event joins."""
    row = joins.joined[event.address]
    after_ms = joins_ms(event) + settings.time.max_lateness_ms
    of = event if event.order is None or event.impression_id is not None else event.order
    request_id = of.joined_request

    def passed(topic: str) -> bool:
        clock = verdict.join_clock_ms(topic, event.partition, settings.time.max_skew_ms)
        return clock > after_ms

    if event.topic == "clicks":
        return (row is not None and request_id is not None) or passed("impressions")
    if row is not None and request_id is not None:
        before = [f for f in row.feedback if f.event_ms <= joins_ms(event)]
        if any(f.address in joins.final for f in before):
            return True
    return passed("impressions") and passed("clicks")
