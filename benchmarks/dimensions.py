"""What dimensions cost: processor time and memory of one partition, by how many there are.

    python -m benchmarks.dimensions --impressions 500000

Slates of ten over two hours, 8 % clicked, with values by Zipf's law; and the same at 50,000 events
a second. Each case runs in a process of its own: the core with commits, then recovery and a reader.
A case whose total is not what was generated is wrong, as is one whose recovered partition reads
otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from benchmarks.endless import Run, rss_mb
from benchmarks.measure import program
from benchmarks.people import take_over
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import KindLine
from streamer.state.snapshot import view_of

START_MS = 1_760_000_000_000
TWO_HOURS_MS = 7_200_000
A_BATCH = 20_000
COMMIT_EVERY = 100_000
FEW = {"variant": 2, "surface": 8}
MANY = {f"d{i}": 1000 for i in range(20)}
FIVE = FEW | {"device": 4, "country": 60, "category": 40}


@dataclass(frozen=True)
class Case:
    """Values by dimension, dimensions that are crossed besides each alone, events a second (0: two
    hours)."""

    values: dict[str, int]
    crossed: Sequence[Sequence[str]] = ()
    rate: float = 0


CASES = {
    "variant, surface": Case(FEW),
    "+ device": Case(FEW | {"device": 4}),
    "+ country": Case(FEW | {"device": 4, "country": 60}),
    "+ category": Case(FIVE),
    "+ country x category": Case(FIVE, [["country", "category"]]),
    "20 of 1,000 values": Case(MANY),
    "two, 50,000 a second": Case(FEW, rate=50_000),
    "20 of 1,000, 50,000 a second": Case(MANY, rate=50_000),
}


def lines(impressions: int, values: dict[str, int], rate: float) -> Iterator[KindLine]:
    """Slates and clicks, in order."""
    dice = random.Random(1)
    weights = {name: list(accumulate(1 / (i + 1) for i in range(n))) for name, n in values.items()}
    step_ms = 10_000 / rate if rate else TWO_HOURS_MS / (impressions / 10)
    for slate in range(impressions // 10):
        ts, user = int(START_MS + slate * step_ms), f"u{dice.randrange(20_000)}"
        ids = {"user_id": user, "request_id": f"r{slate}", "ts": ts}
        items = [
            {"item_id": f"i{dice.randrange(5_000)}", "score": round(dice.random(), 3)}
            for _ in range(10)
        ]
        shown = {
            name: f"{name}-{bisect(weight, dice.random() * weight[-1])}"
            for name, weight in weights.items()
        }
        event = {"type": "impression", **ids, **shown, "items": items}
        yield "impressions", _encoded(event)
        for item in items:
            if dice.random() < 0.08:
                click = {"type": "click", **ids, "item_id": item["item_id"], "ts": ts + 200}
                yield "clicks", _encoded(click)


def _encoded(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


async def measure(name: str, impressions: int) -> dict[str, object]:
    """Figures of one case."""
    case = CASES[name]
    values = case.values
    metrics = {"rollups": [[], *([each] for each in values), *case.crossed]}
    dimensions = [{"name": each, "max_values": most} for each, most in values.items()]
    run = Run(parse({"dimensions": dimensions, "metrics": metrics}))
    cpu_s = paused_s = 0.0
    events = since_commit = 0
    log = lines(impressions, values, case.rate)
    while batch := list(islice(log, A_BATCH)):
        begun = time.process_time()
        run.feed(batch)
        run.partition.refresh_user_sums()
        cpu_s += time.process_time() - begun
        shown = sum(10 if kind == "impressions" else 1 for kind, _ in batch)
        events, since_commit = events + shown, since_commit + shown
        if since_commit >= COMMIT_EVERY:
            begun, since_commit = time.perf_counter(), 0
            await run.commit()
            paused_s = max(paused_s, time.perf_counter() - begun)
    await run.commit()
    memory_mb = rss_mb()
    recovered, load_seconds, _ = await take_over(run)
    theirs = readout(run.settings, run.catalogue, [view_of(run.partition)])
    reader_mb = rss_mb() - memory_mb
    ours = readout(run.settings, run.catalogue, [view_of(recovered)])
    totals = [
        reading.value
        for reading in theirs.readings
        if reading.name == "streamer_impressions_total"
        and all(reading.labels[each] == "all" for each in values)
    ]
    right = totals == [impressions // 10 * 10] and ours.as_json() == theirs.as_json()
    return {
        "cpu_us_an_event": round(1e6 * cpu_s / events, 2),
        "worker_mb": round(memory_mb),
        "reader_mb": round(reader_mb),
        "longest_commit_ms": round(1000 * paused_s),
        "stored_mb": round(sum(map(len, run.store.held[0].values())) / 1e6, 1),
        "recovery_s": round(load_seconds, 2),
        "series": len(theirs.readings),
        "right": right,
    }


def main(arguments: argparse.Namespace) -> int:
    if arguments.case:
        print(json.dumps(asyncio.run(measure(arguments.case, arguments.impressions))))
        return 0
    found = {}
    for name in CASES:
        flags = (f"--case={name}", f"--impressions={arguments.impressions}")
        found[name] = program("benchmarks.dimensions", *flags)
        print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    bases = {True: "two, 50,000 a second", False: "variant, surface"}
    for name, result in found.items():
        base = found[bases["a second" in name]]
        result["cpu"] = round(result["cpu_us_an_event"] / base["cpu_us_an_event"], 2)
    print(json.dumps(found))
    return 0 if all(result["right"] for result in found.values()) else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--impressions", type=int, default=500_000)
    options.add_argument("--case", choices=CASES)
    sys.exit(main(options.parse_args()))
