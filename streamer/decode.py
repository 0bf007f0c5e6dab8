"""Bytes → columns + rejects, record by record: one bad record is one reject.

msgspec checks types and bounds. What it cannot see (size, nesting, stray bytes in fields that are
skipped, rules across fields) is tested for a whole block at once, and looked into record by record
only where a block fails that test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from streamer import limits
from streamer.batch import I32, I64, Columns, Rejects
from streamer.config import Settings
from streamer.events import REASON_OF_FIELD, REASONS, event_type

BLOCK = 1000
"""Records decoded before their columns are taken: their objects are then freed warm."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MISSING = re.compile(r"missing required field `([^`]+)`")
_PATH = re.compile(r"at `\$\.([^`.\[]+)")
_LABEL = re.compile(limits.LABEL_PATTERN)


def epoch_ms(moment: int | datetime) -> int:
    """Epoch milliseconds of a decoded ``ts``, rounded down."""
    return moment if isinstance(moment, int) else (moment - _EPOCH) // timedelta(milliseconds=1)


class Interner:
    """Small integers for tuples of dimension texts ("" = unknown); one a worker process.

    When it has grown too large a new one takes its place, so it is bounded whatever users send.
    """

    def __init__(self) -> None:
        self.tuples: list[tuple[str, ...]] = []
        self._index: dict[tuple[str | None, ...], int] = {}

    def __len__(self) -> int:
        return len(self._index)

    def codes(self, texts: Sequence[Sequence[str | None]], n: int) -> list[int | None]:
        """A code for each row of the given columns; None where the row is new or not valid."""
        if not texts:
            return [self.add(())] * n
        return list(map(self._index.get, zip(*texts, strict=True)))

    def add(self, row: tuple[str | None, ...]) -> int | None:
        """The code of one row; None if a value is not a label or is reserved."""
        code = self._index.get(row)
        if code is None:
            given = [v for v in row if v is not None]
            if any(not _LABEL.match(v) or v in limits.RESERVED_LABELS for v in given):
                return None
            clean = tuple("" if v is None or v == "unknown" else v for v in row)
            code = self._index[row] = len(self.tuples)
            self.tuples.append(clean)
        return code


class Decoder:
    """Decodes the records of all four topics by the given settings."""

    def __init__(self, settings: Settings) -> None:
        self.interner = Interner()
        self._kinds = {k: i for i, k in enumerate(settings.feedback_kinds)}
        self._ours = {theirs: ours for ours, theirs in settings.events.fields.items()}
        self._dimensions = settings.dimension_names
        self._types = {k: event_type(k, settings) for k in _EXTRACT}
        self._decoders = {k: msgspec.json.Decoder(t) for k, t in self._types.items()}
        self._fields = {k: t.__struct_fields__ for k, t in self._types.items()}

    def chunk(
        self, kind: str, offset: I64, record_ms: I64, values: Sequence[bytes | None]
    ) -> Columns:
        """Columns of the records of one topic-partition, given in offset order."""
        if len(self.interner) > limits.SEGMENT_CACHE:
            self.interner = Interner()
        rejects = Rejects()
        parts = []
        for start in range(0, len(values), BLOCK):
            block = values[start : start + BLOCK]
            parts.append(self._block(kind, block, start, rejects))
        return _concatenate(kind, offset, record_ms, parts, rejects)

    def event_ms(self, kind: str, value: bytes) -> int | None:
        """The time of one record, or None where it has none that can be read."""
        try:
            return epoch_ms(self._decoders[kind].decode(value).ts)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def _block(
        self, kind: str, values: Sequence[bytes | None], start: int, rejects: Rejects
    ) -> _Part:
        try:
            if _is_suspect(values, nested=kind == "impressions"):
                raise ValueError
            events = list(map(self._decoders[kind].decode, values))  # type: ignore[arg-type]
            return self._columns(kind, events, np.arange(start, start + len(events)))
        except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
            return self._one_by_one(kind, values, start, rejects)

    def _one_by_one(
        self, kind: str, values: Sequence[bytes | None], start: int, rejects: Rejects
    ) -> _Part:
        events, rows = [], []
        for i, value in enumerate(values, start):
            event = self._one(kind, value)
            if isinstance(event, str):
                rejects.index.append(i)
                rejects.reason.append(event)
            else:
                events.append(event)
                rows.append(i)
        return self._columns(kind, events, np.array(rows, np.int64))

    def _one(self, kind: str, value: bytes | None) -> Any:
        """One event, or the reason why it is none."""
        if value is None:
            return "json"
        if len(value) > limits.MAX_RECORD_BYTES:
            return "too_large"
        if _depth(value) > limits.MAX_DEPTH:
            return "too_deep"
        try:
            value.decode()
            event = self._decoders[kind].decode(value)
        except msgspec.ValidationError as error:
            return self._reason(str(error))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return "json"
        except RecursionError:
            return "too_deep"
        reason = _RULES[kind](event) if kind in _RULES else None
        if reason is None and self._dimensions:
            row = tuple(getattr(event, name) for name in self._dimensions)
            if self.interner.add(row) is None:
                reason = "dimension"
        return reason or event

    def _reason(self, message: str) -> str:
        found = _PATH.search(message) or _MISSING.search(message)
        if found is None:
            return "object"
        theirs = found[1]
        field = self._ours.get(theirs, theirs)
        if field in self._dimensions:
            return "dimension"
        reason = REASON_OF_FIELD.get(field, field)
        return reason if reason in REASONS else "object"

    def _columns(self, kind: str, events: list[Any], rows: I64) -> _Part:
        """Columns of decoded events; ValueError where a rule across fields may be broken."""
        names = self._fields[kind]
        flat = list(chain.from_iterable(map(msgspec.structs.astuple, events)))
        column = {name: flat[i :: len(names)] for i, name in enumerate(names)}
        n = len(events)
        codes = self.interner.codes([column[d] for d in self._dimensions], n)
        if None in codes:
            for i, code in enumerate(codes):
                if code is None:
                    row = tuple(column[d][i] for d in self._dimensions)
                    codes[i] = self.interner.add(row)
            if None in codes:
                raise ValueError("dimension")
        part = _Part(
            row=rows,
            event_ms=_moments(column["ts"]),
            user=column["user_id"],
            event_id=_texts(column["event_id"]),
            request=_texts(column["request_id"]),
            segment=np.array(codes, np.int32),
        )
        _EXTRACT[kind](part, column, self._kinds)
        return part


class _Part:
    """Columns of one block; see ``Columns``."""

    def __init__(
        self,
        row: I64,
        event_ms: I64,
        user: list[str],
        event_id: list[str],
        request: list[str],
        segment: I32,
    ) -> None:
        self.row, self.event_ms, self.segment = row, event_ms, segment
        self.user, self.event_id, self.request = user, event_id, request
        self.item: list[str] = []
        none = np.zeros(0, np.int64)
        self.position, self.feedback, self.dwell_ms, self.value_micros = none, none, none, none
        self.owner: I64 | None = None


def _is_suspect(values: Sequence[bytes | None], nested: bool) -> bool:
    """Whether a block may hold a record that is too large, too deep, empty or not UTF-8."""
    try:
        text = b"\n".join(values)  # type: ignore[arg-type]
        text.decode()
    except (TypeError, UnicodeDecodeError):
        return True
    if len(text) > limits.MAX_RECORD_BYTES and max(map(len, values)) > limits.MAX_RECORD_BYTES:  # type: ignore[arg-type]
        return True
    if text.count(b"{") + text.count(b"[") <= len(values):
        return False
    return not nested or max(map(_openings, values)) > limits.MAX_DEPTH and any(  # type: ignore[arg-type]
        _depth(v) > limits.MAX_DEPTH for v in values if v is not None
    )


def _openings(value: bytes) -> int:
    return value.count(b"{") + value.count(b"[")


def _depth(value: bytes) -> int:
    """Deepest nesting of brackets outside texts."""
    if _openings(value) <= limits.MAX_DEPTH:
        return 0
    depth = deepest = 0
    for byte in _STRING.sub(b"", value):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _texts(column: list[str | None]) -> list[str]:
    return [x or "" for x in column] if None in column else column  # type: ignore[return-value]


def _moments(column: list[int | datetime]) -> I64:
    try:
        return np.fromiter(column, np.int64, len(column))  # type: ignore[arg-type]
    except TypeError:
        return np.fromiter(map(epoch_ms, column), np.int64, len(column))


def _integers(column: list[int | None], missing: int) -> I64:
    if None in column:
        column = [missing if x is None else x for x in column]
    return np.fromiter(column, np.int64, len(column))  # type: ignore[arg-type]


def _impressions(part: _Part, column: dict[str, list[Any]], kinds: dict[str, int]) -> None:
    lists = column["items"]
    if not any(lists):
        if "" in column["item_id"] or None in column["item_id"]:
            raise ValueError("item_id")
        part.item = column["item_id"]
        part.position = _integers(column["position"], 0)
        part.owner = np.arange(len(lists))
        return
    items: list[str] = []
    positions: list[int] = []
    sizes: list[int] = []
    for shown, item, position in zip(lists, column["item_id"], column["position"], strict=True):
        if (shown is None) == (not item):
            raise ValueError("items")
        if shown is None:
            items.append(item)
            positions.append(position or 0)
            sizes.append(1)
        else:
            given = [x.position or 0 for x in shown]
            items += [x.item_id for x in shown]
            positions += given if any(given) else range(1, len(shown) + 1)
            sizes.append(len(shown))
    part.item = items
    part.position = np.array(positions, np.int64)
    part.owner = np.repeat(np.arange(len(lists)), sizes)


def _dwells(column: dict[str, list[Any]]) -> I64:
    dwell_ms = _integers(column["dwell_ms"], -1)
    if any(x is not None for x in column["start_ts"]) or any(
        x is not None for x in column["end_ts"]
    ):
        for i, (start, end) in enumerate(zip(column["start_ts"], column["end_ts"], strict=True)):
            if start is None and end is None:
                continue
            if start is None or end is None:
                raise ValueError("dwell")
            spent_ms = epoch_ms(end) - epoch_ms(start)
            if not 0 <= spent_ms <= limits.MAX_DWELL_MS:
                raise ValueError("dwell")
            if dwell_ms[i] < 0:
                dwell_ms[i] = spent_ms
    return dwell_ms


def _clicks(part: _Part, column: dict[str, list[Any]], kinds: dict[str, int]) -> None:
    part.item = column["item_id"]
    part.position = _integers(column["position"], 0)
    part.dwell_ms = _dwells(column)
    feedback = column["feedback"]
    if feedback.count("click") == len(feedback):
        part.feedback = np.zeros(len(feedback), np.int64)
        return
    for kind in set(feedback):
        if kind is not None and not _LABEL.match(kind):
            raise ValueError("feedback")
    part.feedback = np.array([kinds.get(kind or "click", -1) for kind in feedback], np.int64)


def _conversions(part: _Part, column: dict[str, list[Any]], kinds: dict[str, int]) -> None:
    part.item = column["item_id"]
    values = np.array([x or 0.0 for x in column["value"]], np.float64)
    part.value_micros = np.rint(values * 1e6).astype(np.int64)


def _sessions(part: _Part, column: dict[str, list[Any]], kinds: dict[str, int]) -> None:
    part.dwell_ms = _dwells(column)
    for action, item, dwell in zip(column["action"], column["item_id"], part.dwell_ms, strict=True):
        if action == "dwell" and (not item or dwell < 0):
            raise ValueError("dwell")
    part.item = _texts(column["item_id"])


_EXTRACT: dict[str, Callable[[_Part, dict[str, list[Any]], dict[str, int]], None]] = {
    "impressions": _impressions,
    "clicks": _clicks,
    "conversions": _conversions,
    "sessions": _sessions,
}


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
    return None if 0 <= epoch_ms(end) - epoch_ms(start) <= limits.MAX_DWELL_MS else "dwell"


def _click_rule(event: Any) -> str | None:
    if event.feedback is not None and not _LABEL.match(event.feedback):
        return "feedback"
    return _dwell_rule(event)


def _session_rule(event: Any) -> str | None:
    if event.action != "dwell":
        return _dwell_rule(event)
    if not event.item_id:
        return "item_id"
    has_dwell = (event.dwell_ms is not None and event.dwell_ms >= 0) or event.start_ts is not None
    return _dwell_rule(event) if has_dwell else "dwell"


_RULES: dict[str, Callable[[Any], str | None]] = {
    "impressions": _impression_rule,
    "clicks": _click_rule,
    "sessions": _session_rule,
}


def _concatenate(
    kind: str, offset: I64, record_ms: I64, parts: list[_Part], rejects: Rejects
) -> Columns:
    def texts(name: str) -> list[str]:
        columns = [getattr(p, name) for p in parts]
        return columns[0] if len(columns) == 1 else list(chain.from_iterable(columns))

    def array(name: str) -> Any:
        arrays = [getattr(p, name) for p in parts]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)

    owner = None
    if kind == "impressions":
        starts = np.cumsum([0] + [len(p.event_ms) for p in parts])
        owners = [p.owner + at for p, at in zip(parts, starts, strict=False) if p.owner is not None]
        owner = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    return Columns(
        kind=kind,
        offset=offset,
        record_ms=record_ms,
        row=array("row"),
        event_ms=array("event_ms"),
        user=texts("user"),
        event_id=texts("event_id"),
        request=texts("request"),
        segment=array("segment").astype(np.int32),
        item=texts("item"),
        position=array("position"),
        owner=owner,
        feedback=array("feedback"),
        dwell_ms=array("dwell_ms"),
        value_micros=array("value_micros"),
        rejects=rejects,
    )
