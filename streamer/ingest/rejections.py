"""A second, slower look at a record that was refused: which field, what it held, what is expected.

Only refused records come here; the core decides quickly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import time_ns
from typing import Any

import msgspec

from streamer._core import depth
from streamer.encoding.schema_ids import id_text, schema_head
from streamer.formatting import moment, printable
from streamer.ingest.discovery.names import OTHER_NAMES, alike
from streamer.ingest.lookup import Beside, names_near, parsed
from streamer.ingest.mapping import how_written, path_said, place_of
from streamer.ingest.record import IGNORED, record_decoder
from streamer.settings import limits
from streamer.settings.event_fields import (
    EXPOSURES,
    FIELDS,
    LINE_TYPES,
    MOMENTS,
    NAMED_BY_SETTINGS,
    TYPE_OF_KIND,
)
from streamer.settings.model import Settings
from streamer.settings.paths import path_of

NOTHING = "nothing"
"""What is found where a field is missing."""
_WIRE_FORMAT = "the id of a schema as the registry's serializers write it, and a value that fits it"
_OPEN = frozenset({"type", "action", *MOMENTS})
_LONGEST_BITS = 10_000
_KINDS = 6
"""Values that say what a record is, of which no more are shown."""
_NAMES = 20
"""Names of fields that are shown at most."""

_UNITS = {"seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units that a time can have by mistake, and how many of them are a second."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record was refused. ``field`` is its name in the record, "" where it is the record as
    a whole; ``found`` is printable and at most ``limits.MAX_FOUND_CHARS`` long."""

    reason: str
    field: str
    found: str
    expected: str
    near: str = ""
    """Where nothing stands at a path of a mapping: how far it leads,"""
    names: tuple[str, ...] = ()
    """and the names that stand there."""


class Explainer:
    """Explains refusals by the given settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._decoder = record_decoder(settings)
        self._names = settings.events.fields
        named = {field.reason: field for field in NAMED_BY_SETTINGS.values()}
        of_policies = {name: named[reason] for name, reason in settings.policy_fields.items()}
        of_ratios = dict.fromkeys(settings.own_numbers, named["ratios"])
        self._fields = {**FIELDS, **of_policies, **of_ratios}
        self._known = {self._name(f) for f in (*self._fields, *settings.kept_fields)}

    def explain(
        self,
        log: str,
        raw: bytes | None,
        reason: str,
        beside: Beside = (),
        *,
        hides_values: bool = False,
    ) -> Refusal:
        """Why a record of a log ("": a line of none) was refused as ``reason``.

        ``beside``: its key, headers and timestamp, where they may matter. ``hides_values``: of
        texts, and of all that may be an id, ``found`` says only what they are: for messages, which
        show no ids.
        """
        if reason in ("json", "object", "too_large", "too_deep"):
            return Refusal(reason, "", *_of_bytes(raw or b"", reason, hides_values))
        if reason == "schema":
            return Refusal(reason, "", _of_wire(raw or b""), _WIRE_FORMAT)
        if reason in ("late", "future"):
            return self._untimely(log, raw, reason, beside)
        if log:
            events = self._decoder.trace(log, raw, *beside)
            event = next((one for one in events if one[0] not in (None, IGNORED)), events[0])
            _, kind, _, _, (field, element, value_text) = event
        else:
            kind, field, element = None, "type", None
            value_text = self._text(raw or b"", self._name("type"))
        name = self._place(log, kind, field, element)
        found = self._found(field, value_text, hides_values)
        near, names = self._near(log, raw, kind, field) if found == NOTHING else ("", [])
        return Refusal(
            reason,
            printable(name, limits.MAX_FOUND_CHARS),
            found,
            self._expectation(log, reason, kind, field),
            printable(near, limits.MAX_FOUND_CHARS),
            tuple(printable(each, 50) for each in names),
        )

    def _near(
        self, log: str, raw: bytes | None, kind: str | None, field: str
    ) -> tuple[str, list[str]]:
        """How far the first path of a mapped field leads into a record, and what stands there."""
        known = self._settings.logs.get(log)
        if known is None or not self._settings.reads_sources:
            return "", []
        source = self._settings.sources[known.source]
        path = path_said(source, kind or known.kinds[0], field)
        if path is None:
            return "", []
        return names_near(parsed(self.text_of(log, raw)), path_of(path))

    def shape(self, log: str, raw: bytes | None) -> str:
        """The fields of a record and what each holds, without the values themselves."""
        pieces = list(_pieces(self.text_of(log, raw)).items())
        shown = [f"{printable(name, 50)}: {what_is(_value(p))}" for name, p in pieces[:_NAMES]]
        return f"{{{', '.join(shown)}{', …' if len(pieces) > _NAMES else ''}}}"

    def names_seen(self, log: str, raw: bytes | None) -> tuple[str, ...]:
        """The names of the fields of a record; none where it is no object."""
        return tuple(_pieces(self.text_of(log, raw)))

    def text_of(self, log: str, raw: bytes | None) -> bytes:
        """The text of a record of a log ("": a line of none); empty where it has none."""
        return raw or b"" if not log else self._decoder.text(log, raw or b"") or b""

    def nearest(self, seen: Iterable[str]) -> dict[str, str]:
        """Our field that no name seen stands for → the name seen that is most like it."""
        names = list(seen)
        unknown = [name for name in names if name not in self._known]
        meant: dict[str, str] = {}
        for field in (*OTHER_NAMES, *self._settings.kept_fields):
            is_one = field != "items"  # names of one item are like those of several
            if is_one and self._name(field) not in names and field not in meant:
                name = alike(field, [x for x in unknown if x not in meant.values()])
                if name is not None:
                    meant[field] = name
        return meant

    def _name(self, field: str) -> str:
        return self._names.get(field, field)

    def _place(self, log: str, kind: str | None, field: str, element: int | None) -> str:
        """Where a field stands in the record; of an element of a list in that."""
        known_log = self._settings.logs.get(log)
        if known_log is None:
            return self._name(field)
        if field == "reference" and element is not None:
            return f"{place_of(self._settings, known_log, kind, field)}[{element}]"
        return place_of(self._settings, known_log, kind, field, element)

    @staticmethod
    def _text(raw: bytes, name: str) -> str | None:
        piece = _pieces(raw).get(name)
        return None if piece is None else bytes(piece).decode(errors="replace")

    def _untimely(self, log: str, raw: bytes | None, reason: str, beside: Beside) -> Refusal:
        """Of a record that is an event, at a wrong time."""
        time, event_time = self._settings.time, NOTHING
        decoded = self._decoder.decode_all(log, raw, *beside)
        events = [event for event in decoded if not isinstance(event, str)]
        if events:
            worst = min if reason == "late" else max
            event = worst(events, key=lambda each: each["event_ms"])
            event_time = moment(event["event_ms"])
        if reason == "late":
            expected = f"a time at most {time.max_lateness} before the newest record"
            expected += " (time.max_lateness)"
        else:
            newest_ms = max([*beside[2:], *(event["event_ms"] for event in events)], default=0)
            is_ahead = newest_ms > time_ns() // 1_000_000 + time.max_skew_ms
            clock = "wall clock" if is_ahead else "newest record"
            expected = f"a time at most {time.max_skew} after the {clock} (time.max_skew)"
        return Refusal(reason, self._place(log, None, "ts", None), event_time, expected)

    def _found(self, field: str, text: str | None, hides_values: bool) -> str:
        """A value as it stands in the record; a time in another unit with that unit."""
        if text is None or text == "null":
            return NOTHING
        given = _value(msgspec.Raw(text.encode()))
        if hides_values and not self._is_open(given, field):
            return what_is(given)
        unit = unit_of(given) if field in MOMENTS else None
        note = f" (looks like {unit})" if unit else ""
        return printable(text, limits.MAX_FOUND_CHARS - len(note)) + note

    def _is_open(self, given: Any, field: str) -> bool:
        """Whether a value can be shown anywhere: a time, a type, or a number that is no id."""
        if field in _OPEN:
            return not isinstance(given, dict | list)
        known = self._fields.get(field)
        return isinstance(given, int | float) and known is not None and known.low is not None

    def _kinds(self, log: str) -> str:
        """Some of the values that say what a record of a log is."""
        source = self._settings.read_sources[self._settings.logs[log].source]
        rules = (rule for kind, rule in source.kind.rules if kind is not None)
        named = list(dict.fromkeys(rule.value for rule in rules if rule.value is not None))
        shown = [printable(repr(value), 50) for value in named[:_KINDS]]
        return ", ".join([*shown, *(["…"] if len(named) > _KINDS else [])])

    def _expectation(self, log: str, reason: str, kind: str | None, field: str) -> str:
        if reason == "kind":
            return f"a value that [sources.kind] names: {self._kinds(log)}"
        if field == "type":
            if kind in TYPE_OF_KIND:
                return TYPE_OF_KIND[kind]
            reads_all = self._settings.reads_sources or EXPOSURES in self._settings.logs
            read = [t for t, of in LINE_TYPES.items() if reads_all or of != EXPOSURES]
            else_ = "" if reads_all else "; or exposure, with kafka.topics.exposures"
            return f"one of {', '.join(read)}{else_}"
        known_log = self._settings.logs.get(log)
        if field in MOMENTS and known_log is not None and self._settings.reads_sources:
            source = self._settings.sources[known_log.source]
            if how := how_written(source, kind or known_log.kinds[0], field):
                return how
        known = self._fields.get(field)
        return "a value that can be read" if known is None else known.expected


def _of_bytes(raw: bytes, reason: str, hides_values: bool) -> tuple[str, str]:
    """What is found and expected of a record that is wrong as a whole."""
    if reason == "too_large":
        more = "more than " if len(raw) == limits.MAX_LINE_BYTES else ""
        return f"{more}{len(raw):,} bytes", f"at most {limits.MAX_RECORD_BYTES:,} bytes"
    if reason == "too_deep":
        return f"nesting of {depth(raw)}", f"nesting of at most {limits.MAX_DEPTH}"
    head = raw[: 4 * limits.MAX_FOUND_CHARS].decode(errors="backslashreplace")
    content = printable(head, limits.MAX_FOUND_CHARS) if raw.strip() else NOTHING
    if hides_values and raw.strip():
        content = f"{len(raw):,} bytes"
        content += " of other JSON" if reason == "object" else " that cannot be read"
    return content, "a JSON object" if reason == "object" else "one JSON object in UTF-8"


def _of_wire(raw: bytes) -> str:
    """What is found of a record in the wire format of a schema registry.

    >>> _of_wire(b"\\0\\0\\0\\0\\x07abc"), _of_wire(b"{}")
    ('8 bytes, with the schema id 7', '2 bytes that begin with 7b')
    """
    size = f"{len(raw):,} bytes"
    if head := schema_head(raw):
        return f"{size}, with the schema id {id_text(head[0])}"
    return f"{size} that begin with {raw[:1].hex()}" if raw else NOTHING


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


def _pieces(raw: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a record, values as they stand in it; none where it is no object."""
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
        return {}


def _value(piece: msgspec.Raw) -> Any:
    """A value; as the text that it is where it is too large a number, or nested too deeply."""
    try:
        return msgspec.json.decode(piece)
    except (ValueError, RecursionError):
        return bytes(piece)[:1000].decode(errors="replace")


def unit_of(value: Any) -> str | None:
    """The unit, other than milliseconds, in which a number, or a text that is one, would be a time
    from 2000 to 2100.

    >>> unit_of(1_700_000_000), unit_of(1.7e15), unit_of("1700000000.5"), unit_of(1_700_000_000_000)
    ('seconds', 'microseconds', 'seconds', None)
    """
    try:
        time = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(time, int | float):
        return None
    for unit, in_a_second in _UNITS.items():
        if limits.MIN_SECONDS * in_a_second <= time <= limits.MAX_SECONDS * in_a_second:
            return unit
    return None
