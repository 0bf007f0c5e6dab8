"""Workers beside the floor, over backlogs of several kinds in real Kafka, with commits to Redis.

    python -m benchmarks.run --only throughput

For each log the floor and each job read the same backlog in turn, so that ratios are those of one
moment. A worker's readings are compared with those of the same events counted in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import time
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import endless, worker
from benchmarks.endless import batches
from benchmarks.measure import TROUBLED, WATCHED, program
from benchmarks.peers import builds
from streamer.errors import StreamerError
from streamer.query.readings import ReadingSet, readout
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state.snapshot import view_of


@dataclass(frozen=True)
class Log:
    """A backlog. ``traffic``: what differs from the usual traffic."""

    name: str
    traffic: Mapping[str, Any] = field(default_factory=dict)
    compression: str | None = None
    partitions: int = 4

    @property
    def suffix(self) -> str:
        """Of the names of its topics."""
        return "-" + self.name.replace(" ", "-")

    @property
    def fields(self) -> dict[str, Any]:
        """Of its traffic."""
        return {"users": 100_000, "events_per_second": 5000.0, **self.traffic}


@dataclass(frozen=True)
class Job:
    """One worker. ``speed`` and ``cpu``: what it is to reach against the floor, events a second at
    least and processor time at most; against ``beside`` where that is named. ``rust``: the same of
    processor time, against the floor in Rust."""

    name: str
    log: Log
    settings: str = ""
    speed: float = 0.0
    cpu: float = 0.0
    cores: int = 0
    """So many cores; 0: all."""
    beside: str = "floor"
    rust: float = 0.0


CLEAN, LZ4 = Log("clean"), Log("lz4", compression="lz4")
UNCLEAN, WIDE = Log("troubled", TROUBLED), Log("eight", partitions=8)
LOGS = (CLEAN, UNCLEAN, LZ4, WIDE)
JOBS = (
    Job("counting", CLEAN, '[metrics]\nfamilies = ["traffic"]', 1.5, 0.7, rust=1.2),
    Job("everything", CLEAN, "", 1.0, 1.1, rust=1.5),
    Job("everything, watched", CLEAN, WATCHED, 0.9, 1.3),
    Job("troubled, watched", UNCLEAN, WATCHED, 0.6, 2.0, rust=2.5),
    Job("everything, lz4", LZ4, "", 1.3, 0.8),
    Job("one core", WIDE, "", cores=1),
    Job("two cores", WIDE, "", 1.6, cores=2, beside="one core"),
)


def rate(result: Mapping[str, Any]) -> float:
    """Events a second."""
    return float(result["events"]) / float(result["seconds"])


def cpu(result: Mapping[str, Any]) -> float:
    """Processor seconds a million events."""
    return float(result["cpu_seconds"]) / float(result["events"]) * 1e6


def row(
    job: Job,
    results: Sequence[Mapping[str, Any]],
    beside: Sequence[Mapping[str, Any]],
    rust: Sequence[Mapping[str, Any]],
) -> str:
    """Medians of several runs; ratios run by run."""
    speed = statistics.median(rate(a) / rate(b) for a, b in zip(results, beside, strict=True))
    costs = statistics.median(cpu(a) / cpu(b) for a, b in zip(results, beside, strict=True))
    in_rust = statistics.median(cpu(a) / cpu(b) for a, b in zip(results, rust, strict=True))
    memory = max(r["peak_rss_mb"] for r in results)
    wanted = f"{job.speed or '':>5} {job.cpu or '':>5}"
    return (
        f"{job.name:<20} {statistics.median(map(rate, results)):>10,.0f} events/s "
        f"{statistics.median(map(cpu, results)):>6.2f} CPU s/M {memory:>6,.0f} MB"
        f" | against {job.beside}: {speed:>5.2f} and {costs:>5.2f} (aims {wanted})"
        f" | against the floor in Rust: {in_rust:.2f} (aim {job.rust or ''})"
    )


def rust_floor(kafka: str, redis: str, suffix: str, events: int) -> dict[str, float]:
    """The floor of the peers: a whole run, whose start is short."""
    command = [
        *builds.rust("rust_floor")(),
        *(f"--brokers={kafka}", f"--suffix={suffix}", f"--redis={redis}"),
        *(f"--prefix=floor-{uuid.uuid4().hex[:8]}", f"--events={events}"),
    ]
    begun = time.perf_counter()
    _, status, used = os.wait4(subprocess.Popen(command).pid, 0)
    if status:
        raise StreamerError(f"the floor in Rust failed: {command}")
    cpu_seconds = used.ru_utime + used.ru_stime
    figures = {"cpu_seconds": cpu_seconds, "peak_rss_mb": used.ru_maxrss / 1024}
    return {"events": events, "seconds": time.perf_counter() - begun, **figures}


def counted_here(log: Log, settings: str, events: int) -> ReadingSet:
    """The same events, counted in this process."""
    run = endless.Run(parse(tomllib.loads(settings)))
    for batch in batches(generate(SyntheticTraffic(**log.fields), events)):
        run.feed(batch)
    run.partition.apply((), at_end=KINDS)
    run.partition.refresh_user_sums()
    return readout(run.settings, run.catalogue, [view_of(run.partition)])


def differences(ours: ReadingSet, expected: ReadingSet) -> list[str]:
    """Readings that are not the same, in words."""
    a = {(r.name, *sorted(r.labels.items())): r.value for r in ours.readings}
    b = {(r.name, *sorted(r.labels.items())): r.value for r in expected.readings}
    return [f"{k}: {a.get(k)} and {b.get(k)}" for k in sorted({*a, *b}) if a.get(k) != b.get(k)]


def measure(arguments: argparse.Namespace, kafka: str, redis: str) -> bool:
    """Every job; whether all readings were right."""
    right = True
    wanted = [job for job in JOBS if job.name in arguments.jobs or not arguments.jobs]
    for log in LOGS:
        if jobs := [job for job in wanted if job.log is log]:
            right = _on_log(arguments, log, jobs, kafka, redis) and right
    return right


def _on_log(
    arguments: argparse.Namespace, log: Log, jobs: Sequence[Job], kafka: str, redis: str
) -> bool:
    common = (f"--brokers={kafka}", f"--suffix={log.suffix}", f"--events={arguments.events}")
    filled = program(
        "benchmarks.backlog",
        *(*common, f"--partitions={log.partitions}", f"--traffic={json.dumps(log.fields)}"),
        *([f"--compression={log.compression}"] if log.compression else []),
    )
    print(
        f"log {log.name}: {filled['events']:,} events of {filled['mean_bytes']} bytes", flush=True
    )
    found: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("rust", "floor", *(j.name for j in jobs))
    }
    expected = {
        some: counted_here(log, some, arguments.events) for some in {job.settings for job in jobs}
    }
    right = True
    for _ in range(arguments.rounds):
        found["rust"].append(rust_floor(kafka, redis, log.suffix, arguments.events))
        found["floor"].append(program("benchmarks.floor", *common))
        for job in jobs:
            flags = argparse.Namespace(
                **{"brokers": kafka, "suffix": log.suffix, "redis": redis, "cores": job.cores},
                **{"events": arguments.events, "settings": job.settings, "workers": 1},
            )
            result, settings = asyncio.run(worker.measure(flags))
            found[job.name].append(result)
            shown = asyncio.run(worker.stored_readout(settings))
            if wrong := differences(shown, expected[job.settings]):
                print(f"{job.name}: {len(wrong)} readings are wrong: {wrong[:3]}", flush=True)
                right = False
    for job in (Job("rust", log), Job("floor", log), *jobs):
        print(row(job, found[job.name], found[job.beside], found["rust"]), flush=True)
    return right
