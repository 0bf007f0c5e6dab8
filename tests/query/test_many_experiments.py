"""Many experiments at once: found or declared, listed, compared with each other."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest

from streamer.errors import SettingsError, UsageError
from streamer.query.exactness import ExactnessInputs, inexact
from streamer.query.experiment_list import Readouts, list_of, listed, only, read_one
from streamer.query.experiment_metrics import by_arm
from streamer.query.experiment_pairs import interaction_list, pair_list, pairs
from streamer.query.notes import Severity, notes_of
from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.user_days import Across, Arm, Days
from streamer.stats.experiments.recommendation import Action
from streamer.stats.experiments.trials import cumulated
from tests.support.assigned import FIRST, FIRST_MS, events, experiment, exposure, replayed

DEFAULTS = {"arm": "experiments", "metrics": [{"name": "ctr_ratio"}, {"name": "clicks_per_user"}]}


def settings_of(*experiments: dict[str, Any], **more: Any) -> Settings:
    defaults = {"arm": "experiments", **more.pop("defaults", {})}
    return parse(
        {"experiments": list(experiments), "experiments_defaults": defaults, "dimensions": []}
        | more
    )


def halves(user: int) -> Mapping[str, str]:
    """Two experiments, each split by a hash of its own."""
    return {name: Random(f"{name} {user}").choice(("old", "new")) for name in ("ranker", "layout")}


def clicked(arms: Mapping[str, str]) -> float:
    """A new ranker finds more, a new layout loses half."""
    rate = 0.2 * (1.4 if arms.get("ranker") == "new" else 1)
    return rate * (0.5 if arms.get("layout") == "new" else 1)


# Found, not declared -----------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_what_is_found_counts_as_if_it_were_declared(partitions: int) -> None:
    log = list(events(300, halves, days=3))
    metrics = DEFAULTS["metrics"]
    declared = replayed(
        settings_of(experiment("ranker", metrics=metrics), experiment("layout", metrics=metrics)),
        log,
        partitions,
    ).experiments()
    found = replayed(settings_of(defaults=DEFAULTS), log, partitions).experiments()
    assert list(found) == ["layout", "ranker"]
    for name, its in found.items():
        assert its.is_found
        ours, theirs = its.read(), declared[name].read()
        assert ours.experiment.control == "old"
        assert ours.users == {arm: theirs.users[arm] for arm in ours.experiment.arms}
        assert ours.outside == theirs.outside
        for a, b in zip(ours.metrics, theirs.metrics, strict=True):
            assert a.found == b.found
        assert ours.recommendation == theirs.recommendation


def test_days_of_what_was_found_are_read_from_the_rows() -> None:
    replay = replayed(settings_of(defaults=DEFAULTS), list(events(200, halves, days=3)))
    stored = replay.experiments()["ranker"]
    whole = replay.sums_of_days(Days(stored.trial, stored.so_far))
    days = stored.so_far
    assert stored.of_parts(whole[""], days.start, days[-1]).users == stored.read().users
    some = replay.sums_of_days(Days(stored.trial, days[1:]))
    read = stored.of_parts(some[""], days[1], days[-1])
    assert read.users == stored.read().users
    assert read.metrics[0].found != stored.read().metrics[0].found


def test_a_declared_experiment_is_not_found_besides() -> None:
    replay = replayed(
        settings_of(experiment("shown", key="ranker"), defaults=DEFAULTS),
        list(events(50, halves)),
    )
    assert {name: its.is_found for name, its in replay.experiments().items()} == {
        "shown": False,
        "layout": True,
    }


def test_an_experiment_with_one_arm_so_far_is_none() -> None:
    log = list(events(20, lambda user: {"flag": "true", "test": "ab"[user % 2]}))
    assert list(replayed(settings_of(defaults=DEFAULTS), log).experiments()) == ["test"]


def test_keys_become_names() -> None:
    log = list(events(20, lambda user: {"Home page": "ab"[user % 2], "Home_page": "ab"[user % 2]}))
    found = replayed(settings_of(defaults=DEFAULTS), log).experiments()
    assert sorted(its.experiment.called for its in found.values()) == ["Home page", "Home_page"]
    assert all(name.startswith("Home_page") for name in found)


def test_of_too_many_the_same_are_kept_in_every_partition() -> None:
    def of(user: int) -> Mapping[str, str]:
        return {f"e{n}": Random(f"{n} {user}").choice("ab") for n in range(12)}

    few = settings_of(defaults={**DEFAULTS, "max_found": 4})
    log = list(events(60, of))
    one, three = (replayed(few, log, n) for n in (1, 3))
    assert len(one.experiments()) == 4
    assert one.experiments().keys() == three.experiments().keys()
    assert one.views()[0].header.counters["left_out_experiments"] > 0
    for name, its in one.experiments().items():
        assert its.read().users == three.experiments()[name].read().users


@pytest.mark.parametrize("is_first", [True, False])
def test_a_robot_that_invents_names_puts_out_no_true_one(is_first: bool) -> None:
    few = settings_of(defaults={**DEFAULTS, "max_found": 10})
    log = list(events(400, halves))
    until_ms = max(int(event["ts"]) for event in log)
    robot = {"type": "impression", "user_id": "robot", "item_id": "i"}
    said = [{f"x{n}": "a", "ranker": f"x{n}"} for n in range(200)]
    at_ms = FIRST_MS if is_first else until_ms
    flood = [{**robot, "ts": at_ms, "experiments": one} for one in said]
    alone, flooded = (replayed(few, x) for x in (log, flood + log if is_first else log + flood))
    for name in ("ranker", "layout"):
        users = flooded.experiments()[name].read().users
        assert {arm: users[arm] for arm in users if not arm.startswith("x")} == (
            alone.experiments()[name].read().users
        )
    headers = [view.header for view in flooded.views()]
    causes = [one.cause for one in inexact(ExactnessInputs(few, headers))]
    assert "found_experiments" in causes


def test_rows_that_left_early_are_a_note_of_every_readout() -> None:
    log = list(events(400, halves))
    for bound, is_said in ((150, True), (100_000, False)):
        small = settings_of(defaults=DEFAULTS, limits={"open_impressions": bound})
        found = replayed(small, log).experiments()["ranker"].read()
        said = [note for note in notes_of(found) if note.kind == "joins"]
        assert [note.severity for note in said] == ([Severity.WARNING] if is_said else [])
        assert all(f"{found.left_early:,} impressions" in note.text for note in said)


def test_what_is_silent_is_retired_and_its_rows_leave() -> None:
    settings = settings_of(defaults={**DEFAULTS, "silent_days": 2})
    log = list(events(30, halves, days=2))
    later = FIRST_MS + 10 * DAY_MS
    for user in range(30):
        own = {"user_id": f"u{user}", "item_id": "i", "experiments": {"other": "ab"[user % 2]}}
        log += [{"type": "impression", "ts": later + user, **own}]
        log += [{"type": "impression", "ts": later + 3 * 3_600_000 + user, **own}]
    log.sort(key=lambda event: int(event["ts"]))
    replay = replayed(settings, log)
    assert list(replay.experiments()) == ["other"]
    assert replay.experiments()["other"].read().users == {"a": 15, "b": 15}
    assert replay.partitions[0].core.sizes()["user_days_rows"] <= 60


def test_events_of_exposures_are_found_too() -> None:
    settings = parse(
        {
            "kafka": {"topics": {"exposures": "exposures"}},
            "experiments_defaults": {"metrics": DEFAULTS["metrics"]},
        }
    )
    log = list(events(40, lambda user: {}))
    log += [exposure(u, "mail", "ab"[u % 2], FIRST_MS + 1_000 * u) for u in range(40)]
    log.sort(key=lambda event: int(event["ts"]))
    assert replayed(settings, log).experiments()["mail"].read().users == {"a": 20, "b": 20}


# The list ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> tuple[Settings, Replay]:
    """One that harms, one that helps, one whose split is wrong, one that has not begun."""

    def of(user: int) -> Mapping[str, str]:
        lost = {"broken": "new" if user % 3 else "old"}
        return {**halves(user), **lost}

    later = experiment("later", start=FIRST + datetime.timedelta(days=90))
    names = ("ranker", "layout", "broken")
    settings = settings_of(
        *(experiment(name, min_days=1, whole_weeks=False) for name in names), later
    )
    return settings, replayed(settings, list(events(1500, of, days=3, rate=clicked)))


def test_the_list_has_what_needs_a_decision_first(many: tuple[Settings, Replay]) -> None:
    settings, replay = many
    every = listed(settings, replay.experiments(), Readouts())
    assert [(each.stored.experiment.name, each.needs) for each in every] == [
        ("layout", "harm"),
        ("broken", "broken"),
        ("ranker", "ship"),
        ("later", "not-started"),
    ]
    assert [each.stored.experiment.name for each in only(every, "ship")] == ["ranker"]
    with pytest.raises(UsageError, match="only 'shipped': one of harm, broken, ship"):
        only(every, "shipped")
    made = msgspec.json.decode(msgspec.json.encode(list_of(settings, every)))
    needs = {word: n for word, n in made["needs"].items() if n}
    assert needs == {"harm": 1, "broken": 1, "ship": 1, "not-started": 1}
    harm, broken, ship, later = made["experiments"]
    assert harm["advice"]["sentence"].startswith("stop: harm")
    assert harm["lift"]["value"] < 0 < ship["lift"]["value"]
    assert (broken["split"]["is_wrong"], ship["split"]["is_wrong"]) == (True, False)
    assert (ship["treatment"], ship["users"], ship["days"]["days"]) == ("new", 1500, 2)
    assert "advice" not in later
    assert later["waiting"] == f"Starts on {FIRST + datetime.timedelta(days=90)}"
    nothing = listed(settings, Replay(settings).experiments(), Readouts())
    assert {row.waiting for row in list_of(settings, nothing).experiments} == {
        "Waits for a first event"
    }


def test_readouts_are_made_again_only_where_sums_changed(
    many: tuple[Settings, Replay], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, replay = many
    now = [0.0]
    monkeypatch.setattr(limits, "READOUT_SECONDS", -1.0)

    def clock() -> float:
        now[0] += 1  # each look takes a second
        return now[0]

    readouts = Readouts(clock)
    first = readouts.of(settings, replay.experiments())
    assert readouts.of(settings, {}) is first  # too early
    now[0] += limits.READOUT_PARTS
    again = readouts.of(settings, replay.experiments())
    assert all(again[name] is first[name] for name in first)


def test_only_discoveries_among_all_are_shipped(many: tuple[Settings, Replay]) -> None:
    settings, replay = many
    rate = {"arm": "experiments", "false_discovery_rate": 1e-200}
    strict = msgspec.structs.replace(
        settings, experiments_defaults=msgspec.convert(rate, type(settings.experiments_defaults))
    )
    stored, readouts = replay.experiments(), Readouts()
    every = {e.stored.experiment.name: e for e in listed(strict, stored, readouts)}
    assert every["ranker"].needs == "running"
    assert every["layout"].needs == "harm"
    advice = every["ranker"].readout.recommendation
    assert advice is not None
    assert advice.action is Action.KEEP_RUNNING
    assert "Among the 3 treatments of all experiments it is not a discovery yet" in advice.reason
    assert read_one(strict, stored, "ranker", readouts).recommendation == advice
    alone = read_one(settings, stored, "ranker", Readouts()).recommendation
    assert alone is not None
    assert alone.action is Action.SHIP


# Between experiments -----------------------------------------------------------------------------


def test_splits_that_depend_on_each_other_are_named() -> None:
    def of(user: int) -> Mapping[str, str]:
        arm = Random(user).choice(("old", "new"))
        return {"one": arm, "two": arm, "three": halves(user)["ranker"]}

    replay = replayed(
        settings_of(*map(experiment, ("one", "two", "three"))), list(events(400, of)), 2
    )
    found = pairs(replay.experiments(), replay.pairs())
    assert [(p.first, p.second, bool(p.problem)) for p in found] == [
        ("one", "two", True),
        *[(p.first, p.second, False) for p in found[1:]],
    ]
    assert len(found) == 3
    assert found[0].users == 400
    made = pair_list(replay.experiments(), replay.pairs())
    assert made.words == "3 pairs of experiments share users; 1 problem."


@pytest.mark.parametrize("is_found", [False, True])
def test_users_and_clicks_of_pairs_are_those_of_a_plain_recount(is_found: bool) -> None:
    def of(user: int) -> Mapping[str, str]:
        dice = Random(user)
        return {name: dice.choice(("old", "new")) for name in "abc" if dice.random() < 0.7}

    log = list(events(300, of, days=2))
    for user in range(0, 300, 9):  # seen in two arms of a: out of every pair with it
        at = FIRST_MS + 3_600_000 + user
        other = {"user_id": f"u{user}", "item_id": "i", "experiments": {"a": "old"}}
        log += [{"type": "impression", "ts": at, **other}]
        log += [{"type": "impression", "ts": at + 1, **other, "experiments": {"a": "new"}}]
    log.sort(key=lambda event: int(event["ts"]))
    own = [] if is_found else [experiment(name) for name in "abc"]
    replay = replayed(settings_of(*own, defaults=DEFAULTS), log, 3)
    saw: dict[str, dict[str, set[str]]] = {}
    clicks: Counter[str] = Counter()
    for event in log:
        who = str(event["user_id"])
        clicks[who] += event["type"] == "click"
        for name, arm in event["experiments"].items():
            saw.setdefault(who, {}).setdefault(name, set()).add(arm)
    arms = {u: {n: min(a) for n, a in its.items() if len(a) == 1} for u, its in saw.items()}
    expected: Counter[tuple[Arm, Arm]] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    for who, its in arms.items():
        expected.update(combinations(sorted(its.items()), 2))
        if {"b", "c"} <= its.keys():
            cells[its["c"], its["b"]] += clicks[who]
    assert replay.pairs() == expected
    stored = replay.experiments()
    one, two = stored["b"], stored["c"]
    sums = replay.sums_of_days(Across(one.trial, two.trial, one.so_far))
    for other_arm, parts in sums.items():
        cell = cumulated(one.trial, parts, one.so_far[-1])
        found = by_arm(one.trial, one.ratios["ctr_ratio"], cell)
        for arm, its_sums in found.items():
            users = expected[("b", arm), ("c", other_arm)]
            assert (its_sums.n, its_sums.x) == (users, cells[other_arm, arm])


def test_layers_and_holdouts_share_no_users() -> None:
    def of(user: int) -> Mapping[str, str]:
        own = {"held": "old" if user % 10 == 0 else "new"}
        own |= {"a": "old" if user % 2 else "new"} if user % 10 < 5 else {}
        own |= {"b": "old" if user % 2 else "new"} if user % 10 >= 4 else {}
        return own

    replay = replayed(
        settings_of(
            experiment("held", holdout=True, split={"old": 1, "new": 9}),
            experiment("a", layer="page"),
            experiment("b", layer="page"),
        ),
        list(events(600, of)),
    )
    problems = [p.problem for p in pairs(replay.experiments(), replay.pairs()) if p.problem]
    assert len(problems) == 2
    assert any(p.startswith("Layer page: 60 users are in both a") for p in problems)
    assert "60 users whom held holds out (its arm old) are in a." in problems


def test_a_holdout_measures_and_is_never_shipped() -> None:
    log = list(events(1500, halves, days=3, rate=clicked))
    settings = settings_of(experiment("ranker", min_days=1, holdout=True))
    (each,) = listed(settings, replayed(settings, log).experiments(), Readouts())
    assert each.needs == "holdout"
    advice = each.readout.recommendation
    assert advice is not None
    assert advice.reason.startswith(
        "ctr_ratio of users who get everything shipped since 2026-11-02, compared with the "
        "held-out users (old): +"
    )


@pytest.mark.parametrize("is_found", [False, True])
def test_an_interaction_of_two_experiments_is_found(is_found: bool) -> None:
    def rate(arms: Mapping[str, str]) -> float:
        both = arms["ranker"] == arms["layout"] == "new"
        return 0.05 if both else 0.2

    log = list(events(2000, halves, days=2, rate=rate))
    own = [] if is_found else [experiment("ranker"), experiment("layout")]
    replay = replayed(settings_of(*own, defaults=DEFAULTS), log, 2)
    stored = replay.experiments()
    one, two = stored["ranker"], stored["layout"]
    sums = replay.sums_of_days(Across(one.trial, two.trial, one.so_far))
    assert sums.keys() == {"old", "new"}
    made = interaction_list(one, two, sums)
    assert [m.differs for m in made.metrics] == [True] * len(one.experiment.metrics)
    assert "differs by layout's arm" in made.metrics[0].sentence


# Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"experiments": [experiment("e")]},
            "experiment 'e' has neither arm nor dimension, and no events of exposures are read: "
            "say where events have its arm, as arm = 'experiments.e'",
        ),
        (
            {"experiments": [experiment("e", arm="a", dimension="variant")]},
            "arm = 'a' and dimension = 'variant': keep one of them",
        ),
        (
            {"experiments": [experiment("e", arm="variant")]},
            "arm = 'variant' is a dimension: write dimension = 'variant'",
        ),
        (
            {"experiments": [experiment("e", arm="item_id")]},
            "arm = 'item_id': item_id is a field of events, item_id: name one that says arms alone",
        ),
        (
            {"experiments": [experiment("e", arm="a", outcomes="attributed")]},
            "outcomes = 'attributed': only with dimension",
        ),
        ({"experiments": [experiment("e", arm="a..b")]}, "'a..b' is no path"),
        (
            {"experiments_defaults": {"metrics": [{"name": "ctr_ratio"}]}},
            "metrics without arm, and no topic of exposures is read",
        ),
        (
            {"experiments_defaults": {**DEFAULTS, "max_found": 0}},
            "max_found = 0: 1 to 256; at experiments_defaults",
        ),
        (
            {"experiments_defaults": {"false_discovery_rate": 1.5}},
            "false_discovery_rate = 1.5: above 0 and below 1",
        ),
        (
            {"experiments_defaults": {**DEFAULTS, "split": {"a": 0}}},
            "split.a = 0.0: a share above 0",
        ),
    ],
)
def test_wrong_settings_are_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message.replace("(", r"\(").replace(".", r"\.")):
        parse(document)
