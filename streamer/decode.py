"""Bytes → columns + rejects, record by record: one bad record is one reject.

msgspec checks types and bounds. What it cannot see (size, nesting, stray bytes in fields that are
skipped, rules across fields) is tested for a whole block at once, and looked into record by record
only where a block fails that test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from streamer import limits
from streamer.batch import I32, I64, U64, Bools, Columns, Rejects, hash_texts
from streamer.config import Settings
from streamer.events import ACTIONS
from streamer.judge import Judge, is_label
from streamer.probes import probes
from streamer.rules import LABEL, is_suspect
from streamer.times import epoch_ms, is_in_seconds

BLOCK = 2000
"""Records decoded before their columns are taken: their objects are then freed warm."""
_Texts = dict[str, list[Any]]


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
            if not all(map(is_label, row)):
                return None
            clean = tuple("" if v is None or v == "unknown" else v for v in row)
            code = self._index[row] = len(self.tuples)
            self.tuples.append(clean)
        return code


class Decoder:
    """Decodes the records of all four topics by the given settings."""

    def __init__(self, settings: Settings) -> None:
        self._interner, self._is_read = Interner(), False
        self._kinds = {k: i for i, k in enumerate(settings.feedback_kinds)}
        self._dimensions = settings.dimension_names
        self._judge = Judge(settings)
        self._decoders = self._judge.decoders
        self._fields = {k: t.__struct_fields__ for k, t in self._judge.types.items()}

    @property
    def interner(self) -> Interner:
        """What the segments of all chunks decoded since the last look refer to.

        Only after a look may a fresh one take its place, so chunks that are applied together
        never refer to different ones.
        """
        self._is_read = True
        return self._interner

    def chunk(
        self, kind: str, offset: I64, record_ms: I64, values: Sequence[bytes | None]
    ) -> Columns:
        """Columns of the records of one topic-partition, given in offset order."""
        if self._is_read and len(self._interner) > limits.SEGMENT_CACHE:
            self._interner = Interner()
        self._is_read = False
        rejects = Rejects()
        parts = []
        for start in range(0, len(values), BLOCK):
            block = values[start : start + BLOCK]
            parts.append(self._block(kind, block, start, rejects))
        return _concatenate(kind, offset, record_ms, parts, rejects)

    def _block(
        self, kind: str, values: Sequence[bytes | None], start: int, rejects: Rejects
    ) -> _Part:
        try:
            if is_suspect(values, nested=kind == "impressions"):
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
            event = self._judge.event(kind, value)
            if isinstance(event, str):
                rejects.index.append(i)
                rejects.reason.append(event)
            else:
                events.append(event)
                rows.append(i)
        return self._columns(kind, events, np.array(rows, np.int64))

    def _columns(self, kind: str, events: list[Any], rows: I64) -> _Part:
        """Columns of decoded events; ValueError where a rule across fields may be broken."""
        names = self._fields[kind]
        flat = list(chain.from_iterable(map(msgspec.structs.astuple, events)))
        column = {name: flat[i :: len(names)] for i, name in enumerate(names)}
        n = len(events)
        codes = self._interner.codes([column[d] for d in self._dimensions], n)
        if None in codes:
            for i, code in enumerate(codes):
                if code is None:
                    row = tuple(column[d][i] for d in self._dimensions)
                    codes[i] = self._interner.add(row)
            if None in codes:
                raise ValueError("dimension")
        part = _Part(rows, _moments(column["ts"]), np.array(codes, np.int32))
        items = _EXTRACT[kind](part, column, self._kinds)
        texts = [column["user_id"], _texts(column["event_id"]), _texts(column["request_id"]), items]
        texts.append(column.get("session_id", []))
        part.user, part.event_id, part.request, part.item, part.session = hash_texts(texts)
        return part


class _Part:
    """Columns of one block; see ``Columns``."""

    user: U64
    event_id: U64
    request: U64
    item: U64
    session: U64
    owner: I64 | None = None

    def __init__(self, row: I64, event_ms: I64, segment: I32) -> None:
        self.row, self.event_ms, self.segment = row, event_ms, segment
        none = np.zeros(0, np.int64)
        self.position, self.feedback, self.dwell_ms, self.value_micros = none, none, none, none
        self.action, self.probe, self.score = none, none, np.zeros(0)
        self.is_list: Bools = np.zeros(0, np.bool_)


def _texts(column: list[str | None]) -> list[str]:
    return [x or "" for x in column] if None in column else column  # type: ignore[return-value]


def _moments(column: list[int | datetime]) -> I64:
    try:
        event_ms = np.fromiter(column, np.int64, len(column))
        if (
            len(event_ms)
            and event_ms.min() <= limits.MAX_SECONDS
            and any(map(is_in_seconds, column))
        ):
            raise ValueError("ts")
        return event_ms
    except TypeError:
        event_ms = np.fromiter(map(epoch_ms, column), np.int64, len(column))
        if any(map(is_in_seconds, column)):
            raise ValueError("ts") from None
        if len(event_ms) and not 0 <= event_ms.min() <= event_ms.max() <= limits.MAX_EVENT_MS:
            raise ValueError("ts") from None
        return event_ms


def _integers(column: list[int | None], missing: int) -> I64:
    filled = [missing if x is None else x for x in column] if None in column else column
    return np.fromiter(filled, np.int64, len(column))


def _impressions(part: _Part, column: _Texts, kinds: dict[str, int]) -> list[str]:
    lists = column["items"]
    if not any(lists):
        if "" in column["item_id"] or None in column["item_id"]:
            raise ValueError("item_id")
        part.position = _integers(column["position"], 0)
        part.score = np.array(column["score"], np.float64)
        part.owner, part.is_list = np.arange(len(lists)), np.zeros(len(lists), np.bool_)
        part.probe = _probes(column, column["item_id"], part.owner)
        return column["item_id"]
    items: list[str] = []
    positions: list[int] = []
    scores: list[float | None] = []
    sizes: list[int] = []
    names = ("item_id", "position", "score")
    for shown, item, position, score in zip(lists, *(column[n] for n in names), strict=True):
        if (shown is None) == (not item):
            raise ValueError("items")
        if shown is None:
            items.append(item)
            positions.append(position or 0)
            scores.append(score)
            sizes.append(1)
        else:
            given = [x.position or 0 for x in shown]
            items += [x.item_id for x in shown]
            positions += given if any(given) else range(1, len(shown) + 1)
            scores += [x.score for x in shown]
            sizes.append(len(shown))
    part.position = np.array(positions, np.int64)
    part.score = np.array(scores, np.float64)
    part.owner = np.repeat(np.arange(len(lists)), sizes)
    part.is_list = np.array([shown is not None for shown in lists])
    part.probe = _probes(column, items, part.owner)
    return items


def _probes(column: _Texts, items: list[str], owner: I64) -> I64:
    """The ``probe`` of each shown item (see ``streamer.probes``)."""
    found = np.zeros(len(items), np.int64)
    if not any(column["reference"]) and not any(column["held_out"]):
        return found
    events = zip(column["reference"], column["held_out"], strict=True)
    tested = [i for i, (reference, held_out) in enumerate(events) if reference or held_out]
    for i in tested:
        start, stop = np.searchsorted(owner, [i, i + 1])
        reference, held_out = column["reference"][i], column["held_out"][i]
        found[start:stop] = probes(items[start:stop], reference, held_out)
    return found


def _dwells(column: dict[str, list[Any]]) -> I64:
    dwell_ms = _integers(column["dwell_ms"], -1)
    if any(x is not None for x in column["start_ts"]) or any(
        x is not None for x in column["end_ts"]
    ):
        for i, (start, end) in enumerate(zip(column["start_ts"], column["end_ts"], strict=True)):
            if start is None and end is None:
                continue
            if start is None or end is None or is_in_seconds(start) or is_in_seconds(end):
                raise ValueError("dwell")
            spent_ms = epoch_ms(end) - epoch_ms(start)
            if not 0 <= spent_ms <= limits.MAX_DWELL_MS:
                raise ValueError("dwell")
            if dwell_ms[i] < 0:
                dwell_ms[i] = spent_ms
    return dwell_ms


def _clicks(part: _Part, column: _Texts, kinds: dict[str, int]) -> list[str]:
    part.position = _integers(column["position"], 0)
    part.dwell_ms = _dwells(column)
    feedback = column["feedback"]
    if feedback.count("click") == len(feedback):
        part.feedback = np.zeros(len(feedback), np.int64)
        return column["item_id"]
    for kind in set(feedback):
        if kind is not None and not LABEL.match(kind):
            raise ValueError("feedback")
    part.feedback = np.array([kinds.get(kind or "click", -1) for kind in feedback], np.int64)
    return column["item_id"]


def _conversions(part: _Part, column: _Texts, kinds: dict[str, int]) -> list[str]:
    values = np.array([x or 0.0 for x in column["value"]], np.float64)
    part.value_micros = np.rint(values * 1e6).astype(np.int64)
    return column["item_id"]


def _sessions(part: _Part, column: _Texts, kinds: dict[str, int]) -> list[str]:
    part.dwell_ms = _dwells(column)
    part.action = np.array([_ACTION[action] for action in column["action"]], np.int64)
    for action, item in zip(column["action"], column["item_id"], strict=True):
        if action == "dwell" and not item:
            raise ValueError("item_id")
    return _texts(column["item_id"])


_ACTION = {action: i for i, action in enumerate(ACTIONS)}
_EXTRACT: dict[str, Callable[[_Part, _Texts, dict[str, int]], list[str]]] = {
    "impressions": _impressions,
    "clicks": _clicks,
    "conversions": _conversions,
    "sessions": _sessions,
}


def _concatenate(
    kind: str, offset: I64, record_ms: I64, parts: list[_Part], rejects: Rejects
) -> Columns:
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
        user=array("user").astype(np.uint64),
        event_id=array("event_id").astype(np.uint64),
        request=array("request").astype(np.uint64),
        segment=array("segment").astype(np.int32),
        item=array("item").astype(np.uint64),
        position=array("position"),
        score=array("score").astype(np.float64),
        probe=array("probe"),
        owner=owner,
        is_list=array("is_list").astype(np.bool_),
        feedback=array("feedback"),
        dwell_ms=array("dwell_ms"),
        value_micros=array("value_micros"),
        session=array("session").astype(np.uint64),
        action=array("action"),
        rejects=rejects,
    )
