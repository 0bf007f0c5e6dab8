"""Scorecards of small logs: the sentence, the impact and the checks say what the readout has."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from streamer.query.exploration import explored, values_joined
from streamer.query.readout import readout_of as readout
from streamer.query.scorecard import Scorecard, scorecard
from streamer.settings.load import parse
from streamer.state.user_days import Days
from tests.support import assigned
from tests.support.assigned import halves, readout_of
from tests.support.lanes import long


def card(**more: Any) -> Scorecard:
    return scorecard(readout_of(**more))


def test_a_gain_is_said_with_what_it_comes_to() -> None:
    found = readout_of(new=0.3)
    its = scorecard(found)
    (pair,) = found.metrics[0].comparisons
    assert its.pill is not None
    assert (its.pill.kind, its.pill.words) == ("good", "Ship new")
    decided = "Ship new, as decided at the end of 2026-11-08. Today: "
    raises = "New raises the click-through rate from 19.5% to 3"
    assert its.sentence.startswith(f"{decided}{raises}")
    assert ", at least +" in its.sentence
    assert "That is 110 more clicks per 1,000 impressions: about " in its.impact
    assert found.data is not None
    days = (found.data.to_ms - found.data.from_ms) / 86_400_000
    daily = (pair.absolute.value or 0) * (found.metrics[0].denominator or 0) / days
    assert float(its.impact.split("about ")[1].split()[0]) == pytest.approx(daily, rel=0.05)
    assert found.recommendation is not None
    assert found.recommendation.since == datetime.date(2026, 11, 8)
    assert [point.day.day for point in its.course] == list(range(2, 10))
    assert its.split is not None
    assert (its.split.kind, its.split.text) == ("good", "50.0 : 50.0, planned 50 : 50")
    assert its.ages is not None
    assert [row.title for row in its.ages.rows][:2] == ["First day", "Days 2-3"]


def test_a_loss_stops() -> None:
    its = card(new=0.1)
    assert its.pill is not None
    assert (its.pill.kind, its.pill.words) == ("bad", "Stop: harm")
    assert "Today: New lowers the click-through rate from " in its.sentence
    assert "fewer clicks per 1,000 impressions" in its.impact


def test_what_is_not_known_is_not_said() -> None:
    its = card(users=300)
    assert its.pill is not None
    assert (its.pill.kind, its.pill.words) == ("open", "Keep running")
    assert its.sentence.startswith("Too early to tell: new may change the click-through rate by")
    assert its.impact == ""
    few = card(users=60)
    assert few.sentence.startswith("Too early to tell whether new changes the click-through rate: ")
    assert few.rows[0].comparison.lift.low is None


def test_a_broken_split_is_all_that_is_said() -> None:
    its = card(arms=lambda user: {"prices": "new" if user % 4 else "old"}, new=0.3)
    assert its.pill is not None
    assert (its.pill.kind, its.pill.words) == ("bad", "Do not use: broken split")
    assert its.sentence.startswith("The users are not divided as planned.")
    assert its.impact == ""
    assert its.split is not None
    assert (its.split.kind, its.split.text) == ("bad", "25.0 : 75.0, planned 50 : 50")


@pytest.mark.parametrize(
    ("margin", "new", "held", "said"),
    [
        (0.5, 0.3, "1 of 1 held", "No guardrail is harmed."),
        (0.01, 0.1, "0 of 1 held", "Clicks per user is harmed more than tolerated."),
        (0.01, 0.2, "0 of 1 held", "Whether clicks per user suffers is not known yet."),
    ],
)
def test_guardrails(margin: float, new: float, held: str, said: str) -> None:
    metrics = [{"name": "ctr_ratio"}, {"name": "clicks_per_user", "margin": margin}]
    its = card(new=new, metrics=metrics)
    assert its.readout.guardrails is not None
    assert (its.readout.guardrails.text, its.sentence.endswith(said)) == (held, True)
    assert its.rows[-1].metric.rule == f"higher is better, may fall by up to {100 * margin:.0f}%"
    assert its.rows[-1].comparison.lift.limit == -margin


@long
def test_the_best_of_several_treatments_is_looked_at() -> None:
    its = card(
        arms=lambda user: {"prices": ("old", "new", "third")[user % 3]},
        users=900,
        new=0.3,
        split={"old": 1, "new": 1, "third": 1},
    )
    assert (its.focus, its.readout.treatments) == ("new", ["new", "third"])
    assert [row.comparison.arm for row in its.rows] == ["new", "third"]
    other = scorecard(
        readout_of(
            arms=lambda user: {"prices": ("old", "new", "third")[user % 3]},
            split={"old": 1, "new": 1, "third": 1},
        ),
        focus="third",
    )
    assert "third" in other.sentence


def test_before_the_start_there_is_no_row() -> None:
    its = card(start=assigned.FIRST.replace(year=2030))
    assert (its.pill, its.rows, its.course) == (None, [], [])
    assert its.sentence == "It starts on 2030-11-02."


def test_who_is_asked_and_why_is_said() -> None:
    its = card(users=60, title="Prices", hypothesis="Cheap sells.", owner="shop", url="https://x.y")
    of = its.readout
    assert (of.name, of.title, of.owner, of.url) == ("prices", "Prices", "shop", "https://x.y")
    assert of.hypothesis == "Cheap sells."


def test_segments_are_those_of_an_exploration() -> None:
    own = assigned.experiment("prices", arm="experiments", explore=["surface"])
    settings = parse({"experiments": [own], "dimensions": [{"name": "surface"}]})
    log = [
        {**event, "surface": ("home", "search")[int(event["user_id"][1:]) // 2 % 2]}
        for event in assigned.events(400, halves, 3)
    ]
    replay = assigned.replayed(settings, log)
    stored = replay.experiments()["prices"]
    days = Days(stored.trial, stored.so_far, "surface")
    sums = values_joined(replay.sums_of_days(days), settings, replay.views(), "surface")
    made = explored(stored, "surface", sums, stored.so_far)
    found = readout(stored, stored.read(), with_history=True)
    (forest,) = scorecard(found, [made]).segments
    assert forest.title == "By surface"
    assert {row.title: row.users for row in forest.rows} == {"home": 200, "search": 200}
