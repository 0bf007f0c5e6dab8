"""Settings that read each foreign shape: a preset, where there is one, and few lines besides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tests.foreign.world import words

_KINDS = """
kind.field = "event_type"
kind.impression = ["impression"]
kind.click = ["click"]
kind.conversion = ["purchase"]
kind.session = [{ value = "page_view", action = "view" }]
"""
_FIELDS = """
fields.user_id = "user_id"
fields.request_id = "request_id"
fields.item_id = "item_id"
fields.variant = "variant"
fields.value = "revenue"
"""
_TABLE = f"{_KINDS}{_FIELDS}"
"""Tables of warehouses, without their time."""
_FLAGS = """
fields.ts = "ts"
fields.user_id = "user_id"
fields.request_id = "request_id"
fields.variant = "variant"
"""
_BY_ORDER = """
kind.field = "{at}what"
kind.impression = ["recs_shown"]
kind.click = ["rec_clicked"]
kind.conversion = ["order_paid"]
kind.ignored = ["page_opened", "signed_in"]
fields.ts = {{ path = "{at}at", unit = "us" }}
fields.user_id = "{at}who.id"
fields.item_id = ["{at}recs[]", "{at}rec"]
fields.value = "{at}eur"
fields.variant = "{at}ab.ranker"
"""
_APP = """
kind.field = "{at}.name"
kind.impression = ["recommendations_shown"]
kind.click = ["recommendation_clicked"]
kind.conversion = ["purchase"]
kind.ignored = ["page_view", "login"]
fields.ts = "{at}.timestamp"
fields.user_id = ["{at}.userId", "{at}.deviceId"]
fields.item_id = ["{at}.items[].itemId", "{at}.itemId"]
fields.value = "{at}.revenue"
fields.variant = "{at}.variant"
"""
_SCREEN = """
kind.field = "eventName"
kind.impression = ["home_rendered"]
kind.click = ["tile_tapped"]
kind.conversion = ["title_purchased"]
kind.ignored = ["screen_opened", "profile_chosen"]
fields.ts = "timestampMs"
fields.user_id = ["profileId", "deviceId"]
fields.item_id = ["{items}.contentId", "contentId"]
fields.value = "amount"
fields.variant = "experiment.variant"
"""
_CHANGE = """
kind.impression = [{{ value = "c", where = {{ "{at}event_type" = "impression" }} }}]
kind.click = [{{ value = "c", where = {{ "{at}event_type" = "click" }} }}]
kind.conversion = [{{ value = "c", where = {{ "{at}event_type" = "purchase" }} }}]
kind.ignored = ["c"]
fields.user_id = "{at}customer_id"
"""
_TELEMETRY = """
kind.impression = ["app.recs.shown"]
kind.click = ["app.recs.clicked"]
kind.conversion = ["app.order.placed"]
kind.ignored = ["app.login"]
"""
_RECORDS = "resourceLogs[].scopeLogs[].logRecords[].attributes"
_LISTED = f"{_RECORDS}[key=recs.item_ids].value.arrayValue.values[].stringValue"
_RECS = """
kind.impression = ["recs shown"]
kind.click = ["rec clicked"]
kind.conversion = ["order completed"]
"""

SETTINGS: Mapping[str, str] = {
    "segment": 'preset = "segment"',
    "rudderstack": 'preset = "rudderstack"',
    "ga4": """
preset = "ga4"
fields.variant = "event_params[key=experiment_arm].value.string_value"
""",
    "ga4_not_set": """
preset = "ga4"
fields.variant = "event_params[key=experiment_arm].value.string_value"
""",
    "snowplow_json": """
preset = "snowplow"
fields.variant = "contexts_com_acme_experiment_1[0].variant"
""",
    "snowplow_tsv": """
preset = "snowplow-tsv"
fields.variant = "contexts.data[schema=iglu:com.acme/experiment/jsonschema/1-0-0].data.variant"
""",
    "amplitude": """
preset = "amplitude"
fields.variant = 'user_properties["[Experiment] ranker"]'
""",
    "amplitude_device_event_id": """
preset = "amplitude"
fields.variant = 'user_properties["[Experiment] ranker"]'
""",
    "mixpanel": """
preset = "mixpanel"
kind.impression = ["Recommendations Shown"]
kind.click = ["Recommendation Clicked"]
kind.conversion = ["Purchase"]
""",
    "posthog_webhook": f"""
preset = "posthog"{_RECS}
fields.variant = "event.properties.$feature/ranker"
""",
    "posthog_batch": f"""
preset = "posthog"{_RECS}
fields.variant = "properties.$feature/ranker"
""",
    "adobe_xdm": """
preset = "xdm"
fields.user_id = ["identityMap.crmId[0].id", "identityMap.ECID[0].id"]
""",
    "braze_http": 'preset = "braze"',
    "braze_storage": """
preset = "braze"
kind.field = []
""",
    "heap": """
preset = "heap"
kind.impression = ["Recommendation Shown"]
kind.click = ["Recommendation Clicked"]
kind.conversion = ["Purchase Completed"]
kind.ignored = ["Signed In"]
fields.variant = "properties.ab_variant"
""",
    "matomo": """
preset = "matomo"
fields.variant = "dimension1"
""",
    "cloudevents": """
preset = "cloudevents"
kind.impression = ["com.example.recs.shown.v1"]
kind.click = ["com.example.recs.clicked.v1"]
kind.conversion = ["com.example.orders.placed.v1"]
kind.ignored = ["com.example.web.page.opened.v1", "com.example.account.signedin.v1"]
fields.user_id = ["data.user.id", "data.user.cookie"]
fields.item_id = ["data.slots[].sku", "data.sku"]
fields.position = ["data.slots[].slot", "data.slot"]
fields.value = "data.orderTotal"
""",
    "debezium_schema": f"""
preset = "debezium"{_CHANGE.format(at="payload.after.")}
fields.ts = {{ path = "payload.after.occurred_at", unit = "us" }}
decimals = {{ "payload.after.price" = 2 }}
fields.value = {{ product = ["payload.after.price", "payload.after.quantity"] }}
""",
    "debezium": f"""
preset = "debezium"{_CHANGE.format(at="after.")}
fields.ts = "after.occurred_at"
fields.value = {{ product = ["after.price", "after.quantity"] }}
""",
    "otel_log": f"""
preset = "otel"{_TELEMETRY}
fields.item_id = ['Attributes["recs.item_ids"][]', 'Attributes["recs.item_id"]']
fields.value = 'Attributes["order.revenue"]'
""",
    "otlp_json": f"""
preset = "otlp"{_TELEMETRY}
fields.item_id = ["{_LISTED}", "{_RECORDS}[key=recs.item_id].value.stringValue"]
fields.value = "{_RECORDS}[key=order.revenue].value.doubleValue"
""",
    "connect_envelope": _BY_ORDER.format(at="payload."),
    "batches": 'each = "batch[]"' + _APP.format(at="batch[]"),
    "arrays": 'each = "[]"' + _APP.format(at="[]"),
    "criteo": 'preset = "criteo-attribution"',
    "mind": 'preset = "mind"',
    "ebnerd": 'preset = "eb-nerd"',
    "retailrocket": 'preset = "retailrocket"',
    "yoochoose": """
preset = "yoochoose-clicks"
[[sources]]
topics = ["yoochoose-buys"]
preset = "yoochoose-buys"
""",
    "trivago": 'preset = "trivago"',
    "open_bandit": 'preset = "open-bandit"',
    "clicked_flag": f"""
kind.fixed = "impression"
kind.click = [{{ where = {{ clicked = "true" }} }}]{_FLAGS}
fields.item_id = "item_id"
""",
    "slate_flags": f"""
kind.fixed = ["impression", "click"]{_FLAGS}
fields.item_id = "items[].item_id"
click.fields.item_id = "items[clicked=true][].item_id"
""",
    "slate_clicked_ids": f"""
kind.fixed = ["impression", "click"]{_FLAGS}
fields.item_id = "results[]"
click.fields.item_id = "clicked_results[]"
""",
    "csv_plain": f'fields.ts = "event_time"{_TABLE}',
    "csv_seconds_gz": f'fields.ts = {{ path = "event_time", unit = "s" }}{_TABLE}',
    "csv_microseconds": f'fields.ts = {{ path = "event_time", unit = "us" }}{_TABLE}',
    "csv_bom_crlf": f'fields.ts = "event_time"{_TABLE}',
    "csv_offset": f'fields.ts = "event_time"{_TABLE}',
    "csv_float_ids": f'whole_ids = true\nfields.ts = "event_time"{_TABLE}',
    "csv_local_time": f'zone = "Europe/Berlin"\nfields.ts = "event_time"{_TABLE}',
    "csv_postgres": f'fields.ts = "event_time"{_TABLE}',
    "csv_semicolon": f'fields.ts = "event_time"{_TABLE}',
    "csv_pipe": f'fields.ts = "event_time"{_TABLE}',
    "csv_tab": f'fields.ts = "event_time"{_TABLE}',
    "csv_utf16": f'fields.ts = "event_time"{_TABLE}',
    "parquet_decimal": f'fields.ts = "event_time"{_TABLE}',
    "parquet_float_ids": f'whole_ids = true\nfields.ts = "event_time"{_TABLE}',
    "recs_by_order": _BY_ORDER.format(at=""),
    "ndjson_bom_crlf_gz": _BY_ORDER.format(at=""),
    "shelves_of_items": _SCREEN.format(items="shelves[].items[]"),
    "shelves_of_lists": _SCREEN.format(items="rows[][]"),
    "pretty_array": """
kind.field = "type"
kind.impression = ["impression"]
kind.click = ["click"]
kind.conversion = ["purchase"]
kind.ignored = ["page_view", "login"]
fields.ts = "time"
fields.user_id = "user_id"
fields.request_id = "request_id"
fields.item_id = ["items[].item_id", "item_id"]
fields.value = "revenue"
fields.variant = "variant"
""",
}
"""Shape → what is written of its source below `topics`."""

LINES: Mapping[str, int] = {
    **dict.fromkeys(words("segment rudderstack braze_http criteo mind ebnerd retailrocket"), 0),
    **dict.fromkeys(words("yoochoose trivago open_bandit"), 0),
    **dict.fromkeys(words("ga4 ga4_not_set snowplow_json snowplow_tsv braze_storage matomo"), 1),
    **dict.fromkeys(words("amplitude amplitude_device_event_id adobe_xdm"), 1),
    "mixpanel": 3,
    **dict.fromkeys(words("posthog_webhook posthog_batch"), 4),
    "heap": 5,
    **dict.fromkeys(words("otel_log otlp_json"), 6),
    "debezium": 7,
    "debezium_schema": 8,
    **dict.fromkeys(words("clicked_flag slate_flags slate_clicked_ids"), 7),
    "cloudevents": 8,
    **dict.fromkeys(words("connect_envelope recs_by_order ndjson_bom_crlf_gz"), 10),
    **dict.fromkeys(words("shelves_of_items shelves_of_lists"), 10),
    **dict.fromkeys(words("batches arrays pretty_array csv_plain csv_seconds_gz"), 11),
    **dict.fromkeys(words("csv_microseconds csv_bom_crlf csv_offset csv_postgres csv_tab"), 11),
    **dict.fromkeys(words("csv_semicolon csv_pipe csv_utf16 parquet_decimal"), 11),
    **dict.fromkeys(words("csv_float_ids csv_local_time parquet_float_ids"), 12),
}
"""Shape → how many lines that are besides `topics` and `preset`."""
NOT_READ: Mapping[str, str] = {
    "outbrain": "it has no time and no user: the preset reads it joined with events.csv",
}
"""Shape → why no settings read it."""


def document(name: str, topics: Iterable[str]) -> str:
    """Settings that read a shape from topics."""
    below = SETTINGS[name]
    own = [topic for topic in topics if f'topics = ["{topic}"]' not in below]
    return f"[[sources]]\ntopics = {json.dumps(own)}\n{below}"
