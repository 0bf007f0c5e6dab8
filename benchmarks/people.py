"""What the table of users takes: memory, bytes in the store, and the time to file and to adopt it.

    python -m benchmarks.people --users 200000 --items 30

A day of synthetic events through decoder, engine and journal in one partition, each user shown so
many items on average. Prints one JSON line; the state that is adopted must be the one stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time

from benchmarks.endless import COMMIT_EVERY, Run, batches, rss_mb
from streamer import limits
from streamer.canonical import canonical
from streamer.engine.partition import Partition
from streamer.sources.synthetic import Traffic, generate
from streamer.store.journal import adopt
from streamer.store.manifest import decode

DAY_SECONDS = 86_400


def traffic_of(users: int, items: int) -> tuple[Traffic, int]:
    """A day in which so many users are shown so many items each, and the number of its events."""
    plain = Traffic(users=users, user_exponent=0.0, events_per_second=1000.0)
    events_per_item = 1000.0 / (plain.slates_per_second() * plain.slate)
    events = int(users * items * events_per_item)
    rate = events / DAY_SECONDS
    return Traffic(users=users, user_exponent=0.0, events_per_second=rate), events


async def measure(users: int, items: int) -> dict[str, object]:
    traffic, events = traffic_of(users, items)
    run, before_mb, fed, filings = Run(), rss_mb(), 0, 0
    filing_seconds, next_at = 0.0, 0.0
    started = time.perf_counter()
    for i, batch in enumerate(batches(generate(traffic, events)), 1):
        run.feed(batch)
        fed += len(batch)
        if i % COMMIT_EVERY == 0:
            begun = time.perf_counter()
            if begun >= next_at:
                run.partition.file_users()
                spent = time.perf_counter() - begun
                filings, filing_seconds = filings + 1, filing_seconds + spent
                next_at = begun + limits.FILING_PARTS * spent
            await run.commit()
    seconds = time.perf_counter() - started
    run.partition.file_users()
    await run.commit()
    table, rss = run.partition.users, rss_mb()
    manifest = decode((await run.store.read(0)).manifest)
    held = run.store.held[0]
    stored = {
        name: sum(len(held[ref.name]) for ref in refs if ref.name)
        for name, refs in manifest.tables.items()
    }
    state = canonical(run.partition) if events < 2_000_000 else None
    begun = time.perf_counter()
    partition = Partition(run.settings, run.partition.collector)
    claim, found = await run.store.claim(0)
    await adopt(run.store, 0, partition, claim, found)
    loaded = time.perf_counter()
    partition.file_users()
    adopted = time.perf_counter()
    if state is not None and canonical(partition) != state:
        raise AssertionError("what was adopted is not what was stored")
    rows = len(table.items)
    return {
        "users": users,
        "events": fed,
        "rows": rows,
        "sample_bits": table.sample_bits,
        "memory_bytes_a_row": round(table.items.nbytes / rows, 1),
        "stored_bytes_a_row": round(stored["user_items"] / rows, 1),
        "stored_rows_a_row": round(sum(r.rows for r in manifest.tables["user_items"]) / rows, 2),
        "blobs": len(manifest.tables["user_items"]),
        "sums_stored_bytes": sum(len(held[name]) for name in manifest.users.values()),
        "sessions": [len(partition.sessions.rows), stored["sessions"]],
        "viewings": [len(partition.viewings.rows), stored["viewings"]],
        "rss_grown_mb": round(rss - before_mb),
        "microseconds_an_event": round(1e6 * seconds / fed, 2),
        "filings": filings,
        "filing_share": round(filing_seconds / seconds, 3),
        "load_seconds": round(loaded - begun, 2),
        "file_all_seconds": round(adopted - loaded, 2),
    }


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--users", type=int, default=200_000)
    flags.add_argument("--items", type=int, default=20, help="shown to a user in a day, on average")
    chosen = flags.parse_args()
    print(json.dumps(asyncio.run(measure(chosen.users, chosen.items))))
    sys.exit(0)
