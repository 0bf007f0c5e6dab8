"""How cost grows: with partitions, segments, users, slates, windows, series, rate and state.

    python -m benchmarks.scaling                         all curves: about half an hour
    python -m benchmarks.scaling --only segments users --write build/scaling.json

Each point runs in a process of its own, and checks that all events were counted. Curves of the core
are of one partition fed in this process, without Kafka: nanoseconds of CPU an event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks import worker
from benchmarks.endless import Run, accepted, rss_mb
from benchmarks.measure import program
from benchmarks.people import take_over
from benchmarks.raw_log import RawLog
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.synthetic import KindLine, SyntheticTraffic, generate
from streamer.state.redis.store import RedisStore
from tests.support.clusters import Cluster
from tests.support.servers import FAST, kafka_server, redis_server

START_MS = 1_700_000_000_000
EVENTS, CHUNK, REFRESH_EVERY = 400_000, 20_000, 5
LENGTHS = ("1m", "5m", "1h", "24h", "10m", "30m", "2h", "6h")
COMMITS, FLUSH_SECONDS = 30, 0.5
READ, READ_TRAFFIC = 2_000_000, {"users": 100_000, "events_per_second": 5000.0}


def core(
    settings: Mapping[str, Any], lines: Iterator[KindLine], events: int = EVENTS
) -> dict[str, float]:
    """CPU of one partition, sums of users included, and the memory it takes."""
    run, raw, before_mb = Run(parse(settings)), RawLog(), rss_mb()
    spent, fed = 0.0, 0
    while some := list(islice(lines, CHUNK)):
        batches, fed = raw.batches(some), fed + 1
        begun = time.process_time()
        run.partition.apply(batches)
        if fed % REFRESH_EVERY == 0:
            run.partition.refresh_user_sums()
        spent += time.process_time() - begun
    if accepted(run.partition) != events:
        raise AssertionError(f"{accepted(run.partition)} of {events} events were counted")
    return {"ns": round(spent / events * 1e9), "mb": round(rss_mb() - before_mb)}


def segments(values: int) -> dict[str, float]:
    """Values of one dimension."""
    surfaces = tuple(f"s{number}" for number in range(values))
    dimensions = [{"name": "variant"}, {"name": "surface", "max_values": values}]
    traffic = SyntheticTraffic(users=50_000, events_per_second=1000.0, surfaces=surfaces)
    return core({"dimensions": dimensions}, generate(traffic, EVENTS))


def users(count: int) -> dict[str, float]:
    """Users, each of whom is shown two single items, or more."""
    events, chance = max(EVENTS, 2 * count), random.Random(0)
    lines = (
        (
            "impressions",
            b'{"type":"impression","ts":%d,"event_id":"e%d","user_id":"u%d","request_id":"r%d",'
            b'"variant":"A","surface":"home","item_id":"i%d","position":1,"score":0.5}'
            % (START_MS + number // 50, number, int(count * chance.random()), number, number % 997),
        )
        for number in range(events)
    )
    return core({}, lines, events)


def slate(items: int) -> dict[str, float]:
    """Items of a slate, each an event."""
    shape: dict[str, Any] = {"slate": items, "items": 5_000, "position_decay": 0.0}
    traffic = SyntheticTraffic(users=50_000, events_per_second=1000.0, **shape)
    return core({}, generate(traffic, EVENTS))


def windows(count: int) -> dict[str, float]:
    """Lengths of windows."""
    lengths = LENGTHS[:count]
    traffic = SyntheticTraffic(users=50_000, events_per_second=1000.0)
    return core({"windows": {"lengths": lengths}}, generate(traffic, EVENTS))


async def committed(settings: Settings, store: RedisStore, rate: int) -> dict[str, float]:
    """Bytes that a commit sends, and what Redis spends: one after each half second of events."""
    run = Run(settings)
    run.store = store  # type: ignore[assignment]
    await store.set_partitions(1)
    events = int(rate * FLUSH_SECONDS)
    traffic = SyntheticTraffic(users=50_000, events_per_second=float(rate))
    lines, raw = generate(traffic, events * COMMITS), RawLog()
    client: Any = store.redis
    before: dict[str, Any] = {}
    for number in range(COMMITS):
        run.partition.apply(raw.batches(islice(lines, events)))
        if number == COMMITS // 3:  # the first ones write what is new
            before = await client.info()
        await run.commit()
    after = await client.info()
    counted = COMMITS - COMMITS // 3
    grown = {key: float(after[key]) - float(before[key]) for key in REDIS_USES}
    cpu = grown["used_cpu_sys"] + grown["used_cpu_user"]
    return {
        "kb": round(grown["total_net_input_bytes"] / counted / 1000, 1),
        "redis_share_of_a_core": round(cpu / (counted * FLUSH_SECONDS), 4),
    }


REDIS_USES = ("total_net_input_bytes", "used_cpu_sys", "used_cpu_user")


def commits(rate: int) -> dict[str, float]:
    """Events a second of one partition."""
    with redis_server() as found:

        async def measured() -> dict[str, float]:
            settings = parse({"redis": {"url": found.address, "prefix": uuid.uuid4().hex}})
            store = RedisStore(settings.redis)
            try:
                return await committed(settings, store, rate)
            finally:
                await store.close()

        return asyncio.run(measured())


def takeover(lines: int, **traffic: Any) -> dict[str, float]:
    """Events that are open when another worker takes a partition over; what they take."""

    async def measured() -> dict[str, float]:
        run, raw, before_mb = Run(Settings()), RawLog(), rss_mb()
        shape = SyntheticTraffic(users=100_000, events_per_second=5000.0, **traffic)
        log, spent, others = generate(shape, lines), 0.0, 0
        while some := list(islice(log, CHUNK)):
            others += sum(kind != "impressions" for kind, _ in some)
            batches, begun = raw.batches(some), time.process_time()
            run.partition.apply(batches)
            spent += time.process_time() - begun
            await run.commit()
        counted = others + run.partition.core.sizes()["impressions_rows"]
        stored_mb = sum(map(len, run.store.held[0].values())) / 1e6
        worker_mb = rss_mb() - before_mb - stored_mb
        _, load_seconds, users_seconds = await take_over(run)
        return {
            "seconds": round(load_seconds + users_seconds, 3),
            "stored_mb": round(stored_mb, 1),
            "worker_mb": round(worker_mb),
            "counted": counted,
            "ns": round(spent / counted * 1e9),
        }

    return asyncio.run(measured())


def lists(lines: int) -> dict[str, float]:
    """Events, where slates of ten are one event each."""
    return takeover(lines, items_form_share=1.0)


def exporter(address: str, partitions: int, segments: int, *more: str) -> dict[str, Any]:
    """An exporter over a day's state of so many partitions, all of which commit before a scrape."""
    flags = (f"--redis={address}", f"--partitions={partitions}", f"--segments={segments}", *more)
    found = program("benchmarks.many_partitions", *flags)
    names = ("series", "stored_mb", "exporter_mb", "refresh_s", "readout_s", "scrape_s")
    return {
        "first_s": found["first"]["scrape_s"],
        **{name: found[name] for name in (*names, *found.keys() & PAGE)},
    }


PAGE = {"readings, a day", "course by place, a day", "in Chromium"}


def many_partitions(partitions: int) -> dict[str, Any]:
    """Partitions of 5,000 segments."""
    with redis_server() as found:
        return exporter(found.address, partitions, 5_000, "--scrapes=2")


def series(segments: int) -> dict[str, Any]:
    """Segments of 16 partitions: scrapes, and the page."""
    with redis_server() as found:
        return exporter(found.address, 16, segments, "--page")


def redis_nodes(count: int) -> dict[str, Any]:
    """Nodes that hold 64 partitions of 1,000 segments: one, or a cluster of three."""
    if count == 1:
        with redis_server() as found:
            return exporter(found.address, 64, 1_000)
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        return exporter(cluster.url, 64, 1_000, "--cluster")


def partitions(count: int) -> dict[str, Any]:
    """Partitions of each topic, a backlog in Kafka, read by one worker with commits to Redis."""
    with kafka_server(jvm=FAST) as kafka, redis_server() as redis:
        log = (f"--brokers={kafka.address}", "--suffix=-scaling", f"--events={READ}")
        traffic = f"--traffic={json.dumps(READ_TRAFFIC)}"
        program("benchmarks.backlog", *log, f"--partitions={count}", traffic)
        flags = argparse.Namespace(brokers=kafka.address, suffix="-scaling", redis=redis.address)
        flags.events, flags.settings, flags.cores, flags.workers = READ, "", 0, 1
        result, _ = asyncio.run(worker.measure(flags))
        with Redis.from_url(redis.address) as client:
            stats = client.info("stats")
    return {
        "events_per_second": round(result["events"] / result["seconds"]),
        "ns": round(result["cpu_seconds"] / result["events"] * 1e9),
        "mb": round(result["peak_rss_mb"]),
        "redis_commands": stats["total_commands_processed"],
        "redis_mb": round(stats["total_net_input_bytes"] / 1e6),
    }


Point = Callable[[int], Mapping[str, Any]]
CURVES: Mapping[str, tuple[Point, Iterable[int]]] = {
    "segments": (segments, (10, 100, 1_000, 10_000)),
    "users": (users, (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
    "slate": (slate, (1, 3, 10, 30, 100, 300, 1_000)),
    "windows": (windows, (1, 2, 4, 6, 8)),
    "commits": (commits, (100, 1_000, 10_000, 50_000, 100_000)),
    "takeover": (takeover, (10_000, 100_000, 1_000_000, 4_000_000)),
    "lists": (lists, (10_000, 100_000, 800_000)),
    "series": (series, (10, 100, 1_000, 5_000)),
    "exporter": (many_partitions, (16, 64, 256)),
    "redis_nodes": (redis_nodes, (1, 3)),
    "partitions": (partitions, (1, 4, 16, 64, 256)),
}


def main(arguments: argparse.Namespace) -> int:
    """One point, or all of some curves."""
    if arguments.point:
        name, x = arguments.point
        print(json.dumps(CURVES[name][0](int(x))))
        return 0
    found: dict[str, list[dict[str, Any]]] = {}
    for name in arguments.only or CURVES:
        for x in CURVES[name][1]:
            figures = program("benchmarks.scaling", "--point", name, str(x))
            found.setdefault(name, []).append({"x": x, **figures})
            print(f"{name} {x:,}: {json.dumps(figures)}", flush=True)
        if arguments.write:
            written = json.loads(arguments.write.read_text()) if arguments.write.exists() else {}
            arguments.write.write_text(json.dumps(written | found, indent=1) + "\n")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--only", nargs="*", choices=CURVES, help="curves")
    options.add_argument("--point", nargs=2, metavar=("CURVE", "X"), help="one point")
    options.add_argument("--write", type=Path, metavar="FILE", help="as JSON, beside what it holds")
    sys.exit(main(options.parse_args()))
