"""How long recovery takes, how long a commit stops feeding, and how long other threads wait.

python -m benchmarks.pauses

A partition of a million open impressions, fed and committed as a worker does. A second thread wakes
every millisecond all the while: how late it wakes is how long it waited for the interpreter.
Prints one JSON object; the partition that was recovered reads as the one that was stored.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from itertools import islice

from benchmarks.endless import Run, batches
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from tests.support.canonical import canonical

IMPRESSIONS = 1_000_000
NAP_SECONDS = 0.001


class Waits:
    """A thread that sleeps a millisecond at a time, and how much longer its longest one took."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._is_done = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._is_done:
            started = time.perf_counter()
            time.sleep(NAP_SECONDS)
            late_ms = (time.perf_counter() - started - NAP_SECONDS) * 1000
            self.longest_ms = max(self.longest_ms, late_ms)

    def __enter__(self) -> Waits:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_done = True
        self._thread.join()


async def main() -> None:
    run = Run(Settings())
    traffic = SyntheticTraffic(users=100_000, events_per_second=5000.0)
    pauses_ms, feeding, committing = [], Waits(), Waits()
    lines = iter(list(batches(generate(traffic, 6 * IMPRESSIONS // 5))))
    with feeding:
        while run.partition.core.sizes()["impressions_rows"] < IMPRESSIONS:
            for batch in islice(lines, 10):
                run.feed(batch)
            run.partition.refresh_user_sums()
            started = time.perf_counter()
            commit = (await run.opened()).prepare()
            pauses_ms.append((time.perf_counter() - started) * 1000)
            await run.store.commit(0, commit)
    stored = await run.store.read(0)
    recovered = Partition(run.settings, Catalogue(run.settings), FIXED_KEY)
    with committing:
        started = time.perf_counter()
        await load_partition(run.store, 0, recovered, "another", stored)
        seconds = time.perf_counter() - started
    assert canonical(recovered) == canonical(run.partition), "what was recovered differs"
    result = {
        "open_impressions": run.partition.core.sizes()["impressions_rows"],
        "recovery_seconds": round(seconds, 2),
        "commits": len(pauses_ms),
        "longest_commit_ms": round(max(pauses_ms), 1),
        "longest_wait_ms": round(feeding.longest_ms, 1),
        "longest_wait_in_recovery_ms": round(committing.longest_ms, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
