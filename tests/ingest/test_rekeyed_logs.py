"""Rekeyed logs count as the logs they are made from: what the core writes in our shape against the
same records read by their mapping."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from streamer._core import partition_of
from streamer.errors import SettingsError
from streamer.ingest.record import rekeyer
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.engines import LogRecord
from tests.support.lanes import long, shortened
from tests.support.shapes import NAMES, SHAPES, counted, shaped

ALWAYS = 2**62
Object = dict[str, Any]


def one(settings: Settings, log: str, value: bytes | None, offset: int = 7, **more: Any) -> Any:
    """What becomes of one record of a log: (kind, partition, key, event), or the reason, or None
    where it is ignored."""
    numbers, times = np.array([offset]), np.array([1_700_000_000_000])
    beside = [(more.get("key"), more.get("headers", b""))]
    made = rekeyer(settings, more.get("partitions", 4))
    written, refused, ignored, rest, *_ = made.records(
        log, ("web", 3), numbers, times, [value], beside, 0, ALWAYS
    )
    assert len(written) + len(refused) + ignored == 1
    assert rest is None
    if refused:
        return refused[0][3]
    if not written:
        return None
    ((kind, partition, ((_, key, event),)),) = written
    return KINDS[kind], partition, key, json.loads(event)


def rekeyed(settings: Settings, log: list[LogRecord]) -> Iterator[LogRecord]:
    """Each record rewritten where it was; those that are no events as they were."""
    made = rekeyer(settings, 1)
    for r in log:
        numbers, times = np.array([r.offset]), np.array([r.record_ms])
        place = (r.kind, r.partition)
        written, *_ = made.records(r.kind, place, numbers, times, [r.value], [], 0, ALWAYS)
        value = r.value
        if written:
            ((kind, _, ((ms, _, value),)),) = written
            assert (KINDS[kind], ms) == (r.kind, r.record_ms)
        yield LogRecord(r.kind, r.partition, r.offset, r.record_ms, value if written else b"{")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", shortened(list(SHAPES)[::-1]))
@long
def test_a_rekeyed_log_counts_the_same(shape: str, name: str) -> None:
    log = shaped(11, name, shape)
    made = list(rekeyed(log.mapped, log.theirs))
    assert sum(record.value != b"{" for record in made) > 1000
    assert counted(log.settings, made) == counted(log.mapped, log.theirs)


SOURCE: Mapping[str, Any] = {
    "topics": ["web"],
    "positions_from": 0,
    "kind": {
        "field": "event",
        "impression": ["shown"],
        "click": ["clicked", {"value": "liked", "feedback": "like"}],
        "conversion": ["bought"],
        "session": [{"value": "page", "action": "view"}],
        "ignored": ["scrolled"],
    },
    "fields": {
        "user_id": ["user.id", "user.cookie"],
        "ts": {"path": "at", "unit": "s"},
        "item_id": ["cart.lines[].sku", "cart.lines[]", "item_id"],
        "position": "cart.lines[].position",
        "score": "cart.lines[].score",
        "value": {"product": ["cart.lines[].price", "cart.lines[].pieces"]},
        "request_id": {"header": "request"},
        "event_id": "event_id",
        "session_id": "session_id",
        "variant": "arms[key=ranker].arm",
    },
}
SHOP = parse({"sources": [SOURCE], "metrics": {"feedback": {"click": 1.0, "like": 1.0}}})
HEADERS = b"\x0erequest\x04r1"


def record(event: str, **fields: Any) -> bytes:
    return json.dumps({"event": event, "at": 1_700_000_000.25, **fields}).encode()


def test_an_event_has_our_names_and_is_keyed_by_its_user() -> None:
    raw = record(
        "shown",
        user={"id": 17},
        cart={"lines": [{"sku": "a", "position": 0}, "b\u00e9", {"sku": 5, "score": 1e-3}]},
        arms=[{"key": "page", "arm": "x"}, {"key": "ranker", "arm": 'the "B"'}],
    )
    assert one(SHOP, "web", raw, headers=HEADERS) == (
        "impressions",
        partition_of(b"17", 4),
        b"17",
        {
            "type": "impression",
            "ts": 1_700_000_000_250,
            "event_id": "web/3/7",
            "user_id": 17,
            "request_id": "r1",
            "variant": 'the "B"',
            "items": [
                {"item_id": "a", "position": 1},
                {"item_id": "b\u00e9"},
                {"item_id": 5, "score": 0.001},
            ],
        },
    )


def test_products_kinds_and_actions_are_written_out() -> None:
    lines = [{"sku": "a", "price": 0.1, "pieces": 3}, {"sku": "b"}]
    _, _, _, bought = one(
        SHOP, "web", record("bought", user={"id": "u"}, event_id="e", cart={"lines": lines})
    )
    assert bought["items"] == [{"item_id": "a", "value": 0.1 * 3}, {"item_id": "b"}]
    assert bought["event_id"] == "e"
    _, _, _, liked = one(SHOP, "web", record("liked", user={"id": "u"}, item_id="a"))
    assert (liked["type"], liked["feedback"], liked["item_id"]) == ("click", "like", "a")
    _, _, _, page = one(SHOP, "web", record("page", user={"id": "u"}, session_id="s"))
    assert (page["type"], page["action"]) == ("session", "view")


def test_nobodys_events_are_keyed_by_request_or_spread() -> None:
    raw = record("clicked", item_id="a")
    _, partition, key, event = one(SHOP, "web", raw, headers=HEADERS)
    assert (partition, key) == (partition_of(b"r1", 4), b"r1")
    assert "user_id" not in event
    assert [one(SHOP, "web", raw, offset)[1:3] for offset in (7, 8)] == [(3, None), (0, None)]


def test_what_is_no_event_is_said() -> None:
    assert one(SHOP, "web", record("scrolled")) is None
    assert one(SHOP, "web", record("closed")) == "kind"
    assert one(SHOP, "web", None) is None, "deleted in a compacted topic"
    assert one(SHOP, "web", record("clicked", user={"id": "u"})) == "item_id"


def test_a_time_that_looks_like_seconds_is_written_as_text() -> None:
    source = {**SOURCE, "fields": {**SOURCE["fields"], "ts": "at"}}
    raw = record("clicked", item_id="a").replace(b"1700000000.25", b'"1970-01-20T16:13:20.123Z"')
    _, _, _, event = one(parse({"sources": [source]}), "web", raw)
    assert event["ts"] == "1970-01-20T16:13:20.123000Z"


def test_records_are_rewritten_up_to_a_time() -> None:
    made, n = rekeyer(SHOP, 1), np.arange(4)
    times = np.array([1000, 2000, 3000, 1500])
    values = [record("clicked", item_id="a")] * 4
    written, _, _, rest, *_ = made.records("web", ("web", 0), n, times, values, [], 1, 2500)
    assert [ms for _, _, some in written for ms, *_ in some] == [2000]
    assert rest == (2, 3000)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sources": []}, "no [[sources]] to rekey"),
        ({"events": {"fields": {"ts": "at"}}}, "remove [events.fields]"),
        ({"events": {"positions_from": 0}}, "events.positions_from"),
        ({"sources": [{**SOURCE, "topics": ["clicks"]}]}, "kafka.topics.clicks"),
    ],
)
def test_settings_that_cannot_be_rekeyed_are_refused(more: Object, said: str) -> None:
    document = {"kafka": {"rekeyed": True}, "sources": [SOURCE], **more}
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse(document)


def test_rekeyed_topics_are_read_in_place_of_the_sources() -> None:
    assert set(SHOP.logs) == {"web"}
    settings = parse({"kafka": {"rekeyed": True}, "sources": [SOURCE]})
    assert all(source.is_own for source in settings.read_sources)
    assert tuple(settings.logs) == KINDS
