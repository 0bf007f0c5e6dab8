"""Logs of another shape count as the same events in ours do: the decoder's paths against a
rewriting of each record, over logs with every trouble."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamer.encoding.arrays import I64
from streamer.ingest.record import record_decoder, rekeyer
from streamer.settings.load import parse
from tests.support.lanes import long, shortened
from tests.support.own_names import own_names
from tests.support.shapes import NAMES, batched, counted, shaped


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", shortened(["nested", "flat", "in a text"]))
def test_another_shape_counts_the_same(shape: str, name: str) -> None:
    log = shaped(7, name, shape)
    assert counted(log.mapped, log.theirs) == counted(log.settings, log.ours)


@long
@pytest.mark.parametrize("name", NAMES)
def test_events_of_one_record_count_as_if_each_had_its_own(name: str) -> None:
    log = batched(7, name)
    assert counted(log.mapped, log.theirs) == counted(log.settings, log.ours)


@pytest.mark.parametrize(
    ("field", "text", "is_read"),
    [
        ("value", "12.50", True),
        ("value", "-1e13", False),
        ("value", "12,5", False),
        ("value", " 1", False),
        ("value", "0x10", False),
        ("value", "1e400", False),
        ("value", "nan", False),
        ("value", "", True),
        ("position", "3", True),
        ("position", "3.0", False),
        ("position", "03", False),
    ],
)
def test_numbers_may_be_written_as_texts(field: str, text: str, is_read: bool) -> None:
    kind = "conversion" if field == "value" else "click"
    fields = {"ts": "ts", "user_id": "user_id", "item_id": "it", field: "n"}
    source = {"topics": ["web"], "kind": {"fixed": kind}, "fields": fields}
    settings = parse({"sources": [source]})
    decoder = record_decoder(settings)
    event = {"it": "a", "ts": 1_700_000_000_000, "user_id": "u"}
    found = decoder.decode_all("web", json.dumps({**event, "n": text}).encode())[0]
    if not is_read:
        assert found == field
        return
    number = json.dumps({**event, "n": json.loads(text) if text else None}).encode()
    assert found == decoder.decode_all("web", number)[0]
    written, *_ = rekeyer(settings, 1).records(
        "web", ("web", 0), *columns(), [json.dumps({**event, "n": text}).encode()], [], 0, 2**62
    )
    plain, *_ = rekeyer(settings, 1).records("web", ("web", 0), *columns(), [number], [], 0, 2**62)
    assert written == plain


def test_numbers_of_items_may_be_written_as_texts() -> None:
    shown = {"topics": ["web"], "kind": {"fixed": "impression"}, "fields": own_names()}
    source = {**shown, "positions_from": 0}
    settings = parse({"sources": [source]})
    event = {"ts": 1_700_000_000_000, "user_id": "u", "request_id": "r"}
    items = [{"item_id": "a", "position": "0", "score": "0.25"}, {"item_id": "b", "score": "-1e-2"}]
    plain = [{"item_id": "a", "position": 0, "score": 0.25}, {"item_id": "b", "score": -1e-2}]
    values = [json.dumps({**event, "items": some}).encode() for some in (items, plain)]
    decoder = record_decoder(settings)
    assert decoder.decode_all("web", values[0])[0] == decoder.decode_all("web", values[1])[0]
    made = [
        rekeyer(settings, 1).records("web", ("web", 0), *columns(), [v], [], 0, 2**62)[0]
        for v in values
    ]
    texts = [json.loads(rows[0][2]) for ((_, _, rows),) in made]
    assert texts[0] == texts[1]


def columns() -> tuple[I64, I64]:
    return np.array([0]), np.array([1_700_000_000_000])


def test_a_record_shows_as_many_items_as_can_be_told_apart() -> None:
    fields = {"ts": "b[].t", "item_id": "b[].ids[]"}
    one = {"topics": ["web"], "each": "b[]", "kind": {"fixed": "impression"}, "fields": fields}
    settings = parse({"sources": [one]})
    batch = [{"t": 1_700_000_000_000, "ids": list(range(1000))} for _ in range(17)]
    record = json.dumps({"b": batch}).encode()
    decoded = record_decoder(settings).decode_all("web", record)
    assert [x if isinstance(x, str) else "" for x in decoded] == [""] * 16 + ["too_large"]
    written, *_ = rekeyer(settings, 1).records(
        "web", ("web", 0), *columns(), [record], [], 0, 2**62
    )
    assert sum(len(events) for *_, events in written) == 16


def test_events_of_nobody_in_one_record_count_as_they_do_when_rekeyed() -> None:
    fields = {"ts": "t", "item_id": "it", "position": "p"}
    one = {"topics": ["web"], "kind": {"fixed": ["impression", "click"]}, "fields": fields}
    settings = parse({"sources": [one]})
    record = json.dumps({"t": 1_700_000_000_000, "it": "a", "p": 3}).encode()
    written, *_ = rekeyer(settings, 1).records(
        "web", ("web", 0), *columns(), [record], [], 0, 2**62
    )
    events = [json.loads(value) for *_, some in written for _, _, value in some]
    assert {event["join_id"] for event in events} == {"record:web/0/0"}
    assert not any("request_id" in event for event in events)
