"""Plain readers of the shapes, each written for one format and apart from what makes it."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = Mapping[str, bytes]


@dataclass
class Count:
    """What a reader counts."""

    impressions: Counter[str] = field(default_factory=Counter)
    clicks: Counter[str] = field(default_factory=Counter)
    conversions: int = 0
    cents: int = 0

    def order(self, value: float | str) -> None:
        self.conversions += 1
        self.cents += round(float(value) * 100)


def only(files: Files) -> bytes:
    (data,) = files.values()
    return data


def records(files: Files) -> Iterator[Any]:
    """Of files with a JSON value a line."""
    return (json.loads(line) for data in files.values() for line in data.splitlines())


def rows(text: str, separator: str = ",") -> Iterator[dict[str, str]]:
    """Of a table with a header."""
    return csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)


def parquet_rows(files: Files) -> list[dict[str, Any]]:
    table = pq.read_table(pa.BufferReader(only(files)))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


@dataclass(frozen=True)
class Names:
    """Events that have a name each: those of what is counted, and where an event says its arm, how
    many items it shows, and what it is worth. One item is clicked at a time."""

    shown: str
    clicked: str
    bought: str
    arm: Callable[[Any], str]
    items: Callable[[Any], int]
    worth: Callable[[Any], float | str]

    def count(self, events: Iterable[tuple[str | None, Any]]) -> Count:
        count = Count()
        for name, event in events:
            if name == self.shown:
                count.impressions[self.arm(event)] += self.items(event)
            elif name == self.clicked:
                count.clicks[self.arm(event)] += 1
            elif name == self.bought:
                count.order(self.worth(event))
        return count


def single(_: Any) -> int:
    return 1


def track_calls(files: Files) -> Count:
    def worth(call: Any) -> float:
        (line,) = call["properties"]["products"]
        total: float = line["price"] * line["quantity"]
        return total

    names = Names(
        *("Product List Viewed", "Product Clicked", "Order Completed"),
        arm=lambda call: call["context"]["experiment"]["variant"],
        items=lambda call: len(call["properties"]["products"]),
        worth=worth,
    )
    calls = (call for call in records(files) if call["type"] == "track")
    return names.count((call["event"], call) for call in calls)


def ga4(files: Files) -> Count:
    count = Count()
    for row in records(files):
        params = {one["key"]: one["value"] for one in row["event_params"]}
        arm = params["experiment_arm"]["string_value"]
        match row["event_name"]:
            case "view_item_list":
                count.impressions[arm] += len(row["items"])
            case "select_item":
                count.clicks[arm] += len(row["items"])
            case "purchase":
                count.order(sum(one["price"] * one["quantity"] for one in row["items"]))
    return count


def snowplow(actions: Iterable[tuple[str, str, list[Any]]]) -> Count:
    """``actions``: what was done in which arm, and its products."""
    count = Count()
    for action, arm, products in actions:
        match action:
            case "list_view":
                count.impressions[arm] += len(products)
            case "list_click":
                count.clicks[arm] += len(products)
            case "transaction":
                count.order(products[0]["price"] * products[0]["quantity"])
    return count


def snowplow_json(files: Files) -> Count:
    vendor = "com_snowplowanalytics_snowplow_ecommerce"
    return snowplow(
        (
            event[f"unstruct_event_{vendor}_snowplow_ecommerce_action_1"]["type"],
            event["contexts_com_acme_experiment_1"][0]["variant"],
            event[f"contexts_{vendor}_product_1"],
        )
        for event in records(files)
        if event["event_name"] == "snowplow_ecommerce_action"
    )


def snowplow_tsv(files: Files) -> Count:
    def action(contexts: str, unstruct: str) -> tuple[str, str, list[Any]]:
        entities = json.loads(contexts)["data"]
        products = [one["data"] for one in entities if "/product/" in one["schema"]]
        (arm,) = (one["data"]["variant"] for one in entities if "/experiment/" in one["schema"])
        return json.loads(unstruct)["data"]["data"]["type"], arm, products

    rows = [line.split("\t") for line in only(files).decode().splitlines()]
    assert {len(row) for row in rows} == {131}
    return snowplow(action(x[52], x[58]) for x in rows if x[126] == "snowplow_ecommerce_action")


def amplitude(files: Files) -> Count:
    names = Names(
        *("Product List Viewed", "Product Clicked", "Order Completed"),
        arm=lambda event: event["user_properties"]["[Experiment] ranker"],
        items=lambda event: len(event["event_properties"]["products"]),
        worth=lambda event: event["event_properties"]["revenue"],
    )
    return names.count((event["event_type"], event) for event in records(files))


def mixpanel(files: Files) -> Count:
    names = Names(
        *("Recommendations Shown", "Recommendation Clicked", "Purchase"),
        arm=lambda about: about["Variant name"],
        items=lambda about: len(about["items"]),
        worth=lambda about: about["revenue"],
    )
    return names.count((event["event"], event["properties"]) for event in records(files))


POSTHOG = Names(
    *("recs shown", "rec clicked", "order completed"),
    arm=lambda about: about["$feature/ranker"],
    items=lambda about: len(about["products"]),
    worth=lambda about: about["revenue"],
)


def posthog_webhook(files: Files) -> Count:
    events = (body["event"] for body in records(files))
    return POSTHOG.count((event["event"], event["properties"]) for event in events)


def posthog_batch(files: Files) -> Count:
    table = parquet_rows(files)
    return POSTHOG.count((row["event"], json.loads(row["properties"])) for row in table)


def adobe_xdm(files: Files) -> Count:
    count = Count()
    for event in records(files):
        experience = event["_experience"]
        arm = experience["analytics"]["customDimensions"]["eVars"]["eVar12"]
        propositions = experience.get("decisioning", {}).get("propositions", [])
        shown = [item["id"] for one in propositions for item in one["items"]]
        match event["eventType"]:
            case "decisioning.propositionDisplay":
                count.impressions[arm] += len(shown)
            case "decisioning.propositionInteract":
                count.clicks[arm] += len(shown)
            case "commerce.purchases":
                count.order(sum(line["priceTotal"] for line in event["productListItems"]))
    return count


BRAZE = Names(
    *("users.messages.contentcard.Impression", "users.messages.contentcard.Click"),
    "users.behaviors.Purchase",
    arm=lambda about: about["message_variation_name"],
    items=single,
    worth=lambda about: about["price"],
)


def braze_http(files: Files) -> Count:
    return BRAZE.count((event["event_type"], event["properties"]) for event in records(files))


def braze_storage(files: Files) -> Count:
    return BRAZE.count(
        (name.removesuffix(".ndjson"), json.loads(line))
        for name, data in files.items()
        for line in data.splitlines()
    )


def heap(files: Files) -> Count:
    names = Names(
        *("Recommendation Shown", "Recommendation Clicked", "Purchase Completed"),
        arm=lambda about: about["ab_variant"],
        items=single,
        worth=lambda about: about["price"] * about["quantity"],
    )
    return names.count((call["event"], call["properties"]) for call in records(files))


def matomo(files: Files) -> Count:
    count = Count()
    for row in rows(only(files).decode()):
        if row["c_n"] and row["c_i"]:
            count.clicks[row["dimension1"]] += 1
        elif row["c_n"]:
            count.impressions[row["dimension1"]] += 1
        elif row["idgoal"] == "0":
            count.order(row["revenue"])
    return count


def cloudevents(files: Files) -> Count:
    names = Names(
        *("com.example.recs.shown.v1", "com.example.recs.clicked.v1"),
        "com.example.orders.placed.v1",
        arm=lambda data: data["variant"],
        items=lambda data: len(data["slots"]),
        worth=lambda data: data["orderTotal"],
    )
    return names.count((event["type"], event["data"]) for event in records(files))


def debezium(files: Files) -> Count:
    count = Count()
    for record in records(files):
        change = record.get("payload", record)
        if change["op"] != "c":
            continue
        row = change["after"]
        match row["event_type"]:
            case "impression":
                count.impressions[row["variant"]] += 1
            case "click":
                count.clicks[row["variant"]] += 1
            case "purchase" if isinstance(row["price"], str):
                cents = int.from_bytes(base64.b64decode(row["price"]), signed=True)
                count.order(cents / 100 * row["quantity"])
            case "purchase":
                count.order(row["price"] * row["quantity"])
    return count


TELEMETRY = Names(
    *("app.recs.shown", "app.recs.clicked", "app.order.placed"),
    arm=lambda attributes: attributes["feature_flag.result.variant"],
    items=lambda attributes: len(attributes["recs.item_ids"]),
    worth=lambda attributes: attributes["order.revenue"],
)


def otel_log(files: Files) -> Count:
    return TELEMETRY.count((one.get("EventName"), one["Attributes"]) for one in records(files))


def otlp_json(files: Files) -> Count:
    def value_of(value: Any) -> Any:
        ((kind, inner),) = value.items()
        return [value_of(one) for one in inner["values"]] if kind == "arrayValue" else inner

    return TELEMETRY.count(
        (log.get("eventName"), {one["key"]: value_of(one["value"]) for one in log["attributes"]})
        for request in records(files)
        for resource in request["resourceLogs"]
        for scope in resource["scopeLogs"]
        for log in scope["logRecords"]
    )


APP = Names(
    *("recommendations_shown", "recommendation_clicked", "purchase"),
    arm=lambda event: event["variant"],
    items=lambda event: len(event["items"]),
    worth=lambda event: event["revenue"],
)


def batches(files: Files) -> Count:
    events = (event for record in records(files) for event in record["batch"])
    return APP.count((event["name"], event) for event in events)


def arrays(files: Files) -> Count:
    events = (event for record in records(files) for event in record)
    return APP.count((event["name"], event) for event in events)


BY_ORDER = Names(
    *("recs_shown", "rec_clicked", "order_paid"),
    arm=lambda event: event["ab"]["ranker"],
    items=lambda event: len(event["recs"]),
    worth=lambda event: event["eur"],
)


def by_order(events: Iterable[Any]) -> Count:
    return BY_ORDER.count((event["what"], event) for event in events)


def connect_envelope(files: Files) -> Count:
    return by_order(record["payload"] for record in records(files))


def ndjson_bom_crlf_gz(files: Files) -> Count:
    text = gzip.decompress(only(files)).decode("utf-8-sig")
    assert text.endswith("\r\n")
    return by_order(json.loads(line) for line in text.split("\r\n") if line)


def shelves(files: Files) -> Count:
    count = Count()
    for event in records(files):
        arm = event["experiment"]["variant"]
        match event["eventName"]:
            case "home_rendered" if "shelves" in event:
                count.impressions[arm] += sum(len(one["items"]) for one in event["shelves"])
            case "home_rendered":
                count.impressions[arm] += sum(len(tiles) for tiles in event["rows"])
            case "tile_tapped":
                count.clicks[arm] += 1
            case "title_purchased":
                count.order(event["amount"])
    return count


def pretty_array(files: Files) -> Count:
    names = Names(
        *("impression", "click", "purchase"),
        arm=lambda event: event["variant"],
        items=lambda event: len(event["items"]),
        worth=lambda event: event["revenue"],
    )
    return names.count((event["type"], event) for event in json.loads(only(files)))


def criteo(files: Files) -> Count:
    count = Count()
    for row in rows(gzip.decompress(only(files)).decode(), "\t"):
        count.impressions[""] += 1
        count.clicks[""] += int(row["click"])
        count.conversions += int(row["conversion"])
    return count


def mind(files: Files) -> Count:
    count = Count()
    for line in only(files).decode().splitlines():
        _, _, _, _, shown = line.split("\t")
        count.impressions[""] += len(shown.split())
        count.clicks[""] += sum(one.endswith("-1") for one in shown.split())
    return count


def ebnerd(files: Files) -> Count:
    count = Count()
    for row in parquet_rows(files):
        count.impressions[""] += len(row["article_ids_inview"])
        count.clicks[""] += len(row["article_ids_clicked"])
    return count


def retailrocket(files: Files) -> Count:
    events = Counter(row["event"] for row in rows(only(files).decode()))
    return Count(Counter({"": events["view"]}), conversions=events["transaction"])


def yoochoose(files: Files) -> Count:
    count = Count(clicks=Counter({"": len(files["yoochoose-clicks.dat"].splitlines())}))
    for line in files["yoochoose-buys.dat"].decode().splitlines():
        _, _, _, price, quantity = line.split(",")
        count.order(int(price) * int(quantity))
    return count


def trivago(files: Files) -> Count:
    count = Count()
    for row in rows(only(files).decode()):
        if row["action_type"] == "clickout item":
            assert row["reference"] in row["impressions"].split("|")
            count.impressions[""] += len(row["impressions"].split("|"))
            count.clicks[""] += 1
    return count


def outbrain(files: Files) -> Count:
    flags = [int(row["clicked"]) for row in rows(only(files).decode())]
    return Count(Counter({"": len(flags)}), Counter({"": sum(flags)}))


def open_bandit(files: Files) -> Count:
    flags = [int(row["click"]) for row in rows(only(files).decode())]
    return Count(Counter({"": len(flags)}), Counter({"": sum(flags)}))


def clicked_flag(files: Files) -> Count:
    count = Count()
    for row in records(files):
        count.impressions[row["variant"]] += 1
        count.clicks[row["variant"]] += row["clicked"]
    return count


def slate_flags(files: Files) -> Count:
    count = Count()
    for slate in records(files):
        count.impressions[slate["variant"]] += len(slate["items"])
        count.clicks[slate["variant"]] += sum(item["clicked"] for item in slate["items"])
    return count


def slate_clicked_ids(files: Files) -> Count:
    count = Count()
    for slate in records(files):
        assert set(slate["clicked_results"]) <= set(slate["results"])
        count.impressions[slate["variant"]] += len(slate["results"])
        count.clicks[slate["variant"]] += len(slate["clicked_results"])
    return count


def of_table(table: Iterable[dict[str, Any]]) -> Count:
    """Of the columns that tables without a product have."""
    names = Names(
        *("impression", "click", "purchase"),
        arm=lambda row: row["variant"],
        items=single,
        worth=lambda row: row["revenue"],
    )
    return names.count((row["event_type"], row) for row in table)


def csv_of(separator: str = ",", encoding: str = "utf-8") -> Callable[[Files], Count]:
    return lambda files: of_table(rows(only(files).decode(encoding), separator))


READERS: Mapping[str, Callable[[Files], Count]] = {
    "segment": track_calls,
    "rudderstack": track_calls,
    "ga4": ga4,
    "ga4_not_set": ga4,
    "snowplow_json": snowplow_json,
    "snowplow_tsv": snowplow_tsv,
    "amplitude": amplitude,
    "amplitude_device_event_id": amplitude,
    "mixpanel": mixpanel,
    "posthog_webhook": posthog_webhook,
    "posthog_batch": posthog_batch,
    "adobe_xdm": adobe_xdm,
    "braze_http": braze_http,
    "braze_storage": braze_storage,
    "heap": heap,
    "matomo": matomo,
    "cloudevents": cloudevents,
    "debezium_schema": debezium,
    "debezium": debezium,
    "otel_log": otel_log,
    "otlp_json": otlp_json,
    "connect_envelope": connect_envelope,
    "batches": batches,
    "arrays": arrays,
    "criteo": criteo,
    "mind": mind,
    "ebnerd": ebnerd,
    "retailrocket": retailrocket,
    "yoochoose": yoochoose,
    "trivago": trivago,
    "outbrain": outbrain,
    "open_bandit": open_bandit,
    "clicked_flag": clicked_flag,
    "slate_flags": slate_flags,
    "slate_clicked_ids": slate_clicked_ids,
    "csv_plain": csv_of(),
    "csv_seconds_gz": lambda files: of_table(rows(gzip.decompress(only(files)).decode())),
    "csv_microseconds": csv_of(),
    "csv_bom_crlf": csv_of(encoding="utf-8-sig"),
    "csv_offset": csv_of(),
    "csv_float_ids": csv_of(),
    "csv_local_time": csv_of(),
    "csv_postgres": csv_of(),
    "csv_semicolon": csv_of(";"),
    "csv_pipe": csv_of("|"),
    "csv_tab": csv_of("\t"),
    "csv_utf16": csv_of(encoding="utf-16"),
    "parquet_decimal": lambda files: of_table(parquet_rows(files)),
    "parquet_float_ids": lambda files: of_table(parquet_rows(files)),
    "recs_by_order": lambda files: by_order(records(files)),
    "ndjson_bom_crlf_gz": ndjson_bom_crlf_gz,
    "shelves_of_items": shelves,
    "shelves_of_lists": shelves,
    "pretty_array": pretty_array,
}
