"""Snowplow's enriched events: as JSON, and in columns as the pipeline writes them."""

from __future__ import annotations

import json
from typing import Any

from tests.foreign.world import (
    AGENT,
    Happening,
    Object,
    Page,
    Shape,
    browser_of,
    cents_of,
    happenings,
    iso,
    lists,
    name_of,
    plain_time,
    truth,
    user_of,
    words,
)

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
