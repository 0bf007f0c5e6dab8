"""What a profile-guided build of the core is trained with: `maturin build --pgo` runs it.

    python benchmarks/training.py

Clean and troubled logs, as Kafka's record batches, are counted with the default settings, with
traffic only, and with an experiment, alerts and every family of metrics; the state is committed as
a worker does. Every event has to be counted.
"""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # what is trained is what is installed, not the folder streamer/
    sys.path = [*sys.path[1:], str(Path(__file__).parents[1])]

from benchmarks.endless import Run, accepted
from benchmarks.measure import TROUBLED, WATCHED
from benchmarks.raw_log import RawLog
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate

EVENTS = 200_000
EVERYTHING = f"""
[metrics]
families = [
    "traffic", "engagement", "ranking", "scoring", "intervals", "calibration", "coverage", "scores",
    "diversity",
]
{WATCHED}
"""
LOADS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ('[metrics]\nfamilies = ["traffic"]', {}),
    ("", {}),
    ("", {"items_form_share": 1.0}),
    (WATCHED, TROUBLED),
    (EVERYTHING, {}),
)
"""Settings, and what differs from the usual traffic."""


async def count(settings: str, traffic: Mapping[str, Any]) -> None:
    """One load."""
    run = Run(parse(tomllib.loads(settings)))
    lines = generate(SyntheticTraffic(users=50_000, events_per_second=5000.0, **traffic), EVENTS)
    for batches in RawLog().fetched(lines):
        run.partition.apply(batches)
        await run.commit()
    counted = accepted(run.partition)
    if not 0.9 * EVENTS <= counted <= EVENTS:
        raise AssertionError(f"{counted} of {EVENTS} events were counted")


async def main() -> None:
    """All loads."""
    for settings, traffic in LOADS:
        await count(settings, traffic)


if __name__ == "__main__":
    asyncio.run(main())
