"""What a format costs: the same nested events as JSON, behind the id of a JSON schema, in Avro and
in Protobuf, mapped by the same source.

    python -m benchmarks.formats                   a minute of one core

Each log is fed to a core of its own, users' sums included; the median ratio to JSON is printed, and
all readings have to be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.endless import Run
from benchmarks.side_by_side import compare
from streamer.kafka.chunk import Records
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


def log_of(made: list[Object], write: Callable[[Object], bytes]) -> list[list[Records]]:
    """The log in one format, in batches as the core is fed."""
    return [
        [
            Records(
                "web",
                np.arange(at, at + len(some)),
                np.array([event["at"] for event in some], np.int64),
                [write(event) for event in some],
            )
        ]
        for at in range(0, len(made), LINES)
        for some in [made[at : at + LINES]]
    ]


def add_schema(name: str, run: Run) -> None:
    schema = FORMATS[name][1]
    if schema is not None:
        run.partition.set_schema("web", ID, (schema, []))


def main(count: int, rounds: int) -> int:
    made = events(count, START_MS)
    forms = {
        name: (document_of(name, schema), log_of(made, write))
        for name, (write, schema) in FORMATS.items()
    }
    return compare(forms, rounds, add_schema)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sys.exit(main(arguments.events, arguments.rounds))
