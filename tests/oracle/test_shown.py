"""Records that are an impression, its click and its order, against the oracle, and by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from streamer.ingest.record import record_decoder, rekeyer
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.oracle.oracle import Record, run
from tests.oracle.random_shown import random_shown
from tests.oracle.shape import KINDS_OF, SHOWN, SOLD, Readings
from tests.support.agreement import (
    DOCUMENTS,
    SETTINGS,
    differences,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.support.engines import LogRecord
from tests.support.lanes import shortened, sized
from tests.support.own_names import DEFAULTS, own_names

CLICKS = ["1", {"value": "2", "feedback": "like"}]
KIND = {"field": "click", "impression": ["0", "1", "2"], "click": CLICKS}
KIND_OF_SOLD = {
    "field": "click",
    "impression": ["0", "1", "2", "sold"],
    "click": [*CLICKS, "sold", "order"],
    "conversion": ["sold", "order", "later", {"value": "returned", "refund": True}],
}
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


def sources(settings: Settings = DEFAULTS) -> list[dict[str, Any]]:
    fields = own_names(settings)
    return [
        {"topics": [SHOWN], "kind": KIND, "fields": fields},
        {"topics": [SOLD], "kind": KIND_OF_SOLD, "fields": fields},
        {"topics": ["conversions"], "kind": {"fixed": "conversion"}, "fields": fields},
    ]


BY_HAND = parse({"sources": sources(), "metrics": {"detailed": [[], ["variant"]]}})


def mapped(name: str, topic: str = SHOWN) -> Settings:
    wanted = ([SHOWN], ["conversions"]) if topic == SHOWN else ([SOLD],)
    made = [source for source in sources(SETTINGS[name]) if source["topics"] in wanted]
    return parse({**DOCUMENTS[name], "sources": made})


def sums(readings: Readings) -> list[float]:
    """How many events were accepted, rejected, copies and late, in all topics together."""
    return [
        sum(x for (of, _), x in readings.items() if of == f"streamer_{name}_total")
        for name in ("accepted", "rejected", "duplicates", "late")
    ]


def without_topics(readings: Readings) -> Readings:
    return {
        key: value
        for key, value in readings.items()
        if not any(part in key[0] for part in OF_TOPICS) and "topic" not in dict(key[1])
    }


def counted(settings: Settings, log: Iterable[LogRecord]) -> Readings:
    return without_topics(read_engines(run_engines(settings, 1, list(log), 50, 3)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("topic", shortened([SHOWN, SOLD]))
@pytest.mark.parametrize("seed", shortened(list(range(6))))
def test_engine_equals_oracle_whatever_the_cuts(seed: int, topic: str, name: str) -> None:
    settings, records = mapped(name, topic), random_shown(seed, sized(400, 900), topic=topic)
    truth = run(records, settings)
    expected, reference = without_topics(truth.readings), None
    judged = [len(x) for x in (truth.accepted, truth.rejects, truth.duplicates, truth.late)]
    for size, dice in ((WHOLE, None), (7, 1), (1, seed)):
        engines = run_engines(settings, 1, to_log(records), size, dice)
        readings = read_engines(engines)
        found = differences(without_topics(readings), expected)
        assert not found, (size, dice, found[:8])
        assert sums(readings) == judged, (size, dice)
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
        for kind in KINDS_OF[r.topic]:
            log.append(LogRecord(kind, 0, r.offset, r.record_ms, events.get(kind, b"{")))
    return log


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("topic", [SHOWN, SOLD])
def test_rekeyed_they_count_the_same(topic: str, name: str) -> None:
    """But for slates: a record of nobody gets a request, so it is one. Here all have a user, or an
    id of joins."""
    records = random_shown(1, 900, topic=topic)
    records = [
        r for r in records if b'"user_id"' in (r.raw or b"") or b'"join_id"' in (r.raw or b"")
    ]
    settings = mapped(name, topic)
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
    assert found["streamer_accepted_total", SHOWN] == 7
    assert found["streamer_rejected_total", "kind", SHOWN] == 1
    assert by_variant(found, "streamer_window_impressions") == {"A": 2, "B": 3}
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


def test_each_event_of_a_record_is_judged_on_its_own() -> None:
    found = values(
        mapped("defaults"),
        shown(click=1, event_id="e"),
        shown(click=1, event_id="e"),
        shown(click=1, dwell_ms="long"),
    )
    assert found["streamer_accepted_total", SHOWN] == 3
    assert found["streamer_duplicates_total", SHOWN] == 2
    assert found["streamer_rejected_total", "dwell", SHOWN] == 1
    assert found["streamer_window_impressions", "1h", "all", "all"] == 2


def test_without_an_item_only_the_impression_is_missed() -> None:
    decoder = record_decoder(mapped("defaults", SOLD))
    said = [decoder.decode_all(SOLD, shown(click=c, item_id=None)) for c in ("sold", "order")]
    assert said == [["item_id"], ["ignored"]]


def test_feedback_that_names_only_its_impression_counts_beside_it() -> None:
    decoder = record_decoder(mapped("defaults", SOLD))
    raw = shown(click="sold", item_id=None, impression_id="m")
    read = [event for event in decoder.decode_all(SOLD, raw) if not isinstance(event, str)]
    assert [event["kind"] for event in read] == ["impressions", "clicks", "conversions"]
    assert {tuple(event["impressions"]) for event in read} == {(decoder.hash("m"),)}


def test_the_id_of_a_whole_slate_is_none_of_its_impressions() -> None:
    fields = {"item_id": ["items[].id", "item_id"], "impression_id": "slate"}
    source = {"topics": ["web"], "kind": {"fixed": "impression"}}
    settings = parse({"sources": [{**source, "fields": {"ts": "ts", "user_id": "u", **fields}}]})
    raw = json.dumps({"ts": 1_700_000_000_000, "u": "u", "slate": "s", "items": [{"id": 1}]})
    (slate,) = record_decoder(settings).decode_all("web", raw.encode())
    assert not isinstance(slate, str)
    assert (len(slate["items"]), slate["impressions"]) == (1, [0])


def test_without_items_only_the_empty_slate_counts() -> None:
    decoder = record_decoder(mapped("defaults", SOLD))
    empty: dict[str, Any] = {"item_id": None, "items": []}
    (slate,) = decoder.decode_all(SOLD, shown(click="sold", **empty))
    assert not isinstance(slate, str)
    assert (slate["kind"], slate["items"]) == ("impressions", [])
    assert decoder.decode_all(SOLD, shown(click="order", **empty)) == ["ignored"]


@pytest.mark.parametrize(("value", "text"), [("true", True), ("false", False), ("1.0", 1.0)])
def test_kinds_by_numbers_and_booleans_are_compared_as_written(value: str, text: Any) -> None:
    kind = {"field": "click", "impression": [value]}
    settings = parse({"sources": [{"topics": ["web"], "kind": kind, "fields": own_names()}]})
    found = record_decoder(settings).decode_all("web", shown(click=text))[0]
    assert not isinstance(found, str)
    assert found["kind"] == "impressions"


def test_the_click_is_said_beside_the_impression() -> None:
    decoder = record_decoder(mapped("few values"))
    impression, click = decoder.decode_all(SHOWN, shown(click=2, dwell_ms=7))
    assert (impression["kind"], impression["is_shared"]) == ("impressions", True)
    said = [click[name] for name in ("kind", "is_shared", "feedback", "dwell_ms")]
    assert said == ["clicks", True, 1, 7]
    (plain,) = decoder.decode_all(SHOWN, shown(click=0))
    assert not plain["is_shared"]


def test_two_records_are_written_of_one() -> None:
    made = rekeyer(mapped("few values"), 4)
    raw = shown(click=2, variant="A", items=[{"item_id": 7}], item_id=None, dwell_ms=9)
    numbers, times = np.array([5]), np.array([1])
    written, *_ = made.records(SHOWN, ("web", 3), numbers, times, [raw], [], 0, 2**62)
    (one, two) = (
        (KINDS[kind], at, ms, key, json.loads(value)) for kind, at, ((ms, key, value),) in written
    )
    both = {"ts": 1_700_000_000_000, "join_id": "record:web/3/5", "variant": "A"}
    both |= {"items": [{"item_id": 7}]}
    assert one[4] == {"type": "impression", "event_id": "web/3/5", **both}
    more = {"feedback": "like", "dwell_ms": 9}
    assert two[4] == {"type": "click", "event_id": "web/3/5/1", **both, **more}
    assert one[:4] == ("impressions", two[1], 1, b"record:web/3/5")
    assert two[:4] == ("clicks", one[1], 1, b"record:web/3/5")
