"""Experiments on logs of real traffic, end to end: crawlers, novelty, dead checkouts, few minutes,
users in several arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer.errors import SettingsError
from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.query.exploration import explored
from streamer.query.notes import notes_of
from streamer.query.readout import readout_of
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.snapshot import view_of
from streamer.state.user_days import DAY, Days
from streamer.stats.experiments.recommendation import Action, Recommendation
from tests.query.test_experiments import DAY_MS, FIRST, FIRST_MS
from tests.support.agreement import run_engines
from tests.support.engines import LogRecord
from tests.support.lanes import long

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


def stored_of(events: Iterable[Event], settings: Settings, size: int = 10**6) -> StoredExperiment:
    """What readers know after these events, ``size`` at a time."""
    records = [
        LogRecord(TOPICS[e["type"]], 0, i, e["ts"], msgspec.json.encode(e))
        for i, e in enumerate(sorted(events, key=lambda e: int(e["ts"])))
    ]
    engines = run_engines(settings, 1, records, size, None)
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
    settings = settings_of("ctr_ratio", min_days=4, whole_weeks=False)
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
    stored = stored_of(once_each(0.0), settings_of("ctr_ratio", min_days=4, whole_weeks=False))
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
    more = {"end": end, "min_days": 2, "whole_weeks": False}
    any_time = stored_of(events, settings_of("ctr_ratio", **more)).read()
    stored = stored_of(events, settings_of("ctr_ratio", decide="at_end", planned_users=700, **more))
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
        f"One look after the last day, {end}, decides (700 of 700 planned users so far); before "
        "that only harm is reported."
    )


def test_who_ends_early_does_not_choose_the_look() -> None:
    """The same, of twice as many users as came."""
    dice = np.random.default_rng(9)
    events = list(visits(dice, 700, 4, lambda arm, age: 0.3 if arm == "A" else 0.325))
    last = {"type": "impression", "ts": FIRST_MS + 4 * DAY_MS + 1, "user_id": "late"}
    events.append(last | {"item_id": "i", "variant": "none"})
    more = {"end": FIRST.replace(day=FIRST.day + 3), "min_days": 2, "whole_weeks": False}
    settings = settings_of("ctr_ratio", decide="at_end", planned_users=1400, **more)
    found = stored_of(events, settings).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.UNDECIDED
    (note,) = (note for note in notes_of(found) if note.kind == "plan")
    assert "(700 of 1,400 planned users so far)" in note.text
    assert note.text.endswith("With fewer users the range that holds at every look decides.")


def test_repeats_without_ids_show_beside_what_joined() -> None:
    """Each click of B is logged twice."""
    dice = np.random.default_rng(3)
    events = list(visits(dice, 800, 2, lambda arm, age: 0.2))
    twice = [
        e | {"ts": e["ts"] + 1} for e in events if e["type"] == "click" and e["variant"] == "B"
    ]
    metrics = [{"name": "ctr_ratio"}, {"name": "ctr_attributed_ratio"}]
    found = stored_of([*events, *twice], settings_of("", metrics=metrics)).read()
    (note,) = (note for note in notes_of(found) if note.kind == "disagreement")
    assert "one arm has repeats without event_id" in note.text
    clean = stored_of(events, settings_of("", metrics=metrics)).read()
    assert not [note for note in notes_of(clean) if note.kind == "disagreement"]


# Days and weeks ----------------------------------------------------------------------------------


def newcomers(
    days: int, rate: Callable[[str, int], float], a_day: int = 300, *, lost: int | None = None
) -> Iterable[Event]:
    """Users who come once, with eight impressions; ``rate``: of clicks by arm and day; on the day
    ``lost`` the impressions of B, but the first of each user, are not logged."""
    dice = np.random.default_rng(5)
    for day in range(days):
        for user in range(a_day):
            arm, at = "AB"[user % 2], FIRST_MS + day * DAY_MS + 1000 * user
            who = {"user_id": f"u{day}-{user}", "variant": arm}
            shown = 2 if arm == "B" and day == lost else 8
            for i in range(shown):
                yield {"type": "impression", "ts": at + i, "item_id": f"i{i}", **who}
            for i in np.flatnonzero(dice.random(8) < rate(arm, day)).tolist():
                yield {"type": "click", "ts": at + 100 + i, "item_id": f"i{i}", **who}


def advice_of(stored: StoredExperiment) -> Recommendation:
    found = stored.read().recommendation
    assert found is not None
    return found


@long
def test_one_day_without_impressions_ships_nothing_and_is_named() -> None:
    """A/A; for a day most of B's impressions are lost, and its clicks are not."""
    events = list(newcomers(8, lambda arm, day: 0.2, 1200, lost=2))
    advice = advice_of(stored_of(events, settings_of("ctr_ratio")))
    bad = (FIRST + timedelta(days=2)).isoformat()
    assert advice.action is Action.KEEP_RUNNING
    assert f"B has a better ctr_ratio so far, but without {bad} it is " in advice.reason
    stored = stored_of(events, settings_of("ctr_ratio"))
    made = readout_of(stored, stored.read())
    (note,) = (note for note in made.notes if note.kind == "odd day")
    assert note.text.startswith(f"{bad} is odd: the lift of B is +")
    assert (
        "; B 2.0 impressions (8.0 on other days) and 1.6 clicks (1.6 on other days). " in note.text
    )
    told = stored_of(events, settings_of("ctr_ratio", exclude=[FIRST + timedelta(days=2)]))
    found = told.read()
    assert "could be anything from" in advice_of(told).reason
    assert any(note.text.startswith(f"Without {bad} (exclude)") for note in notes_of(found))
    arm = found.metrics[0].found.arms[1]
    assert arm.value == pytest.approx(0.2, abs=0.01)
    assert arm.users == 4800


def test_an_excluded_day_is_as_if_it_were_not_in_the_log() -> None:
    """Everybody comes every day, so that without the first the log has the same users."""
    dice = np.random.default_rng(6)
    events = list(visits(dice, 400, 4, lambda arm, age: 0.2))
    away = [e for e in events if e["ts"] // DAY_MS != FIRST_MS // DAY_MS + 1]
    whole = stored_of(events, settings_of("ctr_ratio", exclude=[FIRST + timedelta(days=1)]))
    both = whole, stored_of(away, settings_of("ctr_ratio"))
    arms = [each.read().metrics[0].found.arms for each in both]
    assert [a.value for a in arms[0]] == [a.value for a in arms[1]]


def test_a_decision_has_to_hold_with_the_days_that_are_excluded() -> None:
    def rate(arm: str, day: int) -> float:
        return 0.05 if arm == "B" and day == 3 else 0.28 if arm == "B" else 0.25

    gain = list(newcomers(8, rate, 1200))
    excluded = settings_of("ctr_ratio", exclude=[FIRST + timedelta(days=3)], min_days=6)
    advice = advice_of(stored_of(gain, excluded))
    assert advice.action is Action.KEEP_RUNNING
    assert "but with the days that are excluded it is " in advice.reason


def test_only_whole_weeks_ship() -> None:
    """+15 % on weekdays, -40 % at weekends; FIRST is a Monday."""

    def rate(arm: str, day: int) -> float:
        return 0.3 * (1 if arm == "A" else 0.6 if day % 7 > 4 else 1.15)

    events = list(newcomers(12, rate, 500))
    advice = advice_of(stored_of(events, settings_of("ctr_ratio")))
    assert advice.action in (Action.KEEP_RUNNING, Action.WAIT)
    gain = list(newcomers(10, lambda arm, day: 0.3 if arm == "A" else 0.4))
    shipped = advice_of(stored_of(gain, settings_of("ctr_ratio")))
    assert (shipped.action, shipped.since) == (Action.SHIP, FIRST + timedelta(days=6))
    early = stored_of(gain[: len(gain) // 2], settings_of("ctr_ratio")).read().recommendation
    assert early is not None
    assert early.words == "wait: 2 more days"


def test_an_end_within_a_week_decides_nothing_and_is_warned_of() -> None:
    gain = list(newcomers(6, lambda arm, day: 0.3 if arm == "A" else 0.4))
    stored = stored_of(gain, settings_of("ctr_ratio", end=FIRST + timedelta(days=4)))
    advice = advice_of(stored)
    assert advice.action is Action.UNDECIDED
    assert "only whole weeks decide" in advice.reason
    (note,) = (n for n in notes_of(stored.read()) if n.kind == "whole weeks")
    assert note.text.startswith("The end, 2025-06-06, is 5 days after a whole week")


def test_harm_waits_for_weekend_and_weekdays_and_is_then_said() -> None:
    """A loss on weekdays, seen from Monday on; without any click of B it is harm at once."""

    def rate(arm: str, day: int) -> float:
        return 0.3 if arm == "A" else 0.2

    early = advice_of(stored_of(newcomers(4, rate), settings_of("ctr_ratio")))
    assert early.action is Action.KEEP_RUNNING
    assert "B has a worse ctr_ratio so far, but there are no weekend days yet" in early.reason
    assert (
        advice_of(stored_of(newcomers(7, rate), settings_of("ctr_ratio"))).words
        == "stop: harm, since 2025-06-07"
    )
    nothing = newcomers(1, lambda arm, day: 0.1 if arm == "A" else 0.0)
    lost = advice_of(stored_of(nothing, settings_of("clicks_per_user")))
    assert lost.words == "stop: harm"
    nothing = newcomers(1, lambda arm, day: 0.1 if arm == "A" else 0.0, 60)
    canary = advice_of(stored_of(nothing, settings_of("ctr_ratio")))
    assert canary.words == "stop: harm"
    assert "0 of 30, compared with " in canary.reason


def test_by_day_each_day_has_what_was_done_on_it() -> None:
    """B's clicks are half as many on the third day, and none is lost on the others."""

    def rate(arm: str, day: int) -> float:
        return 0.1 if (arm, day) == ("B", 2) else 0.3

    log = sorted(newcomers(4, rate, 600), key=lambda e: int(e["ts"]))
    replay = Replay(settings_of("ctr_ratio"), 2)
    replay.feed([(LINE_TYPES[e["type"]], e["ts"], msgspec.json.encode(e)) for e in log])
    replay.finish()
    stored = replay.experiments()["x"]
    sums = replay.sums_of_days(Days(stored.trial, stored.so_far, DAY))
    found = explored(stored, DAY, sums, stored.so_far)
    days = [(FIRST + timedelta(days=n)).isoformat() for n in range(4)]
    assert [*found.values] == days
    assert f"differs by day (p < 0.0001 at one look): {days[2]} stands apart" in (
        found.heterogeneity[0].sentence
    )
    clicks = Counter((e["variant"], e["ts"] // DAY_MS) for e in log if e["type"] == "click")
    shown = Counter((e["variant"], e["ts"] // DAY_MS) for e in log if e["type"] == "impression")
    for number, day in enumerate(days):
        key = "B", FIRST_MS // DAY_MS + number
        assert found.values[day].metrics[0].arms[1].value == clicks[key] / shown[key]


def test_users_who_leave_one_arm_are_told_however_few_they_are() -> None:
    """Of B's users who click nothing one in ten is moved to A: 3 % of all, and none of A's."""
    events: list[Event] = []
    for user in range(3000):
        arm = "AB"[user % 2]
        who = {"user_id": f"u{user}", "variant": arm, "item_id": "i"}
        at = FIRST_MS + user * 1000
        events.append({"type": "impression", "ts": at, **who})
        if user % 30 == 1:
            events.append({"type": "impression", "ts": at + 9, **(who | {"variant": "A"})})
        elif user % 3 == 1:
            events.append({"type": "click", "ts": at + 9, **who})
    found = stored_of(events, settings_of("ctr_ratio")).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.DO_NOT_USE_ARMS
    began = "100 of 100 began in B, and 50.0% would be expected"
    assert began in found.recommendation.reason
    assert any(began in note.text for note in notes_of(found) if note.kind == "several arms")
    both = [e | {"variant": "AB"[e["ts"] // 1000 % 2]} for e in events if e["user_id"][1:] > "2"]
    assert stored_of(both, settings_of("ctr_ratio")).read().leaning == ""


# Ramps -------------------------------------------------------------------------------------------

RAMP = [
    {"from": FIRST, "A": 99, "B": 1},
    {"from": FIRST + timedelta(days=3), "A": 1, "B": 1},
]


def ramp(days: int, gain: float, a_day: int = 1500, *, moved: bool = False) -> Iterable[Event]:
    """One of a hundred is in B for three days, and half of them later, when all click more;
    ``gain``: of B. ``moved``: who came first in A comes again in B, once that grows."""
    dice = np.random.default_rng(8)
    for day in range(days):
        rate = 0.05 if day < 3 else 0.2
        for user in range(a_day):
            arm = "B" if dice.random() < (0.01 if day < 3 else 0.5) else "A"
            for again in range(1 + (moved and day < 3 and user % 2)):
                arm = "B" if again else arm
                at = FIRST_MS + (day + 3 * again) * DAY_MS + 10 * user
                who = {"user_id": f"u{day}-{user}", "variant": arm}
                for i in range(4):
                    yield {"type": "impression", "ts": at + i, "item_id": f"i{i}", **who}
                    if dice.random() < rate * (gain if arm == "B" else 1):
                        yield {"type": "click", "ts": at + 5, "item_id": f"i{i}", **who}


def test_a_ramp_of_no_effect_ships_nothing() -> None:
    """With one split it is broken; with the total's it would be a gain of the later days."""
    events = list(ramp(8, 1.0))
    assert advice_of(stored_of(events, settings_of("ctr_ratio"))).action is Action.DO_NOT_USE
    found = stored_of(events, settings_of("ctr_ratio", split=RAMP)).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.KEEP_RUNNING
    lift = found.primary.found.comparisons[0].relative
    assert lift.value == pytest.approx(0.0, abs=0.1)
    assert lift.anytime is not None
    assert not found.primary.found.split.is_wrong
    (note,) = (note for note in notes_of(found) if note.kind == "periods")
    assert note.text.startswith(f"Lift of B by periods of the split: from {FIRST} ")
    total = sum(e["variant"] == "B" for e in events if e["type"] == "impression")
    shown = sum(e["type"] == "impression" for e in events)
    wrong = {"A": shown - total, "B": total}
    naive = stored_of(events, settings_of("ctr_ratio", split=wrong)).read().primary
    assert (naive.found.comparisons[0].relative.value or 0) > 0.2


def test_a_ramp_with_an_effect_is_found() -> None:
    found = stored_of(ramp(8, 1.3), settings_of("ctr_ratio", split=RAMP)).read()
    assert found.recommendation is not None
    assert found.recommendation.action is Action.SHIP
    value = found.primary.found.comparisons[0].relative.value
    assert value == pytest.approx(0.3, abs=0.08)


def test_who_came_in_an_earlier_period_is_not_of_a_later_one() -> None:
    """They saw A before, whose users they were."""
    settings = settings_of("ctr_ratio", split=RAMP)
    plain, moved = (stored_of(ramp(6, 1.0, 300, moved=m), settings) for m in (False, True))
    later = f"from {RAMP[1]['from']}"
    arms = [its.read().primary.periods[later].arms for its in (plain, moved)]
    assert [sum(arm.users for arm in its) for its in arms] == [900, 900]


@pytest.mark.parametrize(
    ("split", "wrong"),
    [
        ([{"A": 1, "B": 1}], "each period has a from"),
        ([RAMP[0], {**RAMP[1], "C": 1}], "every period has the same arms"),
        ([RAMP[1], RAMP[0]], "then later days"),
    ],
)
def test_a_ramp_that_is_none(split: list[dict[str, Any]], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong):
        settings_of("ctr_ratio", split=split)


# Outcomes that come late -------------------------------------------------------------------------


def buyers(days: int, wait: Mapping[str, int], a_day: int = 500) -> Iterable[Event]:
    """One of five users buys once, so many days after coming."""
    for day in range(days):
        for user in range(a_day):
            arm, at = "AB"[user % 2], FIRST_MS + day * DAY_MS + 10 * user
            who = {"user_id": f"u{day}-{user}", "variant": arm, "item_id": "i"}
            yield {"type": "impression", "ts": at, **who}
            if user % 10 < 2 and day + wait[arm] < days:
                yield {"type": "conversion", "ts": at + wait[arm] * DAY_MS + 1, **who}


def test_who_buys_later_is_no_harm_yet() -> None:
    """A's users buy on the next day, B's three days later; nobody of B has any after three."""
    settings = settings_of("user_conversion_ratio")
    advice = advice_of(stored_of(buyers(3, {"A": 1, "B": 3}), settings))
    assert advice.action is Action.KEEP_RUNNING
    assert "nobody has any yet, and outcomes may take 1 more day" in advice.reason
    later = advice_of(stored_of(buyers(12, {"A": 1, "B": 3}), settings))
    assert later.action is not Action.STOP_HARM
    assert advice_of(stored_of(buyers(9, {"A": 0, "B": 99}), settings)).action is Action.STOP_HARM


def test_mature_users_are_compared_after_as_many_days() -> None:
    """Over two partitions, and event by event."""
    log = list(buyers(9, {"A": 1, "B": 3}))
    window = {"within": "4d", "mature": True}
    metrics = [{"name": "user_conversion_ratio", **window}, {"name": "cvr_ratio", "within": "2d"}]
    settings = settings_of("user_conversion_ratio", metrics=metrics)
    replay, lines = Replay(settings, 2), sorted(log, key=lambda e: int(e["ts"]))
    replay.feed([(LINE_TYPES[e["type"]], e["ts"], msgspec.json.encode(e)) for e in lines])
    replay.finish()
    for stored in (replay.experiments()["x"], stored_of(log, settings, 97)):
        found = stored.read()
        mature, early = found.metrics
        assert [arm.users for arm in mature.found.arms] == [6 * 250] * 2
        assert [arm.value for arm in mature.found.arms] == [0.2, 0.2]
        assert mature.ages == {}
        assert [note.text for note in notes_of(found) if note.kind == "window"] == [
            "Only the first 4 days of each user count (within), of the 3,000 users who have had "
            "them (mature).",
            "Only the first 2 days of each user count (within).",
        ]
        assert early.found.arms[1].value in (0, None)


@pytest.mark.parametrize(
    ("metric", "wrong"),
    [
        ({"mature": True}, "mature = true without within"),
        ({"within": "36h"}, "whole days, at most 90"),
    ],
)
def test_windows_are_whole_days(metric: dict[str, Any], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong):
        settings_of("", metrics=[{"name": "user_conversion_ratio", **metric}])
