"""The id of joins is the person: in every metric, and for any number of partitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from streamer.settings.model import Settings
from tests.oracle.oracle import records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.oracle.timeline import Log, M, joins, value
from tests.support.agreement import SETTINGS, differences, read_engines, run_engines, to_log
from tests.support.lanes import long, sized

OF_GROUPS = ("_lower", "_upper")
"""Ends of intervals come from groups of people by the hashes of their ids."""


def rewritten(lines: list[bytes], settings: Settings, change: Callable[[Any], None]) -> list[bytes]:
    """The events of a log that have a user, in the order of their times and each once: however many
    partitions they come in, all or none of a kind are accepted. Their ids are changed."""
    user = settings.events.fields.get("user_id", "user_id")
    made = []
    for line in lines:
        try:
            payload = json.loads(line)
        except ValueError:
            continue
        if not isinstance(payload, dict) or not isinstance(payload.get("ts"), int):
            continue
        who = payload.pop(user, None)
        if not isinstance(who, str) or not 0 < len(who) < 100:
            continue
        payload["user_id"] = who
        for name in ("join_id", "event_id"):
            payload.pop(name, None)
        change(payload)
        made.append({user if name == "user_id" else name: x for name, x in payload.items()})
    return [json.dumps(payload).encode() for payload in sorted(made, key=lambda x: x["ts"])]


def with_devices(seed: int) -> Callable[[Any], None]:
    """The user becomes the id of joins; who the event names as user is drawn."""
    dice = Random(seed)

    def change(payload: Any) -> None:
        payload["join_id"] = payload.pop("user_id")
        drawn = dice.choice([None, "", "one for all", f"u{dice.randrange(5)}"])
        if drawn is not None:
            payload["user_id"] = drawn

    return change


def readings_of(lines: list[bytes], settings: Settings, partitions: int = 1) -> Readings:
    """What the engine reads; the oracle has to read the same."""
    records = records_of_log(lines, settings, partitions=partitions)
    readings = read_engines(run_engines(settings, partitions, to_log(records), 100, seed=1))
    assert differences(readings, run(records, settings).readings) == []
    return readings


def without_groups(readings: Readings) -> Readings:
    return {key: x for key, x in readings.items() if not any(end in key[0] for end in OF_GROUPS)}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(sized(1, 4)))
def test_an_id_of_joins_is_what_a_user_would_be(seed: int, name: str) -> None:
    settings = SETTINGS[name]
    lines = random_log(300 + seed, settings, sized(300, 800))
    by_join = readings_of(rewritten(lines, settings, with_devices(seed)), settings)
    by_user = readings_of(rewritten(lines, settings, lambda payload: None), settings)
    assert len(by_join) > 300
    assert differences(without_groups(by_join), without_groups(by_user)) == []


@long
def test_intervals_are_those_of_people_too() -> None:
    """Of so many that every group of users has some."""
    settings = SETTINGS["few values"]
    dice = Random(1)

    def change(payload: Any) -> None:
        payload["join_id"] = f"{payload.pop('user_id')} {dice.randrange(9)}"

    lines = rewritten(random_log(500, settings, sized(1500, 3000)), settings, change)
    shown = readings_of(lines, settings)
    names = {name for name, _ in shown}
    assert "streamer_clicks_per_user_lower" in names
    ratios = {dict(labels).get("ratio") for name, labels in shown if name == "streamer_ratio_upper"}
    assert "margin" in ratios


@pytest.mark.parametrize("seed", range(sized(1, 4)))
def test_people_do_not_depend_on_the_number_of_partitions(seed: int) -> None:
    settings = SETTINGS["no dimensions, short times"]
    lines = random_log(400 + seed, settings, sized(300, 800))
    lines = rewritten(lines, settings, with_devices(seed))
    one, three = (without_groups(readings_of(lines, settings, n)) for n in (1, 3))
    in_windows = [
        {k: x for k, x in all_of.items() if "window" in dict(k[1])} for all_of in (one, three)
    ]
    assert len([name for name, _ in in_windows[0] if "user" in name or "positive" in name]) > 10
    assert differences(*in_windows) == []  # totals since the start wait for each partition's clock


def test_a_user_on_two_devices_is_two_people() -> None:
    log = Log().shown(0, join_id="phone").shown(1000, item_id="b", join_id="laptop")
    log.click(2000, item_id="b", join_id="laptop")
    result = log.run()
    assert value(result, "window_users", window="1h") == 2
    assert value(result, "user_hit_ratio", window="1h") == 0.5


def test_a_session_with_a_login_inside_is_one() -> None:
    log = Log()
    for at_ms, user in ((0, "anonymous"), (1 * M, "u")):
        log.visited(at_ms, user_id=user, join_id="d", session_id="s")
    log.visited(2 * M, action="end", user_id="u", join_id="d", session_id="s")
    result = log.run()
    assert value(result, "window_sessions", window="1h") == 1
    assert value(result, "bounce_rate_ratio", window="1h") == 0.0


def test_a_click_without_the_id_of_joins_is_of_somebody_else() -> None:
    log = Log().shown(0, join_id="d").click(1000)
    result = log.run()
    rates = {"definition": "docs", "feedback": "click", "window": "1h"}
    assert value(result, "positive_rate_ratio", **rates) == 0.0
    assert value(result, "user_hit_ratio", window="1h") == 0.0


def test_a_record_of_nobody_is_no_person() -> None:
    log = Log().shown(0, join_id="record:web/3/5", user_id=None)
    log.click(1000, join_id="record:web/3/5", user_id=None)
    result = log.run()
    assert value(result, "anonymous_total", topic="clicks") == 1
    assert joins(result) == [(0, 0)]
