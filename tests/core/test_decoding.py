"""Records one by one in the core: every reason, every field, what bounds include."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from tests.core.decoders import REASONS, decoder_of
from tests.oracle.broken_lines import ABSENT, OF_LISTS, POLICY_FIELDS, STRANGER, WRONG
from tests.oracle.oracle import run
from tests.support.agreement import SETTINGS, log_records
from tests.support.all_cases import hold_for_all
from tests.support.lanes import shortened

TS = 1_700_000_000_000
GOOD: dict[str, dict[str, Any]] = {
    "impressions": {"ts": TS, "user_id": "u", "item_id": "i"},
    "clicks": {"ts": TS, "user_id": "u", "item_id": "i"},
    "conversions": {"ts": TS, "user_id": "u", "item_id": "i"},
    "sessions": {"ts": TS, "user_id": "u", "session_id": "s", "action": "view"},
}


def decode(kind: str, *values: bytes | None, settings: Any = None) -> list[Any]:
    """Of each record the values of its event, or the reason why it is none."""
    decoder = decoder_of(settings or parse({}))
    return [decoder.decode_all(kind, value)[0] for value in values]


def encode(kind: str, **fields: Any) -> bytes:
    event = {**GOOD[kind], **fields}
    return json.dumps({k: v for k, v in event.items() if v is not ABSENT}).encode()


def reason_of(kind: str, value: bytes | None, settings: Any = None) -> str | None:
    """The reason of one record; good neighbours before and after it stay good."""
    good = encode(kind)
    before, found, after = decode(kind, good, value, good, settings=settings)
    assert repr(before) == repr(after)
    assert isinstance(before, dict)
    return found if isinstance(found, str) else None


def hashes(*texts: str) -> list[int]:
    return [decoder_of(parse({})).hash(text) for text in texts]


def column(found: list[Any], name: str) -> list[Any]:
    return [event[name] for event in found]


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


def has_its_reason(reason: str, line_type: str, field: str, value: Any) -> None:
    kind = LINE_TYPES[OF_LISTS.get(line_type, line_type)]
    fields: dict[str, Any] = {"item_id": ABSENT} if line_type in OF_LISTS else {}
    fields |= {"user_id": ABSENT} if line_type == STRANGER else {}
    if field == "span":
        fields |= {"start_ts": value[0], "end_ts": value[1]}
    else:
        fields[field] = value
    is_named = field in POLICY_FIELDS or reason == "ratios"
    settings = SETTINGS["few values"] if is_named else None
    assert reason_of(kind, encode(kind, **fields), settings) == reason


def test_a_wrong_field_has_its_reason() -> None:
    hold_for_all(WRONG_FIELDS, lambda case: has_its_reason(*case), at_least=150)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
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
        (encode("clicks")[:-1] + b', "x": ' + b"[" * 64 + b"]" * 64 + b"}", "too_deep"),
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


LIMITS: list[tuple[str, dict[str, Any], str | None]] = [
    ("impressions", {"user_id": "u" * 512}, None),
    ("impressions", {"user_id": "u" * 513}, "user_id"),
    ("impressions", {"user_id": "é" * 256}, None),
    ("impressions", {"user_id": "é" * 256 + "u"}, "user_id"),
    ("impressions", {"user_id": 10**511}, None),
    ("impressions", {"user_id": 10**512}, "user_id"),
    ("impressions", {"user_id": -7}, None),
    ("impressions", {"user_id": None, "event_id": "", "request_id": ""}, None),
    ("impressions", {"position": 0}, "position"),
    ("impressions", {"position": 10_001}, "position"),
    ("impressions", {"ts": 0}, None),
    ("impressions", {"ts": limits.MAX_EVENT_MS}, None),
    ("impressions", {"position": 10_000}, None),
    ("impressions", {"propensity": 1}, None),
    ("impressions", {"propensity": 1e-300}, None),
    ("impressions", {"score": -limits.MAX_SCORE}, None),
    ("impressions", {"score": limits.MAX_SCORE + 1}, "score"),
    ("clicks", {"rating": -limits.MAX_RATING}, None),
    ("clicks", {"rating": limits.MAX_RATING + 1e-9}, "rating"),
    ("clicks", {"item_id": ABSENT, "items": [{"item_id": "i", "rating": "5"}]}, "items"),
    ("impressions", {"reference": ["a"] * limits.MAX_ITEMS, "held_out": "b"}, None),
    ("impressions", {"reference": []}, "reference"),
    ("impressions", {"reference": ["a"] * (limits.MAX_ITEMS + 1)}, "reference"),
    ("impressions", {"reference": [""]}, "reference"),
    ("impressions", {"held_out": ""}, None),
    ("impressions", {"variant": "x" * 10_000}, None),
    ("impressions", {"variant": {"a": [True, 7]}}, None),
    ("impressions", {"item_id": ABSENT, "items": [{"item_id": "i"}] * 1000}, None),
    ("impressions", {"item_id": ABSENT, "items": [*"ab", 7] * 333 + ["c"]}, None),
    ("clicks", {"item_id": ABSENT, "items": ["a"] * 1000}, None),
    ("conversions", {"item_id": ABSENT, "items": ["a"] * 1001}, "items"),
    ("conversions", {"item_id": ABSENT, "items": [{"item_id": "a", "value": 1e12}]}, None),
    ("sessions", {"items": ["a"]}, None),
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
    ("clicks", {"feedback": "😀" * 128}, None),
    ("clicks", {"feedback": "li ke\n"}, None),
    ("clicks", {"feedback": ""}, None),
    ("sessions", {"action": "dwell"}, "item_id"),
    ("sessions", {"action": "dwell", "item_id": "i"}, None),
    ("sessions", {"action": "dwell", "item_id": "i", "start_ts": 1}, "dwell"),
    ("sessions", {"action": "dwell", "item_id": "i", "dwell_ms": 3}, None),
    ("sessions", {"action": "dwell", "item_id": "i", "start_ts": 1, "end_ts": 3}, None),
    ("clicks", {"more": {"ts": "x", "of": [1, None]}}, None),
]


def is_within_limits_or_not(kind: str, fields: dict[str, Any], reason: str | None) -> None:
    value = encode(kind, **fields)
    if reason == "json":
        value = value.replace(b"Infinity", b"1e400")
        assert reason_of(kind, value) in ("json", "value")
    else:
        assert reason_of(kind, value) == reason


def test_limits_are_inclusive() -> None:
    hold_for_all(LIMITS, lambda case: is_within_limits_or_not(*case), at_least=50)


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
        ("2023-11-14T22:13:20", TS),
        ("2023-11-14 22:13:20.25 UTC", TS + 250),
        ("1700000000000", TS),
        ("1700000000000.9", TS),
        (TS + 0.999, TS),
        (1.7e12, TS),
    ],
)
def test_times_may_be_texts_and_decimals(text: str | float, event_ms: int) -> None:
    found = decode("clicks", encode("clicks", ts=text), encode("clicks"))
    assert column(found, "event_ms") == [event_ms, TS]


def test_leap_seconds_are_times_of_all_fields_and_of_nothing_else() -> None:
    leap, following_ms = "2016-12-31T23:59:60Z", 1_483_228_800_000
    span = {"start_ts": leap, "end_ts": "2017-01-01T00:00:07Z"}
    settings = parse({"events": {"fields": {"ts": "wann"}}})
    click = encode("clicks", user_id=leap, note={"ts": leap}, **span).replace(b'"ts"', b'"wann"')
    plain = encode("clicks", user_id=leap).replace(b'"ts"', b'"wann"')
    (escaped,) = (encode("clicks", ts=leap).replace(b'"ts"', b'"w\\u0061nn"'),)
    found = decode("clicks", click, plain, escaped, settings=settings)
    assert column(found, "event_ms") == [TS, TS, following_ms]
    assert column(found, "dwell_ms") == [7000, None, None]
    assert column(found, "user") == hashes(leap, leap, "u")


def test_all_fields_of_clicks() -> None:
    settings = SETTINGS["few values"]
    found = decode(
        "clicks",
        encode("clicks", feedback="like", position=3, dwell_ms=7, request_id="r", event_id="e"),
        encode("clicks", feedback="zap", start_ts=TS, end_ts=TS + 9, variant="A"),
        encode("clicks", feedback=None, dwell_ms=4, start_ts=TS, end_ts=TS + 9, item_id="j"),
        encode("clicks"),
        settings=settings,
    )
    assert column(found, "feedback") == [1, -1, 0, 0]
    assert column(found, "dwell_ms") == [7, 9, 4, None]
    assert column(found, "request") == hashes("r", "", "", "")
    assert column(found, "event_id") == hashes("e", "", "", "")
    assert column(found, "lines") == [
        [(i, at)] for i, at in zip(hashes(*"iiji"), (3, 0, 0, 0), strict=True)
    ]
    assert column(found, "user") == hashes(*"uuuu")
    assert hashes("") == [0]


@pytest.mark.parametrize(
    ("value", "micros"),
    [(0, 0), (1, 10**6), (19.99, 19_990_000), (5e-7, 0), (1.5e-6, 2), (2.5e-6, 2), (None, 0)],
)
def test_money_is_rounded_half_to_even(value: float, micros: int) -> None:
    found = decode("conversions", encode("conversions", value=value))
    assert column(found, "lines") == [[(*hashes("i"), micros)]]


def test_items_in_shown_order() -> None:
    lists = [
        [{"item_id": "a"}, {"item_id": "b"}],
        [{"item_id": "a"}, {"item_id": "b", "position": 7}],
        [{"item_id": "a", "position": 2}],
    ]
    values = [encode("impressions", item_id=ABSENT, items=items) for items in lists]
    values.insert(1, encode("impressions", position=9))
    found = decode("impressions", *values)
    a, b, i = hashes(*"abi")
    places = [[item[:2] for item in event["items"]] for event in found]
    assert places == [[(a, 1), (b, 2)], [(i, 9)], [(a, 0), (b, 7)], [(a, 2)]]
    assert column(found, "is_list") == [True, False, True, True]


def test_names_may_be_mapped() -> None:
    fields = {"ts": "when", "item_id": "sku", "items": "slate", "position": "rank", "variant": "v"}
    settings = parse({"events": {"fields": fields}})
    one = b'{"when": 5, "user_id": "u", "sku": "i", "rank": 3, "v": "B"}'
    slate = b'{"when": 6, "user_id": "u", "slate": [{"sku": "x", "rank": 2}]}'
    found = decode("impressions", one, slate, settings=settings)
    assert column(found, "event_ms") == [5, 6]
    items = [item[:2] for event in found for item in event["items"]]
    assert items == list(zip(hashes("i", "x"), [3, 2], strict=True))
    for bad, reason in ((b'"when": -1', "ts"), (b'"when": 1, "rank": 0', "position")):
        value = b'{"user_id": "u", "sku": "i", ' + bad + b"}"
        assert decode("impressions", value, settings=settings) == [reason]
    unmapped = b'{"when": 5, "user_id": "u", "item_id": "i"}'
    assert decode("impressions", unmapped, settings=settings) == ["item_id"]


@pytest.mark.parametrize(
    ("written", "value", "cut"),
    [
        ('"A"', "A", 0),
        ('"New York \\u2713 \\"x\\"\\n"', 'New York ✓ "x"\n', 0),
        ("1.50", "1.50", 0),
        ("-0", "-0", 0),
        ("1e5", "1e5", 0),
        ("true", "true", 0),
        ("false", "false", 0),
        *((written, "", 0) for written in ('"unknown"', '""', "null", "[1]", '{"a":"A"}')),
        ('"all"', "all (value)", 0),
        ('"\\u0061ll"', "all (value)", 0),
        ('"other"', "other (value)", 0),
        ('"' + "é" * 128 + '"', "é" * 128, 0),
        ('"' + "é" * 129 + '"', "é" * 128, 1),
        ('"' + "\\u00e9" * 129 + '"', "é" * 128, 1),
        ("1" * 200, "1" * 128, 1),
    ],
)
def test_any_value_of_a_dimension(written: str, value: str, cut: int) -> None:
    raw = encode("clicks", variant="?").replace(b'"?"', written.encode())
    (event,) = decode("clicks", raw)
    assert (event["dimensions"][0], event["cut"]) == (value, cut)


def test_an_id_is_the_same_whether_number_or_text() -> None:
    found = decode("clicks", *(encode("clicks", user_id=u) for u in (17, "17", "017", "", None)))
    assert column(found, "user") == hashes("17", "17", "017", "", "")


def test_lines_have_items_and_what_they_say_of_them() -> None:
    clicks = encode("clicks", item_id=ABSENT, items=["a", {"item_id": 7, "position": 3}, "a"])
    a, seven, b = hashes("a", "7", "b")
    assert column(decode("clicks", clicks), "lines") == [[(a, 0), (seven, 3), (a, 0)]]
    orders = [
        ([{"item_id": "a", "value": 2}, "b"], 9, [(a, 2_000_000), (b, 0)]),
        ([{"item_id": "a"}, "b"], 9, [(a, 9_000_000), (b, 0)]),  # counts with the first
        (["a", {"item_id": "b", "value": None}], None, [(a, 0), (b, 0)]),
    ]
    for items, value, lines in orders:
        found = decode("conversions", encode("conversions", item_id="", items=items, value=value))
        assert column(found, "lines") == [lines]


def test_positions_from_0() -> None:
    settings = parse({"events": {"positions_from": 0}})
    raws = [encode("clicks", position=at) for at in (0, 9_999, 10_000, -1)]
    found = decode("clicks", *raws, settings=settings)
    assert [e if isinstance(e, str) else e["lines"][0][1] for e in found] == [
        *(1, 10_000),
        *("position", "position"),
    ]
    slate = encode("impressions", item_id=ABSENT, items=[{"item_id": "a", "position": 0}, "b"])
    (event,) = decode("impressions", slate, settings=settings)
    assert [item[1] for item in event["items"]] == [1, 0]


@pytest.mark.parametrize("seed", shortened(list(range(8)), 3))
def test_damaged_bytes_never_raise_and_are_judged_as_by_the_oracle(seed: int) -> None:
    dice = random.Random(seed)
    settings = SETTINGS["few values"]
    records = log_records(seed, "few values", 400, 1)
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
    decoder, found = decoder_of(settings), set()
    for record in damaged:
        said = decoder.decode_all(record.topic, record.raw)[0]
        if isinstance(said, str):
            assert said in REASONS
            found.add(record.address)
    assert found == broken


@pytest.mark.parametrize("moment", ["1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
def test_a_time_as_text_has_the_bounds_of_a_number(moment: str) -> None:
    raw = b'{"ts":"%s","user_id":"u","item_id":"i"}' % moment.encode()
    good = b'{"ts":"2024-01-01T00:00:00Z","user_id":"u","item_id":"i"}'
    reason, event = decode("impressions", raw, good)
    assert reason == "ts"
    assert event["event_ms"] == 1_704_067_200_000
