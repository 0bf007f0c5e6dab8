"""Records that are an impression and its click, against the oracle, and by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from streamer.errors import SettingsError
from streamer.ingest.record import record_decoder, rekeyer
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing import LogRecord
from tests.oracle.oracle import Record, run
from tests.oracle.random_shown import random_shown
from tests.oracle.shape import SHOWN, Readings
from tests.support.agreement import (
    DOCUMENTS,
    differences,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.support.lanes import shortened

CLICK = [{"value": "1", "shown": True}, {"value": "2", "shown": True, "feedback": "like"}]
SOURCES = [
    {"topics": [SHOWN], "kind": {"field": "click", "impression": ["0"], "click": CLICK}},
    {"topics": ["conversions"], "kind": {"fixed": "conversion"}},
]
NAMES = ("defaults", "few values", "no dimensions, short times")
OF_TOPICS = (
    "accepted",
    "rejected",
    "duplicates",
    "late",
    "anonymous",
    "ignored",
    "cut",
    "join_gap",
)
"""Counters by topic: the oracle has one for each kind."""
WHOLE = 1_000_000
BY_HAND = parse({"sources": SOURCES, "metrics": {"detailed": [[], ["variant"]]}})


def mapped(name: str) -> Settings:
    return parse({**DOCUMENTS[name], "sources": SOURCES})


def without_topics(readings: Readings) -> Readings:
    return {
        key: value
        for key, value in readings.items()
        if not any(part in key[0] for part in OF_TOPICS) and "topic" not in dict(key[1])
    }


def counted(settings: Settings, log: Iterable[LogRecord]) -> Readings:
    return without_topics(read_engines(run_engines(settings, 1, list(log), 50, 3)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", shortened(list(range(6))))
def test_engine_equals_oracle_whatever_the_cuts(seed: int, name: str) -> None:
    settings, records = mapped(name), random_shown(seed, 900)
    expected = without_topics(run(records, settings).readings)
    reference = None
    for size, dice in ((WHOLE, None), (7, 1), (1, seed)):
        engines = run_engines(settings, 1, to_log(records), size, dice)
        readings = read_engines(engines)
        found = differences(without_topics(readings), expected)
        assert not found, (size, dice, found[:8])
        state = (states(engines), readings)
        reference = reference or state
        assert state == reference, (size, dice)


def rekeyed(settings: Settings, records: Iterable[Record]) -> list[LogRecord]:
    """What `streamer rekey` makes of each record, at the place of the record."""
    made, log = rekeyer(settings, 1), []
    for r in records:
        numbers, times, place = np.array([r.offset]), np.array([r.record_ms]), ("web", 0)
        written, *_ = made.records(r.topic, place, numbers, times, [r.raw], [], 0, 2**62)
        events = {KINDS[kind]: value for kind, _, ((_, _, value),) in written}
        for kind in ("impressions", "clicks") if r.topic == SHOWN else ("conversions",):
            log.append(LogRecord(kind, 0, r.offset, r.record_ms, events.get(kind, b"{")))
    return log


@pytest.mark.parametrize("name", NAMES)
def test_rekeyed_they_count_the_same(name: str) -> None:
    """But for slates: a record of nobody gets a request, so it is one. Here all have a user, and
    no record has another one's id, which would be a copy though its click is none."""
    records = random_shown(1, 900, copies=False)
    records = [r for r in records if b'"user_id"' in (r.raw or b"")]
    settings = mapped(name)
    log = rekeyed(settings, records)
    assert sum(r.kind == "clicks" and r.value != b"{" for r in log) > 150
    ours = parse(DOCUMENTS[name])
    assert counted(ours, log) == counted(settings, to_log(records))


def shown(**fields: Any) -> bytes:
    return json.dumps({"ts": 1_700_000_000_000, "item_id": "a", **fields}).encode()


def values(settings: Settings, *lines: bytes) -> dict[tuple[str, ...], float]:
    log = [LogRecord(SHOWN, 0, i, 1_700_000_000_000, line) for i, line in enumerate(lines)]
    readings = read_engines(run_engines(settings, 1, log, WHOLE))
    return {(name, *sorted(dict(labels).values())): x for (name, labels), x in readings.items()}


def test_by_hand() -> None:
    found = values(
        BY_HAND,
        shown(click=0, variant="A", position=1),
        shown(click=1, variant="A", position=2),
        shown(click="1", variant="B", position=1),
        shown(click=True, variant="B"),
        shown(click=1, variant="B", items=["b", "c"], item_id=None),
    )
    assert found["streamer_accepted_total", SHOWN] == 3
    assert found["streamer_rejected_total", "kind", SHOWN] == 1
    assert found["streamer_rejected_total", "items", SHOWN] == 1
    assert by_variant(found, "streamer_window_impressions") == {"A": 2, "B": 1}
    assert by_variant(found, "streamer_ctr_ratio") == {"A": 0.5, "B": 1}
    assert by_variant(found, "streamer_ctr_attributed_ratio") == {"A": 0.5, "B": 1}


def by_variant(found: dict[tuple[str, ...], float], name: str) -> dict[str, float]:
    """Values of the last hour; of several maturities, which are the same here, one."""
    return {
        v: value
        for (n, *labels), value in found.items()
        for v in labels
        if n == name and v in ("A", "B") and "1h" in labels
    }


def test_nobodys_clicks_join_their_own_records() -> None:
    """Though other records of the item have the same time, and are newer."""
    found = values(
        BY_HAND,
        shown(click=1, variant="A"),
        shown(click=1, variant="B"),
        shown(click=0, variant="B"),
    )
    assert by_variant(found, "streamer_ctr_attributed_ratio") == {"A": 1, "B": 0.5}


def test_a_record_counts_once_and_whole() -> None:
    found = values(
        mapped("defaults"),
        shown(click=1, event_id="e"),
        shown(click=1, event_id="e"),
        shown(click=1, dwell_ms="long"),
    )
    assert found["streamer_accepted_total", SHOWN] == 1
    assert found["streamer_duplicates_total", SHOWN] == 1
    assert found["streamer_rejected_total", "dwell", SHOWN] == 1
    assert found["streamer_window_impressions", "1h", "all", "all"] == 1


@pytest.mark.parametrize(("value", "text"), [("true", True), ("false", False), ("1.0", 1.0)])
def test_kinds_by_numbers_and_booleans_are_compared_as_written(value: str, text: Any) -> None:
    kind = {"field": "click", "impression": [value]}
    settings = parse({"sources": [{"topics": ["web"], "kind": kind}]})
    found = record_decoder(settings).decode("web", shown(click=text))
    assert not isinstance(found, str)
    assert found["kind"] == "impressions"


def test_the_click_is_said_beside_the_impression() -> None:
    decoder = record_decoder(mapped("few values"))
    found = decoder.decode(SHOWN, shown(click=2, dwell_ms=7))
    assert not isinstance(found, str)
    assert (found["kind"], found["click"]) == ("impressions", (1, 7))
    plain = decoder.decode(SHOWN, shown(click=0))
    assert not isinstance(plain, str)
    assert "click" not in plain


def test_two_records_are_written_of_one() -> None:
    made = rekeyer(mapped("few values"), 4)
    raw = shown(click=2, variant="A", items=[{"item_id": 7}], item_id=None, dwell_ms=9)
    numbers, times = np.array([5]), np.array([1])
    written, *_ = made.records(SHOWN, ("web", 3), numbers, times, [raw], [], 0, 2**62)
    (one, two) = (
        (KINDS[kind], at, ms, key, json.loads(value)) for kind, at, ((ms, key, value),) in written
    )
    ids = {"ts": 1_700_000_000_000, "event_id": "web/3/5", "request_id": "web/3/5", "variant": "A"}
    assert one[4] == {"type": "impression", **ids, "items": [{"item_id": 7}]}
    more = {"feedback": "like", "dwell_ms": 9, "position": 1, "item_id": 7}
    assert two[4] == {"type": "click", **ids, **more}
    assert one[:4] == ("impressions", two[1], 1, b"web/3/5")
    assert two[:4] == ("clicks", one[1], 1, b"web/3/5")


def test_only_clicks_are_shown() -> None:
    kind = {"field": "click", "conversion": [{"value": "1", "shown": True}]}
    with pytest.raises(SettingsError, match="'1': only clicks have shown; at sources"):
        parse({"sources": [{"topics": ["web"], "kind": kind}]})
