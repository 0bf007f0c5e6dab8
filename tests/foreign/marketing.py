"""Events as products for marketing and content write them, fields and names as documented."""

from __future__ import annotations

import csv
import io
import json

from tests.foreign.world import (
    AGENT,
    Happening,
    Object,
    Page,
    Shape,
    browser_of,
    hex_of,
    iso,
    lists,
    name_of,
    ndjson,
    plain_time,
    single_happenings,
    singles,
    truth,
    user_of,
    words,
)

_XDM_TYPES = {
    "visit": "web.webpagedetails.pageViews",
    "shown": "decisioning.propositionDisplay",
    "click": "decisioning.propositionInteract",
    "order": "commerce.purchases",
}


def adobe_xdm() -> Shape:
    """Experience events: propositions with items in lists within lists, deep down."""

    def event(one: Happening) -> Object | None:
        page = one.page
        if one.kind == "login":
            return None
        experience: Object = {
            "analytics": {"customDimensions": {"eVars": {"eVar12": page.arm, "eVar3": "de"}}}
        }
        made = _xdm_visit(one)
        if one.kind in ("shown", "click"):
            experience["decisioning"] = _decisioning(one)
        if one.kind == "order":
            made |= _commerce(one)
        return made | {"_experience": experience}

    return Shape(
        {"xdm.ndjson": lists(event)},
        truth(anonymous=True),
        note="13 levels deep; priceTotal is of the line, not of a piece; users are in identityMap",
    )


def _xdm_visit(one: Happening) -> Object:
    """What events of all types say."""
    page = one.page
    ecid = str(10**37 + page.user)
    return {
        "_id": one.id,
        "timestamp": iso(one.at_ms),
        "eventType": _XDM_TYPES[one.kind],
        "identityMap": _identities(page, ecid),
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


def _identities(page: Page, ecid: str) -> Object:
    by_device = {
        "id": ecid,
        "authenticatedState": "ambiguous",
        "primary": not page.is_signed_in,
    }
    if not page.is_signed_in:
        return {"ECID": [by_device]}
    by_login = {"id": user_of(page), "authenticatedState": "authenticated", "primary": True}
    return {"ECID": [by_device], "crmId": [by_login]}


def _decisioning(one: Happening) -> Object:
    """What was shown or clicked."""
    page = one.page
    shown = page.slate if one.kind == "shown" else [(one.position, one.item)]
    done = "display" if one.kind == "shown" else "interact"
    made: Object = {
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
        made["propositionAction"] = action
    return made


def _commerce(one: Happening) -> Object:
    """What was bought."""
    page = one.page
    return {
        "commerce": {
            "purchases": {"value": 1},
            "order": {
                "purchaseID": f"o-{page.number}",
                "priceTotal": page.value,
                "currencyCode": "EUR",
            },
        },
        "productListItems": [
            {
                "SKU": f"personalized-offer:{one.item}",
                "name": f"Shirt {one.item}",
                "quantity": page.quantity,
                "priceTotal": page.value,
                "currencyCode": "EUR",
            }
        ],
    }


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
