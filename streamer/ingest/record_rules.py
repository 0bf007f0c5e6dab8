"""What types cannot say of a record: its size, its nesting, and rules across fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from streamer.ingest.timestamps import epoch_ms, is_in_seconds
from streamer.settings import limits

LABEL = re.compile(limits.LABEL_PATTERN)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""A text, or what follows a quotation mark without its like. Nothing is tried twice: a record of
many quotation marks and no end would take hours."""
_STEP = np.zeros(256, np.int64)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


def _openings(value: bytes) -> int:
    return value.count(b"{") + value.count(b"[")


def depth(value: bytes) -> int:
    """Deepest nesting of brackets outside texts."""
    if _openings(value) <= limits.MAX_DEPTH:
        return 0
    outside = np.frombuffer(_STRING.sub(b"", value), np.uint8)
    return int(np.cumsum(_STEP[outside]).max(initial=0))


def _impression_rule(event: Any) -> str | None:
    if event.items is None:
        return None if event.item_id else "item_id"
    return "items" if event.item_id else None


def _dwell_rule(event: Any) -> str | None:
    start, end = event.start_ts, event.end_ts
    if (start is None) != (end is None):
        return "dwell"
    if start is None:
        return None
    if is_in_seconds(start) or is_in_seconds(end):
        return "dwell"
    return None if 0 <= epoch_ms(end) - epoch_ms(start) <= limits.MAX_DWELL_MS else "dwell"


def _click_rule(event: Any) -> str | None:
    if event.feedback is not None and not LABEL.match(event.feedback):
        return "feedback"
    return _dwell_rule(event)


def _session_rule(event: Any) -> str | None:
    if event.action == "dwell" and not event.item_id:
        return "item_id"
    return _dwell_rule(event)


RULES: dict[str, Callable[[Any], str | None]] = {
    "impressions": _impression_rule,
    "clicks": _click_rule,
    "sessions": _session_rule,
}
