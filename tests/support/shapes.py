"""Random logs in other shapes than ours, and the settings that read them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamer.settings.event_fields import field_names
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.oracle.parsing import MAX_DEPTH, BrokenError, depth
from tests.oracle.parsing import parse as parse_record
from tests.oracle.shape import Readings
from tests.support.agreement import DOCUMENTS, SETTINGS, log_records, read_engines, to_log
from tests.support.engines import Engines, LogRecord, chunks_of

OF_ITEM = (
    "item_id",
    "impression_id",
    "position",
    "score",
    "propensity",
    "reward_estimate",
    "item_category",
)
OF_NUMBERS = ("position", "score", "propensity", "reward_estimate", "dwell_ms", "rating", "value")
NAMES = ("defaults", "few values")
SINGULAR = {
    "impressions": "impression",
    "clicks": "click",
    "conversions": "conversion",
    "sessions": "session",
}
Object = dict[str, Any]


def nested(kind: str, event: Object, dimensions: tuple[str, ...]) -> Object:
    """Times and ids in objects of their own, dimensions as keys and values, items in elements."""
    made: Object = {"head": {}, "context": [], "body": {}}
    for name, value in event.items():
        if name in ("ts", "event_id"):
            made["head"][f"the.{name}"] = value
        elif name == "user_id":
            made["head"]["actor"] = [{"ids": [None, value]}]
        elif name in dimensions:
            made["context"].append({"key": name, "value": {"text": value}})
        elif name == "items" and isinstance(value, list):
            made["body"]["list"] = [{"it": x} if isinstance(x, dict) else x for x in value]
        else:
            made["body"][name] = value
    return made


def flat(kind: str, event: Object, dimensions: tuple[str, ...]) -> Object:
    """Everything at the top, under a prefix."""
    return {f"x_{name}": value for name, value in event.items()}


def in_text(kind: str, event: Object, dimensions: tuple[str, ...]) -> Object:
    """JSON in a text, and in that the dimensions in another one; items on shelves of two."""
    named = {name: event[name] for name in event if name in dimensions}
    rest = {name: value for name, value in event.items() if name not in dimensions}
    if isinstance(rest.get("items"), list) and rest["items"]:
        items = rest.pop("items")
        rest["shelves"] = [{"on": items[i : i + 2]} for i in range(0, len(items), 2)]
        rest["shelves"].insert(len(rest["shelves"]) // 2, {"on": [], "off": ["x"]})
    return {"payload": json.dumps({**rest, "named": json.dumps(named)})}


def _sources_of(shape: str, settings: Settings) -> list[Object]:
    """Settings that read a shape."""
    of_ratios = {name for names in settings.own_fields.values() for name in names}
    others = (*settings.policy_fields, *of_ratios, "rating")
    fields: Object
    more: Object = {}
    every = ["ts", "event_id", "user_id", "join_id", "request_id", "reference", "held_out"]
    every += ("feedback", "dwell_ms", "start_ts", "end_ts", "session_id", "action")
    if shape == "flat":
        fields = {name: f"x_{name}" for name in (*every, *settings.dimension_names)}
        of_items: Object = {n: [f"x_items[].{n}", f"x_{n}"] for n in (*OF_ITEM, *others, "value")}
        of_items["item_id"] = ["x_items[].item_id", "x_items[]", "x_item_id"]
    elif shape == "in a text":
        fields = {name: f"payload.{name}" for name in every}
        fields |= {name: f"payload.named.{name}" for name in settings.dimension_names}
        of_items = {
            n: [f"payload.shelves[].on[].{n}", f"payload.items[].{n}", f"payload.{n}"]
            for n in (*OF_ITEM, *others, "value")
        }
        ids = ["payload.shelves[].on[].item_id", "payload.shelves[].on[]"]
        of_items["item_id"] = [
            *ids,
            "payload.items[].item_id",
            "payload.items[]",
            "payload.item_id",
        ]
        more = {"json": ["payload.named", "payload"]}
    elif shape == "batched":
        fields = {name: f"batch[].{name}" for name in (*every, *settings.dimension_names)}
        of_items = {
            n: [f"batch[].items[].{n}", f"batch[].{n}"] for n in (*OF_ITEM, *others, "value")
        }
        of_items["item_id"] = ["batch[].items[].item_id", "batch[].items[]", "batch[].item_id"]
        more = {"each": "batch[]"}
    else:
        fields = {name: f"body.{name}" for name in every}
        fields |= {name: f"context[key={name}].value.text" for name in settings.dimension_names}
        fields |= {
            "ts": 'head["the.ts"]',
            "event_id": 'head["the.event_id"]',
            "user_id": ["head.nobody", "head.actor[0].ids[1]", {"header": "none"}],
        }
        of_items = {n: [f"body.list[].it.{n}", f"body.{n}"] for n in (*OF_ITEM, *others, "value")}
        of_items["item_id"] = ["body.list[].it.item_id", "body.list[]", "body.item_id"]
    made = []
    for kind, key in SINGULAR.items():
        known = _known(settings, kind)
        own = {name: of_items[name] for name in of_items if name in known}
        if kind == "sessions":
            own = {name: said[-1] for name, said in own.items()}
        source: Object = {"topics": [kind], "kind": {"fixed": key}, key: {"fields": own}, **more}
        source["fields"] = {name: fields[name] for name in fields if name in known}
        made.append(source)
    return made


def _known(settings: Settings, kind: str) -> set[str]:
    of_policies = settings.policy_fields if kind == "impressions" else ()
    names = (*field_names(kind), *settings.dimension_names, *settings.own_fields[kind])
    return {*names, *of_policies} - {"type"}


def counted(settings: Settings, log: list[LogRecord]) -> Readings:
    """What does not say of which shape the records are."""
    engines = Engines(settings, 2)
    for chunk in chunks_of(log, 40, seed=3):
        engines.feed(chunk)
    engines.finish()
    readings, of_shapes = read_engines(engines), ("streamer_rejected_total", "streamer_source_info")
    return {key: value for key, value in readings.items() if key[0] not in of_shapes}


SHAPES: dict[str, Callable[[str, Object, tuple[str, ...]], Object]] = {
    "flat": flat,
    "nested": nested,
    "in a text": in_text,
}
"""Those of which each record is one event."""
BATCH = 5


@dataclass(frozen=True)
class Shaped:
    """The same events in our shape and in another one, each with the settings that read them."""

    settings: Settings
    ours: list[LogRecord]
    mapped: Settings
    theirs: list[LogRecord]


def shaped(seed: int, name: str, shape: str) -> Shaped:
    """A random log, with every trouble, of the settings of a name."""
    settings, write = SETTINGS[name], SHAPES[shape]
    records = log_records(seed, name, 1500, 2)
    numbers = {*OF_NUMBERS, *settings.policy_fields, *settings.own_numbers}
    ours, theirs = _rewritten(
        to_log(records), lambda kind, event: write(kind, event, settings.dimension_names), numbers
    )
    mapped = parse({**DOCUMENTS[name], "sources": _sources_of(shape, settings)})
    return Shaped(settings, ours, mapped, theirs)


def batched(seed: int, name: str) -> Shaped:
    """A random log of objects of a usual size and depth, and the same in records that hold several
    of them each: all came when the last one did."""
    settings = SETTINGS[name]
    numbers = {*OF_NUMBERS, *settings.policy_fields, *settings.own_numbers}
    records = to_log(log_records(seed, name, 1500, 2))
    events, _ = _rewritten(records, lambda kind, event: event, numbers)
    logs: dict[tuple[str, int], list[LogRecord]] = defaultdict(list)
    for record in events:
        if _is_usual(record.value or b""):
            logs[record.kind, record.partition].append(record)
    ours, theirs = [], []
    for place, log in logs.items():
        for first in range(0, len(log), BATCH):
            some = [record.value or b"" for record in log[first : first + BATCH]]
            at_ms = log[first : first + BATCH][-1].record_ms
            ours += [LogRecord(*place, first + i, at_ms, value) for i, value in enumerate(some)]
            batch = b'{"batch": [' + b", ".join(some) + b"]}"
            theirs.append(LogRecord(*place, first // BATCH, at_ms, batch))
    mapped = parse({**DOCUMENTS[name], "sources": _sources_of("batched", settings)})
    return Shaped(settings, ours, mapped, theirs)


def _is_usual(value: bytes) -> bool:
    try:
        return len(value) < 50_000 and depth(parse_record(value)) < MAX_DEPTH - 2
    except BrokenError:
        return False


def _without_texts(value: Any, numbers: set[str]) -> Any:
    """No field of numbers has a text that is one: only other shapes than ours may write them so."""
    if isinstance(value, list):
        return [_without_texts(x, numbers) for x in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{x}?" if name in numbers and isinstance(x, str) else _without_texts(x, numbers)
        for name, x in value.items()
    }


def _has_impressions_alone(items: Any) -> bool:
    """Whether elements of a list have no item: the mappings here would read them as ids."""
    return isinstance(items, list) and any(
        isinstance(one, dict) and "impression_id" in one and "item_id" not in one for one in items
    )


def _rewritten(
    log: list[LogRecord], rewrite: Callable[[str, Object], Object], numbers: set[str]
) -> tuple[list[LogRecord], list[LogRecord]]:
    """A log in our shape, and in another one."""
    ours, theirs = [], []
    for record in log:
        value = record.value or b""
        try:
            event = json.loads(value)
        except ValueError:
            event = None
        if isinstance(event, dict):
            event.pop("type", None)
            event = {name: x for name, x in event.items() if x != ""}  # as if it were missing
            event = _without_texts(event, numbers)
            if event.get("items") is not None:
                for name in ("item_id", "impression_id"):
                    event.pop(name, None)  # of several places a mapping takes the first
            if _has_impressions_alone(event.get("items")):
                continue
            value = json.dumps(event).encode()
        ours.append(
            LogRecord(record.kind, record.partition, record.offset, record.record_ms, value)
        )
        if isinstance(event, dict):
            value = json.dumps(rewrite(record.kind, event)).encode()
        theirs.append(
            LogRecord(record.kind, record.partition, record.offset, record.record_ms, value)
        )
    return ours, theirs
