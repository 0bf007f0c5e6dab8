"""All reasons why a record is no event: where several things are wrong any of them is right."""

from __future__ import annotations

from typing import Any

from streamer.settings.model import Settings

from .decoding import event_of, read_items
from .overwritten import check_overwritten
from .parsing import MAX_DEPTH, BrokenError, depth, parse
from .values import fields_of_policies, fields_of_ratios

ANY = frozenset({"any"})
"""What is no JSON may be called by whatever was wrong before its first stray character."""
_SOUND: dict[str, dict[str, Any]] = {
    "type": {"type": None},
    "dwell": {"dwell_ms": None, "start_ts": None, "end_ts": None},
    "position": {"position": None},
    "score": {"score": None},
    "rating": {"rating": None},
    "propensity": {"propensity": None},
    "reward_estimate": {"reward_estimate": None},
    "item_category": {"item_category": None},
    "ratios": {},
    "reference": {"reference": None},
    "held_out": {"held_out": None},
    "feedback": {"feedback": None},
    "value": {"value": None},
    "event_id": {"event_id": None},
    "request_id": {"request_id": None},
    "ts": {"ts": 0},
    "user_id": {"user_id": "u"},
    "join_id": {"join_id": None},
    "item_id": {"item_id": "i"},
    "impression_id": {"impression_id": None},
    "session_id": {"session_id": "s"},
    "action": {"action": "view"},
}
"""Reason → fields, by our names, with values that are right."""


def reasons(topic: str, raw: bytes | None, settings: Settings) -> frozenset[str]:
    """Every reason: what is found wrong is made right, until nothing is."""
    try:
        value = parse(raw)
    except BrokenError as error:
        reason = str(error)
        if reason == "object" and raw is not None:
            also = {"json": b"\\u" in raw, "too_deep": raw.count(b"[") > MAX_DEPTH}
            return frozenset({reason, *(name for name, is_so in also.items() if is_so)})
        return frozenset({reason}) if reason == "too_large" else ANY
    found = {"too_deep"} if depth(value) > MAX_DEPTH else set()
    try:
        check_overwritten(topic, value, settings, read_items)
    except BrokenError as error:
        found.add(str(error))
    names, of_policies = settings.events.fields, fields_of_policies(settings)
    sound: dict[str, Any] = dict(value)
    while True:
        try:
            event_of(topic, sound, settings, 0)
            return frozenset(found)
        except BrokenError as error:
            reason = str(error)
        found.add(reason)
        if reason == "items":
            sound[names.get("items", "items")] = None
            if sound.get(names.get("item_id", "item_id")) is None:
                sound |= {names.get("item_id", "item_id"): "i"}
        else:
            right = _SOUND[reason] | {f: None for f, why in of_policies.items() if why == reason}
            if reason == "ratios":
                right = dict.fromkeys(fields_of_ratios(settings, topic))
            sound |= {names.get(k, k): v for k, v in right.items()}


def is_right(reason: str, topic: str, raw: bytes | None, settings: Settings) -> bool:
    """Whether a reject may be called so."""
    right = reasons(topic, raw, settings)
    return right is ANY or reason in right
