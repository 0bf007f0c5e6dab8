"""Composites and drift of scores against the oracle, over two days and restarts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamer.metrics import score_drift
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Metrics
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from tests.oracle import drift
from tests.oracle.oracle import records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.support.agreement import by_key, differences, run_engines, states, to_log
from tests.support.journals import feed_with_restarts, finish, start, take_over

DOCUMENT: dict[str, Any] = {
    "dimensions": [{"name": "variant", "values": ["A", "B"]}],
    "windows": {"lengths": ["1h", "6h", "12h", "24h"], "day_before": ["1h", "6h", "24h"]},
    "time": {"max_lateness": "2h"},
    "metrics": {
        "families": [*Metrics().families, "scores", "off_policy"],
        "feedback": {"click": 1.0, "like": 2.0},
    },
    "policies": [{"name": "new", "propensity": "p_new"}],
    "composites": [
        {
            "name": "day",
            "parts": [
                {"metric": "conversion_value_per_click", "against": "day_before"},
                {"metric": "ctr_attributed_ratio", "weight": 2, "against": "day_before"},
                {"metric": "ctr_attributed_ratio", "against": "target", "target": 0.5},
            ],
        },
        {
            "name": "mixed",
            "parts": [
                {"metric": "mae", "weight": -1, "against": "day_before"},
                {"metric": "ips_ratio@new", "weight": 0.5},
                {"metric": "views_per_session", "against": "day_before"},
                {"metric": "cvr_attributed_ratio", "weight": 1e-3},
            ],
        },
    ],
}
SETTINGS = parse(DOCUMENT)
LINES = 4000
SEEDS = (5, 24)
"""Logs of sixty hours and sixty users."""


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drift is shown of few scores."""
    monkeypatch.setattr(score_drift, "LEAST_SCORES", 20)
    monkeypatch.setattr(drift, "LEAST", 20)


def shown(readings: Readings) -> Counter[str]:
    """Series of the composite that is against the day before, and of drift."""
    wanted = [n for n, labels in readings if ("composite", "day") in labels or "drift" in n]
    return Counter(name.removeprefix("streamer_") for name in wanted)


@pytest.mark.parametrize("seed", SEEDS)
async def test_two_days_with_restarts(seed: int) -> None:
    records = records_of_log(random_log(seed, SETTINGS, LINES), SETTINGS, partitions=2)
    expected = run(records, SETTINGS).readings
    found = shown(expected)
    assert {"composite", "composite_lower", "composite_upper", "score_drift"} <= found.keys(), found
    log, store = to_log(records), MemoryStore()
    engines = run_engines(SETTINGS, 2, log, 60, seed)
    views = await start(store, SETTINGS, 2)
    await feed_with_restarts(store, views, log, seed)
    await finish(store, views)
    for number in range(2):
        await take_over(store, views, number)
    assert states(views.engines) == states(engines)
    reader = Reader(store)
    await reader.refresh()
    assert differences(by_key(readout(SETTINGS, engines.catalogue, reader.views)), expected) == []
