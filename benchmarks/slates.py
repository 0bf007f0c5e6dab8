"""What open slates take: bytes a shown item in memory and in the store, with and without ranking.

    python -m benchmarks.slates --slates 200000

Half an hour of synthetic slates of ten through the core and journal in one partition: all of
them open at the end. Prints one JSON line; what is recovered must read as what was stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json

from benchmarks.endless import COMMIT_EVERY, Run, batches
from benchmarks.people import take_over
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state.manifest import decode
from streamer.state.snapshot import view_of

OPEN_SECONDS = 1800


async def measure(slates: int, families: list[str]) -> dict[str, float]:
    """Figures of one set of families."""
    run = Run(parse({"metrics": {"families": families}}))
    events = slates * 10
    traffic = SyntheticTraffic(events_per_second=events / OPEN_SECONDS)
    for i, batch in enumerate(batches(generate(traffic, events)), 1):
        run.feed(batch)
        if i % COMMIT_EVERY == 0:
            await run.commit()
    run.partition.refresh_user_sums()
    await run.commit()
    held = run.store.held[0]
    manifest = decode((await run.store.read(0)).manifest)
    stored = {
        name: sum(len(held[ref.name]) for ref in manifest.tables[name])
        for name in ("impressions", "retained")
    }
    recovered, load_seconds, _ = await take_over(run)
    ours, theirs = (
        readout(run.settings, Catalogue(run.settings), [view_of(p)])
        for p in (recovered, run.partition)
    )
    if ours.as_json() != theirs.as_json():
        raise AssertionError("what was recovered does not read as what was stored")
    sizes = run.partition.core.sizes()
    rows, open_slates = sizes["impressions_rows"], sizes["slates_rows"]
    held_bytes = sizes["impressions"] + sizes["slates"]
    panes = sum(len(held[name]) for name in manifest.panes)
    return {
        "open_slates": open_slates,
        "shown_items": rows,
        "memory_bytes_an_item": round(held_bytes / rows, 1),
        "stored_bytes_an_item": round(stored["impressions"] / rows, 1),
        "memory_mb_a_million_slates": round(held_bytes / open_slates),
        "stored_mb_a_million_slates": round(stored["impressions"] / open_slates),
        "retained_memory_bytes_an_item": round(sizes["retained"] / rows, 1),
        "retained_stored_bytes_an_item": round(stored["retained"] / rows, 1),
        "panes_memory_mb": round(sizes["panes"] / 1e6, 1),
        "panes_stored_mb": round(panes / 1e6, 1),
        "load_seconds": round(load_seconds, 2),
    }


async def main(slates: int) -> dict[str, dict[str, float]]:
    """Both, side by side."""
    some = ["traffic", "engagement"]
    return {
        "with_ranking": await measure(slates, [*some, "ranking", "scoring"]),
        "without": await measure(slates, some),
    }


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--slates", type=int, default=200_000)
    print(json.dumps(asyncio.run(main(flags.parse_args().slates))))
