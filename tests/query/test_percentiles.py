"""Percentiles of what users have as metrics of an experiment, end to end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from streamer.query.readout import readout_of
from streamer.query.scorecard import scorecard
from streamer.settings.model import Settings
from streamer.stats.experiments.recommendation import Action
from streamer.stats.experiments.verdict import Outcome
from tests.query.test_dirty_logs import Event, settings_of, stored_of
from tests.query.test_experiments import DAY_MS, FIRST_MS
from tests.support.lanes import long

USERS, DAYS = 5000, 9
P90, MEDIAN = "dwell_seconds_per_user@p90", "dwell_seconds_per_user@p50"


def dwells(dice: np.random.Generator, longer: float) -> Iterator[Event]:
    """Users who come on one day and stay on an item twice; those of B who stay long anyway stay
    ``longer`` times as long."""
    stay = dice.lognormal(9, 0.8, USERS)
    stay *= np.where((np.arange(USERS) % 2 == 1) & (stay > 14_000), longer, 1.0)
    for user, ms in enumerate(stay.round().astype(int).tolist()):
        at = FIRST_MS + user % DAYS * DAY_MS + 1000 * user
        who = {"user_id": f"u{user}", "item_id": "i", "variant": "AB"[user % 2]}
        yield {"type": "impression", "ts": at, **who}
        for i, part in enumerate((ms // 2, ms - ms // 2)):
            yield {"type": "click", "ts": at + 1 + i, "dwell_ms": part, **who}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_of(P90, metrics=[{"name": P90}, {"name": MEDIAN}])


@long
def test_longer_stays_of_the_longest_are_a_gain_of_their_percentile(settings: Settings) -> None:
    stored = stored_of(dwells(np.random.default_rng(1), 1.35), settings)
    found = stored.read()
    top, middle = found.metrics
    (lift,), (at_middle,) = top.found.comparisons, middle.found.comparisons
    assert lift.verdict.outcome == Outcome.BETTER
    assert lift.relative.value == pytest.approx(0.35, abs=0.12)
    assert at_middle.verdict.outcome == Outcome.TOO_EARLY
    stays = np.random.default_rng(1).lognormal(9, 0.8, USERS)[::2] / 1000
    assert top.found.arms[0].value == pytest.approx(np.quantile(stays, 0.9), rel=0.05)
    assert found.recommendation is not None
    assert found.recommendation.action == Action.SHIP
    shown = readout_of(stored, found).metrics[0]
    assert (shown.name, shown.capped_at) == (P90, None)
    assert top.ages["first day"].comparisons[0].verdict.outcome == Outcome.BETTER


def test_the_same_stays_are_no_gain(settings: Settings) -> None:
    found = stored_of(dwells(np.random.default_rng(2), 1.0), settings).read()
    assert [m.found.comparisons[0].verdict.outcome for m in found.metrics] == ["too early"] * 2


def clicks(dice: np.random.Generator, more: float) -> Iterator[Event]:
    """Users who click some times on one day, those of B ``more`` often."""
    numbers = dice.poisson(np.where(np.arange(USERS) % 2 == 1, 4 * more, 4))
    for user, number in enumerate(numbers.tolist()):
        at = FIRST_MS + user % DAYS * DAY_MS + 1000 * user
        for i in range(max(1, number)):
            who = {"user_id": f"u{user}", "item_id": f"i{i}", "variant": "AB"[user % 2]}
            yield {"type": "impression", "ts": at, **who}
            if i < number:
                yield {"type": "click", "ts": at + 1 + i, **who}


@long
def test_a_percentile_of_counts_is_a_count() -> None:
    """The nearest rank; the lift is of the percentile between whole numbers, which is told."""
    name = "clicks_per_user@p90"
    settings = settings_of(name, metrics=[{"name": name}])
    stored = stored_of(clicks(np.random.default_rng(1), 1.3), settings)
    found = readout_of(stored, stored.read())
    (metric,) = found.metrics
    rate = np.where(np.arange(USERS) % 2 == 1, 4 * 1.3, 4)
    numbers = np.random.default_rng(1).poisson(rate)
    exact = [int(np.quantile(numbers[i::2], 0.9, method="inverted_cdf")) for i in range(2)]
    assert [arm.value for arm in metric.arms] == exact
    (comparison,) = metric.comparisons
    assert comparison.verdict.outcome == Outcome.BETTER
    lift = comparison.lift
    assert lift.unadjusted is not None
    assert lift.unadjusted.value == pytest.approx(exact[1] / exact[0] - 1)
    assert lift.low is not None
    assert lift.high is not None
    assert lift.low < (lift.value or 0) < lift.high
    card = scorecard(found)
    assert f"(unadjusted from {exact[0]}.00 to {exact[1]}.00: " in card.sentence
    assert "adjusted for steps between whole numbers" in card.sentence
