"""What another shape of events costs: the same traffic in ours, in one with other names, and as
nested events of one shape that `[[sources]]` maps.

    python -m benchmarks.shapes                    a minute of one core

Each log is fed to a core of its own, users' sums included; the median ratio to our own shape is
printed, and all readings have to be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

from benchmarks.endless import Log
from benchmarks.side_by_side import compare
from streamer.kafka.chunk import Records
from streamer.settings.event_fields import LINE_TYPES
from streamer.sources.synthetic import SyntheticTraffic, generate
from tests.support.own_names import own_names

LINES = 20_000
Object = dict[str, Any]
KEYS = {kind: key for key, kind in LINE_TYPES.items()}


def ours(kind: str, event: Object) -> Object:
    """As it is."""
    return event


def renamed(kind: str, event: Object) -> Object:
    """Two fields under other names."""
    return {{"item_id": "sku", "ts": "when"}.get(name, name): x for name, x in event.items()}


def nested(kind: str, event: Object) -> Object:
    """An envelope of four objects, as analytics tools send: ids, context and properties apart, and
    as much again of what nobody reads."""
    head = {"timestamp": event.pop("ts"), "userId": event.pop("user_id")}
    context: Object = {"library": {"name": "analytics.js", "version": "2.11.1"}, "ip": "8.8.8.8"}
    context["experiment"] = {name: event.pop(name) for name in ("variant",) if name in event}
    context["page"] = {name: event.pop(name) for name in ("surface",) if name in event}
    return {"event": KEYS[kind], **head, "context": context, "properties": event}


FIELDS: Object = {
    name: f"properties.{said}" if isinstance(said, str) else [f"properties.{x}" for x in said]
    for name, said in own_names().items()
}
FIELDS |= {"ts": "timestamp", "user_id": "userId"}
FIELDS |= {"variant": "context.experiment.variant", "surface": "context.page.surface"}
SOURCES: Object = {
    "sources": [
        {
            "topics": [kind],
            "kind": {"field": "event", key: [key]},
            "fields": FIELDS,
        }
        for key, kind in LINE_TYPES.items()
    ]
}
SHAPES: dict[str, tuple[Object, Callable[[str, Object], Object]]] = {
    "our own shape": ({}, ours),
    "other names": ({"events": {"fields": {"item_id": "sku", "ts": "when"}}}, renamed),
    "nested, mapped": (SOURCES, nested),
}


def logs(events: int) -> dict[str, list[list[Records]]]:
    """The log in each shape, in batches as the core is fed."""
    made: dict[str, list[list[Records]]] = {name: [] for name in SHAPES}
    traffic = generate(SyntheticTraffic(users=20_000), events)
    log = Log()
    for lines in iter(lambda: list(islice(traffic, LINES)), []):
        batches = log.records(lines)
        for name, (_, write) in SHAPES.items():
            made[name].append([_written(batch, write) for batch in batches])
    return made


def _written(batch: Records, write: Callable[[str, Object], Object]) -> Records:
    values = [
        json.dumps(write(batch.log, json.loads(value)), separators=(",", ":")).encode()
        for value in batch.values
        if value is not None
    ]
    return Records(batch.log, batch.offset, batch.record_ms, values)


def main(events: int, rounds: int) -> int:
    made = logs(events)
    return compare({name: (document, made[name]) for name, (document, _) in SHAPES.items()}, rounds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sys.exit(main(arguments.events, arguments.rounds))
