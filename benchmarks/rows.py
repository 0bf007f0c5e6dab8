"""Bytes of the rows that a partition keeps, at sizes just beyond where tables grow; no servers.

    python -m benchmarks.rows                     two minutes of one core

Prints the most bytes of a row of each kind; none may be above what the bound of memory counts with.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from streamer.settings.load import parse
from streamer.worker.memory_bound import ROW_BYTES, SUM_BYTES
from tests.support.engines import Engines, LogChunk, LogRecord

START_MS = 1_700_000_000_000
EACH = 20_000
SIZES = (60_000, 118_000, 236_000, 240_000, 300_000, 472_000)
Event = tuple[str, dict[str, Any]]
Traffic = Callable[[int], Iterator[Event]]


def shown(count: int) -> Iterator[Event]:
    """Impressions, each a slate of its own."""
    dice = Random(1)
    for n in range(count):
        user, item = f"u{dice.randrange(10**6)}", f"i{dice.randrange(10**5)}"
        ids = {"user_id": user, "item_id": item, "request_id": f"r{n}", "event_id": f"e{n}"}
        yield "impressions", {"ts": START_MS + n, **ids, "variant": "AB"[n % 2], "score": 0.5}


def clicked(count: int) -> Iterator[Event]:
    """Impressions, and a click with a dwell time on each."""
    for kind, event in shown(count // 2):
        yield kind, event
        ids = {name: event[name] for name in ("ts", "user_id", "item_id", "request_id")}
        yield "clicks", {**ids, "event_id": f"c{event['event_id']}", "dwell_ms": 1000}


def unjoined(count: int) -> Iterator[Event]:
    """Clicks that wait for their impressions."""
    for n in range(count):
        yield "clicks", {"ts": START_MS + n, "user_id": f"u{n}", "item_id": f"i{n % 10**5}"}


def visits(count: int) -> Iterator[Event]:
    """Sessions of one view."""
    for n in range(count):
        ids = {"user_id": f"u{n}", "session_id": f"s{n}"}
        yield "sessions", {"ts": START_MS + n, **ids, "action": "view"}


def chunks(traffic: Iterator[Event]) -> Iterator[LogChunk]:
    offsets: dict[str, int] = {}
    waiting: dict[str, list[LogRecord]] = {}
    for kind, event in traffic:
        offset = offsets[kind] = offsets.get(kind, -1) + 1
        some = waiting.setdefault(kind, [])
        some.append(LogRecord(kind, 0, offset, event["ts"], json.dumps(event).encode()))
        if len(some) == EACH:
            yield LogChunk(kind, 0, waiting.pop(kind))
    for kind, some in waiting.items():
        yield LogChunk(kind, 0, some)


def sizes(document: Mapping[str, Any], traffic: Iterator[Event]) -> dict[str, int]:
    """As the core says them; users' days without their sums, which are counted with apart."""
    engines = Engines(parse(document), 1)
    for chunk in chunks(traffic):
        engines.feed(chunk)
    (partition,) = engines.partitions
    partition.refresh_user_sums()
    size = partition.core.sizes()
    sums = SUM_BYTES * len(partition.catalogue.experiment_measures.sums)
    return {**size, "user_days": size["user_days"] - sums * size["user_days_rows"]}


LISTS = {"metrics": {"families": ["coverage", "diversity"]}, "windows": {"lengths": ["24h"]}}
EXPERIMENT = {
    "experiments": [
        {
            "name": "e",
            "dimension": "variant",
            "control": "A",
            "split": {"A": 1, "B": 1},
            "start": datetime.date(2023, 11, 14),
            "metrics": [{"name": "ctr_ratio"}],
        }
    ]
}
WORLDS: list[tuple[Mapping[str, Any], Traffic]] = [
    ({}, shown),
    ({}, clicked),
    ({}, visits),
    (LISTS, shown),
    (EXPERIMENT, shown),
]


def feedback_bytes(count: int) -> float:
    """Resident bytes of a row of feedback that waits; the records are made before."""
    made = list(chunks(unjoined(count)))
    engines = Engines(parse({}), 1)
    before = resident()
    for chunk in made:
        engines.feed(chunk)
    return (resident() - before) / count


def resident() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def main(counts: tuple[int, ...]) -> int:
    found = {"feedback": feedback_bytes(counts[-1])}
    for count in counts:
        for document, traffic in WORLDS:
            size = sizes(document, traffic(count))
            for name in ROW_BYTES:
                if name in size and (rows := size[f"{name}_rows"]):
                    found[name] = max(found.get(name, 0), size[name] / rows)
    counted = {name: round(found[name]) for name in ROW_BYTES if name in found}
    above = {name: size for name, size in counted.items() if size > ROW_BYTES[name]}
    print(json.dumps({"bytes of a row": counted, "above what is counted with": above}))
    return 1 if above else 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    sys.exit(main(tuple(options.parse_args().rows)))
