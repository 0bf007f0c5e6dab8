"""Events of pipelines that are nobody's product."""

from __future__ import annotations

import gzip
import json

from tests.foreign.world import (
    Happening,
    Object,
    Shape,
    browser_of,
    cents_of,
    happenings,
    iso,
    lists,
    truth,
    user_of,
)

_WHAT = {
    "visit": "page_opened",
    "login": "signed_in",
    "shown": "recs_shown",
    "click": "rec_clicked",
    "order": "order_paid",
}


def by_order_event(one: Happening) -> Object:
    """Lists are plain ids in order; users, pages and experiments are objects; microseconds."""
    page = one.page
    made: Object = {
        "what": _WHAT[one.kind],
        "at": one.at_ms * 1000 + 17,
        "who": {"id": page.user, "since": 2019 + page.user % 6},
        "page": {"id": page.surface, "view": 70_000 + page.number},
        "ab": {"ranker": page.arm, "checkout": ("old", "new")[page.user % 7 > 3]},
        "app": {"version": "7.31.0", "platform": ("ios", "android", "web")[page.user % 3]},
    }
    match one.kind:
        case "shown":
            made["recs"] = list(page.items)
        case "click":
            made["rec"] = one.item
        case "order":
            made |= {"rec": one.item, "pieces": page.quantity, "eur": page.value}
    return made


def recs_by_order() -> Shape:
    """A list is ids in order, `who.id` is the user, times are microseconds, `eur` is the value."""
    return Shape(
        {"recs.ndjson": lists(by_order_event)},
        truth(anonymous=False),
        note="page.id is no item, who.id neither; eur is the value of the order",
    )


def ndjson_bom_crlf_gz() -> Shape:
    """The same, zipped, with a byte order mark and Windows line ends."""
    lines = [json.dumps(by_order_event(one)).encode() for one in happenings()]
    text = b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n"
    return Shape(
        {"recs.ndjson.gz": gzip.compress(text, mtime=0)},
        truth(anonymous=False),
        note="the byte order mark stands before the first record",
    )


def _screen(one: Happening) -> Object:
    """A screen of shelves, without what it shows."""
    page = one.page
    return {
        "eventId": one.id,
        "eventName": {
            "visit": "screen_opened",
            "login": "profile_chosen",
            "shown": "home_rendered",
            "click": "tile_tapped",
            "order": "title_purchased",
        }[one.kind],
        "timestampMs": one.at_ms,
        "profileId": user_of(page),
        "deviceId": browser_of(page),
        "sessionId": f"s{page.user}",
        "pageRequestId": f"req-{page.number}",
        "experiment": {"name": "ranker", "variant": page.arm},
        "country": page.country,
    }


def _tile(one: Happening) -> Object:
    """What was tapped or bought."""
    made: Object = {"contentId": f"c{one.item}", "title": f"Film {one.item}"}
    if one.kind == "order":
        made |= {"amount": one.page.value, "currency": "EUR", "quantity": one.page.quantity}
    else:
        row, column = divmod(one.position - 1, 2)
        made |= {"row": row, "column": column}
    return made


def shelves_of_items() -> Shape:
    """A screen is a list of shelves, each of which has a list of items: two on each."""

    def event(one: Happening) -> Object:
        made = _screen(one)
        if one.kind == "shown":
            tiles = [
                {"contentId": f"c{item}", "column": (at - 1) % 2, "price": cents_of(item) / 100}
                for at, item in one.page.slate
            ]
            made["shelves"] = [
                {"shelfId": f"shelf-{at // 2}", "title": f"Row {at}", "items": tiles[at : at + 2]}
                for at in range(0, len(tiles), 2)
            ]
        elif one.kind in ("click", "order"):
            made |= _tile(one)
        return made

    return Shape(
        {"shelves.ndjson": lists(event)},
        truth(anonymous=True),
        note="items stand in shelves[].items[]; shelfId is no item",
    )


def shelves_of_lists() -> Shape:
    """The same screen as a list of lists."""

    def event(one: Happening) -> Object:
        made = _screen(one)
        if one.kind == "shown":
            tiles = [{"contentId": f"c{item}"} for item in one.page.items]
            made["rows"] = [tiles[at : at + 2] for at in range(0, len(tiles), 2)]
        elif one.kind in ("click", "order"):
            made |= _tile(one)
        return made

    return Shape(
        {"rows.ndjson": lists(event)}, truth(anonymous=True), note="items stand in rows[][]"
    )


def pretty_array() -> Shape:
    """A file that is one JSON array, indented for people."""

    def event(one: Happening) -> Object:
        page = one.page
        made: Object = {
            "id": one.id,
            "type": {
                "visit": "page_view",
                "login": "login",
                "shown": "impression",
                "click": "click",
                "order": "purchase",
            }[one.kind],
            "time": iso(one.at_ms),
            "user_id": f"u{page.user}",
            "request_id": f"r{page.number}",
            "variant": page.arm,
        }
        match one.kind:
            case "shown":
                made["items"] = [{"item_id": f"i{item}", "rank": at} for at, item in page.slate]
            case "click":
                made |= {"item_id": f"i{one.item}", "rank": one.position}
            case "order":
                made |= {"item_id": f"i{one.item}", "revenue": page.value}
        return made

    text = json.dumps([event(one) for one in happenings()], indent=2)
    return Shape(
        {"events.json": text.encode()}, truth(anonymous=False), note="one array over all lines"
    )
