"""The wire schema: one msgspec type a topic, built from the settings.

Field names can be mapped (``[events.fields]``) and every configured dimension is a field of each
event. Missing texts are ``""`` and missing integers 0 or -1, so that columns need no masks.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from streamer import limits

if TYPE_CHECKING:
    from streamer.config import Settings

KINDS = ("impressions", "clicks", "conversions", "sessions")
"""The four topics by their role; also the values of the label ``topic``."""
LINE_TYPES = {
    "impression": "impressions",
    "click": "clicks",
    "conversion": "conversions",
    "session": "sessions",
}
"""``type`` of a line in a file → kind."""

REASONS = (
    *("json", "object", "too_large", "too_deep", "type", "ts", "user_id", "event_id", "item_id"),
    *("request_id", "position", "score", "propensity", "items", "feedback", "dwell", "value"),
    *("session_id", "action", "dimension", "future", "reference", "held_out"),
)
"""Every reason for which a record can be rejected."""
Action = Literal["start", "view", "dwell", "end"]
ACTIONS: tuple[str, ...] = get_args(Action)
"""What a session event can tell."""
MOMENTS = ("ts", "start_ts", "end_ts")
"""Fields that are times."""
REASON_OF_FIELD = {"dwell_ms": "dwell", "start_ts": "dwell", "end_ts": "dwell"}
"""Fields whose reason is not their own name."""

Moment = Annotated[int, Meta(ge=0, le=limits.MAX_EVENT_MS)] | Annotated[datetime, Meta(tz=True)]
Id = Annotated[str, Meta(min_length=1, max_length=limits.MAX_ID_CHARS)]
Position = Annotated[int, Meta(ge=1, le=limits.MAX_POSITION)] | None
Propensity = Annotated[float, Meta(gt=0, le=1)] | None
Value = Annotated[float, Meta(ge=0, le=limits.MAX_VALUE)] | None
Score = Annotated[float, Meta(ge=-limits.MAX_SCORE, le=limits.MAX_SCORE)] | None
DwellMs = Annotated[int, Meta(ge=0, le=limits.MAX_DWELL_MS)] | None
Label = Annotated[str, Meta(min_length=1, max_length=limits.MAX_LABEL_CHARS)]

_ITEM_FIELDS: list[tuple[str, Any, Any]] = [
    ("position", Position, 0),
    ("score", Score, None),
    ("propensity", Propensity, None),
]
Reference = Annotated[list[Id], Meta(min_length=1, max_length=limits.MAX_ITEMS)] | None
_FIELDS: dict[str, list[tuple[str, Any, Any]]] = {
    "impressions": [
        ("item_id", Id | None, ""),
        *_ITEM_FIELDS,
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


_COMMON: list[tuple[str, Any, Any]] = [
    ("ts", Moment, msgspec.NODEFAULT),
    ("user_id", Id, msgspec.NODEFAULT),
    ("event_id", Id | None, ""),
    ("request_id", Id | None, ""),
]


def field_names(kind: str) -> tuple[str, ...]:
    """Our names of all fields of a topic's events, without the dimensions."""
    items = ("items",) if kind == "impressions" else ()
    return (*(name for name, *_ in (*_COMMON, *_FIELDS[kind])), *items, "type")


def event_type(kind: str, settings: Settings) -> type[msgspec.Struct]:
    """The struct of one topic's events: required fields, optional ones, then the dimensions."""
    names = settings.events.fields
    line_type = next(line for line, k in LINE_TYPES.items() if k == kind)
    fields: list[tuple[str, Any, Any]] = [*_COMMON, *_FIELDS[kind]]
    if kind == "impressions":
        item = msgspec.defstruct(
            "Item",
            [("item_id", Id, msgspec.NODEFAULT), *_ITEM_FIELDS],
            rename=names,
            gc=False,
            kw_only=True,
        )
        shown = Annotated[list[item], Meta(min_length=1, max_length=limits.MAX_ITEMS)]  # type: ignore[valid-type]
        fields.append(("items", shown | None, None))
    fields.append(("type", Literal[line_type] | None, None))
    fields += [(name, str | None, None) for name in settings.dimension_names]
    return msgspec.defstruct(
        f"{line_type.title()}Event", fields, rename=names, gc=False, kw_only=True
    )
