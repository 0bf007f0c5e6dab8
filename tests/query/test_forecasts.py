"""Days until a lift is found, end to end: users who return count, though nobody new comes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from streamer.query.experiments import stored_experiments
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.testing import LogRecord
from tests.query.test_experiments import DAY_MS, FIRST, FIRST_MS
from tests.support.agreement import run_engines

SETTINGS = parse(
    {
        "dimensions": [{"name": "variant"}],
        "experiments": [
            {
                "name": "x",
                "dimension": "variant",
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": FIRST,
                "min_lift": 0.12,
                "metrics": [{"name": "conversions_per_user"}],
            }
        ],
    }
)


@pytest.mark.parametrize("seed", [5, 6])
def test_an_end_is_in_sight_where_users_return_and_buy(seed: int) -> None:
    """10,000 users come within six days and buy on 2 % of days, those of B 12 % more often."""
    dice = np.random.default_rng(seed)
    first = np.minimum(dice.geometric(0.5, 10_000) - 1, 5)
    events = []
    for user, day in enumerate(first.tolist()):
        who = {"user_id": f"u{user}", "item_id": "i", "variant": "AB"[user % 2]}
        events.append({"type": "impression", "ts": FIRST_MS + day * DAY_MS + user, **who})
        share = 0.02 * (1.12 if user % 2 else 1.0)
        for bought in np.flatnonzero(dice.random(7) < share).tolist():
            ts = FIRST_MS + bought * DAY_MS + DAY_MS // 2 + user
            if bought >= day:
                events.append({"type": "conversion", "ts": ts, **who})
    ts = FIRST_MS + 7 * DAY_MS - 1
    events.append({"type": "click", "ts": ts, "user_id": "last", "item_id": "i"})
    events.sort(key=lambda event: int(str(event["ts"])))
    topics = {"impression": "impressions", "click": "clicks", "conversion": "conversions"}
    records = [
        LogRecord(topics[e["type"]], 0, i, e["ts"], msgspec.json.encode(e))
        for i, e in enumerate(events)
    ]
    engines = run_engines(SETTINGS, 1, records, 10**6, None)
    views = [view_of(p) for p in engines.partitions]
    stored = stored_experiments(SETTINGS, engines.catalogue.experiment_measures, views)["x"]
    found = stored.read()
    past = stored._past(stored.parts, stored.trial.days.start, stored.trial.days.start + 6)
    assert past is not None
    assert past.growth.days_to(2 * past.growth.users) is None, "users alone see no end"
    assert found.recommendation is not None
    assert found.recommendation.action == "keep running"
    assert "No end is in sight" not in found.recommendation.reason
    assert found.recommendation.days is not None
    assert 3 <= found.recommendation.days <= 40
    (waits,) = found.metrics[0].waits
    assert waits[-1].days is not None
