"""What speaks for each field that `streamer init` proposes."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from streamer.ingest.discovery.evidence import FieldEvidence
from streamer.ingest.discovery.proposal import propose
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.settings.load import parse

MS = 1_793_527_200_000


def sample(records: list[Any], topic: str = "web") -> SampledTopic:
    return SampledTopic(topic, [FoundRecord(json.dumps(one).encode()) for one in records])


def shop(count: int = 20) -> list[dict[str, Any]]:
    """Impressions of lists, clicks on their first items, and orders without all users."""
    made: list[dict[str, Any]] = []
    for n in range(count):
        common = {"at": MS + 30_000 * n, "uid": f"secret-{n % 7}"}
        recs = [{"sku": f"sku-{n}"}, {"sku": f"sku-{n + 1}"}]
        made.append(
            {**common, "what": "shown", "eventId": f"a{n}", "listId": f"q{n}", "recs": recs}
        )
        made.append({**common, "what": "clicked", "eventId": f"b{n}", "listId": f"q{n}"})
        made[-1]["sku"] = f"sku-{n}"
        order = {"at": MS, "what": "purchase", "eventId": f"c{n}", "sku": "x", "price": 10 + n / 2}
        made.append(order | ({"uid": "secret-1"} if n % 2 else {}))
    return made


def test_each_field_has_its_evidence() -> None:
    toml = propose([sample(shop())], "a test").toml
    assert (
        'ts = "at"                               # milliseconds, 2026-11-01 10:00 to 10:09' in toml
    )
    assert (
        "# 7 values, in 100 % of impressions and clicks, 50 % of conversions; "
        '100 % of those of clicks and conversions are of impressions\nuser_id = "uid"\n' in toml
    )
    assert 'event_id = "eventId"                    # different in each record' in toml
    assert "21 values" in toml
    assert "0 % of those of conversions are of impressions" in toml
    assert 'value = "price"                         # 10.00 to 19.50' in toml
    assert "# 20 values, in 100 % of clicks; 100 % of those of clicks are of impressions\n" in toml


def test_no_id_is_shown_and_no_line_with_a_comment_is_long() -> None:
    toml = propose([sample(shop())], "a test").toml
    assert "secret" not in toml
    assert "sku-" not in toml
    assert all(len(line) <= 100 for line in toml.splitlines() if " # " in line)


def test_ids_of_a_preset_have_evidence_too() -> None:
    records = [
        {
            **{"type": "track", "event": event, "userId": f"u{n}", "messageId": f"{event}{n}"},
            **{"timestamp": "2026-11-01T10:00:00Z", "properties": properties},
        }
        for n in range(20)
        for event, properties in (
            ("Product List Viewed", {"products": [{"product_id": "a"}, {"product_id": "b"}]}),
            ("Product Clicked", {"product_id": "a"}),
        )
    ]
    toml = propose([sample(records)], "a test").toml
    assert "# user_id of the preset: 20 values, in 100 % of impressions and clicks;" in toml
    assert "# item_id of the preset: 2 values; 100 % of those of clicks are of impressions" in toml


def evidence(source: dict[str, Any], records: list[Any]) -> FieldEvidence:
    settings = parse({"sources": [{"topics": ["web"], "kind": {"fixed": "impression"}, **source}]})
    return FieldEvidence(settings, [sample(records)])


def test_values_are_read_as_settings_say() -> None:
    fields = {
        "ts": {"path": "at", "format": "%d.%m.%Y %H:%M"},
        "item_id": "item",
        "event_id": "id",
        "score": {"path": "score", "scale": 0.01},
        "position": "place",
    }
    records = [
        {"at": f"01.11.2026 1{n}:30", "item": 7.0, "id": n % 4, "score": "50", "place": n + 1}
        for n in range(5)
    ]
    found = evidence({"fields": fields, "whole_ids": True}, records)
    kinds = ["impression"]
    assert found.of(0, "ts", kinds) == "2026-11-01 10:30 to 14:30"
    assert found.of(0, "item_id", kinds) == "1 value"
    assert found.of(0, "event_id", kinds) == "20 % are those of records before"
    assert found.of(0, "score", kinds) == "0.50"
    assert found.of(0, "position", kinds) == "1 to 5"
    assert found.of(0, "user_id", kinds) == ""
    assert found.lacks_offset(0)


def test_events_in_lists_of_records_are_looked_at_one_by_one() -> None:
    source = {
        "each": "batch[]",
        "kind": {"field": "batch[].what", "impression": ["shown"], "click": ["clicked"]},
        "fields": {"ts": "batch[].at", "item_id": "batch[].item", "user_id": "batch[].who"},
    }
    shown = {"what": "shown", "at": "2026-11-01T10:00:00Z", "item": "a", "who": "u"}
    records = [{"batch": [shown, {**shown, "what": "clicked", "item": "b"}]}]
    found = evidence(source, records)
    said = "2 values; 0 % of those of clicks are of impressions"
    assert found.of(0, "item_id", found.kinds(0)) == said
    assert found.of(0, "user_id", ["click"]).startswith("1 value, in 100 % of clicks")
    assert not found.lacks_offset(0)


def test_times_without_an_offset_are_a_doubt() -> None:
    records = [{"what": "shown", "at": "2026-11-01 10:00:00", "sku": "a", "rank": 1}] * 3
    proposal = propose([sample(records)], "a test")
    doubt = "ts has no time zone: taken as UTC; set zone"
    assert doubt in proposal.doubts
    assert f"# ? {doubt}\n" in proposal.toml
    assert (
        'ts = "at"                               # without an offset, 2026-11-01' in proposal.toml
    )


def test_keys_of_tables_may_be_any_text() -> None:
    names = ({"EventName": "app.recs.shown"}, {"EventName": "app.recs.clicked"})
    at = {"Timestamp": str(MS * 1_000_000)}
    records = [
        {**name, **at, "Attributes": {"user.id": f"u{n}", "item.id": "a"}}
        for n in range(9)
        for name in names
    ]
    toml = propose([sample(records)], "a test").toml
    assert tomllib.loads(toml)["sources"][0]["preset"] == "otel"
