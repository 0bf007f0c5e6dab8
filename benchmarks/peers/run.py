"""streamer beside what it might be built with: the same job over the same log, in one run.

    make bench-peers
    make bench-peers ARGS="--only streamer bytewax --rounds 1 --scale 0.1"

Each contestant reads a short log and a long one of real Kafka, from their start, until Redis holds
the right counts of every window. What is told is the difference of the two: what a contestant
spends on its start and on the first compilation is not in it. Rounds alternate. A contestant whose
counts are not right within its time is told as such.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks.backlog import fill
from benchmarks.measure import peak_rss_mb
from benchmarks.peers import job, log
from benchmarks.peers.contestant import CACHE, Contestant
from benchmarks.peers.contestants import CONTESTANTS
from tests.support.servers import FAST, kafka_server, redis_server

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 300.0
POLL_SECONDS, STOP_SECONDS, LEAST_SECONDS = 0.1, 10.0, 1.0


@dataclass(frozen=True)
class Run:
    """One reading of one log."""

    events: int
    seconds: float
    cpu_seconds: float
    peak_mb: float


def suffix(events: int) -> str:
    """Of the topics that hold a log of so many events."""
    return f"-peers-{events}"


def fill_log(brokers: str, events: int) -> log.Counts:
    """Produce a log; what its windows have to count."""
    made = list(log.generate(events))
    rows = ((topic, text) for _, topic, _, _, text in made)
    asyncio.run(fill(brokers, rows, job.PARTITIONS, suffix(events)))
    return log.expected(made)


def run(
    contestant: Contestant, kafka: str, redis_url: str, events: int, expected: log.Counts
) -> Run | str:
    """Read one log; what is wrong, in words, where the counts are."""
    prefix = re.sub("[^a-z]+", "-", contestant.name.lower()) + f"-{uuid.uuid4().hex[:6]}"
    command = [
        *contestant.prepare(),
        *(f"--brokers={kafka}", f"--suffix={suffix(events)}", f"--redis={redis_url}"),
        *(f"--prefix={prefix}", f"--events={events + len(job.TOPICS) * job.PARTITIONS}"),
    ]
    (CACHE / "logs").mkdir(parents=True, exist_ok=True)
    with (
        redis.Redis.from_url(redis_url, decode_responses=True) as client,
        (CACHE / "logs" / f"{prefix}.txt").open("w") as output,
    ):
        client.flushall()
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
        used: resource.struct_rusage | None = None
        wrong, peak_mb = "it was not looked at", 0.0
        try:
            while wrong and used is None and time.perf_counter() < begun + LIMIT_SECONDS:
                time.sleep(POLL_SECONDS)
                with contextlib.suppress(OSError, IndexError):  # it has ended
                    peak_mb = peak_rss_mb(process.pid)
                used = _ended(process)  # before the look, which then is at all that it did
                wrong = contestant.wrong(client, prefix, expected)
            seconds = time.perf_counter() - begun
        finally:
            used = used or _stopped(process)
    if wrong:
        return f"{wrong}; its output is in {output.name}"
    return Run(events, seconds, used.ru_utime + used.ru_stime, peak_mb)


def _ended(
    process: subprocess.Popen[bytes], how: int = os.WNOHANG
) -> resource.struct_rusage | None:
    """What a program used, with all its children, where it has ended."""
    pid, status, used = os.wait4(process.pid, how)
    if pid:
        process.returncode = os.waitstatus_to_exitcode(status)
    return used if pid else None


def _stopped(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """End a program and all that it started."""
    os.killpg(process.pid, signal.SIGTERM)
    until = time.perf_counter() + STOP_SECONDS
    while (used := _ended(process)) is None and time.perf_counter() < until:
        time.sleep(POLL_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    used = used or _ended(process, 0)
    assert used is not None
    return used


def measure(
    contestants: Sequence[Contestant], kafka: str, redis_url: str, rounds: int, scale: float
) -> dict[str, Any]:
    """All rounds of all contestants: {name: {"runs": [per round], "wrong": words or ""}}."""
    logs: dict[int, log.Counts] = {}
    results: dict[str, Any] = {}
    for contestant in contestants:
        contestant.prepare()
        for size in contestant.scaled(scale):
            if size not in logs:
                print(f"filling a log of {size:,} events", flush=True)
                logs[size] = fill_log(kafka, size)
        results[contestant.name] = {"leaves_out": contestant.leaves_out, "runs": [], "wrong": ""}
    for number, contestant in itertools.product(range(rounds), contestants):
        result = results[contestant.name]
        if result["wrong"]:
            continue
        pair: list[dict[str, float]] = []
        for size in contestant.scaled(scale):
            found = run(contestant, kafka, redis_url, size, logs[size])
            if isinstance(found, str):
                result["wrong"] = found
                break
            pair.append(dataclasses.asdict(found))
        else:
            result["runs"].append(pair)
        print(f"{number + 1}: {contestant.name}: {told(result)}", flush=True)
    return results


def costs(pair: Sequence[Mapping[str, float]]) -> tuple[float | None, float]:
    """(events a second, CPU seconds a million) of a short log and a long one, by difference. No
    rate, where the start of one of them took as long as the difference."""
    short, long = pair
    events, seconds = long["events"] - short["events"], long["seconds"] - short["seconds"]
    rate = events / seconds if seconds >= LEAST_SECONDS else None
    return rate, (long["cpu_seconds"] - short["cpu_seconds"]) / events * 1e6


@dataclass(frozen=True)
class Figures:
    """Of all rounds: medians, the costs in order, and the largest memory of a long log."""

    cpu: float
    costs: Sequence[float]
    rate: str
    peak_mb: float


def figures(result: Mapping[str, Any]) -> Figures:
    """What is told of a contestant that was right."""
    found = [costs(pair) for pair in result["runs"]]
    spent = sorted(cpu for _, cpu in found)
    rates = [rate for rate, _ in found if rate is not None]
    rate = f"{statistics.median(rates):,.0f}" if rates else ""
    peak_mb = max(pair[1]["peak_mb"] for pair in result["runs"])
    return Figures(statistics.median(spent), spent, rate, peak_mb)


def told(result: Mapping[str, Any]) -> str:
    """One line: medians, and the span of the costs."""
    if result["wrong"]:
        return f"WRONG: {result['wrong']}"
    of = figures(result)
    return (
        f"{of.rate or 'no'} events/s, {of.cpu:.2f} CPU s a million "
        f"({of.costs[0]:.2f} to {of.costs[-1]:.2f}), {of.peak_mb:,.0f} MB"
    )


def main(arguments: argparse.Namespace) -> int:
    """Run, print, and write the raw results where all contestants ran."""
    unknown = set(arguments.only) - {some.name for some in CONTESTANTS}
    if unknown:
        names = ", ".join(some.name for some in CONTESTANTS)
        print(f"no contestant {', '.join(sorted(unknown))}: choose of {names}", file=sys.stderr)
        return 2
    chosen = [some for some in CONTESTANTS if some.name in arguments.only or not arguments.only]
    with kafka_server(jvm=FAST) as kafka, redis_server() as found:
        print(f"Kafka: {kafka.what}; Redis: {found.what}", flush=True)
        results = measure(chosen, kafka.address, found.address, arguments.rounds, arguments.scale)
    for name, result in results.items():
        print(f"{name:<24} {told(result)}")
    if arguments.write:
        arguments.write.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if any(result["wrong"] for result in results.values()) else 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="contestants")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scale", type=float, default=1.0, help="of the sizes of the logs")
    options.add_argument("--write", type=Path, metavar="FILE", help="raw results, as JSON")
    sys.exit(main(options.parse_args()))
