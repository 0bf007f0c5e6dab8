"""What a format costs: the same nested events as JSON, behind the id of a JSON schema, in Avro and
in Protobuf, mapped by the same source.

    python -m benchmarks.formats                   a minute of one core

Each log is fed to a core of its own, users' sums included; the median ratio to JSON is printed, and
all readings have to be equal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.endless import Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.encoded import (
    AVRO,
    PROTOBUF,
    SOURCE,
    as_avro,
    as_json,
    as_protobuf,
    events,
    wire,
)

START_MS = 1_700_000_000_000
LINES = 20_000
ID = 7
Object = dict[str, Any]
FORMATS: dict[str, tuple[Callable[[Object], bytes], str | None]] = {
    "json": (as_json, None),
    "json-schema": (lambda event: wire(ID, as_json(event)), None),
    "avro": (lambda event: wire(ID, as_avro(event)), json.dumps(AVRO)),
    "protobuf": (lambda event: wire(ID, as_protobuf(event)), PROTOBUF),
}


def document_of(name: str, schema: str | None) -> Object:
    registry = {} if schema is None else {"registry": "http://localhost"}
    return {"sources": [{"topics": ["web"], "format": name, **registry, **SOURCE}]}


def log_of(made: list[Object], write: Callable[[Object], bytes]) -> list[Records]:
    return [
        Records(
            "web",
            np.arange(at, at + len(some)),
            np.array([event["at"] for event in some], np.int64),
            [write(event) for event in some],
        )
        for at in range(0, len(made), LINES)
        for some in [made[at : at + LINES]]
    ]


def counted(name: str, log: list[Records]) -> tuple[float, dict[Any, float]]:
    """CPU seconds, and the readings."""
    schema = FORMATS[name][1]
    run = Run(parse(document_of(name, schema)))
    if schema is not None:
        run.partition.set_schema("web", ID, (schema, []))
    begun = time.process_time()
    for batch in log:
        applied = run.partition.apply([batch])
        assert applied.unknown_schema is None
        run.partition.refresh_user_sums()
    took = time.process_time() - begun
    run.partition.apply((), at_end=["web"])
    found = readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
    return took, {(r.name, frozenset(r.labels.items())): r.value for r in found}


def main(count: int, rounds: int) -> int:
    made = events(count, START_MS)
    logs = {name: log_of(made, write) for name, (write, _) in FORMATS.items()}
    took: dict[str, list[float]] = {name: [] for name in FORMATS}
    right = True
    for _ in range(rounds):
        expected = None
        for name, log in logs.items():
            seconds, readings = counted(name, log)
            took[name].append(seconds)
            expected = expected or readings
            right = right and readings == expected and len(readings) > 100
    ratios: dict[str, float] = {}
    for name, spent in took.items():
        size = sum(len(v or b"") for batch in logs[name] for v in batch.values) / count
        ratio = statistics.median(a / b for a, b in zip(spent, took["json"], strict=True))
        each = statistics.median(spent) / count * 1e9
        print(f"{name}: {each:.0f} ns an event of {size:.0f} bytes, {ratio:.2f}")
        ratios[name] = round(ratio, 2)
    print(json.dumps(ratios | {"readings are equal": right}))
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sys.exit(main(arguments.events, arguments.rounds))
