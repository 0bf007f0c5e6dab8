"""What is planted into the demo's traffic is found, whenever the demo is started."""

from __future__ import annotations

from collections import Counter

import pytest

from streamer.cli.demo_log import LOST_USERS, MORE_CLICKS, SURFACE, planted
from streamer.metrics.catalogue import Catalogue
from streamer.query.alert_history import AlertHistory
from streamer.query.alerts import AlertEvaluation
from streamer.query.checks import watched
from streamer.query.experiments import stored_experiments
from streamer.query.readings import readout
from streamer.sources import open_bandit
from streamer.stats.alerting.baseline import Status
from streamer.stats.experiments.verdict import Outcome
from tests.support.lanes import long
from tests.support.site import replayed_demo

DAY_MS = 86_400_000
FIRST_MS = 1_795_910_400_000  # a midnight of UTC


def real_of(log: list[dict[str, object]]) -> list[dict[str, object]]:
    """What is left of the log without what was planted."""
    return [
        {key: value for key, value in event.items() if key not in ("ranker", "layout")}
        for event in log
        if not str(event.get("event_id", "")).startswith("p")
    ]


@long
def test_real_events_stay_as_they_are() -> None:
    log = open_bandit.events()
    assert real_of(planted(log, None)) == log


@long
def test_as_much_is_planted_as_is_said() -> None:
    log = planted(open_bandit.events(), None)
    shown = [event for event in log if event["type"] == "impression"]
    of_new = sum(event["ranker"] == "new" for event in shown)
    more = sum(event["event_id"].startswith("p") for event in log if event["type"] == "click")
    assert abs(more / of_new - MORE_CLICKS) < 0.001
    users = {event["user_id"]: event.get("layout") for event in shown}
    counts = Counter(users.values())
    assert abs(counts[None] / (counts[None] + counts["wide"]) - LOST_USERS) < 0.03
    outage_ms = log[-1]["ts"] - DAY_MS
    kept = {event.get("event_id") for event in planted(open_bandit.events(), outage_ms)}
    gone = [event for event in log if event.get("event_id") not in kept]
    assert {event["type"] for event in gone} == {"click"}
    assert all(event["item_id"].startswith(SURFACE) for event in gone)
    assert all(event["ts"] >= outage_ms for event in gone)


@pytest.mark.parametrize(
    "hour", [pytest.param(hour, marks=[] if hour == 14 else [long]) for hour in range(24)]
)
@long
def test_the_story_is_told_at_every_hour(hour: int) -> None:
    now_ms = FIRST_MS + hour * 3_600_000 + 1_234_567
    counted = replayed_demo(now_ms)
    settings = counted.settings
    views, catalogue = counted.views(), Catalogue(settings)
    stored = stored_experiments(settings, catalogue.experiment_measures, views)
    outcomes = {
        (name, metric.name): metric.found.comparisons[0].verdict.outcome
        for name, experiment in stored.items()
        for metric in experiment.read().metrics
    }
    assert outcomes["ranker", "ctr_ratio"] == Outcome.BETTER
    assert outcomes["ranker", "dwell_mean_seconds"] == Outcome.NO_HARM
    assert outcomes["policies", "ctr_ratio"] == Outcome.TOO_EARLY
    assert outcomes["layout", "ctr_ratio"] == Outcome.BROKEN_SPLIT
    advice = {name: experiment.read().recommendation for name, experiment in stored.items()}
    said_of = {name: each.words for name, each in advice.items() if each is not None}
    assert said_of["ranker"].startswith("ship new")
    assert said_of["layout"] == "do not use: broken split"
    assert said_of["policies"].startswith("keep running")
    shown = readout(settings, catalogue, views).readings
    labels = [r.labels for r in shown if r.name == "streamer_experiment_recommendation"]
    assert labels == [
        {"experiment": name, "recommendation": each.action, "arm": each.arm or ""}
        for name, each in advice.items()
        if each is not None
    ]
    at_ms = max(view.header.stream_ms for view in views)
    entries = watched(settings, catalogue.alert_measures, views, at_ms)
    said = {entry.segment: entry.metric.status for entry in entries}
    place = settings.dimension_names.index("surface")
    dropped = [segment[place] for segment, status in said.items() if status == Status.DROPPED]
    assert dropped == [SURFACE]
    (alert,) = settings.alerts
    history = AlertHistory(
        AlertEvaluation(settings, alert, catalogue.alert_measures, views, at_ms), at_ms
    )
    fired = {each.segment[place] for each in history.segments() for s in each.spans if s.fires_ms}
    assert fired == {SURFACE}
