"""Rules of ``[[sources]]``."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.ingest.record import record_decoder
from streamer.kafka.patterns import resolved
from streamer.settings.load import parse
from streamer.settings.model import Settings

FIELDS: dict[str, Any] = {"ts": "at", "item_id": "recs[].id"}
WEB: dict[str, Any] = {"topics": ["web"], "kind": {"fixed": "impression"}, "fields": FIELDS}


def read(**changes: Any) -> Settings:
    return parse({"sources": [{**WEB, **changes}]})


def test_kinds_may_go_by_patterns_of_topics() -> None:
    kind = {"impression": ["^shown-"], "click": ["^click", "shown-and-clicked"]}
    settings = read(topics=["^shown-", "^click"], kind=kind)
    found = resolved(settings, {None: ["shown-a", "clicks", "shown-and-clicked", "other"]})
    assert {log.name: log.kinds for log in found.logs.values()} == {
        "shown-a": ("impressions",),
        "clicks": ("clicks",),
        "shown-and-clicked": ("impressions", "clicks"),
    }
    record_decoder(found)


@pytest.mark.parametrize("kind", [{"fixed": "click"}, {"field": "event", "click": ["clicked"]}])
def test_other_kinds_hold_for_topics_of_a_pattern(kind: dict[str, Any]) -> None:
    settings = read(topics=["^click"], kind=kind)
    found = resolved(settings, {None: ["clicks-a", "clicks-b", "other"]})
    assert [log.kinds for log in found.logs.values()] == [("clicks",)] * 2
    record_decoder(found)


@pytest.mark.parametrize("text", ["", "x" * 129])
def test_missing_has_short_texts(text: str) -> None:
    said = f"missing has {text[:20]!r}: texts of 1 to 128 characters; at sources[0]"
    with pytest.raises(SettingsError, match=re.escape(said)):
        read(missing=[text])


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": {"fixed": ["impression", "click"]}},
        {"kind": {"fixed": "session"}, "fields": {"ts": "at", "item_id": "recs[].id"}},
        {"kind": {"impression": [{"where": {"op": ["c", "r"]}, "has": "recs", "lacks": "gone"}]}},
        {"fields": {**FIELDS, "position": "recs[].at", "score": ["recs[].s", "s"]}},
        {"fields": {"ts": "at", "item_id": ["ids[]", "recs[].id", "id"], "position": "ids[]"}},
        {
            "fields": {
                "ts": "at",
                "item_id": "shelves[].recs[clicked=yes][].id",
                "score": "shelves[].s",
            }
        },
        {"each": "batch[]", "fields": {"ts": "sent", "item_id": "batch[].recs[].id"}},
        {"each": "[]", "fields": {"ts": "[].at", "item_id": "[].id", "user_id": "[].who"}},
        {"json": ["payload"], "split": {"ids": [" ", "-"]}, "whole_ids": True},
        {"fields": {**FIELDS, "ts": {"path": "at", "format": "%d/%m/%Y %H:%M"}}},
        {"fields": {**FIELDS, "ts": {"path": "at", "unit": "s", "from": "2020-01-01T00:00:00Z"}}},
        {"fields": {**FIELDS, "ts": {"path": "day", "time": "clock", "format": "%d/%m/%Y %H:%M"}}},
        {"fields": {**FIELDS, "ts": [{"path": "day", "time": "clock"}, "at"]}},
        {"fields": {**FIELDS, "score": {"path": "recs[].percent", "scale": 0.01}}},
    ],
)
def test_what_fits_is_read(changes: dict[str, Any]) -> None:
    record_decoder(read(**changes))


def fields(**more: Any) -> dict[str, Any]:
    return {"fields": {**FIELDS, **more}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fields": {"item_id": "id"}}, "ts: impressions need it, and only fields that are named"),
        ({"fields": {"ts": "at"}}, "write where it stands, like item_id = 'path.to.it', in"),
        (fields(item_id=False), "item_id: impressions need it"),
        (
            fields(user_id="recs[].user"),
            "user_id: its path passes through a list: name one element",
        ),
        (fields(score="others[].s"), "passes through no list that item_id passes through"),
        (fields(positon="recs[].at"), "did you mean 'position'?"),
        (fields(score=True), "score = true: a path, a table, a list of them, or false"),
        (fields(score={"path": "s", "header": "s"}), "exactly one of path, constant, header, key"),
        (fields(score={"path": "s", "unit": "s"}), "unit = 's': of ts, start_ts, end_ts one of"),
        (fields(score={"path": "s", "scale": 0}), "scale = 0: a number above 0"),
        (fields(position={"path": "p", "scale": 2}), "scale = 2: a number above 0, of fields"),
        (fields(ts={"path": "at", "format": "%Q"}), "format = '%Q': like '%m/%d/%Y"),
        (fields(ts={"path": "at", "format": "%Y", "unit": "s"}), "a format, or a unit"),
        (fields(ts={"path": "at", "from": "soon"}), "'soon' is no time: write it like"),
        (fields(ts={"path": "d", "time": "t", "unit": "s"}), "time is of the path of a date"),
        (
            fields(ts={"header": "d", "time": "t"}),
            "of a date, with a format at most; at sources[0]",
        ),
        (fields(score={"path": "d", "time": "t"}), "time: of ts, start_ts, end_ts only"),
        (fields(ts={"path": "d", "time": 7}), "7 is no path; at sources[0].fields.ts"),
        (fields(ts={"path": "d", "time": "recs[].t"}), "both stand in one list, or in none"),
        (fields(value={"product": ["recs[].price", "n"]}), "both stand in one list, or in none"),
        ({"each": "batch"}, "each = 'batch': it ends with [], like 'batch[]'"),
        ({"json": ["a[].b"]}, "'a[].b': no list may be on the way"),
        ({"kind": {"fixed": "view"}}, "fixed = 'view': one of impression, click"),
        ({"kind": {"impression": [{}]}}, "a rule without value, where, has and lacks is met by"),
        ({"kind": {"impression": [{"value": "x", "action": "view"}]}}, "of sessions one of"),
        (
            {"kind": {"field": "e", "impression": ["x"], "ignored": ["x"]}},
            "'x' is both ignored and impressions",
        ),
        ({"kind": {"schema": True, "impression": ["x"]}}, "schema = true: of format avro or"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        read(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"roots": ["geo"]}, "write each that you need in [sources.fields], like country ="),
        (fields(items="recs", item_id="id"), "items = 'recs': write item_id = 'recs[].id' (or"),
        ({"click": {"fields": {"items": "hits", "item_id": "id"}}}, "item_id = 'hits[].id'"),
        (fields(items=False), "items = false: remove it, item_id alone says where it stands"),
        (fields(user_id="$.user"), "user_id = '$.user': leave out `$.`"),
        (
            {"kind": {"field": "c", "click": [{"value": "1", "shown": True}]}},
            "shown: list '1' in impression, too",
        ),
    ],
)
def test_earlier_forms_are_refused_with_what_to_write(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        read(**changes)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": {"field": "items[].type", "click": ["c"]}}, "a list that `each` does not"),
        ({"kind": {"click": [{"has": "items[].x"}]}}, "a list that `each` does not"),
        ({"kind": {"fixed": "click"}, "split": {"x": ""}}, "split: 'x' = ''"),
        ({"kind": {"fixed": "click"}, "split": {"x": ["|", ""]}}, "none empty"),
        ({"kind": {"fixed": "click"}, "decimals": {"x": 31}}, "digits from 0 to 30"),
        (
            {"kind": {"fixed": "click"}, "each": "b[]", "fields": {"ts": "t", "item_id": "p[].i"}},
            "a list beside b[]",
        ),
        (
            {
                "kind": {"fixed": "click"},
                "fields": {"ts": "t", "item_id": "i", "event_id": {"constant": float("nan")}},
            },
            "constant = nan",
        ),
        (
            {"kind": {"fixed": "click"}, "fields": {"ts": "t", "item_id": "i[9999999999]"}},
            "no path",
        ),
    ],
)
def test_what_could_not_be_read_is_refused(source: dict[str, Any], message: str) -> None:
    one = {"topics": ["web"], "fields": {"ts": "t", "item_id": "i"}, **source}
    with pytest.raises(SettingsError, match=re.escape(message)):
        parse({"sources": [one]})


def test_fields_may_stand_on_the_way_to_the_events() -> None:
    fields = {"ts": "a[].b[].t", "item_id": "a[].b[].items[].id", "user_id": "a[].user"}
    one = {"topics": ["web"], "each": "a[].b[]", "kind": {"fixed": "click"}, "fields": fields}
    decoder = record_decoder(parse({"sources": [one]}))
    record = {"a": [{"user": "u", "b": [{"t": 1_700_000_000_000, "items": [{"id": "x"}]}]}]}
    (event,) = decoder.decode_all("web", json.dumps(record).encode())
    assert (event["user_id"], len(event["lines"])) == ("u", 1)
