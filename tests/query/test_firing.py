"""What is said to whoever is on call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamer.metrics.catalogue import Catalogue
from streamer.query.alerts import Began
from streamer.query.checks import AlertVerdict
from streamer.query.firing import FiringAlert, Pipeline, firing_alerts
from streamer.query.silence import Silence
from streamer.settings.load import parse
from streamer.stats.alerting.baseline import MetricChange, Status
from streamer.stats.alerting.traffic import Traffic

SETTINGS = parse({"alerts": [{"name": "ctr", "window": "24h", "segments": ["surface"]}]})
RATIOS = Catalogue(SETTINGS).alert_measures.ratios
HEALTHY = Pipeline(0.3, "in the past 50 minutes", 0.0, 0.001, 0.03)
WOMEN = ("all", "women")
OPEN = (
    "cannot tell lost data from a real change: the pipeline shows no fault. Compare orders and "
    "sessions of the same users"
)
GONE = MetricChange(
    value=0.0,
    low=0.0,
    high=0.0014,
    baseline=0.0059,
    support=2603,
    expected_support=2836.0,
    days=7,
    change=-1.0,
    change_low=-1.0,
    change_high=-0.78,
    status=Status.DROPPED,
)
USUAL = Traffic(2603, 2836.0, 7, "days", -0.08, -0.2, 0.06, Status.WITHIN)


def verdict(found: MetricChange, traffic: Traffic = USUAL, segment: Any = WOMEN) -> AlertVerdict:
    checks: dict[str, MetricChange | Traffic] = {"metric": found, "traffic": traffic}
    return AlertVerdict(SETTINGS.alerts[0], segment, checks)


def firing(
    *watched: AlertVerdict, pipeline: Pipeline = HEALTHY, silent: Any = ()
) -> list[FiringAlert]:
    return firing_alerts(watched, RATIOS, SETTINGS.dimension_names, pipeline, silent)


def test_a_line_says_what_and_at_least_how_much() -> None:
    silence = Silence("clicks", "surface", "women", "24h", 15)
    other = Silence("clicks", "surface", "men", "24h", 15)
    (found,) = firing(verdict(GONE), silent=[silence, other])
    assert found.headline == "Click-through rate of women is 0% instead of 0.590%"
    assert found.size == "\u2212100%, at least \u221278%"
    assert (found.sign, found.where, found.name) == ("▼", "surface women", "women")
    assert found.evidence == [
        "traffic 2,603, usually 2,836",
        "no clicks of surface women for at least 24h, in which about 15 are usual",
        HEALTHY.words,
    ]
    assert found.likely.startswith("looks like lost events: none of the usual 15 ")


def part(segment: Any, share: float, change: float, value: float = 0.003) -> AlertVerdict:
    """Of a segment with a share of the whole's traffic."""
    support = round(28_360 * share)
    found = replace(
        *(GONE,), value=value, change=change, support=support, expected_support=float(support)
    )
    return verdict(found, segment=segment)


def test_what_a_narrower_segment_explains_stands_below_it() -> None:
    whole = part(("all", "all"), 1.0, -0.4)
    women = part(WOMEN, 0.38, -1.0, value=0.0)
    men = part(("all", "men"), 0.3, -0.1)
    found = firing(whole, men, women, whole)
    assert [each.name for each in found] == ["women", "men", "all together"]
    lost, healthy, beside = (each.likely for each in found)
    assert lost.startswith("looks like lost events: none of the usual 64 or so came")
    assert healthy == OPEN  # other people
    assert beside == "events of women look lost, which explains most of it"


def test_clicks_that_stopped_within_the_window_look_lost_since_then() -> None:
    half = replace(GONE, value=0.003, change=-0.5)
    stopped = replace(verdict(half), began=Began(1_000, 900, 1_100, 2000))
    (found,) = firing(stopped)
    assert found.likely.startswith("looks like lost events: none of the usual 12 or so")
    assert (found.since_ms, found.since_low_ms, found.since_high_ms) == (1_000, 900, 1_100)
    few = replace(verdict(half), began=Began(1_000, 900, 1_100, 1000))
    (found,) = firing(few)
    assert found.likely == OPEN


TWO = parse(
    {
        "alerts": [
            {"name": "ctr", "window": "24h", "segments": ["surface"]},
            {
                "name": "value",
                "metric": "conversion_value_per_impression",
                "window": "24h",
                "segments": ["surface"],
            },
        ]
    }
)
HALVED = replace(GONE, value=0.003, change=-0.5, change_low=-0.6, change_high=-0.4)


def told(
    other: MetricChange,
    traffic: Traffic = USUAL,
    own: MetricChange = HALVED,
    segment: Any = ("all", "all"),
) -> str:
    """What is likely of clicks, where another alert watches the value of conversions."""
    verdicts = [verdict(own, traffic, segment)]
    verdicts.append(AlertVerdict(TWO.alerts[1], segment, {"metric": other, "traffic": traffic}))
    found = firing_alerts(
        verdicts, Catalogue(TWO).alert_measures.ratios, TWO.dimension_names, HEALTHY
    )
    (likely,) = [each.likely for each in found if each.alert == "ctr"]
    return likely


def test_a_change_is_real_where_events_of_another_topic_show_it_too() -> None:
    calm = replace(HALVED, change=0.01, change_low=-0.04, change_high=0.06, status=Status.WITHIN)
    assert told(HALVED) == (
        "looks like a real change: events of another topic show it, too: Conversion value per "
        "impression (−50%, at least −40%)"
    )
    assert told(calm) == (
        "cannot tell lost data from a real change: the pipeline shows no fault, and Conversion "
        "value per impression is as usual (−4.0% to +6.0%). Compare orders and sessions of the "
        "same users"
    )
    assert told(replace(HALVED, status=Status.RISEN)) == OPEN


def test_clicks_that_are_lost_take_the_orders_of_a_segment_along() -> None:
    assert told(HALVED, segment=WOMEN) == OPEN


def test_impressions_that_may_have_come_twice_are_no_real_change() -> None:
    doubled = replace(USUAL, change=0.6, change_low=0.3, change_high=0.9)
    assert told(HALVED, doubled) == OPEN
    assert told(HALVED, replace(USUAL, change_low=None, change_high=None)) == OPEN
    little = replace(HALVED, change_high=-0.03)
    assert told(little) == OPEN
    assert told(HALVED, own=little) == OPEN


@pytest.mark.parametrize(
    ("change", "traffic", "pipeline", "likely"),
    [
        (
            replace(GONE, value=0.003, change=-0.5),
            USUAL,
            HEALTHY,
            OPEN,
        ),
        (
            GONE,
            USUAL,
            replace(HEALTHY, refused=0.12, behind_seconds=90.0),
            "look at the data first: the values shown are 90 s behind the logs; "
            "12% of the records were refused in the past 50 minutes",
        ),
        (
            GONE,
            replace(USUAL, status=Status.DROPPED),
            HEALTHY,
            "traffic has moved, too: look for lost impressions, or for fewer visitors",
        ),
        (
            replace(GONE, value=None, status=Status.NO_TRAFFIC),
            USUAL,
            HEALTHY,
            "nothing arrives: look for lost impressions, or for a surface that is off",
        ),
    ],
)
def test_data_or_reality(
    change: MetricChange, traffic: Traffic, pipeline: Pipeline, likely: str
) -> None:
    (found,) = firing(verdict(change, traffic), pipeline=pipeline)
    assert found.likely == likely


def test_a_check_beside_the_metric_speaks_where_that_is_fine() -> None:
    fine = replace(GONE, status=Status.WITHIN)
    fallen = replace(
        USUAL, events=100, change=-0.96, change_low=-0.99, change_high=-0.9, status=Status.DROPPED
    )
    (found,) = firing(verdict(fine, fallen))
    assert found.headline == "Traffic of women is 100 events instead of 2,836"
    assert (found.check, found.size) == ("traffic", "\u221296%, at least \u221290%")


def test_what_has_lost_most_stands_first_and_what_is_fine_not_at_all() -> None:
    whole = replace(GONE, support=9000, expected_support=9000.0, change=-0.4, baseline=0.007)
    small = replace(GONE, support=100, expected_support=100.0)
    fine = replace(GONE, status=Status.WITHIN)
    watched = [
        verdict(small, segment=("all", "kids")),
        verdict(GONE),
        verdict(whole, segment=("all", "all")),
        verdict(fine, segment=("all", "men")),
    ]
    assert [each.name for each in firing(*watched)] == ["women", "all together", "kids"]


def test_a_pipeline_that_read_nothing_says_so() -> None:
    assert Pipeline().words == "no records lately"
    assert Pipeline().problems == []


def test_rows_that_left_early_are_the_first_thing_to_look_at() -> None:
    full = replace(HEALTHY, left_early=1200)
    (found,) = firing(verdict(GONE), pipeline=full)
    assert found.likely == (
        "look at the data first: 1,200 impressions and feedback left memory early in the past 50 "
        "minutes: joined rates are not exact"
    )
