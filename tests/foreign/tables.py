"""Tables of warehouses and of other programs: rows with flags, CSV and Parquet of every kind."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.foreign.world import (
    Happening,
    Object,
    Page,
    Shape,
    Truth,
    iso,
    name_of,
    ndjson,
    pages,
    parquet,
    plain_time,
    single_happenings,
    truth,
    utc,
    words,
)


def _flags_truth() -> Truth:
    return truth(orders=False, anonymous=False)


def clicked_flag() -> Shape:
    """An impression a record, with a flag for its click."""

    def rows(page: Page) -> list[Object]:
        return [
            {
                "ts": iso(page.at_ms),
                "user_id": f"u{page.user}",
                "request_id": f"r{page.number}",
                "item_id": f"i{item}",
                "position": position,
                "surface": page.surface,
                "variant": page.arm,
                "is_new_user": page.user % 7 == 0,
                "clicked": item in page.clicked,
            }
            for position, item in page.slate
        ]

    return Shape(
        {"impressions.ndjson": ndjson(row for page in pages() for row in rows(page))},
        _flags_truth(),
        has_conversions=False,
        has_value=False,
    )


def _slate(page: Page) -> Object:
    return {
        "request_id": f"r{page.number}",
        "ts": iso(page.at_ms),
        "user_id": f"u{page.user}",
        "surface": page.surface,
        "variant": page.arm,
        "latency_ms": 12 + page.number % 40,
    }


def slate_flags() -> Shape:
    """A list a record; each of its items has a flag for its click."""

    def row(page: Page) -> Object:
        items = [
            {"item_id": f"i{item}", "position": position, "clicked": item in page.clicked}
            for position, item in page.slate
        ]
        return _slate(page) | {"items": items}

    return Shape(
        {"slates.ndjson": ndjson(map(row, pages()))},
        _flags_truth(),
        has_conversions=False,
        has_value=False,
        note="clicks have no record of their own",
    )


def slate_clicked_ids() -> Shape:
    """A list a record: ids that were shown, and ids of it that were clicked."""

    def row(page: Page) -> Object:
        return _slate(page) | {
            "results": [f"i{item}" for item in page.items],
            "clicked_results": [f"i{item}" for item in page.clicked],
        }

    return Shape(
        {"slates-ids.ndjson": ndjson(map(row, pages()))},
        _flags_truth(),
        has_conversions=False,
        has_value=False,
        note="clicks have no record of their own; clicked_results may be empty",
    )


COLUMNS = words(
    "event_id event_time event_type user_id session_id request_id item_id position surface variant "
    "revenue"
)
_TYPES = {
    "visit": "page_view",
    "impression": "impression",
    "click": "click",
    "order": "purchase",
}


def _rows(time: Callable[[int], object]) -> list[Object]:
    """A row for each event, None where a column has nothing to say."""
    return [
        {
            "event_id": one.id,
            "event_time": time(one.at_ms),
            "event_type": _TYPES[one.kind],
            "user_id": one.page.user,
            "session_id": name_of("session", one.page.user),
            "request_id": f"r{one.page.number}",
            "item_id": one.item or None,
            "position": one.position or None,
            "surface": one.page.surface,
            "variant": one.page.arm,
            "revenue": f"{one.page.value:.2f}" if one.kind == "order" else None,
        }
        for one in _events()
    ]


def _events() -> list[Happening]:
    return [one for one in single_happenings() if one.kind in _TYPES]


def _csv(rows: list[Object], separator: str = ",", end: str = "\n", quoted: bool = False) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(
        out,
        list(rows[0]),
        delimiter=separator,
        lineterminator=end,
        quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _shape(name: str, data: bytes, note: str = "") -> Shape:
    return Shape({name: data}, truth(anonymous=False), note=note)


def csv_plain() -> Shape:
    """RFC 3339 times, commas."""
    return _shape("events.csv", _csv(_rows(iso)).encode())


def csv_seconds_gz() -> Shape:
    """Zipped, with times in seconds."""
    text = _csv(_rows(lambda ms: ms // 1000))
    return _shape("events-seconds.csv.gz", gzip.compress(text.encode(), mtime=0), "whole seconds")


def csv_microseconds() -> Shape:
    """Times in microseconds."""
    return _shape("events-us.csv", _csv(_rows(lambda ms: ms * 1000 + 17)).encode())


def csv_bom_crlf() -> Shape:
    """As spreadsheets write it: a byte order mark, Windows line ends, everything in quotes, and a
    title with separators, quotes and line breaks in it."""
    rows = [
        row | {"title": f'The "{row["surface"]}" page,\nsecond line; {row["position"]}'}
        for row in _rows(iso)
    ]
    text = _csv(rows, end="\r\n", quoted=True)
    return _shape("events-excel.csv", text.encode("utf-8-sig"), "line breaks within quoted titles")


def csv_offset() -> Shape:
    """Times with an offset of five and a half hours."""
    zone = timezone(timedelta(hours=5, minutes=30))

    def time(ms: int) -> str:
        return utc(ms).astimezone(zone).isoformat(timespec="milliseconds")

    return _shape("events-offset.csv", _csv(_rows(time)).encode())


def csv_float_ids() -> Shape:
    """Ids with `.0` behind them, on impressions and clicks alike."""
    whole = ("user_id", "item_id", "position")

    def with_points(row: Object) -> Object:
        return row | {key: f"{row[key]}.0" for key in whole if row[key] is not None}

    return _shape("events-float.csv", _csv([with_points(row) for row in _rows(iso)]).encode())


def csv_local_time() -> Shape:
    """Times of a clock in Berlin, which is an hour ahead, without a zone."""
    return _shape(
        "events-local.csv",
        _csv(_rows(lambda ms: plain_time(ms + 3_600_000))).encode(),
        "times are an hour ahead of UTC, and do not say so",
    )


def csv_postgres() -> Shape:
    """Times as PostgreSQL writes a timestamptz in Berlin."""
    return _shape(
        "events-postgres.csv",
        _csv(_rows(lambda ms: f"{plain_time(ms + 3_600_000)}+01")).encode(),
        "offsets of hours alone",
    )


def csv_semicolon() -> Shape:
    """Semicolons between the columns."""
    return _shape("events-semicolon.csv", _csv(_rows(iso), ";").encode())


def csv_pipe() -> Shape:
    """Bars between the columns."""
    return _shape("events-pipe.csv", _csv(_rows(iso), "|").encode())


def csv_tab() -> Shape:
    """Tabs between the columns of a file that is called .csv."""
    return _shape("events-tab.csv", _csv(_rows(iso), "\t").encode())


def csv_utf16() -> Shape:
    """UTF-16 with a byte order mark, as Windows programs call Unicode."""
    text = _csv(_rows(iso), end="\r\n")
    return _shape("events-utf16.csv", b"\xff\xfe" + text.encode("utf-16-le"), "UTF-16")


def parquet_decimal() -> Shape:
    """Nanoseconds, decimals and dictionaries."""
    rows = _rows(lambda ms: ms * 1_000_000 + 417)
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in COLUMNS}
    columns["event_time"] = pa.array(columns["event_time"], pa.timestamp("ns", "UTC"))
    columns["revenue"] = pa.array(
        [text and Decimal(text) for text in columns["revenue"]], pa.decimal128(10, 2)
    )
    for key in ("event_type", "surface", "variant"):
        columns[key] = pa.array(columns[key]).dictionary_encode()
    return _shape("events.parquet", parquet(columns))


def parquet_float_ids() -> Shape:
    """As pandas writes integers with gaps: floating point; nanoseconds without a zone."""
    rows = _rows(lambda ms: ms * 1_000_000)
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in COLUMNS}
    columns["event_time"] = pa.array(columns["event_time"], pa.timestamp("ns"))
    for key in ("user_id", "item_id", "position", "revenue"):
        numbers = [None if value is None else float(value) for value in columns[key]]
        columns[key] = pa.array(numbers, pa.float64())
    return _shape("events-pandas.parquet", parquet(columns), "ids are 78.0")
