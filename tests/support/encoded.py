"""Nested events in JSON, Avro and Protobuf: written by fastavro and Google's protobuf."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Object = dict[str, Any]
AVRO: Object = {
    "type": "record",
    "name": "Event",
    "namespace": "shop",
    "fields": [
        {"name": "event", "type": {"type": "enum", "name": "What", "symbols": ["shown", "liked"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "who",
            "type": {
                "type": "record",
                "name": "Who",
                "fields": [{"name": "id", "type": ["null", "long"]}],
            },
        },
        {
            "name": "what",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "score", "type": ["null", "double"]},
                    ],
                },
            },
        },
        {"name": "arm", "type": "string"},
    ],
}
PROTOBUF = """syntax = "proto3";
package shop;

message Who { optional int64 id = 1; }
message Item { string sku = 1; optional double score = 2; }
message Event {
  enum What { shown = 0; liked = 1; }
  What event = 1;
  int64 at = 2;
  Who who = 3;
  repeated Item what = 4;
  string arm = 5;
}
"""
EVENT_OF_FILE = b"\x02\x04"
"""That a value is message 2 of the file: one index, as zigzag varints."""
SOURCE: Object = {
    "kind": {"field": "event", "impression": ["shown"], "click": [{"value": "liked"}]},
    "fields": {
        "ts": "at",
        "user_id": "who.id",
        "item_id": "what[].sku",
        "score": "what[].score",
        "variant": "arm",
    },
}
"""Where our fields stand in it."""


def events(count: int, ms: int, seed: int = 3) -> list[Object]:
    """Events a millisecond apart; some without user or score."""
    dice, made = Random(seed), list[Object]()
    for number in range(count):
        items = [
            {"sku": f"i{dice.randrange(30)}", "score": dice.choice([None, dice.random()])}
            for _ in range(dice.randrange(1, 5))
        ]
        who = {"id": dice.choice([None, *range(20)])}
        what = dice.choice(["shown", "shown", "liked"])
        arm = dice.choice("AB")
        made.append({"event": what, "at": ms + number, "who": who, "what": items, "arm": arm})
    return made


def wire(number: int, payload: bytes) -> bytes:
    """A value in Confluent's wire format."""
    return b"\0" + number.to_bytes(4) + payload


def as_json(event: Object) -> bytes:
    return json.dumps(event).encode()


def as_avro(event: Object, schema: Object = AVRO) -> bytes:
    to = io.BytesIO()
    fastavro.schemaless_writer(to, fastavro.parse_schema(schema), event)
    return to.getvalue()


def as_protobuf(event: Object) -> bytes:
    """Behind the number of the message."""
    plain = {**event, "who": {k: v for k, v in event["who"].items() if v is not None}}
    plain["event"] = ["shown", "liked"].index(event["event"])
    plain["what"] = [{k: v for k, v in i.items() if v is not None} for i in event["what"]]
    return EVENT_OF_FILE + bytes(_EVENT(**plain).SerializeToString())


def _event_class() -> Any:
    """The message ``Event``, declared apart from the text above."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    kinds = {"int64": field.TYPE_INT64, "string": field.TYPE_STRING, "double": field.TYPE_DOUBLE}

    def message(name: str, *fields: tuple[str, str, bool]) -> Any:
        made = file.message_type.add(name=name)
        for number, (called, kind, is_optional) in enumerate(fields, 1):
            one = made.field.add(name=called, number=number, label=field.LABEL_OPTIONAL)
            one.type = kinds.get(kind, field.TYPE_MESSAGE)
            if one.type == field.TYPE_MESSAGE:
                one.type_name = kind
            if is_optional:
                one.proto3_optional, one.oneof_index = True, len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{called}")
        return made

    message("Who", ("id", "int64", True))
    message("Item", ("sku", "string", False), ("score", "double", True))
    event = message(
        "Event",
        ("event", ".shop.Event.What", False),
        ("at", "int64", False),
        ("who", ".shop.Who", False),
        ("what", ".shop.Item", False),
        ("arm", "string", False),
    )
    event.field[0].type = field.TYPE_ENUM
    event.field[3].label = field.LABEL_REPEATED
    kind = event.enum_type.add(name="What")
    for number, name in enumerate(("shown", "liked")):
        kind.value.add(name=name, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Event"))


_EVENT = _event_class()
