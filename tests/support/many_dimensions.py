"""Twenty dimensions at random: few values are kept of each, and some rollups are of several."""

from __future__ import annotations

import functools
from random import Random
from typing import Any

from streamer.settings.load import parse
from streamer.settings.model import Metrics, Settings
from tests.oracle.oracle import Record, records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings

NAMES = tuple(f"d{i}" for i in range(20))


def dimension_of(random: Random, name: str) -> dict[str, Any]:
    """One with up to four values that are kept, besides those that it may name."""
    found: dict[str, Any] = {"name": name, "max_values": random.randint(0, 4)}
    if random.random() < 0.3:
        found["values"] = [f"{name}-5", f"{name} named"][: random.randint(1, 2)]
    return found


def crossings(random: Random, count: int) -> list[tuple[str, ...]]:
    """About so many combinations of two to four dimensions, in any order."""
    found = {frozenset(random.sample(NAMES, random.randint(2, 4))) for _ in range(count)}
    return [tuple(random.sample(sorted(names), len(names))) for names in sorted(found, key=sorted)]


def random_settings(seed: int, **more: Any) -> Settings:
    """Settings of all twenty, half of them with a rollup of their own."""
    random = Random(f"dimensions {seed}")
    crossed = crossings(random, 5)
    alone = [(name,) for name in random.sample(NAMES, 10)]
    rollups = random.sample([*alone, *crossed], len(alone) + len(crossed))
    of_items = {name: None for rollup in rollups[: random.randint(0, 2)] for name in rollup}
    document = {
        "dimensions": [dimension_of(random, name) for name in NAMES],
        "metrics": {
            "families": [*Metrics().families, "scores", "diversity"],
            "feedback": {"click": 1.0, "like": 2.0, "conversion": 3.0},
            "k": [3],
            "rollups": [[], *rollups],
            "detailed": [[], *rollups[:2]],
        },
        "items": {"dimensions": [*of_items]},
        "windows": {"lengths": random.sample(["10s", "1m", "1h", "24h"], 2)},
        "attribution": {"click": "20m", "conversion": "40m", "session_gap": "5m"},
        "time": {"max_lateness": "10m"},
    }
    return parse({**document, **more})


@functools.lru_cache(maxsize=16)
def random_records(seed: int, lines: int, partitions: int) -> tuple[list[Record], Readings]:
    """Records of a random log under these settings, and what the oracle reads from them."""
    settings = random_settings(seed)
    records = records_of_log(random_log(seed, settings, lines), settings, partitions=partitions)
    return records, run(records, settings).readings
