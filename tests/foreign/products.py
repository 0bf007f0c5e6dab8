"""Events as products for analytics and marketing write them, fields and names as documented."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from typing import Any

import pyarrow as pa

from tests.foreign.world import (
    Happening,
    Object,
    Page,
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
    single_happenings,
    singles,
    truth,
    user_of,
    words,
)

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SESSION_MS = 1_793_527_000_000


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


def _ga4(one: Happening) -> Object:
    page = one.page

    def param(key: str, **value: Any) -> Object:
        empty = dict.fromkeys(("string_value", "int_value", "float_value", "double_value"))
        return {"key": key, "value": empty | value}

    items = [
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
    name, listed = {
        "visit": ("page_view", []),
        "login": ("login", []),
        "shown": ("view_item_list", items),
        "click": ("select_item", items[one.position - 1 : one.position]),
    }.get(one.kind, ("purchase", items[one.position - 1 : one.position]))
    ecommerce: Object = {"unique_items": len(listed), "transaction_id": "(not set)"}
    params = [
        param("ga_session_id", int_value=str((SESSION_MS + page.user * 1000) // 1000)),
        param("ga_session_number", int_value=str(1 + page.user % 4)),
        param("page_location", string_value=f"https://shop.example/{page.surface}"),
        param("experiment_arm", string_value=page.arm),
    ]
    if one.kind == "order":
        listed = [listed[0] | {"quantity": page.quantity, "item_revenue": page.value}]
        ecommerce = {
            "total_item_quantity": page.quantity,
            "purchase_revenue": page.value,
            "unique_items": 1,
            "transaction_id": f"T{page.number}",
        }
        params += [param("currency", string_value="EUR"), param("value", double_value=page.value)]
    return {
        "event_date": "20261101",
        "event_timestamp": str(one.at_ms * 1000),
        "event_name": name,
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


SNOWPLOW_COLUMNS = words(
    """
    app_id platform etl_tstamp collector_tstamp dvce_created_tstamp event event_id txn_id
    name_tracker v_tracker v_collector v_etl user_id user_ipaddress user_fingerprint domain_userid
    domain_sessionidx network_userid geo_country geo_region geo_city geo_zipcode geo_latitude
    geo_longitude geo_region_name ip_isp ip_organization ip_domain ip_netspeed page_url page_title
    page_referrer page_urlscheme page_urlhost page_urlport page_urlpath page_urlquery
    page_urlfragment refr_urlscheme refr_urlhost refr_urlport refr_urlpath refr_urlquery
    refr_urlfragment refr_medium refr_source refr_term mkt_medium mkt_source mkt_term mkt_content
    mkt_campaign contexts se_category se_action se_label se_property se_value unstruct_event
    tr_orderid tr_affiliation tr_total tr_tax tr_shipping tr_city tr_state tr_country ti_orderid
    ti_sku ti_name ti_category ti_price ti_quantity pp_xoffset_min pp_xoffset_max pp_yoffset_min
    pp_yoffset_max useragent br_name br_family br_version br_type br_renderengine br_lang
    br_features_pdf br_features_flash br_features_java br_features_director br_features_quicktime
    br_features_realplayer br_features_windowsmedia br_features_gears br_features_silverlight
    br_cookies br_colordepth br_viewwidth br_viewheight os_name os_family os_manufacturer
    os_timezone dvce_type dvce_ismobile dvce_screenwidth dvce_screenheight doc_charset doc_width
    doc_height tr_currency tr_total_base tr_tax_base tr_shipping_base ti_currency ti_price_base
    base_currency geo_timezone mkt_clickid mkt_network etl_tags dvce_sent_tstamp refr_domain_userid
    refr_device_tstamp derived_contexts domain_sessionid derived_tstamp event_vendor event_name
    event_format event_version event_fingerprint true_tstamp
    """
)
"""Columns of an enriched event, in the order of the file."""
_SNOWPLOW_ACTIONS = {"shown": "list_view", "click": "list_click", "order": "transaction"}
_SCHEMA = "iglu:com.snowplowanalytics.snowplow"


def _snowplow_base(one: Happening) -> Object:
    """What the two forms have in common."""
    page = one.page
    vendor = "com.snowplowanalytics.snowplow"
    event, name, vendor = {
        "visit": ("page_view", "page_view", vendor),
        "login": ("struct", "event", "com.google.analytics"),
    }.get(one.kind, ("unstruct", "snowplow_ecommerce_action", f"{vendor}.ecommerce"))
    is_action = one.kind in _SNOWPLOW_ACTIONS
    return {
        "app_id": "shop",
        "platform": "web",
        "event": event,
        "event_id": one.id,
        "name_tracker": "sp1",
        "v_tracker": "js-4.6.0",
        "v_collector": "ssc-3.2.0-kafka",
        "v_etl": "snowplow-enrich-kafka-5.1.0",
        "user_id": user_of(page),
        "user_ipaddress": f"192.0.2.{page.user}",
        "domain_userid": browser_of(page),
        "domain_sessionidx": 1 + page.user % 4,
        "network_userid": name_of("network", page.user),
        "geo_country": page.country,
        "page_url": f"https://shop.example/{page.surface}",
        "page_title": page.surface.title(),
        "page_urlscheme": "https",
        "page_urlhost": "shop.example",
        "page_urlport": 443,
        "page_urlpath": f"/{page.surface}",
        "se_category": "account" if one.kind == "login" else None,
        "se_action": "login" if one.kind == "login" else None,
        "useragent": AGENT,
        "br_lang": "de",
        "os_timezone": "Europe/Berlin",
        "domain_sessionid": name_of("session", page.user),
        "event_vendor": vendor,
        "event_name": name,
        "event_format": "jsonschema",
        "event_version": "1-0-2" if is_action else "1-0-0",
    }


def _snowplow_products(one: Happening) -> list[Object]:
    page = one.page
    products = [
        {
            "id": f"p{item}",
            "name": f"Shirt {item}",
            "category": f"clothes/c{item % 4}",
            "price": cents_of(item) / 100,
            "currency": "EUR",
            "variant": ("blue", "red")[item % 2],
            "position": position,
        }
        for position, item in page.slate
    ]
    match one.kind:
        case "shown":
            return products
        case "click":
            return products[one.position - 1 : one.position]
        case "order":
            return [products[one.position - 1] | {"quantity": page.quantity}]
        case _:
            return []


def _snowplow_transaction(page: Page) -> Object:
    return {
        "transaction_id": f"t-{page.number}",
        "revenue": page.value,
        "currency": "EUR",
        "payment_method": "card",
        "total_quantity": page.quantity,
    }


def snowplow_json() -> Shape:
    """Enriched events as JSON of the analytics SDKs; the experiment is a context of its own."""
    action = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
    entity = "contexts_com_snowplowanalytics_snowplow_ecommerce_"

    def event(one: Happening) -> Object:
        page, is_action = one.page, one.kind in _SNOWPLOW_ACTIONS
        made = _snowplow_base(one) | {
            "etl_tstamp": iso(one.at_ms + 900),
            "collector_tstamp": iso(one.at_ms + 300),
            "dvce_created_tstamp": iso(one.at_ms - 20),
            "dvce_sent_tstamp": iso(one.at_ms + 5),
            "derived_tstamp": iso(one.at_ms),
            "br_features_pdf": True,
            "br_cookies": True,
            "contexts_com_snowplowanalytics_snowplow_web_page_1": [
                {"id": name_of("view", page.number)}
            ],
            "contexts_com_acme_experiment_1": [{"test_name": "ranker", "variant": page.arm}],
        }
        if is_action:
            made[action] = {"type": _SNOWPLOW_ACTIONS[one.kind], "name": f"recs_{page.surface}"}
            made[entity + "product_1"] = _snowplow_products(one)
        if one.kind == "order":
            made[entity + "transaction_1"] = [_snowplow_transaction(page)]
        return made

    return Shape({"snowplow.ndjson": lists(event)}, truth(anonymous=True))


def snowplow_tsv() -> Shape:
    """Enriched events as the pipeline writes them: 131 columns without a header, two of which are
    JSON that describes itself."""

    def described(name: str, version: str, data: Any) -> Object:
        return {"schema": f"{name}/jsonschema/{version}", "data": data}

    def line(one: Happening) -> bytes:
        page, is_action = one.page, one.kind in _SNOWPLOW_ACTIONS
        ecommerce = f"{_SCHEMA}.ecommerce"
        entities = [
            described(f"{_SCHEMA}/web_page", "1-0-0", {"id": name_of("view", page.number)}),
            *(described(f"{ecommerce}/product", "1-0-0", p) for p in _snowplow_products(one)),
            described(
                "iglu:com.acme/experiment", "1-0-0", {"test_name": "ranker", "variant": page.arm}
            ),
        ]
        if one.kind == "order":
            entities.append(
                described(f"{ecommerce}/transaction", "1-0-0", _snowplow_transaction(page))
            )
        made = _snowplow_base(one) | {
            "etl_tstamp": plain_time(one.at_ms + 900),
            "collector_tstamp": plain_time(one.at_ms + 300),
            "dvce_created_tstamp": plain_time(one.at_ms - 20),
            "dvce_sent_tstamp": plain_time(one.at_ms + 5),
            "derived_tstamp": plain_time(one.at_ms),
            "br_features_pdf": "1",
            "br_cookies": "1",
            "contexts": json.dumps(described(f"{_SCHEMA}/contexts", "1-0-1", entities)),
            "derived_contexts": json.dumps(
                described(
                    f"{_SCHEMA}/contexts",
                    "1-0-1",
                    [
                        described(
                            "iglu:com.snowplowanalytics.snowplow/ua_parser_context",
                            "1-0-0",
                            {"useragentFamily": "Firefox", "osFamily": "Linux"},
                        )
                    ],
                )
            ),
        }
        if is_action:
            data = {"type": _SNOWPLOW_ACTIONS[one.kind], "name": f"recs_{page.surface}"}
            action = described(f"{ecommerce}/snowplow_ecommerce_action", "1-0-2", data)
            made["unstruct_event"] = json.dumps(
                described(f"{_SCHEMA}/unstruct_event", "1-0-0", action)
            )
        cells = (made.get(column) for column in SNOWPLOW_COLUMNS)
        return "\t".join("" if cell is None else str(cell) for cell in cells).encode() + b"\n"

    return Shape(
        {"enriched.tsv": b"".join(map(line, happenings()))},
        truth(anonymous=True),
        note="no header; lists, actions and the experiment are JSON in cells; nothing is quoted",
    )


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


def _amplitude(*, per_device: bool) -> list[Object]:
    names = {
        "visit": "[Amplitude] Page Viewed",
        "login": "$identify",
        "shown": "Product List Viewed",
        "click": "Product Clicked",
        "order": "Order Completed",
    }
    counters: Counter[int] = Counter()
    made = []
    for number, one in enumerate(happenings()):
        page = one.page
        counters[page.user] += 1
        products = [
            {"product_id": str(item), "position": at, "price": cents_of(item) / 100}
            for at, item in page.slate
        ]
        match one.kind:
            case "visit":
                about: Object = {"[Amplitude] Page Path": f"/{page.surface}"}
            case "login":
                about = {}
            case "shown":
                about = {"list": page.surface, "request_id": page.number, "products": products}
            case "click":
                about = {"list": page.surface, "request_id": page.number}
                about |= products[one.position - 1]
            case _:
                line = products[one.position - 1] | {"quantity": page.quantity}
                about = {"order_id": f"o{page.number}", "revenue": page.value, "products": [line]}
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
                "event_properties": about,
                "event_time": plain_time(one.at_ms, 6),
                "event_type": names[one.kind],
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


def adobe_xdm() -> Shape:
    """Experience events: propositions with items in lists within lists, deep down."""
    types = {
        "visit": "web.webpagedetails.pageViews",
        "shown": "decisioning.propositionDisplay",
        "click": "decisioning.propositionInteract",
        "order": "commerce.purchases",
    }

    def event(one: Happening) -> Object | None:
        page = one.page
        if one.kind == "login":
            return None
        ecid = str(10**37 + page.user)
        identities: Object = {
            "ECID": [
                {
                    "id": ecid,
                    "authenticatedState": "ambiguous",
                    "primary": not page.is_signed_in,
                }
            ]
        }
        if page.is_signed_in:
            identities["crmId"] = [
                {"id": user_of(page), "authenticatedState": "authenticated", "primary": True}
            ]
        made: Object = {
            "_id": one.id,
            "timestamp": iso(one.at_ms),
            "eventType": types[one.kind],
            "identityMap": identities,
            "endUserIDs": {"_experience": {"mcid": {"id": ecid, "namespace": {"code": "ECID"}}}},
            "web": {
                "webPageDetails": {
                    "URL": f"https://shop.example/{page.surface}",
                    "name": page.surface,
                    "pageViews": {"value": 1 if one.kind == "visit" else 0},
                }
            },
            "device": {"screenHeight": 1080, "screenWidth": 1920, "type": "desktop"},
            "environment": {"type": "browser", "browserDetails": {"userAgent": AGENT}},
            "placeContext": {"geo": {"countryCode": page.country}, "localTimezoneOffset": -60},
            "implementationDetails": {
                "name": "https://ns.adobe.com/experience/alloy",
                "version": "2.29.0",
                "environment": "browser",
            },
        }
        experience: Object = {
            "analytics": {"customDimensions": {"eVars": {"eVar12": page.arm, "eVar3": "de"}}}
        }
        if one.kind in ("shown", "click"):
            shown = page.slate if one.kind == "shown" else [(one.position, one.item)]
            done = "display" if one.kind == "shown" else "interact"
            experience["decisioning"] = {
                "propositionEventType": {done: 1},
                "propositions": [
                    {
                        "id": name_of("proposition", page.number),
                        "scope": f"web://shop.example/{page.surface}#recs",
                        "scopeDetails": {
                            "decisionProvider": "EXD",
                            "correlationID": name_of("correlation", page.number),
                            "activity": {"id": "dps:activity:17", "priority": 0},
                            "experience": {"id": page.arm},
                            "strategies": [{"step": "entry", "trafficType": "0"}],
                            "characteristics": {"eventToken": hex_of(40, "token", page.number)},
                        },
                        "items": [_offer(page, position, item) for position, item in shown],
                    }
                ],
            }
            if one.kind == "click":
                action = {"id": f"personalized-offer:{one.item}", "label": "more"}
                experience["decisioning"]["propositionAction"] = action
        if one.kind == "order":
            made["commerce"] = {
                "purchases": {"value": 1},
                "order": {
                    "purchaseID": f"o-{page.number}",
                    "priceTotal": page.value,
                    "currencyCode": "EUR",
                },
            }
            made["productListItems"] = [
                {
                    "SKU": f"personalized-offer:{one.item}",
                    "name": f"Shirt {one.item}",
                    "quantity": page.quantity,
                    "priceTotal": page.value,
                    "currencyCode": "EUR",
                }
            ]
        return made | {"_experience": experience}

    return Shape(
        {"xdm.ndjson": lists(event)},
        truth(anonymous=True),
        note="13 levels deep; priceTotal is of the line, not of a piece; users are in identityMap",
    )


def _offer(page: Page, position: int, item: int) -> Object:
    style: Object = {"style": {"light": {"text": {"color": "#111"}}}}
    return {
        "id": f"personalized-offer:{item}",
        "name": f"Shirt {item}",
        "score": round(1 / position, 4),
        "itemSelection": {
            "selectionDetail": {"selectionType": "selectionStrategy", "strategyName": "recs"},
            "rankingDetail": {"algorithmID": page.arm, "strategyID": "s1", "step": "aiModel"},
        },
        "schema": "https://ns.adobe.com/personalization/json-content-item",
        "data": {
            "id": f"d{item}",
            "format": "application/json",
            "content": {"card": {"header": {"title": f"Shirt {item}"} | style}},
        },
        "characteristics": {"eventToken": hex_of(32, "item", page.number, item)},
    }


_BRAZE_TYPES = {
    "visit": "users.behaviors.app.SessionStart",
    "login": "users.behaviors.CustomEvent",
    "impression": "users.messages.contentcard.Impression",
    "click": "users.messages.contentcard.Click",
    "order": "users.behaviors.Purchase",
}


def _braze(one: Happening) -> tuple[Object, Object, Object]:
    """What says who and when, the user, and all the rest."""
    page = one.page
    head: Object = {"id": one.id, "time": one.at_ms // 1000}
    user: Object = {
        "user_id": hex_of(24, "braze", page.user),
        "external_user_id": user_of(page),
        "device_id": browser_of(page),
        "timezone": "Europe/Berlin",
    }
    rest: Object = {
        "app_group_id": hex_of(24, "group"),
        "app_id": name_of("app"),
        "platform": ("ios", "android", "web")[page.user % 3],
        "os_version": "18.1",
        "device_model": "Pixel 9",
    }
    match one.kind:
        case "visit":
            rest["session_id"] = name_of("session", page.user, page.number)
        case "login":
            rest |= {"name": "signed_in", "properties": '{"plan":"free"}'}
        case "impression" | "click":
            rest |= {
                "content_card_id": f"card-{one.item}",
                "campaign_id": name_of("campaign", page.surface),
                "campaign_name": f"recs {page.surface}",
                "message_variation_id": name_of("variation", page.arm),
                "message_variation_name": page.arm,
                "dispatch_id": hex_of(32, "dispatch", page.number),
                "send_id": f"send-{page.number}",
            }
        case _:
            rest |= {"product_id": f"card-{one.item}", "price": page.value, "currency": "EUR"}
            rest["properties"] = json.dumps({"quantity": page.quantity})
    return head, user, rest


def braze_http() -> Shape:
    """Braze Currents to an HTTP endpoint or a stream: the user and the rest are objects."""

    def event(one: Happening) -> Object:
        head, user, rest = _braze(one)
        return {"event_type": _BRAZE_TYPES[one.kind], **head, "user": user, "properties": rest}

    return Shape(
        {"braze.ndjson": singles(event)},
        truth(anonymous=True),
        note="a card a record, in seconds, no position; price is of the whole purchase",
    )


def braze_storage() -> Shape:
    """Braze Currents to a bucket: flat, a folder for each type of event, which says the type."""
    rows: dict[str, list[Object]] = {}
    for one in single_happenings():
        head, user, rest = _braze(one)
        rows.setdefault(_BRAZE_TYPES[one.kind], []).append(head | user | rest)
    return Shape(
        {f"{kind}.ndjson": ndjson(made) for kind, made in sorted(rows.items())},
        truth(anonymous=True),
        note="the type is the name of the file; Braze writes Avro with the same fields",
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


MATOMO_COLUMNS = words(
    "idsite rec url action_name _id uid cdt rand pv_id res lang country c_n c_p c_t c_i "
    "e_c e_a e_n idgoal ec_id revenue ec_items dimension1"
)


def matomo() -> Shape:
    """Requests of the tracking API as rows: content tracking. An impression is what has a content
    name and no interaction."""
    out = io.StringIO()
    rows = csv.DictWriter(out, MATOMO_COLUMNS, restval="", lineterminator="\n")
    rows.writeheader()
    for one in single_happenings():
        page = one.page
        row: Object = {
            "idsite": 1,
            "rec": 1,
            "url": f"https://shop.example/{page.surface}",
            "_id": hex_of(16, "visitor", page.user),
            "uid": user_of(page) or "",
            "cdt": plain_time(one.at_ms, 0),
            "rand": page.number % 97,
            "pv_id": hex_of(6, "view", page.number),
            "res": "1920x1080",
            "lang": "de",
            "country": page.country.lower(),
            "dimension1": page.arm,
        }
        content = {
            "c_n": f"recs {page.surface}",
            "c_p": f"item-{one.item}",
            "c_t": f"https://shop.example/item/{one.item}",
        }
        match one.kind:
            case "visit":
                row["action_name"] = page.surface.title()
            case "login":
                row |= {"e_c": "account", "e_a": "login", "e_n": "form"}
            case "impression":
                row |= content
            case "click":
                row |= content | {"c_i": "click"}
            case _:
                line = [f"item-{one.item}", f"Shirt {one.item}", "", one.price, page.quantity]
                row |= {"idgoal": 0, "ec_id": f"o{page.number}", "revenue": f"{page.value:.2f}"}
                row["ec_items"] = json.dumps([line])
        rows.writerow(row)
    return Shape(
        {"matomo.csv": out.getvalue().encode()},
        truth(anonymous=True),
        note="kinds: c_n without c_i, c_i, idgoal; the item of an order is in ec_items, as JSON",
    )
