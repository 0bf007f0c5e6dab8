"""What records of others mean: kinds, fields and settings, whatever comes."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamer.errors import SettingsError
from streamer.ingest.discovery.fields import find_fields
from streamer.ingest.discovery.kinds import classified
from streamer.ingest.discovery.profile import profile_of
from streamer.ingest.discovery.proposal import propose
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic, find_shapes
from streamer.ingest.discovery.trying import tried
from streamer.settings.load import parse
from streamer.settings.paths import path_of, text_of

MS = 1_793_527_200_000
NAMES = st.sampled_from(
    [
        "event",
        "type",
        "ts",
        "time",
        "user",
        "id",
        "items",
        "sku",
        "a.b",
        'c"d',
        "k]",
        "click",
        "é",
        "",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([MS, MS // 1000, 0.5, "click", "view_item_list", "x\n", '"', "\x7f", "]="]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def sample(*values: Any, topic: str = "web") -> SampledTopic:
    return SampledTopic(topic, [FoundRecord(json.dumps(value).encode()) for value in values])


@given(st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), min_size=1, max_size=5))
@example([{"event": False}, {"event": []}, {"event": "click"}])
def test_whatever_comes_the_proposal_is_valid(records: list[dict[str, Any]]) -> None:
    one = sample(*records)
    try:
        proposal = propose([one], "a test")
    except SettingsError:
        return  # nothing in them may be the time, or the item
    assert parse(tomllib.loads(proposal.toml)) == proposal.settings
    made = tried(proposal.settings, [one])
    assert made.total + made.ignored + len(made.refused) == len(records)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[
            (x, "impression")
            for x in ("Product List Viewed", "recs_shown", "ad.served", "IMPRESSION")
        ],
        *[(x, "impression") for x in ("view_item_list", "Products Searched", "slateDisplayed")],
        *[(x, "click") for x in ("select_item", "ProductClicked", "card-tapped", "video.liked")],
        *[(x, "conversion") for x in ("Order Completed", "purchase", "checkout_success", "sale")],
        *[(x, "session") for x in ("page_view", "session_start", "ScreenViewed")],
        *[(x, "") for x in ("add_to_cart", "Order Cancelled", "Promotion Clicked", "login", "7")],
    ],
)
def test_names_of_events(text: str, kind: str) -> None:
    assert classified(text)[0] == kind


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (MS, "at"),
        (str(MS), "at"),
        (MS // 1000, {"path": "at", "unit": "s"}),
        (MS / 1000, {"path": "at", "unit": "s"}),
        (MS * 1000, {"path": "at", "unit": "us"}),
        (str(MS * 10**6), {"path": "at", "unit": "ns"}),
        ("2026-11-01 10:00:00+00:00", "at"),
    ],
)
def test_units_of_times(value: Any, said: Any) -> None:
    found = find_fields(profile_of([{"at": value, "sku": "a"}] * 3), "click")
    assert found.fields == {"ts": said, "item_id": "sku"}


def test_users_who_are_not_known_stand_elsewhere() -> None:
    known = {"userId": "u", "anonymousId": "a"}
    found = find_fields(profile_of([known, {"userId": None, "anonymousId": "b"}]), "click")
    assert found.fields["user_id"] == ("userId", "anonymousId")


def test_names_of_lists_are_no_requests() -> None:
    few = [{"list_id": f"l{n % 3}", "sku": "a"} for n in range(100)]
    assert "request_id" not in find_fields(profile_of(few), "impression").fields
    many = [{"query": {"id": n}, "sku": "a"} for n in range(100)]
    assert find_fields(profile_of(many), "impression").fields["request_id"] == "query.id"


def test_paths_are_written_as_they_are_read() -> None:
    value = {"a": {"b.c": [{"key": "x", "value": {"string_value": 1}}]}, "é": [[{"z": 2}]]}
    paths = list(profile_of([value]).scalars)
    assert paths
    for path in paths:
        assert path_of(text_of(path)) == path


def test_kinds_whose_fields_stand_elsewhere_say_so() -> None:
    shown = {"event": "shown", "shown_at": MS, "recs": [{"sku": "a", "rank": 2}], "device": "x"}
    clicked = {"event": "clicked", "ts": MS, "item_id": "a", "position": 2}
    records = [{**shown, "arm": "ab"[n % 2], "device": "xy"[n % 2]} for n in range(8)]
    samples = [sample(*records, *[clicked] * 3)]
    proposal = propose(samples, "a test")
    assert tried(proposal.settings, samples).accepted == {"impressions": 8, "clicks": 3}
    (source,) = proposal.settings.sources
    assert source.fields["ts"] == "shown_at"
    assert source.click.fields == {"ts": "ts", "item_id": "item_id"}
    assert source.fields["position"] == "position"


def test_many_topics_have_few_dimensions() -> None:
    names = ["surface", "placement", "platform", "device", "campaign", "channel", "country", "app"]
    samples = [
        sample(
            *[
                {"event": "shown", "ts": MS, "sku": "a", a: "xy"[n % 2], b: "xy"[n % 2]}
                for n in range(8)
            ],
            topic=f"topic-{a}",
        )
        for a, b in zip(names[::2], names[1::2], strict=True)
    ]
    for at, one in enumerate(samples):  # of shapes of their own
        body = [json.loads(record.value) for record in one.records]
        samples[at] = sample(*[{f"event{at}_type": "shown", **x} for x in body], topic=one.topic)
    proposal = propose(samples, "a test")
    assert len(proposal.settings.dimensions) <= 4


def test_0_and_1_say_whether_an_impression_was_clicked() -> None:
    rows = [{"time": MS, "sku": n, "clicked": n % 5 == 0, "policy": "ab"[n % 2]} for n in range(50)]
    proposal = propose([sample(*rows)], "a test")
    (source,) = proposal.settings.sources
    assert source.kind.impression == ("false", "true")
    assert source.kind.click == ("true",)
    made = tried(proposal.settings, [sample(*rows)])
    assert (made.total, made.accepted) == (50, {"impressions": 50, "clicks": 10})


@pytest.mark.parametrize("preset", ["cloudevents", "debezium"])
def test_presets_that_know_no_kinds_get_them(preset: str) -> None:
    event = {"ts": MS, "item_id": "i", "user_id": "u"}
    made = {
        "cloudevents": {"specversion": "1.0", "type": "shop.item.shown", "id": "1", "data": event},
        "debezium": {"op": "c", "before": None, "after": event, "ts_ms": MS},
    }
    samples = [sample(made[preset], topic="shop.impressions")]
    proposal = propose(samples, "a test")
    assert proposal.settings.sources[0].preset == preset
    assert tried(proposal.settings, samples).accepted == {"impressions": 1}


def _in_experiments(lists: list[list[dict[str, str]]]) -> list[dict[str, Any]]:
    event = {"event": "shown", "ts": MS, "sku": "a"}
    return [{**event, "context": one} for one in lists]


def test_arms_in_lists_are_found_by_the_name_of_the_experiment() -> None:
    one = [[{"test_name": "ranker", "variant": "AB"[n % 2]}] for n in range(20)]
    proposal = propose([sample(*_in_experiments(one))], "a test")
    assert proposal.settings.sources[0].fields["variant"] == "context[test_name=ranker].variant"
    assert not any("variant" in doubt for doubt in proposal.doubts)
    two = [
        [{"test_name": "ranker", "variant": "AB"[n % 2]}, {"test_name": "ui", "variant": "x"}]
        for n in range(20)
    ]
    for n, pair in enumerate(two):
        pair[1]["variant"] = "xy"[n % 3 > 0]
        if n % 2:
            pair.reverse()
    proposal = propose([sample(*_in_experiments(two))], "a test")
    doubt = "two experiments: ranker (A, B) was taken; ui (y, x) is context[test_name=ui].variant"
    assert proposal.doubts[-1] == f"variant: {doubt}"
    assert f'# ? {doubt}\nvariant = "context[test_name=ranker].variant"\n' in proposal.toml


def test_arms_in_lists_without_names_are_guesses() -> None:
    records = _in_experiments([[{"variant": "AB"[n % 2]}] for n in range(20)])
    proposal = propose([sample(*records)], "a test")
    doubt = "element [0] of a list: another order gives another experiment"
    assert proposal.doubts[-1] == f"variant: {doubt}"
    assert f'# ? {doubt}\nvariant = "context[0].variant"\n' in proposal.toml
    records = _in_experiments([[{"variant": "AB"[n % 2]}, {"variant": "x"}] for n in range(20)])
    proposal = propose([sample(*records)], "a test")
    assert proposal.doubts[-1].startswith("variant: elements of context say arms, but no field")


def test_ids_of_shown_items_tell_no_experiments_apart() -> None:
    shown = [{"product_id": f"p{n % 3}", "variant": "red"} for n in range(9)]
    profile = profile_of([{"event": "shown", "products": shown}] * 9)
    assert not any("product_id=" in text_of(path) for path in profile.scalars)


def test_other_dimensions_say_where_they_go() -> None:
    long = "https://shop.example/catalogue/"
    records = [
        {"event": "shown", "ts": MS, "sku": "a", "page": {"kind": long + "xy"[n % 2]}}
        for n in range(8)
    ]
    text = propose([sample(*records)], "a test").toml
    assert "To split by one of these: its line under [sources.fields]" in text
    assert '# kind = "page.kind"' in text
    assert "2 values: '…example/catalogue/x' 4, '…example/catalogue/y' 4" in text


def item_fields_of(*samples: SampledTopic) -> dict[str, Any]:
    """Kind → where the item stands in what is proposed for some topics."""
    shapes = find_shapes(samples)
    return {
        kind: fields.get("item_id") for shape in shapes for kind, fields in shape.fields.items()
    }


def test_items_are_the_fields_with_common_values_not_the_ones_with_likely_names() -> None:
    shown = [
        {"event": "shown", "ts": MS, "recs": [{"item": f"Shirt {n}", "product_id": n}]}
        for n in range(50)
    ]
    clicked = [{"event": "clicked", "ts": MS, "product_id": n} for n in range(9)]
    found = item_fields_of(sample(*shown, *clicked))
    assert found == {"impression": "recs[].product_id", "click": "product_id"}
    shown = [{"time": MS, "content_id": "home", "sku": n} for n in range(50)]
    clicked = [{"time": MS, "content_id": n} for n in range(9)]
    topics = sample(*shown, topic="impressions"), sample(*clicked, topic="clicks")
    assert item_fields_of(*topics) == {"impression": "sku", "click": "content_id"}
    same = [{"time": MS, "item_id": n, "content_id": n} for n in range(9)]
    topics = sample(*same, topic="impressions"), sample(*same, topic="clicks")
    assert item_fields_of(*topics) == {"impression": "item_id", "click": "item_id"}


def test_ids_of_anything_are_no_items() -> None:
    shown = [
        {"what": "recs_shown", "at": MS, "recs": [{"id": n, "by": {"id": 1}}]} for n in range(50)
    ]
    clicked = [
        {"what": "rec_clicked", "at": MS, "who": {"id": 78 + n}, "rec": n} for n in range(12)
    ]
    proposal = propose([sample(*shown, *clicked)], "a test")
    (source,) = proposal.settings.sources
    assert source.fields["item_id"] == "recs[].id"
    assert source.click.fields["item_id"] == "rec"
    assert "item_id: by its values rec, 12 values (click)" in proposal.doubts
    alone = find_fields(profile_of([{"ts": MS, "page": {"id": "home"}}]), "click")
    assert "item_id" not in alone.fields
    assert "item_id" in alone.doubts
    product = find_fields(profile_of([{"ts": MS, "clickedProduct": {"id": "x"}}]), "click")
    assert product.fields["item_id"] == "clickedProduct.id"


def test_ids_with_decimals_that_are_0_are_read_without() -> None:
    shown = [{"time": MS, "user_id": str(n), "sku": str(n)} for n in range(9)]
    clicked = [{"time": MS, "user_id": f"{n}.0", "sku": str(n)} for n in range(9)]
    topics = sample(*shown, topic="impressions"), sample(*clicked, topic="clicks")
    sources = propose(topics, "a test").settings.sources
    assert [source.whole_ids for source in sources] == [False, True]


def test_an_event_id_is_different_in_every_record() -> None:
    rows = [{"ts": MS + n, "uuid": n - (n % 10 == 1), "sku": n} for n in range(100)]
    assert "event_id" not in find_fields(profile_of(rows), "impression").fields
    own = [{"ts": MS + n, "event_id": n - (n % 10 == 1), "sku": n} for n in range(100)]
    assert find_fields(profile_of(own), "impression").fields["event_id"] is False
    sent_twice = [{"time": MS + n, "uuid": n, "sku": n} for n in (*range(99), 98)]
    (shape,) = find_shapes([sample(*sent_twice, topic="impressions")])
    assert shape.fields["impression"]["event_id"] == "uuid"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"price": 10, "order_total": 25}, "order_total"),
        ({"price": 10, "quantity": 3, "order_total": 35}, {"product": ["price", "quantity"]}),
        ({"unitPrice": 10, "quantity": 3}, {"product": ["unitPrice", "quantity"]}),
        ({"price": 10}, "price"),
        ({"value": 30, "price": 10, "quantity": 3}, "value"),
    ],
)
def test_totals_go_before_prices_without_a_quantity(fields: dict[str, Any], where: Any) -> None:
    found = find_fields(profile_of([{"ts": MS, "sku": "a", **fields}] * 3), "conversion")
    assert found.fields["value"] == where


def test_single_items_beside_lists_are_read_with_presets_too() -> None:
    common = {"specversion": "1.0", "source": "/web", "time": "2026-11-01T10:00:00Z"}
    shown = {**common, "type": "shop.recs.shown", "data": {"slots": [{"sku": 1}, {"sku": 2}]}}
    clicked = {**common, "type": "shop.rec.clicked", "data": {"sku": 1}}
    one = sample(
        *[{**each, "id": f"{n}{each['type']}"} for n in range(9) for each in (shown, clicked)]
    )
    proposal = propose([one], "a test")
    assert "cloudevents" in proposal.toml
    made = tried(proposal.settings, [one])
    assert (made.accepted, made.refused) == ({"impressions": 9, "clicks": 9}, [])
