"""Traffic against the usual: every status, an obvious recomputation, and how often it is wrong."""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import variance

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import trim_mean
from scipy.stats.mstats import winsorize

from streamer.formatting import change
from streamer.stats.alerting.baseline import Status
from streamer.stats.alerting.traffic import Traffic, TrafficRule, judge_traffic

WEEK = [9000, 10_000, 11_000, 10_500, 9500, 10_200, 9800]
RULE = TrafficRule()


def judge(events: int, past: list[int] | None = None, arrivals: float = 500.0) -> Traffic:
    return judge_traffic(events, [WEEK if past is None else past], arrivals, RULE)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (0, Status.DROPPED),
        (1000, Status.DROPPED),
        (6000, Status.PERHAPS),
        (10_000, Status.WITHIN),
        (12_000, Status.WITHIN),
        (19_000, Status.PERHAPS),
        (30_000, Status.RISEN),
        (200_000, Status.RISEN),
    ],
)
def test_what_is_said_of_traffic(events: int, status: Status) -> None:
    found = judge(events)
    assert found.status == status, found
    assert found.change is not None
    assert found.change == pytest.approx(events / 10_000 - 1, abs=0.02)
    assert found.change_low is not None
    assert found.change_high is not None
    assert -1 <= found.change_low <= found.change <= found.change_high or events == 0


def test_where_nothing_can_be_said_it_says_why() -> None:
    assert judge(1000, [10_000, 9000]).status == Status.NO_BASELINE
    assert (
        judge(1000, [10_000, 9000]).reason == "2 past windows are known, and at least 3 are needed"
    )
    assert judge(1000, [0] * 7).reason == "nothing was counted in the past windows"
    few = judge(0, arrivals=9.9)
    assert (few.status, few.reason) == (
        Status.TOO_LITTLE,
        "usually only 9.9 independent users, and a change needs 10",
    )
    closed = judge_traffic(400, [[0, 0, 0, 50], *[[500, 520, 480, 510]] * 6], 100, RULE)
    assert closed.status == Status.TOO_LITTLE
    assert closed.reason == "usually only 0.5 events at this time, and a change needs 10"
    assert closed.change is None
    wild = judge(9000, [1000, 40_000, 6000, 90_000, 700, 30_000, 8000])
    assert wild.status == Status.DAYS_DIFFER
    assert wild.reason.endswith(
        "past days differ too much to tell whether it is within the tolerance"
    )


def test_one_event_is_singular() -> None:
    assert judge(1).reason.startswith("1 event is 99.9% below the usual")
    assert judge(0).reason.startswith("0 events are 100% below the usual")


def test_a_weekday_of_few_events_varies_as_they_do() -> None:
    """12 events are usual on this weekday, and 10,000 on others: 36 may be chance."""
    quiet, others = [12, 12, 12, 12], [[10_000, 10_010, 9990, 10_000]] * 6
    assert judge_traffic(36, [quiet, *others], 5000, RULE).status != Status.RISEN
    assert judge_traffic(120, [quiet, *others], 5000, RULE).status == Status.RISEN


def test_a_direction_that_is_switched_off_says_nothing() -> None:
    only_falls, only_rises = TrafficRule(rise=0.0), TrafficRule(drop=0.0)
    assert judge_traffic(200_000, [WEEK], 500, only_falls).status == Status.WITHIN
    assert judge_traffic(100, [WEEK], 500, only_falls).status == Status.DROPPED
    assert judge_traffic(100, [WEEK], 500, only_rises).status == Status.WITHIN
    assert judge_traffic(200_000, [WEEK], 500, only_rises).status == Status.RISEN


def test_one_day_with_an_outage_hides_nothing() -> None:
    assert judge(1000, [0, *WEEK[1:]]).status == Status.DROPPED
    assert judge(1000, [900_000, *WEEK[1:]]).status == Status.DROPPED


def test_a_weekend_is_usual_once_weeks_are_known() -> None:
    weekdays = [[2000, 2100, 1900, 2050], *[[10_000, 10_200, 9900, 10_100]] * 6]
    sunday = judge_traffic(2000, weekdays, 100, RULE)
    assert sunday.status == Status.WITHIN
    assert sunday.change_low is not None
    assert sunday.change_high is not None
    assert sunday.reason == (
        "2,000 events are 1.2% below the usual 2,025 (the same weekday, 4 weeks), between "
        f"{change(sunday.change_low)} and {change(sunday.change_high)}"
    )
    assert judge_traffic(600, weekdays, 100, RULE).status == Status.DROPPED
    assert judge_traffic(10_000, weekdays, 100, RULE).status == Status.RISEN


@pytest.mark.parametrize("seed", range(10))
def test_ends_are_those_of_a_trimmed_t_interval(seed: int) -> None:
    """Of seven days, as scipy trims them: 5 of 7 values, 4 degrees of freedom."""
    dice = np.random.default_rng(seed)
    past = np.exp(9 + 0.4 * dice.standard_normal(7)).astype(int).tolist()
    logs = [log(n) for n in past]
    center = trim_mean(logs, 0.15)
    spread = sqrt(variance(winsorize(np.array(logs), (0.15, 0.15)).tolist())) / (1 - 2 / 7)
    reach = student.ppf(0.99, 4) * spread * sqrt(1 + 1 / 5)
    found = judge_traffic(5000, [past], 1e9, RULE)
    assert found.usual == pytest.approx(exp(center))
    assert found.change_low == pytest.approx(exp(log(5000) - center - reach) - 1)
    assert found.change_high == pytest.approx(exp(log(5000) - center + reach) - 1)


@pytest.mark.parametrize("seed", range(10))
def test_weeks_pool_what_days_differ_by_within_weekdays(seed: int) -> None:
    dice = np.random.default_rng(seed)
    weekdays = (
        np.exp(9 + np.arange(7)[:, None] / 3 + 0.3 * dice.standard_normal((7, 4)))
        .astype(int)
        .tolist()
    )
    residuals = [
        log(n) - np.mean(np.sort(np.log(weekday))[1:3]) for weekday in weekdays for n in weekday
    ]
    trimmed = np.sort(residuals)
    trimmed[:2], trimmed[-2:] = trimmed[2], trimmed[-3]
    squares = ((trimmed - trimmed.mean()) ** 2).sum() / (1 - 4 / 28) ** 2
    reach = student.ppf(0.99, 28 - 7 - 4) * sqrt(squares / 21 * (1 + 1 / 2))
    center = np.mean(np.sort(np.log(weekdays[0]))[1:3])
    found = judge_traffic(5000, weekdays, 1e9, RULE)
    assert found.change_high == pytest.approx(exp(log(5000) - center + reach) - 1)


@pytest.mark.parametrize("days_sd", [0.1, 0.6])
def test_usual_traffic_fires_rarely_however_much_days_differ(days_sd: float) -> None:
    """1 % of looks for each end at most, without anything tolerated; and chance."""
    dice, runs = np.random.default_rng(5), 3000
    rule = TrafficRule(drop=1e-9, rise=1e-9)
    wrong = 0
    for _ in range(runs):
        now, *past = np.exp(9 + days_sd * dice.standard_normal(8)).astype(int).tolist()
        wrong += judge_traffic(now, [past], 1e9, rule).status in (Status.DROPPED, Status.RISEN)
    assert wrong / runs <= 0.02 + 3 * sqrt(0.02 * 0.98 / runs)
    assert wrong > 0


def test_on_a_day_of_a_new_kind_only_a_collapse_fires() -> None:
    week = [9000, 10_000, 11_000, 10_500, 9500, 10_200, 9800]
    for events, usual, new in (
        (3500, Status.DROPPED, Status.PERHAPS),
        (1000, Status.DROPPED, Status.DROPPED),
    ):
        assert judge_traffic(events, [week], 5000, TrafficRule()).status == usual
        found = judge_traffic(events, [week], 5000, TrafficRule(), is_new_kind=True)
        assert found.status == new, found
