"""Records in Avro, Protobuf and JSON Schema are the same events as in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from streamer.ingest.record import record_decoder
from streamer.ingest.rejections import Explainer
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support import encoded
from tests.support.encoded import AVRO, PROTOBUF, SOURCE, as_avro, as_json, as_protobuf, wire
from tests.support.registries import PlainRegistry, register

AT_MS = 1_700_000_000_000
WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "avro": as_avro,
    "protobuf": as_protobuf,
    "json-schema": as_json,
}


def settings_of(data_format: str, url: str, **more: Any) -> Settings:
    source = {"topics": ["web"], "format": data_format, **SOURCE, **more}
    if data_format in ("avro", "protobuf"):
        source["registry"] = url
    return parse({"sources": [source]})


def registered(url: str, data_format: str) -> int:
    text = json.dumps(AVRO) if data_format == "avro" else PROTOBUF
    return 1 if data_format == "json-schema" else register(url, "web", text, data_format.upper())


@pytest.mark.parametrize("data_format", WRITERS)
def test_all_formats_are_the_same_events(data_format: str) -> None:
    with PlainRegistry() as registry:
        number = registered(registry.url, data_format)
        decoder = record_decoder(settings_of(data_format, registry.url))
        plain = record_decoder(settings_of("json", ""))
        for event in encoded.events(300, AT_MS):
            expected = plain.decode_all("web", as_json(event))[0]
            assert not isinstance(expected, str)
            value = wire(number, WRITERS[data_format](event))
            assert str(decoder.decode_all("web", value)[0]) == str(expected), event  # NaN is NaN
        is_asked = data_format != "json-schema"
        assert registry.asked == [f"/schemas/ids/{number}"] * is_asked


def test_decimals_of_avro_are_numbers() -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [{"name": "sku", "type": "string"}, {"name": "paid", "type": money}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    with PlainRegistry() as registry:
        number = register(registry.url, "web", json.dumps(schema), "AVRO")
        fields_of = {"item_id": "sku", "value": "paid", "ts": {"constant": AT_MS}}
        source = {"topics": ["web"], "kind": {"fixed": "conversion"}, "fields": fields_of}
        made = parse({"sources": [{**source, "format": "avro", "registry": registry.url}]})
        value = wire(number, as_avro({"sku": "a", "paid": Decimal("12.50")}, schema))
        event = record_decoder(made).decode_all("web", value)[0]
        assert [micros for _, micros in event["lines"]] == [12_500_000]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"event": "shown"}', "18 bytes that begin with 7b"),
        (b"\0\0\0\0\1", "5 bytes, with the schema id 1"),
        (b"\0\0\0\0\1\xff\xff\xff", "8 bytes, with the schema id 1"),
        (b"\0\0", "2 bytes that begin with 00"),
    ],
)
def test_what_does_not_fit_its_schema_is_rejected(value: bytes, found: str) -> None:
    with PlainRegistry() as registry:
        registered(registry.url, "avro")
        settings = settings_of("avro", registry.url)
        assert record_decoder(settings).decode_all("web", value)[0] == "schema"
        refusal = Explainer(settings).explain("web", value, "schema")
    assert (refusal.field, refusal.found) == ("", found)
    assert refusal.expected.startswith("the id of a schema")


def test_refusals_say_what_stands_in_an_encoded_record() -> None:
    with PlainRegistry() as registry:
        number = registered(registry.url, "avro")
        explainer = Explainer(settings_of("avro", registry.url))
        (event,) = encoded.events(1, AT_MS)
        event["at"] //= 1000
        value = wire(number, as_avro(event))
        refusal = explainer.explain("web", value, "ts")
        assert (refusal.field, refusal.found) == ("at", "1700000000 (looks like seconds)")
        assert explainer.names_seen("web", value) == ("event", "at", "who", "what", "arm")
        assert explainer.shape("web", value).startswith("{event: text of")


def test_a_record_of_a_refused_schema_is_rejected() -> None:
    with PlainRegistry() as registry:
        refusing = {"url": registry.url}
        source = {"topics": ["web"], "format": "avro", **SOURCE, "registry": refusing}
        decoder = record_decoder(parse({"sources": [source]}))
        (event,) = encoded.events(1, AT_MS)
        for _ in range(3):
            assert decoder.decode_all("web", wire(7, as_avro(event)))[0] == "schema"
        assert registry.asked == ["/schemas/ids/7"]


def of_named_types(url: str, data_format: str, shown: str, clicked: str) -> Settings:
    """Kinds by the names that schemas give."""
    kind = {"schema": True, "impression": [shown], "click": [clicked]}
    fields = {"ts": {"constant": AT_MS}, "item_id": "sku"}
    source = {"topics": ["web"], "format": data_format, "registry": url, "fields": fields}
    return parse({"sources": [{**source, "kind": kind}]})


def record_named(name: str) -> dict[str, Any]:
    fields = [{"name": "sku", "type": "string"}]
    return {"type": "record", "name": name, "namespace": "shop", "fields": fields}


def test_names_of_records_say_what_they_are() -> None:
    names = ("Shown", "Clicked", "Left")
    with PlainRegistry() as registry:
        decoder = record_decoder(of_named_types(registry.url, "avro", "shop.Shown", "shop.Clicked"))
        found = []
        for name in names:
            schema = record_named(name)
            number = register(registry.url, name, json.dumps(schema), "AVRO")
            found.append(decoder.decode_all("web", wire(number, as_avro({"sku": "a"}, schema)))[0])
        union = [record_named(name) for name in names]
        number = register(registry.url, "all", json.dumps(union), "AVRO")
        for branch, schema in enumerate(union):
            payload = bytes([2 * branch]) + as_avro({"sku": "a"}, schema)  # zigzag
            found.append(decoder.decode_all("web", wire(number, payload))[0])
    kinds = [one if isinstance(one, str) else one["kind"] for one in found]
    assert kinds == 2 * ["impressions", "clicks", "kind"]


def test_names_of_messages_say_what_they_are() -> None:
    messages = "message Shown { string sku = 1; } message Clicked { string sku = 1; }"
    text = f'syntax = "proto3"; package shop; {messages}'
    with PlainRegistry() as registry:
        number = register(registry.url, "web", text, "PROTOBUF")
        decoder = record_decoder(
            of_named_types(registry.url, "protobuf", "shop.Shown", "shop.Clicked")
        )
        sku = b"\x0a\x01a"
        indexes = (b"\0", b"\x02\x02")  # the first message, and the path to the second: one step
        found = [decoder.decode_all("web", wire(number, each + sku))[0] for each in indexes]
    assert [one["kind"] for one in found] == ["impressions", "clicks"]
