"""Plain readers of the shapes, each written for one format and apart from what makes it."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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


def track_calls(files: Files) -> Count:
    count = Count()
    for call in records(files):
        arm = call["context"]["experiment"]["variant"]
        match call["type"], call.get("event"):
            case "track", "Product List Viewed":
                count.impressions[arm] += len(call["properties"]["products"])
            case "track", "Product Clicked":
                count.clicks[arm] += 1
            case "track", "Order Completed":
                (line,) = call["properties"]["products"]
                count.order(line["price"] * line["quantity"])
    return count


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


def snowplow_json(files: Files) -> Count:
    vendor = "com_snowplowanalytics_snowplow_ecommerce"
    count = Count()
    for event in records(files):
        if event["event_name"] != "snowplow_ecommerce_action":
            continue
        arm = event["contexts_com_acme_experiment_1"][0]["variant"]
        listed = event[f"contexts_{vendor}_product_1"]
        match event[f"unstruct_event_{vendor}_snowplow_ecommerce_action_1"]["type"]:
            case "list_view":
                count.impressions[arm] += len(listed)
            case "list_click":
                count.clicks[arm] += len(listed)
            case "transaction":
                count.order(listed[0]["price"] * listed[0]["quantity"])
    return count


def snowplow_tsv(files: Files) -> Count:
    count = Count()
    for line in only(files).decode().splitlines():
        cells = line.split("\t")
        assert len(cells) == 131
        contexts, unstruct, name = cells[52], cells[58], cells[126]
        if name != "snowplow_ecommerce_action":
            continue
        entities = json.loads(contexts)["data"]
        listed = [one["data"] for one in entities if "/product/" in one["schema"]]
        (arm,) = (one["data"]["variant"] for one in entities if "/experiment/" in one["schema"])
        match json.loads(unstruct)["data"]["data"]["type"]:
            case "list_view":
                count.impressions[arm] += len(listed)
            case "list_click":
                count.clicks[arm] += len(listed)
            case "transaction":
                count.order(listed[0]["price"] * listed[0]["quantity"])
    return count


def amplitude(files: Files) -> Count:
    count = Count()
    for event in records(files):
        arm, about = event["user_properties"]["[Experiment] ranker"], event["event_properties"]
        match event["event_type"]:
            case "Product List Viewed":
                count.impressions[arm] += len(about["products"])
            case "Product Clicked":
                count.clicks[arm] += 1
            case "Order Completed":
                count.order(about["revenue"])
    return count


def mixpanel(files: Files) -> Count:
    count = Count()
    for event in records(files):
        about = event["properties"]
        match event["event"]:
            case "Recommendations Shown":
                count.impressions[about["Variant name"]] += len(about["items"])
            case "Recommendation Clicked":
                count.clicks[about["Variant name"]] += 1
            case "Purchase":
                count.order(about["revenue"])
    return count


def posthog(events: Iterator[tuple[str, Any]]) -> Count:
    count = Count()
    for name, about in events:
        arm = about["$feature/ranker"]
        match name:
            case "recs shown":
                count.impressions[arm] += len(about["products"])
            case "rec clicked":
                count.clicks[arm] += 1
            case "order completed":
                count.order(about["revenue"])
    return count


def posthog_webhook(files: Files) -> Count:
    events = (body["event"] for body in records(files))
    return posthog((event["event"], event["properties"]) for event in events)


def posthog_batch(files: Files) -> Count:
    return posthog((row["event"], json.loads(row["properties"])) for row in parquet_rows(files))


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


def braze(events: Iterator[tuple[str, Any]]) -> Count:
    count = Count()
    for kind, about in events:
        match kind:
            case "users.messages.contentcard.Impression":
                count.impressions[about["message_variation_name"]] += 1
            case "users.messages.contentcard.Click":
                count.clicks[about["message_variation_name"]] += 1
            case "users.behaviors.Purchase":
                count.order(about["price"])
    return count


def braze_http(files: Files) -> Count:
    return braze((event["event_type"], event["properties"]) for event in records(files))


def braze_storage(files: Files) -> Count:
    return braze(
        (name.removesuffix(".ndjson"), json.loads(line))
        for name, data in files.items()
        for line in data.splitlines()
    )


def heap(files: Files) -> Count:
    count = Count()
    for call in records(files):
        about = call["properties"]
        match call["event"]:
            case "Recommendation Shown":
                count.impressions[about["ab_variant"]] += 1
            case "Recommendation Clicked":
                count.clicks[about["ab_variant"]] += 1
            case "Purchase Completed":
                count.order(about["price"] * about["quantity"])
    return count


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
    count = Count()
    for event in records(files):
        data = event["data"]
        match event["type"]:
            case "com.example.recs.shown.v1":
                count.impressions[data["variant"]] += len(data["slots"])
            case "com.example.recs.clicked.v1":
                count.clicks[data["variant"]] += 1
            case "com.example.orders.placed.v1":
                count.order(data["orderTotal"])
    return count


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


def telemetry(events: Iterator[tuple[str | None, Any]]) -> Count:
    count = Count()
    for name, attributes in events:
        arm = attributes["feature_flag.result.variant"]
        match name:
            case "app.recs.shown":
                count.impressions[arm] += len(attributes["recs.item_ids"])
            case "app.recs.clicked":
                count.clicks[arm] += 1
            case "app.order.placed":
                count.order(attributes["order.revenue"])
    return count


def otel_log(files: Files) -> Count:
    return telemetry((one.get("EventName"), one["Attributes"]) for one in records(files))


def otlp_json(files: Files) -> Count:
    def value_of(value: Any) -> Any:
        ((kind, inner),) = value.items()
        return [value_of(one) for one in inner["values"]] if kind == "arrayValue" else inner

    return telemetry(
        (log.get("eventName"), {one["key"]: value_of(one["value"]) for one in log["attributes"]})
        for request in records(files)
        for resource in request["resourceLogs"]
        for scope in resource["scopeLogs"]
        for log in scope["logRecords"]
    )


def app_events(events: Iterator[Any]) -> Count:
    count = Count()
    for event in events:
        match event["name"]:
            case "recommendations_shown":
                count.impressions[event["variant"]] += len(event["items"])
            case "recommendation_clicked":
                count.clicks[event["variant"]] += 1
            case "purchase":
                count.order(event["revenue"])
    return count


def batches(files: Files) -> Count:
    return app_events(event for record in records(files) for event in record["batch"])


def arrays(files: Files) -> Count:
    return app_events(event for record in records(files) for event in record)


def by_order(events: Iterator[Any]) -> Count:
    count = Count()
    for event in events:
        match event["what"]:
            case "recs_shown":
                count.impressions[event["ab"]["ranker"]] += len(event["recs"])
            case "rec_clicked":
                count.clicks[event["ab"]["ranker"]] += 1
            case "order_paid":
                count.order(event["eur"])
    return count


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
    count = Count()
    for event in json.loads(only(files)):
        match event["type"]:
            case "impression":
                count.impressions[event["variant"]] += len(event["items"])
            case "click":
                count.clicks[event["variant"]] += 1
            case "purchase":
                count.order(event["revenue"])
    return count


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


def of_table(table: Iterator[dict[str, Any]]) -> Count:
    """Of the columns that tables without a product have."""
    count = Count()
    for row in table:
        match row["event_type"]:
            case "impression":
                count.impressions[row["variant"]] += 1
            case "click":
                count.clicks[row["variant"]] += 1
            case "purchase":
                count.order(row["revenue"])
    return count


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
    "parquet_decimal": lambda files: of_table(iter(parquet_rows(files))),
    "parquet_float_ids": lambda files: of_table(iter(parquet_rows(files))),
    "recs_by_order": lambda files: by_order(records(files)),
    "ndjson_bom_crlf_gz": ndjson_bom_crlf_gz,
    "shelves_of_items": shelves,
    "shelves_of_lists": shelves,
    "pretty_array": pretty_array,
}
