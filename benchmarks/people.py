"""What the table of users takes: memory, bytes in the store, and the time to sum and recover it.

    python -m benchmarks.people --users 150000 --items 20

A day of synthetic events through the core and journal in one partition, each user shown so
many items on average. Prints one JSON line; what is recovered must read as what was stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import dataclass

from benchmarks.endless import COMMIT_EVERY, Run, batches, rss_mb
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings import limits
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state.manifest import decode
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.state.snapshot import view_of

DAY_SECONDS = 86_400


def traffic_of(users: int, items: int) -> tuple[SyntheticTraffic, int]:
    """A day in which so many users are shown so many items each, and the number of its events."""
    plain = SyntheticTraffic(users=users, user_exponent=0.0, events_per_second=1000.0)
    events_per_item = 1000.0 / (plain.slates_per_second() * plain.slate)
    events = int(users * items * events_per_item)
    rate = events / DAY_SECONDS
    return SyntheticTraffic(users=users, user_exponent=0.0, events_per_second=rate), events


@dataclass
class Fed:
    """What feeding a day took."""

    run: Run
    events: int = 0
    seconds: float = 0.0
    filings: int = 0
    refresh_seconds: float = 0.0


async def feed(traffic: SyntheticTraffic, events: int) -> Fed:
    """A day through the core and journal; users are filed as a busy worker does."""
    fed, next_at = Fed(Run()), 0.0
    started = time.perf_counter()
    for i, batch in enumerate(batches(generate(traffic, events)), 1):
        fed.run.feed(batch)
        fed.events += len(batch)
        if i % COMMIT_EVERY == 0:
            begun = time.perf_counter()
            if begun >= next_at:
                fed.run.partition.refresh_user_sums()
                spent = time.perf_counter() - begun
                fed.filings, fed.refresh_seconds = fed.filings + 1, fed.refresh_seconds + spent
                next_at = begun + limits.USER_REFRESH_PARTS * spent
            await fed.run.commit()
    fed.seconds = time.perf_counter() - started
    fed.run.partition.refresh_user_sums()
    await fed.run.commit()
    return fed


async def take_over(run: Run) -> tuple[Partition, float, float]:
    """Another worker's partition, and the seconds to load it and to file its users."""
    partition = Partition(run.settings, run.catalogue, run.partition.key)
    begun = time.perf_counter()
    claim, found = await run.store.claim(0)
    await load_partition(run.store, 0, partition, claim, found)
    loaded = time.perf_counter()
    partition.refresh_user_sums()
    return partition, loaded - begun, time.perf_counter() - loaded


async def measure(users: int, items: int) -> dict[str, object]:
    """All figures. AssertionError where what is recovered does not read as what was stored."""
    traffic, events = traffic_of(users, items)
    before_mb = rss_mb()
    fed = await feed(traffic, events)
    run, grown_mb = fed.run, rss_mb() - before_mb
    manifest, held = decode((await run.store.read(0)).manifest), run.store.held[0]
    stored = {
        name: sum(len(held[ref.name]) for ref in refs if ref.name)
        for name, refs in manifest.tables.items()
    }
    partition, load_seconds, file_seconds = await take_over(run)
    catalogue = Catalogue(run.settings)
    ours, theirs = (
        readout(run.settings, catalogue, [view_of(p)]) for p in (partition, run.partition)
    )
    if ours.as_json() != theirs.as_json():
        raise AssertionError("what was recovered does not read as what was stored")
    sizes = run.partition.core.sizes()
    rows = sizes["users_rows"]
    return {
        "users": users,
        "events": fed.events,
        "rows": rows,
        "sample_bits": run.partition.core.counters()["sample_bits"],
        "memory_bytes_a_row": round(sizes["users"] / rows, 1),
        "stored_bytes_a_row": round(stored["user_items"] / rows, 1),
        "stored_rows_a_row": round(sum(r.rows for r in manifest.tables["user_items"]) / rows, 2),
        "blobs": len(manifest.tables["user_items"]),
        "sums_stored_bytes": sum(len(held[name]) for name in manifest.users.values()),
        "sessions": [sizes["sessions_rows"], stored["sessions"]],
        "viewings": [sizes["viewings_rows"], stored["viewings"]],
        "rss_grown_mb": round(grown_mb),
        "microseconds_an_event": round(1e6 * fed.seconds / fed.events, 2),
        "filings": fed.filings,
        "filing_share": round(fed.refresh_seconds / fed.seconds, 3),
        "load_seconds": round(load_seconds, 2),
        "file_all_seconds": round(file_seconds, 2),
    }


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--users", type=int, default=150_000)
    flags.add_argument("--items", type=int, default=20, help="shown to a user in a day, on average")
    chosen = flags.parse_args()
    print(json.dumps(asyncio.run(measure(chosen.users, chosen.items))))
