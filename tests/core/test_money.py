"""Conversions of the largest value: their sums pass 64 bits and stay exact, everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.sources.replay import Replay

DAY_MS = 24 * 3600 * 1000
START_MS = 20_000 * DAY_MS  # 2024-10-04
MOST, BOUGHT, USERS = 10**12, 30, 40
"""A user's value in micros is 3e19, past 2**64; all users' is 1.2e21."""
SETTINGS = parse(
    {
        "dimensions": [{"name": "variant"}],
        "experiments": [
            {
                "name": "e",
                "dimension": "variant",
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": "2024-10-04",
                "metrics": [
                    {"name": "conversion_value_per_impression"},
                    {"name": "conversion_value_per_click"},
                ],
            }
        ],
        "alerts": [{"name": "money", "metric": "conversion_value_per_impression"}],
    }
)


def lines() -> list[tuple[str, int, bytes]]:
    """Each user is shown an item, clicks it, and buys it many times; two users a second."""
    log = []
    for user in range(USERS):
        at_ms = START_MS + 500 * user
        event: dict[str, Any] = {"ts": at_ms, "user_id": f"u{user}", "item_id": "i"}
        event |= {"variant": "AB"[user % 2]}
        log.append(("impressions", at_ms, json.dumps(event).encode()))
        log.append(("clicks", at_ms, json.dumps(event).encode()))
        bought = json.dumps(event | {"value": MOST}).encode()
        log += [("conversions", at_ms, bought)] * BOUGHT
    end = {"ts": START_MS + 2 * DAY_MS, "user_id": "u0", "session_id": "s", "action": "view"}
    return [*log, ("sessions", START_MS + 2 * DAY_MS, json.dumps(end).encode())]


def test_no_sum_of_the_largest_values_wraps() -> None:
    replay = Replay(SETTINGS)
    replay.feed(lines()[:-1])
    replay.finish()
    found = {
        (r.name.removeprefix("streamer_"), *sorted(r.labels.values())): r.value
        for r in replay.readout().readings
    }
    each, whole = MOST * BOUGHT, MOST * BOUGHT * USERS
    assert whole * 10**6 > 2**64
    assert found["window_conversion_value", "1h", "all"] == whole
    assert found["window_conversion_value", "1h", "A"] == whole / 2
    for name in ("conversion_value_per_impression", "conversion_value_per_click"):
        assert found[name, "1h", "all"] == each
        assert found[f"{name}_lower", "1h", "all"] == pytest.approx(each)
        assert found["experiment_value", *sorted(("e", name, "B"))] == each
    assert found["alert_value", "all", "money"] == pytest.approx(each)
    replay.feed(lines()[-1:])
    replay.finish()
    totals = {(r.name, *r.labels.values()): r.value for r in replay.readout().readings}
    assert totals["streamer_conversion_value_total", "all"] == whole
