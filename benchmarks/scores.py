"""What metrics of scores cost: the same log counted without, with some and with all of them.

    python -m benchmarks.scores                    half a minute of one core

Synthetic traffic with a score on every item is fed in turn to cores that count no scores, the
default family and both. Prints CPU seconds of the core and ratios to the first; every impression
has to be counted, and with a family every score.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice

from benchmarks.endless import Log, Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import Traffic, generate
from streamer.state.snapshot import view_of

BASE = ("traffic", "engagement", "ranking", "scoring", "intervals")
FAMILIES = {
    "no scores": BASE,
    "calibration": (*BASE, "calibration"),
    "calibration and scores": (*BASE, "calibration", "scores"),
}
LINES = 20_000


def records(events: int) -> list[list[Records]]:
    """The log in batches, as the core is fed."""
    lines, log = generate(Traffic(users=20_000), events), Log()
    return [log.records(batch) for batch in iter(lambda: list(islice(lines, LINES)), [])]


def seconds(families: tuple[str, ...], log: list[list[Records]]) -> float:
    """CPU seconds of the core, users' sums included."""
    run = Run(parse({"metrics": {"families": families}}))
    begun = time.process_time()
    for batch in log:
        run.partition.apply(batch)
        run.partition.refresh_user_sums()
    took = time.process_time() - begun
    values = {
        reading.name: reading.value
        for reading in readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
        if set(reading.labels.values()) <= {"all", "24h", "provisional"}
    }
    shown = values["streamer_window_impressions"]
    if "calibration" in families and values["streamer_window_scored_impressions"] != shown:
        raise AssertionError(f"{families}: not every one of {shown} impressions has a score")
    return took


def main(events: int, rounds: int) -> None:
    log = records(events)
    took = [[seconds(families, log) for families in FAMILIES.values()] for _ in range(rounds)]
    for at, name in enumerate(FAMILIES):
        ratio = statistics.median(each[at] / each[0] for each in took)
        spent = statistics.median(each[at] for each in took)
        print(f"{name}: {spent:.2f} CPU s for {events:,} events, {ratio:.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    main(arguments.events, arguments.rounds)
