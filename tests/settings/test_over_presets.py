"""What settings say over a preset."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.ingest.record import record_decoder
from streamer.settings.load import parse


def judged(kind: dict[str, Any], name: str) -> str:
    """What an event of Segment is by its name."""
    settings = parse({"sources": [{"topics": ["web"], "preset": "segment", "kind": kind}]})
    record = f'{{"event": "{name}", "timestamp": "2026-11-01T10:00:00Z", "userId": "u", '
    record += '"properties": {"product_id": "a", "products": [{"product_id": "a"}]}}'
    found = record_decoder(settings).decode_all("web", record.encode())[0]
    return found if isinstance(found, str) else str(found["kind"])


def test_what_a_preset_ignores_stays_ignored() -> None:
    kind = {"ignored": ["Coffee Brewed"]}
    assert judged(kind, "Coffee Brewed") == "ignored"
    assert judged(kind, "Product Added") == "ignored"
    assert judged({}, "Coffee Brewed") == "kind"


def test_what_is_counted_is_ignored_no_more() -> None:
    assert judged({"click": ["Product Added"]}, "Product Added") == "clicks"
    liked = [{"value": "Product Shared", "feedback": "share"}]
    assert judged({"click": liked}, "Product Shared") == "clicks"
    some = [{"value": "Product Added", "has": "properties.origin"}]
    assert judged({"click": some}, "Product Added") == "ignored"


def test_what_is_ignored_is_counted_no_more() -> None:
    kind = {"ignored": ["Product List Filtered", "page"]}
    assert judged(kind, "Product List Filtered") == "ignored"
    assert judged(kind, "Product List Viewed") == "impressions"


def test_a_name_in_two_of_its_lists_is_refused_still() -> None:
    with pytest.raises(SettingsError, match="'a' is both ignored and clicks"):
        judged({"click": ["a"], "ignored": ["a"]}, "a")


@pytest.mark.parametrize("names", [["country"], ["country", "variant"]])
def test_what_no_dimension_is_for_is_not_read(names: list[str]) -> None:
    source = {"topics": ["web"], "preset": "segment", "fields": {"country": "context.country"}}
    dimensions = [{"name": name} for name in names]
    settings = parse({"sources": [source], "dimensions": dimensions})
    fields = settings.sources[0].fields
    assert ("variant" in fields, "surface" in fields) == ("variant" in names, False)
    own = {**source, "fields": {"surface": "context.page"}}
    made = parse({"sources": [own], "dimensions": dimensions})
    assert made.dimension_names == (*names, "surface")
