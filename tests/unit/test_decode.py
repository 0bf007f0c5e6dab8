"""Bytes → columns + rejects: every reason, every field, one bad record among good ones."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from streamer import limits
from streamer.batch import Columns, assemble, hash_texts
from streamer.config import parse
from streamer.decode import BLOCK, Decoder
from streamer.events import LINE_TYPES, REASONS
from tests.agreement import SETTINGS, random_records, to_log
from tests.oracle.broken_lines import ABSENT, WRONG
from tests.oracle.oracle import run

TS = 1_700_000_000_000
GOOD: dict[str, dict[str, Any]] = {
    "impressions": {"ts": TS, "user_id": "u", "item_id": "i"},
    "clicks": {"ts": TS, "user_id": "u", "item_id": "i"},
    "conversions": {"ts": TS, "user_id": "u", "item_id": "i"},
    "sessions": {"ts": TS, "user_id": "u", "session_id": "s", "action": "view"},
}


def decode(kind: str, *values: bytes | None, settings: Any = None) -> Columns:
    decoder = Decoder(settings or parse({}))
    n = len(values)
    return decoder.chunk(kind, np.arange(n), np.full(n, TS), values)


def encode(kind: str, **fields: Any) -> bytes:
    event = {**GOOD[kind], **fields}
    return json.dumps({k: v for k, v in event.items() if v is not ABSENT}).encode()


def reason_of(kind: str, value: bytes | None, settings: Any = None) -> str | None:
    """The reason of one record; good neighbours before and after it stay good."""
    good = encode(kind)
    columns = decode(kind, good, value, good, settings=settings)
    assert columns.row.tolist() in ([0, 1, 2], [0, 2])
    assert columns.rejects.index == ([] if len(columns.row) == 3 else [1])
    return columns.rejects.reason[0] if columns.rejects.reason else None


def hashes(column: Any) -> list[int]:
    """A column of hashes, or the hashes of texts."""
    if isinstance(column, list):
        column = hash_texts([column])[0]
    return [int(x) for x in column]


def has_repeated_keys(raw: bytes) -> bool:
    """Whether an object says a name twice: JSON leaves open what that means."""
    repeated = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated |= len({name for name, _ in found}) < len(found)
        return dict(found)

    try:
        json.loads(raw, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return False
    return repeated


WRONG_FIELDS = [
    (reason, line_type, field, value)
    for reason, cases in WRONG.items()
    for line_type, field, values in cases
    for value in values
]


@pytest.mark.parametrize(("reason", "line_type", "field", "value"), WRONG_FIELDS)
def test_a_wrong_field_has_its_reason(reason: str, line_type: str, field: str, value: Any) -> None:
    kind = "impressions" if line_type == "slate" else LINE_TYPES[line_type]
    fields: dict[str, Any] = {"item_id": ABSENT} if line_type == "slate" else {}
    if field == "span":
        fields |= {"start_ts": value[0], "end_ts": value[1]}
    else:
        fields["variant" if field == "dimension" else field] = value
    assert reason_of(kind, encode(kind, **fields)) == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "json"),
        (b"", "json"),
        (b"  ", "json"),
        (b"{", "json"),
        (encode("clicks") + b"}", "json"),
        (encode("clicks") + encode("clicks"), "json"),
        (encode("clicks") + b"\n" + encode("clicks"), "json"),
        (encode("clicks")[:-1] + b', "note": NaN}', "json"),
        (encode("clicks")[:-1] + b', "note": Infinity}', "json"),
        (encode("clicks")[:-1] + b', "note": "\xff"}', "json"),
        (encode("clicks").replace(b'"i"', b'"\\ud800"'), "json"),
        (b"\xef\xbb\xbf" + encode("clicks"), "json"),
        (encode("clicks").decode().encode("utf-16"), "json"),
        (b"[]", "object"),
        (b"7", "object"),
        (b"null", "object"),
        (b'"text"', "object"),
        (b"[" + encode("clicks") + b"]", "object"),
        (encode("clicks")[:-1] + b', "pad": "' + b"x" * 1_000_000 + b'"}', "too_large"),
        (encode("clicks")[:-1] + b', "x": ' + b"[" * 8 + b"]" * 8 + b"}", "too_deep"),
        (encode("clicks")[:-1] + b', "x": ' + b"[" * 100_000, "too_deep"),
        (encode("clicks")[:-1] + b', "x": ' + b"[" * 7 + b"]" * 7 + b"}", None),
        (encode("clicks")[:-1] + b', "x": "' + b"[" * 99 + b'"}', None),
        (encode("clicks")[:-1] + b', "x": "' + b"[" * 99 + b'\\"{{{"}', None),
        (encode("clicks", type="impression"), "type"),
        (encode("clicks", type="click"), None),
        (encode("clicks", type=None), None),
    ],
)
def test_a_record_that_is_no_event(value: bytes | None, reason: str | None) -> None:
    found = reason_of("clicks", value)
    if value == b"null":  # a missing event, whichever way it is said
        assert found in ("json", "object")
    else:
        assert found == reason


def test_every_reason_is_tested() -> None:
    tested = {reason for reason, *_ in WRONG_FIELDS} | {"json", "object", "too_large", "too_deep"}
    assert tested | {"future"} == set(REASONS)


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("impressions", {"user_id": "u" * 256}, None),
        ("impressions", {"user_id": "é" * 256}, None),
        ("impressions", {"user_id": "é" * 257}, "user_id"),
        ("impressions", {"ts": 0}, None),
        ("impressions", {"ts": limits.MAX_EVENT_MS}, None),
        ("impressions", {"position": 10_000}, None),
        ("impressions", {"propensity": 1}, None),
        ("impressions", {"propensity": 1e-300}, None),
        ("impressions", {"score": -limits.MAX_SCORE}, None),
        ("impressions", {"score": limits.MAX_SCORE + 1}, "score"),
        ("impressions", {"reference": ["a"] * limits.MAX_ITEMS, "held_out": "b"}, None),
        ("impressions", {"reference": []}, "reference"),
        ("impressions", {"reference": ["a"] * (limits.MAX_ITEMS + 1)}, "reference"),
        ("impressions", {"reference": [""]}, "reference"),
        ("impressions", {"held_out": ""}, "held_out"),
        ("impressions", {"variant": "x" * 64}, None),
        ("impressions", {"variant": "Az09_.:-"}, None),
        ("impressions", {"variant": None}, None),
        ("impressions", {"item_id": ABSENT, "items": [{"item_id": "i"}] * 1000}, None),
        ("conversions", {"value": 0}, None),
        ("conversions", {"value": 1e12}, None),
        ("conversions", {"value": 1e12 + 0.001}, "value"),
        ("impressions", {"ts": limits.MIN_SECONDS - 1}, None),
        ("impressions", {"ts": limits.MIN_SECONDS}, "ts"),
        ("impressions", {"ts": limits.MAX_SECONDS}, "ts"),
        ("impressions", {"ts": limits.MAX_SECONDS + 1}, None),
        ("clicks", {"start_ts": TS // 1000, "end_ts": TS // 1000 + 9}, "dwell"),
        ("conversions", {"value": 1e400}, "json"),
        ("clicks", {"dwell_ms": 0}, None),
        ("clicks", {"dwell_ms": 86_400_000}, None),
        ("clicks", {"start_ts": TS, "end_ts": TS}, None),
        ("clicks", {"start_ts": TS}, "dwell"),
        ("clicks", {"end_ts": TS}, "dwell"),
        ("clicks", {"feedback": "x" * 64}, None),
        ("sessions", {"action": "dwell"}, "item_id"),
        ("sessions", {"action": "dwell", "item_id": "i"}, None),
        ("sessions", {"action": "dwell", "item_id": "i", "start_ts": 1}, "dwell"),
        ("sessions", {"action": "dwell", "item_id": "i", "dwell_ms": 3}, None),
        ("sessions", {"action": "dwell", "item_id": "i", "start_ts": 1, "end_ts": 3}, None),
        ("clicks", {"more": {"ts": "x", "of": [1, None]}}, None),
    ],
)
def test_limits_are_inclusive(kind: str, fields: dict[str, Any], reason: str | None) -> None:
    value = encode(kind, **fields)
    if reason == "json":
        value = value.replace(b"Infinity", b"1e400")
        assert reason_of(kind, value) in ("json", "value")
    else:
        assert reason_of(kind, value) == reason


@pytest.mark.parametrize(
    ("text", "event_ms"),
    [
        ("2023-11-14T22:13:20Z", TS),
        ("2023-11-14T22:13:20.5+00:00", TS + 500),
        ("2023-11-15T03:43:20.123+05:30", TS + 123),
        ("2023-11-14t22:13:20z", TS),
        ("2023-11-14T22:13:20.999999Z", TS + 999),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("2016-12-31T18:59:60.250-05:00", 1_483_228_800_250),
        ("2017-01-01 05:29:60.9+0530", 1_483_228_800_900),
    ],
)
def test_times_may_be_text(text: str, event_ms: int) -> None:
    columns = decode("clicks", encode("clicks", ts=text), encode("clicks"))
    assert columns.event_ms.tolist() == [event_ms, TS]


def test_leap_seconds_are_times_of_all_fields_and_of_nothing_else() -> None:
    leap, following_ms = "2016-12-31T23:59:60Z", 1_483_228_800_000
    span = {"start_ts": leap, "end_ts": "2017-01-01T00:00:07Z"}
    settings = parse({"events": {"fields": {"ts": "wann"}}})
    click = encode("clicks", user_id=leap, note={"ts": leap}, **span).replace(b'"ts"', b'"wann"')
    plain = encode("clicks", user_id=leap).replace(b'"ts"', b'"wann"')
    (escaped,) = (encode("clicks", ts=leap).replace(b'"ts"', b'"w\\u0061nn"'),)
    columns = decode("clicks", click, plain, escaped, settings=settings)
    assert columns.rejects.reason == []
    assert columns.event_ms.tolist() == [TS, TS, following_ms]
    assert columns.dwell_ms.tolist() == [7000, -1, -1]
    assert columns.user[0] == columns.user[1] == hash_texts([[leap]])[0][0]


def test_all_fields_of_clicks() -> None:
    settings = SETTINGS["few values"]
    columns = decode(
        "clicks",
        encode("clicks", feedback="like", position=3, dwell_ms=7, request_id="r", event_id="e"),
        encode("clicks", feedback="zap", start_ts=TS, end_ts=TS + 9, variant="A"),
        encode("clicks", feedback=None, dwell_ms=4, start_ts=TS, end_ts=TS + 9, item_id="j"),
        encode("clicks"),
        settings=settings,
    )
    assert columns.feedback.tolist() == [1, -1, 0, 0]
    assert columns.position.tolist() == [3, 0, 0, 0]
    assert columns.dwell_ms.tolist() == [7, 9, 4, -1]
    assert hashes(columns.request) == hashes(["r", "", "", ""])
    assert hashes(columns.event_id) == hashes(["e", "", "", ""])
    assert hashes(columns.item) == hashes(["i", "i", "j", "i"])
    assert hashes(columns.user) == hashes(["u"] * 4)
    assert columns.owner is None


@pytest.mark.parametrize(
    ("value", "micros"),
    [(0, 0), (1, 10**6), (19.99, 19_990_000), (5e-7, 0), (1.5e-6, 2), (2.5e-6, 2), (None, 0)],
)
def test_money_is_rounded_half_to_even(value: float, micros: int) -> None:
    columns = decode("conversions", encode("conversions", value=value))
    assert columns.value_micros.tolist() == [micros]


def test_items_in_shown_order() -> None:
    lists = [
        [{"item_id": "a"}, {"item_id": "b"}],
        [{"item_id": "a"}, {"item_id": "b", "position": 7}],
        [{"item_id": "a", "position": 2}],
    ]
    values = [encode("impressions", item_id=ABSENT, items=items) for items in lists]
    values.insert(1, encode("impressions", position=9))
    columns = decode("impressions", *values)
    assert columns.owner is not None
    assert columns.owner.tolist() == [0, 0, 1, 2, 2, 3]
    assert hashes(columns.item) == hashes(["a", "b", "i", "a", "b", "a"])
    assert columns.position.tolist() == [1, 2, 9, 0, 7, 2]


def test_names_may_be_mapped() -> None:
    fields = {"ts": "when", "item_id": "sku", "items": "slate", "position": "rank", "variant": "v"}
    settings = parse({"events": {"fields": fields}})
    one = b'{"when": 5, "user_id": "u", "sku": "i", "rank": 3, "v": "B"}'
    slate = b'{"when": 6, "user_id": "u", "slate": [{"sku": "x", "rank": 2}]}'
    columns = decode("impressions", one, slate, settings=settings)
    assert columns.event_ms.tolist() == [5, 6]
    assert hashes(columns.item) == hashes(["i", "x"])
    assert columns.position.tolist() == [3, 2]
    for bad, reason in ((b'"when": -1', "ts"), (b'"when": 1, "rank": 0', "position")):
        value = b'{"user_id": "u", "sku": "i", ' + bad + b"}"
        assert decode("impressions", value, settings=settings).rejects.reason == [reason]
    unmapped = b'{"when": 5, "user_id": "u", "item_id": "i"}'
    assert decode("impressions", unmapped, settings=settings).rejects.reason == ["item_id"]


def test_dimensions_are_interned_and_unknown_is_missing() -> None:
    decoder = Decoder(parse({}))
    values = [encode("clicks", variant=v) for v in ("A", "unknown", None, "A", "B")]
    columns = decoder.chunk("clicks", np.arange(5), np.full(5, TS), values)
    assert [decoder.interner.tuples[i][0] for i in columns.segment.tolist()] == [
        "A", "", "", "A", "B",
    ]  # fmt: skip


@pytest.mark.parametrize("at", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 5])
def test_one_bad_record_in_blocks_of_good_ones(at: int) -> None:
    good = encode("conversions", value=2)
    values = [good] * (2 * BLOCK + 6)
    values[at] = good[:-1]
    columns = decode("conversions", *values)
    assert columns.rejects.index == [at]
    assert columns.row.tolist() == [i for i in range(len(values)) if i != at]
    assert columns.value_micros.tolist() == [2_000_000] * (len(values) - 1)


def test_an_empty_chunk_and_one_of_rejects_only() -> None:
    for kind in GOOD:
        assert decode(kind).event_ms.tolist() == []
        columns = decode(kind, b"x", None, b"[]")
        assert columns.event_ms.tolist() == []
        assert columns.rejects.reason == ["json", "json", "object"]
        assert len(assemble([columns])[kind].item) == 0


def test_the_interner_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEGMENT_CACHE", 50)
    decoder = Decoder(parse({}))
    for i in range(0, 400, 10):
        values = [encode("clicks", variant=f"v{i + j}") for j in range(10)]
        columns = decoder.chunk("clicks", np.arange(10), np.full(10, TS), values)
        found = [decoder.interner.tuples[s][0] for s in columns.segment.tolist()]
        assert found == [f"v{i + j}" for j in range(10)]
        assert len(decoder.interner) <= 61


def test_hashes_are_those_of_xxh3_and_0_is_missing() -> None:
    xxhash = pytest.importorskip("xxhash")
    texts = ["", "a", "Zoë ✓", "x" * 500]
    expected = [0] + [xxhash.xxh3_64_intdigest(t.encode()) for t in texts[1:]]
    first, second, empty = hash_texts([texts, texts[::-1], []])
    assert first.tolist() == expected
    assert second.tolist() == expected[::-1]
    assert empty.tolist() == []


@pytest.mark.parametrize("seed", range(8))
def test_damaged_bytes_never_raise_and_are_judged_as_by_the_oracle(seed: int) -> None:
    dice = random.Random(seed)
    settings = SETTINGS["few values"]
    records, _ = random_records(seed, "few values", 400, 1)
    damaged = []
    for record in records:
        raw = bytearray(record.raw or b"")
        if raw and len(raw) < 5000 and dice.random() < 0.7:
            how = dice.randrange(4)
            at = dice.randrange(len(raw))
            if how == 0:
                raw[at] ^= 1 << dice.randrange(8)
            elif how == 1:
                del raw[at:]
            elif how == 2:
                raw[at:at] = raw[dice.randrange(len(raw)) :][:20]
            else:
                raw[at] = dice.choice(b'{}[]",:0-eE\\\x00')
        if has_repeated_keys(bytes(raw)):
            raw = bytearray(record.raw or b"")
        damaged.append(type(record)(*record.address, record.record_ms, bytes(raw)))
    judged = run(damaged, settings)
    broken = {(t, p, o) for t, p, o, reason in judged.rejects if reason != "future"}
    found = set()
    decoder = Decoder(settings)
    for kind in GOOD:
        log = [r for r in to_log(damaged) if r.kind == kind]
        if log:
            columns = decoder.chunk(
                kind, np.arange(len(log)), np.full(len(log), TS), [r.value for r in log]
            )
            assert set(columns.rejects.reason) <= set(REASONS)
            found |= {(kind, 0, log[i].offset) for i in columns.rejects.index}
            assert len(columns.rejects.index) + len(columns.row) == len(log)
    assert found == broken


@pytest.mark.parametrize("moment", ["1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
def test_a_time_as_text_has_the_bounds_of_a_number(moment: str) -> None:
    raw = b'{"ts":"%s","user_id":"u","item_id":"i"}' % moment.encode()
    good = b'{"ts":"2024-01-01T00:00:00Z","user_id":"u","item_id":"i"}'
    decoder = Decoder(parse({}))
    columns = decoder.chunk("impressions", np.arange(2), np.zeros(2, np.int64), [raw, good])
    assert columns.rejects.reason == ["ts"]
    assert columns.event_ms.tolist() == [1_704_067_200_000]
