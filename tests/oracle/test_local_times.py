"""Times of a zone without an offset: where clocks go back they are near the record's time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from streamer.ingest.record import record_decoder
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.oracle.files import fields_of
from tests.oracle.oracle import records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.times import EPOCH, moment_ms
from tests.support.agreement import differences, read_engines, run_engines, to_log
from tests.support.lanes import sized

CHANGES = {
    "Europe/Berlin": ("2023-10-29T01:00Z", "2023-03-26T01:00Z"),
    "America/New_York": ("2023-11-05T06:00Z", "2023-03-12T07:00Z"),
    "America/Santiago": ("2023-04-02T03:00Z", "2023-09-03T04:00Z"),
    "Australia/Lord_Howe": ("2023-04-01T15:00Z", "2023-09-30T15:30Z"),
    "Pacific/Apia": ("2021-04-03T14:00Z", "2011-12-30T10:00Z"),  # a day was skipped
}
"""Zone → when its clocks go back, and when they are put forward."""
FORMAT = "%d.%m.%Y %H:%M:%S"


def ms_of(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def in_zone(zone: str) -> Settings:
    return parse(
        {"dimensions": [], "windows": {"lengths": ["1h", "24h"]}, "events": {"zone": zone}}
    )


def formatted(zone: str) -> Settings:
    """Times are texts of another format."""
    fields = {"ts": {"path": "at", "format": FORMAT}, "item_id": "item", "user_id": "user"}
    source = {"topics": ["web"], "zone": zone, "kind": {"fixed": "click"}, "fields": fields}
    return parse({"sources": [source]})


@pytest.mark.parametrize("zone", CHANGES)
def test_what_clocks_show_is_read_near_the_time_of_the_record(zone: str) -> None:
    settings = in_zone(zone)
    flat, mapped = record_decoder(settings), record_decoder(formatted(zone))
    found, twice = 0, set[str]()
    for change in map(ms_of, CHANGES[zone]):
        for minute in range(-120, 27 * 60, 7):
            true_ms = change + minute * 60_000
            shown = datetime.fromtimestamp(true_ms / 1000, UTC).astimezone(ZoneInfo(zone))
            local = shown.replace(tzinfo=None)
            for near_ms in (true_ms, true_ms - 10 * 60_000, true_ms + 10 * 60_000, change, 0):
                text = local.isoformat()
                expected = moment_ms(text, "ts", settings, near_ms)
                assert expected == true_ms or near_ms != true_ms
                twice |= {text} if expected != true_ms else set()
                raw = json.dumps({"ts": text, "item_id": "i"}).encode()
                event = flat.decode_all("clicks", raw, timestamp_ms=near_ms)[0]
                assert event["event_ms"] == expected, (text, near_ms)
                raw = json.dumps({"at": f"{local:{FORMAT}}", "item": "i"}).encode()
                event = mapped.decode_all("web", raw, timestamp_ms=near_ms)[0]
                assert event["event_ms"] == expected, (text, near_ms)
                found += 1
    assert found > 1000
    assert len(twice) >= (4 if zone == "Australia/Lord_Howe" else 8)


@pytest.mark.parametrize("zone", CHANGES)
def test_what_clocks_skip_is_what_they_show_when_put_forward(zone: str) -> None:
    decoder, change = record_decoder(in_zone(zone)), ms_of(CHANGES[zone][1])
    before, after = (
        datetime.fromtimestamp((change + ms) / 1000, UTC).astimezone(ZoneInfo(zone))
        for ms in (-1000, 0)
    )
    skipped = after.replace(tzinfo=None) - before.replace(tzinfo=None) - timedelta(seconds=1)
    middle = before.replace(tzinfo=None) + timedelta(seconds=1) + skipped / 2
    for near_ms in (0, change, 2**62):
        raw = json.dumps({"ts": middle.isoformat(), "item_id": "i"}).encode()
        event = decoder.decode_all("clicks", raw, timestamp_ms=near_ms)[0]
        assert event["event_ms"] - change == skipped / 2 / timedelta(milliseconds=1)


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("seed", sized((2,), (2, 4, 5)))
def test_engine_equals_oracle_where_clocks_go_back(seed: int, zone: str) -> None:
    settings, partitions = in_zone(zone), 1 + seed % 3
    start_ms = ms_of(CHANGES[zone][0]) - 90 * 60_000
    lines = random_log(640 + seed, settings, sized(300, 800), start_ms)
    of_file = records_of_log(lines, settings, partitions=partitions)
    readings_of = [
        [fields_of(r.raw or b"", settings, ms)[1] for ms in (0, r.record_ms)] for r in of_file
    ]
    assert sum(first != nearest for first, nearest in readings_of) > 1
    dice = Random(seed)
    live = [replace(r, record_ms=r.record_ms + dice.randrange(240_000)) for r in of_file]
    for records in (of_file, live):
        result = run(records, settings)
        readings = read_engines(run_engines(settings, partitions, to_log(records), 50, seed))
        assert differences(readings, result.readings)[:8] == []
        assert len(readings) > 100
