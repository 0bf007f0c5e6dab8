"""Experiments on logs of real traffic, end to end: crawlers, novelty, dead checkouts, few minutes,
users in several arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.query.notes import notes_of
from streamer.query.readout import readout_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from streamer.stats.experiments.recommendation import Action
from streamer.testing import LogRecord
from tests.query.test_experiments import DAY_MS, FIRST, FIRST_MS
from tests.support.agreement import run_engines

TOPICS = {"impression": "impressions", "click": "clicks", "conversion": "conversions"}
Event = dict[str, Any]


def settings_of(metric: str, **more: Any) -> Settings:
    experiment: dict[str, Any] = {
        "name": "x",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": FIRST,
        "metrics": [{"name": metric}],
    }
    return parse({"dimensions": [{"name": "variant"}], "experiments": [experiment | more]})


def stored_of(events: Iterable[Event], settings: Settings) -> StoredExperiment:
    """What readers know after these events."""
    records = [
        LogRecord(TOPICS[e["type"]], 0, i, e["ts"], msgspec.json.encode(e))
        for i, e in enumerate(sorted(events, key=lambda e: int(e["ts"])))
    ]
    engines = run_engines(settings, 1, records, 10**6, None)
    views = [view_of(p) for p in engines.partitions]
    return stored_experiments(settings, engines.catalogue.experiment_measures, views)["x"]


def visits(
    dice: np.random.Generator, users: int, days: int, rate: Any, shown: int = 4
) -> Iterable[Event]:
    """Users of two arms, who come on each day from their first on; ``rate``: of clicks, by arm and
    days since the first."""
    for user in range(users):
        arm, first = "AB"[user % 2], int(dice.integers(0, days))
        for day in range(first, days):
            at = FIRST_MS + day * DAY_MS + user * 1000
            who = {"user_id": f"u{user}", "variant": arm}
            for i in range(shown):
                yield {"type": "impression", "ts": at + i, "item_id": f"i{i}", **who}
            for i in np.flatnonzero(dice.random(shown) < rate(arm, day - first)).tolist():
                yield {"type": "click", "ts": at + 100 + i, "item_id": f"i{i}", **who}


@pytest.mark.parametrize(("crawlers", "each"), [(1, 9_000), (3, 2_500)])
def test_crawlers_ship_nothing(crawlers: int, each: int) -> None:
    """They have most impressions of an arm, and click nothing; there is no difference."""
    dice = np.random.default_rng(2)
    events = list(visits(dice, 500, 8, lambda arm, age: 0.3))
    for crawler in range(crawlers):
        who = {"user_id": f"crawler{crawler}", "variant": "A"}
        for i in range(each):
            at = FIRST_MS + i * 8 * DAY_MS // each
            events.append({"type": "impression", "ts": at, "item_id": f"i{i % 50}", **who})
    found = stored_of(events, settings_of("ctr_ratio")).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.KEEP_RUNNING
    (metric,) = found.metrics
    assert metric.capped_at is not None
    assert any("A user counts for at most" in note.text for note in notes_of(found))
    assert any("of the impressions of A." in note.text for note in notes_of(found))
    value = metric.found.arms[0].value
    assert value is not None
    assert value > 0.2  # whole it would be below 0.2: the crawlers weigh as other users

    whole = settings_of("ctr_ratio", metrics=[{"name": "ctr_ratio", "cap": 0}])
    found = stored_of(events, whole).read()
    comparison = found.metrics[0].found.comparisons[0]
    assert comparison.absolute.anytime is None
    least = "user has" if crawlers == 1 else f"{crawlers} users have"
    assert f"the largest {least}" in comparison.verdict.reason
    assert found.recommendation is not None
    assert found.recommendation.action is Action.KEEP_RUNNING


def assigned(shares: Sequence[float], a_day: int, seed: int = 3) -> Iterable[Event]:
    """Users who come once, A with these shares by day; in the second half of the days all click
    more, whatever their arm."""
    dice = np.random.default_rng(seed)
    for day, share in enumerate(shares):
        rate = 0.1 if day < len(shares) / 2 else 0.3
        for user in range(a_day):
            who = {"user_id": f"u{day}-{user}", "variant": "A" if dice.random() < share else "B"}
            at = FIRST_MS + day * DAY_MS + 1000 * user
            for i in range(4):
                yield {"type": "impression", "ts": at + i, "item_id": f"i{i}", **who}
            if dice.random() < rate:
                yield {"type": "click", "ts": at + 100, "item_id": "i0", **who}


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.8] * 4 + [0.2] * 4, "and 20"),
        ([1.0] * 4 + [0.0] * 4, "On no day users came to two arms."),
        ([0.5] * 5 + [0.8] + [0.5] * 2, "Users are not split as planned"),
    ],
)
def test_a_split_that_is_right_in_sum_and_wrong_by_day(shares: list[float], words: str) -> None:
    """An A/A test beside a promotion: what differs is who came when."""
    found = stored_of(assigned(shares, 400), settings_of("clicks_per_user")).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.DO_NOT_USE
    assert words in found.recommendation.reason
    (note,) = (note for note in notes_of(found) if note.kind == "split")
    assert note.text == found.recommendation.reason
    if shares[0] == 0.8:
        until = (FIRST + timedelta(days=3)).isoformat()
        assert f"until {until}" in note.text


def test_a_sound_split_stays_sound() -> None:
    found = stored_of(assigned([0.5] * 8, 400), settings_of("clicks_per_user")).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.KEEP_RUNNING


def test_novelty_is_not_shipped() -> None:
    """Clicks rise by 150 % on a user's first day, and fall by a third from the fourth on."""
    dice = np.random.default_rng(4)

    def rate(arm: str, age: int) -> float:
        return 0.2 if arm == "A" else 0.5 if age == 0 else 0.2 if age < 3 else 0.13

    stored = stored_of(visits(dice, 1600, 9, rate, shown=8), settings_of("ctr_ratio"))
    found = stored.read()
    ages = {
        age: its.comparisons[0].verdict.outcome.value for age, its in found.metrics[0].ages.items()
    }
    assert ages["first day"] == "better"
    assert ages["days 4-7"] == "worse"
    assert found.recommendation is not None
    assert found.recommendation.action is not Action.SHIP
    assert any(
        note.line.startswith("ctr_ratio: Lift of B by days since") for note in notes_of(found)
    )


def once_each(late: float) -> list[Event]:
    """4,000 users of ten days, of whom 20 % click in A; in B 45 %, and from the sixth day on this
    share of newcomers."""
    dice = np.random.default_rng(5)
    events: list[Event] = []
    for user in range(4000):
        arm, day = "AB"[user % 2], user * 10 // 4000
        share = 0.2 if arm == "A" else 0.45 if day < 5 else late
        who = {"user_id": f"u{user}", "variant": arm, "item_id": "i"}
        at = FIRST_MS + day * DAY_MS + user % 400 * 1000
        events.append({"type": "impression", "ts": at, **who})
        if dice.random() < share:
            events.append({"type": "click", "ts": at + 5, **who})
    return events


def test_a_decision_is_kept_with_its_day() -> None:
    """B wins for five days and less later; what was decided on day 4 stays said, and the same from
    state that was read anew."""
    settings = settings_of("ctr_ratio", min_days=4)
    stored = stored_of(once_each(0.35), settings)
    advice = stored.read().recommendation
    assert advice is not None
    assert advice.action is Action.SHIP
    assert advice.since is not None
    assert (advice.since - FIRST).days == 3  # the end of the fourth day
    assert "Today's look says: " in advice.reason
    assert stored_of(once_each(0.35), settings).read().recommendation == advice
    made = readout_of(stored, stored.read()).recommendation
    assert made is not None
    assert made.words == f"ship B, since {advice.since}"
    early = stored.read(stored.trial.days.start + 2).recommendation
    assert early is not None
    assert early.words == "wait: 1 more day"


def test_a_decision_is_withdrawn_where_the_effect_is_another_one() -> None:
    """Nobody who comes from the sixth day on clicks in B: the range of today lies wholly below the
    one that decided, and no second decision follows."""
    stored = stored_of(once_each(0.0), settings_of("ctr_ratio", min_days=4))
    found = stored.read()
    advice = found.recommendation
    assert advice is not None
    assert (advice.action, advice.arm) == (Action.CHANGED, None)
    day_4 = (FIRST + timedelta(days=3)).isoformat()
    assert f"(ship B, at the end of {day_4})" in advice.reason
    assert advice.reason.startswith("By ")
    assert "the effect has changed: its range lies wholly outside" in advice.reason
    made = readout_of(stored, found).recommendation
    assert made is not None
    assert made.words == "do not use: the effect changed"


def test_what_differs_late_is_shipped_by_the_last_age_only() -> None:
    """A first day of +150 % and nothing afterwards: the whole is better, and not shipped."""
    dice = np.random.default_rng(4)

    def rate(arm: str, age: int) -> float:
        return 0.5 if arm == "B" and age == 0 else 0.2

    found = stored_of(visits(dice, 1600, 9, rate, shown=8), settings_of("ctr_ratio")).read()
    (metric,) = found.metrics
    assert metric.found.comparisons[0].verdict.outcome.value == "better"
    last = [its.comparisons[0].verdict.outcome.value for its in metric.ages.values()][-1]
    assert last != "worse"
    assert found.recommendation is not None
    assert found.recommendation.action is Action.KEEP_RUNNING
    assert "the novelty wears off" in found.recommendation.reason


def test_a_dead_checkout_is_seen() -> None:
    """Nobody buys in B, and purchases are rare."""
    events = []
    for user in range(3000):
        who = {"user_id": f"u{user}", "variant": "AB"[user % 2], "item_id": "i"}
        events.append({"type": "impression", "ts": FIRST_MS + user * 60_000, **who})
        if user % 100 == 0:
            events.append({"type": "conversion", "ts": FIRST_MS + user * 60_000 + 9, **who})
    found = stored_of(events, settings_of("user_conversion_ratio")).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.STOP_HARM
    assert (
        "have a value other than 0: 0 of 720, compared with 15 of 720 in A"
        in found.recommendation.reason
    )


def test_minutes_of_data_are_minutes() -> None:
    """The declared start is three weeks ago, and events have come for a quarter of an hour."""
    at = FIRST_MS + 22 * DAY_MS + 12 * 3_600_000
    events = [
        {
            "type": kind,
            "ts": at + user * 900 + (kind == "click"),
            "user_id": f"u{user}",
            "item_id": "i",
            "variant": "AB"[user % 2],
        }
        for user in range(1000)
        for kind in ("impression", *(["click"] * (user % 4 < 2 and user % 2)))
    ]
    found = stored_of(events, settings_of("ctr_ratio")).read()
    assert found.data is not None
    assert (found.data.words, found.data.days) == ("14 minutes of data", 0)
    assert next(notes_of(found)).line == (
        "14 minutes of data, since 2025-06-24 12:00 UTC; its declared start is 2025-06-02."
    )
    assert found.recommendation is not None
    assert found.recommendation.words == "wait: 7 more days"


def test_attributed_outcomes_that_count_nowhere_are_told() -> None:
    """A's users buy without a click, so that their purchases carry no arm."""
    events: list[Event] = []
    for user in range(100):
        who = {"user_id": f"u{user}", "item_id": "i"}
        arm = "AB"[user % 2]
        at = FIRST_MS + user * 1000
        events.append({"type": "impression", "ts": at, "variant": arm, **who})
        if arm == "B":
            events.append({"type": "click", "ts": at + 1, **who})
        events.append({"type": "conversion", "ts": at + 2, "value": 5, **who})
    settings = settings_of("conversion_value_per_user", outcomes="attributed")
    found = stored_of(events, settings).read()
    assert found.outside is not None
    assert (found.outside.before_exposure, found.outside.unexposed) == (50, 0)
    assert any("50 without their user's arm" in note.text for note in notes_of(found))


def test_many_users_in_several_arms_stop_the_readout() -> None:
    events = []
    for user in range(1000):
        for i, arm in enumerate("AB" if user % 8 == 0 else "AB"[user % 2]):
            who = {"user_id": f"u{user}", "variant": arm, "item_id": f"i{i}"}
            events.append({"type": "impression", "ts": FIRST_MS + user * 1000 + i, **who})
    found = stored_of(events, settings_of("ctr_ratio")).read()
    assert found.recommendation is not None
    assert found.recommendation.action in (Action.DO_NOT_USE_ARMS, Action.DO_NOT_USE)


def test_one_look_at_the_end_decides_where_that_was_planned() -> None:
    """A lift that an interval at any time does not show yet, and one look does."""
    dice = np.random.default_rng(9)
    events = list(visits(dice, 700, 4, lambda arm, age: 0.3 if arm == "A" else 0.325))
    last = {"type": "impression", "ts": FIRST_MS + 4 * DAY_MS + 1, "user_id": "late"}
    events.append(last | {"item_id": "i", "variant": "none"})
    end = FIRST.replace(day=FIRST.day + 3)
    more = {"end": end, "min_days": 2}
    any_time = stored_of(events, settings_of("ctr_ratio", **more)).read()
    stored = stored_of(events, settings_of("ctr_ratio", decide="at_end", planned_users=800, **more))
    at_end, before = stored.read(), stored.read(stored.trial.days.stop - 2)
    assert any_time.recommendation is not None
    assert any_time.recommendation.action is Action.UNDECIDED
    assert at_end.recommendation is not None
    assert at_end.recommendation.words == "ship B"
    assert "experiments, judged once at the end" in at_end.recommendation.reason
    assert before.recommendation is not None
    assert before.recommendation.action is Action.KEEP_RUNNING
    assert "The one look at the end decides." in before.recommendation.reason
    assert [note.text for note in notes_of(at_end)][1] == (
        f"One look after the last day, {end}, decides (700 of 800 planned users so far); before "
        "that only harm is reported."
    )
