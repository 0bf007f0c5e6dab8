"""The fields of events by kind, and the kinds by name."""

from __future__ import annotations

KINDS = ("impressions", "clicks", "conversions", "sessions")
"""The kinds of events; the four topics by their role."""
LINE_TYPES = {
    "impression": "impressions",
    "click": "clicks",
    "conversion": "conversions",
    "session": "sessions",
}
"""``type`` of a line in a file, and key of ``[sources.kind]`` → kind."""
ACTIONS = ("start", "view", "dwell", "end")
"""What a session event can report."""
MOMENTS = ("ts", "start_ts", "end_ts")
"""Fields that are times."""
NUMBERS = ("position", "score", "propensity", "reward_estimate", "dwell_ms", "value")
"""Fields that are numbers, and nothing else."""

ELEMENT_FIELDS = {
    "impressions": (
        *("item_id", "position", "score", "propensity", "reward_estimate", "item_category"),
    ),
    "clicks": ("item_id", "position"),
    "conversions": ("item_id", "value"),
    "sessions": (),
}
"""Kind of events → fields of an element of ``items``."""

_COMMON = ("ts", "user_id", "event_id", "request_id", "type")
_DWELL = ("dwell_ms", "start_ts", "end_ts")
_FIELDS = {
    "impressions": (*ELEMENT_FIELDS["impressions"], "items", "reference", "held_out"),
    "clicks": ("item_id", "position", "items", "feedback", *_DWELL),
    "conversions": ("item_id", "items", "value"),
    "sessions": ("session_id", "action", "item_id", *_DWELL),
}


def field_names(kind: str) -> tuple[str, ...]:
    """Our names of all fields of a kind of events, without those that the settings add.

    >>> field_names("conversions")
    ('ts', 'user_id', 'event_id', 'request_id', 'type', 'item_id', 'items', 'value')
    """
    return (*_COMMON, *_FIELDS[kind])


ALL_FIELDS = tuple(dict.fromkeys(name for kind in KINDS for name in field_names(kind)))
"""Those of all kinds, each once."""
