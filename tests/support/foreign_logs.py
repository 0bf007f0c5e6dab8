"""Five logs as others write them, each with the truth it was made from: impressions and clicks by
variant. Deterministic: the same bytes each time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

FIRST_MS = 1_793_527_200_000
"""2026-11-01 10:00:00 UTC."""
Object = dict[str, Any]


@dataclass
class Truth:
    """What happened, counted when it was made."""

    impressions: Counter[str] = field(default_factory=Counter)
    clicks: Counter[str] = field(default_factory=Counter)
    conversions: int = 0

    @property
    def ctr(self) -> dict[str, float]:
        return {v: self.clicks[v] / n for v, n in self.impressions.items()}


@dataclass(frozen=True)
class Log:
    """A file: its name, its bytes, and the truth."""

    name: str
    data: bytes
    truth: Truth


@dataclass(frozen=True)
class Page:
    """One list that was shown to somebody, and what came of it."""

    number: int
    at_ms: int
    user: int
    variant: str
    surface: str
    items: tuple[int, ...]
    clicked: tuple[int, ...]
    bought: int | None


def pages(
    seed: int, count: int, truth: Truth, arms: tuple[str, str] = ("A", "B")
) -> Iterator[Page]:
    """Pages in time order; half of an arm's users each, the second arm clicks more."""
    random = Random(seed)
    for number in range(count):
        user = random.randrange(200)
        variant = arms[user % 2]
        items = tuple(random.sample(range(1000, 1060), random.randint(1, 5)))
        rate = 0.10 if variant == arms[0] else 0.16
        clicked = tuple(item for item in items if random.random() < rate)
        bought = clicked[0] if clicked and random.random() < 0.3 else None
        truth.impressions[variant] += len(items)
        truth.clicks[variant] += len(clicked)
        truth.conversions += bought is not None
        surface = random.choice(["home", "search", "detail"])
        at_ms = FIRST_MS + number * 1_000 + random.randrange(900)
        yield Page(number, at_ms, user, variant, surface, items, clicked, bought)


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def name_of(*parts: object) -> str:
    """An id like those of producers."""
    return str(uuid.UUID(hashlib.md5("/".join(map(str, parts)).encode()).hexdigest()))


def ndjson(name: str, truth: Truth, made: Iterator[tuple[int, Object]]) -> Log:
    ordered = sorted(made, key=lambda one: one[0])
    return Log(name, b"".join(json.dumps(event).encode() + b"\n" for _, event in ordered), truth)


def segment() -> Log:
    """Track calls of the e-commerce spec, version 2; the experiment in the context."""
    truth = Truth()

    def call(page: Page, event: str, ms: int, n: int, properties: Object) -> tuple[int, Object]:
        return ms, {
            "type": "track",
            "event": event,
            "messageId": name_of("segment", page.number, event, n),
            "anonymousId": name_of("browser", page.user),
            **({"userId": f"user-{page.user}"} if page.user % 5 else {"userId": None}),
            "timestamp": iso(ms),
            "sentAt": iso(ms + 120),
            "receivedAt": iso(ms + 480),
            "context": {
                "library": {"name": "analytics.js", "version": "4.1.0"},
                "page": {"path": f"/{page.surface}"},
                "locale": ("de-DE", "en-GB")[page.user % 3 == 0],
                "experiment": {"name": "ranker", "variant": page.variant},
            },
            "properties": properties,
        }

    def made() -> Iterator[tuple[int, Object]]:
        for page in pages(1, 700, truth):
            listed = [
                {"product_id": str(item), "sku": f"s{item}", "position": at, "price": item / 10}
                for at, item in enumerate(page.items, 1)
            ]
            shown = {"list_id": page.surface, "products": listed}
            yield call(page, "Product List Viewed", page.at_ms, 0, shown)
            if page.number % 7 == 0:
                yield call(page, "Cart Viewed", page.at_ms + 10, 0, {"cart_id": "c"})
            for item in page.clicked:
                at = page.items.index(item) + 1
                one = {"product_id": str(item), "position": at, "list_id": page.surface}
                yield call(page, "Product Clicked", page.at_ms + 300 + at, item, one)
            if page.bought is not None:
                line = {"product_id": str(page.bought), "price": 9.5, "quantity": 2}
                order = {"order_id": f"o{page.number}", "total": 19, "products": [line]}
                yield call(page, "Order Completed", page.at_ms + 800, 0, order)

    return ndjson("segment.ndjson", truth, made())


def ga4() -> Log:
    """Rows of the BigQuery export; the arm is an event parameter."""
    truth = Truth()

    def row(page: Page, name: str, ms: int, items: list[Object], **more: Any) -> tuple[int, Object]:
        def param(key: str, **value: Any) -> Object:
            return {"key": key, "value": value}

        return ms, {
            "event_date": "20261101",
            "event_timestamp": str(ms * 1000),
            "event_name": name,
            "event_params": [
                param("ga_session_id", int_value=str(page.user * 10_000 + 17)),
                param("page_location", string_value=f"https://shop.example/{page.surface}"),
                param("experiment_arm", string_value=page.variant),
            ],
            "user_pseudo_id": f"{page.user}.1700000000",
            "device": {"category": ("mobile", "desktop")[page.user % 4 == 0]},
            "geo": {"country": ("Germany", "France", "Spain")[page.user % 3]},
            "items": items,
            **more,
        }

    def made() -> Iterator[tuple[int, Object]]:
        for page in pages(2, 700, truth, ("control", "treatment")):
            listed = [
                {"item_id": f"SKU_{item}", "item_name": f"Item {item}", "index": at}
                for at, item in enumerate(page.items, 1)
            ]
            if page.number % 3 == 0:
                yield row(page, "page_view", page.at_ms - 5, [])
            yield row(page, "view_item_list", page.at_ms, listed)
            for item in page.clicked:
                at = page.items.index(item)
                yield row(page, "select_item", page.at_ms + 200 + at, [listed[at]])
            if page.bought is not None:
                line = {"item_id": f"SKU_{page.bought}", "price": 5, "quantity": 3}
                order = {"transaction_id": f"T{page.number}"}
                yield row(page, "purchase", page.at_ms + 850, [line], ecommerce=order)

    return ndjson("ga4.ndjson", truth, made())


def snowplow() -> Log:
    """Enriched events as JSON, with an experiment in a context of its own."""
    truth = Truth()
    action = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
    product = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"

    def event(page: Page, what: str, ms: int, n: int, products: list[Object]) -> tuple[int, Object]:
        return ms, {
            "app_id": "shop",
            "platform": "web",
            "collector_tstamp": iso(ms + 300),
            "derived_tstamp": iso(ms),
            "event": "unstruct",
            "event_name": "snowplow_ecommerce_action",
            "event_id": name_of("snowplow", page.number, what, n),
            "domain_userid": name_of("cookie", page.user),
            "user_id": None,
            "geo_country": ("DE", "AT")[page.user % 5 == 0],
            "domain_sessionid": name_of("session", page.user),
            action: {"type": what, "name": page.surface},
            product: products,
            "contexts_com_acme_experiment_1": [{"test_name": "ranker", "variant": page.variant}],
        }

    def made() -> Iterator[tuple[int, Object]]:
        for page in pages(3, 700, truth):
            listed = [
                {"id": f"p{item}", "category": f"c{item % 4}", "position": at, "price": 2.5}
                for at, item in enumerate(page.items, 1)
            ]
            yield event(page, "list_view", page.at_ms, 0, listed)
            for item in page.clicked:
                at = page.items.index(item)
                yield event(page, "list_click", page.at_ms + 100 + at, item, [listed[at]])
            if page.bought is not None:
                line = {"id": f"p{page.bought}", "category": "c", "price": 2.5, "quantity": 4}
                yield event(page, "transaction", page.at_ms + 900, 0, [line])

    return ndjson("snowplow.ndjson", truth, made())


def nested() -> Log:
    """One topic of a home-made pipeline: deep paths, integers as ids, seconds with decimals."""
    truth = Truth()

    def event(page: Page, what: str, ms: int, n: int, body: Object) -> tuple[int, Object]:
        return ms, {
            "meta": {
                "id": name_of("nested", page.number, what, n),
                "action": what,
                "occurred": {"at": ms / 1000},
                "schema": 3,
            },
            "actor": {"customer": {"id": 70_000 + page.user}},
            "env": {
                "device": ("ios", "android", "web")[page.user % 3],
                "tests": [
                    {"key": "checkout", "arm": ("old", "new")[page.user % 7 > 3]},
                    {"key": "ranker", "arm": page.variant},
                ],
            },
            "payload": body,
        }

    def made() -> Iterator[tuple[int, Object]]:
        for page in pages(4, 700, truth, ("base", "deep")):
            request = {"query": {"id": 500_000 + page.number}}
            slate = [{"content": {"id": item, "rank": at}} for at, item in enumerate(page.items)]
            yield event(page, "recs_shown", page.at_ms, 0, {**request, "cards": slate})
            if page.number % 4 == 0:
                yield event(page, "app_heartbeat", page.at_ms + 1, 0, {"battery": 7})
            for item in page.clicked:
                at = page.items.index(item)
                one = {"content": {"id": item, "rank": at}}
                yield event(page, "card_tapped", page.at_ms + 250 + at, item, {**request, **one})
            if page.bought is not None:
                order = {"content": {"id": page.bought}, "amount": 12.25}
                yield event(page, "purchase_done", page.at_ms + 870, 0, order)

    return ndjson("home-made.ndjson", truth, made())


def open_bandit() -> Log:
    """The raw columns of the Open Bandit Dataset. Its files are one for each policy and campaign;
    they are merged here, with a column that says of which policy each row is."""
    truth, random = Truth(), Random(5)
    features = [hashlib.md5(str(i).encode()).hexdigest() for i in range(12)]
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(
        ["", "timestamp", "item_id", "position", "click", "propensity_score"]
        + [f"user_feature_{k}" for k in range(4)]
        + [f"user-item_affinity_{k}" for k in range(5)]
        + ["policy"]
    )
    for i in range(6000):
        policy = ("random", "bts")[i % 2]
        at = datetime.fromtimestamp((FIRST_MS + i * 700) / 1000, UTC)
        click = int(random.random() < (0.02 if policy == "random" else 0.05))
        propensity = 0.0125 if policy == "random" else round(random.uniform(0.001, 0.4), 6)
        out.writerow(
            [i, at.isoformat(" ", "microseconds"), random.randrange(80), 1 + i % 3, click]
            + [propensity]
            + [features[3 * k + random.randrange(3)] for k in range(4)]
            + [float(random.random() < 0.02) for _ in range(5)]
            + [policy]
        )
        truth.impressions[policy] += 1
        truth.clicks[policy] += click
    return Log("open-bandit.csv", text.getvalue().encode(), truth)


LOGS: Mapping[str, Callable[[], Log]] = {
    "segment": segment,
    "ga4": ga4,
    "snowplow": snowplow,
    "nested": nested,
    "open_bandit": open_bandit,
}
