"""What a profile-guided build of the core is trained with: `maturin build --pgo` runs it.

    python -m benchmarks.training

Clean and troubled logs, as Kafka's record batches, are counted with the default settings, with
traffic only, and with an experiment, alerts and every family of metrics; the state is committed as
a worker does. Every event has to be counted.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from typing import Any

from benchmarks.endless import Run, accepted
from benchmarks.measure import WATCHED
from benchmarks.raw_log import RawLog
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate

EVENTS = 200_000
TROUBLED = {
    "late_share": 0.02,
    "duplicate_share": 0.05,
    "out_of_order_share": 0.2,
    "requestless_click_share": 0.3,
    "broken_share": 0.01,
}
"""What a log has that is anything but clean."""
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
