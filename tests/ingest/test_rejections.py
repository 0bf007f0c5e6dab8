"""Why a record was refused: the field, what it held, what is expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.cli.rejection_report import RejectionReport
from streamer.formatting import printable
from streamer.ingest.dead_letters import DeadLetter
from streamer.ingest.record import reason_of_no_topic
from streamer.ingest.rejections import Explainer, Refusal
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from tests.oracle.broken_lines import ABSENT, OF_LISTS, POLICY_FIELDS, STRANGER, WRONG
from tests.oracle.fuzzed import Fuzzer
from tests.support.agreement import SETTINGS, log_records
from tests.support.judging import RecordJudge

TS = 1_700_000_000_000
MAPPED = parse(
    {"events": {"fields": {"ts": "when", "item_id": "sku", "variant": "arm", "position": "rank"}}}
)


def explained(kind: str, settings: Any = None, **fields: Any) -> Refusal:
    """The refusal of a record that is right but for the given fields."""
    event = {"ts": TS, "user_id": "u", "item_id": "i", "session_id": "s", "action": "view"} | fields
    raw = json.dumps({k: v for k, v in event.items() if v is not ABSENT}).encode()
    settings = settings or parse({})
    reason = RecordJudge(settings).refusal(kind, raw)
    assert reason is not None
    return Explainer(settings).explain(kind, raw, reason)


@pytest.mark.parametrize(
    ("kind", "fields", "field", "found", "expected"),
    [
        ("clicks", {"ts": 1_700_000_000}, "ts", "1700000000 (looks like seconds)", "milliseconds"),
        ("clicks", {"ts": TS * 1000 + 7}, "ts", "(looks like microseconds)", "milliseconds"),
        ("clicks", {"ts": TS * 10**6 + 7}, "ts", "(looks like nanoseconds)", "milliseconds"),
        ("clicks", {"ts": 1.7e9}, "ts", "(looks like seconds)", "milliseconds"),
        ("clicks", {"ts": "1700000000"}, "ts", '"1700000000" (looks like seconds)', "milliseconds"),
        ("clicks", {"ts": "14.11.2023"}, "ts", '"14.11.2023"', "RFC 3339"),
        ("clicks", {"ts": ABSENT}, "ts", "nothing", "milliseconds"),
        ("clicks", {"user_id": 1.5}, "user_id", "1.5", "1 to 512"),
        ("clicks", {"item_id": ABSENT}, "item_id", "nothing", "1 to 512"),
        ("clicks", {"item_id": ""}, "item_id", "nothing", "1 to 512"),
        ("clicks", {"item_id": [5]}, "item_id", "[5]", "text"),
        ("clicks", {"feedback": 7}, "feedback", "7", "1 to 128"),
        ("clicks", {"type": "view"}, "type", '"view"', "click"),
        ("clicks", {"dwell_ms": -1}, "dwell_ms", "-1", "86400000"),
        ("clicks", {"start_ts": 5}, "end_ts", "nothing", "a day apart"),
        ("clicks", {"start_ts": "x", "end_ts": 5}, "start_ts", '"x"', "like ts"),
        ("clicks", {"start_ts": 5, "end_ts": 4}, "end_ts", "4", "a day apart"),
        ("clicks", {"start_ts": 1_700_000_000, "end_ts": 1_700_000_001}, "start_ts", "seconds", ""),
        ("impressions", {"position": 0}, "position", "0", "1 to 10000"),
        ("impressions", {"items": [{"item_id": "a"}]}, "items", '[{"item_id": "a"}]', "no item_id"),
        (
            *("impressions", {"item_id": ABSENT, "items": [{"item_id": "a"}, {"item_id": ""}]}),
            *("items[1].item_id", "nothing", "1 to 512"),
        ),
        ("impressions", {"reference": ["a", 7.5]}, "reference[1]", "7.5", "item ids"),
        (
            *("conversions", {"item_id": "", "items": ["a", {"item_id": 7, "value": -2e12}]}),
            *("items[1].value", "-2000000000000.0", "-1e+12 to 1e+12"),
        ),
        ("conversions", {"value": 1e12 + 1}, "value", "1000000000001", "1e+12"),
        ("sessions", {"action": "stop"}, "action", '"stop"', "start, view, dwell, end"),
        ("sessions", {"action": "dwell", "item_id": ABSENT}, "item_id", "nothing", "text"),
        ("sessions", {"session_id": "", "user_id": ABSENT}, "session_id", "nothing", "text"),
    ],
)
def test_a_refusal_names_the_field_what_it_held_and_what_is_expected(
    kind: str, fields: dict[str, Any], field: str, found: str, expected: str
) -> None:
    refusal = explained(kind, **fields)
    assert refusal.field == field
    assert found in refusal.found
    assert expected in refusal.expected


def test_a_record_of_another_topic_is_told_the_type_of_its_own() -> None:
    assert explained("clicks", type="impression").expected == "click"


@pytest.mark.parametrize(
    ("raw", "reason", "found", "expected"),
    [
        (b"no json", "json", "no json", "UTF-8"),
        (b"a\xff\x00\n", "json", r"a\xff\x00\n", "UTF-8"),
        (b"  ", "json", "nothing", "UTF-8"),
        (b"[1]", "object", "[1]", "object"),
        (b"x" * (limits.MAX_RECORD_BYTES + 7), "too_large", "1,000,007 bytes", "1,000,000"),
        (b'{"type":7}', "type", "7", "impression, click, conversion, session"),
        (b'{"type":1e999}', "type", "1e999", "impression"),
        (b'{"type":' + b"[" * 900 + b"]" * 900 + b"}", "type", "[[[", "impression"),
    ],
)
def test_a_line_of_no_topic(raw: bytes, reason: str, found: str, expected: str) -> None:
    assert reason_of_no_topic(raw) == reason
    refusal = Explainer(parse({})).explain("", raw, reason)
    assert found in refusal.found
    assert expected in refusal.expected


def test_fields_are_called_as_in_the_record() -> None:
    refusal = explained("clicks", MAPPED, when=TS, sku=3.5)
    assert (refusal.reason, refusal.field, refusal.found) == ("item_id", "sku", "3.5")
    items = [{"sku": "i", "rank": -1}]
    refusal = explained("impressions", MAPPED, when=5, sku=None, items=items)
    assert (refusal.reason, refusal.field, refusal.found) == ("items", "items[0].rank", "-1")
    explainer = Explainer(MAPPED)
    seen = ["type", "when", "productId", "userID", "sku", "Surface"]
    assert explainer.nearest(seen) == {"user_id": "userID", "surface": "Surface"}
    assert explainer.nearest(["when", "itemID"]) == {"item_id": "itemID"}
    assert Explainer(parse({})).nearest(["timestmp", "colour"]) == {"ts": "timestmp"}


@pytest.mark.parametrize(
    ("ts", "found"),
    [
        (TS + 7.9, "2023-11-14T22:13:20.007Z"),
        ("1700000000000", "2023-11-14T22:13:20.000Z"),
        ("2023-11-14T23:13:20", "2023-11-14T22:13:20.000Z"),
    ],
)
def test_late_and_future_events_show_their_time(ts: Any, found: str) -> None:
    settings = parse({"events": {"zone": "Europe/Berlin", "fields": {"ts": "when"}}})
    raw = json.dumps({"when": ts, "item_id": "i"}).encode()
    late, future = (Explainer(settings).explain("clicks", raw, r) for r in ("late", "future"))
    assert (late.field, late.found, future.found) == ("when", found, found)
    assert "1h before the newest record (time.max_lateness)" in late.expected
    assert "5m after the newest record (time.max_skew)" in future.expected


def test_fields_of_ratios_are_named() -> None:
    settings = SETTINGS["few values"]
    refusal = explained("impressions", settings, latency_ms="fast")
    assert refusal == Refusal("ratios", "latency_ms", '"fast"', "a number from -1e+12 to 1e+12")
    items = [{"item_id": "a", "latency_ms": 3}, {"item_id": "b", "latency_ms": 1e13}]
    refusal = explained("impressions", settings, item_id=ABSENT, items=items)
    assert (refusal.reason, refusal.field) == ("items", "items[1].latency_ms")
    assert refusal.expected == "a number from -1e+12 to 1e+12"


def test_every_wrong_field_is_explained() -> None:
    for reason, cases in WRONG.items():
        for line_type, field, values in cases:
            kind = LINE_TYPES[OF_LISTS.get(line_type, line_type)]
            for value in values:
                fields: dict[str, Any] = {"item_id": ABSENT} if line_type in OF_LISTS else {}
                fields |= {"user_id": ABSENT} if line_type == STRANGER else {}
                if field == "span":
                    fields |= {"start_ts": value[0], "end_ts": value[1]}
                else:
                    fields[field] = value
                is_named = field in POLICY_FIELDS or reason == "ratios"
                settings = SETTINGS["few values"] if is_named else None
                refusal = explained(kind, settings, **fields)
                assert refusal.reason == reason
                first = refusal.field.partition("[")[0]
                named = ("dwell_ms", "start_ts", "end_ts") if reason == "dwell" else (field, reason)
                assert first in named, (fields, refusal)


@pytest.mark.parametrize(
    ("kind", "fields", "found"),
    [
        ("clicks", {"user_id": [4711]}, "list of 1"),
        ("clicks", {"feedback": "4711" * 33}, "text of 132"),
        ("clicks", {"position": "4711"}, "text of 4"),
        ("clicks", {"position": -5}, "-5"),
        ("clicks", {"ts": 1_700_000_000}, "1700000000 (looks like seconds)"),
        ("clicks", {"type": "view"}, '"view"'),
        ("impressions", {"reference": ["a", 47.11]}, "number"),
        ("impressions", {"item_id": ABSENT, "items": [{"item_id": ["4711"]}]}, "list of 1"),
    ],
)
def test_messages_show_no_ids(kind: str, fields: dict[str, Any], found: str) -> None:
    event = {"ts": TS, "user_id": "u", "item_id": "i"} | fields
    raw = json.dumps({k: v for k, v in event.items() if v is not ABSENT}).encode()
    reason = RecordJudge(parse({})).refusal(kind, raw)
    assert reason is not None
    explainer = Explainer(parse({}))
    assert explainer.explain(kind, raw, reason, hides_values=True).found == found
    assert (
        explainer.shape("clicks", b'{"uid":"4711","n":4711}')
        == "{uid: text of 4, n: integer of 4 digits}"
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_no_record_is_too_odd_to_be_explained(name: str) -> None:
    good = log_records(5, name, 300, 1)
    judge, explainer = RecordJudge(SETTINGS[name]), Explainer(SETTINGS[name])
    refused = RejectionReport(SETTINGS[name])
    for record in Fuzzer(4, SETTINGS[name]).mix(good, 4000, heavy=12):
        reason = judge.refusal(record.topic, record.raw)
        kinds = [(record.topic, r) for r in (reason, "late", "future") if r is not None]
        kinds += [("", reason_of_no_topic(record.raw))] if record.raw else []
        for kind, why in kinds:
            refused.add(kind, record.raw, why)
            refusal = explainer.explain(kind, record.raw, why)
            for text in (refusal.field, refusal.found, refusal.expected):
                assert text == printable(text)
                assert len(text) <= max(limits.MAX_FOUND_CHARS, 150)
            assert len(refusal.found) <= limits.MAX_FOUND_CHARS
            assert refusal.found
            letter = DeadLetter("clicks" * 40, 999, 2**60, refusal, record.raw)
            assert sum(len(key) + len(value) for key, value in letter.headers()) < 2000
    assert all("\n" not in what + fix for _, what, fix in refused.findings())
    assert refused.total == sum(refused.reasons.values())
