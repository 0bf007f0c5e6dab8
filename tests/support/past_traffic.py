"""The stack of docker-compose.yml with every family of metrics on, and with a past."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path

from streamer.metrics.catalogue import FAMILIES
from streamer.settings.durations import DAY_MS
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.testing.embedded import HOST
from tests.support.compose import Stack, services
from tests.system.topics import configure

TOPICS = ("impressions", "clicks", "conversions", "sessions")
PAST_SECONDS = 1200
PAST_RATE, PAST_DAYS_RATE = 60, 2
PAST_DAYS = 15
"""A whole week to compare with, and one after it."""
EVERYTHING = {
    "STREAMER_METRICS__FAMILIES": json.dumps([family.name for family in FAMILIES]),
    "STREAMER_POLICIES": '[{ name = "top", positions = [0.9, 0.1] }]',
    "STREAMER_RATIOS": '[{ name = "t", numerator = { kind = "clicks", field = "dwell_ms" },'
    ' denominator = { kind = "impressions" }, quantiles = true }]',
    "STREAMER_ITEMS__WINDOWS": '["5m"]',
    "STREAMER_WINDOWS__DAY_BEFORE": '["1h"]',
    "STREAMER_COMPOSITES": '[{ name = "health", parts = [{ metric = "ctr_ratio" },'
    ' { metric = "dwell_mean_seconds", against = "target", target = 60 }] }]',
}
"""Families that are off by default have panels, too."""


def everything() -> Settings:
    """Those of the stack's services."""
    given = services()["exporter"]["environment"]
    return load(None, {name: str(value) for name, value in {**given, **EVERYTHING}.items()})


def stack_with_past(directory: Path) -> Stack:
    """Every service but Grafana runs; the topics hold twenty minutes when the workers begin.
    To be stopped."""
    found = Stack(directory)
    for service in found.services.values():
        if "STREAMER_KAFKA__BROKERS" in (given := service.get("environment", {})):
            service["environment"] = {**given, **EVERYTHING}
    try:
        found.start({"topics": lambda: send_past(found)})
        send_probes(found)
    except BaseException:
        found.stop()
        raise
    return found


def send_past(stack: Stack) -> None:
    """As ``docker compose run -T traffic produce - < past.ndjson``: around this time on past days,
    and until now. The topics keep two days only."""
    asyncio.run(configure(f"{HOST}:{stack.ports[9092]}", TOPICS, {"retention.ms": "-1"}))
    start_ms = int((time.time() - PAST_SECONDS) * 1000)
    lines: list[bytes] = []
    for day in range(PAST_DAYS, 0, -1):
        then_ms = start_ms - day * DAY_MS
        then = SyntheticTraffic(start_ms=then_ms, events_per_second=PAST_DAYS_RATE, users=2000)
        lines += [line for _, line in generate(then, 2 * PAST_SECONDS * PAST_DAYS_RATE)]
    traffic = SyntheticTraffic(start_ms=start_ms, events_per_second=PAST_RATE, users=2000)
    lines += [line for _, line in generate(traffic, PAST_SECONDS * PAST_RATE)]
    send(stack, lines)


def send_probes(stack: Stack) -> None:
    """Slates with a held-out item, a brute-force list and propensities, one of which makes a weight
    that is clipped: synthetic traffic has none of it."""
    slate = {"type": "impression", "ts": int(time.time() * 1000), "surface": "home"}
    probe = {"held_out": "i2", "reference": ["i1", "i2", "i3"]}
    chances = {"i1": 0.001, "i2": 0.5}
    shown = {"items": [{"item_id": item, "propensity": p, "reward_estimate": 0.1, "score": 0.9,
                        "item_category": item}
                       for item, p in chances.items()]}  # fmt: skip
    ids = [{"user_id": f"probe{i}", "request_id": f"probe{i}", "variant": "AB"[i % 2]}
           for i in range(40)]  # fmt: skip
    send(stack, [json.dumps(slate | probe | shown | some).encode() for some in ids])


def send(stack: Stack, lines: list[bytes]) -> None:
    log = stack.directory / "some.ndjson"
    log.write_bytes(b"\n".join(lines))
    command = [*stack.environment("traffic"), "streamer", "produce", "-"]
    with log.open("rb") as lines_of_log:
        done = subprocess.run(command, check=False, capture_output=True, stdin=lines_of_log)
    assert done.returncode == 0, done.stderr
