"""Events as products for analytics write them, fields and names as documented."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa

from tests.foreign.world import (
    AGENT,
    Happening,
    Object,
    Shape,
    browser_of,
    cents_of,
    happenings,
    hex_of,
    iso,
    lists,
    name_of,
    ndjson,
    parquet,
    plain_time,
    singles,
    truth,
    user_of,
)

SESSION_MS = 1_793_527_000_000
"""Sessions began about then."""


def segment() -> Shape:
    """Track calls of the e-commerce spec, version 2, with page and identify calls between them."""
    return Shape(
        {"segment.ndjson": lists(_segment)},
        truth(anonymous=True),
        note="products[].variant is a colour; total has the shipping in it, revenue has not",
    )


def rudderstack() -> Shape:
    """The same spec: other contexts, a session id that is a number, and `originalTimestamp`."""

    def call(one: Happening) -> Object:
        made = _segment(one)
        context: Object = made["context"]
        context["library"] = {"name": "RudderLabs JavaScript SDK", "version": "3.11.2"}
        context["sessionId"] = (SESSION_MS + one.page.user * 1000) // 1000
        context["screen"] = {"width": 1920, "height": 1080, "density": 1}
        made |= {
            "channel": "web",
            "rudderId": name_of("rudder", one.page.user),
            "originalTimestamp": iso(one.at_ms),
            "request_ip": f"192.0.2.{one.page.user}",
        }
        return made

    return Shape({"rudderstack.ndjson": lists(call)}, truth(anonymous=True))


def _segment(one: Happening) -> Object:
    page = one.page
    call: Object = {
        "anonymousId": browser_of(page),
        "userId": user_of(page),
        "messageId": f"ajs-next-{hex_of(32, 'segment', one.id)}",
        "timestamp": iso(one.at_ms),
        "sentAt": iso(one.at_ms + 120),
        "receivedAt": iso(one.at_ms + 480),
        "context": {
            "library": {"name": "analytics.js", "version": "next-1.70.0"},
            "page": {"path": f"/{page.surface}", "title": page.surface.title(), "search": ""},
            "userAgent": AGENT,
            "ip": f"192.0.2.{page.user}",
            "locale": ("de-DE", "en-GB")[page.user % 3 == 0],
            "experiment": {"name": "ranker", "variant": page.arm},
        },
        "integrations": {},
    }
    products = [
        {
            "product_id": str(item),
            "sku": f"G-{item}",
            "name": f"Shirt {item}",
            "variant": ("blue", "red")[item % 2],
            "price": cents_of(item) / 100,
            "position": position,
        }
        for position, item in page.slate
    ]
    match one.kind:
        case "visit":
            path = {"path": f"/{page.surface}", "url": f"https://shop.example/{page.surface}"}
            return call | {"type": "page", "name": page.surface, "properties": path}
        case "login":
            return call | {"type": "identify", "traits": {"plan": "free", "logins": 3}}
        case "shown":
            event = "Product List Viewed"
            made: Object = {"list_id": hex_of(12, "list", page.number), "products": products}
        case "click":
            event = "Product Clicked"
            made = {"list_id": hex_of(12, "list", page.number), **products[one.position - 1]}
        case _:
            event = "Order Completed"
            line = products[one.position - 1] | {"quantity": page.quantity}
            made = {
                "order_id": f"o-{page.number}",
                "currency": "EUR",
                "shipping": 3.9,
                "revenue": page.value,
                "total": round(page.value + 3.9, 2),
                "products": [line],
            }
    return call | {"type": "track", "event": event, "properties": made}


def ga4() -> Shape:
    """Rows of the BigQuery export as JSON: parameters are a list of keys and values."""
    return Shape({"ga4.ndjson": lists(_ga4)}, truth(anonymous=True))


def ga4_not_set() -> Shape:
    """The same, of a tag that sends a transaction id with two purchases only."""
    bought = [one.page.number for one in happenings() if one.kind == "order"]

    def row(one: Happening) -> Object:
        made = _ga4(one)
        if one.kind == "order" and one.page.number not in bought[:2]:
            made["ecommerce"]["transaction_id"] = "(not set)"
        return made

    return Shape(
        {"ga4-not-set.ndjson": lists(row)},
        truth(anonymous=True),
        note="ecommerce.transaction_id is the text (not set) for all orders but two: no event id",
    )


def _ga4_param(key: str, **value: Any) -> Object:
    empty = dict.fromkeys(("string_value", "int_value", "float_value", "double_value"))
    return {"key": key, "value": empty | value}


def _ga4_items(one: Happening) -> list[Object]:
    page = one.page
    items: list[Object] = [
        {
            "item_id": f"SKU_{item}",
            "item_name": f"Shirt {item}",
            "item_brand": "(not set)",
            "item_variant": ("blue", "red")[item % 2],
            "price": cents_of(item) / 100,
            "quantity": None,
            "item_list_id": f"recs_{page.surface}",
            "item_list_index": str(position),
        }
        for position, item in page.slate
    ]
    match one.kind:
        case "shown":
            return items
        case "click":
            return [items[one.position - 1]]
        case "order":
            bought = {"quantity": page.quantity, "item_revenue": page.value}
            return [items[one.position - 1] | bought]
        case _:
            return []


_GA4_NAMES = {
    "visit": "page_view",
    "login": "login",
    "shown": "view_item_list",
    "click": "select_item",
    "order": "purchase",
}


def _ga4(one: Happening) -> Object:
    page, listed = one.page, _ga4_items(one)
    ecommerce: Object = {"unique_items": len(listed), "transaction_id": "(not set)"}
    params = [
        _ga4_param("ga_session_id", int_value=str((SESSION_MS + page.user * 1000) // 1000)),
        _ga4_param("ga_session_number", int_value=str(1 + page.user % 4)),
        _ga4_param("page_location", string_value=f"https://shop.example/{page.surface}"),
        _ga4_param("experiment_arm", string_value=page.arm),
    ]
    if one.kind == "order":
        ecommerce = {
            "total_item_quantity": page.quantity,
            "purchase_revenue": page.value,
            "unique_items": 1,
            "transaction_id": f"T{page.number}",
        }
        params.append(_ga4_param("currency", string_value="EUR"))
        params.append(_ga4_param("value", double_value=page.value))
    return {
        "event_date": "20261101",
        "event_timestamp": str(one.at_ms * 1000),
        "event_name": _GA4_NAMES[one.kind],
        "event_params": params,
        "event_previous_timestamp": None,
        "event_bundle_sequence_id": str(page.number),
        "user_id": user_of(page),
        "user_pseudo_id": f"{1_000_000 + page.user}.1700000000",
        "user_properties": [],
        "user_first_touch_timestamp": "1700000000000000",
        "device": {"category": ("mobile", "desktop")[page.user % 4 == 0], "language": "de-de"},
        "geo": {"country": ("Germany", "France", "United States")[page.user % 3]},
        "traffic_source": {"name": "(direct)", "medium": "(none)", "source": "(direct)"},
        "stream_id": "4711",
        "platform": "WEB",
        "ecommerce": ecommerce,
        "items": listed,
    }


def amplitude() -> Shape:
    """Lines of the Export API."""
    return Shape({"amplitude.json": ndjson(_amplitude(per_device=False))}, truth(anonymous=True))


def amplitude_device_event_id() -> Shape:
    """The same, where `event_id` counts the events of each device, and `$insert_id` is empty."""
    return Shape(
        {"amplitude-device.json": ndjson(_amplitude(per_device=True))},
        truth(anonymous=True),
        note="event_id is a counter per device: the id of an event is uuid",
    )


_AMPLITUDE_NAMES = {
    "visit": "[Amplitude] Page Viewed",
    "login": "$identify",
    "shown": "Product List Viewed",
    "click": "Product Clicked",
    "order": "Order Completed",
}


def _amplitude_properties(one: Happening) -> Object:
    page = one.page
    products = [
        {"product_id": str(item), "position": at, "price": cents_of(item) / 100}
        for at, item in page.slate
    ]
    match one.kind:
        case "visit":
            return {"[Amplitude] Page Path": f"/{page.surface}"}
        case "login":
            return {}
        case "shown":
            return {"list": page.surface, "request_id": page.number, "products": products}
        case "click":
            return {"list": page.surface, "request_id": page.number, **products[one.position - 1]}
        case _:
            line = products[one.position - 1] | {"quantity": page.quantity}
            return {"order_id": f"o{page.number}", "revenue": page.value, "products": [line]}


def _amplitude(*, per_device: bool) -> list[Object]:
    counters: Counter[int] = Counter()
    made = []
    for number, one in enumerate(happenings()):
        page = one.page
        counters[page.user] += 1
        made.append(
            {
                "$insert_id": None if per_device else name_of("insert", one.id),
                "$insert_key": None,
                "$schema": 12,
                "amplitude_id": 90_000_000 + page.user,
                "app": 4711,
                "city": None,
                "client_event_time": plain_time(one.at_ms - 35, 6),
                "client_upload_time": plain_time(one.at_ms + 900, 6),
                "country": ("Germany", "France", "United States")[page.user % 3],
                "data": {"path": "/2/httpapi", "group_first_event": {}},
                "device_id": browser_of(page),
                "device_type": None,
                "event_id": counters[page.user] if per_device else 500_000 + number,
                "event_properties": _amplitude_properties(one),
                "event_time": plain_time(one.at_ms, 6),
                "event_type": _AMPLITUDE_NAMES[one.kind],
                "groups": {},
                "ip_address": f"192.0.2.{page.user}",
                "language": "German",
                "library": "amplitude-ts/2.11.0",
                "os_name": "Firefox",
                "platform": "Web",
                "processed_time": plain_time(one.at_ms + 3_000, 6),
                "server_received_time": plain_time(one.at_ms + 1_000, 6),
                "server_upload_time": plain_time(one.at_ms + 1_010, 6),
                "session_id": SESSION_MS + page.user * 1000,
                "user_creation_time": "2026-05-02 07:11:12.000000",
                "user_id": user_of(page),
                "user_properties": {"[Experiment] ranker": page.arm, "plan": "free"},
                "uuid": name_of("amplitude", one.id),
                "version_name": None,
            }
        )
    return made


def mixpanel() -> Shape:
    """The raw export: all but the name is in `properties`, and the time is in seconds."""
    names = {
        "visit": "$mp_web_page_view",
        "login": "$identify",
        "shown": "Recommendations Shown",
        "click": "Recommendation Clicked",
        "order": "Purchase",
    }

    def event(one: Happening) -> Object:
        page = one.page
        items = [{"item_id": item, "position": at} for at, item in page.slate]
        about: Object = {
            "time": one.at_ms // 1000,
            "distinct_id": user_of(page) or f"$device:{browser_of(page)}",
            "$browser": "Firefox",
            "$city": "Berlin",
            "$current_url": f"https://shop.example/{page.surface}",
            "$device_id": browser_of(page),
            "$insert_id": hex_of(16, "mixpanel", one.id),
            "$lib_version": "2.55.1",
            "$mp_api_endpoint": "api-js.mixpanel.com",
            "$os": "Linux",
            "$user_id": user_of(page),
            "mp_country_code": page.country,
            "mp_lib": "web",
            "mp_processing_time_ms": one.at_ms + 1_800,
            "Experiment name": "ranker",
            "Variant name": page.arm,
        }
        match one.kind:
            case "shown":
                about |= {"surface": page.surface, "request_id": f"r{page.number}", "items": items}
            case "click":
                about |= {"surface": page.surface, "request_id": f"r{page.number}"}
                about |= items[one.position - 1]
            case "order":
                about |= {"item_id": one.item, "quantity": page.quantity, "revenue": page.value}
        return {"event": names[one.kind], "properties": about}

    return Shape(
        {"mixpanel.ndjson": lists(event)},
        truth(anonymous=True),
        note="seconds: clicks of the same second as their list stand behind it",
    )


_POSTHOG_NAMES = {
    "visit": "$pageview",
    "login": "$identify",
    "shown": "recs shown",
    "click": "rec clicked",
    "order": "order completed",
}


def _posthog(one: Happening) -> Object:
    """Properties of an event."""
    page = one.page
    products = [{"product_id": f"{item}", "position": at} for at, item in page.slate]
    about: Object = {
        "$lib": "web",
        "$lib_version": "1.161.3",
        "$browser": "Firefox",
        "$current_url": f"https://shop.example/{page.surface}",
        "$device_id": browser_of(page),
        "$session_id": name_of("session", page.user),
        "$window_id": name_of("window", page.user),
        "$ip": f"192.0.2.{page.user}",
        "$geoip_country_code": page.country,
        "$active_feature_flags": ["ranker"],
        "$feature/ranker": page.arm,
        "$feature/checkout": ("old", "new")[page.user % 7 > 3],
        "token": "phc_abc",
        "distinct_id": user_of(page) or browser_of(page),
        "$time": one.at_ms / 1000,
    }
    match one.kind:
        case "shown":
            about |= {"request_id": f"r{page.number}", "products": products}
        case "click":
            about |= {"request_id": f"r{page.number}", **products[one.position - 1]}
        case "order":
            about |= {"product_id": f"{one.item}", "quantity": page.quantity}
            about |= {"revenue": page.value, "currency": "EUR"}
    return about


def posthog_webhook() -> Shape:
    """The body that the webhook destination sends unless it is told otherwise."""

    def body(one: Happening) -> Object:
        page = one.page
        person = name_of("person", page.user)
        return {
            "event": {
                "uuid": one.id,
                "event": _POSTHOG_NAMES[one.kind],
                "distinct_id": user_of(page) or browser_of(page),
                "elements_chain": "",
                "timestamp": iso(one.at_ms),
                "url": f"https://eu.posthog.com/project/1/events/{one.id}/",
                "properties": _posthog(one),
            },
            "person": {
                "id": person,
                "name": f"Person {page.user}",
                "url": f"https://eu.posthog.com/project/1/person/{person}",
                "properties": {"plan": "free", "$initial_browser": "Firefox"},
            },
        }

    return Shape(
        {"posthog.ndjson": lists(body)},
        truth(anonymous=True),
        note='the arm is event.properties."$feature/ranker"; $feature/checkout is another test',
    )


def posthog_batch() -> Shape:
    """A batch export to Parquet: properties are a text that is JSON."""
    all_of = happenings()
    time = pa.timestamp("us", "UTC")
    columns = {
        "uuid": [one.id for one in all_of],
        "event": [_POSTHOG_NAMES[one.kind] for one in all_of],
        "distinct_id": [user_of(one.page) or browser_of(one.page) for one in all_of],
        "person_id": [name_of("person", one.page.user) for one in all_of],
        "properties": [json.dumps(_posthog(one)) for one in all_of],
        "person_properties": ['{"plan":"free"}' for _ in all_of],
        "elements_chain": ["" for _ in all_of],
        "team_id": pa.array([1 for _ in all_of], pa.int64()),
        "timestamp": pa.array([one.at_ms * 1000 for one in all_of], time),
        "created_at": pa.array([(one.at_ms + 2_500) * 1000 for one in all_of], time),
        "_inserted_at": pa.array([(one.at_ms + 9_000) * 1000 for one in all_of], time),
    }
    return Shape(
        {"posthog-events.parquet": parquet(columns)},
        truth(anonymous=True),
        note="properties are JSON in a string column; created_at and _inserted_at are later",
    )


def heap() -> Shape:
    """Calls of the track API: properties are flat, so an item shown is a call."""
    names = {
        "visit": "Pageview",
        "login": "Signed In",
        "impression": "Recommendation Shown",
        "click": "Recommendation Clicked",
        "order": "Purchase Completed",
    }

    def call(one: Happening) -> Object:
        page = one.page
        about: Object = {"path": f"/{page.surface}", "ab_variant": page.arm, "library": "web"}
        if one.kind in ("impression", "click"):
            about |= {"product_id": f"{one.item}", "position": one.position}
            about |= {"request_id": f"r{page.number}"}
        if one.kind == "order":
            about |= {"product_id": f"{one.item}", "quantity": page.quantity}
            about |= {"price": one.price, "revenue": page.value}
        return {
            "app_id": "1184937461",
            "identity": user_of(page),
            "user_id": str(7_000_000_000 + page.user),
            "session_id": str(8_000_000_000 + page.user),
            "event": names[one.kind],
            "timestamp": iso(one.at_ms),
            "idempotency_key": one.id,
            "properties": about,
        }

    return Shape(
        {"heap.ndjson": singles(call)},
        truth(anonymous=True),
        note="revenue is of the order, price of a piece",
    )
