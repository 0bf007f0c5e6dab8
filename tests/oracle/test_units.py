"""Experiments whose unit is not the user: by hand, on the oracle and the core."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.query.unit_sums import UnitReadings
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from streamer.stats.experiments.trials import of_arms
from tests.oracle.test_arms import DAY, A, B, clicks, made, outside
from tests.oracle.timeline import T0, H, Log, M
from tests.support.agreement import run_engines, to_log

NIGHT_MS = DAY * DAY_MS - T0
"""The midnight before the logs' first events."""


def by_store(**said: Any) -> Settings:
    """An experiment of stores, whose arm events say at `ab`."""
    return made({"unit": "store", **said})


def by_time(*slots: str, **said: Any) -> Settings:
    """A switchback of hours."""
    return made({"arm": (), "switchback": {"schedule": slots or {"north": ("A", "B")}, **said}})


def test_a_store_counts_whoever_its_users_are() -> None:
    log = Log().click(0, store="s", **A).click(M, store="s", user_id="w", p=1)
    log.click(M, store="s", user_id=None, request_id="r").click(M, store="t", **B).click(M)
    truth = log.truth(by_store())
    assert (clicks(truth), clicks(truth, arm="B")) == ((1, 3), (1, 1))
    assert outside(truth) == (0, 0)  # what has no store is of no unit


def test_a_store_is_exposed_from_the_day_on_that_says_its_arm() -> None:
    log = Log().click(0, store="s").click(M, store="s", p=1, **A)
    truth = log.click(2 * M, store="s").truth(by_store())
    assert (clicks(truth), outside(truth)) == ((1, 3), (0, 0))
    later = Log().click(0, store="s").click(DAY_MS, store="s", p=1, **A)
    truth = later.truth(by_store())
    assert (clicks(truth, 1), outside(truth, 1)) == ((1, 1), (1, 0))


def test_feedback_has_the_store_of_its_impression() -> None:
    log = Log().click(2 * M).shown(M, store="s", **A).click(3 * M, store="t")
    truth = log.truth(by_store())
    assert (clicks(truth), outside(truth)) == ((1, 1), (0, 1))


def test_a_store_with_several_arms_is_left_out() -> None:
    log = Log().click(0, store="s", **A).click(M, store="s", p=1, user_id="w", **B)
    truth = log.click(M, store="t", **B).truth(by_store())
    assert (clicks(truth), clicks(truth, arm="B"), truth.mixed["e", DAY]) == ((0, 0), (1, 1), 1)


def test_events_of_exposures_name_the_store() -> None:
    log = Log().click(0, store="s").exposed(M, store="s", p=1, user_id="w").exposed(M)
    truth = log.truth(by_store())
    assert (clicks(truth), outside(truth)) == ((1, 1), (0, 0))


def test_a_dimension_may_be_the_unit_and_another_one_the_arm() -> None:
    settings = made({"dimension": "variant", "unit": "surface"})
    log = Log().shown(0, variant="A", surface="home").click(M).click(M, surface="feed")
    truth = log.shown(0, variant="B", surface="feed", p=1, user_id="w").truth(settings)
    assert (clicks(truth), clicks(truth, arm="B")) == ((1, 1), (1, 1))


def test_a_user_may_be_the_unit_where_people_are_devices() -> None:
    settings = made({"unit": "user_id", "arm": "ab"})
    log = Log().shown(0, join_id="phone", **B).shown(0, p=1, join_id="laptop")
    log.click(M, p=1, join_id="laptop").click(M, p=2, user_id="w").click(M, p=1, user_id=None)
    truth = log.truth(settings)
    assert (clicks(truth), clicks(truth, arm="B")) == ((0, 0), (1, 1))


def test_arms_change_with_time() -> None:
    """Hours are A, B, A, …; the log begins at the 22nd of the day."""
    hour = (T0 // H % 24) * H + NIGHT_MS
    assert T0 // H % 24 == 22
    log = Log().click(hour).click(hour + H - 1, user_id="w", p=1).click(hour + H)
    truth = log.click(hour + 2 * H).truth(by_time("A", "B"))
    assert (clicks(truth), clicks(truth, arm="B")) == ((1, 2), (1, 1))
    assert clicks(truth, 1) == (2, 3)


def test_each_region_has_a_schedule_and_slots_of_its_own() -> None:
    schedule = {"north": ("A", "B"), "*": ("B", "A")}
    settings = by_time(by="region", schedule=schedule, washout="10m", slot="2h")
    hour = (T0 // H % 24) * H + NIGHT_MS  # the twelfth slot of two hours
    log = Log().click(hour + 9 * M, region="north").click(hour + 10 * M, region="north")
    log.click(hour + 20 * M, region="south").click(hour + 20 * M, region="east").click(
        hour + 30 * M
    )
    truth = log.truth(settings)
    assert (clicks(truth), clicks(truth, arm="B")) == ((2, 2), (1, 1))
    assert outside(truth) == (0, 0)


def test_a_region_without_a_schedule_is_in_no_arm() -> None:
    log = Log().click(0, region="south").click(0, region="north")
    truth = log.truth(by_time(by="region"))
    arms = [clicks(truth, arm=arm) for arm in "AB"]
    assert sorted(arms) == [(0, 0), (1, 1)]


def test_of_too_many_stores_the_same_sample_counts_in_all_partitions() -> None:
    settings = made({"unit": "store", "arm": "ab"}, limits={"unit_values": 20})
    log = Log()
    for i in range(150):
        log.click(i, store=f"s{i}", p=i % 3, **(A if i % 2 else B))
        log.click(i, store=f"s{i}", user_id="w", p=(i + 1) % 3)
    counts = []
    for size, seed in ((1000, None), (7, 3)):
        engines = run_engines(settings, 3, to_log(log.records), size, seed)
        measures = engines.catalogue.experiment_measures
        (trial,) = measures.trials
        views = [view_of(partition) for partition in engines.partitions]
        assert trial.unit is not None
        reading = UnitReadings().of(settings, measures, views)[trial.unit]
        _, *arms = of_arms(trial, reading.parts(trial), DAY)
        counts.append([arm["users"] for arm in arms])
        assert reading.sample_bits >= 2
        of_clicks = sum(arm["active"] for arm in arms)
        assert of_clicks == sum(counts[-1])
    assert counts[0] == counts[1]
    assert 0 < sum(counts[0]) <= 40


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"unit": "item_id"}, "no unit"),
        ({"unit": "no name"}, "no name"),
        ({"unit": "store", "explore": ["surface"]}, "explore"),
        ({"unit": "store", "holdout": True}, "holdout"),
        ({"unit": "store", "layer": "l"}, "layer"),
        ({"unit": "store", "dimension": "variant", "outcomes": "attributed"}, "outcomes"),
        ({"switchback": {"schedule": ["A", "B"]}}, "the schedule says the arm"),
        ({"arm": (), "switchback": {}}, "say the arms of the slots"),
        ({"arm": (), "switchback": {"schedule": ["A", "A"]}}, "several arms"),
        ({"arm": (), "switchback": {"schedule": ["A", "C"]}}, "'C': arms are"),
        ({"arm": (), "switchback": {"schedule": {"x": ["A", "B"]}}}, "no `by`"),
        ({"arm": (), "switchback": {"schedule": ["A", "B"], "slot": "7m"}}, "whole number"),
        (
            {"arm": (), "switchback": {"schedule": ["A", "B"], "slot": "5m", "washout": "5m"}},
            "shorter than slot",
        ),
        (
            {"arm": (), "covariate_days": 1, "switchback": {"schedule": ["A", "B"]}},
            "no days before",
        ),
        ({"arm": (), "unit": "store", "switchback": {"schedule": ["A", "B"]}}, "switchback.by"),
    ],
)
def test_what_cannot_be_run_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        made(said)
