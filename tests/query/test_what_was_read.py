"""What was read shows mappings that are silently wrong, and is quiet about right ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import record_decoder
from streamer.query.what_was_read import WhatWasRead, of_counters, of_readout, of_sample
from streamer.settings.load import parse
from streamer.sources.replay import Replay

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
        sample.add("web", raw, decoder.decode_all("web", raw))
    replay.feed([("web", event["at"], raw) for event, raw in zip(events, raws, strict=True)])
    replay.finish()
    result = replay.readout()
    return of_counters(made, result) if is_live else of_readout(made, result, sample)


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
    assert any("have the event_id of an event that differs" in line for line in found)


def test_a_text_for_no_value_is_an_event_id() -> None:
    def unset(event: Object) -> Object:
        return {**event, "id": "(not set)"} if event["what"] == "bought" else event

    found = findings(changed(unset), SOURCE)
    assert is_one(found, "conversions", "have the event_id of an event that differs", '"id"')
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


def test_most_is_refused() -> None:
    events = changed(lambda e: {**e, "what": "x"} if e["what"] == "shown" else e)
    found = read(events, SOURCE, is_live=True).implausible
    assert any("records of web were refused (6" in what for what, _ in found)


def test_feedback_of_no_kind_that_counts() -> None:
    like = {**KINDS, "click": [{"value": "clicked", "feedback": "like"}]}
    (found,) = findings(world(), source(kind=like))
    assert found.startswith("none of 200 clicks is of a kind in metrics.feedback (click)")
    assert findings(world(), source(kind=like), metrics={"feedback": {"click": 1, "like": 2}}) == []


def parts(events: Sequence[Object], of: Object) -> Iterator[str]:
    """What `check` says of the last records of each partition of topics."""
    settings = parse({"sources": [of]})
    sample, decoder = ReadSample(settings, is_partial=True), record_decoder(settings)
    for kind in ("shown", "clicked", "bought"):
        for event in [e for e in events if e["what"] == kind][-150:]:
            raw = json.dumps(event).encode()
            sample.add("web", raw, decoder.decode_all("web", raw))
    return map(str, of_sample(settings, sample).implausible)


def test_a_part_of_each_topic_is_enough_for_a_finding_and_no_false_alarm() -> None:
    assert list(parts(world(), SOURCE)) == []
    (found,) = parts(world(), source(click={"item_id": "who.id"}))
    assert "correct item_id" in found


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({}, []),
        ({"item_id": "recs[].title"}, ["0 of 200 clicks of the last 24h joined an impression"]),
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
    found = read(world(), source(fields={"value": "cost"}), is_live=True).as_json()
    assert found["topics"][0]["topic"] == "web"
    assert found["topics"][0]["accepted"] == 900
    assert any(each["what"].startswith("value: none of 1") for each in found["findings"])


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
