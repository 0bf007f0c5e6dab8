"""What so many events a second need, computed from the figures of benchmarks/scaling.py."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer.settings.limits import (
    FLUSH_MS,
    MAX_EVENT_IDS,
    MAX_OPEN_IMPRESSIONS,
    MAX_PARTITIONS,
)

RATES = (1_000_000, 10_000_000, 100_000_000)
SHOWN = 0.88
"""Of what is counted, impressions."""
EVENT_BYTES = 200
CORES, MEMORY_GB, NETWORK_MB, FULL = 16, 128, 1_000, 0.6
"""Of a machine, and how much of each is planned with."""
SCRAPE_SECONDS = 10.0
"""Prometheus waits no longer by default."""
SEGMENTS = 1_000
PAGE = """<!-- Written by `python -m benchmarks.pictures`. -->

# Beyond one machine

Workers share a Kafka group and a Redis, so that more hosts are more workers: a test cuts one of two
hosts off and lets it come back, and no count differs. Redis may be a
[cluster](secure-it.md), in which each partition is on one node; one exporter reads all of them.

## What was measured

{measured}

## What a rate needs

Computed from the figures above and from [the curves](size-it.md#curves), not measured. The rate is
of impressions, clicks and other events that are counted; {shown:.0%} are impressions. A machine has
{cores} cores, {memory} GB and {network:,} MB/s, of which {full:.0%} are planned with. Partitions
hold {segments:,} segments.

*By default* each impression is an event, and open for the default `attribution.click` and
`time.max_lateness`, 90 minutes together. *Frugal* is a slate of ten in one event (`items`), open
for ten minutes, and ten minutes of `time.dedup_horizon`.

{needs}

**Memory breaks first**: of workers, which keep what feedback can still join. Long before their
processors are busy, `limits.open_impressions` and `limits.event_ids` ask for more partitions, and
these for a larger exporter. So send a slate as one event, and make `attribution.click`,
`time.max_lateness` and `time.dedup_horizon` as short as your feedback allows. Where workers have
the memory, raise these limits instead of the number of partitions; a take-over takes
{takeover:.1f} s for each million open events.

**The exporter breaks next**: it reads all partitions, and a second one would do the same.
So keep partitions few: with larger limits, two for each core of the workers are enough. Several
independent products are better kept apart, each with its own `redis.prefix`, workers and exporter.
"""


@dataclass(frozen=True)
class Shape:
    """How traffic comes. ``events``: of an impression, one or a part of one."""

    name: str
    curve: str
    open_seconds: float
    ids_seconds: float
    events: float


SHAPES = (
    Shape("by default", "takeover", 5_400, 3_600, 1.0),
    Shape("frugal", "lists", 600, 600, 0.1),
)


@dataclass(frozen=True)
class Costs:
    """Of one event that is counted, and of an exporter."""

    ns: float
    worker_bytes: float
    stored_bytes: float
    exporter_mb: Sequence[float]
    scrape_s: Sequence[float]
    """Of no partition, and of each."""


def costs(curves: Mapping[str, Any], shape: Shape) -> Costs:
    """From the largest point of the curve; the core's time, and what a worker takes beside it."""
    point, single = curves[shape.curve][-1], curves["takeover"][-1]
    whole = statistics.median(each["ns"] for each in curves["hosts"])
    beside = whole - single["ns"]  # Python, fetching, commits
    events = point["x"] / point["counted"]  # what is beside the core is by event
    few = next(each for each in curves["series"] if each["x"] == SEGMENTS)
    many = next(each for each in curves["redis_nodes"] if each["x"] == 1)
    line = {
        name: np.polyfit([16, 64], [few[name], many[name]], 1)[::-1].tolist()
        for name in ("exporter_mb", "scrape_s")
    }
    return Costs(
        point["ns"] + beside * events,
        point["worker_mb"] * 1e6 / point["counted"],
        point["stored_mb"] * 1e6 / point["counted"],
        **line,
    )


def committed_mb(curves: Mapping[str, Any], rate: float, partitions: int) -> tuple[float, float]:
    """MB a second that commits of a rate send, and cores of Redis."""
    points = curves["commits"]
    x = np.log([point["x"] for point in points])
    at = math.log(rate / partitions)
    kb = float(np.interp(at, x, [point["kb"] for point in points]))
    share = float(np.interp(at, x, [point["redis_share_of_a_core"] for point in points]))
    return kb / FLUSH_MS * partitions, share * partitions


def row(curves: Mapping[str, Any], shape: Shape, rate: float) -> str:
    """One line of the table."""
    of = costs(curves, shape)
    cores = rate * of.ns / 1e9
    open_rows = rate * SHOWN * shape.open_seconds
    ids = rate * SHOWN * shape.events * shape.ids_seconds
    worker_gb = rate * shape.open_seconds * of.worker_bytes / 1e9
    stored_gb = rate * shape.open_seconds * of.stored_bytes / 1e9
    partitions = math.ceil(max(2 * cores, open_rows / MAX_OPEN_IMPRESSIONS, ids / MAX_EVENT_IDS))
    sent_mb, redis_cores = committed_mb(curves, rate, partitions)
    machines = max(cores / CORES, worker_gb / MEMORY_GB) / FULL
    nodes = max(stored_gb / MEMORY_GB, sent_mb / NETWORK_MB, redis_cores) / FULL
    exporter_gb = (of.exporter_mb[0] + partitions * of.exporter_mb[1]) / 1e3
    scrape = of.scrape_s[0] + partitions * of.scrape_s[1]
    broken = "partitions" if partitions > MAX_PARTITIONS else ""
    broken = broken or ("the exporter" if scrape > SCRAPE_SECONDS else "")
    cells = (
        *(f"{rate / 1e6:,.0f} M, {shape.name}", f"{partitions:,}", f"{cores:,.0f}"),
        *(f"{worker_gb:,.0f} GB", f"{math.ceil(machines):,}", f"{stored_gb:,.0f} GB"),
        *(f"{sent_mb:,.0f} MB/s", f"{redis_cores:,.1f}", f"{math.ceil(nodes):,}"),
        *(f"{exporter_gb:,.0f} GB, {scrape:,.1f} s", f"{rate * EVENT_BYTES / 1e6:,.0f} MB/s"),
        broken or "-",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    *("events/s", "partitions", "cores of workers", "their memory", "machines"),
    *("in Redis", "commits", "its cores", "nodes", "exporter, scrape", "from Kafka"),
    "beyond its bound",
)


def measured(curves: Mapping[str, Any]) -> str:
    """What was measured of several partitions, nodes and hosts, as a list."""
    lines = [
        f"- An exporter of {point['x']} partitions of 5,000 segments, from stored state "
        f"({point['stored_mb'][0]:,} MB): {point['exporter_mb'] / 1e3:.1f} GB; the first reading "
        f"after {point['first_s']:.1f} s, then {point['scrape_s']:.2f} s a scrape after a commit "
        f"of every partition."
        for point in curves["exporter"]
    ]
    one, three = curves["redis_nodes"]
    lines.append(
        f"- 64 partitions of 1,000 segments in one Redis: {one['scrape_s']:.2f} s a scrape; in a "
        f"cluster of three nodes: {three['scrape_s']:.2f} s, and {min(three['stored_mb'])} to "
        f"{max(three['stored_mb'])} MB a node."
    )
    hosts: dict[int, list[float]] = {}
    for point in curves["hosts"]:
        hosts.setdefault(point["hosts"], []).append(point["events_per_second"])
    ratios = sorted(b / a for a, b in zip(hosts[1], hosts[2], strict=True))
    lines.append(
        f"- Two hosts of one core (network namespaces) read {statistics.median(ratios):.2f} times "
        f"as many events a second as one ({ratios[0]:.2f} to {ratios[-1]:.2f}); Kafka and Redis "
        "run on the same two cores."
    )
    return "\n".join(lines)


def page(curves: Mapping[str, Any]) -> str:
    """The whole page."""
    rows = [row(curves, shape, rate) for shape in SHAPES for rate in RATES]
    table = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}", *rows]
    largest = curves["takeover"][-1]
    return PAGE.format(
        measured=measured(curves),
        needs="\n".join(table),
        takeover=largest["seconds"] / largest["x"] * 1e6,
        **{"shown": SHOWN, "cores": CORES, "memory": MEMORY_GB, "network": NETWORK_MB},
        **{"full": FULL, "segments": SEGMENTS},
    )
