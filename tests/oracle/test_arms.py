"""Arms that fields of events and events of exposures say: by hand, on the oracle and the core."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer._core import arms_said
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.user_days import Days
from tests.oracle.acceptance import accept
from tests.oracle.arms import ARM_NAMES, EXPERIMENT_NAMES, Said, said_by
from tests.oracle.experiments import ArmTruth, ExperimentTruth, apart_truth
from tests.oracle.joining import join
from tests.oracle.parsing import parse as parse_record
from tests.oracle.timeline import T0, Log, M
from tests.support.agreement import run_engines, to_log
from tests.support.experiment_logs import arms_of

DAY = T0 // DAY_MS
"""The day of the logs' first events."""
LAST_MS = DAY_MS - 1 - T0 % DAY_MS
"""The last millisecond of it: after 1 h 46 min."""
A: dict[str, Any] = {"ab": "A"}
B: dict[str, Any] = {"ab": "B"}


def made(*experiments: dict[str, Any], **sections: Any) -> Settings:
    """Experiments of the arms A and B, from the day of T0 on, by clicks per user; the first is `e`
    with the arm at `ab`, where nothing else is said."""
    sound = {
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": date_of(DAY),
        "metrics": [{"name": "clicks_per_user"}],
    }
    some = experiments or ({},)
    named = [{"name": "e", **({} if "dimension" in e else {"arm": "ab"}), **e} for e in some]
    return parse(
        {
            "dimensions": [{"name": "variant"}, {"name": "surface"}],
            "kafka": {"topics": {"exposures": "exposures"}},
            "experiments": [sound | e for e in named],
            **sections,
        }
    )


def clicks(
    truth: ExperimentTruth, day: int = 0, arm: str = "A", name: str = "e", age: str = ""
) -> tuple[int, int]:
    """Users and clicks of an arm up to a day."""
    sums = truth.sums[name, f"clicks_per_user {age}".strip(), arm, DAY + day]
    assert (sums.y, sums.yy) == (sums.n, sums.n)
    return sums.n, sums.x


def outside(truth: ExperimentTruth, day: int = 0, name: str = "e") -> tuple[int, int]:
    """Outcomes before the exposure of their user, and of users without one."""
    return truth.outside[name, DAY + day]


# When ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exposed_ms", "counted"), [(-M, 3), (0, 3), (1, 2), (M, 2), (M + 1, 1), (2 * M, 1), (3 * M, 0)]
)
def test_what_is_not_before_the_event_counts(exposed_ms: int, counted: int) -> None:
    log = Log().click(0).click(M).click(2 * M).exposed(exposed_ms)
    truth = log.truth(made())
    assert clicks(truth) == (1, counted)
    assert outside(truth) == (3 - counted, 0)


def test_a_field_counts_the_event_that_it_is_in() -> None:
    log = Log().click(0).click(M, **A).click(M, item_id="y").click(2 * M)
    truth = log.truth(made())
    assert (clicks(truth), outside(truth)) == ((1, 3), (1, 0))


def test_a_late_exposure_moves_outcomes_inside() -> None:
    log = Log().click(2 * M).click(8 * M).exposed(5 * M).exposed(M, 9 * M)
    truth = log.truth(made())
    assert (clicks(truth), outside(truth)) == ((1, 2), (0, 0))


def test_an_exposure_that_comes_too_late_exposes_nobody() -> None:
    settings = made()
    late_ms = settings.time.max_lateness_ms
    in_time = Log().click(2 * M).exposed(M, M + late_ms).truth(settings)
    assert (clicks(in_time), outside(in_time)) == ((1, 1), (0, 0))
    too_late = Log().click(2 * M).exposed(M, M + late_ms + 1).truth(settings)
    assert (clicks(too_late), outside(too_late)) == ((0, 0), (0, 1))
    later = Log().click(2 * M).exposed(M, M + late_ms + 1).exposed(M + late_ms).click(M + late_ms)
    truth = later.truth(settings)
    assert (clicks(truth, 0), outside(truth, 0)) == ((1, 1), (1, 0))


def test_who_is_exposed_is_in_whatever_comes_of_it() -> None:
    # u does nothing, w comes back on the third day, x had clicked before
    log = Log().exposed(0).exposed(M, user_id="w").click(0, user_id="x").exposed(M, user_id="x")
    truth = log.click(2 * DAY_MS, user_id="w").truth(made())
    assert [clicks(truth, day) for day in range(3)] == [(3, 0), (3, 0), (3, 1)]
    ages = ("first day", "days 2-3", "days 4-7")
    assert [clicks(truth, 2, age=age) for age in ages] == [(3, 0), (3, 1), (3, 0)]
    assert [truth.active["e", DAY + day] for day in range(3)] == [0, 0, 1]


def test_ten_experiments_have_ten_first_days() -> None:
    """The same user is exposed every ten minutes to another one, and clicks in between: the first
    day of each has only what came after its own exposure."""
    assert 10 * 10 * M < LAST_MS
    experiments = [{"name": f"e{i}", "arm": f"inside.e{i}"} for i in range(10)]
    settings, log = made(*experiments), Log()
    for i in range(10):
        at_ms = i * 10 * M
        if i % 2:
            log.exposed(at_ms, experiment=f"e{i}", arm="AB"[i % 4 == 3])
        else:
            log.visited(at_ms, inside={f"e{i}": "AB"[i % 4 == 2]})
        log.click(at_ms + 5 * M)
    truth = log.click(DAY_MS).truth(settings)
    for i in range(10):
        name, arm = f"e{i}", "AB"[i % 4 > 1]
        assert clicks(truth, 0, arm, name) == (1, 10 - i)
        assert clicks(truth, 1, arm, name) == (1, 11 - i)
        assert clicks(truth, 1, arm, name, "first day") == (1, 10 - i)
        assert clicks(truth, 1, arm, name, "days 2-3") == (1, 1)
        assert outside(truth, 1, name) == (i, 0)


def test_the_last_day_of_an_experiment_counts_to_its_end() -> None:
    # u is exposed at its last moment, w after it; x sees the other arm after it
    log = Log().exposed(0, user_id="x").click(M, user_id="x")
    log.click(LAST_MS - 1).exposed(LAST_MS).click(LAST_MS).click(LAST_MS + 1)
    log.exposed(LAST_MS + 1, user_id="w").click(LAST_MS + 1, user_id="w")
    log.exposed(LAST_MS + 1, user_id="x", arm="B")
    truth = log.truth(
        made({"end": date_of(DAY)}, {"name": "e2", "key": "e", "end": date_of(DAY + 1)})
    )
    assert (clicks(truth), outside(truth)) == ((2, 2), (1, 0))
    assert ("e", DAY + 1) not in truth.outside
    assert clicks(truth, 1, name="e2") == (2, 3)
    assert truth.mixed == {("e", DAY): 0, ("e2", DAY): 1, ("e2", DAY + 1): 1}


def test_days_before_the_start_do_not_expose() -> None:
    start = {"start": date_of(DAY + 1), "covariate_days": 1}
    log = Log().exposed(0, arm="B").click(0).click(DAY_MS).exposed(DAY_MS + 1).click(DAY_MS + 1)
    truth = log.truth(made(start))
    assert truth.sums["e", "clicks_per_user", "A", DAY + 1] == ArmTruth(
        **{"n": 1, "x": 1, "xx": 1, "y": 1, "yy": 1, "xy": 1, "nz": 1},
        **{"u": 1, "uu": 1, "v": 1, "vv": 1, "uv": 1, "xu": 1, "xv": 1, "yu": 1, "yv": 1},
    )
    assert outside(truth, 1) == (1, 0)


# Who -------------------------------------------------------------------------------------------


def test_who_saw_several_arms_is_left_out() -> None:
    log = Log().exposed(0).click(M).exposed(DAY_MS, arm="B").click(0, user_id="w", **B)
    truth = log.click(DAY_MS, user_id="v", **A).click(DAY_MS, user_id="v", **B).truth(made())
    assert [clicks(truth, day) for day in range(2)] == [(0, 0), (0, 0)]
    assert [truth.mixed["e", DAY + day] for day in range(2)] == [1, 2]
    assert clicks(truth, 1, "B") == (1, 1)
    assert outside(truth, 1) == (0, 0)


def test_nobody_is_exposed_by_what_does_not_count() -> None:
    # without a user; of another experiment; no arm; wrong; a copy; without an item
    log = Log().exposed(0, user_id=None).click(0, user_id=None, request_id="r", **A)
    log.exposed(0, experiment="other").exposed(0, arm="C").exposed(0, arm=None)
    log.exposed(0, experiment=["e"]).click(0, item_id=None, **A).click(0, ab="C").click(0, ab=["A"])
    log.exposed(0, user_id="w", event_id="1").exposed(1, user_id="w", event_id="1", arm="B")
    log.click(0, user_id="w", event_id="1").click(1, user_id="w", event_id="1", **B)
    truth = log.truth(made())
    assert (clicks(truth), clicks(truth, arm="B")) == ((1, 1), (0, 0))
    assert (truth.mixed["e", DAY], outside(truth)) == (0, (0, 2))
    rejects = accept(log.records, made()).rejects
    assert sorted(why for *_, why in rejects) == ["arm", "experiment", "item_id", "user_id"]


def test_events_of_any_kind_say_arms() -> None:
    kinds = [Log.shown, Log.click, Log.bought, Log.visited]
    for add in kinds:
        truth = add(Log().click(0), M, **A).click(2 * M).truth(made())
        assert (clicks(truth), outside(truth)) == ((1, 2 if add is Log.click else 1), (1, 0))
    other = made({}, {"name": "other", "arm": "there"})
    truth = Log().click(0).exposed(M, experiment="other", ab="A", there="B").truth(other)
    assert (clicks(truth), clicks(truth, 0, "A", "other")) == ((1, 0), (0, 0))
    assert truth.mixed == {("e", DAY): 0, ("other", DAY): 1}


def test_the_first_of_several_ways_counts() -> None:
    by_variant = made({"dimension": "variant"})
    log = Log().click(0).exposed(M).click(2 * M).shown(3 * M, variant="A").click(4 * M)
    truth = log.truth(by_variant)
    assert (clicks(truth), outside(truth)) == ((1, 2), (1, 0))
    log = Log().click(0).shown(M, variant="A").click(2 * M).exposed(3 * M)
    assert clicks(log.truth(by_variant)) == (1, 1)
    mixed = Log().shown(0, variant="B").exposed(M).click(2 * M).truth(by_variant)
    assert (clicks(mixed), clicks(mixed, arm="B"), mixed.mixed["e", DAY]) == ((0, 0), (0, 0), 1)
    # a field says nothing where the arm is a dimension, nor a dimension where it is a field
    assert outside(Log().click(0, **A).truth(by_variant)) == (0, 1)
    assert outside(Log().shown(0, variant="A").click(0).truth(made())) == (0, 1)


def test_attributed_users_are_in_with_an_impression_of_their_arm() -> None:
    settings = made({"dimension": "variant", "outcomes": "attributed"})
    log = Log().exposed(0).click(M, variant="A")
    log.exposed(0, user_id="w").click(M, user_id="w", variant="A")
    log.exposed(0, user_id="x", arm="B").shown(M, user_id="x", variant="A")
    truth = log.shown(DAY_MS, variant="A").truth(settings)
    assert [clicks(truth, day) for day in range(2)] == [(0, 0), (1, 1)]
    assert truth.mixed["e", DAY] == 1


# Where -----------------------------------------------------------------------------------------


def test_paths_keys_and_the_default() -> None:
    settings = made(
        {"arm": ["first", "a.b.second"]},
        {"name": "e2", "arm": (), "key": "two"},
        {"name": "e3", "arm": "all.e3"},
        experiments_defaults={"arm": "all"},
    )
    log = Log().click(0, user_id="t", first="A").click(0, user_id="u", a={"b": {"second": "A"}})
    log.click(0, user_id="v", all={"two": "A", "e2": "B"}).click(0, user_id="w", all=["two:A"])
    log.click(0, user_id="x", all={"e3": {"variant": "A"}, "e": "A"})
    log.click(0, user_id="y", experiment_arms={"first": "A", "all.e3": "A", "two": "A"})
    dotted: dict[str, Any] = {"a.b.second": "A", "all.e3": "A"}
    log.click(0, user_id="z", first=None, a={"b": ["A"]}, **dotted)
    for name in ("e", "e2", "two", "e3"):
        log.exposed(M, user_id="z", experiment=name)
    truth = log.truth(settings)
    assert clicks(truth) == (4, 3)
    assert clicks(truth, name="e2") == (3, 2)
    assert clicks(truth, name="e3") == (3, 2)


def test_of_a_name_that_is_said_twice_the_last_value_counts() -> None:
    log = Log()
    for user, its in {
        "t": '"ab": "B", "ab": "A"',
        "u": '"ab": "B", "ab": null',
        "v": '"ab": {"e": "B", "e": "A"}',
        "w": '"ab": [{"name": "e", "arm": "B", "arm": "A"}]',
        "x": '"ab": "B", "ab": ["e:A"]',
    }.items():
        raw = f'{{"ts": {T0}, "user_id": "{user}", "item_id": "x", {its}}}'
        log.raw("clicks", raw.encode(), 0)
    truth = log.truth(made())
    assert (clicks(truth), clicks(truth, arm="B")) == ((4, 4), (0, 0))
    assert (outside(truth), truth.mixed["e", DAY]) == ((0, 1), 0)


def test_users_are_told_apart_by_what_they_were_shown_on_their_first_day() -> None:
    """By most impressions that count; before the exposure and on later days none does."""
    settings = made({"explore": ["surface"]})
    log = Log().shown(0, surface="home").shown(0, surface="home", item_id="y").exposed(M)
    log.shown(M, surface="feed").click(M, surface="home").exposed(0, user_id="v")
    log.exposed(0, user_id="w", arm="B").shown(M, user_id="w", surface="home")
    log.shown(M, user_id="w", surface="feed", item_id="y")
    log.shown(DAY_MS, surface="home").shown(DAY_MS, user_id="v", surface="home")
    engines = run_engines(settings, 1, to_log(log.records), 3)
    (trial,) = engines.catalogue.experiment_measures.trials
    verdict = accept(log.records, settings)
    found: dict[str, dict[str, int]] = {}
    for days in (range(DAY, DAY + 1), range(DAY, DAY + 2), range(DAY + 1, DAY + 2)):
        joins = join(verdict, settings)
        truth = apart_truth(verdict, joins, settings, "e", days, "surface")
        sums = Days(trial, days, "surface").sums_in(engines.partitions[0])
        assert {value: arms_of(trial, [its], days[-1]) for value, its in sums.items()} == truth
        found = {v: {a: s["clicks_per_user", a].n for a in "AB"} for v, s in truth.items()}
    assert found == {"feed": {"A": 1, "B": 1}, "unknown": {"A": 1, "B": 0}}


# Values ----------------------------------------------------------------------------------------


def said(raw: str) -> list[Said]:
    """What a value says by the oracle, as it does by the core, which may say empty texts, too."""
    found = said_by(parse_record(b'{"value": %s}' % raw.encode())["value"])
    of_core = [(key, arm) for key, arm in arms_said(raw) if key != "" and arm]
    assert sorted(of_core, key=repr) == sorted((s for s in found if s[0] != ""), key=repr), raw
    return found


BOTH = [("ranker", "new"), ("layout", "2")]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('"new"', [(None, "new")]),
        ("1.50", [(None, "1.50")]),
        ("false", [(None, "false")]),
        ("null", []),
        ("[]", []),
        ('{"variant": "new", "size": {}}', [(None, "new"), ("variant", "new")]),
        ('{"ranker": "new", "layout": 2}', BOTH),
        ('{"ranker": {"value": "new"}, "layout": {"on": true, "key": 2}}', BOTH),
        ('[{"name": "ranker", "arm": "new"}, {"flagKey": "layout", "variation_id": 2}]', BOTH),
        ('["ranker:new", "layout=2", 7, "none"]', BOTH),
        ('[["ranker", "new"], ["layout", 2], ["a", "b", "c"], ["a"]]', BOTH),
        ('"ranker:new; layout = 2"', [(None, "ranker:new; layout = 2"), *BOTH]),
        ('{"experiment": "ranker", "variant": "new", "layout": 2}', BOTH[:1]),
        ('"a:b:c"', [(None, "a:b:c"), ("a:b", "c")]),
    ],
)
def test_what_values_say(raw: str, expected: list[Said]) -> None:
    assert sorted(said(raw), key=repr) == sorted(expected, key=repr)


texts = st.text('ab:=,;| \u00a0é"\\/', max_size=6) | st.sampled_from(["new", "ranker:new"])
names = st.sampled_from([*EXPERIMENT_NAMES, *ARM_NAMES, "ranker", "layout", ""]) | texts
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
some = st.recursive(
    scalars.filter(lambda x: x not in (float("inf"), float("-inf"))),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(names, each, max_size=4),
    max_leaves=12,
)


@given(some, st.booleans(), st.sampled_from([(",", ":"), (" , ", " : ")]))
def test_any_value_says_the_same_to_both(
    value: Any, is_ascii: bool, separators: tuple[str, str]
) -> None:
    said(json.dumps(value, ensure_ascii=is_ascii, separators=separators))
