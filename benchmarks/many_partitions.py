"""An exporter over many partitions of many segments, from stored state.

    python -m benchmarks.many_partitions --redis redis://localhost --partitions 64 --segments 1000

Every partition has counted a day: each segment is shown in each step, all windows by default.
Partitions are fed and committed one by one, in two processes, and read by an exporter in a third:
its first reading, then scrapes, before each of which every partition (or the first ``--changed``)
commits five seconds of traffic. Prints one JSON line; the total must be what was produced.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import aiohttp
import numpy as np
from aiohttp import web

from benchmarks.endless import rss_mb
from benchmarks.measure import peak_rss_mb
from benchmarks.page import timed
from benchmarks.paints import paints
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.server.scrape import Bodies, Form
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.partition import Partition
from streamer.state.redis.store import RedisStore
from streamer.state.restore import load_partition
from streamer.worker import interpreter

START_MS = 1_700_000_000_000
HISTORY = (*[48] * 29, *[5] * 9, 2, 1)
"""Minutes of each step of the day."""
STEP_MS = 5_000
ITEMS, CLICKED = 2, 0.08
FEEDERS = 2
CALLS = {
    "readings, a day": "/api/readings?window=24h",
    "course, a day": "/api/history?name=ctr_ratio&window=24h",
    "course by place, a day": "/api/history?name=ctr_ratio&window=24h&split=place",
}
FILLED = "#segments tbody tr|#course .legend li"


def settings_of(arguments: argparse.Namespace) -> Settings:
    """One dimension of so many values beside the total."""
    return parse(
        {
            "redis": {
                "url": arguments.redis,
                "prefix": arguments.prefix,
                "cluster": arguments.cluster,
            },
            "dimensions": [{"name": "place", "max_values": arguments.segments}],
        }
    )


def lines(number: int, from_ms: int, span_ms: int, segments: int) -> Iterator[tuple[str, bytes]]:
    """A slate of each segment, in the order of time, and its clicks."""
    dice = random.Random(number)
    for place in range(segments):
        ts = from_ms + place * span_ms // segments
        ids = b'"ts":%d,"user_id":"u%d","request_id":"r%d-%d"' % (ts, place, number, place)
        items = [b"i%d" % dice.randrange(1_000) for _ in range(ITEMS)]
        shown = b",".join(b'{"item_id":"%s","score":%.2f}' % (i, dice.random()) for i in items)
        labels = b'"place":"p%d","items":[%s]' % (place, shown)
        yield "impressions", b'{"type":"impression",%s,%s}' % (ids, labels)
        if dice.random() < CLICKED:
            yield "clicks", b'{"type":"click",%s,"item_id":"%s"}' % (ids, items[0])


def records(step: int, segments: int, offsets: dict[str, int]) -> list[Records]:
    """Those of a step: of the day, or of five seconds after it."""
    minutes = HISTORY[step] if step < len(HISTORY) else 0
    more = max(0, step - len(HISTORY)) * STEP_MS
    from_ms = START_MS + sum(HISTORY[:step]) * 60_000 + more
    span_ms = minutes * 60_000 or STEP_MS
    by_kind: dict[str, list[bytes]] = {}
    for kind, raw in lines(step, from_ms, span_ms, segments):
        by_kind.setdefault(kind, []).append(raw)
    found = []
    for kind, values in by_kind.items():
        first = offsets.get(kind, 0)
        offsets[kind] = first + len(values)
        stamps = np.full(len(values), from_ms + span_ms)
        found.append(Records(kind, np.arange(first, offsets[kind]), stamps, values))
    return found


def feed(arguments: argparse.Namespace, numbers: range, steps: range) -> None:
    """Take partitions over, one by one, and count and commit some steps in each."""
    settings, offsets = settings_of(arguments), dict[str, int]()
    made = [records(step, arguments.segments, offsets) for step in range(steps.stop)]

    async def fed() -> None:
        store = RedisStore(settings.redis)
        for number in numbers:
            partition = Partition(settings, Catalogue(settings), FIXED_KEY)
            claim, stored = await store.claim(number)
            journal = await load_partition(store, number, partition, claim, stored)
            for step in steps:
                partition.apply(made[step])
            partition.refresh_user_sums()
            await store.commit(number, journal.prepare())
        await store.close()

    asyncio.run(fed())


def fill(arguments: argparse.Namespace, partitions: int, steps: range) -> None:
    """Feed the first partitions in several processes."""
    shares = [range(at, partitions, FEEDERS) for at in range(FEEDERS)]
    with ProcessPoolExecutor(FEEDERS, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(feed, arguments, share, steps) for share in shares]:
            done.result()


async def main(arguments: argparse.Namespace) -> int:
    """Fill the store, then read and scrape it."""
    arguments.prefix = f"bench-{uuid.uuid4().hex[:8]}"
    settings = settings_of(arguments)
    store: Any = RedisStore(settings.redis)
    await store.set_partitions(arguments.partitions)
    begun = time.perf_counter()
    fill(arguments, arguments.partitions, range(len(HISTORY)))
    filled_s = time.perf_counter() - begun
    stored = [int(node["used_memory"]) / 1e6 for node in (await store.info()).values()]
    interpreter.calm()  # as the exporter does
    before_mb = rss_mb()
    exporter, bodies = Exporter(settings, store), Bodies()
    changed = arguments.partitions if arguments.changed is None else arguments.changed
    seconds: list[list[float]] = []
    for scrape in range(arguments.scrapes + 1):
        if scrape:
            step = len(HISTORY) + scrape - 1
            await asyncio.to_thread(fill, arguments, changed, range(step, step + 1))
        at = [time.perf_counter()]
        await exporter.refresh()
        at.append(time.perf_counter())
        result = await exporter.read()
        at.append(time.perf_counter())
        text, _ = await bodies.body(result, Form(is_openmetrics=False, is_gzip=True), b"")
        at.append(time.perf_counter())
        seconds.append([*np.diff(at).tolist(), at[-1] - at[0]])
    names = ("refresh_s", "readout_s", "render_s", "scrape_s")
    warm = [statistics.median(column) for column in zip(*seconds[1:], strict=True)]
    shown = [
        r.value
        for r in result.readings
        if r.name == "streamer_impressions_total" and r.labels["place"] == "all"
    ]
    slates = arguments.segments * ITEMS
    expected = slates * (len(HISTORY) * arguments.partitions + arguments.scrapes * changed)
    figures = {
        "partitions": arguments.partitions,
        "segments": arguments.segments,
        "filled_s": round(filled_s, 1),
        "stored_mb": [round(mb) for mb in stored],
        "first": {name: round(s, 2) for name, s in zip(names, seconds[0], strict=True)},
        **{name: round(s, 2) for name, s in zip(names, warm, strict=True)},
        "exporter_mb": round(rss_mb() - before_mb),
        "exporter_peak_mb": round(peak_rss_mb() - before_mb),
        "series": sum(len(block.present) for block in result.blocks),
        "gzip_mb": round(len(text) / 1e6, 2),
        "counted": shown,
        "expected": expected,
    }
    if arguments.page:
        figures |= await page(exporter)
    print(json.dumps(figures), flush=True)
    await store.close()
    return 0 if shown == [expected] else 1


async def page(exporter: Exporter) -> dict[str, Any]:
    """What the page asks for, and when a browser has filled it."""
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    url = f"http://127.0.0.1:{await listen(runner, '127.0.0.1', 0)}"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        found: dict[str, Any] = {
            name: await timed(session, url + path) for name, path in CALLS.items()
        }
    found["in Chromium"], _ = await asyncio.to_thread(paints, f"{url}/?window=24h", FILLED)
    await runner.cleanup()
    return found


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--redis", required=True, help="a redis:// URL")
    flags.add_argument("--partitions", type=int, default=64)
    flags.add_argument("--segments", type=int, default=1000)
    flags.add_argument("--changed", type=int, help="partitions that commit between two scrapes")
    flags.add_argument("--cluster", action="store_true", help="the URL is of a Redis Cluster")
    flags.add_argument("--page", action="store_true", help="load the page, too")
    flags.add_argument("--scrapes", type=int, default=3)
    sys.exit(asyncio.run(main(flags.parse_args())))
