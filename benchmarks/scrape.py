"""A warm scrape: 64 partitions, 4 windows, 500 segments, real Redis.

    python -m benchmarks.scrape --redis redis://localhost

Between two scrapes every partition commits a second of new traffic, as a live system would.
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

import numpy as np

from streamer import collector, exposition
from streamer.batch import assemble
from streamer.config import Settings, parse
from streamer.decode import Decoder
from streamer.engine.partition import Partition
from streamer.metrics.catalogue import Catalogue
from streamer.readout.readout import readout
from streamer.store.journal import Journal, adopt
from streamer.store.reader import Reader
from streamer.store.redis import RedisStore

START_MS = 1_700_000_000_000


class Traffic:
    """Impressions and clicks over the given number of segments, for one partition."""

    def __init__(self, number: int, variants: int, surfaces: int) -> None:
        self.dice = random.Random(number)
        self.number, self.variants, self.surfaces = number, variants, surfaces
        self.offsets = {"impressions": 0, "clicks": 0}

    def lines(self, kind: str, n: int, from_ms: int, until_ms: int) -> list[bytes]:
        return [
            b'{"ts":%d,"user_id":"u%d-%d","request_id":"r%d","item_id":"i%d","position":%d,'
            b'"score":%.3f,"dwell_ms":%d,"variant":"v%d","surface":"s%d"}'
            % (
                self.dice.randrange(from_ms, until_ms),
                *(self.number, i // 10 % 500, i // 10, self.dice.randrange(20)),
                *(self.dice.randint(1, 10), self.dice.random()),
                *(self.dice.randrange(100, 100_000), self.dice.randrange(self.variants)),
                self.dice.randrange(self.surfaces),
            )
            for i in self._places(kind, n)
        ]

    def _places(self, kind: str, n: int) -> list[int]:
        """Impressions in slates of ten; clicks in any of the last hundred slates."""
        first = self.offsets["impressions"]
        if kind == "impressions":
            return list(range(first - n, first))
        return [self.dice.randrange(max(0, first - 1000), first) for _ in range(n)]


class Cluster:
    """All partitions, fed in this process."""

    def __init__(self, settings: Settings, store: RedisStore, count: int) -> None:
        self.settings, self.store = settings, store
        self.catalogue = Catalogue(settings)
        self.decoder = Decoder(settings)
        self.partitions = [Partition(settings, self.catalogue) for _ in range(count)]
        self.traffic = [Traffic(i, 25, 20) for i in range(count)]
        self.journals: list[Journal] = []

    async def start(self) -> None:
        await self.store.set_partitions(len(self.partitions))
        for i, partition in enumerate(self.partitions):
            claim, stored = await self.store.claim(i)
            self.journals.append(await adopt(self.store, i, partition, claim, stored))

    async def feed(self, impressions: int, from_ms: int, until_ms: int) -> None:
        """The same number of impressions for each partition, and a twentieth of clicks."""
        for i, partition in enumerate(self.partitions):
            traffic, columns = self.traffic[i], []
            for kind, n in (("impressions", impressions), ("clicks", impressions // 20)):
                first = traffic.offsets[kind]
                traffic.offsets[kind] += n
                stamps = np.full(n, until_ms)
                values = list(traffic.lines(kind, n, from_ms, until_ms))
                offset = np.arange(first, first + n)
                columns.append(self.decoder.chunk(kind, offset, stamps, values))
            partition.apply(assemble(columns), self.decoder.interner)
            partition.file_users()
            await self.store.commit(i, self.journals[i].prepare())


async def main(arguments: argparse.Namespace) -> int:
    settings = fresh_settings(arguments.redis)
    store = RedisStore(settings.redis)
    cluster = Cluster(settings, store, arguments.partitions)
    await cluster.start()
    now_ms = START_MS
    for _ in range(12):  # an hour of history, five minutes at a time
        await cluster.feed(arguments.impressions * 10, now_ms, now_ms + 300_000)
        now_ms += 300_000
    collector.calm()  # as the exporter does
    reader = Reader(store)
    seconds, text = [], ""
    for _ in range(arguments.scrapes + 1):
        await cluster.feed(arguments.impressions, now_ms, now_ms + 15_000)
        now_ms += 15_000
        started = time.perf_counter()
        await reader.refresh()
        read = time.perf_counter()
        result = readout(settings, cluster.catalogue, reader.views)
        computed = time.perf_counter()
        text = exposition.render(result)
        done = time.perf_counter()
        seconds.append((read - started, computed - read, done - computed, done - started))
    warm = [statistics.median(column) for column in zip(*seconds[1:], strict=True)]
    shown = sum(
        r.value
        for r in result.readings
        if r.name == "streamer_impressions_total"
        and r.labels == {"variant": "all", "surface": "all"}
    )
    expected = sum(t.offsets["impressions"] for t in cluster.traffic)
    names = ("refresh_ms", "readout_ms", "render_ms", "scrape_ms")
    figures = {n: round(1000 * s, 1) for n, s in zip(names, warm, strict=True)}
    segments = len(
        {
            (r.labels["variant"], r.labels["surface"])
            for r in result.readings
            if "variant" in r.labels
        }
    )
    size = {"series": len(result.readings), "segments": segments, "bytes": len(text)}
    print(json.dumps({**figures, **size, "counted": shown, "expected": expected}), flush=True)
    await store.close()
    return 0 if shown == expected else 1


def fresh_settings(url: str) -> Settings:
    """Defaults with an own prefix in the given store."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    return parse({"redis": {"url": url, "prefix": prefix}})


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--redis", required=True, help="a redis:// URL")
    flags.add_argument("--partitions", type=int, default=64)
    flags.add_argument("--impressions", type=int, default=400, help="a partition, a scrape")
    flags.add_argument("--scrapes", type=int, default=5)
    sys.exit(asyncio.run(main(flags.parse_args())))
