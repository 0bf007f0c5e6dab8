"""Public data sets of recommender research, columns as their descriptions have them. None has an
experiment."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from tests.foreign.world import (
    FIRST_MS,
    Page,
    Shape,
    Truth,
    cents_of,
    happenings,
    hex_of,
    iso,
    pages,
    parquet,
    plain_time,
    single_happenings,
    truth,
    utc,
    words,
)


def _table(rows: Iterable[Sequence[object]], separator: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


CRITEO_COLUMNS = words(
    "timestamp uid campaign conversion conversion_timestamp conversion_id attribution click "
    "click_pos click_nb cost cpo time_since_last_click cat1 cat2 cat3 cat4 cat5 cat6 cat7 cat8 cat9"
)


def criteo() -> Shape:
    """Criteo's attribution modelling: an impression a row, with the click and the order it led to;
    seconds from the start of the data."""
    rows: list[Sequence[object]] = [CRITEO_COLUMNS]
    last_click: dict[int, int] = {}
    for page in pages():
        at = (page.at_ms - FIRST_MS) // 1000
        for position, item in page.slate:
            is_clicked, is_bought = item in page.clicked, item == page.bought
            since = at - last_click[page.user] if page.user in last_click else -1
            rows.append(
                (
                    *(at, 20_073_966 + page.user, 10_341_000 + item, int(is_bought)),
                    at + 5 if is_bought else -1,
                    1_000_000 + page.number if is_bought else -1,
                    *(int(is_bought), int(is_clicked)),
                    page.clicked.index(item) if is_bought else -1,
                    len(page.clicked) if is_bought else -1,
                    *(f"{0.00001 * item:.15g}", f"{0.0123 + page.user / 1000:.15g}", since),
                    *(30_763_000 + item % 7, 9_312_000 + page.user % 5, position),
                    *(32_440_000 + k for k in range(6)),
                )
            )
            if is_clicked:
                last_click[page.user] = at
    return Shape(
        {"criteo_attribution_dataset.tsv.gz": gzip.compress(_table(rows, "\t"), mtime=0)},
        truth(arm=False, value=False, anonymous=False),
        has_value=False,
        has_arm=False,
        note="seconds from 0, without a date; click and conversion are flags of the row; cost and"
        " cpo are no value; campaign is the item",
    )


def mind() -> Shape:
    """MIND's behaviors.tsv, without a header: a list a row, `N1-1` was clicked and `N2-0` not."""

    def row(page: Page) -> Sequence[object]:
        at = utc(page.at_ms)
        half = "AM" if at.hour < 12 else "PM"
        time = f"{at.month}/{at.day}/{at.year} {(at.hour - 1) % 12 + 1}:{at:%M:%S} {half}"
        earlier = [p for p in pages()[: page.number] if p.user == page.user]
        history = " ".join(f"N{item}" for p in earlier for item in p.clicked)
        shown = " ".join(f"N{item}-{int(item in page.clicked)}" for item in page.items)
        return page.number + 1, f"U{13_700 + page.user}", time, history, shown

    return Shape(
        {"behaviors.tsv": _table(map(row, pages()), "\t")},
        truth(arm=False, orders=False, anonymous=False),
        has_conversions=False,
        has_value=False,
        has_arm=False,
        note="no header; times like 11/1/2026 10:00:07 AM; history may be empty",
    )


def ebnerd() -> Shape:
    """EB-NeRD's behaviors.parquet: what was in view and what of it was clicked are lists."""
    every, random = pages(), Random(3)
    ids = pa.list_(pa.int32())
    columns: dict[str, Any] = {
        "impression_id": pa.array([149_474 + page.number for page in every], pa.uint32()),
        "article_id": pa.array([None for _ in every], pa.int32()),
        "impression_time": pa.array([page.at_ms * 1000 for page in every], pa.timestamp("us")),
        "read_time": pa.array([float(random.randrange(200)) for _ in every], pa.float32()),
        "scroll_percentage": pa.array([None for _ in every], pa.float32()),
        "device_type": pa.array([1 + page.user % 3 for page in every], pa.int8()),
        "article_ids_inview": pa.array([list(page.items) for page in every], ids),
        "article_ids_clicked": pa.array([list(page.clicked) for page in every], ids),
        "user_id": pa.array([10_000 + page.user for page in every], pa.uint32()),
        "is_sso_user": [page.user % 4 == 0 for page in every],
        "gender": pa.array([None for _ in every], pa.int8()),
        "postcode": pa.array([None for _ in every], pa.int8()),
        "age": pa.array([None for _ in every], pa.int8()),
        "is_subscriber": [page.user % 4 == 0 for page in every],
        "session_id": pa.array([300 + page.user for page in every], pa.uint32()),
        "next_read_time": pa.array([7.0 for _ in every], pa.float32()),
        "next_scroll_percentage": pa.array([41.0 for _ in every], pa.float32()),
    }
    return Shape(
        {"behaviors.parquet": parquet(columns)},
        truth(arm=False, orders=False, anonymous=False),
        has_conversions=False,
        has_value=False,
        has_arm=False,
        note="a list and its clicks in one row; the list of clicks is empty where there is none",
    )


def retailrocket() -> Shape:
    """RetailRocket's events.csv: views of products, baskets and orders of visitors."""
    names = {"impression": "view", "click": "addtocart", "order": "transaction"}
    rows: list[Sequence[object]] = [("timestamp", "visitorid", "event", "itemid", "transactionid")]
    for one in single_happenings():
        if one.kind in names:
            transaction = 4_000 + one.page.number if one.kind == "order" else ""
            rows.append((one.at_ms, one.page.user, names[one.kind], one.item, transaction))
    made = truth(arm=False, value=False, anonymous=False)
    made.clicks, made.joined_clicks = Counter(), 0
    return Shape(
        {"events.csv": _table(rows)},
        made,
        has_value=False,
        has_arm=False,
        note="a view is the only thing like an impression; baskets (addtocart) are no clicks, so"
        " there are none; no lists; the original is not sorted by time",
    )


def yoochoose() -> Shape:
    """YooChoose's clicks and purchases, two files without a header; the session is the user."""
    clicks: list[Sequence[object]] = []
    buys: list[Sequence[object]] = []
    categories = ("0", "S", "3", "2089072790")
    for one in happenings():
        head = (one.page.user + 1, iso(one.at_ms), 214_530_000 + one.item)
        if one.kind == "click":
            clicks.append((*head, categories[one.item % 4]))
        elif one.kind == "order":
            buys.append((*head, cents_of(one.item), one.page.quantity))
    made = truth(arm=False, anonymous=False)
    made.impressions, made.users, made.people, made.joined_clicks = Counter(), 0, 0, 0
    made.value = float(sum(int(str(price)) * int(str(pieces)) for *_, price, pieces in buys))
    return Shape(
        {"yoochoose-clicks.dat": _table(clicks), "yoochoose-buys.dat": _table(buys)},
        made,
        has_arm=False,
        note="no header, no impressions, no user; the file says the kind; prices are whole numbers"
        " of an unknown unit, and the value is in it",
    )


TRIVAGO_COLUMNS = words(
    "user_id session_id timestamp step action_type reference platform city device current_filters "
    "impressions prices"
)


def trivago() -> Shape:
    """The train.csv of the RecSys Challenge 2019: a list is there only where it was clicked, once
    for each click."""
    made, steps = Truth(), Counter[int]()
    users = set[int]()
    rows: list[Sequence[object]] = [TRIVAGO_COLUMNS]
    filters = ("", "4 Star|Sort by Price", "WiFi (Public Areas)")

    def add(page: Page, at_ms: int, action: str, reference: object, *shown: str) -> None:
        steps[page.user] += 1
        rows.append(
            (
                hex_of(12, "trivago", page.user).upper(),
                hex_of(13, "session", page.user),
                *(at_ms // 1000, steps[page.user], action, reference),
                *(page.country, "Berlin, Germany", ("mobile", "desktop")[page.user % 2]),
                *(filters[page.user % 3], *(shown or ("", ""))),
            )
        )

    for one in happenings():
        page = one.page
        match one.kind:
            case "visit":
                add(page, one.at_ms, "search for destination", "Berlin, Germany")
            case "login":
                add(page, one.at_ms, "filter selection", "WiFi (Public Areas)")
            case "shown" if not page.clicked:
                add(page, one.at_ms, "interaction item image", page.items[0])
            case "click":
                shown = "|".join(map(str, page.items))
                prices = "|".join(str(20 + item % 90) for item in page.items)
                add(page, one.at_ms, "clickout item", one.item, shown, prices)
                made.impressions[""] += len(page.items)
                made.clicks[""] += 1
                users.add(page.user)
    made.users = made.people = len(users)
    made.joined_clicks = made.clicks.total()
    return Shape(
        {"train.csv": _table(rows)},
        made,
        has_conversions=False,
        has_value=False,
        has_arm=False,
        note="impressions and prices are a|b|c; reference is an item only in some rows; a list with"
        " two clicks is there twice, and its impressions count twice",
    )


def outbrain() -> Shape:
    """Outbrain's clicks_train.csv: displays of advertisements, one of which was clicked."""
    made = Truth()
    rows: list[Sequence[object]] = [("display_id", "ad_id", "clicked")]
    for page in pages():
        if not page.clicked:
            continue
        for item in page.items:
            rows.append((page.number + 1, item, int(item == page.clicked[0])))
        made.impressions[""] += len(page.items)
        made.clicks[""] += 1
    made.joined_clicks = made.clicks.total()
    return Shape(
        {"clicks_train.csv": _table(rows)},
        made,
        has_conversions=False,
        has_value=False,
        has_arm=False,
        note="no time and no user: it cannot be read without the events.csv beside it",
    )


def open_bandit() -> Shape:
    """The Open Bandit Dataset: an impression a row, up to three at a time; no user."""
    made, random = Truth(), Random(5)
    features = [hex_of(32, "feature", k) for k in range(12)]
    rows: list[Sequence[object]] = [
        (
            *("", "timestamp", "item_id", "position", "click", "propensity_score"),
            *(f"user_feature_{k}" for k in range(4)),
            *(f"user-item_affinity_{k}" for k in range(80)),
        )
    ]
    for page in pages():
        for position, item in page.slate[:3]:
            click = int(item in page.clicked)
            rows.append(
                (
                    *(len(rows) - 1, f"{plain_time(page.at_ms, 6)}+00:00", item - 1000, position),
                    *(click, round(random.uniform(0.001, 0.4), 6)),
                    *(features[3 * k + page.user % 3] for k in range(4)),
                    *(float(random.random() < 0.02) for _ in range(80)),
                )
            )
            made.impressions[""] += 1
            made.clicks[""] += click
    made.joined_clicks = made.clicks.total()
    return Shape(
        {"open-bandit.csv": _table(rows)},
        made,
        has_conversions=False,
        has_value=False,
        has_arm=False,
        note="no user id; the click is a flag of the row; the propensity is of the item",
    )
