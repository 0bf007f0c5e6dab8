"""One record by itself: the event that it is, or the reason why it is none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from streamer.ingest.record_rules import LABEL, RULES, depth
from streamer.ingest.schema import REASON_OF_FIELD, REASONS, event_type
from streamer.ingest.timestamps import epoch_ms, is_in_seconds, without_leap_seconds
from streamer.settings import limits
from streamer.settings.event_fields import KINDS, MOMENTS
from streamer.settings.model import Settings

_MISSING = re.compile(r"missing required field `([^`]+)`")
_PATH = re.compile(r"at `\$\.([^`.\[]+)")


@lru_cache(maxsize=limits.LABEL_CACHE)
def is_label(text: str | None) -> bool:
    """Whether an event may have this value of a dimension (None: it has none).

    >>> [is_label(text) for text in ("A", None, "all", "two words")]
    [True, True, False, False]
    """
    return text is None or (LABEL.match(text) is not None and text not in limits.RESERVED_LABELS)


class RecordDecoder:
    """Judges records of all four topics by the given settings."""

    def __init__(self, settings: Settings) -> None:
        names = settings.events.fields
        self.types = {kind: event_type(kind, settings) for kind in KINDS}
        self.decoders: dict[str, msgspec.json.Decoder[Any]] = {
            kind: msgspec.json.Decoder(t) for kind, t in self.types.items()
        }
        self._ours = {theirs: ours for ours, theirs in names.items()}
        self._moments = frozenset(names.get(name, name) for name in MOMENTS)
        self._dimensions = settings.dimension_names
        self._reasons = REASON_OF_FIELD | settings.policy_fields

    def refusal(self, kind: str, value: bytes | None) -> str | None:
        """The reason why a record is no event of its topic; None where it is one."""
        event = self.event(kind, value)
        return event if isinstance(event, str) else None

    def event(self, kind: str, value: bytes | None) -> Any:
        """The event of a record, or the reason why it is none."""
        if value is None:
            return "json"
        if len(value) > limits.MAX_RECORD_BYTES:
            return "too_large"
        if depth(value) > limits.MAX_DEPTH:
            return "too_deep"
        try:
            value.decode()
            event = self._decoded(kind, value)
        except msgspec.ValidationError as error:
            return self._reason(str(error))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return "json"
        except RecursionError:
            return "too_deep"
        if is_in_seconds(event.ts) or not 0 <= epoch_ms(event.ts) <= limits.MAX_EVENT_MS:
            return "ts"
        reason = RULES[kind](event) if kind in RULES else None
        if reason is None and not all(is_label(getattr(event, d)) for d in self._dimensions):
            reason = "dimension"
        return reason or event

    def readable(self, value: bytes) -> bytes:
        """The record with those leap seconds moved that its times may have."""
        return without_leap_seconds(value, self._moments)

    def _decoded(self, kind: str, value: bytes) -> Any:
        try:
            return self.decoders[kind].decode(value)
        except msgspec.ValidationError:
            moved = self.readable(value)
            if moved == value:
                raise
            return self.decoders[kind].decode(moved)

    def _reason(self, message: str) -> str:
        found = _PATH.search(message) or _MISSING.search(message)
        if found is None:
            return "object"
        theirs = found[1]
        field = self._ours.get(theirs, theirs)
        if field in self._dimensions:
            return "dimension"
        reason = self._reasons.get(field, field)
        return reason if reason in REASONS else "object"


def reason_of_no_topic(value: bytes) -> str:
    """Why a line of a file belongs to no topic: it cannot be read, or has no known ``type``."""
    if len(value) > limits.MAX_RECORD_BYTES:
        return "too_large"
    try:
        value.decode()
        msgspec.json.decode(value, type=msgspec.Raw)
        msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return "object"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "json"
    except RecursionError:
        return "too_deep"
    return "type"
