"""The oracle: which records count, the file rule, and the random logs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from streamer.settings.load import parse
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long

from .acceptance import accept
from .decoding import decode
from .files import murmur2, partition_of, strays_of_file
from .oracle import Record, records_of_file, records_of_log, run
from .parsing import BrokenError, Decimals, Whole
from .random_log import random_log
from .timeline import PLAIN, T0, VARIANT, Log, M, Payload, value
from .times import moment_ms


def nested(levels: int) -> list[Any]:
    """Lists in lists."""
    return [nested(levels - 1)] if levels > 1 else []


# Acceptance ----------------------------------------------------------------------------------


def test_arrival_clock_counts_the_record_itself_and_broken_ones() -> None:
    # A:      0 --- broken at 65 min --- event of 5 min (60 min behind) --- of 4:59.999
    log = Log().shown(0).raw("impressions", b"{", 65 * M)
    log.shown(5 * M, 10 * M).shown(5 * M - 1, 10 * M)
    result = log.run()
    assert result.late == [("impressions", 0, 3)]
    assert result.rejects == [("impressions", 0, 1, "json")]
    assert len(result.accepted) == 2
    assert value(result, "events_total", topic="impressions") == 4
    assert value(result, "late_total", topic="impressions") == 1
    assert value(result, "rejected_total", topic="impressions", reason="json") == 1
    assert value(result, "events_total", topic="sessions") == 0


def test_a_record_without_a_value_is_ignored() -> None:
    """A compacted topic has one for each key that was deleted."""
    result = Log().shown(0).raw("impressions", None, 65 * M).shown(5 * M - 1, 10 * M).run()
    assert (result.rejects, len(result.accepted)) == ([], 1)
    assert result.late == [("impressions", 0, 2)], "it counts for the arrival clock"
    assert value(result, "ignored_total", topic="impressions") == 1


def test_future_is_beyond_the_skew_of_the_own_arrival() -> None:
    result = Log().shown(5 * M, 0).shown(5 * M + 1, 0).run()
    assert result.rejects == [("impressions", 0, 1, "future")]
    # S = min(event, A): the future event moves it only as far as its arrival.
    assert value(result, "stream_time_seconds") == T0 / 1000


def test_duplicates_within_the_horizon_of_the_first_copy() -> None:
    # A: 0 first -- 40 min copy -- 60 min copy (60 - 0 <= 60) -- 60 min + 1: the new first -- copy
    log = Log()
    for at_ms in (0, 40 * M, 60 * M, 60 * M + 1, 61 * M):
        log.shown(at_ms, event_id="e")
    log.click(0, event_id="e")  # another topic
    log.shown(61 * M, event_id="e", p=1)  # another partition
    result = log.run()
    assert [offset for _, _, offset in result.duplicates] == [1, 2, 4]
    assert len(result.accepted) == 4


def test_late_and_rejected_copies_are_not_first() -> None:
    log = Log().shown(61 * M).shown(0, 61 * M, event_id="e").shown(61 * M, event_id="e")
    assert log.run().duplicates == []


def test_dead_letters_are_rejects_and_late_ones() -> None:
    letters: list[tuple[Record, str]] = []
    log = Log().shown(61 * M).shown(0, 61 * M).raw("clicks", b"[]", 0)
    run(log.records, PLAIN, dead_letters=letters)
    assert [(r.topic, reason) for r, reason in letters] == [
        ("clicks", "object"),
        ("impressions", "late"),
    ]


BROKEN: list[tuple[str, Payload, str]] = [
    ("clicks", {"type": "impression"}, "type"),
    ("clicks", {"ts": "2023-11-14T22:13"}, "ts"),
    ("clicks", {"ts": "1700000000"}, "ts"),
    ("clicks", {"ts": 1700000000.5}, "ts"),
    ("clicks", {"ts": True}, "ts"),
    ("clicks", {"user_id": 1.5}, "user_id"),
    ("clicks", {"event_id": "e" * 513}, "event_id"),
    ("clicks", {"item_id": None}, "item_id"),
    ("clicks", {"request_id": True}, "request_id"),
    ("clicks", {"position": 0}, "position"),
    ("clicks", {"feedback": "x" * 129}, "feedback"),
    ("clicks", {"start_ts": 5}, "dwell"),
    ("clicks", {"start_ts": 5, "end_ts": 4}, "dwell"),
    ("clicks", {"dwell_ms": 86_400_001}, "dwell"),
    ("clicks", {"items": [{"item_id": "x"}]}, "items"),
    ("clicks", {"item_id": None, "items": [{"item_id": "x", "position": 0}]}, "items"),
    ("conversions", {"item_id": None, "items": ["x", {"item_id": "y", "value": -1e13}]}, "items"),
    ("impressions", {"score": "0.5"}, "score"),
    ("impressions", {"propensity": 0}, "propensity"),
    ("impressions", {"items": [{"item_id": "x"}]}, "items"),
    ("clicks", {"item_id": None, "items": []}, "items"),
    ("impressions", {"item_id": None, "items": [{"item_id": "x", "position": 0}]}, "items"),
    ("conversions", {"value": -1e13}, "value"),
    ("conversions", {"type": "refund", "item_id": None, "items": []}, "items"),
    ("sessions", {"session_id": None, "user_id": None}, "session_id"),
    ("conversions", {"join_id": 1.5}, "join_id"),
    ("sessions", {"action": "stop"}, "action"),
    ("sessions", {"action": "dwell", "item_id": None}, "item_id"),
    ("clicks", {"x": nested(64)}, "too_deep"),
]
"""Topic, what is changed of a good event, and the reason why it is none then."""


def is_broken_for_its_reason(topic: str, change: Payload, reason: str) -> None:
    good = {"ts": T0, "user_id": "u", "item_id": "x", "session_id": "s", "action": "view"}
    decode(topic, json.dumps(good | {"x": nested(63)}).encode(), VARIANT)
    with pytest.raises(BrokenError, match=f"^{reason}$"):
        decode(topic, json.dumps(good | change).encode(), VARIANT)


def test_reasons() -> None:
    hold_for_all(BROKEN, lambda case: is_broken_for_its_reason(*case), at_least=28)


def moment(value: Any, zone: str = "UTC") -> int:
    return moment_ms(value, "ts", parse({"events": {"zone": zone}}))


def test_times() -> None:
    for number in (T0, Whole(str(T0)), str(T0), f"{T0}.999", Decimals(f"{T0}.5")):
        assert moment(number) == T0
    assert moment("2023-11-14 22:14:00 UTC", "Asia/Kolkata") == T0
    assert moment("2023-11-15T03:44:00", "Asia/Kolkata") == T0
    # Clocks of Berlin: 02:30 comes twice on 29 October, and never on 26 March.
    assert moment("2023-10-29T02:30:00", "Europe/Berlin") == moment("2023-10-29T00:30:00Z")
    assert moment("2023-03-26T02:30:00", "Europe/Berlin") == moment("2023-03-26T01:30:00Z")
    assert moment("2023-11-14T22:14:00.5Z") == T0 + 500
    assert moment("2023-11-15T03:44:00.0019+05:30") == T0 + 1
    assert moment("2023-11-14 23:14:00+01") == moment("2023-11-14T20:14:00-02") == T0
    following_ms = 1_483_228_800_000  # 2017-01-01
    for leap in ("2016-12-31T23:59:60Z", "2017-01-01t00:59:60+0100", "2016-12-31 15:59:60-08:00"):
        assert moment(leap) == following_ms
    assert moment("2016-12-31T23:59:60.25Z") == following_ms + 250


# Files and random logs ------------------------------------------------------------------------


def test_file_rule() -> None:
    def line(line_type: str | None, ts: Any, user: str = "u", **more: Any) -> bytes:
        payload = {"ts": ts, "user_id": user, "item_id": "x"} | more
        return json.dumps(payload | ({"type": line_type} if line_type else {})).encode() + b"\n"

    lines = [
        b"{",
        line("click", 100),
        line("impression", 300),
        line("impression", 200),
        line("purchase", 400),  # on no topic
        line(None, 350),  # nor this
        line("click", 9_000_000),  # beyond the wall clock: future
        line("click", "soon"),
        line("click", 500, position=0),  # refused: it moves no clock
        line("click", 310, dwell_ms=1),
        b"\n",
    ]
    records = records_of_file(lines, PLAIN, now_ms=1000)
    assert [(r.topic, r.offset, r.record_ms) for r in records] == [
        ("clicks", 0, 100),
        ("impressions", 0, 300),
        ("impressions", 1, 300),
        ("clicks", 1, 300),
        ("clicks", 2, 300),
        ("clicks", 3, 300),
        ("clicks", 4, 310),
    ]
    assert [r[3] for r in run(records, PLAIN).rejects] == ["future", "ts", "position"]
    assert [reason for _, reason in strays_of_file(lines, PLAIN)] == [
        "json",
        "type",
        "type",
        "json",
    ]
    assert len(records_of_log(lines, PLAIN, now_ms=1000)) == len(lines)


def test_partitioner_is_kafkas() -> None:
    # From org.apache.kafka.common.utils.UtilsTest.testMurmur2, as unsigned numbers.
    expected = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert {key: murmur2(key) for key in expected} == {
        key: number % 2**32 for key, number in expected.items()
    }
    assert partition_of(None, 8) == 0


@long
def test_random_logs_have_every_complication() -> None:
    settings = parse(
        {
            "dimensions": [{"name": "variant", "values": ["A"], "max_values": 2}],
            "metrics": {"feedback": {"click": 1.0, "like": 2.0}},
            "events": {"fields": {"item_id": "sku", "ts": "time"}},
        }
    )
    lines = random_log(8, settings, 6000)
    assert lines == random_log(8, settings, 6000)
    assert len(lines) == 6000
    result = run(records_of_log(lines, settings, partitions=3), settings)
    reasons = {r[3] for r in result.rejects}
    assert reasons == {
        *("json", "object", "too_large", "too_deep", "type", "ts", "user_id", "event_id"),
        *("item_id", "request_id", "position", "score", "propensity", "items", "feedback"),
        *("dwell", "value", "session_id", "action", "future", "reference", "held_out"),
        *("reward_estimate", "item_category", "join_id", "rating", "impression_id"),
    }
    assert len(result.rejects) < 1000
    events = accept(records_of_log(lines, settings, partitions=3), settings).events
    assert sum(e.user_id is None and e.request_id is None for e in events) > 20
    assert sum(e.user_id is None and e.request_id is not None for e in events) > 20
    assert min(sum(e.line == n for e in events) for n in (1, 2)) > 20
    assert sum(e.cut for e in events) > 3
    assert {"all (value)", "7", "-0.5", "New York"} <= {e.dims[0] for e in events}
    forms = (
        rb'"sku": ?\d',
        rb'"sku": ?"\d',
        rb'"user_id": ?\d',
        rb'"items": ?\["',
        rb'"items": ?\[\d',
    )
    times = (rb"\d+\.75", rb'"\d+"', rb'"\d+\.9"', rb'"[^"]+T[^"]+\d"', rb'"[^"]+ UTC"')
    for form in (*forms, *(rb'"time": ?' + time for time in times)):
        assert sum(re.search(form, line) is not None for line in lines) > 3, form
    assert min(len(result.late), len(result.duplicates), len(result.unsettled)) > 0
    misses = [address for address, row in result.joined.items() if row is None]
    assert 0 < len(misses) < len(result.joined) / 2
    assert (value(result, "feedback_total", feedback="other", variant="all") or 0) > 0
    assert (value(result, "impressions_total", variant="other") or 0) > 0
