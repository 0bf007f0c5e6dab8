"""A name that is said more than once: its last value counts; but one of a wrong type, or out of
bounds, is wrong anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from streamer.settings.model import Settings

from .parsing import Object, broken
from .shape import EXPOSURES, LINE_TYPES
from .times import DAY_MS, check_moment
from .values import (
    MAX_LABEL,
    bounded,
    fields_of_policies,
    fields_of_ratios,
    integer,
    label_or_none,
    optional_identity,
    position,
    probability,
    rated,
    reference,
    scored,
    worth,
)

ACTIONS = ("start", "view", "dwell", "end")
TEXT_FIELDS = (
    *("user_id", "join_id", "event_id", "request_id", "item_id", "session_id", "held_out"),
    *("item_category", "impression_id"),
)
FIELDS = {
    "impressions": (
        *("item_id", "position", "score", "items", "reference", "held_out"),
        *("item_category", "join_id", "impression_id"),
    ),
    "clicks": (
        *("item_id", "position", "items", "feedback", "dwell_ms", "start_ts", "end_ts", "join_id"),
        *("rating", "impression_id"),
    ),
    "conversions": ("item_id", "items", "value", "join_id", "impression_id"),
    "sessions": (
        *("session_id", "action", "item_id", "dwell_ms", "start_ts", "end_ts", "join_id"),
    ),
    EXPOSURES: (),
}
REQUIRED = ("ts",)
REASONS = {"dwell_ms": "dwell", "start_ts": "dwell", "end_ts": "dwell"}
Read = Callable[[str, Any, Settings], object]
"""Reads a list of items of a topic, or raises BrokenError."""


def check_overwritten(topic: str, value: Object, settings: Settings, read_items: Read) -> None:
    """Look at the values of an event that are not the last of their name."""
    fields = ("ts", "user_id", "event_id", "type", *FIELDS[topic])
    fields += ("request_id",) if topic != EXPOSURES else ()
    reasons = {field: REASONS.get(field, field) for field in fields}
    reasons |= fields_of_policies(settings) if topic == "impressions" else {}
    reasons |= dict.fromkeys(fields_of_ratios(settings, topic), "ratios")
    for field, said in overwritten(value, settings, reasons):
        if field == "items":
            if said is not None:
                read_items(topic, said, settings)
        elif said is not None or field in REQUIRED:
            check_value(field, said, reasons[field], topic, settings)


def check_element(value: Object, settings: Settings, reasons: Mapping[str, str]) -> None:
    """Likewise of an element of a list."""
    for field, said in overwritten(value, settings, reasons):
        if said is not None:
            check_value(field, said, reasons[field], "", settings)


def overwritten(
    value: Object, settings: Settings, fields: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    """(our name, value) of those of the given fields that are not the last of their name."""
    if len(value) == len(value.pairs):
        return
    names = settings.events.fields
    ours = {names.get(field, field): field for field in fields}
    left = [name for name, _ in value.pairs]
    for name, said in value.pairs:
        left.remove(name)
        if name in left and name in ours:
            yield ours[name], said


def check_value(field: str, said: Any, reason: str, topic: str, settings: Settings) -> None:
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
    elif field == "rating":
        rated(said, reason)
    elif field in fields_of_policies(settings):
        probability(field, said, reason)
    elif any(field in fields_of_ratios(settings, kind) for kind in FIELDS):
        bounded(said, reason)
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
