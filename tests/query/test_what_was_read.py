"""What was read shows mappings that are silently wrong, and is quiet about right ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from streamer._core import partition_of
from streamer.ingest.discovery.shapes import FoundRecord
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import record_decoder
from streamer.query.what_was_read import (
    WhatWasRead,
    joins_in_words,
    of_counters,
    of_sample,
)
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.sources.synthetic import SyntheticTraffic, generate

MS = 1_793_527_200_000
Object = dict[str, Any]
KINDS = {"field": "what", "impression": ["shown"], "click": ["clicked"], "conversion": ["bought"]}
FIELDS = {
    **{"ts": "at", "user_id": "who.id", "request_id": "page", "event_id": "id"},
    **{"item_id": "recs[].sku", "value": "total", "variant": "arm"},
}
SINGLE = {"item_id": "rec"}
SOURCE: Object = {
    "topics": ["web"],
    "kind": KINDS,
    "fields": FIELDS,
    "click": {"fields": SINGLE},
    "conversion": {"fields": SINGLE},
}


def world() -> list[Object]:
    """Pages of four items; a third are clicked, of these a half bought. Some is sent twice."""
    dice, made = Random(5), list[Object]()

    def add(what: str, at: int, user: int, page: int, **more: Any) -> None:
        common = {"what": what, "at": at, "id": f"e{len(made)}", "who": {"id": f"u{user}"}}
        made.append({**common, "page": f"p{page}", "arm": "AB"[user % 2], **more})

    for page in range(600):
        at, user = MS + 1000 * page, dice.randrange(90)
        items = dice.sample(range(300), 4)
        add("shown", at, user, page, recs=[{"sku": i, "title": f"Shirt {i}"} for i in items])
        if page % 3 == 0:
            add("clicked", at + 300, user, page, rec=items[0])
        if page % 6 == 0:
            add("bought", at + 600, user, page, rec=items[0], total=12.5)
        if page % 20 == 0:
            made.append(made[-1])
    return made


def source(**more: Any) -> Object:
    """The right mapping, with changes in `fields`, `click` and `conversion`."""
    found = {**SOURCE, "fields": {**FIELDS, **more.pop("fields", {})}}
    for kind in ("click", "conversion"):
        found[kind] = {"fields": {**SINGLE, **more.pop(kind, {})}}
    return {**found, **more}


def read(
    events: Sequence[Object], of: Object, *, is_live: bool = False, **settings: Any
) -> WhatWasRead:
    """What `replay` says of some events, or what the page says, which has counters alone."""
    made = parse({"sources": [of], **settings})
    sample, decoder, replay = ReadSample(made), record_decoder(made), Replay(made)
    raws = [json.dumps(event).encode() for event in events]
    for raw in raws:
        sample.add("web", FoundRecord(raw), decoder.decode_all("web", raw))
    replay.feed([("web", event["at"], raw) for event, raw in zip(events, raws, strict=True)])
    replay.finish()
    result = replay.readout()
    return of_counters(made, result) if is_live else of_sample(made, sample, result)


def findings(events: Sequence[Object], of: Object, **settings: Any) -> list[str]:
    return [str(each) for each in read(events, of, **settings).implausible]


EXPERIMENT = {
    **{"name": "ranker", "dimension": "variant", "control": "A"},
    **{"split": {"A": 1, "B": 1}, "start": "2026-10-01"},
}


def changed(change: Callable[[Object], Object]) -> list[Object]:
    return [change(json.loads(json.dumps(event))) for event in world()]


def without_user(event: Object) -> Object:
    return {**event, "who": {}}


def test_a_right_mapping_has_no_findings() -> None:
    found = read(world(), SOURCE, experiments=[EXPERIMENT])
    assert not found.implausible
    (topic,) = found.topics
    shown, clicks, conversions = found.kinds
    assert (topic.records, topic.accepted, topic.duplicates) == (930, 900, 30)
    assert (clicks.events - clicks.duplicates, clicks.joined, clicks.compared) == (200, 200, 200)
    assert (conversions.valued, conversions.joined) == (100, 100)
    assert (shown.events - shown.duplicates, shown.with_person) == (600, 600)
    assert found.arms["variant"].keys() == {"A", "B"}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([e for e in world() if e["what"] == "shown"], id="impressions only"),
        pytest.param([e for e in world() if e["what"] != "bought"], id="no conversion yet"),
        pytest.param(world()[:3], id="hardly any events"),
        pytest.param(changed(without_user), id="anonymous, with requests"),
        pytest.param(
            changed(lambda e: {**e, "page": None} if e["what"] == "bought" else e),
            id="conversions without requests",
        ),
        pytest.param(
            [
                {**e, "rec": e["at"]} if e["what"] == "bought" and e["at"] // 6000 % 2 else e
                for e in world()
            ],
            id="half of what is bought was never shown",
        ),
    ],
)
def test_there_is_no_false_alarm(events: list[Object]) -> None:
    fields = {} if "id" in events[0]["who"] else {"user_id": False}
    assert findings(events, source(fields=fields)) == []


def test_anonymous_traffic_by_design_is_no_finding() -> None:
    events = changed(lambda e: {**without_user(e), "page": None})
    assert findings(events, source(fields={"user_id": False})) == []


def test_clicks_in_the_records_of_their_impressions_join_them() -> None:
    rows = [{"at": MS + n, "sku": n, "clicked": int(n % 9 == 0)} for n in range(300)]
    kind = {"field": "clicked", "impression": ["0", "1"], "click": ["1"]}
    found = read(rows, {"topics": ["web"], "kind": kind, "fields": {"ts": "at", "item_id": "sku"}})
    assert not found.implausible
    assert (found.kinds[1].joined, found.kinds[1].compared) == (34, 34)


def is_one(found: list[str], *parts: str) -> bool:
    assert len(found) == 1, found
    assert all(part in found[0] for part in parts), found
    return True


def test_the_item_is_a_user() -> None:
    found = findings(world(), source(click={"item_id": "who.id"}))
    assert is_one(found, "0 of 200 clicks joined", 'item_id differs between clicks ("who.id")')
    assert is_one(found, 'and impressions ("recs[].sku")', "correct item_id in [sources.fields]")


def test_the_item_is_a_title() -> None:
    found = findings(
        world(), source(fields={"item_id": "recs[].title"}, conversion={"value": False})
    )
    assert any("0 of 200 clicks joined an impression; item_id" in line for line in found)


def test_users_are_written_as_floats() -> None:
    events = changed(
        lambda e: {**e, "who": {"id": e["who"]["id"][1:] + ".0" * (e["what"] == "clicked")}}
    )
    found = findings(events, source(fields={"request_id": False}))
    assert is_one(found, "0 of 200 clicks joined", "correct user_id in [sources.fields]")


def test_requests_are_others() -> None:
    found = findings(world(), source(click={"request_id": "id"}))
    assert is_one(found, "0 of 200 clicks joined", "correct request_id in [sources.fields]")


def test_users_change_at_login() -> None:
    def logged_in(event: Object) -> Object:
        known = {"id": f"known-{event['who']['id']}"}
        return {**event, "who": known} if event["what"] == "clicked" else event

    found = findings(changed(logged_in), SOURCE)
    assert is_one(found, "0 of 200 clicks joined", "user_id differs", "200 match no impression")


@pytest.mark.parametrize(
    ("fields", "share"),
    [({"event_id": "page"}, "clicks"), ({"event_id": "who.id"}, "impressions")],
)
def test_ids_of_something_else_are_taken_for_the_events(fields: Object, share: str) -> None:
    def shared(event: Object) -> Object:
        """Two pages have one id, as rows of a list do."""
        return {**event, "page": f"p{int(event['page'][1:]) // 2}"}

    found = findings(changed(shared), source(fields=fields))
    assert any("have the event_id of a different event" in line for line in found)


def test_a_text_for_no_value_is_an_event_id() -> None:
    def unset(event: Object) -> Object:
        return {**event, "id": "(not set)"} if event["what"] == "bought" else event

    found = findings(changed(unset), SOURCE)
    assert is_one(found, "conversions", "have the event_id of a different event", '"id"')
    assert findings(changed(unset), source(missing=["(not set)"])) == []


@pytest.mark.parametrize("value", ["cost", "cost.eur"])
def test_no_conversion_has_a_value(value: str) -> None:
    of = source(fields={"value": value})
    assert is_one(findings(world(), of), "none of 100 conversions has one", "value = false")
    assert findings(world(), source(fields={"value": False})) == []


@pytest.mark.parametrize(
    ("more", "at"),
    [
        (
            lambda e: {"recs": [{**r, "clicked": True} for r in e["recs"]]},
            "recs[].",
        ),
        (lambda e: {"clicked_results": [e["recs"][0]["sku"]]}, "clicked_results"),
    ],
)
def test_clicks_within_impressions_are_not_read(more: Callable[[Object], Object], at: str) -> None:
    events = [{**e, **more(e)} for e in world() if e["what"] == "shown"]
    assert is_one(findings(events, SOURCE), "no click was read", at)


def test_arms_are_others() -> None:
    found = findings(changed(lambda e: {**e, "arm": "blue"}), SOURCE, experiments=[EXPERIMENT])
    assert is_one(found, "no impression has an arm of ranker (A, B)", "variant is 'blue'")
    later = {**EXPERIMENT, "start": "2026-12-01"}
    assert findings(changed(lambda e: {**e, "arm": "blue"}), SOURCE, experiments=[later]) == []
    by_time = {key: value for key, value in EXPERIMENT.items() if key != "dimension"}
    by_time["switchback"] = {"slot": "1h", "schedule": ["A", "B", "B", "A"]}
    assert findings(changed(lambda e: {**e, "arm": "blue"}), SOURCE, experiments=[by_time]) == []


def test_most_is_refused() -> None:
    events = changed(lambda e: {**e, "what": "x"} if e["what"] == "shown" else e)
    found = read(events, SOURCE, is_live=True).implausible
    assert any("records of web were refused (6" in each.what for each in found)


def test_feedback_of_no_kind_that_counts() -> None:
    like = {**KINDS, "click": [{"value": "clicked", "feedback": "like"}]}
    (found,) = findings(world(), source(kind=like))
    assert found.startswith("none of 200 clicks is of a kind in metrics.feedback (click)")
    assert findings(world(), source(kind=like), metrics={"feedback": {"click": 1, "like": 2}}) == []


def parts(events: Sequence[Object], of: Object, **settings: Any) -> WhatWasRead:
    """What `check` says of the last records of each partition of topics."""
    made = parse({"sources": [of], **settings})
    sample, decoder = ReadSample(made), record_decoder(made)
    for kind in ("shown", "clicked", "bought"):
        for event in [e for e in events if e["what"] == kind][-150:]:
            raw = json.dumps(event).encode()
            sample.add("web", FoundRecord(raw, offset=1), decoder.decode_all("web", raw))
    return of_sample(made, sample)


def test_a_part_of_each_topic_is_enough_for_a_finding_and_no_false_alarm() -> None:
    soon: Object = {"attribution": {"click": "30s", "conversion": "1m"}}
    assert not parts(world(), SOURCE, **soon).implausible
    (found,) = parts(world(), source(click={"item_id": "who.id"}), **soon).implausible
    assert "correct item_id" in found.fix


def test_parts_that_are_shorter_than_the_horizon_are_too_short_to_tell() -> None:
    found = parts(world(), source(click={"item_id": "who.id"}))
    assert not found.implausible
    shown, clicks, _ = found.kinds
    assert joins_in_words(clicks, shown) == (
        "too short to tell how many",
        "impressions of 2.4m, clicks of 7.5m",
    )


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({}, []),
        (
            {"item_id": "recs[].title"},
            ["0 of 200 clicks of the last 24h joined an impression: streamer check says why"],
        ),
        ({"value": "cost"}, ["none of 100 conversions has one"]),
        ({"event_id": "who.id"}, ["of 930 events of web", "have an event_id seen before"]),
        ({"user_id": "whom"}, ["user_id: no event has it"]),
        ({"user_id": False, "request_id": False}, []),
    ],
)
def test_counters_alone_show_the_worst(fields: Object, parts: list[str]) -> None:
    events = world() if fields.get("event_id") else list({e["id"]: e for e in world()}.values())
    found = read(events, source(fields=fields), is_live=True)
    lines = [str(each) for each in found.implausible]
    assert bool(lines) == bool(parts), lines
    assert all(any(part in line for line in lines) for part in parts), lines


def test_the_document_has_topics_and_findings() -> None:
    found = read(world(), source(fields={"value": "cost"}), is_live=True).counted
    assert found.topics[0].topic == "web"
    assert found.topics[0].accepted == 900
    assert any(each.what.startswith("value: none of 1") for each in found.findings)


def test_counters_say_how_much_feedback_joined_nothing() -> None:
    found = read(world(), SOURCE, is_live=True).feedback
    assert {each.kind: (each.events, each.unattributed) for each in found} == {
        "clicks": (200, 0),
        "conversions": (100, 0),
    }
    elsewhere = changed(lambda e: {**e, "rec": "x"} if e["what"] == "clicked" else e)
    later = {**elsewhere[0], "id": "later", "at": MS + 3 * 86_400_000}
    found = read([*elsewhere, later], SOURCE, is_live=True).feedback
    assert [(each.kind, each.unattributed) for each in found] == [
        ("clicks", 200),
        ("conversions", 100),  # they joined by their clicks
    ]


def devices(change: Callable[[Object], None] = lambda event: None) -> list[Object]:
    """The world in which every event names a device, but for what is changed."""
    made = [{**event, "device": "d" + event["who"]["id"]} for event in world()]
    for event in made:
        change(event)
    return made


def test_feedback_without_the_id_of_joins_is_named() -> None:
    def of_server(event: Object) -> None:
        if event["what"] == "bought":
            del event["device"]

    of = source(fields={"join_id": "device"})
    assert findings(devices(), of) == []
    (line,) = findings(devices(of_server), of)
    bought = len({event["id"] for event in world() if event["what"] == "bought"})
    assert line == (
        f'{bought} of {bought} conversions have no join_id ("device"), so they join no impression: '
        "send it with every event, or set join_id = false in [sources.fields]"
    )
    assert findings(devices(of_server), source(fields={"join_id": False})) == []


def test_users_on_several_devices_need_a_unit_of_experiments() -> None:
    def on_two(event: Object) -> None:
        if event["who"]["id"] in ("u1", "u2", "u3"):
            event["device"] += str(event["at"] // 1000 % 2)

    experiment: Object = {"name": "e", "control": "A", "dimension": "variant"}
    experiment["split"] = {"A": 1, "B": 1}
    experiment["start"] = datetime.fromtimestamp(MS / 1000, UTC).date()
    of = source(fields={"join_id": "device"})
    assert findings(devices(), of, experiments=[experiment]) == []
    assert findings(devices(on_two), of) == []
    (line,) = findings(devices(on_two), of, experiments=[experiment])
    assert line == (
        "3 of 90 users have several join_ids, each a person of its own in 'e': where arms are "
        'drawn by user, set unit = "user_id"'
    )
    of_users = {**experiment, "unit": "user_id", "arm": "arm"}
    del of_users["dimension"]
    assert findings(devices(on_two), of, experiments=[of_users]) == []


def test_rows_of_one_order_are_no_copies_and_a_row_sent_again_is_one() -> None:
    events = [event for event in world() if event["what"] != "bought"]
    orders = [event for event in world() if event["what"] == "bought"]
    for order in orders:
        events += [order, {**order, "rec": "another"}, {**order, "rec": "a third"}]
    was_read = read(events, source())
    assert list(was_read.implausible) == []
    (conversions,) = (kind for kind in was_read.kinds if kind.kind == "conversions")
    (topic,) = was_read.topics
    copies = len(orders) - len({order["id"] for order in orders})
    assert copies > 0
    assert (conversions.duplicates, conversions.changed) == (3 * copies, 0)
    clicks, shown = was_read.kinds[1], was_read.kinds[0]
    assert topic.duplicates == sum(kind.duplicates for kind in (shown, clicks, conversions))


# How much joins, and why the rest does not: as the core joins it ---------------------------------

S, M, H = 1000, 60_000, 3_600_000


def shop(n: int, *feedback: tuple[str, int], **more: Any) -> list[Object]:
    """``n`` items, each shown to a person of its own, a second apart; then ``feedback`` of each:
    its kind, and how long after."""
    made = list[Object]()
    for i in range(n):
        own = {"user_id": f"u{i}", "item_id": f"i{i}", "ts": MS + S * i + 7}
        made.append({**own, "type": "impression", "request_id": f"r{i}"})
        made += [{**own, **more, "type": kind, "ts": MS + S * i + 7 + ms} for kind, ms in feedback]
    return sorted(made, key=lambda event: int(event["ts"]))


def of_shop(events: Sequence[Object], **settings: Any) -> WhatWasRead:
    made = parse(settings)
    sample, decoder = ReadSample(made), record_decoder(made)
    for event in events:
        log, raw = f"{event['type']}s", json.dumps(event).encode()
        sample.add(log, FoundRecord(raw), decoder.decode_all(log, raw))
    return of_sample(made, sample)


def misses(events: Sequence[Object], kind: str) -> tuple[int, dict[str, int]]:
    (found,) = (each for each in of_shop(events).kinds if each.kind == kind)
    assert found.compared == found.counted
    return found.joined, dict(found.misses)


def test_a_conversion_joins_a_clicked_impression_within_its_own_horizon() -> None:
    clicked, unclicked = ("click", S), ("conversion", 5 * M)
    assert misses(shop(1, clicked, ("conversion", 40 * M)), "conversions") == (1, {})
    assert misses(shop(1, clicked, ("conversion", 24 * H)), "conversions") == (1, {})
    assert misses(shop(1, unclicked), "conversions") == (0, {"unclicked": 1})
    assert misses(shop(1, ("conversion", 5 * H)), "conversions") == (0, {"unclicked": 1})
    assert misses(shop(1, ("click", 6 * M), unclicked), "conversions") == (0, {"unclicked": 1})
    assert misses(shop(1, ("conversion", 72 * H)), "conversions") == (0, {"unclicked": 1})
    late = shop(1, clicked, ("conversion", 24 * H + 1))
    assert misses(late, "conversions") == (0, {"late": 1})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"item_id": "x"}, "item"),
        ({"user_id": "x"}, "person"),
        ({"user_id": "u1"}, "pair"),
        ({"request_id": "x"}, "request"),
        ({"ts": MS + 500, "item_id": "i1", "user_id": "u1", "request_id": "r1"}, "before"),
        ({"ts": MS + H}, "late"),
    ],
)
def test_each_reason_has_a_name(change: Object, why: str) -> None:
    *shown, click = [*shop(2), {**shop(1, ("click", S))[-1], **change}]
    assert misses([*shown, click], "clicks") == (0, {why: 1})


def test_late_clicks_are_said_to_be_late() -> None:
    found = of_shop(shop(300, ("click", 65 * M)))
    (line,) = map(str, found.implausible)
    assert line == (
        "0 of 300 clicks joined an impression; 300 come 1.1h after it (median), and "
        "attribution.click is 30m: raise it if they belong to the impression"
    )
    said = joins_in_words(found.kinds[1], found.kinds[0])
    assert said == ("0 of 300", "after the horizon 300")
    assert not of_shop(shop(300, ("click", 65 * M)), attribution={"click": "2h"}).implausible


def test_late_conversions_are_said_to_be_late() -> None:
    events = shop(300, ("click", S), ("conversion", 48 * H))
    (line,) = map(str, of_shop(events).implausible)
    assert line.startswith("0 of 300 conversions joined an impression; 300 come 2d after it")
    assert "and attribution.conversion is 24h: raise it" in line


def test_conversions_within_hours_of_their_clicks_are_well() -> None:
    dice = Random(3)
    events = shop(500, ("click", S))
    for event in [e for e in events if e["type"] == "click"]:
        after_ms = int(dice.lognormvariate(0, 1) * 2 * H)
        events.append({**event, "type": "conversion", "ts": event["ts"] + after_ms, "value": 1})
    assert not of_shop(events).implausible
    joined, others = misses(events, "conversions")
    assert (joined + others["late"], set(others)) == (500, {"late"})
    assert others["late"] < 10


def test_views_without_a_click_are_said_to_join_nothing() -> None:
    bought = shop(50, ("conversion", 5 * M), value=1)
    assert not of_shop(bought).implausible  # a log without clicks, of which it is said that it is
    clicked = shop(9, ("click", 6 * M))
    (line,) = map(str, of_shop([*bought, *clicked]).implausible)
    assert line == (
        "0 of 50 conversions joined an impression; 50 have no click before them (view-through), "
        "and a conversion joins an impression that was clicked: send their clicks, or the "
        "dimensions with each conversion"
    )


def test_clicks_before_their_impressions_are_about_time() -> None:
    (line,) = map(str, of_shop(shop(200, ("click", -10 * S))).implausible)
    assert "come before it: is" in line
    assert "Correct ts" in line


def test_the_user_is_not_blamed_where_others_were_shown_the_item() -> None:
    events = shop(60, ("click", S))
    for event in events:
        if event["type"] == "click":
            event["user_id"] = f"u{(int(event['user_id'][1:]) + 1) % 60}"
    (line,) = map(str, of_shop(events).implausible)
    assert line.startswith(
        "0 of 60 clicks joined an impression; 60 are of items that were shown to others alone"
    )
    assert "user_id" not in line


def test_anonymous_clicks_of_other_requests_are_about_the_request() -> None:
    events = [{**event, "user_id": None} for event in shop(60, ("click", S), request_id="x")]
    (line,) = map(str, of_shop(events).implausible)
    assert "request_id differs between clicks" in line


def last_of_partitions(traffic: SyntheticTraffic, n: int) -> WhatWasRead:
    """What `check` reads of the traffic, in topics of eight partitions."""
    made, logs = Settings(), dict[tuple[str, int], list[bytes]]()
    for log, raw in generate(traffic, n):
        user = json.loads(raw)["user_id"]
        logs.setdefault((log, partition_of(user.encode(), 8)), []).append(raw)
    sample, decoder = ReadSample(made), record_decoder(made)
    for (log, partition), raws in logs.items():
        for offset, raw in list(enumerate(raws))[-200:]:
            record = FoundRecord(raw, partition=partition, offset=offset)
            sample.add(log, record, decoder.decode_all(log, raw))
    return of_sample(made, sample)


@pytest.mark.parametrize("events_per_second", [2, 20, 1000])
def test_the_last_records_of_sparse_conversions_are_no_finding(events_per_second: float) -> None:
    found = last_of_partitions(SyntheticTraffic(events_per_second=events_per_second), 60_000)
    assert not found.implausible
    _, clicks, conversions, _ = found.kinds
    assert conversions.longest_ms > 5 * found.kinds[0].longest_ms
    assert conversions.compared == conversions.joined
    assert not joins_in_words(conversions, found.kinds[0])[0].startswith("0 of")
    assert clicks.joined >= 0.9 * clicks.compared


def test_a_sample_is_counted_by_no_dimension() -> None:
    some = list(generate(SyntheticTraffic(), 4000))
    sizes = list[int]()
    for dimensions in ([], [{"name": "surface"}, {"name": "locale"}]):
        sample = ReadSample(parse({"dimensions": dimensions}))
        for log, raw in some:
            sample.add(log, FoundRecord(raw), sample.decoder.decode_all(log, raw))
        sizes.append(sample._core.sizes()["panes"])
        assert sum(kind.joined for kind in sample.kinds()) > 0
    assert sizes[0] == sizes[1] > 0


def test_what_ratios_lack_is_said_with_counts() -> None:
    def ratio(name: str, numerator: Object, denominator: Object) -> Object:
        return {"name": name, "numerator": numerator, "denominator": denominator}

    ratios = [
        ratio("a", {"kind": "clicks", "field": "depth"}, {"kind": "clicks"}),
        ratio("b", {"kind": "clicks"}, {"kind": "impressions", "where": {"place": "top"}}),
        ratio("c", {"kind": "clicks"}, {"kind": "like"}),
        ratio("d", {"kind": "clicks"}, {"kind": "conversions", "field": "tax"}),
    ]
    feedback = {"click": 1.0, "like": 1.0}
    fields = {"tax": "nothing", "depth": "nowhere", "place": "zero"}
    events = [{**event, "zero": "0"} for event in world()]
    found = findings(events, source(fields=fields), ratios=ratios, metrics={"feedback": feedback})
    said = [re.sub(r"\d[\d,]* (?=clicks|impressions|conversions)", "N ", each) for each in found]
    for expected in (
        "none of N clicks has the field depth that a ratio adds up",
        "none of N impressions is as a ratio asks: place is top",
        "the denominator of c is always 0: like, of N clicks",
        "none of N conversions has the field tax that a ratio adds up",
        "the denominator of d is always 0: sum of tax of conversions, of N conversions",
    ):
        assert any(each.startswith(expected) for each in said), (expected, said)
