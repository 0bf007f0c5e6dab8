"""Raw bytes → Event, or the reason why not: the wire rules read aloud, one check a line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from streamer.settings.model import Settings

from .parsing import MAX_DEPTH, Decimals, Object, Whole, broken, depth, parse
from .shape import LINE_TYPES, Event, Line, Shown

MAX_ITEMS = 1000
MAX_SCORE = 1_000_000
MAX_EVENT_MS = 4_102_444_800_000  # 2100-01-01
MAX_VALUE = 1e12
MAX_CUSTOM = 1e12
FIRST_SECOND, LAST_SECOND = 946_684_800, 4_102_444_800  # 2000-01-01 and 2100-01-01
DAY_MS = 24 * 3600 * 1000
MAX_LABEL = 128
MAX_ID_BYTES = 512
DECIMAL = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz]| UTC)|([+-])([0-9]{2}):?([0-9]{2}))?"
)
"""Other forms, too: a space (RFC 3339 allows it), an offset like +0100, and none: in a zone."""
ACTIONS = ("start", "view", "dwell", "end")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Get = Callable[[str], Any]


def decode(topic: str, raw: bytes | None, settings: Settings) -> list[Event]:
    """The event of a record, one for each line, or BrokenError."""
    value = parse(raw)
    if depth(value) > MAX_DEPTH:
        broken("too_deep")
    check_overwritten(topic, value, settings)
    return lines_of(event_of(topic, value, settings))


def lines_of(event: Event) -> list[Event]:
    """An event with lines as one event a line. What it is worth beside lines that say nothing of
    that counts with the first."""
    if not event.lines:
        return [event]
    made = []
    for i, line in enumerate(event.lines):
        own = replace(event, line=i, lines=[], numbers=dict(event.numbers) | line.numbers)
        own.item_id, own.position = line.item_id, line.position
        if event.topic == "conversions":
            is_first_of_none = i == 0 and all(x.value is None for x in event.lines)
            value = event.value if is_first_of_none else line.value
            own.value_micros = 0 if value is None else round(value * 1e6)
            own.numbers.pop("value", None)
            if value is not None:
                own.numbers["value"] = value
        made.append(own)
    return made


def event_of(topic: str, value: Mapping[str, Any], settings: Settings) -> Event:
    """The event that an object is, or BrokenError."""
    names = settings.events.fields

    def get(name: str) -> Any:
        return value.get(names.get(name, name))

    if get("type") is not None and LINE_TYPES.get(label_or_none(get("type"))) != topic:
        broken("type")
    event = Event(
        event_ms=moment_ms(get("ts"), "ts", settings),
        user_id=optional_identity(get("user_id"), "user_id"),
        event_id=optional_identity(get("event_id"), "event_id"),
        request_id=optional_identity(get("request_id"), "request_id"),
        dims=tuple(dimension(get(d.name)) for d in settings.dimensions),
        cut=sum(is_cut(get(d.name)) for d in settings.dimensions),
        topic=topic,
        numbers=numbers(get, fields_of_custom(settings, topic), "custom"),
    )
    {
        "impressions": lambda: impression(event, get, settings),
        "clicks": lambda: click(event, get, settings),
        "conversions": lambda: conversion(event, get, settings),
        "sessions": lambda: session(event, get, settings),
    }[topic]()
    if settings.items.category is not None:
        category = event.dims[settings.dimension_names.index(settings.items.category)]
        event.shown = [replace(shown, category=category) for shown in event.shown]
    return event


def integer(value: Any, low: int, high: int, reason: str) -> int:
    if not isinstance(value, int) or value is True or value is False or not low <= value <= high:
        broken(reason)
    return int(value)


def number(value: Any, reason: str) -> float:
    """A finite JSON number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        broken(reason)
    try:
        result = float(value)
    except OverflowError:
        broken(reason)
    if result in (float("inf"), float("-inf")):
        broken(reason)
    return result


def identity(value: Any, reason: str) -> str:
    """A text or an integer: 17 and "17" are the same."""
    if isinstance(value, Whole):
        value = value.text
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= MAX_ID_BYTES:
        broken(reason)
    return value


def optional_identity(value: Any, reason: str) -> str | None:
    return None if value in (None, "") else identity(value, reason)


def label_or_none(value: Any) -> str:
    return value if isinstance(value, str) else ""


def label(value: Any, reason: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LABEL:
        broken(reason)
    return value


def dimension(value: Any) -> str | None:
    """A dimension's own value; None when missing or said to be unknown. Numbers and booleans are
    what they are written as; lists and objects are none."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, Whole | Decimals):
        value = value.text
    if not isinstance(value, str) or value in ("", "unknown"):
        return None
    return f"{value} (value)" if value in ("all", "other") else value[:MAX_LABEL]


def moment_ms(value: Any, reason: str, settings: Settings) -> int:
    """Epoch milliseconds of a number, a text that is one, or an RFC 3339 text; a number that looks
    like epoch seconds is none."""
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = Decimals(value)
    if isinstance(value, str):
        return integer(text_ms(value, reason, settings), 0, MAX_EVENT_MS, reason)
    if isinstance(value, Decimals):
        value = floor_of(value, reason)
    if isinstance(value, int) and FIRST_SECOND <= value <= LAST_SECOND:
        broken(reason)
    return integer(value, 0, MAX_EVENT_MS, reason)


def floor_of(value: Decimals, reason: str) -> int:
    """A number rounded down: of more than 18 digits, or with an exponent, as a double."""
    if value.text.lstrip("-").replace(".", "").isdigit() and len(value.text.replace(".", "")) <= 18:
        return math.floor(Decimal(value.text))
    if math.isinf(value):
        broken(reason)
    return math.floor(value)


def text_ms(value: str, reason: str, settings: Settings) -> int:
    """Epoch milliseconds of an RFC 3339 text, which has microseconds: further digits are rounded,
    and the milliseconds of that are cut off. 23:59:60 UTC is the second that follows."""
    match = RFC_3339.fullmatch(value)
    if match is None:
        broken(reason)
    day, clock, fraction, utc, sign, hours, minutes = match.groups()
    is_leap = clock.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock[:-2]}{59 if is_leap else clock[-2:]}+00:00")
    except ValueError:
        broken(reason)
    offset_ms = 0
    if sign is None and utc is None:
        offset_ms = in_zone(moment, settings.events.zone)
    if sign is not None:
        if int(hours) > 23 or int(minutes) > 59:
            broken(reason)
        offset_ms = (int(hours) * 60 + int(minutes)) * (60_000 if sign == "+" else -60_000)
    whole_ms = (moment - EPOCH) // timedelta(milliseconds=1) - offset_ms
    if is_leap:
        if whole_ms % DAY_MS != DAY_MS - 1000:
            broken(reason)
        whole_ms += 1000
    micros = (int(((fraction or "") + "0" * 7)[:7]) + 5) // 10
    return whole_ms + micros // 1000


def in_zone(moment: datetime, zone: str) -> int:
    """The offset (ms) of a wall clock in a zone, from 1970 to 2100: the first of two, and where the
    clock was put forward that of before."""
    year = min(max(moment.year, 1970), 2099)
    within = moment.replace(
        year=year, day=min(moment.day, 28) if year != moment.year else moment.day
    )
    offset = within.replace(tzinfo=ZoneInfo(zone), fold=0).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def position(value: Any, settings: Settings, reason: str = "position") -> int | None:
    """A position from 1, whichever number the first one has."""
    if value is None:
        return None
    first = settings.events.positions_from
    return integer(value, first, 9_999 + first, reason) - first + 1


def scored(value: Any, reason: str) -> float | None:
    """The score of a shown item."""
    if value is None:
        return None
    score = number(value, reason)
    if abs(score) > MAX_SCORE:
        broken(reason)
    return score


def fields_of_policies(settings: Settings) -> dict[str, str]:
    """Fields that say something of policies → the reason of a wrong value."""
    found = {"propensity": "propensity", "reward_estimate": "reward_estimate"}
    for policy in settings.policies:
        if policy.propensity is not None:
            found[policy.propensity] = "propensity"
        if policy.estimate is not None:
            found[policy.estimate] = "reward_estimate"
    return found


def probability(field: str, value: Any, reason: str) -> float:
    """A number from 0 to 1; only the logging policy's cannot be 0."""
    found = number(value, reason)
    if not 0 <= found <= 1 or (field == "propensity" and found == 0):
        broken(reason)
    return found


def said_of_policies(get: Get, reasons: Mapping[str, str]) -> dict[str, float]:
    given = {field: get(field) for field in reasons}
    return {f: probability(f, v, reasons[f]) for f, v in given.items() if v is not None}


def fields_of_custom(settings: Settings, topic: str) -> list[str]:
    """Fields of a topic's events that are there for custom metrics alone."""
    fields = {custom.field or "value" for custom in settings.custom if custom.kind == topic}
    return sorted(fields - {"score", "dwell_ms", "value"})


def bounded(value: Any, reason: str) -> float:
    """A number for custom metrics."""
    found = number(value, reason)
    if abs(found) > MAX_CUSTOM:
        broken(reason)
    return found


def numbers(get: Get, fields: list[str], reason: str) -> dict[str, float]:
    given = {field: get(field) for field in fields}
    return {field: bounded(v, reason) for field, v in given.items() if v is not None}


def reference(value: Any) -> tuple[str, ...]:
    """A list of items, best first; empty where it is missing."""
    if value is None:
        return ()
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_ITEMS:
        broken("reference")
    return tuple(identity(part, "reference") for part in value)


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
        event.item_id = identity(get("item_id"), "item_id")
        event.shown = [Shown(event.item_id, shown_at, score, said, category=category)]
        return
    event.shown = slate(items, settings)
    if get("item_id") not in (None, ""):
        broken("items")
    event.is_list = True
    if all(s.position is None for s in event.shown):
        event.shown = [replace(s, position=i + 1) for i, s in enumerate(event.shown)]


def slate(items: Any, settings: Settings) -> list[Shown]:
    """The elements of ``items``, positions as they are given; an element may be an id alone."""
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_ITEMS:
        broken("items")
    shown = []
    names, of_policies = settings.events.fields, fields_of_policies(settings)
    of_custom = fields_of_custom(settings, "impressions")
    fields = ("item_id", "position", "score", "item_category", *of_policies, *of_custom)
    reasons = dict.fromkeys(fields, "items")
    for element in items:
        if not isinstance(element, Object):
            shown.append(Shown(identity(element, "items"), None))
            continue
        check_pairs(element, settings, reasons, ())
        part = {ours: element.get(names.get(ours, ours)) for ours in fields}
        item_id = identity(part["item_id"], "items")
        said = said_of_policies(part.get, dict.fromkeys(of_policies, "items"))
        score = scored(part["score"], "items")
        own = numbers(part.get, of_custom, "items")
        category = optional_identity(part["item_category"], "items")
        at = position(part["position"], settings, "items")
        shown.append(Shown(item_id, at, score, said, own, category))
    return shown


def item_or_lines(event: Event, get: Get, settings: Settings) -> None:
    """One item, or a list of lines."""
    if get("items") is None:
        event.item_id = identity(get("item_id"), "item_id")
        return
    event.lines = order(event.topic, get("items"), settings)
    if get("item_id") not in (None, ""):
        broken("items")


def order(topic: str, items: Any, settings: Settings) -> list[Line]:
    """The lines of feedback or of an order; a line may be an id alone."""
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_ITEMS:
        broken("items")
    names, of_custom = settings.events.fields, fields_of_custom(settings, topic)
    own = {"clicks": "position", "conversions": "value"}[topic]
    reasons = dict.fromkeys(("item_id", own, *of_custom), "items")
    lines = []
    for element in items:
        if not isinstance(element, Object):
            lines.append(Line(identity(element, "items")))
            continue
        check_pairs(element, settings, reasons, ())
        part = {ours: element.get(names.get(ours, ours)) for ours in reasons}
        line = Line(identity(part["item_id"], "items"))
        if topic == "clicks":
            line.position = position(part["position"], settings, "items")
        else:
            line.value = worth(part["value"], "items")
        line.numbers = numbers(part.get, of_custom, "items")
        lines.append(line)
    return lines


def worth(value: Any, reason: str) -> float | None:
    """What a conversion is worth."""
    if value is None:
        return None
    found = number(value, reason)
    if not 0 <= found <= MAX_VALUE:
        broken(reason)
    return found


def click(event: Event, get: Get, settings: Settings) -> None:
    item_or_lines(event, get, settings)
    event.position = position(get("position"), settings)
    event.kind = "click" if get("feedback") in (None, "") else label(get("feedback"), "feedback")
    event.dwell_ms = dwell(get, settings)


def dwell(get: Get, settings: Settings) -> int | None:
    """``dwell_ms``, else end − start, where both are given."""
    start, end = get("start_ts"), get("end_ts")
    span = None
    if start is not None or end is not None:
        span = moment_ms(end, "dwell", settings) - moment_ms(start, "dwell", settings)
        integer(span, 0, DAY_MS, "dwell")
    if get("dwell_ms") is not None:
        return integer(get("dwell_ms"), 0, DAY_MS, "dwell")
    return span


def conversion(event: Event, get: Get, settings: Settings) -> None:
    item_or_lines(event, get, settings)
    event.value = worth(get("value"), "value")
    if event.value is not None:
        event.value_micros = round(event.value * 1e6)
        event.numbers["value"] = event.value


def session(event: Event, get: Get, settings: Settings) -> None:
    event.session_id = identity(get("session_id"), "session_id")
    if get("action") not in ACTIONS:
        broken("action")
    event.action = get("action")
    event.item_id = optional_identity(get("item_id"), "item_id")
    if event.action == "dwell" and event.item_id is None:
        broken("item_id")
    event.dwell_ms = dwell(get, settings)


# A name that is said more than once -----------------------------------------------------------

TEXT_FIELDS = (
    *("user_id", "event_id", "request_id", "item_id", "session_id", "held_out", "item_category"),
)
FIELDS = {
    "impressions": (
        *("item_id", "position", "score", "items", "reference", "held_out"),
        "item_category",
    ),
    "clicks": ("item_id", "position", "items", "feedback", "dwell_ms", "start_ts", "end_ts"),
    "conversions": ("item_id", "items", "value"),
    "sessions": ("session_id", "action", "item_id", "dwell_ms", "start_ts", "end_ts"),
}
REQUIRED = ("ts",)
REASONS = {"dwell_ms": "dwell", "start_ts": "dwell", "end_ts": "dwell"}


def check_overwritten(topic: str, value: Object, settings: Settings) -> None:
    """Its last value counts; but one of a wrong type, or out of bounds, is wrong anywhere."""
    fields = ("ts", "user_id", "event_id", "request_id", "type", *FIELDS[topic])
    reasons = {field: REASONS.get(field, field) for field in fields}
    reasons |= fields_of_policies(settings) if topic == "impressions" else {}
    reasons |= dict.fromkeys(fields_of_custom(settings, topic), "custom")
    check_pairs(value, settings, reasons, REQUIRED, topic)


def check_pairs(
    value: Object,
    settings: Settings,
    reasons: Mapping[str, str],
    required: tuple[str, ...],
    topic: str = "",
) -> None:
    """Look at the values that are not the last of their name."""
    if len(value) == len(value.pairs):
        return
    names = settings.events.fields
    ours = {names.get(field, field): field for field in reasons}
    left = [name for name, _ in value.pairs]
    for name, said in value.pairs:
        left.remove(name)
        if name in left and name in ours and (said is not None or ours[name] in required):
            check_kind(ours[name], said, reasons[ours[name]], topic, settings)


def is_cut(value: Any) -> bool:
    """Whether a dimension's value is too long."""
    text = value.text if isinstance(value, Whole | Decimals) else value
    return isinstance(text, str) and len(text) > MAX_LABEL


def check_moment(said: Any, reason: str, settings: Settings) -> None:
    """A time of any kind; of texts only the form is looked at."""
    if isinstance(said, str) and not DECIMAL.fullmatch(said):
        text_ms(said, reason, settings)
    elif isinstance(said, str) or (isinstance(said, int | float) and not isinstance(said, bool)):
        number = Decimals(said) if isinstance(said, str) else said
        whole = floor_of(number, reason) if isinstance(number, Decimals) else number
        integer(whole, 0, MAX_EVENT_MS, reason)
    else:
        broken(reason)


def check_kind(field: str, said: Any, reason: str, topic: str, settings: Settings) -> None:
    """Type and bounds of one field's value."""
    if field in ("ts", "start_ts", "end_ts"):
        check_moment(said, reason, settings)
    elif field in TEXT_FIELDS:
        optional_identity(said, reason)
    elif field == "position":
        position(said, settings, reason)
    elif field == "dwell_ms":
        integer(said, 0, DAY_MS, reason)
    elif field == "score":
        scored(said, reason)
    elif field in fields_of_policies(settings):
        probability(field, said, reason)
    elif any(field in fields_of_custom(settings, kind) for kind in FIELDS):
        bounded(said, reason)
    elif field == "items":
        slate(said, settings) if topic == "impressions" else order(topic, said, settings)
    elif field == "reference":
        reference(said)
    elif field == "value":
        worth(said, reason)
    else:
        is_right = {
            "type": LINE_TYPES.get(label_or_none(said)) == topic,
            "action": said in ACTIONS,
            "feedback": isinstance(said, str) and len(said) <= MAX_LABEL,
        }
        if not is_right.get(field, isinstance(said, str)):
            broken(reason)
