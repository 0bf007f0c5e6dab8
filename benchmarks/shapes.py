"""What another shape of events costs: the same traffic in ours, in one with other names, and as
nested events of one shape that `[[sources]]` maps.

    python -m benchmarks.shapes                    a minute of one core

Each log is fed to a core of its own, users' sums included; the median ratio to our own shape is
printed, and all readings have to be equal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from benchmarks.endless import Log, Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.sources import KIND_OF_RULE
from streamer.sources.synthetic import Traffic, generate
from streamer.state.snapshot import view_of

LINES = 20_000
Object = dict[str, Any]
KEYS = {kind: key for key, kind in KIND_OF_RULE.items()}


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


SOURCES: Object = {
    "sources": [
        {
            "topics": [kind],
            "kind": {"field": "event", key: [key]},
            "roots": ["properties", "context.experiment", "context.page"],
            "fields": {"ts": "timestamp", "user_id": "userId"},
        }
        for key, kind in KIND_OF_RULE.items()
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
    traffic = generate(Traffic(users=20_000), events)
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


def counted(document: Object, log: list[list[Records]]) -> tuple[float, dict[Any, float]]:
    """CPU seconds, and the readings."""
    run = Run(parse(document))
    begun = time.process_time()
    for batch in log:
        run.partition.apply(batch)
        run.partition.refresh_user_sums()
    took = time.process_time() - begun
    run.partition.apply((), at_end=KINDS)
    found = readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
    return took, {(r.name, frozenset(r.labels.items())): r.value for r in found}


def main(events: int, rounds: int) -> int:
    made = logs(events)
    took: dict[str, list[float]] = {name: [] for name in SHAPES}
    right = True
    for _ in range(rounds):
        expected = None
        for name, (document, _) in SHAPES.items():
            seconds, readings = counted(document, made[name])
            took[name].append(seconds)
            expected = expected or readings
            right = right and readings == expected and len(readings) > 100
    base = took["our own shape"]
    ratios: dict[str, float] = {}
    for name, spent in took.items():
        size = sum(len(v or b"") for batch in made[name] for r in batch for v in r.values) / events
        ratio = statistics.median(a / b for a, b in zip(spent, base, strict=True))
        each = statistics.median(spent) / events * 1e9
        print(f"{name}: {each:.0f} ns an event of {size:.0f} bytes, {ratio:.2f}")
        ratios[name] = round(ratio, 2)
    print(json.dumps(ratios | {"readings are equal": right}))
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sys.exit(main(arguments.events, arguments.rounds))
