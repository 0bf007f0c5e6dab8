"""A warm scrape: 64 partitions, 4 windows, all four kinds of events, real Redis.

    python -m benchmarks.scrape --redis redis://localhost                2 x 3 x 8 values, defaults
    python -m benchmarks.scrape --redis redis://localhost --shape wide   25 x 20, everything shown
    python -m benchmarks.scrape --redis redis://localhost --changed 4    few partitions commit

Between two scrapes every partition (or the first ``--changed``) commits fifteen seconds of new
traffic, as a live system would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
import uuid
from typing import Any

import numpy as np

from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import ReadoutCache, readout
from streamer.server.scrape import Bodies, Form
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.partition import Partition
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.restore import load_partition
from streamer.worker import interpreter

START_MS = 1_700_000_000_000


SHAPES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "default": ((2, 3, 8), {}),
    "wide": (
        (25, 20),
        {
            "rollups": [[], ["d0"], ["d1"], ["d0", "d1"]],
            "detailed": [[], ["d0"], ["d1"], ["d0", "d1"]],
            "k": [1, 5, 10],
        },
    ),
}
"""Values of each dimension, and settings of metrics."""
SHARES = {"impressions": 1.0, "clicks": 0.05, "conversions": 0.01, "sessions": 0.1}


class Traffic:
    """Events of all kinds over dimensions with so many values, for one partition."""

    def __init__(self, number: int, values: tuple[int, ...]) -> None:
        self.dice = random.Random(number)
        self.number, self.values = number, values
        self.offsets = dict.fromkeys(SHARES, 0)

    def lines(self, kind: str, n: int, from_ms: int, until_ms: int) -> list[bytes]:
        """Events of a kind; dimensions are those of the user."""
        return [
            json.dumps(
                {
                    "ts": self.dice.randrange(from_ms, until_ms),
                    "user_id": f"u{self.number}-{i // 10 % 500}",
                    **self._dimensions(i // 10 % 500),
                    **self._fields(kind, i),
                }
            ).encode()
            for i in self._places(kind, n)
        ]

    def _dimensions(self, user: int) -> dict[str, str]:
        """All combinations of values come, as many as there are users."""
        found = {}
        for j, count in enumerate(self.values):
            user, value = divmod(user, count)
            found[f"d{j}"] = f"v{value}"
        return found

    def _fields(self, kind: str, i: int) -> dict[str, Any]:
        if kind == "sessions":
            return {"session_id": f"s{i // 20}", "action": self.dice.choice(["view", "end"])}
        item = {"request_id": f"r{i // 10}", "item_id": f"i{i % 10}"}
        if kind == "impressions":
            return {**item, "position": i % 10 + 1, "score": round(self.dice.random(), 3)}
        if kind == "clicks":
            return {**item, "dwell_ms": self.dice.randrange(100, 100_000)}
        return {**item, "value": self.dice.randrange(1, 100)}

    def _places(self, kind: str, n: int) -> list[int]:
        """Impressions in slates of ten; feedback in any of the last hundred slates."""
        first = self.offsets["impressions"]
        if kind == "impressions":
            return list(range(first - n, first))
        return [self.dice.randrange(max(0, first - 1000), first) for _ in range(n)]


class Cluster:
    """All partitions, fed in this process."""

    def __init__(
        self, settings: Settings, store: RedisStore, count: int, values: tuple[int, ...]
    ) -> None:
        self.settings, self.store = settings, store
        self.catalogue = Catalogue(settings)
        self.partitions = [Partition(settings, self.catalogue, FIXED_KEY) for _ in range(count)]
        self.traffic = [Traffic(i, values) for i in range(count)]
        self.journals: list[Journal] = []

    async def start(self) -> None:
        """Claim and load every partition."""
        await self.store.set_partitions(len(self.partitions))
        for i, partition in enumerate(self.partitions):
            claim, stored = await self.store.claim(i)
            self.journals.append(await load_partition(self.store, i, partition, claim, stored))

    async def feed(self, impressions: int, from_ms: int, until_ms: int, changed: int) -> None:
        """So many impressions for each of the first partitions, and fewer of the others."""
        for i, partition in enumerate(self.partitions[:changed]):
            traffic, records = self.traffic[i], []
            for kind, share in SHARES.items():
                n = int(impressions * share)
                first = traffic.offsets[kind]
                traffic.offsets[kind] += n
                stamps = np.full(n, until_ms)
                values = list(traffic.lines(kind, n, from_ms, until_ms))
                offset = np.arange(first, first + n)
                records.append(Records(kind, offset, stamps, values))
            partition.apply(records)
            partition.refresh_user_sums()
            await self.store.commit(i, self.journals[i].prepare())


async def main(arguments: argparse.Namespace) -> int:
    values, metrics = SHAPES[arguments.shape]
    values = tuple(arguments.values or values)
    settings = fresh_settings(arguments.redis, values, metrics)
    store = RedisStore(settings.redis)
    cluster = Cluster(settings, store, arguments.partitions, values)
    await cluster.start()
    now_ms, every = START_MS, arguments.partitions
    for minutes in (*[60] * 23, *[5] * 12):  # a day of history, the last hour in shorter steps
        await cluster.feed(arguments.impressions, now_ms, now_ms + minutes * 60_000, every)
        now_ms += minutes * 60_000
    interpreter.calm()  # as the exporter does
    reader, bodies, kept = Reader(store), Bodies(), ReadoutCache()
    changed = every if arguments.changed is None else arguments.changed
    seconds: list[list[float]] = []
    for _ in range(arguments.scrapes + 1):
        await cluster.feed(arguments.impressions, now_ms, now_ms + 15_000, changed)
        now_ms += 15_000
        at = [time.perf_counter()]
        await reader.refresh()
        at.append(time.perf_counter())
        result = readout(settings, cluster.catalogue, reader.views, None, kept)
        at.append(time.perf_counter())
        text, _ = await bodies.body(result, Form(is_openmetrics=False, is_gzip=False), b"")
        at.append(time.perf_counter())
        zipped, _ = await bodies.body(result, Form(is_openmetrics=False, is_gzip=True), b"")
        at.append(time.perf_counter())
        seconds.append([*np.diff(at).tolist(), at[-1] - at[0]])
    warm = [statistics.median(column) for column in zip(*seconds[1:], strict=True)]
    names = ("refresh_ms", "readout_ms", "render_ms", "gzip_ms", "scrape_ms")
    figures = {n: round(1000 * s, 1) for n, s in zip(names, warm, strict=True)}
    series = sum(len(block.present) for block in result.blocks)
    size = {"series": series, "bytes": len(text), "gzip_bytes": len(zipped)}
    shown = sum(
        r.value
        for r in result.readings
        if r.name == "streamer_impressions_total" and {*r.labels.values()} == {"all"}
    )
    expected = sum(t.offsets["impressions"] for t in cluster.traffic)
    print(json.dumps({**figures, **size, "counted": shown, "expected": expected}), flush=True)
    await store.close()
    return 0 if shown == expected else 1


def fresh_settings(
    url: str, values: tuple[int, ...], metrics: dict[str, Any], **more: Any
) -> Settings:
    """Dimensions d0, d1, …, and an own prefix in the given store."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    dimensions = [{"name": f"d{i}"} for i in range(len(values))]
    redis = {"url": url, "prefix": prefix}
    return parse({"redis": redis, "dimensions": dimensions, "metrics": metrics, **more})


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--redis", required=True, help="a redis:// URL")
    flags.add_argument("--shape", choices=SHAPES, default="default", help="of the dimensions")
    flags.add_argument("--values", type=int, nargs="*", help="of each dimension, instead")
    flags.add_argument("--partitions", type=int, default=64)
    flags.add_argument("--changed", type=int, help="partitions that commit between two scrapes")
    flags.add_argument("--impressions", type=int, default=400, help="a partition, a scrape")
    flags.add_argument("--scrapes", type=int, default=5)
    sys.exit(asyncio.run(main(flags.parse_args())))
