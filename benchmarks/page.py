"""What the page asks an exporter for: 64 partitions, 500 segments, windows up to a week.

    python -m benchmarks.page --redis redis://localhost

Of each call the first answer after a commit, the median of later ones, and its bytes in gzip. Then
the medians of ten loads of the page in Chromium, with an empty cache: the first and the largest
contentful paint, and when windows, course, alerts and an experiment are filled.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import statistics
import sys
import time
from typing import Any

import aiohttp
from aiohttp import web

from benchmarks.paints import paints
from benchmarks.scrape import SHAPES, START_MS, Cluster, fresh_settings
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.state.redis.store import RedisStore
from streamer.worker import interpreter

HOUR_MS = 3_600_000
WINDOWS = ["1h", "24h", "7d"]
EXPERIMENT = {
    "name": "ranker",
    "dimension": "d1",
    "control": "v0",
    "split": {"v0": 1, "v1": 1},
    "start": datetime.datetime.fromtimestamp(START_MS / 1000, datetime.UTC).date(),
    "metrics": [{"name": "ctr_ratio"}, {"name": "ndcg_ratio@10", "margin": 0.02}],
    "explore": ["d0"],
}
ALERT = {"name": "ctr", "window": "1h", "segments": ["d0"], "drop": 0.1}
STEPS = 160
"""Hours of traffic: fewer than a window of a week always covers."""
CALLS = {
    "page": "/",
    "health": "/api/health",
    "readings by d0, a day": "/api/readings?window=24h&d1=all",
    "readings by d0 and d1, a day": "/api/readings?window=24h",
    "alerts by d0": "/api/alerts",
    "an alert over time": "/api/alerts/ctr",
    "an experiment": "/api/experiments/ranker",
    "an experiment by d0": "/api/experiments/ranker?by=d0",
    "metrics": "/api/metrics",
    "course, a week": "/api/history?name=ctr_ratio&window=7d",
    "course by d0, a week": "/api/history?name=ctr_ratio&window=7d&split=d0",
    "course of NDCG by d0, a week": "/api/history?name=ndcg_ratio&window=7d&split=d0&k=10",
}
REPEATS = 7


async def main(arguments: argparse.Namespace) -> int:
    values, metrics = SHAPES["wide"]
    more = {"windows": {"lengths": WINDOWS}, "experiments": [EXPERIMENT], "alerts": [ALERT]}
    settings = fresh_settings(arguments.redis, values, metrics, **more)
    store = RedisStore(settings.redis)
    cluster = Cluster(settings, store, arguments.partitions, values)
    await cluster.start()
    now_ms = START_MS
    for _ in range(STEPS):
        await cluster.feed(arguments.impressions, now_ms, now_ms + HOUR_MS, arguments.partitions)
        now_ms += HOUR_MS
    interpreter.calm()
    runner = web.AppRunner(application(Exporter(settings, RedisStore(settings.redis))))
    await runner.setup()
    url = f"http://127.0.0.1:{await listen(runner, '127.0.0.1', 0)}"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        figures: dict[str, Any] = {
            name: await timed(session, url + path) for name, path in CALLS.items()
        }
        await cluster.feed(arguments.impressions, now_ms, now_ms + HOUR_MS, arguments.partitions)
        after = {
            f"{name}, after a commit": await timed(session, url + path)
            for name, path in CALLS.items()
            if "/api/history" in path
        }
    async with aiohttp.ClientSession() as session:
        counted = await impressions(session, url)
    expected = sum(t.offsets["impressions"] for t in cluster.traffic)
    painted, shown = await asyncio.to_thread(paints, f"{url}/?window=7d")
    await runner.cleanup()
    await store.close()
    figures |= {**after, "in Chromium": painted, "counted": counted, "expected": expected}
    print(json.dumps(figures), flush=True)
    return 0 if {counted, *shown} == {expected} else 1


async def timed(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    """Milliseconds of the first answer and of the median of others, and bytes over the wire."""
    seconds, size = [], 0
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        async with session.get(url, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.status == 200, url
            size = len(await answer.read())
        seconds.append(time.perf_counter() - started)
    first, *others = (1000 * each for each in seconds)
    median = statistics.median(others)
    return {"first_ms": round(first, 1), "ms": round(median, 1), "gzip_bytes": size}


async def impressions(session: aiohttp.ClientSession, url: str) -> int:
    """All impressions of the week, as the points of their course add up."""
    query = "name=window_impressions&window=7d&points=60"
    async with session.get(f"{url}/api/history?{query}") as answer:
        (line,) = (await answer.json())["lines"]
    return int(sum(value or 0 for value in line["values"]))


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--redis", required=True, help="a redis:// URL")
    flags.add_argument("--partitions", type=int, default=64)
    flags.add_argument("--impressions", type=int, default=300, help="a partition, an hour")
    sys.exit(asyncio.run(main(flags.parse_args())))
