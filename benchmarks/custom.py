"""What custom metrics cost: the same log counted without and with two of them.

    python -m benchmarks.custom                    half a minute of one core

Synthetic traffic whose impressions carry `latency_ms` is fed in turn to cores without custom
metrics, with two of them, and with their quantiles. Prints CPU seconds of the core and ratios to
the first; every impression and every time on an item has to be counted.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice
from typing import Any

from benchmarks.endless import Log, Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import Traffic, generate
from streamer.state.snapshot import view_of


def _two(**more: Any) -> list[dict[str, Any]]:
    return [
        {"name": "latency", "kind": "impressions", "field": "latency_ms", **more},
        {"name": "watched", "kind": "clicks", "field": "dwell_ms", **more},
    ]


CUSTOM = {"none": [], "two": _two(), "two with quantiles": _two(quantiles=True)}
LINES = 20_000
_AFTER = b'"type":"impression",'


def records(events: int) -> list[list[Records]]:
    """The log in batches, as the core is fed."""
    log = Log()
    lines = (
        (kind, line.replace(_AFTER, b'%b"latency_ms":%d.5,' % (_AFTER, number % 997)))
        for number, (kind, line) in enumerate(generate(Traffic(users=20_000), events))
    )
    return [log.records(batch) for batch in iter(lambda: list(islice(lines, LINES)), [])]


def seconds(custom: list[dict[str, Any]], log: list[list[Records]]) -> float:
    """CPU seconds of the core, users' sums included."""
    run = Run(parse({"custom": custom}))
    begun = time.process_time()
    for batch in log:
        run.partition.apply(batch)
        run.partition.refresh_user_sums()
    took = time.process_time() - begun
    values = {
        (reading.name, reading.labels.get("custom", "")): reading.value
        for reading in readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
        if {reading.labels.get(name) for name in ("variant", "surface")} == {"all"}
        and reading.labels.get("window") == "24h"
    }
    shown = values["streamer_window_impressions", ""]
    if custom and values["streamer_window_custom_events", "latency"] != shown:
        raise AssertionError(f"not every one of {shown} impressions has a latency")
    if custom and values["streamer_custom_mean", "watched"] <= 0:
        raise AssertionError("no time on items was counted")
    return took


def main(events: int, rounds: int) -> None:
    log = records(events)
    took = [[seconds(custom, log) for custom in CUSTOM.values()] for _ in range(rounds)]
    for at, name in enumerate(CUSTOM):
        ratio = statistics.median(each[at] / each[0] for each in took)
        spent = statistics.median(each[at] for each in took)
        print(f"{name}: {spent:.2f} CPU s for {events:,} events, {ratio:.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    main(arguments.events, arguments.rounds)
