"""The Yahoo streaming benchmark: views of ads are counted by campaign in windows of ten seconds.

    python -m benchmarks.yahoo                       50,000, 100,000 and 200,000 events a second
    python -m benchmarks.yahoo --rates 400000

Three kinds of events of equal number, of which only views count; ten ads in each of a hundred
campaigns. An event names its campaign: streamer keeps no side table, in which the benchmark looks
it up. Lag: how long after a window's end Redis holds the last of its events. In the end the counts
of each window and campaign have to be exactly those that were sent. A rate is held where the last
windows are not later than the first, and the producer kept its rate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

import streamer
from benchmarks.lag import share
from benchmarks.worker import cpu_seconds
from streamer.cli.run import worker_command, worker_environment
from streamer.errors import StreamerError
from streamer.settings.load import load
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import create_topics
from tests.support.servers import FAST, kafka_server, redis_server

RATES = (50_000, 100_000, 200_000)
WINDOW_MS, PARTITIONS = 10_000, 4
CAMPAIGNS, ADS, USERS = 100, 10, 100_000
KINDS = ("view", "click", "purchase")
TICK_SECONDS, POLL_SECONDS, END_SECONDS = 0.02, 0.02, 30.0
BATCH_BYTES = 256 * 1024
SETTINGS = """
[kafka]
brokers = "{kafka}"
group = "{name}"
[redis]
url = "{redis}"
prefix = "{name}"
[metrics]
families = ["traffic"]
[windows]
lengths = ["10m"]                # sixty panes of ten seconds
[[dimensions]]
name = "campaign"
[[sources]]
topics = ["{name}"]
[sources.kind]
field = "event_type"
impression = ["view"]
ignored = ["click", "purchase"]
[sources.fields]
user_id = "user_id"
item_id = "ad_id"
ts = {{ path = "event_time", unit = "ms" }}
campaign = "campaign_id"
"""


def events(count: int) -> list[tuple[str | None, bytes, bytes]]:
    """(campaign of a view, what stands before the time, what stands after it)."""
    chance, made = random.Random(0), list[tuple[str | None, bytes, bytes]]()
    for number in range(count):
        ad, kind = chance.randrange(CAMPAIGNS * ADS), KINDS[number % len(KINDS)]
        campaign = f"campaign-{ad // ADS}"
        before = (
            f'{{"user_id":"user-{chance.randrange(USERS)}","page_id":"page-{chance.randrange(999)}",'
            f'"ad_id":"ad-{ad}","campaign_id":"{campaign}","ad_type":"banner",'
            f'"event_type":"{kind}","event_time":'
        )
        after = b',"ip_address":"10.0.0.1"}'
        made.append((campaign if kind == "view" else None, before.encode(), after))
    return made


async def produce(kafka: str, topic: str, rate: int, seconds: float) -> dict[str, Any]:
    """Send at a rate; what was sent of each window, and the offsets at its end."""
    made, sent = events(99_999), 0
    producer = AIOKafkaProducer(bootstrap_servers=kafka, max_batch_size=BATCH_BYTES)
    await producer.start()
    offsets, views = [0] * PARTITIONS, Counter[str]()
    ends = dict[int, list[int]]()
    begun = time.time()
    try:
        while (now := time.time()) < begun + seconds:
            ms = int(now * 1000)
            window = ms - ms % WINDOW_MS + WINDOW_MS
            stamp, due = str(ms).encode(), int((now - begun) * rate)
            answers = []
            for partition in range(PARTITIONS):
                batch = producer.create_batch()
                for number in range(sent + (partition - sent) % PARTITIONS, due, PARTITIONS):
                    campaign, before, after = made[number % len(made)]
                    value = before + stamp + after
                    if batch.append(key=None, value=value, timestamp=ms) is None:
                        answers.append(await producer.send_batch(batch, topic, partition=partition))
                        batch = producer.create_batch()
                        batch.append(key=None, value=value, timestamp=ms)
                    offsets[partition] += 1
                    if campaign is not None:
                        views[f"{window}/{campaign}"] += 1
                answers.append(await producer.send_batch(batch, topic, partition=partition))
            await asyncio.gather(*answers)
            sent, ends[window] = due, list(offsets)
            await asyncio.sleep(max(0.0, TICK_SECONDS - (time.time() - now)))
    finally:
        await producer.stop()
    return {"sent": sent, "seconds": time.time() - begun, "ends": ends, "views": views}


async def positions(store: RedisStore) -> list[int]:
    """Offsets that the store holds, by partition."""
    found = [0] * PARTITIONS
    if await store.partitions():
        for number, (_, stored) in enumerate(await store.standing(range(PARTITIONS))):
            if stored:
                found[number] = sum(msgspec.msgpack.decode(stored)[1].values())
    return found


async def watch(
    store: RedisStore, producer: subprocess.Popen[bytes]
) -> tuple[dict[str, Any], list[tuple[float, list[int]]]]:
    """When the store held which offsets, until it holds all that was sent."""
    seen: list[tuple[float, list[int]]] = []
    sent: dict[str, Any] | None = None
    until = float("inf")
    while time.time() < until:
        seen.append((time.time(), await positions(store)))
        if sent is None and producer.poll() is not None:
            assert producer.stdout is not None
            sent, until = json.loads(producer.stdout.read()), time.time() + END_SECONDS
        if sent is not None and sum(seen[-1][1]) == sent["sent"]:
            return sent, seen
        await asyncio.sleep(POLL_SECONDS)
    raise StreamerError(f"the worker has not read all events {END_SECONDS:.0f} s after the last")


def lags(ends: dict[str, list[int]], seen: list[tuple[float, list[int]]]) -> list[float]:
    """Of each whole window: from its end to when the store held all of its events."""
    found = []
    for window, wanted in list(ends.items())[1:-1]:  # the first and the last are cut
        held = (
            at for at, offsets in seen if all(a >= b for a, b in zip(offsets, wanted, strict=True))
        )
        found.append(next(held) - int(window) / 1000)
    return found


def wrong_windows(path: Path, views: dict[str, int]) -> list[str]:
    """Counts of a window and campaign that are not what was sent, in words."""
    found = dict[str, int]()
    with streamer.connect(path) as live:
        for number in range(CAMPAIGNS):
            campaign = f"campaign-{number}"
            history = live.history("window_impressions", window="10m", campaign=campaign)
            rows: Any = zip(history["time"], history["value"], strict=True)
            for at, value in rows:
                if value:
                    window = int(at.timestamp() * 1000) + WINDOW_MS
                    found[f"{window}/{campaign}"] = int(value)
    keys = {*found, *views}
    return [
        f"{key}: {found.get(key)}, {views.get(key)}"
        for key in keys
        if found.get(key) != views.get(key)
    ]


async def measure(kafka: str, redis: str, rate: int, seconds: float) -> dict[str, Any]:
    """One rate."""
    name = f"yahoo-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "streamer.toml"
        path.write_text(SETTINGS.format(kafka=kafka, redis=redis, name=name), encoding="utf-8")
        await create_topics(kafka, [name, "dead-letters"], PARTITIONS)
        store = RedisStore(load(path).redis)
        environment = worker_environment(str(path))
        worker = subprocess.Popen(worker_command(), env=environment)  # noqa: ASYNC220
        command = [sys.executable, "-m", "benchmarks.yahoo", "--produce", name, "--brokers", kafka]
        command += ["--rates", str(rate), "--seconds", str(seconds)]
        producer = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220
        try:
            before = cpu_seconds(worker.pid)
            sent, seen = await watch(store, producer)
            spent = cpu_seconds(worker.pid) - before
        finally:
            producer.kill()
            worker.terminate()
            worker.wait(END_SECONDS)
            await store.close()
        wrong = wrong_windows(path, sent["views"])
    found = lags(sent["ends"], seen)
    half = len(found) // 2
    later = statistics.median(found[half:]) - statistics.median(found[:half])
    return {
        "events_per_second": round(sent["sent"] / sent["seconds"]),
        "windows": len(found),
        "p50_seconds": share(found, 0.5),
        "p99_seconds": share(found, 0.99),
        "most_seconds": round(max(found), 3),
        "later_seconds": round(later, 3),
        "worker_cores": round(spent / sent["seconds"], 2),
        "wrong": wrong[:3],
    }


async def main(arguments: argparse.Namespace) -> int:
    results = dict[int, dict[str, Any]]()
    with kafka_server(jvm=FAST) as kafka, redis_server() as redis:
        for rate in arguments.rates:
            results[rate] = await measure(kafka.address, redis.address, rate, arguments.seconds)
            print(f"{rate:,} events/s: {json.dumps(results[rate])}", flush=True)
    print(json.dumps(results))
    return 1 if any(result["wrong"] for result in results.values()) else 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rates", type=int, nargs="*", default=RATES)
    options.add_argument("--seconds", type=float, default=120.0, help="of each rate")
    options.add_argument("--produce", metavar="TOPIC", help="only send, to this topic")
    options.add_argument("--brokers", help="for --produce")
    given = options.parse_args()
    if given.produce:
        sent = produce(given.brokers, given.produce, given.rates[0], given.seconds)
        print(json.dumps(asyncio.run(sent)))
    else:
        sys.exit(asyncio.run(main(given)))
