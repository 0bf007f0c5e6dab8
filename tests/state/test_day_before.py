"""The day before across restarts with other settings: it is known once it was counted for so long.

0 h                 9:31           30 h   36 h             63 h
|-- not kept -------|-- kept ------|------|- not, kept ----|
                    a window of 1 h at 35:01 asks for 10:02 to 11:01
"""

from __future__ import annotations

import json
from typing import Any

from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.reader import Reader
from streamer.state.restore import load_partition
from tests.support.engines import Engines, LogChunk, LogRecord
from tests.support.journals import Run, commit, start

HOUR_MS = 3_600_000
T0 = 1_699_920_000_000
"""Midnight."""
PARTS = [{"metric": "ctr_ratio", "against": "day_before"}, {"metric": "ctr_ratio"}]
WINDOWS = {"lengths": ["1h", "24h"]}
WITHOUT = parse({"windows": WINDOWS})
WITH = parse(
    {
        "windows": {**WINDOWS, "day_before": ["1h"]},
        "composites": [{"name": "c", "parts": PARTS}],
    }
)


class Worker:
    """One partition that is fed hour by hour."""

    def __init__(self, store: MemoryStore, run: Run) -> None:
        self.store, self.run = store, run
        self.offsets = {"impressions": 0, "clicks": 0}

    async def restart(self, settings: Any) -> None:
        engines = Engines(settings, 1)
        partition = Partition(settings, engines.catalogue, engines.key)
        claim, stored = await self.store.claim(0)
        journal = await load_partition(self.store, 0, partition, claim, stored)
        engines.partitions[0] = partition
        self.run = Run(engines, [journal])

    async def feed(self, first: int, stop: int) -> None:
        """In each hour 4 impressions, and as many clicks as the rest of the hour by 3, and 1."""
        for hour in range(first, stop):
            self.feed_some("impressions", hour, 4)
            self.feed_some("clicks", hour, hour % 3 + 1)
            await commit(self.store, self.run, 0)

    def feed_some(self, kind: str, hour: int, n: int, minute: int = 1) -> None:
        at_ms = T0 + hour * HOUR_MS + minute * 60_000
        event = json.dumps({"ts": at_ms, "user_id": "u", "item_id": "i"}).encode()
        records = [LogRecord(kind, 0, self.offsets[kind] + i, at_ms, event) for i in range(n)]
        self.offsets[kind] += n
        self.run.engines.feed(LogChunk(kind, 0, records))

    async def composite(self) -> float | None:
        """As a reader of the store has it."""
        reader = Reader(self.store)
        await reader.refresh()
        found = readout(self.run.engines.settings, self.run.engines.catalogue, reader.views)
        values = [
            r.value
            for r in found.readings
            if r.name == "streamer_composite"
            and (r.labels["window"], r.labels["maturity"]) == ("1h", "mature")
            and r.labels["variant"] == r.labels["surface"] == "all"
        ]
        return float(values[0]) if values else None


async def test_it_is_known_once_it_was_counted_for_a_day_and_a_window() -> None:
    store = MemoryStore()
    worker = Worker(store, await start(store, WITHOUT, 1))
    await worker.feed(0, 10)
    worker.feed_some("impressions", 9, 1, 31)
    await commit(store, worker.run, 0)
    await worker.restart(WITH)
    await worker.feed(10, 30)
    assert await worker.composite() is None
    await worker.restart(WITH)
    await worker.feed(30, 35)
    assert await worker.composite() is None  # it asks for 9:02, and 9:31 is the first that is known
    await worker.feed(35, 36)
    assert await worker.composite() == (1 + 3 / 4) / 2  # 35 and 11 have 3 clicks each
    await worker.restart(WITHOUT)
    panes = decode_rings(worker)
    assert panes == {1, 2, 9}
    await worker.feed(36, 37)
    await worker.restart(WITH)
    assert await worker.composite() is None
    await worker.feed(37, 63)
    assert await worker.composite() == (1 + 3 / 4) / 2


def decode_rings(worker: Worker) -> set[int]:
    """The rings that have panes in memory."""
    return {number >> 32 for number in worker.run.engines.partitions[0].core.live_panes(None)}
