"""Records as products and data sets document them, and what they count as under their presets: what
is expected of the event; of several, of each; or why there is none."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]
Case = tuple[Any, Object | list[Object] | str]
AT = "2026-11-01T10:00:00.000Z"
SECONDS = 1_793_527_200
MS = 1000 * SECONDS
"""2026-11-01 10:00:00 UTC."""

RUDDERSTACK: list[Case] = [
    (
        {
            "channel": "web",
            "type": "track",
            "event": "Product List Viewed",
            "anonymousId": "a1b2",
            "userId": "",
            "messageId": "m-1",
            "originalTimestamp": AT,
            "context": {"sessionId": 1681215221, "library": {"name": "RudderLabs JavaScript SDK"}},
            "properties": {"products": [{"product_id": "a"}, {"product_id": "b"}]},
        },
        {"items": [("a", 1), ("b", 2)], "user": "a1b2", "event_id": "m-1"},
    ),
    (
        {
            "type": "page",
            "event": "",
            "anonymousId": "a1b2",
            "originalTimestamp": AT,
            "context": {"sessionId": 1681215221},
        },
        {"session": "1681215221", "action": 1, "user": "a1b2"},
    ),
    ({"type": "identify", "event": "", "anonymousId": "a1b2"}, "ignored"),
]

_AMPLITUDE = {
    "amplitude_id": 90_000_017,
    "device_id": "d17",
    "event_id": 4,
    "event_time": "2026-11-01 10:00:00.000000",
    "client_event_time": "2026-11-01 09:59:58.000000",
    "server_received_time": "2026-11-01 10:00:02.000000",
    "session_id": 1_793_527_000_000,
    "user_properties": {},
    "uuid": "u-u-i-d",
}
AMPLITUDE: list[Case] = [
    (
        {
            **_AMPLITUDE,
            "event_type": "Product List Viewed",
            "user_id": None,
            "event_properties": {"products": [{"product_id": "a", "position": 3}]},
        },
        {"items": [("a", 3)], "user": "d17", "join": "90000017", "event_id": "u-u-i-d"},
    ),
    (
        {
            **_AMPLITUDE,
            "event_type": "Order Completed",
            "user_id": "u",
            "event_properties": {"product_id": "a", "revenue": 12.5, "total": 17},
        },
        {"lines": [("a", 12_500_000)], "user": "u"},
    ),
    (
        {**_AMPLITUDE, "event_type": "[Amplitude] Page Viewed", "event_properties": {}},
        {"session": "1793527000000", "action": 1, "user": "d17"},
    ),
    ({**_AMPLITUDE, "event_type": "$identify"}, "ignored"),
    ({**_AMPLITUDE, "event_type": "Coffee Brewed"}, "kind"),
]

MIXPANEL: list[Case] = [
    (
        {
            "event": "Product List Viewed",
            "properties": {
                "time": SECONDS,
                "distinct_id": "$device:18d0",
                "$device_id": "18d0",
                "$insert_id": "29fc2962",
                "mp_processing_time_ms": MS + 1000,
                "Experiment name": "ranker",
                "Variant name": "B",
                "items": [{"item_id": "a", "position": 1}],
            },
        },
        {
            "items": [("a", 1)],
            "user": "$device:18d0",
            "event_id": "29fc2962",
            "dimensions": ["B", ""],
        },
    ),
    (
        {"event": "$mp_web_page_view", "properties": {"time": SECONDS, "distinct_id": "u"}},
        {"action": 1, "user": "u"},
    ),
    ({"event": "$experiment_started", "properties": {"time": SECONDS}}, "ignored"),
]

_POSTHOG = {"$session_id": "s1", "products": [{"product_id": "a"}, {"product_id": "b"}]}
_POSTHOG_EVENT = {
    "uuid": "01890a",
    "event": "Product List Viewed",
    "distinct_id": "u",
    "timestamp": AT,
    "properties": _POSTHOG,
}
POSTHOG: list[Case] = [
    (
        {"event": _POSTHOG_EVENT, "person": {"id": "p-1", "name": "Max"}},
        {"items": [("a", 1), ("b", 2)], "user": "u", "join": "p-1", "event_id": "01890a"},
    ),
    (_POSTHOG_EVENT, {"items": [("a", 1), ("b", 2)], "user": "u", "event_id": "01890a"}),
    (
        {
            **_POSTHOG_EVENT,
            "person_id": "p-1",
            "timestamp": "2026-11-01T10:00:00.000000Z",
            "created_at": "2026-11-01T10:00:04.000000Z",
            "properties": json.dumps(_POSTHOG),
        },
        {"items": [("a", 1), ("b", 2)], "user": "u", "join": "p-1"},
    ),
    (
        {"event": {**_POSTHOG_EVENT, "event": "$pageview"}, "person": {"id": "p-1"}},
        {"session": "s1", "action": 1, "user": "u"},
    ),
    ({"event": "$feature_flag_called", "distinct_id": "u"}, "ignored"),
]

HEAP: list[Case] = [
    (
        {
            "app_id": "11",
            "identity": "alice@example.com",
            "event": "Product List Viewed",
            "timestamp": AT,
            "idempotency_key": "k",
            "properties": {"product_id": "a", "position": 2},
        },
        {"items": [("a", 2)], "user": "alice@example.com", "event_id": "k"},
    ),
    (
        {
            "user_id": "70",
            "event": "Order Completed",
            "timestamp": AT,
            "properties": {"product_id": "a", "price": 2, "quantity": 3, "revenue": 6},
        },
        {"lines": [("a", 6_000_000)], "user": "70"},
    ),
]

_CARD = {
    "content_card_id": "card-1",
    "dispatch_id": "d",
    "message_variation_id": "mv-1",
    "message_variation_name": "B",
}
BRAZE: list[Case] = [
    (
        {
            "event_type": "users.messages.contentcard.Impression",
            "id": "e1",
            "time": SECONDS,
            "user": {"user_id": "5f", "external_user_id": "u", "device_id": "d"},
            "properties": _CARD,
        },
        {
            "items": [("card-1", 0)],
            "user": "u",
            "join": "5f",
            "event_id": "e1",
            "dimensions": ["B", ""],
        },
    ),
    (
        {
            "event_type": "users.behaviors.Purchase",
            "id": "e2",
            "time": SECONDS,
            "user_id": "5f",
            "external_user_id": None,
            "product_id": "card-1",
            "price": 17.5,
            "currency": "EUR",
        },
        {"lines": [("card-1", 17_500_000)], "user": "5f", "join": "5f"},
    ),
    (
        {
            "event_type": "users.behaviors.app.SessionStart",
            "time": SECONDS,
            "user": {"user_id": "5f"},
            "properties": {"session_id": "s"},
        },
        {"session": "s", "action": 0, "user": "5f"},
    ),
    ({"event_type": "users.messages.contentcard.Dismiss", "time": SECONDS}, "ignored"),
]

_XDM = {
    "_id": "x1",
    "timestamp": AT,
    "identityMap": {"ECID": [{"id": "38", "primary": True}]},
}
_PROPOSITIONS = [
    {
        "id": "p1",
        "scope": "web://shop.example/home#recs",
        "scopeDetails": {"decisionProvider": "EXD", "experience": {"id": "B"}},
        "items": [{"id": "offer:1"}, {"id": "offer:2"}],
    },
    {"id": "p2", "scope": "hero", "items": [{"id": "offer:3"}]},
]
XDM: list[Case] = [
    (
        {
            **_XDM,
            "eventType": "decisioning.propositionDisplay",
            "_experience": {"decisioning": {"propositions": _PROPOSITIONS}},
        },
        {
            "items": [("offer:1", 1), ("offer:2", 2), ("offer:3", 3)],
            "user": "38",
            "event_id": "x1",
            "dimensions": ["B", ""],
        },
    ),
    (
        {
            "@id": "x2",
            "xdm:timestamp": AT,
            "xdm:eventType": "decisioning.propositionInteract",
            "endUserIDs": {"_experience": {"mcid": {"id": "38"}}},
            "https://ns.adobe.com/experience/decisioning/propositions": [
                {"xdm:items": [{"xdm:id": "offer:2"}]}
            ],
        },
        {"lines": [("offer:2", 0)], "user": "38", "event_id": "x2"},
    ),
    (
        {
            **_XDM,
            "eventType": "commerce.purchases",
            "commerce": {"purchases": {"value": 1}, "order": {"priceTotal": 30}},
            "productListItems": [{"SKU": "offer:1", "quantity": 2, "priceTotal": 25}],
        },
        {"lines": [("offer:1", 25_000_000)], "user": "38"},
    ),
    ({**_XDM, "eventType": "web.webpagedetails.pageViews"}, {"action": 1, "user": "38"}),
    ({**_XDM, "eventType": "decisioning.propositionFetch"}, "ignored"),
]

_LOG_RECORD = {
    "Timestamp": str(MS * 1_000_000),
    "ObservedTimestamp": str((MS + 90) * 1_000_000),
    "SeverityNumber": 9,
}
OTEL: list[Case] = [
    (
        {
            **_LOG_RECORD,
            "EventName": "app.shown",
            "Attributes": {
                "user.id": "u",
                "item.ids": ["a", "b"],
                "feature_flag.result.variant": "B",
            },
        },
        {"items": [("a", 1), ("b", 2)], "user": "u", "dimensions": ["B", ""]},
    ),
    ({**_LOG_RECORD, "Body": "GET 200", "Attributes": {"user.id": "u"}}, "ignored"),
    (
        {
            **_LOG_RECORD,
            "Attributes": {"event.name": "session.start", "session.id": "s", "user.id": "u"},
        },
        {"session": "s", "action": 0, "user": "u"},
    ),
]


def _attributes(**texts: str) -> list[Object]:
    return [
        {"key": key.replace("_", "."), "value": {"stringValue": text}}
        for key, text in texts.items()
    ]


_EXPORTED = [
    {
        "timeUnixNano": str(MS * 1_000_000),
        "eventName": "app.shown",
        "attributes": [
            *_attributes(user_id="u"),
            {
                "key": "item.ids",
                "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}},
            },
        ],
    },
    {"timeUnixNano": str(MS * 1_000_000), "body": {"stringValue": "GET 200"}},
    {
        "timeUnixNano": str(MS * 1_000_000),
        "attributes": _attributes(event_name="session.end", session_id="s"),
    },
]
OTLP: list[Case] = [
    (
        {"resourceLogs": [{"scopeLogs": [{"logRecords": _EXPORTED[:1]}]}]},
        {"items": [("a", 1), ("b", 2)], "user": "u"},
    ),
    (
        {
            "resourceLogs": [
                {"scopeLogs": [{"logRecords": _EXPORTED[:1]}, {"logRecords": _EXPORTED[2:]}]}
            ]
        },
        [
            {"items": [("a", 1), ("b", 2)], "user": "u"},
            {"session": "s", "action": 3, "user": "s"},
        ],
    ),
    ({"resourceLogs": [{"scopeLogs": [{"logRecords": _EXPORTED[1:2]}]}]}, "ignored"),
]

_MATOMO = {"_id": "5b1f", "cdt": "2026-11-01 10:00:00", "pv_id": "aBcDeF", "rec": "1"}
MATOMO: list[Case] = [
    (
        {**_MATOMO, "c_n": "recs", "c_p": "a", "c_t": "https://shop.example/a"},
        {"items": [("a", 0)], "user": "5b1f", "request": "aBcDeF"},
    ),
    (
        {**_MATOMO, "uid": "u", "c_n": "recs", "c_p": "a", "c_i": "click"},
        {"lines": [("a", 0)], "user": "u", "join": "5b1f", "request": "aBcDeF"},
    ),
    (
        {
            **_MATOMO,
            "idgoal": "0",
            "ec_id": "o1",
            "revenue": "25.90",
            "ec_items": '[["a", "Shirt", "", 10.5, 2], ["b", "Cap", "", 1, 1]]',
        },
        {"lines": [("a", 21_000_000), ("b", 1_000_000)], "event_id": "o1"},
    ),
    ({**_MATOMO, "action_name": "Home"}, {"action": 1, "user": "5b1f"}),
    ({**_MATOMO, "e_c": "account", "e_a": "login"}, "ignored"),
    ({**_MATOMO, "idgoal": "3", "revenue": "1"}, "ignored"),
    ({**_MATOMO, "idgoal": "0", "ec_items": "[]"}, "ignored"),
]

_ECOMMERCE = "iglu:com.snowplowanalytics.snowplow.ecommerce"


def _enriched(action: str, *products: Object) -> Object:
    """A row of the enriched events, as it is made of its cells."""
    entities = [
        {"schema": f"{_ECOMMERCE}/product/jsonschema/1-0-0", "data": one} for one in products
    ]
    entities.append({"schema": "iglu:com.acme/web_page/jsonschema/1-0-0", "data": {"id": "w"}})
    schema = f"{_ECOMMERCE}/snowplow_ecommerce_action/jsonschema/1-0-2"
    done = {"data": {"schema": schema, "data": {"type": action, "name": "recs"}}}
    return {
        "event": "unstruct",
        "event_name": "snowplow_ecommerce_action",
        "event_id": "e",
        "domain_userid": "d",
        "derived_tstamp": "2026-11-01 10:00:00.000",
        "contexts": json.dumps({"data": entities}),
        "unstruct_event": json.dumps(done),
    }


SNOWPLOW_TSV: list[Case] = [
    (
        _enriched("list_view", {"id": "a"}, {"id": "b"}),
        {"items": [("a", 1), ("b", 2)], "user": "d", "event_id": "e", "dimensions": ["", "recs"]},
    ),
    (
        _enriched("transaction", {"id": "a", "price": 5.5, "quantity": 2}),
        {"lines": [("a", 11_000_000)], "user": "d"},
    ),
    (_enriched("add_to_cart", {"id": "a"}), "ignored"),
    (
        {
            "event": "page_view",
            "event_name": "page_view",
            "domain_userid": "d",
            "domain_sessionid": "s",
            "collector_tstamp": "2026-11-01 10:00:00.000",
            "contexts": json.dumps({"data": []}),
        },
        {"session": "s", "action": 1, "user": "d"},
    ),
]

MIND: list[Case] = [
    (
        {
            "impression_id": "91",
            "user_id": "U397059",
            "time": "11/1/2026 10:00:00 AM",
            "history": "N106403 N71977",
            "impressions": "N129416-0 N26703-1 N120089-1",
        },
        [
            {
                "items": [("N129416", 1), ("N26703", 2), ("N120089", 3)],
                "user": "U397059",
                "request": "91",
            },
            {"lines": [("N26703", 0), ("N120089", 0)], "user": "U397059", "request": "91"},
        ],
    ),
    (
        {
            "impression_id": "92",
            "user_id": "U1",
            "time": "11/1/2026 10:00:00 AM",
            "impressions": "N1-0 N2-0",
        },
        {"items": [("N1", 1), ("N2", 2)], "user": "U1", "request": "92"},
    ),
]
EB_NERD: list[Case] = [
    (
        {
            "impression_id": 149_474,
            "impression_time": "2026-11-01T10:00:00.000000",
            "article_ids_inview": [9_778_623, 9_778_682],
            "article_ids_clicked": clicked,
            "user_id": 139_836,
            "session_id": 759,
        },
        [{"items": [("9778623", 1), ("9778682", 2)], "user": "139836", "request": "149474"}, *more],
    )
    for clicked, more in (([9_778_682], [{"lines": [("9778682", 0)], "user": "139836"}]), ([], []))
]
RETAILROCKET: list[Case] = [
    (
        {"timestamp": str(MS), "visitorid": "257597", "event": "view", "itemid": "355908"},
        {"items": [("355908", 0)], "user": "257597"},
    ),
    (
        {
            "timestamp": str(MS),
            "visitorid": "257597",
            "event": "transaction",
            "itemid": "355908",
            "transactionid": "4000",
        },
        {"lines": [("355908", 0)], "user": "257597"},
    ),
    ({"timestamp": str(MS), "visitorid": "1", "event": "addtocart", "itemid": "2"}, "ignored"),
]
YOOCHOOSE_CLICKS: list[Case] = [
    (
        {"session_id": "1", "timestamp": AT, "item_id": "214536502", "category": "0"},
        {"lines": [("214536502", 0)], "user": "1"},
    ),
]
YOOCHOOSE_BUYS: list[Case] = [
    (
        {
            "session_id": "1",
            "timestamp": AT,
            "item_id": "214536502",
            "price": 12462,
            "quantity": 2,
        },
        {"lines": [("214536502", 24_924_000_000)], "user": "1"},
    ),
]
_STEP = {"user_id": "00RL8Z82B2Z1", "session_id": "aff3928535f48", "timestamp": str(SECONDS)}
TRIVAGO: list[Case] = [
    (
        {
            **_STEP,
            "action_type": "clickout item",
            "reference": "109038",
            "impressions": "3400638|109038",
            "prices": "95|66",
        },
        [
            {"items": [("3400638", 1), ("109038", 2)], "user": "00RL8Z82B2Z1"},
            {"lines": [("109038", 0)], "user": "00RL8Z82B2Z1"},
        ],
    ),
    ({**_STEP, "action_type": "search for poi", "reference": "Newtown"}, "ignored"),
]
CRITEO: list[Case] = [
    (
        {
            "timestamp": str(SECONDS - 946_684_800),
            "uid": "20073966",
            "campaign": "22589171",
            "conversion": "1",
            "conversion_timestamp": "1449193",
            "conversion_id": conversion,
            "click": "1",
            "cost": "0.00001",
            "cpo": "0.01",
        },
        [
            {"items": [("22589171", 0)], "user": "20073966"},
            {"lines": [("22589171", 0)], "user": "20073966"},
            {"lines": [("22589171", 0)], "event_id": event_id},
        ],
    )
    for conversion, event_id in (("3063962", "3063962"), ("-1", None))
]
OUTBRAIN: list[Case] = [
    (
        {
            "display_id": "1",
            "uuid": "cb8c55702adb93",
            "timestamp": str(MS - 1_465_876_799_998),
            "ad_id": "42337",
            "clicked": "0",
        },
        {"items": [("42337", 0)], "user": "cb8c55702adb93", "request": "1"},
    ),
]
OPEN_BANDIT: list[Case] = [
    (
        {
            "timestamp": "2026-11-01 10:00:00.000000+00:00",
            "item_id": "14",
            "position": 3,
            "click": "1",
            "propensity_score": 0.0625,
        },
        [{"items": [("14", 3)], "user": None}, {"lines": [("14", 3)]}],
    ),
]

GOOGLE_RETAIL: list[Case] = [
    (
        {
            "eventType": "search",
            "visitorId": "v1",
            "eventTime": "2026-11-01T10:00:00Z",
            "searchQuery": "shoes",
            "attributionToken": "t1",
            "productDetails": [{"product": {"id": "a"}}, {"product": {"id": "b"}}],
        },
        {"items": [("a", 1), ("b", 2)], "user": "v1", "request": "t1"},
    ),
    (
        {
            "eventType": "detail-page-view",
            "visitorId": "v1",
            "eventTime": "2026-11-01T10:00:00Z",
            "attributionToken": "t1",
            "productDetails": [{"product": {"id": "b"}}],
        },
        {"lines": [("b", 0)], "user": "v1", "request": "t1"},
    ),
    ({"eventType": "home-page-view", "visitorId": "v1"}, "ignored"),
]
UBI: list[Case] = [
    (
        {
            "application": "shop",
            "query_id": "q1",
            "client_id": "c1",
            "user_query": "shoes",
            "timestamp": "2026-11-01T10:00:00Z",
            "query_response_id": "r1",
            "query_response_hit_ids": ["a", "b"],
        },
        {"items": [("a", 1), ("b", 2)], "user": "c1", "request": "q1"},
    ),
    (
        {
            "application": "shop",
            "action_name": "click",
            "query_id": "q1",
            "client_id": "c1",
            "timestamp": "2026-11-01T10:00:00Z",
            "event_attributes": {
                "object": {"object_id": "b", "object_id_field": "id"},
                "position": {"ordinal": 2},
            },
        },
        {"lines": [("b", 2)], "user": "c1", "request": "q1"},
    ),
]

_NOTICE = {"auction_id": "r1", "auction_bid_id": "b1", "auction_imp_id": "1", "ts": MS}
OPENRTB: list[Case] = [
    (
        {**_NOTICE, "notice": "burl", "auction_ad_id": "ad7", "auction_price": 0.71},
        {"items": [("ad7", 0)], "impressions": ["b1"], "request": "r1", "user": None},
    ),
    (
        {"notice": "click", "auction_id": "r1", "auction_bid_id": "b1", "ts": MS},
        {"lines": [(None, 0)], "impressions": ["b1"]},
    ),
    ({**_NOTICE, "notice": "nurl"}, "ignored"),
]
GORSE: list[Case] = [
    (
        {
            "FeedbackType": "read",
            "UserId": "bob",
            "ItemId": "vuejs:vue",
            "Timestamp": "2026-11-01T10:00:00Z",
        },
        {"items": [("vuejs:vue", 0)], "user": "bob"},
    ),
    (
        {
            "feedback_type": "star",
            "user_id": "bob",
            "item_id": "vuejs:vue",
            "time_stamp": "2026-11-01 10:00:00 +0000 UTC",
        },
        {"lines": [("vuejs:vue", 0)], "user": "bob"},
    ),
]
_RATED = {"lines": [("1193", 0)], "user": "1", "ratings": [5_000_000]}
MOVIELENS: list[Case] = [
    ({"userId": "1", "movieId": "1193", "rating": 5, "timestamp": str(SECONDS)}, _RATED)
]
RECBOLE: list[Case] = [
    ({"user_id": "1", "item_id": "1193", "rating": 5.0, "timestamp": str(SECONDS)}, _RATED)
]

_SHOWN = {"kind": {"impression": ["app.shown"]}}
_VALUES = "resourceLogs[].scopeLogs[].logRecords[].attributes[key=item.ids].value.arrayValue.values"
DOCUMENTED: dict[str, tuple[Object, list[Case]]] = {
    "rudderstack": ({}, RUDDERSTACK),
    "google-retail": ({}, GOOGLE_RETAIL),
    "ubi": ({}, UBI),
    "openrtb": ({}, OPENRTB),
    "gorse": ({}, GORSE),
    "movielens": ({}, MOVIELENS),
    "recbole": ({}, RECBOLE),
    "amplitude": ({}, AMPLITUDE),
    "mixpanel": ({}, MIXPANEL),
    "posthog": ({}, POSTHOG),
    "heap": ({}, HEAP),
    "braze": ({}, BRAZE),
    "xdm": ({}, XDM),
    "otel": ({**_SHOWN, "fields": {"item_id": 'Attributes["item.ids"][]'}}, OTEL),
    "otlp": ({**_SHOWN, "fields": {"item_id": f"{_VALUES}[].stringValue"}}, OTLP),
    "matomo": ({}, MATOMO),
    "snowplow-tsv": ({}, SNOWPLOW_TSV),
    "mind": ({}, MIND),
    "eb-nerd": ({}, EB_NERD),
    "retailrocket": ({}, RETAILROCKET),
    "yoochoose-clicks": ({}, YOOCHOOSE_CLICKS),
    "yoochoose-buys": ({}, YOOCHOOSE_BUYS),
    "trivago": ({}, TRIVAGO),
    "criteo-attribution": ({}, CRITEO),
    "outbrain": ({}, OUTBRAIN),
    "open-bandit": ({}, OPEN_BANDIT),
}
"""Preset → the keys of a source besides, and cases."""
