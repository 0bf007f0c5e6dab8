"""Fuzzed records: the decoder says of each what the oracle says, without any server."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamer.decode import Decoder
from streamer.limits import MAX_DEPTH, MAX_RECORD_BYTES
from streamer.rules import depth
from tests.agreement import SETTINGS, random_records
from tests.oracle.decoding import BrokenError, decode
from tests.oracle.fuzzed import Fuzzer
from tests.oracle.oracle import Record
from tests.oracle.reasons import is_right
from tests.oracle.shape import KINDS, Address

BLOCK = 500
SLOWEST_SECONDS = 5.0
"""For one block on a loaded machine; what is tried twice in a long record takes minutes."""


def decoded(records: list[Record], settings_name: str) -> dict[Address, Any]:
    """A reason for each reject, else the numbers of the event."""
    decoder = Decoder(SETTINGS[settings_name])
    logs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        logs[record.topic].append(record)
    found: dict[Address, Any] = {}
    for kind, log in logs.items():
        for start in range(0, len(log), BLOCK):
            some = log[start : start + BLOCK]
            started = time.monotonic()
            times = np.array([r.record_ms for r in some])
            columns = decoder.chunk(kind, np.arange(len(some)), times, [r.raw for r in some])
            assert time.monotonic() - started < SLOWEST_SECONDS
            for i, reason in zip(columns.rejects.index, columns.rejects.reason, strict=True):
                found[some[i].address] = reason
            for n, row in enumerate(columns.row):
                found[some[row].address] = numbers(columns, n)
    return found


def numbers(columns: Any, n: int) -> tuple[Any, ...]:
    """What an event counts by, as the columns have it."""
    shown = columns.position[columns.owner == n] if columns.kind == "impressions" else []
    dwell = int(columns.dwell_ms[n]) if len(columns.dwell_ms) else -1
    value = int(columns.value_micros[n]) if len(columns.value_micros) else 0
    return int(columns.event_ms[n]), [int(p) for p in shown], dwell, value


def expected(record: Record, settings_name: str) -> Any:
    """The same, as the oracle has it."""
    try:
        event = decode(record.topic, record.raw, SETTINGS[settings_name])
    except BrokenError as reason:
        return str(reason)
    shown = [s.position or 0 for s in event.shown] if record.topic == "impressions" else []
    dwell = -1 if event.dwell_ms is None else event.dwell_ms
    return event.event_ms, shown, dwell, event.value_micros or 0


@pytest.mark.parametrize("settings_name", SETTINGS)
def test_the_decoder_and_the_oracle_agree(settings_name: str) -> None:
    good, _ = random_records(3, settings_name, 400, 1)
    mixed = Fuzzer(7, SETTINGS[settings_name]).mix(good, 6000, heavy=8)
    found = decoded(mixed, settings_name)
    assert len(found) == len(mixed)
    events = 0
    for record in mixed:
        said, truth = found[record.address], expected(record, settings_name)
        if isinstance(said, str) and isinstance(truth, str):
            is_fine = said == truth or is_right(
                said, record.topic, record.raw, SETTINGS[settings_name]
            )
        else:
            is_fine = said == truth
            events += 1
        assert is_fine, (said, truth, record.topic, (record.raw or b"")[:2000])
    assert 0.1 * len(mixed) < events < 0.5 * len(mixed)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_DIGITS = st.from_regex(r"\A-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,6})?\Z")


@given(
    st.sampled_from(KINDS),
    st.lists(
        st.tuples(
            st.sampled_from(
                ("ts", "user_id", "item_id", "items", "position", "value", "end_ts", "variant")
            ),
            st.recursive(
                _SCALARS, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=5
            )
            | _DIGITS,
        )
    ),
)
@hypothesis_settings(max_examples=300, deadline=None)
def test_any_values_in_any_fields(kind: str, pairs: list[tuple[str, Any]]) -> None:
    fields = ",".join(f'"{name}":{_json(value)}' for name, value in pairs)
    raw = '{"ts":1,"user_id":"u","item_id":"i","session_id":"s","action":"end"'
    raw += f",{fields}}}" if fields else "}"
    record = Record(kind, 0, 0, 1, raw.encode())
    said, truth = decoded([record], "few values")[record.address], expected(record, "few values")
    if isinstance(said, str) and isinstance(truth, str):
        assert said == truth or is_right(said, kind, record.raw, SETTINGS["few values"])
    else:
        assert said == truth


def _json(value: Any) -> str:
    """Digits as they are; all else as Python writes it, NaN too."""
    if isinstance(value, str) and value.lstrip("-")[:1].isdigit():
        return value
    return json.dumps(value)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"' + b'\\"' * 400_000 + b"{" * 20,
        b'{"a":"' + b'\\"' * 400_000 + b'"' + b"{" * 20,
        b'"' * 900_001 + b"[" * 20,
        b'{"a":' * 150_000,
        b"[" * 900_000 + b"\\",
    ],
    ids=["no end", "an end", "quotes", "objects", "lists"],
)
def test_no_record_takes_long(raw: bytes) -> None:
    """Among them what took minutes: a text without an end, tried again from each quotation mark."""
    assert len(raw) < MAX_RECORD_BYTES
    started = time.monotonic()
    columns = Decoder(SETTINGS["defaults"]).chunk(
        "impressions", np.arange(2), np.zeros(2, np.int64), [raw, b"{}"]
    )
    assert time.monotonic() - started < 1.0
    assert columns.rejects.index == [0, 1]
    assert columns.rejects.reason[0] in ("json", "object", "too_deep")


@pytest.mark.parametrize("levels", [1, MAX_DEPTH, MAX_DEPTH + 1, 10_000, 100_000])
def test_brackets_are_counted_outside_of_texts(levels: int) -> None:
    inside = b'"]]\\"]]' + b"[" * 20 + b'"'
    assert depth(b"[" * levels + inside + b"]" * levels) == levels
    assert depth(b"[]" * levels + inside) in (0, 1)
