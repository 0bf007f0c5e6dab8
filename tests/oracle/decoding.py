"""Raw bytes → Event, or the reason why not: the wire rules read aloud, one check a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamer.settings.model import Settings

from .arms import said_of_arms, text_of
from .overwritten import ACTIONS, check_element, check_overwritten
from .parsing import MAX_DEPTH, BrokenError, Object, broken, depth, parse
from .shape import EXPOSURES, LINE_TYPES, SHOWN, SOLD, Event, Line, Shown
from .times import DAY_MS, moment_ms
from .values import (
    MAX_ITEMS,
    Get,
    asked_by_ratios,
    dimension,
    fields_of_policies,
    fields_of_ratios,
    identity,
    integer,
    is_cut,
    label,
    label_or_none,
    numbers,
    optional_identity,
    position,
    rated,
    reference,
    said_of_policies,
    scored,
    texts,
    worth,
)

SAID: dict[str, dict[str, tuple[str, ...]]] = {
    SHOWN: {
        "0": ("impressions",),
        "1": ("impressions", "clicks"),
        "2": ("impressions", "clicks"),
    },
    SOLD: {
        "0": ("impressions",),
        "1": ("impressions", "clicks"),
        "2": ("impressions", "clicks"),
        "sold": ("impressions", "clicks", "conversions"),
        "order": ("clicks", "conversions"),
        "later": ("conversions",),
        "returned": ("conversions",),
    },
}
"""Topic → what `click` says → the kinds of events that the record is; the click of 2 is a like."""


def decode(topic: str, raw: bytes | None, settings: Settings, record_ms: int = 0) -> list[Event]:
    """The event of a record, one for each line, or BrokenError."""
    value = parse(raw)
    if depth(value) > MAX_DEPTH:
        broken("too_deep")
    check_overwritten(topic, value, settings, read_items)
    return lines_of(event_of(topic, value, settings, record_ms))


def decode_all(
    topic: str, raw: bytes | None, settings: Settings, record_ms: int
) -> list[list[Event] | BrokenError]:
    """What each event of a record is, one for each line, or the reason why it is none."""
    try:
        if topic not in SAID:
            return [decode(topic, raw, settings, record_ms)]
        value = parse(raw)
        if depth(value) > MAX_DEPTH:
            broken("too_deep")
        said = SAID[topic].get(str(value.get("click")))
        if said is None:
            broken("kind")
    except BrokenError as reason:
        return [reason]
    found: list[list[Event] | BrokenError] = []
    for kind in said:
        names = ("item_id", "impression_id")
        has_item = value.get("items") or any(value.get(n) not in (None, "") for n in names)
        if len(said) > 1 and kind != "impressions" and not has_item:
            continue
        liked = {"feedback": "like"} if str(value["click"]) == "2" and kind == "clicks" else {}
        try:
            line_type = "refund" if str(value["click"]) == "returned" else None
            if line_type and value.get("items") == []:  # no lines: all of the order
                value = Object([pair for pair in value.items() if pair[0] != "items"])
            event = event_of(kind, {**value, "type": line_type, **liked}, settings, record_ms)
            event.is_shared = len(said) > 1
            found.append(lines_of(event))
        except BrokenError as reason:
            found.append(reason)
    return found or [BrokenError("ignored")]


def lines_of(event: Event) -> list[Event]:
    """An event with lines as one event a line. What it says beside lines that say nothing of that
    counts with the first."""
    if not event.lines:
        event.worth_micros = (event.value_micros,)
        return [event]
    made = []
    for i, line in enumerate(event.lines):
        of_all = event.numbers if i == 0 else {}
        said = {name for x in event.lines for name in x.numbers}
        shared = {name: number for name, number in of_all.items() if name not in said}
        own = replace(event, line=i, lines=[], numbers=shared | line.numbers)
        own.texts = event.texts | line.texts
        own.asked = event.numbers | line.numbers
        own.item_id, own.impression_id = line.item_id, line.impression_id
        own.position = line.position
        if i == 0 and all(x.position is None for x in event.lines):
            own.position = event.position
        own.dwell_ms = None if i else event.dwell_ms
        own.rating = line.rating
        if event.topic == "conversions":
            is_first_of_none = i == 0 and all(x.value is None for x in event.lines)
            value = event.value if is_first_of_none else line.value
            if value is not None and own.is_return:
                value = abs(value)
            own.value_micros = 0 if value is None else round(value * 1e6)
            own.value_micros *= -1 if own.is_return else 1
            own.numbers.pop("value", None)
            if value is not None:
                own.numbers["value"] = value
        made.append(own)
    for own in made:
        own.worth_micros = tuple(one.value_micros for one in made)
    return made


def event_of(topic: str, value: Mapping[str, Any], settings: Settings, record_ms: int) -> Event:
    """The event that an object is, or BrokenError."""
    names = settings.events.fields

    def get(name: str) -> Any:
        return value.get(names.get(name, name))

    if get("type") is not None and LINE_TYPES.get(label_or_none(get("type"))) != topic:
        broken("type")
    if topic == EXPOSURES:
        return exposure(get, value, settings, record_ms)
    event = Event(
        event_ms=moment_ms(get("ts"), "ts", settings, record_ms),
        user_id=optional_identity(get("user_id"), "user_id"),
        event_id=optional_identity(get("event_id"), "event_id"),
        request_id=optional_identity(get("request_id"), "request_id"),
        dims=tuple(dimension(get(name)) for name in settings.kept_fields),
        cut=sum(is_cut(get(name)) for name in settings.kept_fields),
        topic=topic,
        join_id=optional_identity(get("join_id"), "join_id"),
        numbers=numbers(get, fields_of_ratios(settings, topic), "ratios"),
        texts=texts(get, asked_by_ratios(settings, topic)),
        said_of_arms=said_of_arms(value, settings),
    )
    {
        "impressions": lambda: impression(event, get, settings),
        "clicks": lambda: click(event, get, settings, record_ms),
        "conversions": lambda: conversion(event, get, settings),
        "sessions": lambda: session(event, get, settings, record_ms),
    }[topic]()
    if settings.items.category is not None:
        category = event.dims[settings.dimension_names.index(settings.items.category)]
        event.shown = [replace(shown, category=category) for shown in event.shown]
    return event


def exposure(get: Get, value: Mapping[str, Any], settings: Settings, record_ms: int) -> Event:
    """Who is in which arm of which experiment; all else that it says is not looked at."""
    join_id = optional_identity(get("join_id"), "join_id")
    read = identity if join_id is None else optional_identity
    event = Event(
        event_ms=moment_ms(get("ts"), "ts", settings, record_ms),
        user_id=read(get("user_id"), "user_id"),
        join_id=join_id,
        event_id=optional_identity(get("event_id"), "event_id"),
        request_id=None,
        dims=tuple(dimension(get(name)) for name in settings.kept_fields),
        cut=sum(is_cut(get(name)) for name in settings.kept_fields),
        topic=EXPOSURES,
        experiment=text_of(get("experiment")),
        arm=text_of(get("arm")),
        said_of_arms=said_of_arms(value, settings),
    )
    for name, text in (("experiment", event.experiment), ("arm", event.arm)):
        if not text:
            broken(name)
    return event


def impression(event: Event, get: Get, settings: Settings) -> None:
    """One item, or a list of them; a list without any position is in shown order."""
    items = get("items")
    score = scored(get("score"), "score")  # beside ``items`` it has no meaning
    said = said_of_policies(get, fields_of_policies(settings))  # nor have these
    category = optional_identity(get("item_category"), "item_category")
    shown_at = position(get("position"), settings)
    event.reference = reference(get("reference"))
    event.held_out = optional_identity(get("held_out"), "held_out")
    if items is None:
        name_item(event, get)
        item_id, named = event.of_item, event.impression_id
        one = Shown(item_id, shown_at, score, said, category=category, impression_id=named)
        event.shown = [one]
        is_compared = event.reference or event.held_out is not None
        if is_compared and event.impression_id is not None:
            broken("impression_id")
        return
    event.shown = slate(items, settings)
    has_item(get)
    is_named = any(one.impression_id is not None for one in event.shown)
    if is_named and (event.reference or event.held_out is not None):
        broken("impression_id")
    event.is_list = True
    if all(s.position is None for s in event.shown):
        event.shown = [replace(s, position=i + 1) for i, s in enumerate(event.shown)]


def name_item(event: Event, get: Get) -> None:
    """The item of an event, its impression, or both."""
    event.impression_id = optional_identity(get("impression_id"), "impression_id")
    read = identity if event.impression_id is None else optional_identity
    event.item_id = read(get("item_id"), "item_id")


def has_item(get: Get) -> None:
    """An event with a list names no item beside it."""
    if any(get(name) not in (None, "") for name in ("item_id", "impression_id")):
        broken("items")


def read_items(topic: str, items: Any, settings: Settings) -> object:
    """The items of an event, or BrokenError."""
    return slate(items, settings) if topic == "impressions" else order(topic, items, settings)


def slate(items: Any, settings: Settings) -> list[Shown]:
    """The elements of ``items``, positions as they are given; an element may be an id alone. None:
    nothing was found to show."""
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        broken("items")
    shown = []
    names, of_policies = settings.events.fields, fields_of_policies(settings)
    of_ratios = fields_of_ratios(settings, "impressions")
    asked = asked_by_ratios(settings, "impressions")
    fields = ["item_id", "impression_id", "position", "score", "item_category"]
    fields += [*of_policies, *of_ratios]
    reasons = dict.fromkeys(fields, "items")
    for element in items:
        if not isinstance(element, Object):
            shown.append(Shown(identity(element, "items"), None))
            continue
        check_element(element, settings, reasons)
        part = {ours: element.get(names.get(ours, ours)) for ours in (*fields, *asked)}
        named = optional_identity(part["impression_id"], "items")
        item_id = (identity if named is None else optional_identity)(part["item_id"], "items")
        said = said_of_policies(part.get, dict.fromkeys(of_policies, "items"))
        score = scored(part["score"], "items")
        own = numbers(part.get, of_ratios, "items")
        own_texts = texts(part.get, asked)
        category = optional_identity(part["item_category"], "items")
        at = position(part["position"], settings, "items")
        item_id = item_id or named or ""
        shown.append(Shown(item_id, at, score, said, own, own_texts, category, named))
    return shown


def item_or_lines(event: Event, get: Get, settings: Settings) -> None:
    """One item, or a list of lines."""
    if get("items") is None:
        name_item(event, get)
        return
    event.lines, event.is_list = order(event.topic, get("items"), settings), True
    has_item(get)


def order(topic: str, items: Any, settings: Settings) -> list[Line]:
    """The lines of feedback or of an order; a line may be an id alone."""
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_ITEMS:
        broken("items")
    names, of_ratios = settings.events.fields, fields_of_ratios(settings, topic)
    asked = asked_by_ratios(settings, topic)
    own = {"clicks": "position", "conversions": "value"}[topic]
    also = ("rating",) if topic == "clicks" else ()
    reasons = dict.fromkeys(("item_id", "impression_id", own, *also, *of_ratios), "items")
    lines = []
    for element in items:
        if not isinstance(element, Object):
            lines.append(Line(identity(element, "items")))
            continue
        check_element(element, settings, reasons)
        part = {ours: element.get(names.get(ours, ours)) for ours in (*reasons, *asked)}
        named = optional_identity(part["impression_id"], "items")
        item_id = (identity if named is None else optional_identity)(part["item_id"], "items")
        line = Line(item_id, impression_id=named)
        if topic == "clicks":
            line.position = position(part["position"], settings, "items")
            line.rating = rated(part["rating"], "items")
        else:
            line.value = worth(part["value"], "items")
        line.numbers = numbers(part.get, of_ratios, "items")
        line.texts = texts(part.get, asked)
        lines.append(line)
    return lines


def click(event: Event, get: Get, settings: Settings, record_ms: int) -> None:
    item_or_lines(event, get, settings)
    event.position = position(get("position"), settings)
    event.rating = rated(get("rating"), "rating")
    event.kind = "click" if get("feedback") in (None, "") else label(get("feedback"), "feedback")
    event.dwell_ms = dwell(get, settings, record_ms)


def dwell(get: Get, settings: Settings, record_ms: int) -> int | None:
    """``dwell_ms``, else end − start, where both are given."""
    start, end = get("start_ts"), get("end_ts")
    span = None
    if start is not None or end is not None:
        start_ms, end_ms = (moment_ms(t, "dwell", settings, record_ms) for t in (start, end))
        span = end_ms - start_ms
        integer(span, 0, DAY_MS, "dwell")
    if get("dwell_ms") is not None:
        return integer(get("dwell_ms"), 0, DAY_MS, "dwell")
    return span


def conversion(event: Event, get: Get, settings: Settings) -> None:
    event.is_return = get("type") == "refund"
    event.refunds_order = event.is_return and get("items") is None
    is_whole = all(get(name) in (None, "") for name in ("item_id", "impression_id"))
    if not (event.is_return and get("items") is None and is_whole):
        item_or_lines(event, get, settings)
    event.value = worth(get("value"), "value")
    if event.value is not None:
        event.value = abs(event.value) if event.is_return else event.value
        event.value_micros = round(event.value * 1e6) * (-1 if event.is_return else 1)
        event.numbers["value"] = event.value


def session(event: Event, get: Get, settings: Settings, record_ms: int) -> None:
    event.session_id = optional_identity(get("session_id"), "session_id")
    if event.session_id is None and event.user_id is None and event.join_id is None:
        broken("session_id")
    if get("action") not in ACTIONS:
        broken("action")
    event.action = get("action")
    event.item_id = optional_identity(get("item_id"), "item_id")
    if event.action == "dwell" and event.item_id is None:
        broken("item_id")
    event.dwell_ms = dwell(get, settings, record_ms)
