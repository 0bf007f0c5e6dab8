"""What is let in, from a record as Kafka would give it to a reading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from streamer.ingest.rejections import Explainer
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.sources.replay import Dead, Replay

T0 = 1_700_000_000_000
TIME = "2023-11-14T22:13:20"
ONE_USER = {"user_id": "u", "item_id": "i"}
Event = Mapping[str, Any] | bytes


class Read:
    """Readings of a few records of a topic-partition each; a record is JSON or an object, which
    has the time T0 where it has none."""

    def __init__(self, *events: tuple[str, Event], **settings: Any) -> None:
        self.settings = parse(settings)
        self.dead: list[Dead] = []
        replay = Replay(self.settings, on_dead=self.dead.append)
        replay.feed([(LINE_TYPES[name], T0, raw_of(event)) for name, event in events])
        replay.finish()
        self.readings = replay.readout().readings

    def __call__(self, name: str, **labels: str) -> float | None:
        """A value, of all dimensions together and in the longest window."""
        usual = dict.fromkeys(self.settings.dimension_names, "all") | {"window": "24h"}
        for reading in self.readings:
            wanted = {k: v for k, v in usual.items() if k in reading.labels} | labels
            if reading.name == f"streamer_{name}" and wanted.items() <= reading.labels.items():
                return float(reading.value)
        return None

    @property
    def reasons(self) -> list[str]:
        return [dead.reason for dead in self.dead]


def raw_of(event: Event) -> bytes:
    return event if isinstance(event, bytes) else json.dumps({"ts": T0, **event}).encode()


def shown(**fields: Any) -> tuple[str, Event]:
    return "impression", fields


def clicked(**fields: Any) -> tuple[str, Event]:
    return "click", fields


def bought(**fields: Any) -> tuple[str, Event]:
    return "conversion", fields


# Ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [17, "17"])
def test_numbers_and_texts_are_the_same_id(again: Any) -> None:
    read = Read(
        shown(user_id=17, item_id="17", request_id=17, event_id=17),
        shown(user_id=again, item_id="17", request_id=17, event_id="17"),
        clicked(user_id="17", item_id=17, request_id="17"),
        bought(user_id=again, item_id=again, request_id=again, value=2),
    )
    assert (read("ctr_attributed_ratio"), read("cvr_attributed_ratio")) == (1, 1)
    assert (read("window_users"), read("window_slates", over="all")) == (1, 1)
    assert read("duplicates_total", topic="impressions") == 1


@pytest.mark.parametrize("one", ["i" * 512, "é" * 256, "ключ", -5, 10**40, "0b2c1a0e-5f9e-4d0c"])
def test_ids_have_up_to_512_bytes(one: Any) -> None:
    read = Read(shown(user_id=one, item_id=one), clicked(user_id=one, item_id=one))
    assert read("ctr_attributed_ratio") == 1


@pytest.mark.parametrize("wrong", ["i" * 513, "é" * 257, 1.5, True, ["i"], {}, None, ""])
def test_other_ids_are_refused_and_missing_ones_where_they_are_required(wrong: Any) -> None:
    read = Read(
        shown(user_id="u", item_id=wrong),
        clicked(user_id="u", item_id=wrong),
        ("session", {"user_id": "u", "session_id": wrong, "action": "view"}),
        ("session", {"session_id": wrong, "action": "view"}),
        shown(user_id=wrong, item_id="i"),
        clicked(join_id=wrong, item_id="i"),
    )
    others = [] if wrong in (None, "") else ["user_id", "join_id", "session_id"]
    assert sorted(read.reasons) == sorted(["item_id", "item_id", "session_id", *others])


# Nobody ----------------------------------------------------------------------------------------

EXPERIMENT: dict[str, Any] = {
    "name": "e",
    "dimension": "variant",
    "control": "A",
    "split": {"A": 1, "B": 1},
    "start": "2023-11-14",
    "metrics": [{"name": "ctr_ratio"}],
}


@pytest.mark.parametrize("nobody", [{}, {"user_id": None}, {"user_id": ""}])
def test_events_of_nobody_count_but_in_no_metric_of_users(nobody: dict[str, Any]) -> None:
    slate = {"request_id": "r", "items": ["a", "b"], "variant": "A"}
    named = {"user_id": "u", "item_id": "z", "variant": "B"}
    of = [shown(**slate, **nobody), clicked(item_id="b", request_id="r", **nobody)]
    read = Read(*of, shown(**named), experiments=[EXPERIMENT])
    assert (read("impressions_total"), read("window_clicks")) == (3, 1)
    assert read("ctr_attributed_ratio") == pytest.approx(1 / 3)
    assert read("mrr", over="all") == 0.5
    assert read("ctr_position_ratio", position="2") == 1
    assert read("anonymous_total", topic="impressions") == 1
    assert read("anonymous_total", topic="clicks") == 1
    assert read("window_users") == 1
    assert read("window_users", variant="A") in (None, 0)
    assert read("user_hit_ratio") == 0
    assert read("experiment_users", experiment="e", arm="A") == 0
    assert read("experiment_users", experiment="e", arm="B") == 1
    assert read.reasons == []


def test_events_of_nobody_join_within_their_request_alone() -> None:
    read = Read(
        shown(item_id="a"),
        clicked(item_id="a"),  # whose?
        shown(item_id="b", request_id="r"),
        clicked(item_id="b"),
        clicked(item_id="b", request_id="s"),
        clicked(item_id="b", request_id="r", user_id="u"),
        clicked(item_id="b", request_id="r"),
    )
    assert read("window_ctr_attributed_clicked") == 1
    assert read("anonymous_total", topic="clicks") == 4


# Dimensions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ('"New York"', "New York"),
        ('"Zürich 😀"', "Zürich 😀"),
        (r'"a \"b\"\\ {c}\n"', 'a "b"\\ {c}\n'),
        ("7", "7"),
        ("1.50", "1.50"),
        ("1e3", "1e3"),
        ("true", "true"),
        ("false", "false"),
        ('"all"', "all (value)"),
        ('"other"', "other (value)"),
        *((text, "unknown") for text in ("null", '""', "[]", '["A"]', "{}", '"unknown"')),
        ('"' + "é" * 128 + '"', "é" * 128),
    ],
)
def test_no_value_of_a_dimension_rejects_an_event(written: str, label: str) -> None:
    raw = raw_of({**ONE_USER, "variant": "?"}).replace(b'"?"', written.encode())
    read = Read(("impression", raw))
    assert read("window_impressions", variant=label) == 1
    assert (read("cut_values_total", topic="impressions"), read.dead) == (0, [])


def test_long_values_are_cut_and_counted() -> None:
    read = Read(shown(**ONE_USER, variant="é" * 129, surface="x" * 1000), shown(**ONE_USER))
    assert read("window_impressions", variant="é" * 128) == 1
    assert read("window_impressions", surface="x" * 128) == 1
    assert read("cut_values_total", topic="impressions") == 2


def test_settings_name_values_and_arms_as_they_are() -> None:
    arms = ["New York", "1.50", 'a "b"\n']
    of_any = EXPERIMENT | {"control": "1.50", "split": dict.fromkeys(arms, 1)}
    dimensions = [{"name": "variant", "values": arms, "max_values": 0}]
    events = [shown(user_id=i, item_id="i", variant=arm) for i, arm in enumerate(arms)]
    read = Read(
        *events, shown(**ONE_USER, variant="x"), dimensions=dimensions, experiments=[of_any]
    )
    assert [read("experiment_users", arm=arm) for arm in arms] == [1, 1, 1]
    assert [read("window_impressions", variant=arm) for arm in (*arms, "other")] == [1] * 4


# Times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ts",
    [
        *(T0, T0 + 0.999, f"{T0}", f"{T0}.9", 1.7e12),
        *(f"{TIME}Z", f"{TIME}.000999z", f"{TIME} UTC", "2023-11-15T03:43:20+0530"),
        *("2023-11-14 23:13:20", "2023-11-14T23:13:20.0"),
    ],
)
def test_times_of_all_kinds(ts: Any) -> None:
    read = Read(shown(**ONE_USER, ts=ts), events={"zone": "Europe/Berlin"})
    assert (read("stream_time_seconds"), read.dead) == (T0 / 1000, [])


def test_without_a_zone_times_are_utc_and_leap_seconds_are_the_next() -> None:
    read = Read(shown(**ONE_USER, ts=TIME))
    assert read("stream_time_seconds") == T0 / 1000
    read = Read(clicked(**ONE_USER, start_ts="2016-12-31T23:59:60", end_ts="2017-01-01T00:00:03"))
    assert read("dwell_mean_seconds") == 3


@pytest.mark.parametrize("ts", [T0 // 1000, T0 / 1000, f"{T0 // 1000}", f"{T0 / 1000}"])
def test_plain_seconds_are_refused_saying_so(ts: Any) -> None:
    read = Read(shown(**ONE_USER, ts=ts))
    (dead,) = read.dead
    refusal = Explainer(read.settings).explain("impressions", dead.value, dead.reason)
    assert (refusal.reason, refusal.field) == ("ts", "ts")
    assert "(looks like seconds)" in refusal.found
    assert "milliseconds" in refusal.expected


# Positions, lists, lines -----------------------------------------------------------------------


def test_positions_may_count_from_0() -> None:
    first, second = shown(**ONE_USER, position=0), clicked(**ONE_USER, position=1)
    read = Read(first, second, events={"positions_from": 0})
    assert read("window_position_impressions", position="1") == 1
    assert read.dead == []
    assert Read(first, second).reasons == ["position"]


def test_lists_may_hold_bare_ids() -> None:
    slate: Sequence[Any] = ["a", 7, {"item_id": "c", "position": None}]
    read = Read(shown(user_id="u", request_id="r", items=slate), clicked(user_id="u", item_id="7"))
    assert (read("window_impressions"), read("mrr", over="all")) == (3, 0.5)


def test_clicks_and_orders_may_have_lines() -> None:
    slate = shown(user_id="u", items=["a", "b", "c"])
    lines = [{"item_id": "a", "position": 1}, {"item_id": "b", "position": 2}]
    read = Read(
        slate,
        clicked(user_id="u", items=lines, feedback="click"),
        bought(user_id="u", items=[{"item_id": "a", "value": 1.5}, {"item_id": "b", "value": 2}]),
        bought(user_id="u", items=["b", "b"], value=10),  # counts with the first line
    )
    assert (read("window_clicks"), read("window_conversions")) == (2, 2)
    assert read("window_conversion_lines") == 4
    assert read("window_conversion_value") == 13.5
    assert read("ctr_attributed_ratio") == pytest.approx(2 / 3)
    assert read("cvr_attributed_ratio") == 1
    assert read("accepted_total", topic="conversions") == 2


@pytest.mark.parametrize(
    "items", [["a", None], ["a", {"value": 1}], [{"item_id": "a", "value": -1e13}, "b"], [], "a"]
)
def test_orders_are_accepted_or_rejected_whole(items: Any) -> None:
    read = Read(bought(user_id="u", items=items, event_id="e"), bought(**ONE_USER, event_id="e"))
    assert read.reasons == ["items"]
    assert (read("window_conversions"), read("accepted_total", topic="conversions")) == (1, 1)


@pytest.mark.parametrize(
    ("feedback", "label"),
    [(None, "click"), ("", "click"), ("li ke ✓", "other"), ('"\n', "other"), ("x" * 128, "other")],
)
def test_feedback_may_be_any_text(feedback: Any, label: str) -> None:
    read = Read(clicked(**ONE_USER, feedback=feedback))
    assert (read("window_feedback", feedback=label), read.dead) == (1, [])
    assert Read(clicked(**ONE_USER, feedback="x" * 129)).reasons == ["feedback"]
