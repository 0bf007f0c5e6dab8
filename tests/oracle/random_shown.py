"""Random logs whose records are an impression and its click, with orders beside them or within."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from .decoding import SAID
from .shape import SHOWN, Record

FIRST_MS = 1_700_000_000_000
STEP_MS = 400


def random_shown(seed: int, lines: int, *, topic: str = SHOWN) -> list[Record]:
    """Records of one partition: users, nobody, ids of joins, and requests of one and of several
    items; times that collide, late ones, copies, and values that are wrong. ``topic``: SHOWN, with
    orders beside it, or SOLD."""
    of_records, random, beside = topic, Random(seed), "conversions"
    records = []
    ends = {of_records: 0, beside: 0}
    for i in range(lines):
        now_ms = FIRST_MS + i * STEP_MS
        is_beside = of_records == SHOWN and random.random() < 0.15
        topic = beside if is_beside else of_records
        value = _event(random, i, now_ms)
        if not is_beside:
            value |= _shown(random, of_records)
            if not value.get("items") and value["item_id"] is None:
                value |= {"position": None, "dwell_ms": None}  # one defect is enough
        raw = json.dumps({name: x for name, x in value.items() if x is not None}).encode()
        if random.random() < 0.01:
            raw = raw[: len(raw) // 2]
        records.append(Record(topic, 0, ends[topic], now_ms, raw))
        ends[topic] += 1
    return records


def _event(random: Random, i: int, now_ms: int) -> dict[str, Any]:
    late_ms = random.choice([0, 0, 0, 1000, 60_000, 700_000])
    ts = (now_ms - random.randrange(1 + late_ms)) // 2000 * 2000
    return {
        "ts": ts + random.choice([0, 0, 1]),
        "user_id": random.choice([None, None, None, "u0", "u1", "u2", "u3"]),
        "join_id": random.choice([None, None, None, "d0", "d1"]),
        "request_id": random.choice([None, None, None, f"r{i // 3}"]),
        "event_id": random.choice([None, f"e{i}", f"e{max(0, i - 5)}"]),
        "item_id": random.choice(["a", "b", "c", 7, "7", None])
        if random.random() < 0.05
        else random.choice("abcd"),
        "variant": random.choice(["A", "B", None]),
        "surface": random.choice(["home", "search"]),
        "value": random.choice([None, 1, 2.5]),
    }


def _shown(random: Random, topic: str) -> dict[str, Any]:
    others = [said for said in SAID[topic] if not said.isdigit()]
    said: dict[str, Any] = {
        "click": random.choice([0, 0, 0, "0", 1, 1, "1", "2", 2, 3, None, *others]),
        "position": random.choice([None, 1, 2, 3, 0 if random.random() < 0.1 else 4]),
        "score": random.choice([None, 0.25, 1]),
        "propensity": random.choice([None, 0.5, 1]),
        "dwell_ms": random.choice([None, None, 900, "x" if random.random() < 0.1 else 30_000]),
        "depth": random.choice([None, 3]),
        "latency_ms": random.choice([None, 12]),
    }
    if random.random() < 0.15:
        ids = random.sample("abcd", random.choice([0, 1, 1, 2]))
        said |= {"item_id": None, "items": [{"item_id": x, "score": 0.5, "value": 2} for x in ids]}
    return said
