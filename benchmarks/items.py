"""What metrics of items cost: the same log counted without, with coverage and with diversity too.

    python -m benchmarks.items                     a minute of one core

Synthetic traffic is fed in turn to cores that count no items, the default family and both, with an
apply and a commit's worth of stored panes for each batch. Prints CPU seconds of the core, ratios to
the first, and bytes of what is stored; every impression has to be counted, and with a family every
item that was shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import islice

from benchmarks.endless import Log, Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import Traffic, generate
from streamer.state import codec
from streamer.state.panes import PaneBlobs
from streamer.state.snapshot import view_of

BASE = ("traffic", "engagement", "ranking", "scoring", "calibration", "intervals")
FAMILIES = {
    "no items": BASE,
    "coverage": (*BASE, "coverage"),
    "coverage and diversity": (*BASE, "coverage", "diversity"),
}
LINES = 20_000


def records(events: int, items: int) -> list[list[Records]]:
    """The log in batches, as the core is fed."""
    lines, log = generate(Traffic(users=20_000, items=items), events), Log()
    return [log.records(batch) for batch in iter(lambda: list(islice(lines, LINES)), [])]


def seconds(families: tuple[str, ...], log: list[list[Records]], shown: int) -> tuple[float, int]:
    """CPU seconds of the core and of its panes' blobs; their bytes."""
    run = Run(parse({"metrics": {"families": families}}))
    written = 0

    def put(columns: codec.Columns) -> str:
        nonlocal written
        written += len(codec.encode(columns))
        return str(written)

    series = [s for s in run.partition.series if s.declared.shape.startswith("('items'")]
    panes = [PaneBlobs(run.partition.core, s.declared.rings, s.number) for s in series]
    begun = time.process_time()
    for batch in log:
        run.partition.apply(batch)
        run.partition.refresh_user_sums()
        for each in panes:
            each.put(run.partition.stream_ms, put, [])
    took = time.process_time() - begun
    values = {
        reading.name: reading.value
        for reading in readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
        if set(reading.labels.values()) <= {"all", "24h"}
    }
    if "coverage" in families and values["streamer_window_items"] != shown:
        raise AssertionError(f"{families}: {shown} items were shown")
    return took, written


def main(events: int, rounds: int, items: int) -> None:
    log = records(events, items)
    traffic = generate(Traffic(users=20_000, items=items), events)
    impressions = [line for kind, line in traffic if kind == "impressions" and line[-1:] == b"}"]
    lines = [json.loads(line) for line in impressions]
    shown = {
        item["item_id"]
        for line in lines
        if line.get("user_id")
        for item in line.get("items", [line])
    }
    took = [[seconds(f, log, len(shown)) for f in FAMILIES.values()] for _ in range(rounds)]
    for at, name in enumerate(FAMILIES):
        ratio = statistics.median(each[at][0] / each[0][0] for each in took)
        spent = statistics.median(each[at][0] for each in took)
        stored = took[0][at][1] / len(log) / 1e3
        print(
            f"{name}: {spent:.2f} CPU s for {events:,} events and {len(shown):,} items, "
            f"{ratio:.2f}; {stored:.0f} kB of items a commit"
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--items", type=int, default=2_000)
    arguments = options.parse_args()
    main(arguments.events, arguments.rounds, arguments.items)
