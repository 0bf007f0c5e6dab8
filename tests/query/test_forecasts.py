"""Days until a lift is found, end to end: by users who return, where nobody new comes and where
new ones come daily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from streamer.stats.experiments.forecast import MAX_DAYS
from streamer.stats.experiments.verdict import Outcome
from tests.query.test_experiments import DAY_MS, FIRST, FIRST_MS
from tests.support.agreement import run_engines
from tests.support.engines import LogRecord
from tests.support.lanes import long

Event = dict[str, Any]
TOPICS = {"impression": "impressions", "click": "clicks", "conversion": "conversions"}


def settings_of(metric: str, min_lift: float) -> Settings:
    arms = {"dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}}
    experiment = {"name": "x", **arms, "start": FIRST, "min_lift": min_lift}
    return parse(
        {
            "dimensions": [{"name": "variant"}],
            "experiments": [{**experiment, "metrics": [{"name": metric}]}],
        }
    )


def stored_of(settings: Settings, events: Sequence[Event], days: int) -> StoredExperiment:
    """What is stored of the experiment at the end of its first days."""
    end = {"type": "click", "ts": FIRST_MS + days * DAY_MS - 1, "user_id": "last", "item_id": "i"}
    seen = sorted([*(e for e in events if e["ts"] < end["ts"]), end], key=lambda e: e["ts"])
    records = [
        LogRecord(TOPICS[e["type"]], 0, i, e["ts"], msgspec.json.encode(e))
        for i, e in enumerate(seen)
    ]
    engines = run_engines(settings, 1, records, 10**6, None)
    views = [view_of(p) for p in engines.partitions]
    return stored_experiments(settings, engines.catalogue.experiment_measures, views)["x"]


@pytest.mark.parametrize("seed", [5, 6])
def test_an_end_is_in_sight_where_users_return_and_buy(seed: int) -> None:
    """10,000 users come within six days and buy on 2 % of days, those of B 12 % more often."""
    dice = np.random.default_rng(seed)
    first = np.minimum(dice.geometric(0.5, 10_000) - 1, 5)
    events: list[Event] = []
    for user, day in enumerate(first.tolist()):
        who = {"user_id": f"u{user}", "item_id": "i", "variant": "AB"[user % 2]}
        events.append({"type": "impression", "ts": FIRST_MS + day * DAY_MS + user, **who})
        share = 0.02 * (1.12 if user % 2 else 1.0)
        for bought in np.flatnonzero(dice.random(7) < share).tolist():
            ts = FIRST_MS + bought * DAY_MS + DAY_MS // 2 + user
            if bought >= day:
                events.append({"type": "conversion", "ts": ts, **who})
    stored = stored_of(settings_of("conversions_per_user", 0.12), events, 7)
    found = stored.read()
    past = stored._past(stored.parts, stored.trial.days.start, stored.trial.days.start + 6)
    assert past is not None
    assert past.growth.users_at(MAX_DAYS) < 2 * past.growth.users, "users alone see no end"
    assert found.recommendation is not None
    assert found.recommendation.action == "keep running"
    assert "No end is in sight" not in found.recommendation.reason
    assert found.recommendation.days is not None
    assert 3 <= found.recommendation.days <= 40
    (waits,) = found.metrics[0].waits
    assert waits[-1].days is not None


@pytest.mark.parametrize("seed", [0, 3, 4])
@long
def test_a_lift_is_found_about_when_it_was_said(seed: int) -> None:
    """100 new users a day return with propensities of their own, and are shown five items each
    time, of which those of B click a quarter more. In 16 of 24 seeds the lift was open after a
    week, and then found after 0.53 to 0.96 times the days that were said."""
    dice, days = np.random.default_rng(seed), 40
    events: list[Event] = []
    for user in range(100 * days):
        first, likes = user // 100, dice.beta(2, 18)
        again = dice.random(days - 1 - first) < dice.beta(1, 3)
        who = {"user_id": f"u{user}", "variant": "AB"[user % 2]}
        for day in (first, *(first + 1 + np.flatnonzero(again)).tolist()):
            ts = FIRST_MS + day * DAY_MS + int(dice.integers(DAY_MS // 2))
            shown = [{"item_id": f"i{k}"} for k in range(5)]
            events.append({"type": "impression", "ts": ts, **who, "items": shown})
            for k in range(dice.binomial(5, min(1.0, likes * (1 + user % 2 / 4)))):
                click = {"ts": ts + 1000 * (k + 1), **who, "item_id": "i0"}
                events.append({"type": "click", **click})
    settings = settings_of("ctr_ratio", 0.25)
    advice = stored_of(settings, events, 7).read().recommendation
    assert advice is not None
    assert advice.action == "keep running"
    assert advice.days is not None
    stored = stored_of(settings, events, days)
    found = next(day for day in range(7, days) if _outcome(stored, day) is Outcome.BETTER) + 1
    assert 0.4 <= found / (7 + advice.days) <= 1.4


def _outcome(stored: StoredExperiment, day: int) -> Outcome:
    """That of the primary metric at the end of a day."""
    found = stored.read(stored.trial.days.start + day).metrics[0].found
    return found.comparisons[0].verdict.outcome
