"""The fields of events: names, types and bounds, by topic.

Missing texts are ``""`` and missing integers 0 or -1, so that columns need no masks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from streamer.settings import limits

KINDS = ("impressions", "clicks", "conversions", "sessions")
"""The four topics by their role; also the values of the label ``topic``."""
LINE_TYPES = {
    "impression": "impressions",
    "click": "clicks",
    "conversion": "conversions",
    "session": "sessions",
}
"""``type`` of a line in a file → kind."""

Action = Literal["start", "view", "dwell", "end"]
ACTIONS: tuple[str, ...] = get_args(Action)
"""What a session event can report."""
MOMENTS = ("ts", "start_ts", "end_ts")
"""Fields that are times."""
Moment = Annotated[int, Meta(ge=0, le=limits.MAX_EVENT_MS)] | Annotated[datetime, Meta(tz=True)]
Id = str | int
Position = Annotated[int, Meta(ge=1, le=limits.MAX_POSITION)] | None
Propensity = Annotated[float, Meta(gt=0, le=1)] | None
Probability = Annotated[float, Meta(ge=0, le=1)] | None
Value = Annotated[float, Meta(ge=0, le=limits.MAX_VALUE)] | None
Score = Annotated[float, Meta(ge=-limits.MAX_SCORE, le=limits.MAX_SCORE)] | None
CustomValue = Annotated[float, Meta(ge=-limits.MAX_CUSTOM_VALUE, le=limits.MAX_CUSTOM_VALUE)] | None
DwellMs = Annotated[int, Meta(ge=0, le=limits.MAX_DWELL_MS)] | None
Label = Annotated[str, Meta(min_length=1, max_length=limits.MAX_LABEL_CHARS)]

ITEM_FIELDS: list[tuple[str, Any, Any]] = [
    ("position", Position, 0),
    ("score", Score, None),
    ("propensity", Propensity, None),
    ("reward_estimate", Probability, None),
    ("item_category", Id | None, None),
]
Reference = Annotated[list[Id], Meta(min_length=1, max_length=limits.MAX_ITEMS)] | None
FIELDS: dict[str, list[tuple[str, Any, Any]]] = {
    "impressions": [
        ("item_id", Id | None, ""),
        *ITEM_FIELDS,
        ("reference", Reference, None),
        ("held_out", Id | None, None),
    ],
    "clicks": [
        ("item_id", Id, msgspec.NODEFAULT),
        ("position", Position, 0),
        ("feedback", Label | None, "click"),
        ("dwell_ms", DwellMs, -1),
        ("start_ts", Moment | None, None),
        ("end_ts", Moment | None, None),
    ],
    "conversions": [("item_id", Id, msgspec.NODEFAULT), ("value", Value, 0.0)],
    "sessions": [
        ("session_id", Id, msgspec.NODEFAULT),
        ("action", Action, msgspec.NODEFAULT),
        ("item_id", Id | None, ""),
        ("dwell_ms", DwellMs, -1),
        ("start_ts", Moment | None, None),
        ("end_ts", Moment | None, None),
    ],
}


COMMON_FIELDS: list[tuple[str, Any, Any]] = [
    ("ts", Moment, msgspec.NODEFAULT),
    ("user_id", Id, msgspec.NODEFAULT),
    ("event_id", Id | None, ""),
    ("request_id", Id | None, ""),
]


def field_names(kind: str) -> tuple[str, ...]:
    """Our names of all fields of a topic's events, without the dimensions."""
    items = ("items",) if kind != "sessions" else ()
    return (*(name for name, *_ in (*COMMON_FIELDS, *FIELDS[kind])), *items, "type")
