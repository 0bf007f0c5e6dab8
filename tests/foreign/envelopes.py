"""Events in the envelopes of others: of brokers, of change data capture, of telemetry."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from tests.foreign.home_made import by_order_event
from tests.foreign.world import (
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
    single_happenings,
    truth,
    user_of,
)


def cloudevents() -> Shape:
    """CloudEvents 1.0, structured: the event is in `data`."""
    types = {
        "visit": "com.example.web.page.opened.v1",
        "login": "com.example.account.signedin.v1",
        "shown": "com.example.recs.shown.v1",
        "click": "com.example.recs.clicked.v1",
        "order": "com.example.orders.placed.v1",
    }

    def event(one: Happening) -> Object:
        page = one.page
        data: Object = {
            "user": {"id": user_of(page), "cookie": browser_of(page)},
            "surface": page.surface,
            "variant": page.arm,
        }
        slots = [
            {"sku": f"G-{item}", "slot": at, "unitPrice": cents_of(item) / 100}
            for at, item in page.slate
        ]
        match one.kind:
            case "shown":
                data |= {"requestId": f"r{page.number}", "slots": slots}
            case "click":
                data |= {"requestId": f"r{page.number}", **slots[one.position - 1]}
            case "order":
                data |= slots[one.position - 1] | {"quantity": page.quantity}
                data |= {"orderId": f"o{page.number}", "orderTotal": page.value}
        return {
            "specversion": "1.0",
            "id": one.id,
            "source": f"/shop/{page.surface}",
            "type": types[one.kind],
            "subject": f"pages/{page.number}",
            "time": iso(one.at_ms),
            "datacontenttype": "application/json",
            "dataschema": "https://schemas.example/recs/1.json",
            "traceparent": f"00-{hex_of(32, 'trace', page.number)}-{hex_of(16, one.id)}-01",
            "data": data,
        }

    return Shape(
        {"cloudevents.ndjson": lists(event)},
        truth(anonymous=True),
        note="orderTotal is of the order, unitPrice of a piece",
    )


_ROW_KINDS = {
    "visit": "page_view",
    "login": "login",
    "impression": "impression",
    "click": "click",
    "order": "purchase",
}


def _changes() -> Iterator[tuple[int, str, Object, int]]:
    """(time, op, row, cents of a piece) of a table in time order: each event is inserted; some rows
    are changed and some deleted later."""
    numbers = count(1)
    made: list[tuple[int, str, Object, int]] = []
    for one in single_happenings():
        page = one.page
        row: Object = {
            "id": next(numbers),
            "event_type": _ROW_KINDS[one.kind],
            "occurred_at": one.at_ms,
            "customer_id": 70_000 + page.user,
            "session_id": name_of("session", page.user),
            "request_id": f"r{page.number}",
            "item_id": one.item or None,
            "position": one.position or None,
            "surface": page.surface,
            "variant": page.arm,
            "quantity": page.quantity if one.kind == "order" else None,
            "is_billed": False,
        }
        cents = cents_of(one.item) if one.kind == "order" else 0
        made.append((one.at_ms, "c", row, cents))
        if one.kind in ("impression", "click", "order") and row["id"] % 9 == 0:
            made.append((one.at_ms + 4_000, "u", row | {"is_billed": True}, cents))
        if row["id"] % 14 == 0:
            made.append((one.at_ms + 20_000, "d", row, cents))
    yield from sorted(made, key=lambda change: change[0])


def _change(op: str, before: Object | None, after: Object | None, at_ms: int, lsn: int) -> Object:
    return {
        "before": before,
        "after": after,
        "source": {
            "version": "3.0.0.Final",
            "connector": "postgresql",
            "name": "shop",
            "ts_ms": at_ms + 8,
            "snapshot": "false",
            "db": "shop",
            "sequence": f'["{lsn - 40}","{lsn}"]',
            "schema": "public",
            "table": "rec_events",
            "txId": 700 + lsn,
            "lsn": lsn,
            "xmin": None,
        },
        "transaction": None,
        "op": op,
        "ts_ms": at_ms + 350,
    }


def debezium_schema() -> Shape:
    """Changes of one table, with their schema: microseconds, and decimals as bytes in base64."""

    def record(number: int, change: tuple[int, str, Object, int]) -> Object:
        at_ms, op, row, cents = change
        price = base64.b64encode(cents.to_bytes(cents.bit_length() // 8 + 1)).decode()
        row = row | {"occurred_at": row["occurred_at"] * 1000, "price": price if cents else None}
        before = None if op == "c" else row | {"is_billed": False}
        payload = _change(op, before, None if op == "d" else row, at_ms, 9_000 + number)
        return {"schema": _DEBEZIUM_SCHEMA, "payload": payload}

    return Shape(
        {"debezium-schema.ndjson": ndjson(record(n, one) for n, one in enumerate(_changes()))},
        truth(anonymous=False),
        note="op c only; u and d are no events; the tombstone after each d is left out of the file;"
        " price is a decimal of scale 2 in base64, to be multiplied by quantity",
    )


def debezium() -> Shape:
    """Changes of one table, without a schema: times with a zone, decimals as numbers."""

    def record(number: int, change: tuple[int, str, Object, int]) -> Object:
        at_ms, op, row, cents = change
        row = row | {"occurred_at": iso(row["occurred_at"]), "price": cents / 100 or None}
        before = None if op == "c" else row | {"is_billed": False}
        return _change(op, before, None if op == "d" else row, at_ms, 9_000 + number)

    return Shape(
        {"debezium.ndjson": ndjson(record(n, one) for n, one in enumerate(_changes()))},
        truth(anonymous=False),
        note="op c only; u and d are no events; the tombstone after each d is left out of the file",
    )


def _field(field: str, kind: str, /, *, optional: bool = True, **more: object) -> Object:
    return {"field": field, "type": kind, "optional": optional, **more}


_ROW_FIELDS = [
    _field("id", "int64", optional=False),
    _field("event_type", "string", optional=False),
    _field(
        "occurred_at", "int64", optional=False, name="io.debezium.time.MicroTimestamp", version=1
    ),
    *(_field(name, "int32") for name in ("customer_id", "item_id", "position", "quantity")),
    *(_field(name, "string") for name in ("session_id", "request_id", "surface", "variant")),
    _field("is_billed", "boolean"),
    _field(
        "price",
        "bytes",
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        parameters={"scale": "2", "connect.decimal.precision": "10"},
    ),
]
_DEBEZIUM_SCHEMA: Object = {
    "type": "struct",
    "fields": [
        _field("before", "struct", fields=_ROW_FIELDS, name="shop.public.rec_events.Value"),
        _field("after", "struct", fields=_ROW_FIELDS, name="shop.public.rec_events.Value"),
        _field("source", "struct", name="io.debezium.connector.postgresql.Source", optional=False),
        _field("op", "string", optional=False),
        _field("ts_ms", "int64"),
    ],
    "optional": False,
    "name": "shop.public.rec_events.Envelope",
    "version": 2,
}


def connect_envelope() -> Shape:
    """What Kafka Connect's JSON converter makes: schema and payload, around home-made events."""
    schema: Object = {
        "type": "struct",
        "fields": [
            _field("what", "string", optional=False),
            _field("at", "int64", optional=False),
            _field("who", "struct", fields=[_field("id", "int64"), _field("since", "int32")]),
            _field("recs", "array", items={"type": "int64", "optional": False}),
            _field("rec", "int64"),
            _field("eur", "double"),
        ],
        "optional": False,
        "name": "com.example.recs.Event",
    }
    return Shape(
        {"connect.ndjson": lists(lambda one: {"schema": schema, "payload": by_order_event(one)})},
        truth(anonymous=False),
        note="microseconds; who.id is the user, page.id is no item; eur is of the order",
    )


_TELEMETRY = {
    "visit": ("http", None, "GET 200"),
    "login": ("auth", "app.login", None),
    "shown": ("recs", "app.recs.shown", None),
    "click": ("recs", "app.recs.clicked", None),
    "order": ("orders", "app.order.placed", None),
}
"""(scope, name of the event, text)."""


def _attributes(one: Happening) -> Object:
    """Attributes with names of the semantic conventions, where there are any."""
    page = one.page
    made: Object = {
        "user.id": f"u{page.user}",
        "session.id": name_of("session", page.user),
        "url.path": f"/{page.surface}",
        "browser.language": "de",
        "feature_flag.key": "ranker",
        "feature_flag.result.variant": page.arm,
    }
    match one.kind:
        case "visit":
            made |= {"http.request.method": "GET", "http.response.status_code": 200}
        case "shown":
            made |= {"recs.request_id": f"r{page.number}"}
            made |= {"recs.item_ids": [f"i{item}" for item in page.items]}
        case "click":
            made |= {"recs.request_id": f"r{page.number}", "recs.item_id": f"i{one.item}"}
            made |= {"recs.position": one.position}
        case "order":
            made |= {"recs.item_id": f"i{one.item}", "order.quantity": page.quantity}
            made |= {"order.revenue": page.value}
    return made


def otel_log() -> Shape:
    """Log records of OpenTelemetry's data model, one a line; names of attributes have dots."""

    def record(one: Happening) -> Object:
        scope, name, text = _TELEMETRY[one.kind]
        made: Object = {
            "Timestamp": one.at_ms * 1_000_000 + 417,
            "ObservedTimestamp": one.at_ms * 1_000_000 + 90_000_000,
            "TraceId": hex_of(32, "trace", one.page.number),
            "SpanId": hex_of(16, "span", one.id),
            "TraceFlags": 1,
            "SeverityText": "INFO",
            "SeverityNumber": 9,
            "Body": text or {"schema": 2},
            "Resource": {
                "service.name": "shop-web",
                "service.version": "7.31.0",
                "host.name": "web-1",
            },
            "InstrumentationScope": {"Name": scope, "Version": "1.0.0"},
            "Attributes": _attributes(one) | ({"event.name": name} if name else {}),
        }
        return made | ({"EventName": name} if name else {})

    return Shape(
        {"otel-logs.ndjson": lists(record)},
        truth(anonymous=False),
        note="nanoseconds; page loads are ordinary log records without a name of an event",
    )


def otlp_json() -> Shape:
    """What the collector's Kafka exporter writes: a record holds many log records, by resource and
    scope, and attributes are lists of keys and values."""
    size = 12
    every = happenings()
    batches = [every[at : at + size] for at in range(0, len(every), size)]
    return Shape(
        {"otlp.ndjson": ndjson(map(_export, batches))},
        truth(anonymous=False),
        note="resourceLogs[].scopeLogs[].logRecords[]; nanoseconds as text",
    )


def _export(batch: Sequence[Happening]) -> Object:
    by_scope: dict[str, dict[str, list[Happening]]] = {}
    for one in batch:
        scope = _TELEMETRY[one.kind][0]
        service = "shop-orders" if scope == "orders" else "shop-web"
        by_scope.setdefault(service, {}).setdefault(scope, []).append(one)
    return {
        "resourceLogs": [
            {
                "resource": {
                    "attributes": _key_values({"service.name": service, "host.name": "web-1"})
                },
                "scopeLogs": [
                    {
                        "scope": {"name": scope, "version": "1.0.0"},
                        "logRecords": [_log_record(one) for one in records],
                    }
                    for scope, records in scopes.items()
                ],
                "schemaUrl": "https://opentelemetry.io/schemas/1.27.0",
            }
            for service, scopes in by_scope.items()
        ]
    }


def _log_record(one: Happening) -> Object:
    _, name, text = _TELEMETRY[one.kind]
    made: Object = {
        "timeUnixNano": str(one.at_ms * 1_000_000 + 417),
        "observedTimeUnixNano": str(one.at_ms * 1_000_000 + 90_000_000),
        "severityNumber": 9,
        "severityText": "INFO",
        "body": _any_value(text or ""),
        "attributes": _key_values(_attributes(one) | ({"event.name": name} if name else {})),
        "traceId": hex_of(32, "trace", one.page.number),
        "spanId": hex_of(16, "span", one.id),
        "flags": 1,
    }
    return made | ({"eventName": name} if name else {})


def _key_values(attributes: Object) -> list[Object]:
    return [{"key": key, "value": _any_value(value)} for key, value in attributes.items()]


def _any_value(value: object) -> Object:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_any_value(one) for one in value]}}
    raise TypeError(value)


def _app_event(one: Happening) -> Object:
    """What the apps of a shop collect before they send it."""
    page = one.page
    made: Object = {
        "eventId": one.id,
        "name": {
            "visit": "page_view",
            "login": "login",
            "shown": "recommendations_shown",
            "click": "recommendation_clicked",
            "order": "purchase",
        }[one.kind],
        "timestamp": one.at_ms,
        "userId": user_of(page),
        "deviceId": browser_of(page),
        "sessionId": f"s{page.user}",
        "requestId": f"r{page.number}",
        "variant": page.arm,
    }
    match one.kind:
        case "shown":
            made["items"] = [{"itemId": f"i{item}", "position": at} for at, item in page.slate]
        case "click":
            made |= {"itemId": f"i{one.item}", "position": one.position}
        case "order":
            made |= {"itemId": f"i{one.item}", "quantity": page.quantity, "revenue": page.value}
    return made


def batches() -> Shape:
    """Several events in one record, below `batch`."""
    return Shape(
        {"batches.ndjson": ndjson(_sent(events) for events in _groups(happenings()))},
        truth(anonymous=True),
        note="events stand in batch[]; sentAt and the ids beside it are of the batch",
    )


def _sent(events: Sequence[Happening]) -> Object:
    return {
        "batchId": name_of("batch", events[0].id),
        "sentAt": iso(events[-1].at_ms + 700),
        "client": {"name": "shop-app", "version": "7.31.0"},
        "batch": [_app_event(one) for one in events],
    }


def arrays() -> Shape:
    """Several events in one record that is an array."""
    made = ([_app_event(one) for one in events] for events in _groups(happenings()))
    return Shape(
        {"arrays.ndjson": ndjson(made)}, truth(anonymous=True), note="each line is an array"
    )


def _groups(events: Iterable[Happening]) -> Iterator[list[Happening]]:
    """Of 1 to 7."""
    group: list[Happening] = []
    sizes = count(3, 5)
    size = 3
    for one in events:
        group.append(one)
        if len(group) == size:
            yield group
            group, size = [], 1 + next(sizes) % 7
    if group:
        yield group
