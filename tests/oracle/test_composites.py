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
from tests.oracle.timeline import H, Log, M
from tests.support.agreement import by_key, differences, read_engines, run_engines, states, to_log
from tests.support.journals import feed_with_restarts, finish, start, take_over
from tests.support.lanes import long, shortened, sized

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
LINES = sized(2500, 4000)
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


@pytest.mark.parametrize("seed", shortened(list(SEEDS)))
@long
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


@pytest.mark.parametrize(("hours", "is_shown"), [(24, False), (47, False), (48, True)])
def test_a_day_before_that_was_hardly_counted_is_none(hours: int, is_shown: bool) -> None:
    """The window of 24 h asks for a day before that begins 48 h ago."""
    log, last_ms = Log(), hours * H + 23 * M
    for at_ms in range(0, last_ms, 10 * M):
        user = f"u{at_ms // H % 5}"  # one of all would have more feedback waiting than is kept
        log.shown(at_ms, score=0.5, user_id=user).click(at_ms, user_id=user)
        log.bought(at_ms, value=1.0, user_id=user)
    log.shown(last_ms)
    expected = log.run(SETTINGS).readings
    found = read_engines(run_engines(SETTINGS, 1, to_log(log.records), 100))
    assert differences(found, expected) == []
    of_a_day = [key for key in expected if ("window", "24h") in key[1]]
    names = {name for name, _ in of_a_day}
    is_against = any(("composite", "day") in labels for _, labels in of_a_day)
    assert (is_against, "streamer_score_drift" in names) == (is_shown, is_shown)
