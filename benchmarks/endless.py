"""Memory on an endless stream: the engine over many more events than it keeps.

    python -m benchmarks.endless --events 20000000

Synthetic events at a steady rate of event time through the core and journal (commits into the
store in memory). Prints one JSON line every twentieth of the way: memory has to be flat once
the longest lifetime (lateness + click horizon + skew) has passed. Counts are checked at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.measure import WATCHED
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.synthetic import KindLine, SyntheticTraffic, generate
from streamer.state.journal import Journal
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.state.store import Answer

GATHER = 10_000
COMMIT_EVERY = 10
TS = re.compile(rb'"ts":(\d+)')


def rss_mb() -> float:
    """Resident memory now."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Log:
    """Makes records of lines: offsets go on, record timestamps are by the rule for files."""

    def __init__(self) -> None:
        self.offsets = dict.fromkeys(KINDS, 0)
        self.arrival_ms = 0

    def records(self, lines: list[KindLine]) -> list[Records]:
        """Those of each topic."""
        by_kind: dict[str, tuple[list[int], list[bytes]]] = {}
        for kind, raw in lines:
            found = TS.search(raw)
            if found:
                self.arrival_ms = max(self.arrival_ms, int(found[1]))
            stamps, values = by_kind.setdefault(kind, ([], []))
            stamps.append(self.arrival_ms)
            values.append(raw)
        records = []
        for kind, (stamps, values) in by_kind.items():
            first = self.offsets[kind]
            self.offsets[kind] += len(values)
            offset = np.arange(first, self.offsets[kind])
            records.append(Records(kind, offset, np.array(stamps), values))
        return records


class Run:
    """One partition fed with everything."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.catalogue = Catalogue(self.settings)
        self.partition = Partition(self.settings, self.catalogue, FIXED_KEY)
        self.store = MemoryStore()
        self.log = Log()
        self.journal: Journal | None = None

    def feed(self, lines: list[KindLine]) -> None:
        """Apply some lines."""
        self.partition.apply(self.log.records(lines))

    async def opened(self) -> Journal:
        """The journal of the partition."""
        if self.journal is None:
            claim, stored = await self.store.claim(0)
            self.journal = await load_partition(self.store, 0, self.partition, claim, stored)
        return self.journal

    async def commit(self) -> None:
        """Bring sums over users up to date, and commit what changed."""
        self.partition.refresh_user_sums()
        answer = await self.store.commit(0, (await self.opened()).prepare())
        if answer is not Answer.OK:
            raise AssertionError(answer)

    def report(self, events: int, seconds: float) -> dict[str, object]:
        """Memory of the process, of the core and of the store, in MB, and open rows."""
        sizes = self.partition.core.sizes()
        stored = sum(map(len, self.store.held.get(0, {}).values()))
        return {
            "events": events,
            "seconds": round(seconds, 1),
            "rss_mb": round(rss_mb()),
            "open_impressions": sizes["impressions_rows"],
            "event_ids": sizes["event_ids_rows"],
            "user_days": sizes["user_days_rows"],
            "held_mb": round(held_bytes(self.partition) / 1e6),
            "stored_mb": round(stored / 1e6, 1),
            "blobs": len(self.store.held.get(0, {})),
        }


def held_bytes(partition: Partition) -> int:
    """What the core holds, all in all."""
    sizes = partition.core.sizes()
    return sum(size for name, size in sizes.items() if not name.endswith("_rows"))


def accepted(partition: Partition) -> int:
    """Records that count."""
    return sum(log["counters"]["accepted"] for log in partition.core.state()["logs"].values())


def batches(lines: Iterator[KindLine]) -> Iterator[list[KindLine]]:
    while batch := list(islice(lines, GATHER)):
        yield batch


async def main(arguments: argparse.Namespace) -> int:
    traffic = SyntheticTraffic(events_per_second=arguments.rate, users=200_000)
    run = Run(parse(tomllib.loads(WATCHED)))
    events, started = 0, time.perf_counter()
    step = max(GATHER, arguments.events // 20)
    for i, batch in enumerate(batches(generate(traffic, arguments.events)), 1):
        run.feed(batch)
        events += len(batch)
        if i % COMMIT_EVERY == 0:
            await run.commit()
        if events // step != (events - len(batch)) // step:
            print(json.dumps(run.report(events, time.perf_counter() - started)), flush=True)
    counted = accepted(run.partition)
    print(json.dumps({"counted": counted, "expected": arguments.events}), flush=True)
    return 0 if counted == arguments.events else 1


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--events", type=int, default=20_000_000)
    flags.add_argument("--rate", type=float, default=500.0, help="events per second of event time")
    sys.exit(asyncio.run(main(flags.parse_args())))
