"""All benchmarks side by side, as ratios of one run.

    make bench                       everything, about ten minutes
    make bench ARGS="--events 1000000 --rounds 1"

Real Kafka and Redis are found or started as the tests do. The floor, streamer's worker and an
ordinary Faust app read the same backlog in turn; the worker's readings are compared with the engine
run in this process over the same events, reading by reading.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tomllib
from typing import Any

from benchmarks import endless, worker
from benchmarks.endless import batches
from benchmarks.measure import WATCHED
from streamer.config import parse
from streamer.events import KINDS
from streamer.readout.readout import Readout, readout
from streamer.readout.view import view_of
from streamer.sources.synthetic import Traffic, generate
from tests.servers import FAST, kafka_server, redis_server

RATE = 5000.0
USERS = 100_000
SUFFIX = "-bench"
LIMIT_SECONDS = 900
EVERYTHING = "streamer worker"
WORKERS = {
    EVERYTHING: WATCHED,
    "none watched": "",
    "without slates": '[metrics]\nfamilies = ["traffic", "engagement", "intervals"]',
}
"""Workers by their settings: with an experiment and alerts, without, and without lists."""


def program(module: str, *arguments: str) -> dict[str, Any]:
    """Run one benchmark program; what its last line says."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def rate(result: dict[str, Any]) -> float:
    return float(result["events"]) / float(result["seconds"])


def row(name: str, results: list[dict[str, Any]], floor: list[dict[str, Any]]) -> str:
    """Medians of several runs; ratios run by run against the floor's."""
    ratios = [rate(a) / rate(b) for a, b in zip(results, floor, strict=False)]
    cpu = statistics.median(r["cpu_seconds"] / r["events"] * 1e6 for r in results)
    memory = max(r["peak_rss_mb"] for r in results)
    speed = statistics.median(rate(r) for r in results)
    return (
        f"{name:<16} {speed:>11,.0f} events/s {cpu:>8.2f} CPU s/M {memory:>7,.0f} MB "
        f"{statistics.median(ratios):>7.3f} of the floor"
    )


def engine_readout(events: int, settings: str) -> Readout:
    """The same events through the engine in this process."""
    run = endless.Run(parse(tomllib.loads(settings)))
    traffic = Traffic(seed=0, users=USERS, events_per_second=RATE)
    for batch in batches(generate(traffic, events)):
        run.feed(batch)
    run.partition.apply((), at_end=KINDS)
    return readout(run.settings, run.catalogue, [view_of(run.partition)])


def differences(ours: Readout, expected: Readout) -> list[str]:
    """Readings that are not the same, in words."""
    a = {(r.name, *sorted(r.labels.items())): r.value for r in ours.readings}
    b = {(r.name, *sorted(r.labels.items())): r.value for r in expected.readings}
    return [f"{k}: {a.get(k)} and {b.get(k)}" for k in sorted({*a, *b}) if a.get(k) != b.get(k)]


def throughput(arguments: argparse.Namespace, kafka: str, redis: str) -> bool:
    """Floor, worker and ordinary app over one backlog."""
    n = str(arguments.events)
    filled = program(
        "benchmarks.backlog",
        *(f"--brokers={kafka}", f"--suffix={SUFFIX}", f"--events={n}"),
        *(f"--users={USERS}", f"--rate={RATE}", "--partitions=4"),
    )
    print(f"backlog: {filled['events']:,} events of {filled['mean_bytes']} bytes", flush=True)
    floors, right = [], True
    workers: dict[str, list[dict[str, Any]]] = {name: [] for name in WORKERS}
    expected = {name: engine_readout(arguments.events, some) for name, some in WORKERS.items()}
    for _ in range(arguments.rounds):
        common = (f"--brokers={kafka}", f"--suffix={SUFFIX}", f"--events={n}")
        floors.append(program("benchmarks.floor", *common))
        for name, more in WORKERS.items():
            flags = argparse.Namespace(
                **{"brokers": kafka, "suffix": SUFFIX, "redis": redis},
                **{"events": arguments.events, "settings": more},
            )
            result, settings = asyncio.run(worker.measure(flags))
            workers[name].append(result)
            wrong = differences(asyncio.run(worker.stored_readout(settings)), expected[name])
            right = right and not wrong
            print(f"readings of {name} unlike the engine's: {len(wrong)} {wrong[:3]}", flush=True)
    few = min(arguments.ordinary, filled["counts"]["impressions"])
    common = (f"--brokers={kafka}", f"--suffix={SUFFIX}", f"--events={few}")
    ordinary = [program("benchmarks.ordinary_faust", *common, f"--redis={redis}")]
    print(row("floor", floors, floors))
    for name, results in workers.items():
        print(row(name, results, floors))
    print(row("ordinary Faust", ordinary, floors))
    everything = workers[EVERYTHING]
    later = statistics.median(result["filed_later_seconds"] for result in everything)
    print(f"metrics of users were current {later:.1f} s after the last commit of events")
    times = statistics.median(map(rate, everything)) / rate(ordinary[0])
    print(f"streamer worker against the ordinary app: {times:.0f} times", flush=True)
    return right


def main(arguments: argparse.Namespace) -> int:
    right = True
    with kafka_server(jvm=FAST) as kafka, redis_server() as redis:
        print(f"Kafka: {kafka.what}; Redis: {redis.what}", flush=True)
        right = throughput(arguments, kafka.address, redis.address)
        scrape = program("benchmarks.scrape", f"--redis={redis.address}")
        print(f"warm scrape, 64 partitions, 4 windows: {json.dumps(scrape)}", flush=True)
    print(f"open slates: {json.dumps(program('benchmarks.slates'))}", flush=True)
    if arguments.endless:
        flags = argparse.Namespace(events=arguments.endless, rate=150.0)
        right = asyncio.run(endless.main(flags)) == 0 and right
    print(f"results {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=3_000_000, help="of the backlog")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ordinary", type=int, default=30_000, help="events for that app")
    options.add_argument("--endless", type=int, default=20_000_000, help="0 leaves it out")
    sys.exit(main(options.parse_args()))
