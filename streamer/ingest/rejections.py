"""A second, slower look at a record that was refused: which field, what it held, what is expected.

Only refused records come here; the core decides quickly.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from streamer.ingest.schema import REASON_OF_FIELD, event_type
from streamer.ingest.timestamps import is_in_seconds, unit_of, without_leap_seconds
from streamer.settings import limits
from streamer.settings.event_fields import ACTIONS, KINDS, LINE_TYPES, MOMENTS
from streamer.settings.model import Settings

NOTHING = "nothing"
"""What is found where a field is missing."""
_ID = f"text of 1 to {limits.MAX_ID_CHARS} characters"
_PROBABILITY = "a number from 0 to 1"
_CUSTOM = f"a number from -{limits.MAX_CUSTOM_VALUE:g} to {limits.MAX_CUSTOM_VALUE:g}"
_LABEL = "1 to 64 of A-Za-z0-9_.:-"
EXPECTED: Mapping[str, str] = {
    "ts": f"epoch milliseconds from 0 to {limits.MAX_EVENT_MS}, or RFC 3339 text with an offset",
    **dict.fromkeys(
        (
            *("user_id", "event_id", "request_id", "item_id", "session_id", "held_out"),
            "item_category",
        ),
        _ID,
    ),
    "position": f"an integer from 1 to {limits.MAX_POSITION}",
    "score": f"a number from -{limits.MAX_SCORE:g} to {limits.MAX_SCORE:g}",
    "propensity": "a number above 0 and at most 1",
    "reward_estimate": _PROBABILITY,
    "items": f"1 to {limits.MAX_ITEMS} objects with item_id, and no item_id beside them",
    "reference": f"1 to {limits.MAX_ITEMS} item ids",
    "feedback": _LABEL,
    "dwell_ms": f"an integer from 0 to {limits.MAX_DWELL_MS}",
    "start_ts": "start_ts and end_ts, both like ts, at most a day apart",
    "end_ts": "start_ts and end_ts, both like ts, at most a day apart",
    "value": f"a number from 0 to {limits.MAX_VALUE:g}",
    "action": f"one of {', '.join(ACTIONS)}",
    "dimension": f"{_LABEL}, and not all or other",
}
"""Our field → what it may hold."""
_OTHER_NAMES = {
    "type": ("event", "event_type", "event_name", "kind", "name"),
    "ts": ("time", "timestamp", "event_time", "datetime", "date", "created_at", "occurred_at"),
    "user_id": ("user", "uid", "visitor_id", "visitor", "customer_id", "client_id", "account_id"),
    "item_id": ("item", "sku", "product_id", "product", "content_id", "article_id", "ad_id"),
    "request_id": ("request", "query_id", "recommendation_id", "slate_id", "impression_id"),
    "session_id": ("session", "visit_id", "sid"),
    "position": ("rank", "slot", "index"),
    "value": ("price", "revenue", "amount", "total"),
    "variant": ("arm", "treatment", "bucket", "experiment_group", "policy"),
}
"""What others call our fields."""
_OPEN = frozenset({"type", "action", *MOMENTS})
_NUMBERS = frozenset({"position", "score", "propensity", "reward_estimate", "dwell_ms", "value"})
_LONGEST_BITS = 10_000
_NAMES = 20
"""Names of fields that are shown at most."""
_PATH = re.compile(r" - at `\$([^`]*)`")
_STEP = re.compile(r"\[(\d+)\]|\.([^.\[]+)")
_IS_LABEL = re.compile(limits.LABEL_PATTERN)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""A text, or what follows a quotation mark without its like. Nothing is tried twice: a record of
many quotation marks and no end would take hours."""
_LEVELS = np.zeros(256, np.int64)
_LEVELS[list(b"[{")] = 1
_LEVELS[list(b"]}")] = -1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record was refused. ``field`` is its name in the record, "" where it is the record as
    a whole; ``found`` is printable and at most ``limits.MAX_FOUND_CHARS`` long."""

    reason: str
    field: str
    found: str
    expected: str


class Explainer:
    """Explains refusals by the given settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = settings.events.fields
        self._ours = {theirs: ours for ours, theirs in self._names.items()}
        self._moments = frozenset(map(self._name, MOMENTS))
        of_policies = dict.fromkeys(settings.policy_fields, _PROBABILITY)
        of_custom = {f: "custom" for fields in settings.custom_fields.values() for f in fields}
        self._customs = settings.custom_fields
        self._named_here = settings.policy_fields | of_custom
        expected = of_policies | dict.fromkeys(("custom", *of_custom), _CUSTOM)
        self._expected_here: Mapping[str, str] = {**EXPECTED, **expected}
        self._numbers = _NUMBERS | expected.keys()
        self._types = {
            kind: {f.name: f.type for f in msgspec.structs.fields(event_type(kind, settings))}
            for kind in KINDS
        }
        self._known = {self._name(field) for types in self._types.values() for field in types}

    def explain(
        self, kind: str, raw: bytes | None, reason: str, *, hides_values: bool = False
    ) -> Refusal:
        """Why a record of a topic (``kind``; "" for a line of none) was refused as ``reason``.

        ``hides_values``: of texts, and of all that may be an id, ``found`` says only what they are:
        for messages, which show no ids.
        """
        if reason in ("json", "object", "too_large", "too_deep"):
            return Refusal(reason, "", *_of_bytes(raw or b"", reason, hides_values))
        pieces = self._pieces(raw or b"")
        value = {name: _value(piece) for name, piece in pieces.items()}
        field = self._field(kind, value, reason)
        name = self._name(field)
        path, given = self._wrong(kind, field, value.get(name)) or ("", value.get(name))
        inner = self._ours.get(path.rpartition(".")[2], path.rpartition(".")[2])
        expected = self._expected_here.get(inner) or self._expected(kind, field, reason)
        if given is None:
            found = NOTHING
        elif hides_values and not self._is_open(given, inner or field):
            found = what_is(given)
        else:
            text = msgspec.json.encode(given) if path else bytes(pieces.get(name, b""))
            found = _shown(text, given, field)
        return Refusal(reason, printable(name + path), found, expected)

    def shape(self, raw: bytes | None) -> str:
        """The fields of a record and what each holds, without the values themselves."""
        pieces = list(self._pieces(raw or b"").items())
        shown = [f"{printable(name, 50)}: {what_is(_value(p))}" for name, p in pieces[:_NAMES]]
        return f"{{{', '.join(shown)}{', …' if len(pieces) > _NAMES else ''}}}"

    def names_seen(self, raw: bytes | None) -> tuple[str, ...]:
        """The names of the fields of a record; none where it is no object."""
        return tuple(self._pieces(raw or b""))

    def nearest(self, seen: Iterable[str]) -> dict[str, str]:
        """Our field that no name seen stands for → the name seen that is most like it."""
        names = list(seen)
        unknown = [name for name in names if name not in self._known]
        found: dict[str, str] = {}
        for field in (*_OTHER_NAMES, *self._settings.dimension_names):
            if self._name(field) not in names and field not in found:
                name = _alike(field, [x for x in unknown if x not in found.values()])
                if name is not None:
                    found[field] = name
        return found

    def _name(self, field: str) -> str:
        return self._names.get(field, field)

    def _pieces(self, raw: bytes) -> dict[str, msgspec.Raw]:
        """The fields of a record, values as they stand in it; none where it is no object."""
        try:
            readable = without_leap_seconds(raw, self._moments)
            return msgspec.json.decode(readable, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
            return {}

    def _field(self, kind: str, value: Mapping[str, Any], reason: str) -> str:
        """Our name of the field that a reason is about."""
        if reason in ("late", "future"):
            return "ts"
        if reason == "dimension":
            names = self._settings.dimension_names
            wrong = (d for d in names if not _is_dimension(value.get(self._name(d))))
            return next(wrong, names[0])
        if reason == "dwell":
            given = {field: value.get(self._name(field)) for field in REASON_OF_FIELD}
            wrong = (f for f, x in given.items() if x is not None and self._wrong(kind, f, x))
            missing = (f for f in ("start_ts", "end_ts") if given[f] is None)
            return next(wrong, next(missing, "end_ts"))
        named = (f for f, why in self._named_here.items() if why == reason)
        wrong = (f for f in named if self._wrong(kind, f, value.get(self._name(f))))
        given_here = (f for f in self._customs.get(kind, ()) if self._name(f) in value)
        return next(wrong, next(given_here, reason) if reason == "custom" else reason)

    def _wrong(self, kind: str, field: str, given: Any) -> tuple[str, Any] | None:
        """Where in a field's value something is of a wrong type or out of bounds, and what; None
        where nothing is."""
        if field not in self._types.get(kind, ()) or given is None:
            return None
        if field in MOMENTS and is_in_seconds(given):
            return "", given
        try:
            msgspec.convert(given, self._types[kind][field])
        except msgspec.ValidationError as error:
            path = _PATH.search(str(error))
            return _followed(given, path[1] if path else "")
        return None

    def _is_open(self, given: Any, field: str) -> bool:
        """Whether a value can be shown anywhere: a time, a type, or a number that is no id."""
        if field in _OPEN:
            return not isinstance(given, dict | list)
        return isinstance(given, int | float) and field in self._numbers

    def _expected(self, kind: str, field: str, reason: str) -> str:
        time = self._settings.time
        if reason == "late":
            return (
                f"a time at most {time.max_lateness} before the newest record (time.max_lateness)"
            )
        if reason == "future":
            return f"a time at most {time.max_skew} after the newest record (time.max_skew)"
        if field == "type":
            mine = [line for line, its in LINE_TYPES.items() if its == kind]
            return mine[0] if mine else f"one of {', '.join(LINE_TYPES)}"
        return self._expected_here["dimension" if reason == "dimension" else field]


def printable(text: str, most: int = limits.MAX_FOUND_CHARS) -> str:
    """A text in one printable line of bounded length.

    >>> printable("two\\nlines"), printable("x" * 9, most=5)
    ('two\\\\nlines', 'xxxx…')
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _of_bytes(raw: bytes, reason: str, hides_values: bool) -> tuple[str, str]:
    """What is found and expected of a record that is wrong as a whole."""
    if reason == "too_large":
        more = "more than " if len(raw) == limits.MAX_LINE_BYTES else ""
        return f"{more}{len(raw):,} bytes", f"at most {limits.MAX_RECORD_BYTES:,} bytes"
    if reason == "too_deep":
        return f"nesting of {depth(raw)}", f"nesting of at most {limits.MAX_DEPTH}"
    head = raw[: 4 * limits.MAX_FOUND_CHARS].decode(errors="backslashreplace")
    found = printable(head) if raw.strip() else NOTHING
    if hides_values and raw.strip():
        found = f"{len(raw):,} bytes"
        found += " of other JSON" if reason == "object" else " that cannot be read"
    return found, "a JSON object" if reason == "object" else "one JSON object in UTF-8"


def depth(value: bytes) -> int:
    """Deepest nesting of brackets outside texts."""
    outside = np.frombuffer(_STRING.sub(b"", value), np.uint8)
    return int(np.cumsum(_LEVELS[outside]).max(initial=0))


def what_is(given: Any) -> str:
    """What a value is, without the value.

    >>> [what_is(x) for x in ("abc", 1_700_000_000, 0.5, [1, 2], {}, None, True)]
    ['text of 3', 'integer of 10 digits', 'number', 'list of 2', 'object', 'null', 'true or false']
    """
    if isinstance(given, bool):
        return "true or false"
    if isinstance(given, int):
        is_long = given.bit_length() > _LONGEST_BITS  # Python writes no more than 4,300 digits
        return f"integer of {'very many' if is_long else len(str(abs(given)))} digits"
    if isinstance(given, str | list):
        return f"{'text' if isinstance(given, str) else 'list'} of {len(given)}"
    return {dict: "object", float: "number"}.get(type(given), "null")


def _value(piece: msgspec.Raw) -> Any:
    """A value; as the text that it is where it is too large a number, or nested too deeply."""
    try:
        return msgspec.json.decode(piece)
    except (ValueError, RecursionError):
        return bytes(piece)[:1000].decode(errors="replace")


def _shown(text: bytes, given: Any, field: str) -> str:
    """A value as it stands in the record; a time in another unit with that unit."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    unit = unit_of(given) if is_number and field in MOMENTS else None
    note = f" (looks like {unit})" if unit else ""
    most = limits.MAX_FOUND_CHARS - len(note)
    return printable(text[: 4 * most].decode(errors="replace"), most) + note


def _followed(value: Any, path: str) -> tuple[str, Any]:
    """The value at a path, and as much of the path as exists."""
    done = ""
    for step in _STEP.finditer(path):
        inner: Any = None
        if step[1] and isinstance(value, list):
            inner = value[int(step[1])]
        elif step[2] and isinstance(value, dict):
            inner = value.get(step[2])
        value, done = inner, done + step[0]
    return done, value


def _is_dimension(value: Any) -> bool:
    """Whether an event may have this value of a dimension (None: it has none)."""
    if not isinstance(value, str):
        return value is None
    return _IS_LABEL.match(value) is not None and value not in limits.RESERVED_LABELS


def _alike(field: str, names: Sequence[str]) -> str | None:
    """The name that most likely means the given field."""
    plain = {_plain(name): name for name in reversed(names)}
    others = (field, *_OTHER_NAMES.get(field, ()))
    for other in others:
        if _plain(other) in plain:
            return plain[_plain(other)]
    for other in others:
        if close := difflib.get_close_matches(_plain(other), plain, 1, cutoff=0.85):
            return plain[close[0]]
    return None


def _plain(name: str) -> str:
    """A name without case and punctuation: ``userId`` and ``User-ID`` are alike."""
    return "".join(c for c in name.casefold() if c.isalnum())
