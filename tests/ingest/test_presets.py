"""Presets: records as each product documents them, and what they count as."""

from __future__ import annotations

import json
from collections.abc import Callable

from streamer.ingest.record import record_decoder
from streamer.kafka.chunk import encoded_headers
from streamer.settings.load import parse
from streamer.settings.source_rules import PRESETS
from tests.support import documented
from tests.support.agreement import read_engines
from tests.support.all_cases import hold_for_all
from tests.support.documented import MS, Case, Object
from tests.support.documented_exposures import EXPOSURES
from tests.support.engines import Engines, LogRecord, chunks_of

SEGMENT: list[Case] = [
    (
        {
            "anonymousId": "507f191e810c19729de860ea",
            "context": {"ip": "8.8.8.8", "experiment": {"variant": "B"}, "surface": "deals"},
            "event": "Product List Viewed",
            "messageId": "022bb90c-bbac-11e4-8dfc-aa07a5b093db",
            "originalTimestamp": "2026-11-01T09:59:59.000Z",
            "properties": {
                "list_id": "hot_deals_1",
                "category": "Deals",
                "products": [
                    {"product_id": "a", "sku": "1", "position": 1, "category": "Games"},
                    {"sku": "b", "position": 2, "variant": "Red"},
                ],
            },
            "timestamp": "2026-11-01T10:00:00.000Z",
            "type": "track",
            "userId": "AiUGstSDIg",
        },
        {"items": [("a", 1), ("b", 2)], "user": "AiUGstSDIg", "dimensions": ["B", "deals"]},
    ),
    (
        {
            "userId": None,
            "anonymousId": "507f",
            "event": "Product Clicked",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "properties": {"product_id": "a", "variant": "Red", "position": 3},
        },
        {"lines": [("a", 3)], "user": "507f", "dimensions": ["", ""]},
    ),
    (
        {
            "userId": 17,
            "event": "Order Completed",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "properties": {
                "order_id": "50314b8e",
                "total": 27.5,
                "products": [
                    {"product_id": "a", "price": 19, "quantity": 2},
                    {"product_id": "b", "price": 3.5, "quantity": 1},
                ],
            },
        },
        {"lines": [("a", 38_000_000), ("b", 3_500_000)], "user": "17"},
    ),
    (
        {
            "event": "Order Completed",
            "userId": "u",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "properties": {"total": 30, "revenue": 25, "products": [{"sku": "a"}, {"sku": "b"}]},
        },
        {"lines": [("a", 25_000_000), ("b", 0)], "user": "u"},
    ),
    (
        {
            "event": "Order Refunded",
            "userId": "u",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "properties": {"order_id": "50314b8e", "total": 30, "currency": "USD"},
        },
        {"lines": [("", -30_000_000)], "user": "u"},
    ),
    (
        {
            "event": "Order Refunded",
            "userId": "u",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "properties": {
                "order_id": "50314b8e",
                "products": [{"product_id": "b", "price": 3.5, "quantity": 1}],
            },
        },
        {"lines": [("b", -3_500_000)], "user": "u"},
    ),
    ({"event": "Product Added", "userId": "u"}, "ignored"),
    ({"event": "Coffee Brewed", "userId": "u"}, "kind"),
    ({"type": "identify", "userId": "u"}, "ignored"),
    ({"event": "Products Searched", "userId": "u", "properties": {"query": "tea"}}, "ignored"),
    (
        {
            "type": "page",
            "name": "Home",
            "event": None,
            "userId": "u",
            "timestamp": "2026-11-01T10:00:00.000Z",
        },
        {"action": 1, "user": "u"},
    ),
    ({"type": "track", "userId": "u"}, "kind"),
]

GA4: list[Case] = [
    (
        {  # a row of the BigQuery export
            "event_date": "20261101",
            "event_timestamp": "1793527200000123",
            "event_name": "view_item_list",
            "event_params": [
                {"key": "ga_session_id", "value": {"int_value": "1793527100"}},
                {"key": "variant", "value": {"string_value": "B", "int_value": None}},
            ],
            "user_id": None,
            "user_pseudo_id": "1234567.1793527100",
            "items": [
                {"item_id": "a", "item_list_index": "1"},
                {"item_id": "b", "item_list_index": "(not set)"},
            ],
        },
        {"items": [("a", 1), ("b", 0)], "join": "1234567.1793527100", "dimensions": ["B", ""]},
    ),
    (
        {  # an event of the Measurement Protocol
            "client_id": "c1",
            "timestamp_micros": "1793527200000000",
            "name": "select_item",
            "params": {"item_list_id": "related", "items": [{"item_id": "a", "index": 5}]},
        },
        {"lines": [("a", 5)], "user": "c1"},
    ),
    (
        {
            "event_timestamp": 1_793_527_200_000_000,
            "event_name": "purchase",
            "user_id": "u7",
            "ecommerce": {"transaction_id": "T_12345", "purchase_revenue": 72.05},
            "items": [
                {"item_id": "a", "price": 10.01, "quantity": 3},
                {"item_id": "b", "price": 2.5, "quantity": None},
                {"item_id": "c", "price": "(not set)", "quantity": 1},
            ],
        },
        {
            "lines": [("a", 30_030_000), ("b", 2_500_000), ("c", 0)],
            "user": "u7",
            "event_id": "T_12345",
        },
    ),
    (
        {
            "event_timestamp": 1_793_527_200_000_000,
            "event_name": "purchase",
            "user_id": "(not set)",
            "user_pseudo_id": "p",
            "ecommerce": {"transaction_id": "(not set)"},
            "items": [{"item_id": "a", "price": 10.01, "quantity": 3}],
        },
        {"lines": [("a", 30_030_000)], "user": "p", "event_id": None},
    ),
    (
        {
            "event_timestamp": 1_793_527_200_000_000,
            "event_name": "page_view",
            "user_pseudo_id": "p",
            "event_params": [{"key": "ga_session_id", "value": {"int_value": 5}}],
            "items": [],
        },
        {"session": "5", "action": 1, "user": "p"},
    ),
    ({"event_name": "view_search_results", "items": []}, "ignored"),
    ({"event_name": "scroll"}, "ignored"),
]

_ACTION = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
_PRODUCTS = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"
SNOWPLOW: list[Case] = [
    (
        {
            "app_id": "shop",
            "platform": "web",
            "collector_tstamp": "2026-11-01T10:00:03.000Z",
            "derived_tstamp": "2026-11-01 10:00:00.000",
            "event": "unstruct",
            "event_name": "snowplow_ecommerce_action",
            "event_id": "f4b8dd3c-85ef-4c42-9207-11ef61b2a46e",
            "user_id": None,
            "domain_userid": "8c9104e3",
            _ACTION: {"type": "list_view", "name": "recommended"},
            _PRODUCTS: [{"id": "a", "category": "c", "price": 5}, {"id": "b", "category": "c"}],
        },
        {"items": [("a", 1), ("b", 2)], "user": "8c9104e3"},
    ),
    (
        {
            "derived_tstamp": "2026-11-01T10:00:00.000Z",
            "event_id": "e",
            "user_id": "u",
            _ACTION: {"type": "transaction"},
            _PRODUCTS: [{"id": "a", "price": 5.5, "quantity": 2, "currency": "EUR"}],
        },
        {"lines": [("a", 11_000_000)], "user": "u", "event_id": "e"},
    ),
    (
        {
            "event": "page_view",
            "collector_tstamp": "2026-11-01T10:00:00Z",
            "domain_userid": "d",
            "domain_sessionid": "s",
        },
        {"session": "s", "action": 1, "user": "d"},
    ),
    ({"event": "page_ping"}, "ignored"),
    (
        {  # a row of BigQuery
            "derived_tstamp": "2026-11-01 10:00:00.000000 UTC",
            "event_name": "snowplow_ecommerce_action",
            "event_id": "e",
            "user_id": "u",
            f"{_ACTION}_0_0": {"type": "list_view", "name": "recommended"},
            f"{_PRODUCTS}_0_0": [{"id": "a", "position": 3}, {"id": "b", "position": 4}],
        },
        {"items": [("a", 3), ("b", 4)], "user": "u", "dimensions": ["", "recommended"]},
    ),
    (
        {
            "derived_tstamp": "2026-11-01 10:00:00.000000 UTC",
            "event_id": "e",
            "user_id": "u",
            f"{_ACTION}_0_0": {"type": "transaction"},
            f"{_PRODUCTS}_0_0": [{"id": "a", "price": 5.5, "quantity": 2}],
        },
        {"lines": [("a", 11_000_000)], "user": "u", "event_id": "e"},
    ),
]

CLOUDEVENTS: list[Case] = [
    (
        {  # structured
            "specversion": "1.0",
            "type": "com.example.click.v1",
            "source": "/web",
            "id": "A234-1234-1234",
            "time": "2026-11-01T10:00:00Z",
            "datacontenttype": "application/json",
            "data": {"user_id": "u", "item_id": "a", "variant": "A"},
        },
        {"lines": [("a", 0)], "user": "u", "event_id": "A234-1234-1234", "dimensions": ["A", ""]},
    ),
    (
        {  # binary: the rest is in headers
            "user_id": "u",
            "item_id": "a",
        },
        {"lines": [("a", 0)], "user": "u", "event_id": "01HZ"},
    ),
]
HEADERS = encoded_headers(
    [
        ("ce_specversion", b"1.0"),
        ("ce_type", b"com.example.click.v1"),
        ("ce_id", b"01HZ"),
        ("ce_time", b"2026-11-01T10:00:00Z"),
    ]
)

DEBEZIUM: list[Case] = [
    (
        {
            "before": None,
            "after": {"user_id": 1004, "item_id": 7, "ts": MS, "surface": "home", "position": 2},
            "source": {"version": "3.0.5.Final", "name": "shop", "ts_ms": MS, "table": "clicks"},
            "op": "c",
            "ts_ms": MS + 142,
        },
        {"lines": [("7", 2)], "user": "1004", "dimensions": ["", "home"]},
    ),
    (
        {
            "schema": {"type": "struct", "name": "shop.clicks.Envelope"},
            "payload": {
                "before": None,
                "after": {"user_id": "u", "item_id": "a", "ts": MS},
                "op": "c",
            },
        },
        {"lines": [("a", 0)], "user": "u"},
    ),
    ({"before": {"user_id": 1}, "after": None, "op": "d"}, "ignored"),
]

DOCUMENTED: dict[str, tuple[Object, list[Case]]] = {
    **documented.DOCUMENTED,
    "segment": ({}, SEGMENT),
    "ga4": ({}, GA4),
    "snowplow": ({}, SNOWPLOW),
    "cloudevents": ({"kind": {"click": ["com.example.click.v1"]}}, CLOUDEVENTS),
    "debezium": ({"kind": {"click": ["c"]}}, DEBEZIUM),
}
_IDS = ("user", "join", "request", "event_id", "session")


def has_events_of_its_records(preset: str) -> None:
    more, cases = DOCUMENTED.get(preset, ({}, []))
    cases = [*cases, *EXPOSURES.get(preset, [])]
    assert cases
    settings = parse({"sources": [{"topics": ["web"], "preset": preset, **more}]})
    decoder = record_decoder(settings)
    for record, expected in cases:
        is_binary = preset == "cloudevents" and "type" not in record
        found = decoder.decode_all(
            "web",
            json.dumps(record).encode(),
            headers=HEADERS if is_binary else None,
            timestamp_ms=MS,
        )
        if isinstance(expected, str):
            assert found == [expected], record
            continue
        events = expected if isinstance(expected, list) else [expected]
        assert len(found) == len(events), (record, found)
        for event, of_event in zip(found, events, strict=True):
            assert isinstance(event, dict), (record, event)
            _compare(event, of_event, decoder.hash)


def test_documented_records_are_events() -> None:
    hold_for_all(PRESETS, has_events_of_its_records, at_least=30)


def _compare(found: Object, expected: Object, hashed: Callable[[str], int]) -> None:
    assert found["event_ms"] == MS
    for name, value in expected.items():
        if name == "items":
            assert [(i[0], i[1]) for i in found["items"]] == [(hashed(i), p) for i, p in value]
        elif name == "lines":
            assert found["lines"] == [(0 if i is None else hashed(i), v) for i, v in value]
        elif name == "impressions":
            assert found[name] == list(map(hashed, value))
        elif name in _IDS:
            assert found[name] == (0 if value is None else hashed(value)), name
        else:
            assert found[name] == value, name


def test_one_topic_of_nested_events_gives_rates_by_variant() -> None:
    settings = parse({"sources": [{"topics": ["web"], "preset": "segment"}]})
    log: list[LogRecord] = []
    for i in range(200):
        variant, at = "AB"[i % 2], f"2026-11-01T10:{i // 60:02}:{i % 60:02}Z"
        shown = {
            "event": "Product List Viewed",
            "userId": i,
            "timestamp": at,
            "context": {"experiment": {"variant": variant}},
            "properties": {"products": [{"product_id": "a"}, {"product_id": "b"}]},
        }
        events = [shown]
        if i % 4 == 0 or i % 10 == 1:
            events.append({**shown, "event": "Product Clicked", "properties": {"product_id": "b"}})
        for event in events:
            log.append(LogRecord("web", 0, len(log), MS + 1000 * i, json.dumps(event).encode()))
    engines = Engines(settings, 1)
    for chunk in chunks_of(log, 7, seed=1):
        engines.feed(chunk)
    engines.finish()
    readings = read_engines(engines)

    def ctr(variant: str) -> float | None:
        labels = {"variant": variant, "surface": "all", "window": "1h"}
        return readings.get(("streamer_ctr_ratio", frozenset(labels.items())))

    assert ctr("A") == 50 / 200
    assert ctr("B") == 20 / 200
    assert readings["streamer_accepted_total", frozenset({("topic", "web")})] == len(log)
